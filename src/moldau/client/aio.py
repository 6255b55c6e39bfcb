"""The asyncio face: the same producer, consumer and admin, awaited instead of waited for.

The state machines and the sockets stay where they are, in a thread beside the event loop: the producer's sender, or a
thread of its own for each consumer and admin. What crosses is a call and its result, and for produced records one
notice per batch, so the event loop pays neither for the network nor for a record's way through it. Nothing here blocks
the loop: a send() that would have to wait for metadata or memory waits in the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.client.consumer import ARROW_ROWS, CLOSE_TIMEOUT_MS, Consumer
from moldau.client.delivery import Callback, DeliveryFuture
from moldau.client.errors import ClosedError
from moldau.client.fetcher import ConsumerRecord
from moldau.client.producer import Producer
from moldau.client.rebalance import RebalanceListener
from moldau.client.results import (
    ConsumerGroupMetadata,
    Headers,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PreparedTransaction,
    RecordMetadata,
    TopicPartition,
)

if TYPE_CHECKING:
    from moldau.client.arrow import ArrowDelivery
    from moldau.client.transaction_session import Transaction

__all__ = ["AsyncAdmin", "AsyncConsumer", "AsyncDelivery", "AsyncProducer"]

T = TypeVar("T")

# How often a thread that waits for the event loop looks whether it still runs.
LOOP_CHECK_SECONDS = 1.0


class _Worker:
    """One thread that carries out calls one after the other."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.closed = False

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self.closed:
            raise ClosedError("The client is closed.")
        return asyncio.wrap_future(self._executor.submit(work))

    async def run(self, work: Callable[[], T]) -> T:
        return await self.start(work)

    def close(self) -> None:
        self.closed = True
        self._executor.shutdown(wait=False)


class AsyncDelivery:
    """The future of one produced record: `await delivery` gives where it went, or raises its error."""

    __slots__ = ("_future",)

    def __init__(self, future: DeliveryFuture) -> None:
        self._future = future

    def done(self) -> bool:
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
    """Sends records to topics; takes what Producer takes."""

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **more: Any) -> None:
        self._producer = Producer(bootstrap_servers, **more)
        self._worker = _Worker("moldau-aio-producer")

    async def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | Mapping[str, bytes | None] | None = None,
        on_delivery: Callback | None = None,
    ) -> AsyncDelivery:
        """Queues one record and returns its future; waits, up to max.block.ms, for metadata and memory only."""
        if not self._producer.would_block(topic):
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

    async def send_and_wait(self, topic: str, value: object = None, key: object = None, **more: Any) -> RecordMetadata:
        return await (await self.send(topic, value, key, **more))

    async def send_many(
        self, topic: str, values: Iterable[object], keys: Iterable[object] | None = None, **more: Any
    ) -> list[AsyncDelivery]:
        futures = await self._worker.run(partial(self._producer.send_many, topic, values, keys, **more))
        return [AsyncDelivery(future) for future in futures]

    async def send_arrow(self, topic: str, table: object, **columns: str) -> ArrowDelivery:
        """Queues a record for each row; once this returns, `await flush()` waits until they are delivered."""
        return await self._worker.run(partial(self._producer.send_arrow, topic, table, **columns))

    async def partitions_for(self, topic: str) -> list[int]:
        return await self._worker.run(partial(self._producer.partitions_for, topic))

    async def flush(self, timeout: float | None = None) -> None:
        await self._worker.run(partial(self._producer.flush, timeout))

    async def init_transactions(self, keep_prepared: bool = False) -> None:
        """As Producer.init_transactions(); so are the other methods of transactions."""
        await self._worker.run(partial(self._producer.init_transactions, keep_prepared))

    async def begin_transaction(self) -> None:
        await self._worker.run(self._producer.begin_transaction)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group_metadata: ConsumerGroupMetadata
    ) -> None:
        await self._worker.run(partial(self._producer.send_offsets_to_transaction, offsets, group_metadata))

    async def commit_transaction(self) -> None:
        await self._worker.run(self._producer.commit_transaction)

    async def abort_transaction(self) -> None:
        await self._worker.run(self._producer.abort_transaction)

    async def prepare_transaction(self) -> PreparedTransaction:
        return await self._worker.run(self._producer.prepare_transaction)

    async def complete_transaction(self, prepared: PreparedTransaction) -> None:
        await self._worker.run(partial(self._producer.complete_transaction, prepared))

    def transaction(self) -> AsyncTransaction:
        """`async with producer.transaction():` begins and commits, or aborts if something fails."""
        return AsyncTransaction(self._producer.transaction(), self._worker)

    @property
    def in_transaction(self) -> bool:
        return self._producer.in_transaction

    async def close(self, timeout: float | None = None) -> None:
        """Delivers what is queued; also after a cancelled call, which may still be in the thread."""
        if self._worker.closed:
            return
        await self._worker.run(partial(self._producer.close, timeout))
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

    def __init__(self, inner: Transaction, worker: _Worker) -> None:
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
            self._owner.listening += 1
            try:
                result = method(partitions)
                if inspect.isawaitable(result):
                    await result
            finally:
                self._owner.listening -= 1

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        while True:
            try:
                return future.result(LOOP_CHECK_SECONDS)
            except TimeoutError:
                if future.done():
                    raise
                if not self._loop.is_running():
                    # Nobody would ever carry it out, and this thread would wait for ever.
                    future.cancel()
                    raise ClosedError("The event loop of the rebalance listener has stopped.") from None


