"""Classic membership: JoinGroup, SyncGroup, Heartbeat, LeaveGroup as a state machine without socket, clock or thread.

    UNJOINED --prepared--> JOINING --response--> ASSIGNING (leader) --assigned--> SYNCING --response--> COMPLETING
       ^                      ^                      |  SYNCING (others) --------------^                     |
       |                      +---- a rebalance, a lost response: joins again -----------+               completed
       +---- unknown member, left, poll() too late: the partitions are lost -------------+------ STABLE <----+

Invariants: a member id is used once the coordinator gave it and until it says that it does not know it; heartbeats
are sent from the response to JoinGroup until the next JoinGroup; JoinGroup leaves only after the user's thread gave up
what the rebalance protocol wants given up (prepared), and again after the generation was lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
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
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.messages.sync_group_response import SyncGroupResponse
from moldau.protocol.primitives import Message

logger = logging.getLogger("moldau.client")

PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1
# The coordinator responds to JoinGroup at the end of the rebalance timeout; the response needs some time too.
JOIN_LAPSE_MS = 5_000
REASON_LENGTH_MAX = 255

_COORDINATOR_ELSEWHERE = (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


class State(Enum):
    UNJOINED = "unjoined"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    COMPLETING = "completing"
    STABLE = "stable"


_BEATING = (State.ASSIGNING, State.SYNCING, State.COMPLETING, State.STABLE)


# State to the states that may follow it.
SUCCESSORS: Final = {
    State.UNJOINED: (State.UNJOINED, State.JOINING),
    State.JOINING: (State.UNJOINED, State.JOINING, State.ASSIGNING, State.SYNCING),
    State.ASSIGNING: (State.UNJOINED, State.JOINING, State.SYNCING),
    State.SYNCING: (State.UNJOINED, State.JOINING, State.COMPLETING),
    State.COMPLETING: (State.UNJOINED, State.STABLE),
    State.STABLE: (State.UNJOINED, State.JOINING),
}


class ClassicMembership(Membership):
    """One member of a group of the classic protocol."""

    def __init__(
        self,
        settings: GroupSettings,
        backoff: Backoff,
        protocols: Callable[[], list[tuple[str, bytes]]],
    ) -> None:
        """protocols: the names of the assignors and what to tell the leader for each, as of now."""
        self._settings = settings
        self._backoff = backoff
        self._protocols = protocols
        self.state = State.UNJOINED
        self.member_id = ""
        self.generation_id = NO_GENERATION
        self.protocol_name = ""
        self.is_leader = False
        # ASSIGNING: the members to assign to, and whether they keep what they have (KIP-814).
        self.members: list[JoinGroupResponseMember] = []
        self.skip_assignment = False
        # COMPLETING: what the leader sent.
        self.assignment = b""
        self.rejoin_needed = True
        self._rejoin_reason = ""
        self._prepared = False
        self._to_sync: Mapping[str, bytes] = {}
        self._in_flight: Message | None = None
        self._heartbeat: Message | None = None
        self._leave: LeaveGroupRequest | None = None
        self._leave_in_flight: Message | None = None
        self._leave_is_urgent = False
        self._not_before_ms = 0
        self._failures = 0
        self._next_heartbeat_ms = 0
        self._polled_ms = 0

    # The user's side

    def on_poll(self, now_ms: int) -> bool:
        self._polled_ms = now_ms
        return False

    def duty(self) -> Duty | None:
        if self.state is State.COMPLETING:
            return Duty.COMPLETE
        if not self._prepared and self.rejoin_needed and self.state in (State.UNJOINED, State.STABLE):
            return Duty.PREPARE
        return None

    @property
    def is_lost(self) -> bool:
        """What was assigned belongs to others already: there is no generation under which it could be given up."""
        return self.generation_id == NO_GENERATION or not self.member_id

    def prepared(self, now_ms: int) -> None:
        """The user gave up what had to be given up: JoinGroup may leave."""
        self._prepared = True
        self._move_to(State.JOINING)
        self._not_before_ms = max(self._not_before_ms, now_ms)

    def completed(self, now_ms: int) -> None:
        """The user took the assignment over; another rebalance may have been asked for meanwhile."""
        if self.state is State.COMPLETING:
            self._move_to(State.STABLE)
            self._prepared = False

    def request_rejoin(self, reason: str) -> None:
        if not self.rejoin_needed:
            logger.info("Rejoining group %s: %s.", self._settings.group_id, reason)
        self.rejoin_needed = True
        self._rejoin_reason = reason

    def assigned(self, assignments: Mapping[str, bytes]) -> None:
        """The leader's assignor is done."""
        if self.state is State.ASSIGNING:
            self._to_sync = assignments
            self.members = []
            self._move_to(State.SYNCING)

    def assign_failed(self, error: ClientError, now_ms: int) -> None:
        """The leader's assignor raised: the user is told, and the group joined again by a later poll()."""
        self.problem = error
        self._back_to_joining(now_ms, "the assignor failed", pause=True)

    def _move_to(self, state: State) -> None:
        """The only place that changes the state."""
        assert state in SUCCESSORS[self.state], f"member {self.member_id} cannot go from {self.state} to {state}"
        self.state = state
        if self.meter is None:
            return
        if state is State.JOINING:
            self.meter.begin_rebalance()
        elif state in (State.STABLE, State.UNJOINED):
            self.meter.end_rebalance(failed=state is State.UNJOINED)

    # Requests

    def tick(self, now_ms: int) -> None:
        if self.state in _BEATING and now_ms - self._polled_ms > self._settings.max_poll_interval_ms:
            logger.warning(
                "poll() was not called for max.poll.interval.ms=%d: leaving group %s. Call poll() more often, "
                "or take fewer records at once (max.poll.records).",
                self._settings.max_poll_interval_ms,
                self._settings.group_id,
            )
            self.leave(now_ms, "consumer poll timeout has expired.")

    def next_request(self, now_ms: int) -> Message | None:
        if self._leave is not None:
            leave, self._leave = self._leave, None
            self._leave_in_flight = leave
            return leave
        if self.fatal is not None:
            return None
        if self._in_flight is None and self.state is State.JOINING and now_ms >= self._not_before_ms:
            self._in_flight = self._join_request()
            return self._in_flight
        if self._in_flight is None and self.state is State.SYNCING:
            self._in_flight = self._sync_request()
            return self._in_flight
        if self.state in _BEATING and self._heartbeat is None and now_ms >= self._next_heartbeat_ms:
            self._next_heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
            self._heartbeat = HeartbeatRequest(
                group_id=self._settings.group_id,
                generation_id=self.generation_id,
                member_id=self.member_id,
                group_instance_id=self._settings.instance_id,
            )
            return self._heartbeat
        return None

    def next_deadline_ms(self) -> int:
        if self._leave is not None:
            return 0
        if self.fatal is not None:
            return FOREVER_MS
        deadline_ms = FOREVER_MS
        if self._in_flight is None and self.state is State.JOINING:
            deadline_ms = self._not_before_ms
        if self._in_flight is None and self.state is State.SYNCING:
            return 0
        if self.state in _BEATING:
            deadline_ms = min(deadline_ms, self._polled_ms + self._settings.max_poll_interval_ms + 1)
            if self._heartbeat is None:
                deadline_ms = min(deadline_ms, self._next_heartbeat_ms)
        return deadline_ms

    def timeout_ms(self, request: Message, request_timeout_ms: int) -> int:
        if isinstance(request, JoinGroupRequest):
            return max(request_timeout_ms, self._settings.max_poll_interval_ms + JOIN_LAPSE_MS)
        if isinstance(request, SyncGroupRequest):
            return max(request_timeout_ms, self._settings.max_poll_interval_ms)
        if isinstance(request, HeartbeatRequest):
            # Without a response for so long the session is over anyway; another coordinator may know better.
            return min(request_timeout_ms, self._settings.session_timeout_ms)
        return request_timeout_ms

    def _join_request(self) -> JoinGroupRequest:
        settings = self._settings
        return JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self._protocols()],
            reason=self._rejoin_reason[:REASON_LENGTH_MAX],
        )

    def _sync_request(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data) for member, data in self._to_sync.items()
            ],
        )

    # Responses

    def on_response(self, request: Message, response: Message, now_ms: int) -> bool:
        if isinstance(response, HeartbeatResponse):
            return self._on_heartbeat(request, response.error_code, now_ms)
        if isinstance(response, LeaveGroupResponse):
            if request is self._leave_in_flight:
                self._leave_in_flight = None
            return True
        if request is not self._in_flight:
            return True
        self._in_flight = None
        if isinstance(response, JoinGroupResponse):
            return self._on_join(response, now_ms)
        assert isinstance(response, SyncGroupResponse)
        return self._on_sync(response, now_ms)

    def on_failure(self, request: Message, error: ClientError, now_ms: int) -> None:
        if request is self._heartbeat:
            self._heartbeat = None
            self._next_heartbeat_ms = min(self._next_heartbeat_ms, now_ms + self._backoff.delay_ms(1))
        elif request is self._leave_in_flight:
            self._leave_in_flight = None
        elif request is self._in_flight:
            self._in_flight = None
            if error.retriable:
                self._back_to_joining(now_ms, f"a request failed: {error.message}", pause=True)
            else:
                self._give_up(error)

    def _on_join(self, response: JoinGroupResponse, now_ms: int) -> bool:
        code = response.error_code
        if code == NONE:
            self._joined(response, now_ms)
        elif code == MEMBER_ID_REQUIRED:
            # KIP-394: the id is ours, the coordinator counts us as a member once we join with it.
            self.member_id = response.member_id
            self._not_before_ms = now_ms
        elif code == UNKNOWN_MEMBER_ID:
            self._reset(keep_member_id=False, reason="the coordinator does not know the member")
        elif code == REBALANCE_IN_PROGRESS:
            self._back_to_joining(now_ms, "the group is rebalancing", pause=False)
        elif code in (*_COORDINATOR_ELSEWHERE, COORDINATOR_LOAD_IN_PROGRESS):
            self._back_to_joining(now_ms, "the coordinator is not ready", pause=True)
        else:
            self._give_up(error_for(code))
        return code not in _COORDINATOR_ELSEWHERE

    def _joined(self, response: JoinGroupResponse, now_ms: int) -> None:
        if response.protocol_type not in (None, PROTOCOL_TYPE):
            sentence = f"The group {self._settings.group_id} is one of type {response.protocol_type}, not of consumers."
            self._give_up(error_for(INCONSISTENT_GROUP_PROTOCOL, sentence))
            return
        self._failures = 0
        self.generation_id = response.generation_id
        self.member_id = response.member_id
        self.protocol_name = response.protocol_name or ""
        self.is_leader = response.leader == response.member_id
        self._heartbeat = None
        self._next_heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
        self._to_sync = {}
        if self.is_leader:
            self.members = list(response.members)
            self.skip_assignment = response.skip_assignment
            self._move_to(State.ASSIGNING)
        else:
            self._move_to(State.SYNCING)
        logger.info(
            "Joined group %s as %s, generation %d%s.",
            self._settings.group_id,
            self.member_id,
            self.generation_id,
            ", its leader" if self.is_leader else "",
        )

    def _on_sync(self, response: SyncGroupResponse, now_ms: int) -> bool:
        code = response.error_code
        if code == NONE and (
            response.protocol_type not in (None, PROTOCOL_TYPE)
            or response.protocol_name not in (None, self.protocol_name)
        ):
            code = INCONSISTENT_GROUP_PROTOCOL
        if code == NONE:
            self.assignment = response.assignment
            self._move_to(State.COMPLETING)
            self.rejoin_needed = False
            self._rejoin_reason = ""
        elif code == REBALANCE_IN_PROGRESS:
            self._back_to_joining(now_ms, "the group began to rebalance again", pause=False)
        elif code == UNKNOWN_MEMBER_ID:
            self._reset(keep_member_id=False, reason="the coordinator does not know the member")
        elif code == ILLEGAL_GENERATION:
            self._reset(keep_member_id=True, reason="the generation is over")
        elif code in (*_COORDINATOR_ELSEWHERE, COORDINATOR_LOAD_IN_PROGRESS):
            self._back_to_joining(now_ms, "the coordinator is not ready", pause=True)
        else:
            self._give_up(error_for(code))
        return code not in _COORDINATOR_ELSEWHERE

    def _on_heartbeat(self, request: Message, code: int, now_ms: int) -> bool:
        if request is not self._heartbeat:
            return True  # of a generation that is over
        self._heartbeat = None
        if code == REBALANCE_IN_PROGRESS:
            if self.state in (State.STABLE, State.COMPLETING):
                self.request_rejoin("the group is rebalancing")
        elif code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
            keep = code == ILLEGAL_GENERATION
            self._reset(keep, "the generation is over" if keep else "the coordinator does not know the member")
        elif code in (*_COORDINATOR_ELSEWHERE, COORDINATOR_LOAD_IN_PROGRESS):
            self._next_heartbeat_ms = now_ms + self._backoff.delay_ms(1)
        elif code != NONE:
            self._give_up(error_for(code))
        return code not in _COORDINATOR_ELSEWHERE

    def _back_to_joining(self, now_ms: int, reason: str, pause: bool) -> None:
        """Joins again without asking the user's thread, which has given up what it had to already."""
        self.request_rejoin(reason)
        self._move_to(State.JOINING)
        self.members = []
        if pause:
            self._failures += 1
        self._not_before_ms = now_ms + (self._backoff.delay_ms(self._failures) if pause else 0)

    def _reset(self, keep_member_id: bool, reason: str) -> None:
        """The generation is lost, and with it every partition that the user still has."""
        self._forget_generation(keep_member_id)
        self.request_rejoin(reason)
        self._rejoin_reason = reason

    def _forget_generation(self, keep_member_id: bool) -> None:
        self._move_to(State.UNJOINED)
        self.generation_id = NO_GENERATION
        self.protocol_name = ""
        self.is_leader = False
        self.members = []
        self._in_flight = None
        self._heartbeat = None
        self._prepared = False
        self.rejoin_needed = True
        if not keep_member_id:
            self.member_id = ""

    def _give_up(self, error: ClientError) -> None:
        """Trying again would not help: the user decides, by calling poll() once more or not."""
        logger.error("Group %s: %s", self._settings.group_id, error)
        if error.code == FENCED_INSTANCE_ID:
            sentence = f"Another consumer has the group.instance.id {self._settings.instance_id} now."
            self.fatal = error_for(error.code, sentence)
        else:
            self.problem = error
        self._forget_generation(keep_member_id=error.code != FENCED_INSTANCE_ID)

    # Leaving

    def leave(self, now_ms: int, reason: str, remain: bool | None = None) -> None:
        is_static = self._settings.instance_id is not None
        stays = is_static if remain is None else remain
        # The response to JoinGroup may take as long as the slowest member, and the coordinator would read no further.
        self._leave_is_urgent = self._in_flight is not None
        if self.member_id and not stays and self.fatal is None:
            self._leave = LeaveGroupRequest(
                group_id=self._settings.group_id,
                members=[
                    MemberIdentity(
                        member_id=self.member_id,
                        group_instance_id=self._settings.instance_id,
                        reason=reason[:REASON_LENGTH_MAX],
                    )
                ],
            )
        self._forget_generation(keep_member_id=False)
        self._rejoin_reason = ""

    def is_urgent(self, request: Message) -> bool:
        return self._leave_is_urgent and isinstance(request, LeaveGroupRequest)

    @property
    def leaving(self) -> bool:
        return self._leave is not None or self._leave_in_flight is not None

    # Commits

    def metadata(self) -> ConsumerGroupMetadata:
        settings = self._settings
        return ConsumerGroupMetadata(settings.group_id, self.generation_id, self.member_id, settings.instance_id)

    def check_commit(self, last: bool = False) -> None:
        if self.fatal is not None:
            raise self.fatal
        if self.state in (State.STABLE, State.COMPLETING):
            return
        if last and self.state is State.JOINING and not self.is_lost:
            return  # the coordinator takes commits of the old generation until everybody has joined
        raise self._cannot_commit(UNKNOWN_MEMBER_ID)

    def on_commit_refused(self, code: int, generation_id: int) -> ClientError:
        current = generation_id == self.generation_id
        if code == FENCED_INSTANCE_ID and current:
            self._give_up(error_for(code))
            assert self.fatal is not None
            return self.fatal
        if code == REBALANCE_IN_PROGRESS:
            self.request_rejoin("a commit came in the middle of a rebalance")
            return _in_rebalance()
        if current and code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
            self._reset(code == ILLEGAL_GENERATION, "a commit was refused")
            return CommitFailedError(_KICKED_OUT, code)
        return self._cannot_commit(code)

    def _cannot_commit(self, code: int) -> ClientError:
        rebalancing = self.state in (State.JOINING, State.ASSIGNING, State.SYNCING)
        return _in_rebalance() if rebalancing else CommitFailedError(_KICKED_OUT, code)


_KICKED_OUT = (
    "The offsets were not committed: this consumer is not a member of the group any more, and its partitions belong to"
    " others. It may have taken longer than max.poll.interval.ms between two polls; take fewer records at once with"
    " max.poll.records, or allow more time."
)


def _in_rebalance() -> ClientError:
    return error_for(
        REBALANCE_IN_PROGRESS,
        "The offsets were not committed: the group is rebalancing. Call poll() until that is over, then commit again.",
    )
