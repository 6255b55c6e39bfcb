"""The classic membership, request by request: every state, every error, on a clock that the test holds."""

from __future__ import annotations

import pytest

from moldau.client.connection.backoff import Backoff
from moldau.client.errors import ClientError, CommitFailedError, FencedInstanceIdError, NetworkError
from moldau.client.group.classic import ClassicMembership, State
from moldau.client.group.membership import FOREVER_MS, Duty
from moldau.client.group.settings import GroupSettings
from moldau.protocol import errors as codes
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.messages.sync_group_response import SyncGroupResponse
from moldau.protocol.primitives import Message


class Driver:
    """Plays coordinator and user."""

    def __init__(self, **more: object) -> None:
        self.settings = GroupSettings("g", **more)  # type: ignore[arg-type]
        self.membership = ClassicMembership(
            self.settings, Backoff(100, 1000, lambda: 0.5), lambda: [("range", b"metadata")]
        )
        self.now_ms = 1_000
        self.membership.on_poll(self.now_ms)

    def request(self, kind: type[Message]) -> Message:
        """The next request, which has to be of this kind."""
        found = self.membership.next_request(self.now_ms)
        assert isinstance(found, kind), found
        return found

    def nothing(self) -> None:
        assert self.membership.next_request(self.now_ms) is None

    def answer(self, request: Message, answer: Message) -> bool:
        return self.membership.on_response(request, answer, self.now_ms)

    def sleep(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.membership.tick(self.now_ms)

    def join(self, leader: bool = False, generation: int = 1) -> None:
        """From the duty to prepare to the answer to JoinGroup."""
        assert self.membership.duty() is Duty.PREPARE
        self.membership.prepared(self.now_ms)
        request = self.request(JoinGroupRequest)
        self.answer(request, joined(leader, generation))

    def sync(self) -> None:
        self.answer(self.request(SyncGroupRequest), SyncGroupResponse(assignment=b"mine"))
        assert self.membership.duty() is Duty.COMPLETE
        self.membership.completed(self.now_ms)

    def heartbeat(self, code: int) -> bool:
        self.sleep(self.settings.heartbeat_interval_ms)
        self.membership.on_poll(self.now_ms)
        return self.answer(self.request(HeartbeatRequest), HeartbeatResponse(error_code=code))


def joined(leader: bool = False, generation: int = 1) -> JoinGroupResponse:
    members = [JoinGroupResponseMember(member_id="me", metadata=b"x"), JoinGroupResponseMember(member_id="you")]
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        leader="me" if leader else "you",
        member_id="me",
        members=members if leader else [],
    )


def stable(**more: object) -> Driver:
    driver = Driver(**more)
    driver.join()
    driver.sync()
    assert driver.membership.state is State.STABLE and driver.membership.duty() is None
    return driver


def test_nothing_is_sent_before_the_user_is_prepared() -> None:
    driver = Driver()
    driver.nothing()
    assert driver.membership.next_deadline_ms() == FOREVER_MS


def test_the_member_id_is_asked_for_first() -> None:
    """KIP-394: the first JoinGroup gets an id, the second one joins with it."""
    driver = Driver(instance_id=None, session_timeout_ms=7_000, max_poll_interval_ms=9_000)
    driver.membership.prepared(driver.now_ms)
    request = driver.request(JoinGroupRequest)
    assert isinstance(request, JoinGroupRequest)
    assert (request.member_id, request.session_timeout_ms, request.rebalance_timeout_ms) == ("", 7_000, 9_000)
    assert [(row.name, row.metadata) for row in request.protocols] == [("range", b"metadata")]
    driver.nothing()
    driver.answer(request, JoinGroupResponse(error_code=codes.MEMBER_ID_REQUIRED, member_id="me"))
    again = driver.request(JoinGroupRequest)
    assert isinstance(again, JoinGroupRequest) and again.member_id == "me"
    driver.answer(again, joined())
    assert driver.membership.state is State.SYNCING