class AsyncConsumer:
    """Reads records of a group's partitions or of assigned ones; takes what Consumer takes.

    To be used by one task at a time. A rebalance listener's methods may be coroutines and use the consumer.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **more: Any) -> None:
        self._consumer = Consumer(bootstrap_servers, **more)
        self._worker = _Worker("moldau-aio-consumer")
        # While a listener runs, the thread waits for it: what the listener calls is carried out by another one.
        self._listener_worker = _Worker("moldau-aio-listener")
        self.listening = 0
        # A poll whose task was cancelled, and what it read: that comes first in the next one.
        self._cancelled: asyncio.Future[list[ConsumerRecord]] | None = None
        self._kept: list[ConsumerRecord] = []

    async def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that arrived, at least one unless the timeout passes. A cancelled poll loses none."""
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
        """A pyarrow RecordBatch of what arrived, or None."""
        return await self._worker.run(partial(self._consumer.poll_arrow, timeout_ms, max_rows, headers, views))

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        return self._records()

    async def _records(self) -> AsyncIterator[ConsumerRecord]:
        while True:
            for record in await self.poll(1000):
                yield record

    async def _call(self, work: Callable[[], T]) -> T:
        """Interrupts a poll that waits, so that nothing takes as long as that."""
        if self.listening:
            return await self._listener_worker.run(work)
        self._consumer.interrupt_poll()
        return await self._worker.run(work)

    async def subscribe(
        self,
        topics: Iterable[str] | None = None,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Joins the group for these topics, or for those that the pattern matches."""
        if listener is not None:
            listener = _ListenerOnLoop(listener, asyncio.get_running_loop(), self)
        names = topics if topics is None or isinstance(topics, str) else list(topics)
        await self._call(partial(self._consumer.subscribe, names, pattern, listener))

    async def unsubscribe(self) -> None:
        await self._call(self._consumer.unsubscribe)

    def subscription(self) -> set[str]:
        return self._consumer.subscription()

    def group_metadata(self) -> ConsumerGroupMetadata:
        return self._consumer.group_metadata()

    async def enforce_rebalance(self, reason: str = "the user asked for a rebalance") -> None:
        await self._call(partial(self._consumer.enforce_rebalance, reason))

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits these offsets, or the positions behind all records that poll() gave."""
        await self._call(partial(self._consumer.commit, offsets, timeout_ms))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return await self._call(partial(self._consumer.committed, list(partitions), timeout_ms))

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        await self._call(partial(self._consumer.assign, list(partitions)))

    def assignment(self) -> list[TopicPartition]:
        return self._consumer.assignment()

    async def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        await self._call(partial(self._consumer.seek, partition, offset, leader_epoch))

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        await self._call(partial(self._consumer.seek_to_beginning, list(partitions)))

    async def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        await self._call(partial(self._consumer.seek_to_end, list(partitions)))

    async def position(self, partition: TopicPartition) -> int:
        return await self._call(partial(self._consumer.position, partition))

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        await self._call(partial(self._consumer.pause, list(partitions)))

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        await self._call(partial(self._consumer.resume, list(partitions)))

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        return await self._call(partial(self._consumer.partitions_for, topic))

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._call(partial(self._consumer.beginning_offsets, list(partitions)))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._call(partial(self._consumer.end_offsets, list(partitions)))

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return await self._call(partial(self._consumer.offsets_for_times, times))

    async def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, leave_group: bool | None = None) -> None:
        """Commits (with enable.auto.commit), tells the listener and leaves the group."""
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


class AsyncAdmin:
    """Every method of Admin, awaited: `await admin.create_topics([...])`."""

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **more: Any) -> None:
        from moldau.client.admin import Admin

        self._admin = Admin(bootstrap_servers, **more)
        self._worker = _Worker("moldau-aio-admin")

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._admin, name)

        def call(*arguments: Any, **more: Any) -> Awaitable[Any]:
            return self._worker.run(partial(method, *arguments, **more))

        return call

    async def close(self) -> None:
        if self._worker.closed:
            return
        await self._worker.run(self._admin.close)
        self._worker.close()

    async def __aenter__(self) -> AsyncAdmin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
