"""Gathers produced records into batches and decides what is sent when; knows no socket, clock or thread.

Order and exactly-once rest on five rules, all of them here:
- the batches of a partition leave in the order in which they were opened, also after a retry;
- after a failure nothing new of that partition leaves before the failed batch had its response;
- a batch keeps its sequence numbers over all its retries;
- the first batch of an epoch travels alone: a broker that has not seen the producer yet takes any sequence number,
  so it would not notice that an earlier batch is missing;
- numbers are given anew, under a raised epoch, only once nothing of the partition is in flight and all that waits
  was never sent or refused each time, so that nothing can be written twice. A batch of unknown fate goes with its own
  numbers until it is known to be written or has failed: a broker that restarted remembers fewer batches than it wrote,
  and "out of order" from it does not mean "not written".

A batch that the broker finds too large is split, and its parts keep its place and its numbers.

The owner calls with the time and, where threads are involved, under its own lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from moldau.client.connection.backoff import Backoff
from moldau.client.errors import ClientError, RequestTimeoutError, error_for
from moldau.client.metrics.meters import RATIO_UNIT, ProduceMeter, TopicMeter
from moldau.client.metrics.window import Window
from moldau.client.produce.delivery import DeliveryFuture, Fate
from moldau.client.results import Headers, TopicPartition
from moldau.protocol.errors import (
    CORRUPT_MESSAGE,
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    MESSAGE_TOO_LARGE,
    NOT_ENOUGH_REPLICAS,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from moldau.records.batch import HEADER_SIZE
from moldau.records.record_buffer import Body, RecordBuffer, record_bytes_max

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
SEQUENCE_MASK: Final = 0x7FFFFFFF
PRODUCER_EPOCH_MAX: Final = 0x7FFF

# Batches are numbered in these steps, which leaves numbers for the parts of a batch that is split.
NUMBER_STEP: Final = 1 << 20

# Records that come encoded, many at once, are put into batches of up to this size, batch.size being for those that come
# one by one: larger batches cost less, and there is nothing to wait for.
ENCODED_BYTES_MAX: Final = 1 << 19

# So many bytes and writers are kept at most for batches to come.
SPARE_BYTES_MAX: Final = 1 << 20
SPARE_WRITERS_MAX: Final = 64
BATCHES_REMEMBERED: Final = 5  # by brokers, of each producer and partition


class Batch:
    """Records of one partition that travel together."""

    def __init__(self, queue: PartitionQueue, number: i64, span: i64, buffer: RecordBuffer, now_ms: i64) -> None:
        self.queue: PartitionQueue = queue
        self.partition: TopicPartition = queue.partition
        self.number: i64 = number
        # The numbers from number to number + span - 1 are this batch's own.
        self.span: i64 = span
        self.buffer: RecordBuffer = buffer
        self.fate: Fate = Fate(queue.topic, queue.index)
        self.created_ms: i64 = now_ms
        self.not_before_ms: i64 = 0
        self.attempts: i64 = 0
        # The size of the largest record; of those that came encoded, the average.
        self.record_bytes_max: i64 = 0
        # It was sent, and what became of that nobody said: it may be written.
        self.uncertain: bool = False
        # Why it is tried again.
        self.last_error: ClientError | None = None
        self.open: bool = True
        self.in_flight: bool = False
        self.producer_epoch: i64 = -1
        self.base_sequence: i64 = NO_SEQUENCE
        # How many batches of the partition got their sequence numbers before it.
        self.place: i64 = 0
        # Header and records, once the batch was closed and numbered.
        self.data: list[Body] | None = None

    @property
    def count(self) -> int:
        return int(self.buffer.records_count)

    @property
    def size(self) -> i64:
        return self.buffer.size


class PartitionQueue:
    """What waits and what is in flight for one partition, oldest first."""

    def __init__(self, partition: TopicPartition, meter: TopicMeter | None = None) -> None:
        self.partition: TopicPartition = partition
        self.meter: TopicMeter = TopicMeter(Window(0)) if meter is None else meter
        self.topic: str = partition.topic
        self.index: int = partition.partition
        self.waiting: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        # The last waiting batch, while records may be added to it.
        self.open_batch: Batch | None = None
        self.producer_epoch: i64 = -1
        self.next_sequence: i64 = 0
        self.numbered: i64 = 0
        # Something of this epoch was written.
        self.acknowledged: bool = False
        # A batch was given up without knowing whether it was written: the next one tells.
        self.unresolved: bool = False
        # Numbers are to be given anew as soon as nothing is in flight and nothing of unknown fate waits.
        self.renumber: bool = False
        # The last drain() left batches here that a response must come before: more records are no news to the sender.
        self.blocked: bool = False

    @property
    def batches(self) -> int:
        return len(self.waiting) + len(self.in_flight)


class Accumulator:
    """All batches of one producer."""

    def __init__(
        self,
        *,
        batch_bytes: int,
        linger_ms: int,
        delivery_timeout_ms: int,
        retries: int,
        request_bytes_max: int,
        codec: int,
        level: int,
        idempotent: bool,
        backoff: Backoff,
        meter: ProduceMeter | None = None,
    ) -> None:
        self.meter: ProduceMeter = ProduceMeter(Window(0)) if meter is None else meter
        self._batch_bytes: i64 = batch_bytes
        self._linger_ms: i64 = linger_ms
        self._delivery_timeout_ms: i64 = delivery_timeout_ms
        self._retries: i64 = retries
        self._request_bytes_max: i64 = request_bytes_max
        self._codec: int = codec
        self._level: int = level
        self._idempotent: bool = idempotent
        self._backoff: Backoff = backoff
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        # The queues in which something waits or is in flight.
        self._busy: dict[TopicPartition, PartitionQueue] = {}
        # Writers of batches that are full, emptied: memory that grew once need not grow again.
        self._spare_writers: list[BytesWriter] = []
        self._spares_max: i64 = min(SPARE_WRITERS_MAX, SPARE_BYTES_MAX // max(1, batch_bytes)) + 1
        self._next_number: i64 = 0
        self._flush_up_to: i64 = -1
        # Halved, down to batch.size, when a broker refuses such a batch for its size.
        self.encoded_bytes_max: i64 = max(self._batch_bytes, min(i64(ENCODED_BYTES_MAX), self._request_bytes_max))
        # Of a transactional producer: id and epoch are the coordinator's to give, and no number is given anew here.
        self.transactional: bool = False
        self.producer_id: int = NO_PRODUCER_ID
        self.first_epoch: int = -1
        self.bytes_held: i64 = 0
        self.batches_held: i64 = 0
        # How many threads wait for memory: while some do, batches need neither be full nor old to leave.
        self.waiting_for_memory: i64 = 0
        # A batch became full, or a first one was opened, and may leave: the sender should look. The owner sets it back.
        self.news: bool = False
        # What the owner's threads tell each other for every record: that whoever appends must ask first whether it may,
        # and that the sender waits for the network, so that whoever has news must wake it.
        self.unusable: bool = True
        self.sender_asleep: bool = False
        # Called with a batch when its fate is settled.
        self.on_settled: Callable[[Batch], None] | None = None

    # Records in

    def queue(self, partition: TopicPartition) -> PartitionQueue:
        found = self._queues.get(partition)
        if found is None:
            found = PartitionQueue(partition, self.meter.topic(partition.topic))
            self._queues[partition] = found
        return found

    def check_size(self, size: i64) -> None:
        """Refuses a record that no request could carry."""
        if size + HEADER_SIZE > self._request_bytes_max:
            raise error_for(
                MESSAGE_TOO_LARGE,
                f"The record takes {size + HEADER_SIZE} bytes, more than max.request.size ({self._request_bytes_max}).",
            )

    def try_append(
        self,
        queue: PartitionQueue,
        timestamp: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        size: i64,
    ) -> DeliveryFuture | None:
        """Adds a record of at most this size to the open batch; None when there is none with room for it."""
        batch = queue.open_batch
        if batch is None:
            return None
        buffer = batch.buffer
        before = buffer.size
        if before + size > self._batch_bytes and buffer.records_count > 0:
            self._close(queue, batch)
            return None
        future = DeliveryFuture(batch.fate, buffer.records_count, timestamp)
        buffer.append(timestamp, key, value, headers)
        after = buffer.size
        self.bytes_held += after - before
        if after - before > batch.record_bytes_max:
            batch.record_bytes_max = after - before
        if after >= self._batch_bytes:
            self._close(queue, batch)
        return future

    def open_batch(self, queue: PartitionQueue, now_ms: i64) -> Batch:
        """Starts a new batch behind those that wait."""
        batch = Batch(queue, self._next_number, NUMBER_STEP, self._new_buffer(), now_ms)
        self._next_number += NUMBER_STEP
        self.batches_held += 1
        if not queue.waiting and not queue.blocked:
            self.news = True
        queue.waiting.append(batch)
        queue.open_batch = batch
        self._busy[queue.partition] = queue
        return batch

    def append(
        self,
        partition: TopicPartition,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        now_ms: int,
    ) -> DeliveryFuture:
        """Adds a record in one step."""
        size = record_bytes_max(key, value, headers)
        self.check_size(size)
        queue = self.queue(partition)
        future = self.try_append(queue, timestamp, key, value, headers, size)
        if future is None:
            self.open_batch(queue, now_ms)
            future = self.try_append(queue, timestamp, key, value, headers, size)
        assert future is not None
        return future

    def append_encoded(
        self, queue: PartitionQueue, data: Body, count: int, base_timestamp: int, max_timestamp: int, now_ms: int
    ) -> Fate:
        """Adds a whole batch of records that are encoded already."""
        if queue.open_batch is not None:
            self._close(queue, queue.open_batch)
        batch = self.open_batch(queue, now_ms)
        self._keep_writer(batch)
        batch.buffer.set_encoded(data, count, base_timestamp, max_timestamp)
        batch.record_bytes_max = len(data) // max(1, count)
        self.bytes_held += batch.size - HEADER_SIZE
        self._close(queue, batch)
        return batch.fate

    def _close(self, queue: PartitionQueue, batch: Batch) -> None:
        batch.open = False
        queue.open_batch = None
        if not queue.blocked:
            self.news = True
        self._keep_writer(batch)

    def _keep_writer(self, batch: Batch) -> None:
        """The batch is complete: its writer serves the next one, unless a large record made it grow."""
        size = batch.size
        writer = batch.buffer.seal()
        if writer is not None and size <= self._batch_bytes and i64(len(self._spare_writers)) < self._spares_max:
            self._spare_writers.append(writer)

    def flush(self) -> int:
        """Everything appended so far may leave at once; returns the number up to which batches are flushed."""
        self._flush_up_to = self._next_number - 1
        for queue in self._busy.values():
            if queue.open_batch is not None:
                self._close(queue, queue.open_batch)
        return int(self._flush_up_to)

    def flushed(self, number: int) -> bool:
        for queue in self._busy.values():
            if queue.waiting and queue.waiting[0].number <= number:
                return False
            for batch in queue.in_flight:
                if batch.number <= number:
                    return False
        return True

    def all_blocked(self) -> bool:
        """Whether whatever waits must wait for a response, so that the sender can do nothing about it now."""
        return all(queue.blocked for queue in self._busy.values() if queue.waiting)

    # Batches out

    def partitions_waiting(self) -> list[TopicPartition]:
        return [queue.partition for queue in self._busy.values() if queue.waiting]

    def drain(
        self, now_ms: int, leader_of: Callable[[TopicPartition], int | None], room: Callable[[int], bool]
    ) -> dict[int, list[Batch]]:
        """The batches to send now, by leader: at most one per partition, requests of at most max.request.size."""
        requests: dict[int, list[Batch]] = {}
        sizes: dict[int, int] = {}
        for queue in list(self._busy.values()):
            queue.blocked = False
            if not queue.waiting:
                if not queue.in_flight:
                    del self._busy[queue.partition]
                continue
            if not self._ready(queue, now_ms):
                continue
            leader = leader_of(queue.partition)
            if leader is None:
                continue
            if not room(leader):
                queue.blocked = True
                continue
            size = sizes.get(leader, 0)
            batch = queue.waiting[0]
            if size > 0 and size + batch.size > self._request_bytes_max:
                continue
            self._take(queue, batch)
            sizes[leader] = size + int(batch.size)
            if leader in requests:
                requests[leader].append(batch)
            else:
                requests[leader] = [batch]
        return requests

    def blocked_leaders(
        self,
        now_ms: int,
        leader_of: Callable[[TopicPartition], int | None],
        connected: Callable[[int], bool],
        room: Callable[[int], bool],
    ) -> set[int]:
        """The leaders for which batches are due and that can take none of them now."""
        blocked: set[int] = set()
        free: set[int] = set()
        for queue in self._busy.values():
            leader = leader_of(queue.partition)
            if leader is None:
                continue
            due = bool(queue.waiting) and self._is_due(queue.waiting[0], now_ms)
            if not connected(leader):
                if due or queue.in_flight:
                    blocked.add(leader)
            elif due:
                held = bool(queue.in_flight) and self._must_wait(queue, queue.waiting[0])
                (blocked if held or not room(leader) else free).add(leader)
        return blocked - free

    def next_deadline_ms(self, now_ms: int) -> int:
        """When drain() or expire() may have something to do without anything else happening."""
        now: i64 = now_ms
        nearest: i64 = now + 3_600_000
        for queue in self._busy.values():
            if queue.in_flight:
                nearest = min(nearest, queue.in_flight[0].created_ms + self._delivery_timeout_ms)
            if not queue.waiting:
                continue
            batch = queue.waiting[0]
            nearest = min(nearest, batch.created_ms + self._delivery_timeout_ms)
            if batch.not_before_ms > now:
                nearest = min(nearest, batch.not_before_ms)
            elif batch.open and batch.number > self._flush_up_to and not queue.blocked:
                nearest = min(nearest, batch.created_ms + self._linger_ms)
        return int(nearest)

    def _ready(self, queue: PartitionQueue, now_ms: i64) -> bool:
        batch = queue.waiting[0]
        if batch.not_before_ms > now_ms:
            return False
        if queue.in_flight and self._must_wait(queue, batch):
            queue.blocked = True
            return False
        return self._is_due(batch, now_ms)

    def _is_due(self, batch: Batch, now_ms: i64) -> bool:
        """Whether the batch need not wait for more records."""
        if not batch.open or batch.attempts > 0 or batch.number <= self._flush_up_to or self.waiting_for_memory > 0:
            return True
        return now_ms - batch.created_ms >= self._linger_ms

    def _must_wait(self, queue: PartitionQueue, batch: Batch) -> bool:
        """Whether what is in flight must be answered before the batch may leave."""
        if queue.renumber or batch.attempts > 0 or queue.in_flight[-1].attempts > 1:
            return True
        # Those in flight may be at a former leader that says nothing, and in the log of the present one: what stands
        # there before too many others, answered or not, is not known for a duplicate any more when it is sent again.
        behind_first = queue.numbered - queue.in_flight[0].place
        return self._idempotent and (not queue.acknowledged or behind_first >= BATCHES_REMEMBERED)

    def _take(self, queue: PartitionQueue, batch: Batch) -> None:
        """Closes the batch, numbers it if that was not done yet, and puts it in flight."""
        if queue.renumber and not _any_uncertain(queue):
            self._renumber(queue)
        queue.waiting.popleft()
        if batch.open:
            batch.open = False
            queue.open_batch = None
            self._keep_writer(batch)
        if self._idempotent and batch.base_sequence == NO_SEQUENCE:
            if queue.producer_epoch < 0:
                queue.producer_epoch = self.first_epoch
            batch.producer_epoch = queue.producer_epoch
            batch.base_sequence = queue.next_sequence
            queue.next_sequence = (queue.next_sequence + batch.buffer.records_count) & SEQUENCE_MASK
            batch.place = queue.numbered
            queue.numbered += 1
            batch.data = None
        batch.attempts += 1
        batch.in_flight = True
        assert not queue.in_flight or queue.in_flight[-1].number < batch.number, f"{queue.partition} is out of order"
        queue.in_flight.append(batch)

    def encode(self, batch: Batch) -> list[Body]:
        """The bytes of a drained batch. It is the sender's alone by then: no lock is needed while it is compressed."""
        data = batch.data
        if data is None:
            batch.buffer.close()
            data = batch.buffer.parts(self.producer_id, batch.producer_epoch, batch.base_sequence, self.transactional)
            batch.data = data
        return data

    def count_sent(self, batch: Batch, encoded_bytes: i64, now_ms: i64) -> None:
        """The batch is on its way, in so many bytes; like encode(), of the sender alone."""
        meter, topic, buffer = self.meter, batch.queue.meter, batch.buffer
        topic.records.add(buffer.records_count)
        topic.batches.record(encoded_bytes)
        topic.compression.record(encoded_bytes * RATIO_UNIT // max(i64(1), buffer.size))
        meter.queue_times_ms.record(max(i64(0), now_ms - batch.created_ms))
        meter.record_sizes.record(batch.record_bytes_max)
        meter.record_bytes.add(buffer.size - HEADER_SIZE)

    def _renumber(self, queue: PartitionQueue) -> None:
        """KIP-360: a raised epoch starts at sequence 0 again. Brokers keep epochs per partition, and so do we."""
        queue.renumber = False
        queue.unresolved = False
        queue.producer_epoch = max(queue.producer_epoch, i64(self.first_epoch)) + 1
        if queue.producer_epoch > PRODUCER_EPOCH_MAX:
            queue.producer_epoch = self.first_epoch
        queue.next_sequence = 0
        queue.acknowledged = False
        for batch in queue.waiting:
            batch.base_sequence = NO_SEQUENCE

    # Responses

    def on_success(self, batch: Batch, base_offset: i64, append_time_ms: i64) -> None:
        queue = batch.queue
        self._land(queue, batch)
        queue.unresolved = False
        queue.acknowledged = True
        self._settle(batch, base_offset, append_time_ms, None)

    def on_error(self, batch: Batch, error: ClientError, now_ms: int) -> None:
        """The broker refused the batch, or nobody knows what became of it: try again or give up."""
        queue = batch.queue
        if error.code == DUPLICATE_SEQUENCE_NUMBER:
            self.on_success(batch, -1, -1)
            return
        self._land(queue, batch)
        if error.code == MESSAGE_TOO_LARGE and batch.buffer.records_count > 1:
            self._split(queue, batch, now_ms)
        elif error.code in (OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID) and self._idempotent:
            self._on_sequence_error(queue, batch, error, now_ms)
        elif error.retriable and self._may_retry(batch, now_ms):
            if error.code != NOT_ENOUGH_REPLICAS and error.code != CORRUPT_MESSAGE:
                batch.uncertain = True
            batch.last_error = error
            self._retry(queue, batch, now_ms)
        else:
            self._give_up(queue, batch, error)

    def _land(self, queue: PartitionQueue, batch: Batch) -> None:
        queue.in_flight.remove(batch)
        batch.in_flight = False

    def expire(self, now_ms: int) -> None:
        """Gives up batches older than delivery.timeout.ms, also in flight: nobody knows whether those arrive."""
        for queue in list(self._busy.values()):
            while queue.in_flight and now_ms - queue.in_flight[0].created_ms >= self._delivery_timeout_ms:
                batch = queue.in_flight[0]
                self._land(queue, batch)
                self._give_up(queue, batch, self._too_late(batch))
            while queue.waiting and now_ms - queue.waiting[0].created_ms >= self._delivery_timeout_ms:
                if queue.in_flight:
                    break
                batch = queue.waiting.popleft()
                batch.open = False
                if queue.open_batch is batch:
                    queue.open_batch = None
                self._give_up(queue, batch, self._too_late(batch))

    def _too_late(self, batch: Batch) -> ClientError:
        records = "1 record" if batch.count == 1 else f"{batch.count} records"
        reason = "" if batch.last_error is None else f" {batch.last_error.message}"
        return RequestTimeoutError(
            f"The batch of {records} for {batch.partition} was not delivered within"
            f" {self._delivery_timeout_ms} ms (delivery.timeout.ms).{reason}"
        )

    def fail_all(self, error: ClientError) -> None:
        """Gives up everything, also what is in flight."""
        for queue in list(self._busy.values()):
            batches = [*queue.in_flight, *queue.waiting]
            queue.in_flight.clear()
            queue.waiting.clear()
            queue.open_batch = None
            for batch in batches:
                batch.in_flight = False
                self._settle(batch, -1, -1, error)

    def fail_unsent(self, error: ClientError) -> None:
        """Gives up what no broker can have seen; batches that were sent once go on until their fate is known."""
        for queue in list(self._busy.values()):
            batches = [batch for batch in queue.waiting if batch.base_sequence == NO_SEQUENCE]
            for batch in batches:
                queue.waiting.remove(batch)
                batch.open = False
                if queue.open_batch is batch:
                    queue.open_batch = None
                self._settle(batch, -1, -1, error)

    def set_producer(self, producer_id: int, producer_epoch: int) -> None:
        """A transactional producer's new id or epoch: sequence numbers begin again. Nothing may be held meanwhile."""
        assert self.batches_held == 0, f"{self.batches_held} batches are held while the producer changes"
        self.producer_id = producer_id
        self.first_epoch = producer_epoch
        for queue in self._queues.values():
            queue.producer_epoch = producer_epoch
            queue.next_sequence = 0
            queue.acknowledged = False
            queue.unresolved = False
            queue.renumber = False

    def _on_sequence_error(self, queue: PartitionQueue, batch: Batch, error: ClientError, now_ms: int) -> None:
        if _has_tried_before(queue, batch.number):
            self._retry(queue, batch, now_ms)  # an earlier batch failed: this one merely came before its turn
            return
        if self.transactional:
            self._give_up(queue, batch, error)
            return
        queue.renumber = True
        explained = queue.unresolved or error.code == UNKNOWN_PRODUCER_ID
        if explained and not batch.uncertain and not _any_uncertain(queue):
            self._retry(queue, batch, now_ms)
        else:
            self._settle(batch, -1, -1, error)

    def _may_retry(self, batch: Batch, now_ms: int) -> bool:
        return batch.attempts <= self._retries and now_ms - batch.created_ms < self._delivery_timeout_ms

    def _retry(self, queue: PartitionQueue, batch: Batch, now_ms: int) -> None:
        queue.meter.retries.add(batch.buffer.records_count)
        batch.not_before_ms = now_ms + self._backoff.delay_ms(batch.attempts)
        self._put_back(queue, batch)

    def _put_back(self, queue: PartitionQueue, batch: Batch) -> None:
        """Before all waiting batches with higher numbers."""
        earlier: list[Batch] = []
        while queue.waiting and queue.waiting[0].number < batch.number:
            earlier.append(queue.waiting.popleft())
        queue.waiting.appendleft(batch)
        queue.waiting.extendleft(reversed(earlier))

    def _split(self, queue: PartitionQueue, batch: Batch, now_ms: int) -> None:
        """Halves a batch that the broker found too large; the halves take its place, numbers and deadline."""
        self.meter.splits.add(1)
        self.encoded_bytes_max = max(self._batch_bytes, min(self.encoded_bytes_max, batch.size >> 1))
        records = batch.buffer.read()
        half = (len(records) + 1) // 2
        span = batch.span >> 1
        parts: list[tuple[int, Fate]] = []
        halves: list[Batch] = []
        for first in (0, half):
            part = Batch(queue, batch.number + (span if first else i64(0)), span, self._new_buffer(), batch.created_ms)
            for record in records[first : first + half]:
                part.buffer.append(record.timestamp, record.key, record.value, record.headers)
            part.open = False
            part.record_bytes_max = batch.record_bytes_max
            if batch.base_sequence != NO_SEQUENCE:
                part.base_sequence = (batch.base_sequence + first) & SEQUENCE_MASK
                part.producer_epoch = batch.producer_epoch
                part.place = batch.place
            part.uncertain = batch.uncertain
            # A part counts as tried, so that it waits for what is in flight, as any batch that goes again.
            part.attempts = 1
            part.not_before_ms = now_ms
            parts.append((first, part.fate))
            halves.append(part)
            self.bytes_held += part.size - HEADER_SIZE
            self.batches_held += 1
        for part in reversed(halves):
            self._put_back(queue, part)
        self.bytes_held -= batch.size - HEADER_SIZE
        self.batches_held -= 1
        batch.data = None
        batch.fate.split(parts)

    def _new_buffer(self) -> RecordBuffer:
        spares = self._spare_writers
        return RecordBuffer(self._codec, self._level, spares.pop() if spares else None)

    def _give_up(self, queue: PartitionQueue, batch: Batch, error: ClientError) -> None:
        if self.transactional:
            pass  # the transaction is aborted, and the next one has another epoch
        elif batch.base_sequence != NO_SEQUENCE:
            # A refusal leaves a hole in the sequence for certain; a timeout or a lost connection, perhaps.
            if isinstance(error, RequestTimeoutError) or error.retriable:
                queue.unresolved = True
            else:
                queue.renumber = True
        if error.code == INVALID_PRODUCER_EPOCH and not self.transactional:
            queue.renumber = True
        self._settle(batch, -1, -1, error)

    def _settle(self, batch: Batch, base_offset: i64, append_time_ms: i64, error: ClientError | None) -> None:
        self.bytes_held -= batch.size - HEADER_SIZE
        self.batches_held -= 1
        assert self.bytes_held >= 0 and self.batches_held >= 0, f"{self.batches_held} batches are held"
        batch.data = None
        if error is not None:
            batch.queue.meter.errors.add(batch.buffer.records_count)
        batch.fate.settle(base_offset, append_time_ms, error)
        if self.on_settled is not None:
            self.on_settled(batch)


def _has_tried_before(queue: PartitionQueue, number: i64) -> bool:
    """Whether a batch before this one was sent and is not settled."""
    return any(batch.attempts > 0 and batch.number < number for batch in [*queue.in_flight, *queue.waiting])


def _any_uncertain(queue: PartitionQueue) -> bool:
    """Whether some batch may be written without anybody knowing."""
    return any(batch.uncertain for batch in [*queue.in_flight, *queue.waiting])
