"""The consumer: assigned partitions, positions, poll. Groups join through the same class when they come.

poll() asks the leaders ahead of the reader: a partition is fetched again as soon as nothing of it is kept, so that the
answer is on its way while the user works on the records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType

from moldau.client import config as settings
from moldau.client.cluster import Cluster
from moldau.client.errors import ClientError, ClosedError, error_for
from moldau.client.fetcher import FETCH_TOPIC_ID_VERSION, ConsumerRecord, Fetcher, PartitionState, is_out_of_range
from moldau.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition
from moldau.client.transport import Network
from moldau.client.wire import Call
from moldau.protocol.errors import INVALID_REQUEST, OFFSET_OUT_OF_RANGE
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.uuids import ZERO_UUID

__all__ = ["Consumer", "ConsumerRecord"]

logger = logging.getLogger("moldau.client")

# A poll may take this much longer than asked when metadata is missing: giving up sooner would never get an answer.
QUESTION_MS_MIN = 2_000

_RESET = {"earliest": EARLIEST, "latest": LATEST}


class Consumer:
    """Reads records of assigned partitions; to be used by one thread."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        network: Network | None = None,
        first_contact_ms: int | None = None,
        config: Mapping[str, object] | None = None,
        **more: object,
    ) -> None:
        given = {**(config or {}), **more}
        if bootstrap_servers is not None:
            given["bootstrap.servers"] = (
                bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
            )
        read = settings.ClientConfig(settings.CONSUMER, given)
        self._isolation = READ_COMMITTED if read.get_text("isolation.level") == "read_committed" else READ_UNCOMMITTED
        self._reset_policy = read.get_text("auto.offset.reset")
        self._max_poll_records = read.get_int("max.poll.records")
        self._max_wait_ms = read.get_int("fetch.max.wait.ms")
        self._request_timeout_ms = read.get_int("request.timeout.ms")
        self._api_timeout_ms = read.get_int("default.api.timeout.ms")
        self._cluster = Cluster(
            read,
            network,
            auto_create_topics=read.get_bool("allow.auto.create.topics"),
            first_contact_ms=first_contact_ms,
        )
        self._fetcher = Fetcher(
            self._isolation,
            self._max_wait_ms,
            read.get_int("fetch.min.bytes"),
            read.get_int("fetch.max.bytes"),
            read.get_int("max.partition.fetch.bytes"),
            read.get_bool("check.crcs"),
        )
        self._stale_topics: set[str] = set()
        self._problem: ClientError | None = None
        self._closed = False

    # Assignment and positions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these partitions from now on; those that were assigned before keep their position."""
        self._check_open()
        self._fetcher.assign(partitions)

    def assignment(self) -> list[TopicPartition]:
        return list(self._fetcher.partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        if offset < 0:
            raise error_for(INVALID_REQUEST, f"Cannot seek to offset {offset}: it must not be negative.")
        self._fetcher.seek(self._state(partition), offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        for partition in list(partitions) or self.assignment():
            self._fetcher.reset(self._state(partition), EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        for partition in list(partitions) or self.assignment():
            self._fetcher.reset(self._state(partition), LATEST)

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that poll() gives; found out where it is not known yet."""
        state = self._state(partition)
        if state.position is None:
            self._find_positions([state], self._api_timeout_ms)
        assert state.position is not None
        return state.position

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._state(partition).paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._state(partition).paused = False

    def high_watermark(self, partition: TopicPartition) -> int:
        """As of the last fetch; -1 before the first."""
        return self._state(partition).high_watermark

    # Records

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that arrived, at least one unless the timeout passes; at most max_records (max.poll.records)."""
        self._check_open()
        network = self._cluster.network
        limit = self._max_poll_records if max_records is None else max_records
        deadline_ms = network.now_ms() + timeout_ms
        while True:
            records = self._fetcher.take(limit)
            self._raise_problem(records)
            remaining_ms = deadline_ms - network.now_ms()
            if not records:
                self._prepare(max(remaining_ms, 0))
            self._send_fetches()
            if records or remaining_ms <= 0:
                if not records:
                    network.poll(0)
                    records = self._fetcher.take(limit)
                return records
            network.poll(min(remaining_ms, self._until_retry_ms()))

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

    def _raise_problem(self, records: list[ConsumerRecord]) -> None:
        """An error waits until the records before it were handed out."""
        problem = self._problem
        if problem is not None and not records:
            self._problem = None
            raise problem

    # Fetching

    def _prepare(self, timeout_ms: int) -> None:
        """Finds out what is missing before records can be fetched; what may pass by itself is left to the next poll."""
        try:
            self._learn(max(timeout_ms, QUESTION_MS_MIN))
        except ClientError as error:
            if not error.retriable:
                raise
            logger.warning("%s The consumer goes on trying.", error)

    def _learn(self, timeout_ms: int) -> None:
        """Refreshes metadata that is missing or old, and finds out positions that are not known."""
        unknown = {item.topic for item in self._fetcher.partitions if self._cluster.is_old(item.topic)}
        asked = unknown | self._stale_topics
        if asked:
            self._cluster.refresh(sorted(asked), timeout_ms)
            self._stale_topics.clear()
        missing = [state for state in self._fetcher.partitions.values() if state.position is None and not state.paused]
        if missing:
            self._find_positions(missing, timeout_ms)

    def _find_positions(self, states: list[PartitionState], timeout_ms: int) -> None:
        wanted: dict[TopicPartition, int] = {}
        for state in states:
            if state.reset_to is None:
                if self._reset_policy == "none":
                    sentence = f"{state.partition} has no position: seek first, or set auto.offset.reset."
                    raise error_for(OFFSET_OUT_OF_RANGE, sentence)
                state.reset_to = _RESET[self._reset_policy]
            wanted[state.partition] = state.reset_to
        found = list_offsets(self._cluster, wanted, timeout_ms, self._isolation)
        for state in states:
            outcome: Outcome[OffsetAndTimestamp] = found[state.partition]
            self._fetcher.seek(state, outcome.get().offset)

    def _send_fetches(self) -> None:
        by_leader: dict[int, list[PartitionState]] = {}
        for state in self._fetcher.fetchable(self._cluster.network.now_ms()):
            leader = self._cluster.leader(state.partition)
            if leader is None:
                self._stale_topics.add(state.partition.topic)
                self._back_off(state)
            elif self._cluster.network.in_flight_count(self._cluster.broker_address(leader.leader)) == 0:
                by_leader.setdefault(leader.leader, []).append(state)
        for leader_id, states in by_leader.items():
            self._send_fetch(leader_id, states)

    def _send_fetch(self, leader_id: int, states: list[PartitionState]) -> None:
        topic_ids = {state.partition.topic: self._cluster.topics[state.partition.topic].topic_id for state in states}
        epochs: dict[TopicPartition, int] = {}
        for state in states:
            leader = self._cluster.leader(state.partition)
            epochs[state.partition] = -1 if leader is None else leader.leader_epoch
        highest = FETCH_TOPIC_ID_VERSION - 1 if ZERO_UUID in topic_ids.values() else None
        asked = {state.partition: state.position for state in states}
        request = self._fetcher.request(states, topic_ids, epochs)

        def on_done(call: Call[FetchResponse]) -> None:
            self._on_answer(call, states, asked)

        timeout_ms = self._request_timeout_ms + self._max_wait_ms
        call = Call(request, FetchResponse, timeout_ms, highest, True, on_done)
        self._cluster.network.submit(self._cluster.broker_address(leader_id), call)

    def _on_answer(
        self, call: Call[FetchResponse], states: list[PartitionState], asked: dict[TopicPartition, int | None]
    ) -> None:
        for state in states:
            state.in_flight = False
        error = call.error
        if error is None and call.answer().error_code != 0:
            error = error_for(call.answer().error_code)
        if error is not None:
            for state in states:
                self._on_error(state, error)
            return
        for topic in call.answer().responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id)
            for row in topic.partitions:
                state_or_none = self._fetcher.partitions.get(TopicPartition(name or "", row.partition_index))
                offset = None if state_or_none is None else asked.get(state_or_none.partition)
                if state_or_none is None or offset is None:
                    continue
                problem = self._fetcher.on_partition(state_or_none, offset, row)
                if problem is not None:
                    self._on_error(state_or_none, problem)

    def _on_error(self, state: PartitionState, error: ClientError) -> None:
        if is_out_of_range(error) and self._reset_policy != "none":
            self._fetcher.reset(state, _RESET[self._reset_policy])
        elif error.retriable:
            if error.refresh_metadata:
                self._stale_topics.add(state.partition.topic)
            self._back_off(state)
        elif is_out_of_range(error):
            sentence = f"Offset {state.position} of {state.partition} is out of range."
            self._problem = error_for(error.code, sentence)
        else:
            self._problem = error

    def _back_off(self, state: PartitionState) -> None:
        state.failures += 1
        state.not_before_ms = self._cluster.network.now_ms() + self._cluster.backoff.delay_ms(state.failures)

    def _until_retry_ms(self) -> int:
        now_ms = self._cluster.network.now_ms()
        waits = [state.not_before_ms - now_ms for state in self._fetcher.partitions.values()]
        return min((wait for wait in waits if wait > 0), default=1_000)
