"""Finds out what a consumer must know before it can fetch: metadata, positions, and whether positions still hold.

Nothing here waits. Each question is asked in passing and its response taken whenever it comes, so that a poll() returns
in time however slow a broker is, and what it asked is not lost but there for the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from moldau.client import config as settings
from moldau.client.connection.cluster import Cluster
from moldau.client.connection.wire import Call
from moldau.client.errors import (
    ClientError,
    LogTruncationError,
    NetworkError,
    NoOffsetForPartitionError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from moldau.client.fetch.fetcher import NO_EPOCH, Fetcher, PartitionState
from moldau.client.offsets import (
    EARLIEST,
    LATEST,
    epochs_outcomes,
    epochs_request,
    offsets_outcomes,
    offsets_request,
)
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from moldau.protocol.primitives import Message

logger = logging.getLogger("moldau.client")

Response = TypeVar("Response", bound=Message)

# The same trouble is told again after so long.
TOLD_EVERY_MS = 30_000

_RESET = {"earliest": EARLIEST, "latest": LATEST}


def _is_to_reset(state: PartitionState) -> bool:
    """Nothing says where to begin: neither the user nor what the group committed."""
    return state.position is None and not state.awaiting_committed


def _check_positions(missing: list[TopicPartition]) -> None:
    if missing:
        names = ", ".join(str(item) for item in missing)
        sentence = f"There is no position for {names}: seek or commit first, or set auto.offset.reset."
        raise NoOffsetForPartitionError(sentence, tuple(missing))


class Positions:
    """The questions of one consumer that are open or on their way."""

    def __init__(
        self, cluster: Cluster, fetcher: Fetcher, reset_policy: str, isolation: int, request_timeout_ms: int
    ) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._reset_policy = reset_policy
        self._isolation = isolation
        self._request_timeout_ms = request_timeout_ms
        self.stale_topics: set[str] = set()
        # What the user has to be told.
        self.problem: ClientError | None = None
        # Why the last question has no response yet.
        self.last_error: ClientError | None = None
        self._asking_metadata = False
        self._asked: set[TopicPartition] = set()
        self._not_before_ms = 0
        self._failures = 0
        self._logged_error = ""
        self._logged_ms = 0

    def ask(self) -> None:
        """Asks whatever is to be known before more can be fetched and is not being asked already."""
        states = self._fetcher.partitions.values()
        self._ask_metadata(item.topic for item in self._fetcher.partitions)
        self._ask_offsets([state for state in states if _is_to_reset(state) and not state.paused])
        self._ask_epochs([state for state in states if self.is_unvalidated(state)])

    def ask_position(self, state: PartitionState) -> None:
        self._ask_metadata([state.partition.topic])
        if _is_to_reset(state):
            self._ask_offsets([state])

    def ask_stale_metadata(self) -> None:
        """Asks for the topics whose metadata turned out to be old, without a poll()."""
        self._ask_metadata(())

    def until_retry_ms(self) -> int:
        """How long until something that failed may be tried again."""
        now_ms = self._cluster.network.now_ms()
        waits = [state.not_before_ms - now_ms for state in self._fetcher.partitions.values()]
        waits.append(self._not_before_ms - now_ms)
        return min((wait for wait in waits if wait > 0), default=1_000)

    def on_error(self, state: PartitionState, error: ClientError) -> None:
        """What may pass by itself is tried again after a pause, the rest is the user's to know."""
        if not error.retriable:
            self.problem = error
            return
        self.last_error = error
        if error.refresh_metadata or isinstance(error, NetworkError | RequestTimeoutError):
            self.stale_topics.add(state.partition.topic)
        self._back_off(state)

    def want_leader(self, state: PartitionState) -> None:
        """No leader is known: metadata that is on its way may name it at once, what is there will not."""
        if not self._asking_metadata:
            self.stale_topics.add(state.partition.topic)
            self._back_off(state)

    def _back_off(self, state: PartitionState) -> None:
        state.failures += 1
        state.not_before_ms = self._cluster.network.now_ms() + self._cluster.backoff.delay_ms(state.failures)

    # Metadata

    def _ask_metadata(self, topics: Iterable[str]) -> None:
        if self._asking_metadata or self._cluster.network.now_ms() < self._not_before_ms:
            return
        asked = {topic for topic in topics if self._cluster.is_old(topic)} | self.stale_topics
        if not asked:
            return
        self._asking_metadata = True

        def on_done(error: ClientError | None) -> None:
            self._asking_metadata = False
            self._on_metadata(asked, error)

        self._cluster.start_refresh(sorted(asked), self._request_timeout_ms, on_done)

    def _on_metadata(self, asked: set[str], error: ClientError | None) -> None:
        missing = error is not None
        if error is None:
            self.stale_topics -= asked
            for topic in asked:
                error = self._cluster.topic_error(topic) or error
                found = self._cluster.topics.get(topic)
                missing = missing or found is None or any(row.leader < 0 for row in found.partitions.values())
        if error is not None and not error.retriable:
            self.problem = error
        elif error is not None:
            self.last_error = error
            self._log_error(error)
        self._failures = self._failures + 1 if missing else 0
        delay_ms = self._cluster.backoff.delay_ms(self._failures) if missing else 0
        self._not_before_ms = self._cluster.network.now_ms() + delay_ms

    def _log_error(self, error: ClientError) -> None:
        """Once in a while; of brokers that cannot be reached the cluster tells."""
        now_ms = self._cluster.network.now_ms()
        is_time = error.message != self._logged_error or now_ms - self._logged_ms >= TOLD_EVERY_MS
        if is_time and not isinstance(error, NetworkError):
            self._logged_error, self._logged_ms = error.message, now_ms
            logger.warning("%s The consumer goes on trying.", error)

    # Questions to leaders

    def _ask_leaders(
        self,
        states: Iterable[PartitionState],
        request_for: Callable[[list[PartitionState]], Message],
        response_class: type[Response],
        on_response: Callable[[list[PartitionState], Call[Response]], None],
    ) -> None:
        by_leader: dict[int, list[PartitionState]] = {}
        now_ms = self._cluster.network.now_ms()
        for state in states:
            leader = self._cluster.leader(state.partition)
            if leader is None:
                self.stale_topics.add(state.partition.topic)
            elif state.partition not in self._asked and state.not_before_ms <= now_ms:
                by_leader.setdefault(leader.leader, []).append(state)
        for broker_id, group in by_leader.items():
            self._ask_leader(broker_id, group, request_for(group), response_class, on_response)

    def _ask_leader(
        self,
        broker_id: int,
        states: list[PartitionState],
        request: Message,
        response_class: type[Response],
        on_response: Callable[[list[PartitionState], Call[Response]], None],
    ) -> None:
        partitions = {state.partition for state in states}
        self._asked |= partitions

        def on_done(call: Call[Response]) -> None:
            self._asked -= partitions
            # Partitions that are not assigned any more need no response.
            on_response([item for item in states if self._fetcher.partitions.get(item.partition) is item], call)

        call = Call(request, response_class, self._request_timeout_ms, None, True, on_done)
        self._cluster.submit(self._cluster.broker_address(broker_id), call)

    def _ask_offsets(self, states: list[PartitionState]) -> None:
        wanted: dict[TopicPartition, int] = {}
        if self._reset_policy == "none":
            _check_positions([state.partition for state in states if state.reset_to is None])
        for state in states:
            if state.reset_to is None:
                state.reset_to = self.reset_timestamp()
            wanted[state.partition] = state.reset_to

        def request_for(group: list[PartitionState]) -> Message:
            timestamps = {state.partition: wanted[state.partition] for state in group}
            return offsets_request(self._cluster, timestamps, self._isolation, self._request_timeout_ms)

        def on_response(group: list[PartitionState], call: Call[ListOffsetsResponse]) -> None:
            found: dict[TopicPartition, Outcome[OffsetAndTimestamp]] = {}
            if call.error is None:
                found = offsets_outcomes(call.response(), [state.partition for state in group])
            for state in group:
                # A seek since then has made the question void.
                if state.position is None and state.reset_to == wanted[state.partition]:
                    self._on_offset(state, found.get(state.partition) or Outcome(error=call.error))

        self._ask_leaders(states, request_for, ListOffsetsResponse, on_response)

    def _on_offset(self, state: PartitionState, outcome: Outcome[OffsetAndTimestamp]) -> None:
        if outcome.error is not None:
            self.on_error(state, outcome.error)
            return
        row = outcome.get()
        state.failures = 0
        if row.offset < 0:
            state.reset_to = LATEST  # no record is so young as the duration asks for
        else:
            self._fetcher.seek(state, row.offset, row.leader_epoch)

    def reset_timestamp(self) -> int:
        """What auto.offset.reset means now, for ListOffsets."""
        if self._reset_policy in _RESET:
            return _RESET[self._reset_policy]
        duration_ms = settings.duration_ms(self._reset_policy.removeprefix(settings.BY_DURATION))
        assert duration_ms is not None
        return time.time_ns() // 1_000_000 - duration_ms

    # KIP-320: a log may have been truncated under the reader when its leader changed

    def is_unvalidated(self, state: PartitionState) -> bool:
        leader = self._cluster.leader(state.partition)
        if leader is None or state.position is None or leader.leader_epoch <= state.validated_epoch:
            return False
        if state.position_epoch == NO_EPOCH:
            state.validated_epoch = leader.leader_epoch  # there is nothing to compare
            return False
        return True

    def any_unvalidated(self) -> bool:
        return any(self.is_unvalidated(state) for state in self._fetcher.partitions.values())

    def _ask_epochs(self, states: list[PartitionState]) -> None:
        asked: dict[TopicPartition, tuple[int | None, int, int]] = {}
        for state in states:
            leader = self._cluster.leader(state.partition)
            leader_epoch = NO_EPOCH if leader is None else leader.leader_epoch
            asked[state.partition] = (state.position, state.position_epoch, leader_epoch)

        def request_for(group: list[PartitionState]) -> Message:
            return epochs_request(self._cluster, {state.partition: state.position_epoch for state in group})

        def on_response(group: list[PartitionState], call: Call[OffsetForLeaderEpochResponse]) -> None:
            found: dict[TopicPartition, Outcome[tuple[int, int]]] = {}
            if call.error is None:
                found = epochs_outcomes(call.response(), [state.partition for state in group])
            for state in group:
                position, epoch, leader_epoch = asked[state.partition]
                if (state.position, state.position_epoch) != (position, epoch):
                    continue  # read or sought on since then
                if isinstance(call.error, UnsupportedVersionError):
                    state.validated_epoch = leader_epoch
                else:
                    self._on_end_of_epoch(state, leader_epoch, found.get(state.partition) or Outcome(error=call.error))

        self._ask_leaders(states, request_for, OffsetForLeaderEpochResponse, on_response)

    def _on_end_of_epoch(self, state: PartitionState, leader_epoch: int, outcome: Outcome[tuple[int, int]]) -> None:
        assert state.position is not None
        if outcome.error is not None:
            self.on_error(state, outcome.error)
            return
        epoch, end_offset = outcome.get()
        sentence = f"The log of {state.partition} was truncated to offset {end_offset}, before {state.position}."
        if epoch < 0 or end_offset < state.position:
            if self._reset_policy == "none":
                self.problem = LogTruncationError(sentence, state.partition, end_offset)
                return
            if epoch < 0 or end_offset < 0:
                self._fetcher.reset(state, self.reset_timestamp())
            else:
                logger.warning("%s Reading goes on from there.", sentence)
                self._fetcher.seek(state, end_offset, epoch)
        state.failures = 0
        state.validated_epoch = leader_epoch
