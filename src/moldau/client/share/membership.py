"""Membership of a share group (KIP-932): a member of its own naming that heartbeats; knows no socket, clock or thread.

    UNSUBSCRIBED --poll--> JOINING --response--> STABLE
          ^                   ^  ^                 |
          |                   |  +---- fenced -----+   (unknown member or epoch: joins again at once, with the same id)
          |                   +--- poll -- STALE <-+   (poll() came too late: left meanwhile)
    any --leave--> LEAVING --sent--> UNSUBSCRIBED          any --error that stays--> FATAL

Invariants: one heartbeat is in flight at most; topics and rack are sent with epoch 0 and when they changed since the
last heartbeat that had a response. An assignment is taken over at once: nobody waits for a member to give partitions
up, because a record's lock, not the assignment, says who works on it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from moldau.client.connection.backoff import Backoff
from moldau.client.errors import ClientError, error_for
from moldau.client.group.membership import FOREVER_MS, Duty, Membership
from moldau.client.results import ConsumerGroupMetadata
from moldau.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    FENCED_MEMBER_EPOCH,
    NONE,
    NOT_COORDINATOR,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
)
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from moldau.protocol.primitives import Message

logger = logging.getLogger("moldau.client")

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

_COORDINATOR_ELSEWHERE = (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


class State(Enum):
    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    STABLE = "stable"
    STALE = "stale"
    LEAVING = "leaving"
    FATAL = "fatal"


_BEATING = (State.JOINING, State.STABLE)


# State to the states that may follow it.
SUCCESSORS: Final = {
    State.UNSUBSCRIBED: (State.UNSUBSCRIBED, State.JOINING),
    State.JOINING: (State.JOINING, State.STABLE, State.LEAVING, State.UNSUBSCRIBED, State.FATAL),
    State.STABLE: (State.JOINING, State.LEAVING, State.FATAL),
    State.STALE: (State.JOINING, State.UNSUBSCRIBED),
    State.LEAVING: (State.UNSUBSCRIBED, State.STALE, State.FATAL),
    State.FATAL: (),
}


class ShareMembership(Membership):
    """One member of a share group."""

    def __init__(
        self, group_id: str, member_id: str, backoff: Backoff, rack: str | None, max_poll_interval_ms: int
    ) -> None:
        self._group_id = group_id
        self.member_id = member_id
        self._backoff = backoff
        self._rack = rack
        self._max_poll_interval_ms = max_poll_interval_ms
        self.state = State.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        # topic id -> partitions
        self.assignment: Mapping[bytes, frozenset[int]] = {}
        self._topics: list[str] = []
        self._told_topics: list[str] | None = None
        # Whether the coordinator may know this member.
        self._announced = False
        self._in_flight: Message | None = None
        self._leave_in_flight: Message | None = None
        self._after_leaving = State.UNSUBSCRIBED
        self._interval_ms = 0
        self._next_heartbeat_ms = 0
        self._not_before_ms = 0
        self._failures = 0
        self._polled_ms = 0

    # The user's side

    def subscribe(self, topics: Iterable[str]) -> None:
        """The subscription is another one now; the next heartbeat says so, and leaves at once."""
        self._topics = sorted(topics)
        self._next_heartbeat_ms = 0

    def on_poll(self, now_ms: int) -> bool:
        self._polled_ms = now_ms
        if self.state not in (State.UNSUBSCRIBED, State.STALE) or not self._topics:
            return False
        self._join()
        return True

    def duty(self) -> Duty | None:
        return None

    def _join(self) -> None:
        self._move_to(State.JOINING)
        self.epoch = JOIN_EPOCH
        self.assignment = {}
        self._told_topics = None

    def _move_to(self, state: State) -> None:
        """The only place that changes the state."""
        assert state in SUCCESSORS[self.state], f"member {self.member_id} cannot go from {self.state} to {state}"
        self.state = state

    # Requests

    def tick(self, now_ms: int) -> None:
        if self.state is State.STABLE and now_ms - self._polled_ms > self._max_poll_interval_ms:
            logger.warning(
                "poll() was not called for max.poll.interval.ms=%d: leaving share group %s until it is. Take "
                "fewer records at once (max.poll.records) or allow more time.",
                self._max_poll_interval_ms,
                self._group_id,
            )
            self._start_leaving(State.STALE)

    def next_request(self, now_ms: int) -> Message | None:
        if self.state is State.LEAVING:
            return self._leave_request()
        if self._in_flight is not None or self.state not in _BEATING or now_ms < self._deadline_ms():
            return None
        self._next_heartbeat_ms = now_ms + self._interval_ms
        self._announced = True
        request = ShareGroupHeartbeatRequest(group_id=self._group_id, member_id=self.member_id, member_epoch=self.epoch)
        if self.epoch == JOIN_EPOCH:
            request.rack_id = self._rack
        if self._told_topics != self._topics:
            request.subscribed_topic_names = list(self._topics)
            self._told_topics = list(self._topics)
        self._in_flight = request
        return request

    def next_deadline_ms(self) -> int:
        if self.state is State.LEAVING:
            return 0
        deadline_ms = FOREVER_MS
        if self.state in _BEATING and self._in_flight is None:
            deadline_ms = self._deadline_ms()
        if self.state is State.STABLE:
            deadline_ms = min(deadline_ms, self._polled_ms + self._max_poll_interval_ms + 1)
        return deadline_ms

    def timeout_ms(self, request: Message, request_timeout_ms: int) -> int:
        return request_timeout_ms

    def _deadline_ms(self) -> int:
        due_ms = 0 if self.state is State.JOINING else self._next_heartbeat_ms
        return max(due_ms, self._not_before_ms)

    # Responses

    def on_response(self, request: Message, response: Message, now_ms: int) -> bool:
        assert isinstance(response, ShareGroupHeartbeatResponse)
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
        if self.state not in _BEATING:
            return True
        self._interval_ms = response.heartbeat_interval_ms
        if self._told_topics == self._topics:
            self._next_heartbeat_ms = now_ms + response.heartbeat_interval_ms
        if self.state is State.JOINING:
            logger.info("Joined share group %s as %s, epoch %d.", self._group_id, self.member_id, response.member_epoch)
            self._move_to(State.STABLE)
        self.epoch = response.member_epoch
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            self.assignment = {row.topic_id: frozenset(row.partitions) for row in rows if row.partitions}
            if self.meter is not None:
                # Nothing is to be given up for others: what the response says is so at once.
                self.meter.begin_rebalance()
                self.meter.end_rebalance()
        return True

    def _on_error(self, code: int, message: str | None, now_ms: int) -> bool:
        self._told_topics = None
        if code in (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH):
            if self.state in _BEATING:
                logger.info("Share group %s fenced member %s; rejoining.", self._group_id, self.member_id)
                self._join()
        elif code in _COORDINATOR_ELSEWHERE:
            # The coordinator is looked for; only one that keeps saying so makes for a pause.
            self._pause(now_ms, None if self._failures else 0)
        elif code == COORDINATOR_LOAD_IN_PROGRESS:
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
        self._told_topics = None
        if error.retriable:
            self._pause(now_ms)
        else:
            self._fail(error)

    def _pause(self, now_ms: int, pause_ms: int | None = None) -> None:
        self._failures += 1
        self._not_before_ms = now_ms + (self._backoff.delay_ms(self._failures) if pause_ms is None else pause_ms)
        self._next_heartbeat_ms = min(self._next_heartbeat_ms, self._not_before_ms)

    def _fail(self, error: ClientError) -> None:
        logger.error("Share group %s: %s", self._group_id, error)
        self.fatal = error
        self._move_to(State.FATAL)
        self.epoch = JOIN_EPOCH
        self.assignment = {}

    # Leaving

    def leave(self, now_ms: int, reason: str, remain: bool | None = None) -> None:
        self._topics = []
        if self.state in _BEATING:
            self._start_leaving(State.UNSUBSCRIBED)
        elif self.state is not State.FATAL:
            self._move_to(State.UNSUBSCRIBED)

    def _start_leaving(self, after: State) -> None:
        self._after_leaving = after
        self.assignment = {}
        self._move_to(State.LEAVING if self._announced else after)

    def _leave_request(self) -> Message:
        self._move_to(self._after_leaving)
        self.epoch = LEAVE_EPOCH
        self._announced = False
        self._in_flight = None
        self._leave_in_flight = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=LEAVE_EPOCH
        )
        return self._leave_in_flight

    @property
    def leaving(self) -> bool:
        return self.state is State.LEAVING or self._leave_in_flight is not None

    def metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self._group_id, self.epoch if self.epoch > 0 else -1, self.member_id)
