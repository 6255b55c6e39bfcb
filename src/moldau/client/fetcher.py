"""Reads assigned partitions: what to fetch next, what arrived, records in order; knows no socket, clock or thread.

What arrives is kept as the bytes it came in and decoded batch by batch when records are taken, so that a reader that
stops early decodes little. A partition is fetched again once nothing of it is kept, which bounds the memory by
fetch.max.bytes per broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from moldau.client.errors import ClientError, error_for
from moldau.client.offsets import READ_COMMITTED
from moldau.client.results import Headers, TopicPartition
from moldau.protocol.errors import CORRUPT_MESSAGE, NONE, OFFSET_OUT_OF_RANGE
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import BatchHeader, CorruptBatch, check_crc, split_batches
from moldau.records.walk import Record, read_records

# A control record's key: int16 version, int16 type; type 0 ends a transaction as aborted.
ABORT_MARKER = b"\x00\x00\x00\x00"

CREATE_TIME = 0
LOG_APPEND_TIME = 1

# From this version on, Fetch names topics by id.
FETCH_TOPIC_ID_VERSION = 13


class ConsumerRecord(NamedTuple):
    """One record as a consumer sees it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int


class _Arrived:
    """Batches of one partition that were fetched and not taken yet."""

    def __init__(self, data: bytes, batches: list[BatchHeader], aborted: list[tuple[int, int]]) -> None:
        self.data = data
        self.batches = deque(batches)
        # (first offset, producer id) of aborted transactions, ascending
        self.aborted = deque(sorted(aborted))
        self.aborting: set[int] = set()


class PartitionState:
    """Where one partition stands."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        # The offset of the next record to hand out; None until it was found out.
        self.position: int | None = None
        # The ListOffsets timestamp by which the position is to be found out.
        self.reset_to: int | None = None
        self.paused = False
        self.in_flight = False
        self.not_before_ms = 0
        self.failures = 0
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.arrived: _Arrived | None = None
        self.records: deque[Record] = deque()
        self.records_header: BatchHeader | None = None

    def clear(self) -> None:
        self.arrived = None
        self.records.clear()
        self.records_header = None

    @property
    def empty(self) -> bool:
        return not self.records and self.arrived is None


class Fetcher:
    """The assigned partitions of one consumer."""

    def __init__(
        self,
        isolation: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        partition_max_bytes: int,
        check_crcs: bool,
    ) -> None:
        self._isolation = isolation
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._partition_max_bytes = partition_max_bytes
        self._check_crcs = check_crcs
        self.partitions: dict[TopicPartition, PartitionState] = {}
        # Which partition records are taken from first; it moves on so that none starves.
        self._order: deque[TopicPartition] = deque()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(dict.fromkeys(partitions))
        self.partitions = {item: self.partitions.get(item) or PartitionState(item) for item in wanted}
        self._order = deque(wanted)

    def seek(self, state: PartitionState, position: int) -> None:
        state.clear()
        state.position = position
        state.reset_to = None

    def reset(self, state: PartitionState, timestamp: int) -> None:
        """The position is to be found out by ListOffsets."""
        state.clear()
        state.position = None
        state.reset_to = timestamp

    def fetchable(self, now_ms: int) -> list[PartitionState]:
        return [
            state
            for state in self.partitions.values()
            if state.position is not None
            and state.empty
            and not state.in_flight
            and not state.paused
            and state.not_before_ms <= now_ms
        ]

    def request(
        self, states: list[PartitionState], topic_ids: dict[str, bytes], leader_epochs: dict[TopicPartition, int]
    ) -> FetchRequest:
        """A fetch outside of any session for these partitions, which are in flight from now on."""
        topics: dict[str, FetchTopic] = {}
        for state in states:
            name, index = state.partition
            assert state.position is not None
            state.in_flight = True
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(topic=name, topic_id=topic_ids[name], partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=leader_epochs[state.partition],
                    fetch_offset=state.position,
                    partition_max_bytes=self._partition_max_bytes,
                )
            )
        return FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=self._isolation,
            session_id=0,
            session_epoch=-1,
            topics=list(topics.values()),
        )

    def on_partition(self, state: PartitionState, asked: int, row: PartitionData) -> ClientError | None:
        """Takes over what a broker answered for a partition asked at an offset; returns its error, if any."""
        if state.position != asked or not state.empty:
            return None  # the user moved meanwhile: nobody waits for this answer any more
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
            state.arrived = _Arrived(records.data, batches, aborted)
        return None

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to limit records, in order within each partition; positions move past them."""
        taken: list[ConsumerRecord] = []
        for _ in range(len(self._order)):
            partition = self._order[0]
            state = self.partitions[partition]
            if not state.paused:
                self._take_from(state, limit, taken)
            if len(taken) >= limit:
                break
            self._order.rotate(-1)
        return taken

    def _take_from(self, state: PartitionState, limit: int, taken: list[ConsumerRecord]) -> None:
        topic, partition = state.partition
        while len(taken) < limit:
            if not state.records and not self._decode_next(state):
                return
            header = state.records_header
            assert header is not None and state.position is not None
            timestamp_type = LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME
            epoch = header.partition_leader_epoch
            records = state.records
            while records and len(taken) < limit:
                record = records.popleft()
                if record.offset < state.position:
                    continue
                taken.append(
                    ConsumerRecord(
                        topic,
                        partition,
                        record.offset,
                        record.timestamp,
                        timestamp_type,
                        record.key,
                        record.value,
                        record.headers,
                        epoch,
                    )
                )
                state.position = record.offset + 1
            if not records:
                # Compaction leaves holes: the next fetch starts behind the batch, not behind its last record.
                state.position = max(state.position, header.last_offset + 1)

    def _decode_next(self, state: PartitionState) -> bool:
        """Decodes the next batch that has records for the user; False when nothing is kept any more."""
        arrived = state.arrived
        if arrived is None:
            return False
        assert state.position is not None
        while arrived.batches:
            header = arrived.batches.popleft()
            if header.last_offset < state.position:
                continue
            if self._check_crcs and not check_crc(arrived.data, header):
                state.clear()
                sentence = f"{state.partition}: the batch at offset {header.base_offset} does not have its checksum."
                raise error_for(CORRUPT_MESSAGE, sentence)
            if self._is_hidden(arrived, header):
                state.position = header.last_offset + 1
                continue
            try:
                state.records.extend(read_records(arrived.data, header))
            except CorruptBatch as error:
                state.clear()
                sentence = f"{state.partition}: the batch at offset {header.base_offset} cannot be read: {error}."
                raise error_for(CORRUPT_MESSAGE, sentence) from None
            if state.records:
                state.records_header = header
                return True
            state.position = header.last_offset + 1
        state.arrived = None
        return False

    def _is_hidden(self, arrived: _Arrived, header: BatchHeader) -> bool:
        """Control batches are never shown; batches of aborted transactions not under read_committed."""
        if self._isolation != READ_COMMITTED:
            return header.is_control
        while arrived.aborted and arrived.aborted[0][0] <= header.last_offset:
            arrived.aborting.add(arrived.aborted.popleft()[1])
        if header.is_control:
            if any(record.key == ABORT_MARKER for record in read_records(arrived.data, header)):
                arrived.aborting.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in arrived.aborting


def is_out_of_range(error: ClientError) -> bool:
    return error.code == OFFSET_OUT_OF_RANGE