def test_a_follower_syncs_with_nothing_and_the_leader_with_assignments() -> None:
    follower = Driver()
    follower.join()
    request = follower.request(SyncGroupRequest)
    assert isinstance(request, SyncGroupRequest)
    assert (request.generation_id, request.member_id, request.assignments) == (1, "me", [])
    leader = Driver()
    leader.join(leader=True)
    assert leader.membership.state is State.ASSIGNING and len(leader.membership.members) == 2
    leader.nothing()
    leader.membership.assigned({"me": b"a", "you": b"b"})
    request = leader.request(SyncGroupRequest)
    assert isinstance(request, SyncGroupRequest)
    assert {row.member_id: row.assignment for row in request.assignments} == {"me": b"a", "you": b"b"}


def test_heartbeats_are_sent_in_time_and_one_at_a_time() -> None:
    driver = stable(heartbeat_interval_ms=3_000)
    driver.nothing()
    assert driver.membership.next_deadline_ms() == driver.now_ms + 3_000
    driver.sleep(3_000)
    first = driver.request(HeartbeatRequest)
    driver.sleep(3_000)
    driver.nothing()
    driver.answer(first, HeartbeatResponse())
    driver.request(HeartbeatRequest)


def test_a_rebalance_is_joined_once_the_user_is_prepared() -> None:
    driver = stable()
    driver.heartbeat(codes.REBALANCE_IN_PROGRESS)
    assert driver.membership.state is State.STABLE and driver.membership.duty() is Duty.PREPARE
    assert not driver.membership.is_lost
    # Heartbeats go on until then, and offsets can still be committed.
    driver.sleep(3_000)
    driver.request(HeartbeatRequest)
    driver.membership.check_commit()
    driver.join(generation=2)
    driver.sync()
    assert driver.membership.metadata()[1:3] == (2, "me")


def test_no_heartbeats_while_joining() -> None:
    driver = stable()
    driver.membership.request_rejoin("test")
    driver.membership.prepared(driver.now_ms)
    driver.request(JoinGroupRequest)
    driver.sleep(60_000)
    driver.nothing()


def test_a_rebalance_that_begins_while_syncing_is_joined_at_once() -> None:
    driver = Driver()
    driver.join()
    request = driver.request(SyncGroupRequest)
    driver.answer(request, SyncGroupResponse(error_code=codes.REBALANCE_IN_PROGRESS))
    driver.request(JoinGroupRequest)


@pytest.mark.parametrize(("code", "member_id"), [(codes.UNKNOWN_MEMBER_ID, ""), (codes.ILLEGAL_GENERATION, "me")])
def test_a_generation_that_is_over_loses_the_partitions(code: int, member_id: str) -> None:
    for driver in (stable(), stable()):
        driver.heartbeat(code)
        assert driver.membership.duty() is Duty.PREPARE and driver.membership.is_lost
        assert driver.membership.metadata()[1:3] == (-1, member_id)
        with pytest.raises(CommitFailedError):
            driver.membership.check_commit()
        driver.join()
    driver = Driver()
    driver.join()
    driver.answer(driver.request(SyncGroupRequest), SyncGroupResponse(error_code=code))
    assert driver.membership.is_lost and driver.membership.member_id == member_id


def test_an_unknown_member_joins_as_a_new_one() -> None:
    driver = stable()
    driver.membership.request_rejoin("test")
    driver.membership.prepared(driver.now_ms)
    driver.answer(driver.request(JoinGroupRequest), JoinGroupResponse(error_code=codes.UNKNOWN_MEMBER_ID))
    # What the user still has is lost, so the user's thread has to be prepared once more.
    assert driver.membership.duty() is Duty.PREPARE and driver.membership.is_lost
    driver.join()


