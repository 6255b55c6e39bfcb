"""Joins a producer's transactions with its sender: coordinators, requests in passing, batches that must fail, waiting.

The sender's thread calls step(); the user's threads change the state machine. Both do so under the producer's lock.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from moldau.client.config import ClientConfig
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import (
    ClientError,
    ConfigError,
    RequestTimeoutError,
    TransactionAbortedError,
    TransactionCallError,
)
from moldau.client.group.coordinator import GROUP, TRANSACTION, Coordinator
from moldau.client.produce.accumulator import Accumulator
from moldau.client.produce.transaction_states import State
from moldau.client.produce.transactions import Operation, TransactionManager, TransactionRequest
from moldau.client.results import PreparedTransaction, TopicPartition
from moldau.protocol.integers import INT_MAX
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.primitives import Message

if TYPE_CHECKING:
    from moldau.client.producer import Producer

logger = logging.getLogger("moldau.client")

# How long the sender waits at a time while batches wait for the coordinator; a response wakes it before.
HOLD_MS = 10


def new_session(config: ClientConfig, cluster: Cluster, accumulator: Accumulator) -> TransactionSession:
    """The session of a producer with a transactional.id; refuses settings that do not go together."""
    name = config.get_text("transactional.id")
    if not name:
        raise ConfigError("transactional.id must not be empty.")
    two_phase = config.get_bool("transaction.two.phase.commit.enable")
    if two_phase and "transaction.timeout.ms" in config.given:
        raise ConfigError(
            "transaction.timeout.ms has no meaning with transaction.two.phase.commit.enable: set one of them."
        )
    timeout_ms = INT_MAX if two_phase else config.get_int("transaction.timeout.ms")
    manager = TransactionManager(name, timeout_ms, two_phase, cluster.backoff)
    return TransactionSession(cluster, accumulator, manager, config.get_int("request.timeout.ms"))


class TransactionSession:
    """The transactions of one running producer."""

    def __init__(
        self, cluster: Cluster, accumulator: Accumulator, manager: TransactionManager, request_timeout_ms: int
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self.manager = manager
        self._request_timeout_ms = request_timeout_ms
        self._coordinator = Coordinator(cluster, manager.transactional_id, request_timeout_ms, TRANSACTION)
        self._groups: dict[str, Coordinator] = {}
        # A request that waits until its coordinator is known.
        self._pending: TransactionRequest | None = None
        self._incarnation = 0
        self._closing_deadline_ms: int | None = None
        self._lock: Any = None
        self._changed: threading.Condition | None = None
        accumulator.transactional = True

    def bind(self, lock: Any, changed: threading.Condition) -> None:
        """The sender's lock, and what those wait for who want to hear of changes."""
        self._lock = lock
        self._changed = changed

    # For the sender

    def step(self, now_ms: int) -> None:
        """Sends what the transactions need now; not under the lock."""
        manager = self.manager
        with self._lock:
            if self._accumulator.batches_held:
                manager.add_partitions(self._accumulator.partitions_waiting())
                reason = manager.dropping
                if reason is not None:
                    self._accumulator.fail_unsent(reason)
            self._withdraw()
            if self._pending is None:
                self._pending = manager.next_request(now_ms, self._accumulator.batches_held > 0)
                self._take_over_state()  # a transaction that touched nothing ends without a request
        self._send_pending(now_ms)

    def _withdraw(self) -> None:
        """A request that was never sent and is not wanted any more must not keep the end of the transaction waiting."""
        pending = self._pending
        if pending is None:
            return
        state = self.manager.state
        ending = isinstance(pending.message, EndTxnRequest | InitProducerIdRequest)
        if state in (State.FATAL_ERROR, State.ABORTABLE_ERROR) or (state is State.ABORTING and not ending):
            self._pending = None
            self.manager.withdraw()

    def _send_pending(self, now_ms: int) -> None:
        request = self._pending
        if request is None:
            return
        coordinator = self._coordinator_for(request)
        coordinator.find(now_ms)
        if coordinator.problem is not None:
            self._pending = None
            problem, coordinator.problem = coordinator.problem, None
            self._groups.pop(request.group_id or "", None)
            with self._lock:
                self.manager.on_coordinator_problem(request.group_id, problem)
                self._take_over_state()
        elif coordinator.known:
            self._pending = None
            done = partial(self._on_done, request, coordinator)
            coordinator.send(
                request.message, request.response_class, self._request_timeout_ms, done, request.highest_version
            )

    def _coordinator_for(self, request: TransactionRequest) -> Coordinator:
        if request.group_id is None:
            return self._coordinator
        found = self._groups.get(request.group_id)
        if found is None:
            found = Coordinator(self._cluster, request.group_id, self._request_timeout_ms, GROUP)
            self._groups[request.group_id] = found
        return found

    def _on_done(
        self, request: TransactionRequest, coordinator: Coordinator, response: Message | None, error: ClientError | None
    ) -> None:
        """In the sender's thread, inside of submit or poll."""
        now_ms = self._cluster.network.now_ms()
        with self._lock:
            if response is None:
                assert error is not None
                self.manager.on_failure(request, error, now_ms)
            elif self.manager.on_response(request, response, coordinator.features, now_ms):
                coordinator.forget("it said that it is not the coordinator")
            self._take_over_state()

    def _take_over_state(self) -> None:
        """Takes over what changed: a new producer id or epoch, a state in which nothing may be sent."""
        manager = self.manager
        if manager.incarnation != self._incarnation:
            self._incarnation = manager.incarnation
            self._accumulator.set_producer(manager.producer_id, manager.producer_epoch)
        if manager.state is not State.IN_TRANSACTION:
            self._accumulator.unusable = True
        assert self._changed is not None
        self._changed.notify_all()

    def may_send(self, partition: TopicPartition) -> bool:
        return self.manager.sending and self.manager.may_send(partition)

    def on_batch_failed(self, error: ClientError) -> None:
        """Under the lock."""
        if not isinstance(error, TransactionAbortedError) and error is not self.manager.error:
            self.manager.on_batch_failed(error)
            self._take_over_state()

    @property
    def fatal(self) -> ClientError | None:
        return self.manager.error if self.manager.state is State.FATAL_ERROR else None

    def wait_ms(self, wait_ms: int, now_ms: int) -> int:
        """How long the sender may wait, given how long it otherwise would."""
        waiting = self._accumulator.partitions_waiting()
        if any(self.manager.is_new_partition(partition) for partition in waiting):
            return 0  # appended after step() looked
        if any(not self.may_send(partition) for partition in waiting):
            wait_ms = max(wait_ms, HOLD_MS)
        if self._pending is not None:
            return max(1, min(wait_ms, self._coordinator_for(self._pending).next_deadline_ms() - now_ms))
        deadline_ms = self.manager.next_deadline_ms(self._accumulator.batches_held > 0)
        if deadline_ms is not None:
            wait_ms = min(wait_ms, max(0, deadline_ms - now_ms))
        return wait_ms

    # The end

    def close(self) -> None:
        """Under the lock: what is open is aborted, for as long as a request may take; what is prepared stays so."""
        self._closing_deadline_ms = self._cluster.network.now_ms() + self._request_timeout_ms
        if self.manager.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            logger.info("Aborting the open transaction: the producer is closed.")
            with contextlib.suppress(TransactionCallError):
                self.manager.abort()

    def busy(self) -> bool:
        """Whether the thread must go on although the producer is closed."""
        deadline_ms = self._closing_deadline_ms
        if deadline_ms is not None and self._cluster.network.now_ms() >= deadline_ms:
            return False
        return self.manager.state in (State.COMMITTING, State.ABORTING)

    def fail(self, error: ClientError) -> None:
        """The thread has ended: nobody responds any more."""
        self.manager.on_stopped(error)
        self._take_over_state()

    # The user's threads, under the lock

    def go_on_as(self, following: PreparedTransaction) -> None:
        self.manager.ended_elsewhere(following)
        self._take_over_state()

    def wait(self, operation: Operation, timeout_s: float) -> None:
        """Waits until the call has ended, and raises its error."""
        import time

        assert self._changed is not None
        deadline = time.monotonic() + timeout_s
        while not operation.done:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise RequestTimeoutError(
                    f"{operation.name}() did not end within max.block.ms; call it again to wait on."
                )
            self._changed.wait(remaining)
        self.manager.forget_operation(operation)
        if operation.error is not None:
            raise operation.error


class Transaction:
    """`with producer.transaction():` begins, then commits, or aborts where the block or the commit fails."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def __enter__(self) -> Transaction:
        self._producer.begin_transaction()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abort()
            return
        try:
            self._producer.commit_transaction()
        except RequestTimeoutError:
            raise  # nobody knows yet how it ends: the user may call commit_transaction() again
        except ClientError:
            self._abort()
            raise

    def _abort(self) -> None:
        """What led here is what the user should see, not that the abort failed as well."""
        try:
            if self._producer.in_transaction:
                self._producer.abort_transaction()
        except ClientError as error:
            logger.warning("Cannot abort the transaction: %s", error)
