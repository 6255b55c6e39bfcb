"""Reads assigned partitions: what to fetch next, what arrived, records in order; knows no socket, clock or thread.

What arrives is kept as the bytes it came in and decoded batch by batch when records are taken, so that a reader that
stops early decodes little. A partition is fetched ahead of its reader while less than one fetch of it is kept, and
nothing is fetched while fetch.max.bytes are kept altogether: that bounds the memory, whatever the reader does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from moldau.client.errors import ClientError, error_for
from moldau.client.metrics.reading import PartitionMeter, ReadMeter
from moldau.client.metrics.window import Window
from moldau.client.offsets import READ_COMMITTED
from moldau.client.record import ConsumerRecord, decode_batch
from moldau.client.results import OffsetAndMetadata, TopicPartition
from moldau.protocol.errors import CORRUPT_MESSAGE, NONE
from moldau.protocol.messages.fetch_response import PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.arrow_decoder import ArrowColumns
from moldau.records.batch import HEADER_SIZE, BatchHeader, CorruptBatch, has_valid_crc, split_batches
from moldau.records.text_writer import TextWriter
from moldau.records.walk import DECOMPRESSED_BYTES_MAX, read_records, records_bytes

__all__ = ["ArrowPart", "ConsumerRecord", "Fetcher", "PartitionState"]

# A control record's key: int16 version, int16 type; type 0 ends a transaction as aborted.
ABORT_MARKER = b"\x00\x00\x00\x00"

# A column of topic names this long, each up to 249 bytes, stays within the 2 GB of an Arrow column.
ARROW_ROWS_MAX = 8_000_000

NO_EPOCH = -1
NO_REPLICA = -1


class _Arrived:
    """Batches of one partition that were fetched together and not taken yet."""

    def __init__(self, data: bytes, size: int, batches: list[BatchHeader], aborted: list[tuple[int, int]]) -> None:
        self.data = data
        self.size = size
        self.batches = deque(batches)
        # (first offset, producer id) of aborted transactions, ascending
        self.aborted = deque(sorted(aborted))
        self.aborting: set[int] = set()


class PartitionState:
    """Where one partition stands."""

    def __init__(self, partition: TopicPartition, meter: ReadMeter) -> None:
        self.partition = partition
        self.topic_meter = meter.topic(partition.topic)
        self.meter = PartitionMeter(meter.window)
        # Bytes of batches that were handed out and are to be counted.
        self.bytes_taken = 0
        # The offset of the next record to hand out; None until it was found out.
        self.position: int | None = None
        # The epoch of the last record handed out, and the leader epoch under which the position was found good.
        self.position_epoch = NO_EPOCH
        self.validated_epoch = NO_EPOCH
        # The offset of the next fetch: behind all that is kept.
        self.fetch_offset = 0
        # The ListOffsets timestamp by which the position is to be found out.
        self.reset_to: int | None = None
        self.paused = False
        # A group's partition whose position is what the group committed: asked before the reset policy.
        self.awaiting_committed = False
        # About to be given up: nothing more of it is handed out, so that what was committed for it stays true.
        self.held = False
        self.in_flight = False
        self.not_before_ms = 0
        self.failures = 0
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        # KIP-392: the replica that the leader sent us to, and until when.
        self.preferred_replica = NO_REPLICA
        self.preferred_until_ms = 0
        self.arrived: deque[_Arrived] = deque()
        self.bytes_kept = 0
        self.records: list[ConsumerRecord] = []
        self.records_taken = 0
        self.records_bytes = 0
        self.records_header: BatchHeader | None = None

    def clear(self) -> None:
        self.arrived.clear()
        self.bytes_kept = 0
        self._drop_records()
        if self.position is not None:
            self.fetch_offset = self.position

    def _drop_records(self) -> None:
        self.records = []
        self.records_taken = 0
        self.records_header = None

    def put_back(self) -> None:
        """Records that were decoded and not taken become a batch to decode again."""
        if self.records_header is not None:
            self.arrived[0].batches.appendleft(self.records_header)
            self._drop_records()

    @property
    def empty(self) -> bool:
        return not self.arrived


class ArrowPart:
    """Rows of one partition, one behind the other."""

    def __init__(self, partition: TopicPartition, rows: int, timestamp_type: int) -> None:
        self.partition = partition
        self.rows = rows
        self.timestamp_type = timestamp_type


class Fetcher:
    """The assigned partitions of one consumer."""

    def __init__(
        self,
        isolation: int,
        max_bytes: int,
        partition_max_bytes: int,
        check_crcs: bool,
        meter: ReadMeter | None = None,
    ) -> None:
        self.meter = ReadMeter(Window(0)) if meter is None else meter
        self._isolation = isolation
        self._max_bytes = max_bytes
        self._partition_max_bytes = partition_max_bytes
        self._check_crcs = check_crcs
        self.partitions: dict[TopicPartition, PartitionState] = {}
        # Which partition records are taken from first; it moves on so that none starves.
        self._order: deque[TopicPartition] = deque()

    def assign(self, partitions: Iterable[TopicPartition], from_committed: bool = False) -> None:
        """Those that were assigned already stay where they are; new ones begin at the committed offset if so told."""
        wanted = list(dict.fromkeys(partitions))
        before = self.partitions
        self.partitions = {item: before.get(item) or PartitionState(item, self.meter) for item in wanted}
        self._order = deque(wanted)
        for item, state in self.partitions.items():
            if from_committed and item not in before:
                state.awaiting_committed = True

    def hold(self, partitions: Iterable[TopicPartition], held: bool = True) -> None:
        for item in partitions:
            state = self.partitions.get(item)
            if state is not None:
                state.held = held

    def consumed(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions behind what was handed out, where known; None: of all partitions."""
        return {
            item: OffsetAndMetadata(state.position, state.position_epoch)
            for item in (self.partitions if partitions is None else partitions)
            if (state := self.partitions.get(item)) is not None and state.position is not None
        }

    def seek(self, state: PartitionState, position: int, epoch: int = NO_EPOCH) -> None:
        state.position = position
        state.position_epoch = epoch
        state.reset_to = None
        state.awaiting_committed = False
        state.clear()

    def reset(self, state: PartitionState, timestamp: int) -> None:
        """The position is to be found out by ListOffsets."""
        state.clear()
        state.position = None
        state.position_epoch = NO_EPOCH
        state.reset_to = timestamp
        state.awaiting_committed = False

    @property
    def bytes_kept(self) -> int:
        return sum(state.bytes_kept for state in self.partitions.values())

    @property
    def bytes_wanted(self) -> int:
        """How much may be fetched beside what is kept."""
        return max(0, self._max_bytes - self.bytes_kept)

    def fetchable(self, now_ms: int) -> list[PartitionState]:
        if self.bytes_wanted == 0 and any(not state.empty for state in self.partitions.values()):
            return []
        return [
            state
            for state in self.partitions.values()
            if state.position is not None
            and not state.in_flight
            and not state.paused
            and not state.held
            and state.not_before_ms <= now_ms
            and (state.bytes_kept < self._partition_max_bytes or state.empty)
        ]

    def on_partition(self, state: PartitionState, asked: int, row: PartitionData) -> ClientError | None:
        """Takes over what a broker responded for a partition asked at an offset; returns its error, if any."""
        if state.position is None or state.fetch_offset != asked:
            return None  # the user moved meanwhile: nobody waits for this response any more
        if row.error_code != NONE:
            return error_for(row.error_code)
        state.failures = 0
        state.high_watermark = row.high_watermark
        state.last_stable_offset = row.last_stable_offset
        state.log_start_offset = row.log_start_offset
        records = row.records
        if not isinstance(records, MemoryRecords) or records.size == 0:
            return None
        try:
            batches = split_batches(records.data, records.start, records.end)
        except CorruptBatch as error:
            return error_for(CORRUPT_MESSAGE, f"{state.partition} at offset {asked}: {error}")
        if batches:
            aborted = [(item.first_offset, item.producer_id) for item in row.aborted_transactions or []]
            state.arrived.append(_Arrived(records.data, int(records.size), batches, aborted))
            state.bytes_kept += int(records.size)
            self.meter.add_fetched(
                state.partition.topic,
                int(records.size) - HEADER_SIZE * len(batches),
                sum([header.records_count for header in batches]),
            )
            state.fetch_offset = max(asked, int(batches[-1].next_offset))
        return None

    # Records out

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to limit records, in order within each partition; positions move past them."""
        taken: list[ConsumerRecord] = []
        for _ in range(len(self._order)):
            state = self.partitions[self._order[0]]
            if not state.paused and not state.held and state.arrived:
                before = len(taken)
                self._take_from(state, limit, taken)
                if len(taken) > before:
                    self._count(state, len(taken) - before)
            if len(taken) >= limit:
                break
            self._order.rotate(-1)
        return taken

    def _take_from(self, state: PartitionState, limit: int, taken: list[ConsumerRecord]) -> None:
        while len(taken) < limit:
            if state.records_header is None and not self._decode_next(state):
                return
            header = state.records_header
            assert header is not None
            first = state.records_taken
            part = state.records[first : first + limit - len(taken)]
            taken += part
            state.records_taken = first + len(part)
            if state.records_taken == len(state.records):
                # Compaction leaves holes: go on behind the batch, not behind its last record.
                state.position = int(header.next_offset)
                state.bytes_taken += state.records_bytes
                state._drop_records()
                self._forget_empty(state)
            else:
                state.position = int(part[-1].offset) + 1
            state.position_epoch = int(header.partition_leader_epoch)

    def _count(self, state: PartitionState, records: int) -> None:
        """Records of a partition were handed out."""
        state.topic_meter.records.add(records)
        state.topic_meter.bytes.add(state.bytes_taken)
        state.bytes_taken = 0
        end = state.last_stable_offset if self._isolation == READ_COMMITTED else state.high_watermark
        position = state.position or 0
        state.meter.record(max(0, end - position), max(0, position - max(0, state.log_start_offset)))

    def take_arrow(self, limit: int, columns: ArrowColumns, buffers: list[bytes]) -> list[ArrowPart]:
        """Adds whole batches to the columns until there are limit rows or nothing is kept; positions move past them."""
        parts: list[ArrowPart] = []
        limit = min(limit, ARROW_ROWS_MAX)
        for _ in range(len(self._order)):
            state = self.partitions[self._order[0]]
            if not state.paused and not state.held:
                state.put_back()
                before = int(columns.rows)
                while columns.rows < limit and self._add_next(state, columns, buffers, parts):
                    pass
                if columns.rows > before:
                    self._count(state, int(columns.rows) - before)
            if columns.rows >= limit:
                break
            self._order.rotate(-1)
        return parts

    def take_text(self, limit: int, writer: TextWriter) -> int:
        """Like take_arrow(), as text; returns how many records were looked at, also those beyond an end."""
        before, seen = int(writer.rows), int(writer.seen)
        for _ in range(len(self._order)):
            state = self.partitions[self._order[0]]
            if not state.paused and not state.held:
                state.put_back()
                writer.begin(*state.partition)
                seen_before = int(writer.seen)
                while writer.rows - before < limit and not writer.full and self._write_next(state, writer):
                    pass
                if writer.seen > seen_before:
                    self._count(state, int(writer.seen) - seen_before)
            if writer.rows - before >= limit or writer.full:
                break
            self._order.rotate(-1)
        return int(writer.seen) - seen

    def _write_next(self, state: PartitionState, writer: TextWriter) -> bool:
        found = self._next_batch(state)
        if found is None:
            return False
        data, start, end, header = found
        assert state.position is not None
        try:
            writer.add_batch(data, start, end, header, state.position)
        except CorruptBatch as error:
            raise self._corrupt(state, header, str(error)) from None
        state.bytes_taken += end - start
        state.position = int(header.next_offset)
        state.position_epoch = int(header.partition_leader_epoch)
        self._forget_empty(state)
        return True

    def _add_next(
        self, state: PartitionState, columns: ArrowColumns, buffers: list[bytes], parts: list[ArrowPart]
    ) -> bool:
        """Adds the next batch that has records for the user; False when nothing is kept any more."""
        found = self._next_batch(state)
        if found is None:
            return False
        data, start, end, header = found
        if not buffers or buffers[-1] is not data:
            buffers.append(data)
        assert state.position is not None
        try:
            rows = columns.add_batch(data, start, end, header, state.position, len(buffers) - 1)
        except CorruptBatch as error:
            raise self._corrupt(state, header, str(error)) from None
        state.bytes_taken += end - start
        kind = 1 if header.is_log_append_time else 0
        if parts and parts[-1].partition == state.partition and parts[-1].timestamp_type == kind:
            parts[-1].rows += rows
        elif rows:
            parts.append(ArrowPart(state.partition, rows, kind))
        state.position = int(header.next_offset)
        state.position_epoch = int(header.partition_leader_epoch)
        self._forget_empty(state)
        return True

    def _decode_next(self, state: PartitionState) -> bool:
        """Decodes the next batch that has records for the user; False when nothing is kept any more."""
        topic, partition = state.partition
        while (found := self._next_batch(state)) is not None:
            data, start, end, header = found
            assert state.position is not None
            records: list[ConsumerRecord] = []
            try:
                decode_batch(
                    data,
                    start,
                    end,
                    header,
                    topic=topic,
                    partition=partition,
                    from_offset=state.position,
                    records=records,
                )
            except CorruptBatch as error:
                raise self._corrupt(state, header, str(error)) from None
            if records:
                state.records = records
                state.records_taken = 0
                state.records_bytes = end - start
                state.records_header = header
                return True
            state.position = int(header.next_offset)
        return False

    def _next_batch(self, state: PartitionState) -> tuple[bytes, int, int, BatchHeader] | None:
        """The next batch that is to be shown: its records' bytes, where they start and end, and its header."""
        self._forget_empty(state)
        while state.arrived:
            arrived = state.arrived[0]
            assert state.position is not None
            while arrived.batches:
                header = arrived.batches.popleft()
                if header.last_offset < state.position:
                    self._is_hidden(state, arrived, header)  # it may begin or end an aborted transaction
                    continue
                if self._check_crcs and not has_valid_crc(arrived.data, header):
                    raise self._corrupt(state, header, "it does not have its checksum")
                if self._is_hidden(state, arrived, header):
                    state.position = int(header.next_offset)
                    continue
                if header.codec == 0:
                    return arrived.data, int(header.position) + HEADER_SIZE, int(header.end), header
                try:
                    body = records_bytes(arrived.data, header, DECOMPRESSED_BYTES_MAX)
                except CorruptBatch as error:
                    raise self._corrupt(state, header, str(error)) from None
                return body, 0, len(body), header
            self._forget_empty(state)
        return None

    def _forget_empty(self, state: PartitionState) -> None:
        while state.arrived and not state.arrived[0].batches and state.records_header is None:
            state.bytes_kept -= state.arrived.popleft().size

    def _corrupt(self, state: PartitionState, header: BatchHeader, reason: str) -> ClientError:
        """The partition stays where it is; what is kept of it is dropped, so that it is fetched once more."""
        state.clear()
        sentence = f"{state.partition}: the batch at offset {header.base_offset} cannot be read: {reason}."
        return error_for(CORRUPT_MESSAGE, sentence)

    def _is_hidden(self, state: PartitionState, arrived: _Arrived, header: BatchHeader) -> bool:
        """Control batches are never shown; batches of aborted transactions not under read_committed."""
        if self._isolation != READ_COMMITTED:
            return header.is_control
        while arrived.aborted and arrived.aborted[0][0] <= header.last_offset:
            arrived.aborting.add(arrived.aborted.popleft()[1])
        if header.is_control:
            try:
                aborts = any(record.key == ABORT_MARKER for record in read_records(arrived.data, header))
            except CorruptBatch as error:
                raise self._corrupt(state, header, str(error)) from None
            if aborts:
                arrived.aborting.discard(int(header.producer_id))
            return True
        return header.is_transactional and int(header.producer_id) in arrived.aborting


def deserialize(records: list[ConsumerRecord], key: Any, value: Any) -> None:
    """Replaces keys and values by what the user's functions make of them."""
    for record in records:
        if key is not None:
            record.key = key(record.key)
        if value is not None:
            record.value = value(record.value)