@pytest.mark.parametrize("code", [codes.NOT_COORDINATOR, codes.COORDINATOR_NOT_AVAILABLE])
def test_another_coordinator_is_looked_for(code: int) -> None:
    driver = Driver()
    driver.membership.prepared(driver.now_ms)
    assert not driver.answer(driver.request(JoinGroupRequest), JoinGroupResponse(error_code=code))
    driver.nothing()
    driver.sleep(100)
    assert driver.answer(driver.request(JoinGroupRequest), joined())
    assert not driver.answer(driver.request(SyncGroupRequest), SyncGroupResponse(error_code=code))
    driver.sleep(100)
    driver.request(JoinGroupRequest)
    assert not stable().heartbeat(code)


def test_a_coordinator_that_loads_is_asked_again() -> None:
    driver = Driver()
    driver.membership.prepared(driver.now_ms)
    loading = JoinGroupResponse(error_code=codes.COORDINATOR_LOAD_IN_PROGRESS)
    for pause_ms in (100, 200, 400):
        assert driver.answer(driver.request(JoinGroupRequest), loading)
        driver.sleep(pause_ms - 1)
        driver.nothing()
        driver.sleep(1)
    driver.request(JoinGroupRequest)


def test_lost_answers_are_made_up_for() -> None:
    driver = Driver()
    driver.membership.prepared(driver.now_ms)
    driver.membership.on_failure(driver.request(JoinGroupRequest), NetworkError("lost"), driver.now_ms)
    driver.sleep(100)
    driver.answer(driver.request(JoinGroupRequest), joined())
    driver.membership.on_failure(driver.request(SyncGroupRequest), NetworkError("lost"), driver.now_ms)
    driver.sleep(200)
    again = driver.request(JoinGroupRequest)
    assert isinstance(again, JoinGroupRequest) and again.member_id == "me"
    driver = stable(heartbeat_interval_ms=3_000)
    driver.sleep(3_000)
    driver.membership.on_failure(driver.request(HeartbeatRequest), NetworkError("lost"), driver.now_ms)
    driver.nothing()
    driver.sleep(100)
    driver.request(HeartbeatRequest)


def test_answers_of_a_time_gone_by_are_ignored() -> None:
    driver = stable()
    driver.sleep(3_000)
    old = driver.request(HeartbeatRequest)
    driver.membership.leave(driver.now_ms, "test")
    assert driver.answer(old, HeartbeatResponse(error_code=codes.FENCED_INSTANCE_ID))
    assert driver.membership.fatal is None


@pytest.mark.parametrize(
    "code",
    [
        codes.INCONSISTENT_GROUP_PROTOCOL,
        codes.INVALID_SESSION_TIMEOUT,
        codes.INVALID_GROUP_ID,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.GROUP_MAX_SIZE_REACHED,
    ],
)
def test_what_cannot_pass_is_the_users_to_know(code: int) -> None:
    """The next poll() raises it; the one after that may try again."""
    driver = Driver()
    driver.membership.prepared(driver.now_ms)
    driver.answer(driver.request(JoinGroupRequest), JoinGroupResponse(error_code=code))
    problem = driver.membership.problem
    assert isinstance(problem, ClientError) and problem.code == code
    driver.nothing()
    assert driver.membership.duty() is Duty.PREPARE


def test_a_group_of_another_type_is_refused() -> None:
    driver = Driver()
    driver.membership.prepared(driver.now_ms)
    answer = joined()
    answer.protocol_type = "connect"
    driver.answer(driver.request(JoinGroupRequest), answer)
    assert driver.membership.problem is not None and "connect" in driver.membership.problem.message


def test_a_fenced_instance_is_the_end() -> None:
    driver = stable(instance_id="i")
    driver.heartbeat(codes.FENCED_INSTANCE_ID)
    assert isinstance(driver.membership.fatal, FencedInstanceIdError)
    driver.nothing()
    with pytest.raises(FencedInstanceIdError):
        driver.membership.check_commit()
    driver.membership.leave(driver.now_ms, "test")
    driver.nothing()


