"""What share fetches brought: bytes become the records that were locked for us; knows no socket, clock or thread.

A response has whole batches of the log, and says which of their offsets are ours. Only those are handed out, whole
ranges at a time, since what is acknowledged range by range costs the broker little. Offsets that are ours and hold no
record are gaps. A batch that cannot be read is a delivery of its own, without records: all of it that is ours is to be
rejected, because nobody else could read it either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from moldau.client.errors import ClientError, error_for
from moldau.client.record import ConsumerRecord, decode_batch
from moldau.client.share.acknowledgements import SharePartition
from moldau.protocol.errors import CORRUPT_MESSAGE
from moldau.protocol.messages.share_fetch_response import PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import HEADER_SIZE, BatchHeader, CorruptBatch, has_valid_crc, split_batches
from moldau.records.walk import DECOMPRESSED_BYTES_MAX, records_bytes


class Delivery:
    """One range of offsets that was locked for us: its records, its gaps, and what could not be read."""

    def __init__(self, partition: SharePartition, node_id: int, locked_ms: int) -> None:
        self.partition = partition
        self.node_id = node_id
        self.locked_ms = locked_ms
        self.records: list[ConsumerRecord] = []
        self.gaps: list[int] = []
        self.unreadable: list[int] = []
        self.error: ClientError | None = None


class _Arrived:
    """What one response brought of one partition and was not taken yet."""

    def __init__(self, partition: SharePartition, node_id: int, row: PartitionData, now_ms: int) -> None:
        self.partition = partition
        self.node_id = node_id
        self.locked_ms = now_ms
        self.ranges = deque((item.first_offset, item.last_offset, item.delivery_count) for item in row.acquired_records)
        self.data = b""
        self.batches: deque[BatchHeader] = deque()
        self.broken: str | None = None
        # The records of the first batch, once it was looked into, and how many of them are behind us.
        self.records: list[ConsumerRecord] | None = None
        self.passed = 0
        # The next batch cannot be read, and what was before it is being taken.
        self.stopped = False
        records = row.records
        if isinstance(records, MemoryRecords) and records.size > 0:
            self.data = records.data
            try:
                self.batches.extend(split_batches(records.data, records.start, records.end))
            except CorruptBatch as error:
                self.broken = str(error)


class ShareFetcher:
    """Everything that arrived for one consumer and waits to be handed out."""

    def __init__(self, check_crcs: bool) -> None:
        self._check_crcs = check_crcs
        self._arrived: deque[_Arrived] = deque()

    @property
    def empty(self) -> bool:
        return not self._arrived

    def add(self, partition: SharePartition, node_id: int, row: PartitionData, now_ms: int) -> None:
        if row.acquired_records:
            self._arrived.append(_Arrived(partition, node_id, row, now_ms))

    def keep(self, partitions: Collection[SharePartition]) -> None:
        """What is not handed out any more is forgotten; the broker gives it to others when its lock runs out."""
        self._arrived = deque(item for item in self._arrived if item.partition in partitions)

    def forget_node(self, node_id: int) -> None:
        """The session with the node is over, and with it the locks."""
        self._arrived = deque(item for item in self._arrived if item.node_id != node_id)

    def drop_expired(self, before_ms: int) -> None:
        """What was locked so long ago is somebody else's by now, and would be done twice."""
        if self._arrived and self._arrived[0].locked_ms <= before_ms:
            self._arrived = deque(item for item in self._arrived if item.locked_ms > before_ms)

    def peek(self) -> tuple[SharePartition, int] | None:
        """The partition and the node of what take() gives next."""
        return (self._arrived[0].partition, self._arrived[0].node_id) if self._arrived else None

    def take(self) -> Delivery:
        """The next range; to be called while there is one."""
        arrived = self._arrived[0]
        first, last, count = arrived.ranges.popleft()
        delivery = Delivery(arrived.partition, arrived.node_id, arrived.locked_ms)
        while first <= last and arrived.batches and arrived.batches[0].base_offset <= last:
            header = arrived.batches[0]
            if header.last_offset >= first:
                end = min(last, int(header.last_offset))
                if not self._is_readable(arrived, header, first, end, delivery):
                    break
                self._take_batch(arrived, (first, end, count), delivery)
                first = end + 1
            if header.last_offset > last:
                break
            arrived.batches.popleft()
            arrived.records = None
        if delivery.error is None and not arrived.stopped:
            self._take_rest(arrived, first, last, delivery)
        if delivery.error is not None:
            first = delivery.unreadable[-1] + 1
        if (delivery.error is not None or arrived.stopped) and first <= last:
            arrived.ranges.appendleft((first, last, count))
        arrived.stopped = False
        if not arrived.ranges:
            self._arrived.popleft()
        return delivery

    def _is_readable(self, arrived: _Arrived, header: BatchHeader, first: int, last: int, delivery: Delivery) -> bool:
        """Looks into the batch; one that cannot be read waits until what is before it was taken."""
        if arrived.records is not None:
            return True
        try:
            arrived.records = self._decode(arrived, header)
            arrived.passed = 0
            return True
        except CorruptBatch as error:
            if delivery.records:
                arrived.stopped = True
                return False
            sentence = f"{arrived.partition.name}: the batch at offset {header.base_offset} cannot be read: {error}."
            self._fail(delivery, first, int(header.base_offset), last, sentence)
            return False

    def _take_rest(self, arrived: _Arrived, first: int, last: int, delivery: Delivery) -> None:
        """Offsets behind the last batch: gaps, unless the bytes break off there."""
        if arrived.broken is None or first > last:
            delivery.gaps += range(first, last + 1)
        elif delivery.records:
            arrived.stopped = True
        else:
            sentence = (
                f"The records of {arrived.partition.name} from offset {first} on cannot be read: {arrived.broken}."
            )
            self._fail(delivery, first, first, last, sentence)

    def _fail(self, delivery: Delivery, first: int, start: int, last: int, sentence: str) -> None:
        start = max(first, start)
        delivery.error = error_for(CORRUPT_MESSAGE, sentence)
        delivery.gaps += range(first, start)
        delivery.unreadable += range(start, last + 1)

    def _take_batch(self, arrived: _Arrived, wanted: tuple[int, int, int], delivery: Delivery) -> None:
        """Adds what the batch has of the wanted offsets, the first of which may lie before the batch."""
        first, last, count = wanted
        expected = first
        assert arrived.records is not None
        index, records = arrived.passed, arrived.records
        while index < len(records) and records[index].offset <= last:
            record = records[index]
            index += 1
            offset = int(record.offset)
            if offset < expected:
                continue
            if offset > expected:
                delivery.gaps += range(expected, offset)
            expected = offset + 1
            record.delivery_count = count
            delivery.records.append(record)
        arrived.passed = index
        if expected <= last:
            delivery.gaps += range(expected, last + 1)

    def _decode(self, arrived: _Arrived, header: BatchHeader) -> list[ConsumerRecord]:
        records: list[ConsumerRecord] = []
        if self._check_crcs and not has_valid_crc(arrived.data, header):
            raise CorruptBatch("it does not have its checksum")
        if header.is_control:
            return records
        topic, partition = arrived.partition.name
        if header.codec == 0:
            start, end = int(header.position) + HEADER_SIZE, int(header.end)
            decode_batch(
                arrived.data, start, end, header, topic=topic, partition=partition, from_offset=0, records=records
            )
        else:
            body = records_bytes(arrived.data, header, DECOMPRESSED_BYTES_MAX)
            decode_batch(body, 0, len(body), header, topic=topic, partition=partition, from_offset=0, records=records)
        return records
