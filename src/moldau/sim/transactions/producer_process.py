"""Moldau's own transactional producer as a process of the simulated world: its real parts, stepped by events.

Sender, accumulator, transaction manager and coordinator lookup are the client's; what is left out is the thread that
steps them and the user's threads that wait. A process may be stopped and go on, or die.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.client import config as settings
from moldau.client.connection.cluster import Cluster
from moldau.client.produce.accumulator import Accumulator
from moldau.client.produce.delivery import DeliveryFuture
from moldau.client.produce.sender import Sender
from moldau.client.produce.transaction_session import new_session
from moldau.client.produce.transactions import Operation
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, PreparedTransaction, TopicPartition
from moldau.sim.transactions.client_network import ClientNetwork

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld
    from moldau.sim.kernel.world import Event

RETRY_MS, RETRY_MAX_MS = 20, 200
BATCH_BYTES = 300
REQUEST_BYTES_MAX = 1 << 20


class ProducerProcess:
    """One life of one producer. `version_max` 1 makes it a client that knows nothing of transaction version 2; without
    a timeout somebody outside decides when its transactions end (KIP-939)."""

    def __init__(
        self, setting: ClusterWorld, name: str, transactional_id: str, timeout_ms: int | None, version_max: int | None
    ) -> None:
        self.world = setting.world
        self.name = name
        self.rng = setting.world.derived_rng(f"process {name}")
        self.machine = setting.network.new_machine()
        self.network = ClientNetwork(setting.network, self.machine, name, version_max)
        self.network.on_event = self.wake
        request_timeout_ms = self.rng.choice((600, 1500))
        brokers = ",".join(f"127.0.0.1:{port}" for port in setting.client_ports.values())
        given: dict[str, object] = {
            "transactional.id": transactional_id,
            "request.timeout.ms": request_timeout_ms,
            "retry.backoff.ms": RETRY_MS,
            "retry.backoff.max.ms": RETRY_MAX_MS,
        }
        if timeout_ms is None:
            given["transaction.two.phase.commit.enable"] = True
        else:
            given["transaction.timeout.ms"] = timeout_ms
        config = settings.read(settings.PRODUCER, brokers, given, {})
        cluster = Cluster(config, self.network, chance=self.rng)
        self._accumulator = Accumulator(
            batch_bytes=BATCH_BYTES,
            linger_ms=0,
            delivery_timeout_ms=self.rng.choice((1600, 4000)),
            retries=1 << 30,
            request_bytes_max=REQUEST_BYTES_MAX,
            codec=self.rng.choice((0, 0, 2)),
            level=-1,
            idempotent=True,
            backoff=cluster.backoff,
        )
        session = new_session(config, cluster, self._accumulator)
        self.manager = session.manager
        self._sender = Sender(
            cluster,
            self._accumulator,
            acks=-1,
            idempotent=True,
            request_timeout_ms=request_timeout_ms,
            in_flight_max=self.rng.choice((1, 2, 5)),
            batch_bytes=BATCH_BYTES,
            adaptive=False,
            availability_timeout_ms=0,
            on_batch=None,
            transactions=session,
        )
        # Moldau's client sends the first batch of an epoch to a partition alone. Others, like Java's, do not wait.
        self._is_eager = setting.world.derived_rng(f"eagerness of {name}").random() < 0.7
        self.alive = True
        self.stopped = False
        self._event: Event | None = None
        self._event_ms = 0

    # What the application calls

    def init(self, keep_prepared: bool = False) -> Operation:
        return self._called(self.manager.init(keep_prepared))

    def begin(self) -> None:
        self.manager.begin()

    def send(self, partition: TopicPartition, value: bytes) -> DeliveryFuture:
        self.manager.check_sending()
        now_ms = self.world.now_ms
        future = self._accumulator.append(partition, now_ms, None, value, None, now_ms)
        self.wake()
        return future

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> Operation:
        return self._called(self.manager.send_offsets(offsets, group))

    def commit(self) -> Operation:
        return self._called(self.manager.commit())

    def abort(self) -> Operation:
        return self._called(self.manager.abort())

    @property
    def is_holding_batches(self) -> bool:
        """Whether some records are neither written nor failed."""
        return self._accumulator.batches_held > 0

    def prepare(self) -> PreparedTransaction:
        return self.manager.prepare()

    def complete(self, noted: PreparedTransaction) -> Operation:
        return self._called(self.manager.complete(noted))

    def _called(self, operation: Operation) -> Operation:
        self.wake()
        return operation

    # Steps

    def wake(self) -> None:
        """Something happened: the sender looks at once."""
        self._schedule(self.world.now_ms)

    def _schedule(self, due_ms: int) -> None:
        if not self.alive or self.stopped:
            return
        if self._event is not None:
            if self._event_ms <= due_ms:
                return
            self._event.cancelled = True
        self._event_ms = due_ms
        self._event = self.world.schedule(due_ms - self.world.now_ms, self._step)

    def _step(self) -> None:
        self._event = None
        if not self.alive or self.stopped:
            return
        self.network.expire()
        if self._is_eager:
            for queue in self._accumulator._queues.values():
                queue.acknowledged = True
        self._sender.step()
        self._schedule(max(self.world.now_ms + 1, self.network.due_ms))

    # Life and death

    def stop(self) -> None:
        """SIGSTOP."""
        self.stopped = True
        self.network.stop()

    def go_on(self) -> None:
        self.stopped = False
        if self.alive:
            self.network.go_on()
            self.wake()

    def die(self) -> None:
        self.alive = False
        self.network.die(powered=self.rng.random() < 0.7)
