"""Gathers produced records into batches and decides what is sent when; knows no socket, clock or thread.

Order and exactly-once rest on five rules, all of them here:
- the batches of a partition leave in the order in which they were opened, also after a retry;
- after a failure nothing new of that partition leaves before the failed batch was answered;
- a batch keeps its sequence numbers over all its retries;
- the first batch of an epoch travels alone: a broker that has not seen the producer yet takes any sequence number,
  so it would not notice that an earlier batch is missing;
- numbers are given anew, under a raised epoch, only once nothing of the partition is in flight and what waits has
  been refused by the broker, so that nothing can be written twice.

The owner calls with the time and, where threads are involved, under its own lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from moldau.client.backoff import Backoff
from moldau.client.delivery import DeliveryFuture, Fate
from moldau.client.errors import ClientError, RequestTimeoutError, error_for
from moldau.client.results import Headers, TopicPartition
from moldau.protocol.errors import (
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    MESSAGE_TOO_LARGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from moldau.records.builder import BatchBuilder

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
SEQUENCE_MASK = 0x7FFFFFFF
PRODUCER_EPOCH_MAX = 0x7FFF

# What one record adds to a batch at most, beside its key, value and headers: lengths, attributes, deltas.
RECORD_OVERHEAD_BYTES = 36
BATCH_HEADER_BYTES = 61


class Batch:
    """Records of one partition that travel together."""

    def __init__(self, partition: TopicPartition, number: int, builder: BatchBuilder, now_ms: int) -> None:
        self.partition = partition
        self.number = number
        self.builder = builder
        self.fate = Fate(partition.topic, partition.partition)
        self.created_ms = now_ms
        self.not_before_ms = 0
        self.attempts = 0
        self.count = 0
        self.size = BATCH_HEADER_BYTES
        self.open = True
        self.producer_epoch = -1
        self.base_sequence = NO_SEQUENCE
        self.data: bytes | None = None


class PartitionQueue:
    """What waits and what is in flight for one partition, oldest first."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.producer_epoch = -1
        self.next_sequence = 0
        # Something of this epoch was written.
        self.acknowledged = False
        # A batch was given up without knowing whether it was written: the next one tells.
        self.unresolved = False
        # Numbers are to be given anew as soon as nothing is in flight.
        self.renumber = False


