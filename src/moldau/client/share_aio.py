"""The asyncio face of the share consumer: the same one in a thread beside the event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from moldau.client.aio_worker import Worker, wait_for_loop
from moldau.client.errors import ClientError
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.client.share.acknowledgements import AcknowledgeType
from moldau.client.share.processing import Kinds, decide
from moldau.client.share_consumer import CLOSE_TIMEOUT_MS, AcknowledgementCallback, ShareConsumer

if TYPE_CHECKING:
    from typing import Unpack

    from moldau.client.metrics.names import Metrics
    from moldau.client.setting_types import ShareConsumerArguments

__all__ = ["AsyncShareConsumer"]

T = TypeVar("T")


class AsyncShareConsumer:
    """Works on records together with the other members of a share group; takes what ShareConsumer takes.

    poll() is to be called by one task at a time; the records it gives may be worked on by many.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        on_acknowledged: AcknowledgementCallback | None = None,
        **more: Unpack[ShareConsumerArguments],
    ) -> None:
        self._consumer = ShareConsumer(bootstrap_servers, **more)
        self._worker = Worker("moldau-aio-share")
        # While a callback runs, the thread waits for it: what the callback calls is carried out by another one.
        self._callback_worker = Worker("moldau-aio-share-callback")
        self._in_callback = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        # A poll whose task was cancelled, and what it gave: that comes first in the next one.
        self._cancelled: asyncio.Future[list[ConsumerRecord]] | None = None
        self._kept: list[ConsumerRecord] = []
        self._user_callback: AcknowledgementCallback | None = None
        if on_acknowledged is not None:
            self._set_callback(on_acknowledged)

    # Subscription

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Joins the group for these topics, in place of those before; poll() does the rest."""
        await self._call(partial(self._consumer.subscribe, topics if isinstance(topics, str) else list(topics)))

    async def unsubscribe(self) -> None:
        """Leaves the group. Records that were given and not acknowledged come to others when their locks run out."""
        await self._call(self._consumer.unsubscribe)

    def subscription(self) -> set[str]:
        """The topics that are subscribed to."""
        return self._consumer.subscription()

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are fetched from at present; other members may fetch from them as well."""
        return self._consumer.assignment()

    def member_id(self) -> str:
        """The name of this consumer in its group, which it made itself."""
        return self._consumer.member_id()

    def metrics(self) -> Metrics:
        """What the consumer measures of itself, under Kafka's names; as ShareConsumer.metrics()."""
        return self._consumer.metrics()

    async def client_instance_id(self, timeout_ms: int = 60_000) -> bytes:
        """The id by which brokers know the metrics that this consumer pushes; as ShareConsumer.client_instance_id()."""
        return await self._call(partial(self._consumer.client_instance_id, timeout_ms))

    # Records

    async def poll(self, timeout_ms: int = 0) -> list[ConsumerRecord]:
        """Records that are locked for this consumer, at least one unless the timeout passes; as ShareConsumer.poll().

        A cancelled poll loses no record: the next one gives what it had.
        """
        loop = self._loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            if self._cancelled is not None:
                await asyncio.wait([self._cancelled])
            if self._kept:
                # Before another poll, which would accept them.
                records, self._kept = self._kept, []
                return records
            remaining_ms = max(0, int((deadline - loop.time()) * 1000))
            future = self._worker.start(partial(self._consumer.poll, remaining_ms))
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

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records for ever, poll by poll."""
        return self._records()

    async def _records(self) -> AsyncIterator[ConsumerRecord]:
        while True:
            for record in await self.poll(1000):
                yield record

    async def _call(self, work: Callable[[], T]) -> T:
        """Interrupts a poll that waits, so that nothing takes as long as that."""
        self._loop = asyncio.get_running_loop()
        if self._in_callback:
            return await self._callback_worker.run(work)
        self._consumer.interrupt_poll()
        return await self._worker.run(work)

    # Acknowledgements

    async def acknowledge(self, record: ConsumerRecord, type: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Says what became of a record of the last poll(); the next poll() or a commit sends it."""
        await self._call(partial(self._consumer.acknowledge, record, type))

    async def acknowledge_offset(
        self, topic: str, partition: int, offset: int, type: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """The same by offset, also for one that poll() raised an error about instead of giving the record."""
        await self._call(partial(self._consumer.acknowledge_offset, topic, partition, offset, type))

    async def accept(self, record: ConsumerRecord) -> None:
        """The record is done."""
        await self.acknowledge(record, AcknowledgeType.ACCEPT)

    async def release(self, record: ConsumerRecord) -> None:
        """The record is to be tried again, by anyone, up to the group's limit of deliveries."""
        await self.acknowledge(record, AcknowledgeType.RELEASE)

    async def reject(self, record: ConsumerRecord) -> None:
        """The record cannot be processed, and need not be tried again."""
        await self.acknowledge(record, AcknowledgeType.REJECT)

    async def renew(self, record: ConsumerRecord) -> None:
        """More time is needed: the lock starts anew, and poll() gives the record again."""
        await self.acknowledge(record, AcknowledgeType.RENEW)

    def processing(
        self, record: ConsumerRecord, *, reject: Kinds = (), release: Kinds = (), renew: bool = False
    ) -> AbstractAsyncContextManager[ConsumerRecord]:
        """`async with consumer.processing(record):` accepts the record at the end, or releases it if the block fails.

        As ShareConsumer.processing(). A task that is cancelled inside the block releases its record.
        """
        return AsyncProcessing(self, record, reject, release, renew)

    async def _begin_processing(self, renew: bool) -> None:
        """For processing() alone."""
        await self._call(partial(self._consumer._begin_processing, renew))

    async def _end_processing(self, record: ConsumerRecord, type: AcknowledgeType, renewed: bool) -> None:
        """For processing() alone."""
        await self._call(partial(self._consumer._end_processing, record, type, renewed))

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """For how long records are locked, as the last response said; None before the first."""
        return self._consumer.acquisition_lock_timeout_ms

    async def commit(self, timeout_ms: int | None = None) -> dict[TopicPartition, ClientError | None]:
        """Sends what was said of records, and waits: for each partition None, or why it was refused."""
        return await self._call(partial(self._consumer.commit, timeout_ms))

    async def commit_async(self) -> None:
        """Sends what was said of records without waiting; the acknowledgement callback hears what came of it."""
        await self._call(self._consumer.commit_async)

    async def set_acknowledgement_callback(self, callback: AcknowledgementCallback | None) -> None:
        """callback(offsets by partition, error or None), which may be a coroutine, is called on the event loop."""
        self._set_callback(callback)

    def _set_callback(self, callback: AcknowledgementCallback | None) -> None:
        self._user_callback = callback
        self._consumer.set_acknowledgement_callback(None if callback is None else self._on_acknowledged)

    def _on_acknowledged(self, offsets: dict[TopicPartition, set[int]], error: ClientError | None) -> None:
        callback, loop = self._user_callback, self._loop
        if callback is None or loop is None:
            return

        async def run() -> None:
            self._in_callback += 1
            try:
                result = callback(offsets, error)
                if inspect.isawaitable(result):
                    await result
            finally:
                self._in_callback -= 1

        wait_for_loop(loop, run(), "the acknowledgement callback")

    # The end

    async def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Sends what was said of records, gives all other locks back, and leaves the group."""
        if self._worker.closed:
            return
        try:
            await self._call(partial(self._consumer.close, timeout_ms))
        finally:
            self._worker.close()
            self._callback_worker.close()

    async def __aenter__(self) -> AsyncShareConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncProcessing(AbstractAsyncContextManager[ConsumerRecord]):
    """The time in which one record is worked on."""

    def __init__(
        self, consumer: AsyncShareConsumer, record: ConsumerRecord, reject: Kinds, release: Kinds, renew: bool
    ) -> None:
        self._consumer = consumer
        self._record = record
        self._reject = reject
        self._release = release
        self._renew = renew

    async def __aenter__(self) -> ConsumerRecord:
        await self._consumer._begin_processing(self._renew)
        return self._record

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        decided, handled = decide(self._record, error, self._reject, self._release)
        # Also where the task is cancelled: a record is not to be left half way.
        await asyncio.shield(self._consumer._end_processing(self._record, decided, self._renew))
        return handled
