"""The asyncio face: the same producer and consumer, awaited instead of waited for.

The state machines and the sockets stay where they are, in a thread beside the event loop: the producer's sender, or a
thread of its own for each consumer. What crosses is a call and its result, and for produced records one
notice per batch, so the event loop pays neither for the network nor for a record's way through it. Nothing here blocks
the loop: a send() that would have to wait for metadata or memory waits in the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.client.aio_worker import Worker, wait_for_loop
from moldau.client.arguments import GivenHeaders, checked_names, checked_partitions
from moldau.client.consumer import ARROW_ROWS, CLOSE_TIMEOUT_MS, Consumer
from moldau.client.fetch.fetcher import ConsumerRecord
from moldau.client.group.listener import RebalanceListener
from moldau.client.produce.delivery import Callback, DeliveryFuture
from moldau.client.producer import Producer
from moldau.client.results import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PreparedTransaction,
    RecordMetadata,
    TopicPartition,
)

if TYPE_CHECKING:
    from typing import Unpack

    from moldau.client.arrow import ArrowDelivery
    from moldau.client.metrics.names import Metrics
    from moldau.client.produce.transaction_session import Transaction
    from moldau.client.setting_types import ConsumerArguments, ProducerArguments

__all__ = ["AsyncConsumer", "AsyncDelivery", "AsyncProducer"]

T = TypeVar("T")


class AsyncDelivery:
    """The future of one produced record: `await delivery` gives where it went, or raises its error."""

    __slots__ = ("_future",)

    def __init__(self, future: DeliveryFuture) -> None:
        self._future = future

    def done(self) -> bool:
        """Whether the record is delivered or has failed."""
        return self._future.done()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self._wait().__await__()

    async def _wait(self) -> RecordMetadata:
        loop = asyncio.get_running_loop()
        while not self._future.done():
            waiter = loop.create_future()
            if self._future.fate.listen(partial(_notify, loop, waiter)):
                await waiter
        return self._future.metadata()


def _notify(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(_wake, waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class AsyncProducer:
    """Sends records to topics; takes what Producer takes, and may be used by many tasks."""

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **more: Unpack[ProducerArguments]) -> None:
        self._producer = Producer(bootstrap_servers, **more)
        self._worker = Worker("moldau-aio-producer")

    async def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: GivenHeaders | None = None,
        on_delivery: Callback | None = None,
    ) -> AsyncDelivery:
        """Queues one record and returns its future, which may be awaited: `await (await producer.send(...))`.

        Waits, up to max.block.ms, for metadata and memory only. Raises what makes the record impossible at once:
        RecordTooLargeError, UnknownTopicOrPartitionError, RequestTimeoutError after max.block.ms. on_delivery(metadata,
        error) is called from the sender's thread, with one of the two None.
        """
        if not self._producer._would_block(topic):
            return AsyncDelivery(
                self._producer.send(
                    topic,
                    value,
                    key,
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                    headers=headers,
                    on_delivery=on_delivery,
                )
            )
        work = partial(
            self._producer.send,
            topic,
            value,
            key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
            on_delivery=on_delivery,
        )
        return AsyncDelivery(await self._worker.run(work))

    async def send_and_wait(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: GivenHeaders | None = None,
    ) -> RecordMetadata:
        """Sends one record, waits until it is delivered and tells where it went; raises its error."""
        sent = await self.send(topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers)
        return await sent

    async def send_many(
        self,
        topic: str,
        values: Iterable[object],
        keys: Iterable[object] | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> list[AsyncDelivery]:
        """Queues a record for each value, with the key in the same place of keys where those are given."""
        work = partial(self._producer.send_many, topic, values, keys, partition=partition, timestamp_ms=timestamp_ms)
        return [AsyncDelivery(future) for future in await self._worker.run(work)]

    async def send_arrow(
        self,
        topic: str,
        table: object,
        *,
        value: str = "value",
        key: str = "key",
        headers: str = "headers",
        timestamp: str = "timestamp",
        partition: str = "partition",
    ) -> ArrowDelivery:
        """Queues a record for each row of a pyarrow Table or RecordBatch; the columns are named by the keywords.

        Only the value column must be there. Once this returns, `await flush()` waits until the rows are delivered.
        """
        work = partial(
            self._producer.send_arrow,
            topic,
            table,
            value=value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )
        return await self._worker.run(work)

    async def partitions_for(self, topic: str) -> list[int]:
        """The topic's partitions; waits up to max.block.ms for its metadata."""
        return await self._worker.run(partial(self._producer.partitions_for, topic))

    def metrics(self) -> Metrics:
        """What the producer measures of itself; as Producer.metrics()."""
        return self._producer.metrics()

    async def client_instance_id(self, timeout_ms: int = 60_000) -> bytes:
        """The id by which brokers know the metrics that this producer pushes; as Producer.client_instance_id()."""
        return await self._worker.run(partial(self._producer.client_instance_id, timeout_ms))

    async def flush(self, timeout_ms: int | None = None) -> None:
        """Sends everything that was queued so far and waits until each record is delivered or has failed.

        Raises RequestTimeoutError when that takes longer than timeout_ms.
        """
        await self._worker.run(partial(self._producer.flush, timeout_ms))

    async def init_transactions(self, keep_prepared: bool = False) -> None:
        """Gets a producer id for the transactional.id, once and before anything else; see Producer."""
        await self._worker.run(partial(self._producer.init_transactions, keep_prepared))

    async def begin_transaction(self) -> None:
        """What is sent from now on becomes visible as a whole, or not at all."""
        await self._worker.run(self._producer.begin_transaction)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group_metadata: ConsumerGroupMetadata
    ) -> None:
        """Commits offsets of a group (the next ones to read) with the transaction; take consumer.group_metadata()."""
        await self._worker.run(partial(self._producer.send_offsets_to_transaction, offsets, group_metadata))

    async def commit_transaction(self) -> None:
        """Delivers everything sent since begin_transaction() and makes it visible.

        Raises TransactionAbortableError where only abort_transaction() is left; after other errors than a timeout
        the producer is to be closed.
        """
        await self._worker.run(self._producer.commit_transaction)

    async def abort_transaction(self) -> None:
        """Makes what was sent since begin_transaction() invisible to readers of committed records."""
        await self._worker.run(self._producer.abort_transaction)

    async def prepare_transaction(self) -> PreparedTransaction:
        """Delivers everything and keeps the transaction open for an outside coordinator (KIP-939)."""
        return await self._worker.run(self._producer.prepare_transaction)

    async def hand_over_transaction(self) -> PreparedTransaction:
        """Like prepare_transaction(), and also without two-phase commit: Admin.end_transactions() ends it."""
        return await self._worker.run(self._producer.hand_over_transaction)

    async def go_on_as(self, following: PreparedTransaction) -> None:
        """What was handed over has been ended by Admin.end_transactions(), which gave this: transactions may go on."""
        await self._worker.run(partial(self._producer.go_on_as, following))

    async def complete_transaction(self, prepared: PreparedTransaction) -> None:
        """Commits the prepared transaction if this is it, and aborts it otherwise."""
        await self._worker.run(partial(self._producer.complete_transaction, prepared))

    def transaction(self) -> AsyncTransaction:
        """`async with producer.transaction():` begins and commits, or aborts if something fails."""
        return AsyncTransaction(self._producer.transaction(), self._worker)

    @property
    def in_transaction(self) -> bool:
        """Whether there is a transaction to commit or to abort."""
        return self._producer.in_transaction

    async def close(self, timeout_ms: int | None = None) -> None:
        """Delivers what is queued, for at most timeout_ms, and ends the threads; what is left then fails."""
        if self._worker.closed:
            return
        # After whatever a cancelled call left in the thread.
        await self._worker.run(partial(self._producer.close, timeout_ms))
        self._worker.close()

    async def __aenter__(self) -> AsyncProducer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # As Producer: a transaction that is open is aborted, which takes a request.
        if not self._worker.closed:
            await self._worker.run(partial(self._producer.__exit__, kind, error, trace))
            self._worker.close()