class Accumulator:
    """All batches of one producer."""

    def __init__(
        self,
        batch_bytes: int,
        linger_ms: int,
        delivery_timeout_ms: int,
        retries: int,
        request_bytes_max: int,
        new_builder: Callable[[], BatchBuilder],
        idempotent: bool,
        backoff: Backoff,
    ) -> None:
        self._batch_bytes = batch_bytes
        self._linger_ms = linger_ms
        self._delivery_timeout_ms = delivery_timeout_ms
        self._retries = retries
        self._request_bytes_max = request_bytes_max
        self._new_builder = new_builder
        self._idempotent = idempotent
        self._backoff = backoff
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._next_number = 0
        self._flush_up_to = -1
        self.producer_id = NO_PRODUCER_ID
        self.first_epoch = -1
        self.bytes_held = 0
        self.batches_held = 0
        # Called with a batch when its fate is settled.
        self.on_settled: Callable[[Batch], None] | None = None

    # Records in

    def append(
        self,
        partition: TopicPartition,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        now_ms: int,
    ) -> tuple[DeliveryFuture, bool]:
        """Adds a record; also tells whether a batch became full, so that the sender should look."""
        size = record_bytes_max(key, value, headers)
        if size + BATCH_HEADER_BYTES > self._request_bytes_max:
            raise error_for(
                MESSAGE_TOO_LARGE,
                f"The record takes {size + BATCH_HEADER_BYTES} bytes, more than max.request.size"
                f" ({self._request_bytes_max}).",
            )
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = PartitionQueue(partition)
        batch = queue.waiting[-1] if queue.waiting else None
        filled = False
        if batch is None or not batch.open or batch.size + size > self._batch_bytes:
            filled = batch is not None and batch.open
            if batch is not None:
                batch.open = False
            batch = Batch(partition, self._next_number, self._new_builder(), now_ms)
            self._next_number += 1
            self.batches_held += 1
            queue.waiting.append(batch)
        future = DeliveryFuture(batch.fate, batch.count, timestamp)
        batch.builder.append(timestamp, key, value, headers)
        batch.count += 1
        before, batch.size = batch.size, batch.builder.uncompressed_size
        self.bytes_held += batch.size - before
        return future, filled or batch.size >= self._batch_bytes

    def flush(self) -> int:
        """Everything appended so far may leave at once; returns the number up to which batches are flushed."""
        self._flush_up_to = self._next_number - 1
        for queue in self._queues.values():
            if queue.waiting:
                queue.waiting[-1].open = False
        return self._flush_up_to

    def flushed(self, number: int) -> bool:
        for queue in self._queues.values():
            if queue.waiting and queue.waiting[0].number <= number:
                return False
            if any(batch.number <= number for batch in queue.in_flight):
                return False
        return True

    # Batches out

    def partitions_waiting(self) -> list[TopicPartition]:
        return [queue.partition for queue in self._queues.values() if queue.waiting]

    def drain(
        self, now_ms: int, leader_of: Callable[[TopicPartition], int | None], room: Callable[[int], bool]
    ) -> dict[int, list[Batch]]:
        """The batches to send now, by leader: at most one per partition, requests of at most max.request.size."""
        requests: dict[int, list[Batch]] = {}
        sizes: dict[int, int] = {}
        for queue in self._queues.values():
            if not self._ready(queue, now_ms):
                continue
            leader = leader_of(queue.partition)
            if leader is None or not room(leader):
                continue
            size = sizes.get(leader, 0)
            batch = queue.waiting[0]
            if size and size + batch.size > self._request_bytes_max:
                continue
            self._take(queue, batch)
            sizes[leader] = size + batch.size
            requests.setdefault(leader, []).append(batch)
        return requests

    def next_deadline_ms(self, now_ms: int) -> int:
        """When drain() or expire() may have something to do without anything else happening."""
        nearest = now_ms + 3_600_000
        for queue in self._queues.values():
            if not queue.waiting:
                continue
            batch = queue.waiting[0]
            nearest = min(nearest, batch.created_ms + self._delivery_timeout_ms)
            if batch.not_before_ms > now_ms:
                nearest = min(nearest, batch.not_before_ms)
            elif batch.open and batch.number > self._flush_up_to:
                nearest = min(nearest, batch.created_ms + self._linger_ms)
        return nearest

    def _ready(self, queue: PartitionQueue, now_ms: int) -> bool:
        if not queue.waiting:
            return False
        batch = queue.waiting[0]
        if batch.not_before_ms > now_ms:
            return False
        if queue.in_flight and self._must_wait(queue, batch):
            return False
        if not batch.open or batch.attempts or batch.number <= self._flush_up_to or batch.size >= self._batch_bytes:
            return True
        return now_ms - batch.created_ms >= self._linger_ms

    def _must_wait(self, queue: PartitionQueue, batch: Batch) -> bool:
        """Whether what is in flight must be answered before the batch may leave."""
        if queue.renumber or batch.attempts or queue.in_flight[-1].attempts > 1:
            return True
        return self._idempotent and not queue.acknowledged

    def _take(self, queue: PartitionQueue, batch: Batch) -> None:
        """Closes the batch, numbers it if that was not done yet, and puts it in flight."""
        if queue.renumber:
            self._renumber(queue)
        queue.waiting.popleft()
        batch.open = False
        if self._idempotent and batch.base_sequence == NO_SEQUENCE:
            if queue.producer_epoch < 0:
                queue.producer_epoch = self.first_epoch
            batch.producer_epoch = queue.producer_epoch
            batch.base_sequence = queue.next_sequence
            queue.next_sequence = (queue.next_sequence + batch.count) & SEQUENCE_MASK
            batch.data = None
        if batch.data is None:
            batch.data = batch.builder.build(
                producer_id=self.producer_id, producer_epoch=batch.producer_epoch, base_sequence=batch.base_sequence
            )
        batch.attempts += 1
        queue.in_flight.append(batch)

    def _renumber(self, queue: PartitionQueue) -> None:
        """KIP-360: a raised epoch starts at sequence 0 again. Brokers keep epochs per partition, and so do we."""
        queue.renumber = False
        queue.unresolved = False
        queue.producer_epoch = max(queue.producer_epoch, self.first_epoch) + 1
        if queue.producer_epoch > PRODUCER_EPOCH_MAX:
            queue.producer_epoch = self.first_epoch
        queue.next_sequence = 0
        queue.acknowledged = False
        for batch in queue.waiting:
            batch.base_sequence = NO_SEQUENCE

    # Answers

    def on_success(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        queue = self._queues[batch.partition]
        queue.in_flight.remove(batch)
        queue.unresolved = False
        queue.acknowledged = True
        self._settle(batch, base_offset, append_time_ms, None)

    def on_error(self, batch: Batch, error: ClientError, now_ms: int) -> None:
        """The broker refused the batch, or nobody knows what became of it: try again or give up."""
        queue = self._queues[batch.partition]
        if error.code == DUPLICATE_SEQUENCE_NUMBER:
            self.on_success(batch, -1, -1)
            return
        queue.in_flight.remove(batch)
        if error.code in (OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID) and self._idempotent:
            self._on_sequence_error(queue, batch, error, now_ms)
        elif error.retriable and self._may_retry(batch, now_ms):
            self._retry(queue, batch, now_ms)
        else:
            self._give_up(queue, batch, error)

    def expire(self, now_ms: int) -> None:
        """Gives up waiting batches that are older than delivery.timeout.ms."""
        for queue in self._queues.values():
            while queue.waiting and now_ms - queue.waiting[0].created_ms >= self._delivery_timeout_ms:
                if queue.in_flight:
                    break
                batch = queue.waiting.popleft()
                sentence = (
                    f"The batch of {batch.count} records for {batch.partition} was not delivered within"
                    f" {self._delivery_timeout_ms} ms (delivery.timeout.ms)."
                )
                self._give_up(queue, batch, RequestTimeoutError(sentence))

    def fail_all(self, error: ClientError) -> None:
        """Gives up everything, also what is in flight."""
        for queue in self._queues.values():
            batches = [*queue.in_flight, *queue.waiting]
            queue.in_flight.clear()
            queue.waiting.clear()
            for batch in batches:
                self._settle(batch, -1, -1, error)

    def is_in_flight(self, batch: Batch) -> bool:
        """False once fail_all() took the batch away from under its request."""
        return batch in self._queues[batch.partition].in_flight

    def _on_sequence_error(self, queue: PartitionQueue, batch: Batch, error: ClientError, now_ms: int) -> None:
        earlier = [*queue.in_flight, *queue.waiting]
        if any(other.attempts and other.number < batch.number for other in earlier):
            self._retry(queue, batch, now_ms)  # an earlier batch failed: this one merely came before its turn
            return
        queue.renumber = True
        if queue.unresolved or error.code == UNKNOWN_PRODUCER_ID:
            self._retry(queue, batch, now_ms)
        else:
            self._settle(batch, -1, -1, error)

    def _may_retry(self, batch: Batch, now_ms: int) -> bool:
        return batch.attempts <= self._retries and now_ms - batch.created_ms < self._delivery_timeout_ms

    def _retry(self, queue: PartitionQueue, batch: Batch, now_ms: int) -> None:
        batch.not_before_ms = now_ms + self._backoff.delay_ms(batch.attempts)
        later: list[Batch] = []
        while queue.waiting and queue.waiting[0].number < batch.number:
            later.append(queue.waiting.popleft())
        queue.waiting.appendleft(batch)
        queue.waiting.extendleft(reversed(later))

    def _give_up(self, queue: PartitionQueue, batch: Batch, error: ClientError) -> None:
        if batch.base_sequence != NO_SEQUENCE:
            # A refusal leaves a hole in the sequence for certain; a timeout or a lost connection, perhaps.
            if isinstance(error, RequestTimeoutError) or error.retriable:
                queue.unresolved = True
            else:
                queue.renumber = True
        if error.code == INVALID_PRODUCER_EPOCH:
            queue.renumber = True
        self._settle(batch, -1, -1, error)

    def _settle(self, batch: Batch, base_offset: int, append_time_ms: int, error: ClientError | None) -> None:
        self.bytes_held -= batch.size - BATCH_HEADER_BYTES
        self.batches_held -= 1
        batch.data = None
        batch.fate.settle(base_offset, append_time_ms, error)
        if self.on_settled is not None:
            self.on_settled(batch)


def record_bytes_max(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """At most so many bytes does the record take in a batch, before compression."""
    size = RECORD_OVERHEAD_BYTES + (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
    if headers:
        for name, data in headers:
            size += 10 + len(name.encode()) + (len(data) if data is not None else 0)
    return size