def test_who_does_not_poll_leaves() -> None:
    driver = stable(max_poll_interval_ms=10_000)
    driver.sleep(10_000)
    assert driver.membership.state is State.STABLE
    driver.sleep(1)
    request = driver.request(LeaveGroupRequest)
    assert isinstance(request, LeaveGroupRequest)
    assert [(row.member_id, row.reason) for row in request.members] == [("me", "consumer poll timeout has expired.")]
    driver.nothing()
    assert driver.membership.duty() is Duty.PREPARE and driver.membership.is_lost
    driver.answer(request, LeaveGroupResponse())
    assert not driver.membership.leaving


def test_static_members_stay_unless_told_otherwise() -> None:
    driver = stable(instance_id="i")
    driver.membership.leave(driver.now_ms, "bye")
    driver.nothing()
    driver = stable(instance_id="i")
    driver.membership.leave(driver.now_ms, "bye", remain=False)
    request = driver.request(LeaveGroupRequest)
    assert isinstance(request, LeaveGroupRequest) and request.members[0].group_instance_id == "i"
    driver = stable()
    driver.membership.leave(driver.now_ms, "bye", remain=True)
    driver.nothing()


def test_who_leaves_does_not_wait_for_the_others_to_join() -> None:
    driver = stable()
    driver.membership.request_rejoin("test")
    driver.membership.prepared(driver.now_ms)
    driver.request(JoinGroupRequest)
    driver.membership.leave(driver.now_ms, "bye")
    assert driver.membership.is_urgent(driver.request(LeaveGroupRequest))
    driver = stable()
    driver.membership.leave(driver.now_ms, "bye")
    assert not driver.membership.is_urgent(driver.request(LeaveGroupRequest))


def test_requests_wait_as_long_as_the_coordinator_may() -> None:
    driver = Driver(max_poll_interval_ms=300_000, session_timeout_ms=10_000)
    timeout_ms = driver.membership.timeout_ms
    assert timeout_ms(JoinGroupRequest(), 30_000) == 305_000
    assert timeout_ms(SyncGroupRequest(), 30_000) == 300_000
    assert timeout_ms(HeartbeatRequest(), 30_000) == 10_000
    assert timeout_ms(LeaveGroupRequest(), 30_000) == 30_000


def test_commits_that_are_refused() -> None:
    """By what the coordinator says and what this member knows, as Kafka's consumer tells it."""
    driver = stable()
    refused = driver.membership.on_commit_refused
    assert refused(codes.REBALANCE_IN_PROGRESS, 1).name == "REBALANCE_IN_PROGRESS"
    assert driver.membership.rejoin_needed and not driver.membership.is_lost
    assert isinstance(refused(codes.ILLEGAL_GENERATION, 1), CommitFailedError)
    assert driver.membership.is_lost
    # An answer to a commit of an earlier generation says nothing about this one.
    driver = stable()
    assert isinstance(refused(codes.UNKNOWN_MEMBER_ID, 0), CommitFailedError)
    assert not driver.membership.is_lost
    driver.membership.request_rejoin("test")
    driver.membership.prepared(driver.now_ms)
    assert driver.membership.on_commit_refused(codes.UNKNOWN_MEMBER_ID, 0).name == "REBALANCE_IN_PROGRESS"
    with pytest.raises(ClientError, match="rebalancing"):
        driver.membership.check_commit()


def test_a_leader_whose_assignor_fails_tells_the_user_and_tries_again() -> None:
    driver = Driver()
    driver.join(leader=True)
    driver.membership.assign_failed(NetworkError("no"), driver.now_ms)
    assert driver.membership.problem is not None
    driver.nothing()
    driver.sleep(100)
    driver.request(JoinGroupRequest)


def test_a_rejoin_that_is_asked_for_meanwhile_is_not_forgotten() -> None:
    driver = Driver()
    driver.join()
    driver.answer(driver.request(SyncGroupRequest), SyncGroupResponse(assignment=b""))
    assert driver.membership.duty() is Duty.COMPLETE
    driver.membership.request_rejoin("partitions were given up")
    driver.membership.completed(driver.now_ms)
    assert driver.membership.duty() is Duty.PREPARE
