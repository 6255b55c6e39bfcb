"""Membership of KIP-848: ConsumerGroupHeartbeat as a state machine without socket, clock or thread.

    UNSUBSCRIBED --poll--> JOINING --response--> STABLE <--> RECONCILING --reconciled--> ACKNOWLEDGING --sent--> STABLE
                              ^                    |
                              +-- lost() -- FENCED (the coordinator does not know the member or its epoch)
                              +-- lost() -- STALE  (poll() came too late: left meanwhile)
    any --leave--> LEAVING --sent--> UNSUBSCRIBED          any --error that stays--> FATAL

Invariants: one heartbeat is in flight at most; the coordinator learns that partitions were given up only after the
user's thread gave them up (reconciled); what is sent beside ids and epoch is what changed since the last heartbeat
that had a response, and everything after one that had none.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from moldau.client.connection.backoff import Backoff
from moldau.client.errors import ClientError, CommitFailedError, error_for
from moldau.client.group.membership import FOREVER_MS, Duty, Membership
from moldau.client.group.settings import GroupSettings
from moldau.client.results import ConsumerGroupMetadata
from moldau.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    NONE,
    NOT_COORDINATOR,
    STALE_MEMBER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
)
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from moldau.protocol.messages.consumer_group_heartbeat_response import Assignment as HeartbeatAssignment
from moldau.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from moldau.protocol.primitives import Message

logger = logging.getLogger("moldau.client")

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
# A static member that comes back; its partitions wait for it (until the session ends).
LEAVE_FOR_A_WHILE_EPOCH = -2

# topic id -> partitions
Target = Mapping[bytes, frozenset[int]]

_COORDINATOR_ELSEWHERE = (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


class State(Enum):
    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    STABLE = "stable"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    FENCED = "fenced"
    STALE = "stale"
    LEAVING = "leaving"
    FATAL = "fatal"


_MEMBER = (State.STABLE, State.RECONCILING, State.ACKNOWLEDGING)
_BEATING = (*_MEMBER, State.JOINING, State.LEAVING)
_AT_ONCE = (State.JOINING, State.ACKNOWLEDGING, State.LEAVING)


# State to the states that may follow it.
SUCCESSORS: Final = {
    State.UNSUBSCRIBED: (State.UNSUBSCRIBED, State.JOINING, State.FATAL),
    State.JOINING: (State.STABLE, State.FENCED, State.LEAVING, State.UNSUBSCRIBED, State.FATAL),
    State.STABLE: (State.RECONCILING, State.FENCED, State.LEAVING, State.UNSUBSCRIBED, State.FATAL),
    State.RECONCILING: (State.ACKNOWLEDGING, State.FENCED, State.LEAVING, State.UNSUBSCRIBED, State.FATAL),
    State.ACKNOWLEDGING: (
        State.STABLE,
        State.RECONCILING,
        State.FENCED,
        State.LEAVING,
        State.UNSUBSCRIBED,
        State.FATAL,
    ),
    State.FENCED: (State.JOINING, State.UNSUBSCRIBED),
    State.STALE: (State.JOINING, State.UNSUBSCRIBED),
    State.LEAVING: (State.UNSUBSCRIBED, State.STALE, State.FATAL),
    State.FATAL: (),
}


class ConsumerMembership(Membership):
    """One member of a group of the consumer protocol."""

    def __init__(self, settings: GroupSettings, backoff: Backoff, member_id: str) -> None:
        """member_id: made by the member itself, for as long as it lives."""
        self._settings = settings
        self._backoff = backoff
        self.member_id = member_id
        self.state = State.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.target: Target = {}
        self.current: Target = {}
        self._topics: list[str] | None = None
        self._regex: str | None = None
        # What was told once has to be taken back: null means unchanged.
        self._had_topics = False
        self._had_regex = False
        # Whether the coordinator may know this member.
        self._announced = False
        # The first target is to be taken over even if it assigns nothing.
        self._first_target = False
        self._sent: dict[str, object] = {}
        self._in_flight: Message | None = None
        self._leave_epoch = LEAVE_EPOCH
        self._after_leaving = State.UNSUBSCRIBED
        self._leave_in_flight: Message | None = None
        self._interval_ms = 0
        self._next_heartbeat_ms = 0
        self._not_before_ms = 0
        self._failures = 0
        self._polled_ms = 0

    # The user's side

    def subscribe(self, topics: Iterable[str] | None, regex: str | None) -> None:
        """The subscription is another one now; the next heartbeat says so, and leaves at once."""
        self._topics = None if topics is None else sorted(topics)
        self._regex = regex
        self._had_topics = self._had_topics or topics is not None
        self._had_regex = self._had_regex or regex is not None
        self._next_heartbeat_ms = 0

    def on_poll(self, now_ms: int) -> bool:
        self._polled_ms = now_ms
        if self.state is not State.UNSUBSCRIBED or (self._topics is None and self._regex is None):
            return False
        self._join()
        return True

    def duty(self) -> Duty | None:
        if self.state in (State.FENCED, State.STALE):
            return Duty.LOST
        if self.state is State.FATAL and self.current:
            return Duty.LOST
        return Duty.RECONCILE if self.state is State.RECONCILING else None

    def reconciled(self, current: Target, now_ms: int) -> None:
        """The user's partitions are these now; the target may contain more that cannot be had yet."""
        self.current = {topic_id: items for topic_id, items in current.items() if items}
        self._first_target = False
        if self.state is State.RECONCILING:
            self._move_to(State.ACKNOWLEDGING)

    def lost(self, now_ms: int) -> None:
        """The user knows that all partitions are lost."""
        self.current = {}
        if self.state in (State.FENCED, State.STALE):
            self._join()

    def _join(self) -> None:
        self._move_to(State.JOINING)
        self.epoch = JOIN_EPOCH
        self.target = {}
        self.current = {}
        self._first_target = True
        self._sent = {}

    def _move_to(self, state: State) -> None:
        """The only place that changes the state."""
        assert state in SUCCESSORS[self.state], f"member {self.member_id} cannot go from {self.state} to {state}"
        self.state = state
        if self.meter is None:
            return
        if state is State.RECONCILING:
            self.meter.begin_rebalance()
        else:
            self.meter.end_rebalance(failed=state not in (State.ACKNOWLEDGING, State.STABLE))

    # Requests

    def tick(self, now_ms: int) -> None:
        if self.state in _MEMBER and now_ms - self._polled_ms > self._settings.max_poll_interval_ms:
            logger.warning(
                "poll() was not called for max.poll.interval.ms=%d: leaving group %s. Call poll() more often, "
                "or take fewer records at once (max.poll.records).",
                self._settings.max_poll_interval_ms,
                self._settings.group_id,
            )
            self._start_leaving(State.STALE, None)

    def next_request(self, now_ms: int) -> Message | None:
        if self.state is State.LEAVING:
            return self._leave_request()
        if self._in_flight is not None or self.state not in _BEATING or now_ms < self._deadline_ms():
            return None
        self._next_heartbeat_ms = now_ms + self._interval_ms
        self._in_flight = self._heartbeat_request()
        self._announced = True
        if self.state is State.ACKNOWLEDGING:
            self._move_to(State.STABLE if self._is_settled() else State.RECONCILING)
        return self._in_flight

    def next_deadline_ms(self) -> int:
        if self.state is State.LEAVING:
            return 0
        deadline_ms = FOREVER_MS
        if self.state in _BEATING and self._in_flight is None:
            deadline_ms = self._deadline_ms()
        if self.state in _MEMBER:
            deadline_ms = min(deadline_ms, self._polled_ms + self._settings.max_poll_interval_ms + 1)
        return deadline_ms

    def timeout_ms(self, request: Message, request_timeout_ms: int) -> int:
        return request_timeout_ms

    def _deadline_ms(self) -> int:
        due_ms = 0 if self.state in _AT_ONCE else self._next_heartbeat_ms
        return max(due_ms, self._not_before_ms)

    def _is_settled(self) -> bool:
        return self.current == self.target and not self._first_target

    def _heartbeat_request(self) -> ConsumerGroupHeartbeatRequest:
        settings = self._settings
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=settings.instance_id,
        )
        if self.epoch == JOIN_EPOCH:
            request.rack_id = settings.rack
        if self._take_changed("rebalance_timeout_ms", settings.max_poll_interval_ms):
            request.rebalance_timeout_ms = settings.max_poll_interval_ms
        if self._had_topics and self._take_changed("topics", self._topics):
            request.subscribed_topic_names = list(self._topics or ())
        if self._had_regex and self._take_changed("regex", self._regex):
            request.subscribed_topic_regex = self._regex or ""
        if settings.remote_assignor is not None and self._take_changed("assignor", settings.remote_assignor):
            request.server_assignor = settings.remote_assignor
        if self._take_changed("current", self.current):
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id, partitions=sorted(items))
                for topic_id, items in sorted(self.current.items())
            ]
        return request

    def _take_changed(self, field: str, value: object) -> bool:
        if field in self._sent and self._sent[field] == value:
            return False
        self._sent[field] = value
        return True

    # Responses

    def on_response(self, request: Message, response: Message, now_ms: int) -> bool:
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        if request is self._leave_in_flight:
            self._leave_in_flight = None
            return True
        if request is not self._in_flight:
            return True
        self._in_flight = None
        if response.error_code != NONE:
            return self._on_error(response.error_code, response.error_message, now_ms)
        self._failures = 0
        self._not_before_ms = 0
        if self.state not in _BEATING or self.state is State.LEAVING:
            return True
        self._interval_ms = response.heartbeat_interval_ms
        self._next_heartbeat_ms = now_ms + response.heartbeat_interval_ms
        if self.state is State.JOINING:
            logger.info(
                "Joined group %s as %s, epoch %d.", self._settings.group_id, self.member_id, response.member_epoch
            )
            self._move_to(State.STABLE)
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self._on_target(response.assignment)
        return True

    def _on_target(self, assignment: HeartbeatAssignment) -> None:
        self.target = {row.topic_id: frozenset(row.partitions) for row in assignment.topic_partitions if row.partitions}
        if self.state is State.STABLE and not self._is_settled():
            self._move_to(State.RECONCILING)

    def _on_error(self, code: int, message: str | None, now_ms: int) -> bool:
        self._sent = {}
        if code in (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH):
            self._fence(code)
        elif code in (*_COORDINATOR_ELSEWHERE, COORDINATOR_LOAD_IN_PROGRESS):
            self._pause(now_ms)
        elif code == TOPIC_AUTHORIZATION_FAILED:
            self.problem = error_for(code, message)
            self._pause(now_ms, max(self._interval_ms, 1_000))
        else:
            self._fail(error_for(code, message))
        return code not in _COORDINATOR_ELSEWHERE

    def on_failure(self, request: Message, error: ClientError, now_ms: int) -> None:
        if request is self._leave_in_flight:
            self._leave_in_flight = None
        if request is not self._in_flight:
            return
        self._in_flight = None
        self._sent = {}
        if error.code == UNSUPPORTED_VERSION:
            self._fail(error)
        elif error.retriable:
            self._pause(now_ms)
        else:
            self._fail(error)

    def _pause(self, now_ms: int, pause_ms: int | None = None) -> None:
        self._failures += 1
        self._not_before_ms = now_ms + (self._backoff.delay_ms(self._failures) if pause_ms is None else pause_ms)
        self._next_heartbeat_ms = min(self._next_heartbeat_ms, self._not_before_ms)

    def _fence(self, code: int) -> None:
        if self.state in (State.LEAVING, State.UNSUBSCRIBED, State.STALE):
            return
        logger.info("Group %s fenced member %s; rejoining.", self._settings.group_id, self.member_id)
        self._move_to(State.FENCED)
        self.epoch = JOIN_EPOCH

    def _fail(self, error: ClientError) -> None:
        if error.code in (UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID) and not error.message:
            error = error_for(error.code)
        logger.error("Group %s: %s", self._settings.group_id, error)
        self.fatal = error
        self._move_to(State.FATAL)
        self.epoch = JOIN_EPOCH

    # Leaving

    def leave(self, now_ms: int, reason: str, remain: bool | None = None) -> None:
        self._topics = None
        self._regex = None
        if self.state in (*_MEMBER, State.JOINING):
            self._start_leaving(State.UNSUBSCRIBED, remain)
        elif self.state is not State.FATAL:
            self._move_to(State.UNSUBSCRIBED)
        self.target = {}
        self.current = {}

    def _start_leaving(self, after: State, remain: bool | None) -> None:
        """Static members leave for a while unless told otherwise; a dynamic one that is to remain just goes silent."""
        is_static = self._settings.instance_id is not None
        self._after_leaving = after
        self._leave_epoch = LEAVE_FOR_A_WHILE_EPOCH if is_static and remain is not False else LEAVE_EPOCH
        silent = remain is True and not is_static
        self._move_to(State.LEAVING if self._announced and not silent else after)

    def _leave_request(self) -> Message:
        self._move_to(self._after_leaving)
        self.epoch = self._leave_epoch
        self._announced = False
        self._in_flight = None
        self._leave_in_flight = ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=self._leave_epoch,
            instance_id=self._settings.instance_id,
        )
        return self._leave_in_flight

    @property
    def leaving(self) -> bool:
        return self.state is State.LEAVING or self._leave_in_flight is not None

    # Commits

    def metadata(self) -> ConsumerGroupMetadata:
        epoch = self.epoch if self.epoch > 0 else -1
        return ConsumerGroupMetadata(self._settings.group_id, epoch, self.member_id, self._settings.instance_id)

    def check_commit(self, last: bool = False) -> None:
        if self.fatal is not None:
            raise self.fatal
        if self.state not in _MEMBER:
            raise CommitFailedError(_NO_MEMBER)

    def on_commit_refused(self, code: int, generation_id: int) -> ClientError:
        """STALE_MEMBER_EPOCH may pass: the next heartbeat brings the epoch that the coordinator knows."""
        if code == STALE_MEMBER_EPOCH and self.state in _MEMBER:
            return error_for(code)
        return CommitFailedError(_NO_MEMBER, code)


_NO_MEMBER = (
    "The offsets were not committed: this consumer is not a member of the group (any more). It may have taken longer"
    " than max.poll.interval.ms between two polls; take fewer records at once with max.poll.records, or allow more"
    " time."
)
