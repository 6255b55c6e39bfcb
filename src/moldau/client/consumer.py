"""The consumer: assigned partitions, positions, poll. Groups join through the same class when they come.

poll() asks the leaders ahead of the reader: a partition is fetched again as soon as nothing of it is kept, so that the
answer is on its way while the user works on the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from moldau.client import config as settings
from moldau.client.cluster import Cluster
from moldau.client.errors import ClientError, ClosedError, RequestTimeoutError, error_for
from moldau.client.fetch_session import FetchSession, Wanted
from moldau.client.fetcher import NO_EPOCH, NO_REPLICA, ConsumerRecord, Fetcher, PartitionState, deserialize
from moldau.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from moldau.client.positions import Positions
from moldau.client.results import OffsetAndTimestamp, TopicPartition
from moldau.client.transport import Network
from moldau.client.wire import Call
from moldau.protocol.errors import INVALID_REQUEST, OFFSET_OUT_OF_RANGE
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.arrow_decoder import ArrowColumns
from moldau.records.text_writer import TextWriter

__all__ = ["Consumer", "ConsumerRecord"]

# From this version on, Fetch names topics by id.
FETCH_TOPIC_ID_VERSION = 13

ARROW_ROWS = 65_536


class Consumer:
    """Reads records of assigned partitions; to be used by one thread."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        key_deserializer: Callable[[bytes | None], Any] | None = None,
        value_deserializer: Callable[[bytes | None], Any] | None = None,
        network: Network | None = None,
        first_contact_ms: int | None = None,
        config: Mapping[str, object] | None = None,
        **more: object,
    ) -> None:
        read = settings.read(settings.CONSUMER, bootstrap_servers, config, more)
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._isolation = READ_COMMITTED if read.get_text("isolation.level") == "read_committed" else READ_UNCOMMITTED
        self._reset_policy = read.get_text("auto.offset.reset")
        self._max_poll_records = read.get_int("max.poll.records")
        self._max_wait_ms = read.get_int("fetch.max.wait.ms")
        self._min_bytes = read.get_int("fetch.min.bytes")
        self._partition_max_bytes = read.get_int("max.partition.fetch.bytes")
        self._rack = read.get_text("client.rack")
        self._request_timeout_ms = read.get_int("request.timeout.ms")
        self._api_timeout_ms = read.get_int("default.api.timeout.ms")
        self._metadata_age_max_ms = read.get_int("metadata.max.age.ms")
        self._cluster = Cluster(
            read,
            network,
            auto_create_topics=read.get_bool("allow.auto.create.topics"),
            first_contact_ms=first_contact_ms,
        )
        self._fetcher = Fetcher(
            self._isolation, read.get_int("fetch.max.bytes"), self._partition_max_bytes, read.get_bool("check.crcs")
        )
        self._sessions: dict[int, FetchSession] = {}
        self._positions = Positions(
            self._cluster, self._fetcher, self._reset_policy, self._isolation, self._request_timeout_ms
        )
        self._woken = False
        self._closed = False

    # Assignment and positions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these partitions from now on; those that were assigned before keep their position."""
        self._check_open()
        self._fetcher.assign(partitions)

    def assignment(self) -> list[TopicPartition]:
        return list(self._fetcher.partitions)

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """leader_epoch: that of the record before the offset, where known; a truncated log is noticed by it."""
        if offset < 0:
            raise error_for(INVALID_REQUEST, f"Cannot seek to offset {offset}: it must not be negative.")
        state = self._state(partition)
        self._fetcher.seek(state, offset, leader_epoch)
        state.validated_epoch = NO_EPOCH

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        for partition in list(partitions) or self.assignment():
            self._fetcher.reset(self._state(partition), EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        for partition in list(partitions) or self.assignment():
            self._fetcher.reset(self._state(partition), LATEST)

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that poll() gives; found out where it is not known yet."""
        state = self._state(partition)
        network = self._cluster.network
        deadline_ms = network.now_ms() + self._api_timeout_ms
        while state.position is None:
            self._raise_problem(False)
            self._positions.ask_position(state)
            remaining_ms = deadline_ms - network.now_ms()
            if remaining_ms <= 0:
                reason = f" {self._positions.last_error.message}" if self._positions.last_error is not None else ""
                raise RequestTimeoutError(
                    f"The position of {partition} was not found out within {self._api_timeout_ms} ms.{reason}"
                )
            network.poll(min(remaining_ms, self._positions.until_retry_ms()))
        return state.position

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._state(partition).paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._state(partition).paused = False

    def paused(self) -> list[TopicPartition]:
        return [partition for partition, state in self._fetcher.partitions.items() if state.paused]

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end as of the last fetch; None before the first."""
        state = self._state(partition)
        end = state.last_stable_offset if self._isolation == READ_COMMITTED else state.high_watermark
        return None if end < 0 or state.position is None else max(0, end - state.position)

    def high_watermark(self, partition: TopicPartition) -> int:
        """As of the last fetch; -1 before the first."""
        return self._state(partition).high_watermark

    # Records

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that arrived, at least one unless the timeout passes; at most max_records (max.poll.records)."""
        self._check_open()
        limit = self._max_poll_records if max_records is None else max_records
        deadline_ms = self._cluster.network.now_ms() + timeout_ms
        while True:
            records = self._fetcher.take(limit)
            if not self._go_on(bool(records), deadline_ms):
                records = records or self._fetcher.take(limit)
                if self._key_deserializer is not None or self._value_deserializer is not None:
                    deserialize(records, self._key_deserializer, self._value_deserializer)
                return records

    def poll_arrow(self, timeout_ms: int = 0, max_rows: int = ARROW_ROWS, headers: bool = False) -> Any:
        """A pyarrow RecordBatch of what arrived, None if nothing does before the timeout.

        Whole batches are taken, so there may be some more rows than max_rows. Columns: topic, partition, offset,
        timestamp, timestamp_type, key, value, and headers if asked for. No object is made for a record.
        """
        from moldau.client.arrow import to_record_batch

        self._check_open()
        deadline_ms = self._cluster.network.now_ms() + timeout_ms
        columns = ArrowColumns(headers)
        buffers: list[bytes] = []
        while True:
            parts = self._fetcher.take_arrow(max_rows, columns, buffers)
            if not self._go_on(bool(parts), deadline_ms):
                parts = parts or self._fetcher.take_arrow(max_rows, columns, buffers)
                return to_record_batch(parts, columns, buffers) if parts else None

    def poll_text(self, writer: TextWriter, timeout_ms: int = 0, max_rows: int = ARROW_ROWS) -> int:
        """Writes what arrived as text, whole batches of it; returns how many records, 0 if nothing does in time."""
        self._check_open()
        deadline_ms = self._cluster.network.now_ms() + timeout_ms
        while True:
            rows = self._fetcher.take_text(max_rows, writer)
            if not self._go_on(rows > 0, deadline_ms):
                return rows or self._fetcher.take_text(max_rows, writer)

    def _go_on(self, found: bool, deadline_ms: int) -> bool:
        """Asks the leaders ahead of the reader, and waits if nothing was found; False when it is time to return."""
        network = self._cluster.network
        self._raise_problem(found)
        remaining_ms = deadline_ms - network.now_ms()
        if not found:
            self._positions.ask()
        elif self._positions.any_unvalidated():
            self._positions.stale_topics.update(item.topic for item in self._fetcher.partitions)
        self._send_fetches()
        if found or remaining_ms <= 0 or self._woken:
            self._woken = False
            network.poll(0)
            return False
        network.poll(min(remaining_ms, self._positions.until_retry_ms()))
        return True

    def wakeup(self) -> None:
        """Makes a poll() that waits return with nothing; may be called from another thread."""
        self._woken = True
        self._cluster.network.wake()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while True:
            yield from self.poll(1000)

    # Questions

    def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic; raises where it does not exist."""
        self._check_open()
        found = self._cluster.topic(topic, self._api_timeout_ms)
        return [TopicPartition(topic, partition) for partition in sorted(found.partitions)]

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._list(dict.fromkeys(partitions, EARLIEST))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The high watermarks, or the last stable offsets under read_committed."""
        return self._list(dict.fromkeys(partitions, LATEST))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time, None where there is none so young."""
        self._check_open()
        found = list_offsets(self._cluster, times, self._api_timeout_ms, self._isolation)
        results = {partition: outcome.get() for partition, outcome in found.items()}
        return {partition: (None if row.offset < 0 else row) for partition, row in results.items()}

    def close(self) -> None:
        self._closed = True
        self._cluster.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _list(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self._check_open()
        found = list_offsets(self._cluster, wanted, self._api_timeout_ms, self._isolation)
        return {partition: outcome.get().offset for partition, outcome in found.items()}

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The consumer is closed.")

    def _state(self, partition: TopicPartition) -> PartitionState:
        self._check_open()
        state = self._fetcher.partitions.get(partition)
        if state is None:
            raise error_for(INVALID_REQUEST, f"Partition {partition} is not assigned to this consumer.")
        return state

    def _raise_problem(self, found: bool) -> None:
        """An error waits until the records before it were handed out."""
        problem = self._positions.problem
        if problem is not None and not found:
            self._positions.problem = None
            raise problem

    # Requests

    def _send_fetches(self) -> None:
        by_broker: dict[int, list[PartitionState]] = {}
        network = self._cluster.network
        now_ms = network.now_ms()
        for state in self._fetcher.fetchable(now_ms):
            broker_id = self._broker_for(state, now_ms)
            if broker_id is None:
                self._positions.stale_topics.add(state.partition.topic)
                self._positions.back_off(state)
            elif not self._positions.is_unvalidated(state) and not network.in_flight_count(
                self._cluster.broker_address(broker_id)
            ):
                by_broker.setdefault(broker_id, []).append(state)
        for broker_id, states in by_broker.items():
            self._send_fetch(broker_id, states)

    def _broker_for(self, state: PartitionState, now_ms: int) -> int | None:
        """The leader, or the replica nearer to us that it named (KIP-392)."""
        leader = self._cluster.leader(state.partition)
        if leader is None:
            return None
        if state.preferred_replica != NO_REPLICA:
            if now_ms < state.preferred_until_ms and state.preferred_replica in self._cluster.brokers:
                return state.preferred_replica
            state.preferred_replica = NO_REPLICA
        return leader.leader

    def _send_fetch(self, broker_id: int, states: list[PartitionState]) -> None:
        wanted: dict[TopicPartition, Wanted] = {}
        asked: dict[TopicPartition, int] = {}
        for state in states:
            leader = self._cluster.leader(state.partition)
            topic_id = self._cluster.topics[state.partition.topic].topic_id
            epoch = NO_EPOCH if leader is None else leader.leader_epoch
            wanted[state.partition] = Wanted(topic_id, state.fetch_offset, epoch, self._partition_max_bytes)
            asked[state.partition] = state.fetch_offset
            state.in_flight = True
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=max(1, self._fetcher.bytes_wanted),
            isolation_level=self._isolation,
            rack_id=self._rack,
        )
        self._sessions.setdefault(broker_id, FetchSession()).fill(request, wanted)
        highest = FETCH_TOPIC_ID_VERSION - 1 if any(row.topic_id == ZERO_UUID for row in wanted.values()) else None

        def on_done(call: Call[FetchResponse]) -> None:
            self._on_answer(call, broker_id, states, asked)

        timeout_ms = self._request_timeout_ms + self._max_wait_ms
        call = Call(request, FetchResponse, timeout_ms, highest, True, on_done)
        self._cluster.network.submit(self._cluster.broker_address(broker_id), call)

    def _on_answer(
        self, call: Call[FetchResponse], broker_id: int, states: list[PartitionState], asked: dict[TopicPartition, int]
    ) -> None:
        for state in states:
            state.in_flight = False
        session = self._sessions[broker_id]
        error = call.error
        if error is None:
            session.on_answer(call.answer().session_id, call.answer().error_code)
            if call.answer().error_code != 0:
                error = error_for(call.answer().error_code)
        else:
            session.reset()
        if error is not None:
            for state in states:
                state.preferred_replica = NO_REPLICA
                self._on_error(state, error)
            return
        answer = call.answer()
        for node in answer.node_endpoints:
            self._cluster.learn_broker(node.node_id, node.host, node.port, node.rack)
        for topic in answer.responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id) or ""
            for row in topic.partitions:
                found = self._fetcher.partitions.get(TopicPartition(name, row.partition_index))
                if found is not None and found.partition in asked:
                    self._on_row(found, asked[found.partition], row)

    def _on_row(self, state: PartitionState, asked: int, row: PartitionData) -> None:
        if row.preferred_read_replica >= 0 and row.error_code == 0:
            state.preferred_replica = row.preferred_read_replica
            state.preferred_until_ms = self._cluster.network.now_ms() + self._metadata_age_max_ms
        problem = self._fetcher.on_partition(state, asked, row)
        if problem is None:
            return
        if state.preferred_replica != NO_REPLICA:
            state.preferred_replica = NO_REPLICA  # ask the leader before believing it
            return
        hint = row.current_leader
        if problem.refresh_metadata and self._cluster.learn_leader(state.partition, hint.leader_id, hint.leader_epoch):
            return  # KIP-951: the answer named the leader, go on there at once
        self._on_error(state, problem)

    def _on_error(self, state: PartitionState, error: ClientError) -> None:
        if error.code != OFFSET_OUT_OF_RANGE:
            self._positions.on_error(state, error)
        elif self._reset_policy != "none":
            self._fetcher.reset(state, self._positions.reset_timestamp())
        else:
            sentence = f"Offset {state.fetch_offset} of {state.partition} is out of range."
            self._positions.problem = error_for(error.code, sentence)