class AsyncTransaction:
    """Begins a transaction, then commits it, or aborts it where the block or the commit fails."""

    def __init__(self, inner: Transaction, worker: Worker) -> None:
        self._inner = inner
        self._worker = worker

    async def __aenter__(self) -> AsyncTransaction:
        await self._worker.run(self._inner.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Also where the task is cancelled: the end of a transaction is not to be left half way.
        await asyncio.shield(self._worker.start(partial(self._inner.__exit__, kind, error, trace)))


class _ListenerOnLoop(RebalanceListener):
    """Calls a listener whose methods may be coroutines: on the event loop, while the consumer's thread waits."""

    def __init__(self, inner: RebalanceListener, loop: asyncio.AbstractEventLoop, owner: AsyncConsumer) -> None:
        self._inner = inner
        self._loop = loop
        self._owner = owner

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._call(self._inner.on_partitions_revoked, partitions)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._call(self._inner.on_partitions_assigned, partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._call(self._inner.on_partitions_lost, partitions)

    def _call(self, method: Callable[[list[TopicPartition]], object], partitions: list[TopicPartition]) -> None:
        async def run() -> None:
            self._owner._listening += 1
            try:
                result = method(partitions)
                if inspect.isawaitable(result):
                    await result
            finally:
                self._owner._listening -= 1

        wait_for_loop(self._loop, run(), "the rebalance listener")


class AsyncConsumer:
    """Reads records of a group's partitions or of assigned ones; takes what Consumer takes.

    To be used by one task at a time. A rebalance listener's methods may be coroutines and use the consumer.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **more: Unpack[ConsumerArguments]) -> None:
        self._consumer = Consumer(bootstrap_servers, **more)
        self._worker = Worker("moldau-aio-consumer")
        # While a listener runs, the thread waits for it: what the listener calls is carried out by another one.
        self._listener_worker = Worker("moldau-aio-listener")
        self._listening = 0
        # A poll whose task was cancelled, and what it read: that comes first in the next one.
        self._cancelled: asyncio.Future[list[ConsumerRecord]] | None = None
        self._kept: list[ConsumerRecord] = []

    async def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that arrived, at least one unless the timeout passes; at most max_records (max.poll.records).

        A cancelled poll loses no record: the next one gives what it had. Raises what Consumer.poll() raises.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            if self._cancelled is not None:
                await asyncio.wait([self._cancelled])
            if self._kept:
                # Before another poll, which would commit them.
                records, self._kept = self._kept, []
                return records
            remaining_ms = max(0, int((deadline - loop.time()) * 1000))
            future = self._worker.start(partial(self._consumer.poll, remaining_ms, max_records))
            try:
                records = await asyncio.shield(future)
            except asyncio.CancelledError:
                self._consumer.interrupt_poll()
                self._cancelled = future
                future.add_done_callback(self._keep)
                raise
            # Another call may have woken the poll before its time.
            if records or loop.time() >= deadline:
                return records

    def _keep(self, future: asyncio.Future[list[ConsumerRecord]]) -> None:
        if self._cancelled is future:
            self._cancelled = None
        if not future.cancelled() and future.exception() is None:
            self._kept += future.result()

    async def poll_arrow(
        self, timeout_ms: int = 0, max_rows: int = ARROW_ROWS, headers: bool = False, views: bool = False
    ) -> Any:
        """A pyarrow RecordBatch of what arrived, None if nothing does before the timeout; as Consumer.poll_arrow()."""
        return await self._worker.run(partial(self._consumer.poll_arrow, timeout_ms, max_rows, headers, views))

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records for ever, poll by poll."""
        return self._records()

    async def _records(self) -> AsyncIterator[ConsumerRecord]:
        while True:
            for record in await self.poll(1000):
                yield record

    async def _call(self, work: Callable[[], T]) -> T:
        """Interrupts a poll that waits, so that nothing takes as long as that."""
        if self._listening:
            return await self._listener_worker.run(work)
        self._consumer.interrupt_poll()
        return await self._worker.run(work)

    async def subscribe(
        self,
        topics: Iterable[str] | None = None,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Joins the group for these topics, or for those whose whole name the pattern matches; poll() does the rest.

        The listener's methods may be coroutines. As Consumer.subscribe() otherwise.
        """
        if listener is not None:
            listener = _ListenerOnLoop(listener, asyncio.get_running_loop(), self)
        names = None if topics is None else checked_names(topics, "subscribe")
        await self._call(partial(self._consumer.subscribe, names, pattern, listener))

    async def unsubscribe(self) -> None:
        """Leaves the group, or forgets the partitions that were assigned. Nothing is committed by this."""
        await self._call(self._consumer.unsubscribe)

    def subscription(self) -> set[str]:
        """The topics that are subscribed to; for a pattern, those that it matches as far as known."""
        return self._consumer.subscription()

    def metrics(self) -> Metrics:
        """What the consumer measures of itself; as Consumer.metrics()."""
        return self._consumer.metrics()

    async def client_instance_id(self, timeout_ms: int = 60_000) -> bytes:
        """The id by which brokers know the metrics that this consumer pushes; as Consumer.client_instance_id()."""
        return await self._call(partial(self._consumer.client_instance_id, timeout_ms))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """This consumer's place in its group, for offsets that a transaction commits."""
        return self._consumer.group_metadata()

    async def enforce_rebalance(self, reason: str = "the user asked for a rebalance") -> None:
        """The next poll() joins the group again."""
        await self._call(partial(self._consumer.enforce_rebalance, reason))

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits these offsets, or the positions behind all records that poll() gave; raises as Consumer.commit()."""
        await self._call(partial(self._consumer.commit, offsets, timeout_ms))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group committed for each partition; None where nothing."""
        return await self._call(
            partial(self._consumer.committed, checked_partitions(partitions, "committed"), timeout_ms)
        )

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these partitions from now on; those that were assigned before keep their position."""
        await self._call(partial(self._consumer.assign, checked_partitions(partitions, "assign")))

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are assigned now, by the user or by the group."""
        return self._consumer.assignment()

    async def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """The next poll() reads the partition from this offset on; as Consumer.seek()."""
        await self._call(partial(self._consumer.seek, partition, offset, leader_epoch))

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """The next poll() reads these partitions (all, without any given) from their first record on."""
        await self._call(partial(self._consumer.seek_to_beginning, checked_partitions(partitions, "seek_to_beginning")))

    async def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """The next poll() reads of these partitions (all, without any given) only what comes from now on."""
        await self._call(partial(self._consumer.seek_to_end, checked_partitions(partitions, "seek_to_end")))

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that poll() gives; found out where it is not known yet."""
        return await self._call(partial(self._consumer.position, partition))

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """poll() gives no records of these partitions until resume()."""
        await self._call(partial(self._consumer.pause, checked_partitions(partitions, "pause")))

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """poll() gives records of these partitions again."""
        await self._call(partial(self._consumer.resume, checked_partitions(partitions, "resume")))

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused now."""
        return self._consumer.paused()

    async def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end as of the last fetch; None before the first."""
        return await self._call(partial(self._consumer.lag, partition))

    def high_watermark(self, partition: TopicPartition) -> int:
        """The offset behind the partition's last committed record as of the last fetch; -1 before the first."""
        return self._consumer.high_watermark(partition)

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic; raises UnknownTopicOrPartitionError where it does not exist."""
        return await self._call(partial(self._consumer.partitions_for, topic))

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition that can still be read."""
        return await self._call(
            partial(self._consumer.beginning_offsets, checked_partitions(partitions, "beginning_offsets"))
        )

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The high watermarks, or the last stable offsets under read_committed."""
        return await self._call(partial(self._consumer.end_offsets, checked_partitions(partitions, "end_offsets")))

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time, None where there is none so young."""
        return await self._call(partial(self._consumer.offsets_for_times, times))

    async def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, leave_group: bool | None = None) -> None:
        """Commits (with enable.auto.commit), tells the listener, leaves the group, and ends all connections."""
        if self._worker.closed:
            return
        try:
            await self._call(partial(self._consumer.close, timeout_ms, leave_group))
        finally:
            self._worker.close()
            self._listener_worker.close()

    async def __aenter__(self) -> AsyncConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
