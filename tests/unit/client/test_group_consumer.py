"""The membership of KIP-848, heartbeat by heartbeat: every state, every error, on a clock that the test holds."""

from __future__ import annotations

import pytest

from moldau.client.connection.backoff import Backoff
from moldau.client.errors import CommitFailedError, NetworkError, UnsupportedVersionError
from moldau.client.group.consumer import ConsumerMembership, State
from moldau.client.group.membership import FOREVER_MS, Duty
from moldau.client.group.settings import CONSUMER, GroupSettings
from moldau.protocol import errors as codes
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

T1, T2 = b"1" * 16, b"2" * 16


def answer(epoch: int, target: dict[bytes, list[int]] | None = None, code: int = 0) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if target is not None:
        rows = [TopicPartitions(topic_id=topic_id, partitions=items) for topic_id, items in target.items()]
        assignment = Assignment(topic_partitions=rows)
    return ConsumerGroupHeartbeatResponse(
        error_code=code, member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=assignment
    )


class Driver:
    """Plays coordinator and user."""

    def __init__(self, **more: object) -> None:
        settings = GroupSettings("g", CONSUMER, **more)  # type: ignore[arg-type]
        self.membership = ConsumerMembership(settings, Backoff(100, 1000, lambda: 0.5), "me")
        self.now_ms = 1_000
        self.membership.subscribe({"t"}, None)
        self.membership.on_poll(self.now_ms)

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        found = self.membership.next_request(self.now_ms)
        assert isinstance(found, ConsumerGroupHeartbeatRequest)
        return found

    def nothing(self) -> None:
        assert self.membership.next_request(self.now_ms) is None

    def exchange(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatRequest:
        request = self.heartbeat()
        self.membership.on_response(request, response, self.now_ms)
        return request

    def sleep(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.membership.tick(self.now_ms)

    def next_interval(self) -> None:
        self.sleep(5_000)
        self.membership.on_poll(self.now_ms)


def stable(**more: object) -> Driver:
    """A member of epoch 3 with partition 0 of the first topic."""
    driver = Driver(**more)
    driver.exchange(answer(3, {T1: [0]}))
    driver.membership.reconciled(driver.membership.target, driver.now_ms)
    driver.exchange(answer(3))
    assert driver.membership.state is State.STABLE
    return driver


def sent(request: ConsumerGroupHeartbeatRequest) -> dict[str, object]:
    """What a heartbeat says beside ids and epoch."""
    found: dict[str, object] = {
        "topics": request.subscribed_topic_names,
        "regex": request.subscribed_topic_regex,
        "assignor": request.server_assignor,
        "rack": request.rack_id,
    }
    if request.rebalance_timeout_ms != -1:
        found["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.topic_partitions is not None:
        found["owned"] = {row.topic_id: row.partitions for row in request.topic_partitions}
    return {name: value for name, value in found.items() if value is not None}


def test_nothing_is_sent_without_a_subscription_or_a_poll() -> None:
    membership = ConsumerMembership(GroupSettings("g", CONSUMER), Backoff(100, 1000, lambda: 0.5), "me")
    membership.on_poll(0)
    assert membership.next_request(0) is None and membership.next_deadline_ms() == FOREVER_MS
    membership.subscribe({"t"}, None)
    assert membership.next_request(0) is None
    membership.on_poll(0)
    assert membership.next_request(0) is not None


def test_the_first_heartbeat_says_everything_and_the_next_ones_what_changed() -> None:
    driver = Driver(remote_assignor="range", rack="r", instance_id="i", max_poll_interval_ms=7_000)
    request = driver.exchange(answer(3, {T1: [1, 0]}))
    assert (request.member_id, request.member_epoch, request.instance_id) == ("me", 0, "i")
    assert sent(request) == {
        "topics": ["t"],
        "assignor": "range",
        "rack": "r",
        "rebalance_timeout_ms": 7_000,
        "owned": {},
    }
    driver.membership.reconciled(driver.membership.target, driver.now_ms)
    request = driver.exchange(answer(3))
    assert request.member_epoch == 3 and sent(request) == {"owned": {T1: [0, 1]}}
    driver.next_interval()
    assert sent(driver.exchange(answer(3))) == {}


def test_heartbeats_keep_the_interval_that_the_broker_named() -> None:
    driver = stable()
    driver.nothing()
    driver.sleep(4_999)
    driver.nothing()
    driver.sleep(1)
    first = driver.heartbeat()
    driver.sleep(60_000)
    driver.nothing()
    driver.membership.on_response(first, answer(3), driver.now_ms)
    assert driver.membership.next_deadline_ms() == driver.now_ms + 5_000


def test_a_target_is_reconciled_by_the_user_and_acknowledged_at_once() -> None:
    driver = stable()
    driver.next_interval()
    driver.exchange(answer(4, {T1: [0], T2: [5]}))
    assert driver.membership.state is State.RECONCILING and driver.membership.duty() is Duty.RECONCILE
    # Until then heartbeats go on and say nothing of it.
    driver.next_interval()
    assert sent(driver.exchange(answer(4))) == {}
    driver.membership.reconciled(driver.membership.target, driver.now_ms)
    request = driver.exchange(answer(4))
    assert request.member_epoch == 4 and sent(request) == {"owned": {T1: [0], T2: [5]}}
    assert driver.membership.state.name == "STABLE" and driver.membership.duty() is None


def test_what_cannot_be_had_yet_stays_to_be_reconciled() -> None:
    """A topic id whose name is not known yet: the rest is acknowledged first."""
    driver = stable()
    driver.next_interval()
    driver.exchange(answer(4, {T1: [1], T2: [5]}))
    driver.membership.reconciled({T1: frozenset([1])}, driver.now_ms)
    assert sent(driver.exchange(answer(4))) == {"owned": {T1: [1]}}
    assert driver.membership.duty() is Duty.RECONCILE


def test_the_first_target_is_taken_over_even_if_it_is_empty() -> None:
    driver = Driver()
    driver.exchange(answer(1, {}))
    assert driver.membership.duty() is Duty.RECONCILE


def test_the_same_target_again_is_no_news() -> None:
    driver = stable()
    driver.next_interval()
    driver.exchange(answer(5, {T1: [0]}))
    assert driver.membership.duty() is None and driver.membership.epoch == 5


def test_another_subscription_is_told_at_once_and_the_old_one_taken_back() -> None:
    driver = stable()
    driver.membership.subscribe(None, "a.*")
    request = driver.exchange(answer(4))
    assert sent(request) == {"topics": [], "regex": "a.*"}
    driver.membership.subscribe({"u"}, None)
    assert sent(driver.exchange(answer(5))) == {"topics": ["u"], "regex": ""}


def test_after_a_lost_answer_everything_is_said_again() -> None:
    driver = stable()
    driver.next_interval()
    driver.membership.on_failure(driver.heartbeat(), NetworkError("lost"), driver.now_ms)
    driver.nothing()
    driver.sleep(100)
    request = driver.exchange(answer(3))
    assert request.member_epoch == 3
    assert sent(request) == {"topics": ["t"], "rebalance_timeout_ms": 300_000, "owned": {T1: [0]}}


@pytest.mark.parametrize("code", [codes.NOT_COORDINATOR, codes.COORDINATOR_NOT_AVAILABLE])
def test_another_coordinator_is_looked_for(code: int) -> None:
    driver = stable()
    driver.next_interval()
    assert not driver.membership.on_response(driver.heartbeat(), answer(0, code=code), driver.now_ms)
    driver.sleep(100)
    assert driver.heartbeat().member_epoch == 3


def test_a_coordinator_that_loads_is_asked_again() -> None:
    driver = Driver()
    for pause_ms in (100, 200, 400):
        driver.exchange(answer(0, code=codes.COORDINATOR_LOAD_IN_PROGRESS))
        driver.sleep(pause_ms - 1)
        driver.nothing()
        driver.sleep(1)
    assert driver.heartbeat().member_epoch == 0


@pytest.mark.parametrize("code", [codes.FENCED_MEMBER_EPOCH, codes.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_partitions_and_joins_again(code: int) -> None:
    driver = stable()
    driver.next_interval()
    driver.exchange(answer(0, code=code))
    assert driver.membership.state is State.FENCED and driver.membership.duty() is Duty.LOST
    with pytest.raises(CommitFailedError):
        driver.membership.check_commit()
    driver.sleep(60_000)
    driver.nothing()
    driver.membership.lost(driver.now_ms)
    request = driver.heartbeat()
    assert (request.member_id, request.member_epoch, sent(request)["owned"]) == ("me", 0, {})


def test_a_member_that_is_fenced_while_it_reconciles_does_not_acknowledge() -> None:
    driver = stable()
    driver.next_interval()
    driver.exchange(answer(4, {T1: [1]}))
    driver.next_interval()
    driver.exchange(answer(0, code=codes.FENCED_MEMBER_EPOCH))
    driver.membership.reconciled({T1: frozenset([1])}, driver.now_ms)
    assert driver.membership.duty() is Duty.LOST
    driver.nothing()


@pytest.mark.parametrize(
    "code",
    [
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.UNRELEASED_INSTANCE_ID,
        codes.FENCED_INSTANCE_ID,
        codes.INVALID_REQUEST,
        codes.GROUP_MAX_SIZE_REACHED,
        codes.UNSUPPORTED_ASSIGNOR,
        codes.INVALID_REGULAR_EXPRESSION,
        codes.GROUP_ID_NOT_FOUND,
    ],
)
def test_errors_that_stay_end_the_membership(code: int) -> None:
    driver = stable()
    driver.next_interval()
    driver.exchange(answer(0, code=code))
    assert driver.membership.fatal is not None and driver.membership.fatal.code == code
    assert driver.membership.duty() is Duty.LOST
    driver.membership.lost(driver.now_ms)
    assert driver.membership.duty() is None
    driver.sleep(600_000)
    driver.nothing()
    driver.membership.leave(driver.now_ms, "bye")
    driver.nothing()


def test_a_broker_that_does_not_have_the_protocol_is_the_end() -> None:
    driver = Driver()
    driver.membership.on_failure(driver.heartbeat(), UnsupportedVersionError("no"), driver.now_ms)
    assert driver.membership.fatal is not None and driver.membership.fatal.name == "UNSUPPORTED_VERSION"


def test_topics_that_may_not_be_read_are_told_and_tried_again() -> None:
    driver = stable()
    driver.next_interval()
    driver.exchange(answer(0, code=codes.TOPIC_AUTHORIZATION_FAILED))
    assert driver.membership.problem is not None and driver.membership.fatal is None
    driver.nothing()
    driver.sleep(5_000)
    driver.heartbeat()


def test_who_does_not_poll_leaves_and_joins_again_with_the_next_poll() -> None:
    driver = stable(max_poll_interval_ms=10_000)
    driver.sleep(10_001)
    request = driver.heartbeat()
    assert request.member_epoch == -1 and sent(request) == {}
    assert driver.membership.state is State.STALE and driver.membership.leaving
    driver.nothing()
    driver.membership.on_response(request, answer(-1), driver.now_ms)
    assert driver.membership.duty() is Duty.LOST and not driver.membership.leaving
    driver.membership.on_poll(driver.now_ms)
    driver.membership.lost(driver.now_ms)
    assert driver.heartbeat().member_epoch == 0


@pytest.mark.parametrize(
    ("instance_id", "remain", "epoch"),
    [(None, None, -1), ("i", None, -2), ("i", False, -1), ("i", True, -2), (None, True, None)],
)
def test_how_members_leave(instance_id: str | None, remain: bool | None, epoch: int | None) -> None:
    driver = stable(instance_id=instance_id)
    driver.membership.leave(driver.now_ms, "bye", remain)
    request = driver.membership.next_request(driver.now_ms)
    assert (request.member_epoch if isinstance(request, ConsumerGroupHeartbeatRequest) else None) == epoch
    driver.sleep(60_000)
    driver.membership.on_poll(driver.now_ms)
    driver.nothing()


def test_a_member_whose_first_heartbeat_is_on_its_way_leaves_too() -> None:
    driver = Driver()
    first = driver.heartbeat()
    driver.membership.leave(driver.now_ms, "bye")
    assert driver.heartbeat().member_epoch == -1
    driver.membership.on_response(first, answer(3, {T1: [0]}), driver.now_ms)
    assert driver.membership.state is State.UNSUBSCRIBED and driver.membership.duty() is None
    silent = Driver()
    silent.membership.leave(silent.now_ms, "bye")
    silent.nothing()


def test_a_member_comes_back_under_its_id() -> None:
    driver = stable()
    driver.membership.leave(driver.now_ms, "bye")
    driver.heartbeat()
    driver.membership.subscribe({"t"}, None)
    driver.membership.on_poll(driver.now_ms)
    request = driver.heartbeat()
    assert (request.member_id, request.member_epoch) == ("me", 0)


def test_commits_that_are_refused() -> None:
    driver = stable()
    assert driver.membership.metadata()[1:3] == (3, "me")
    assert driver.membership.on_commit_refused(codes.STALE_MEMBER_EPOCH, 2).name == "STALE_MEMBER_EPOCH"
    assert isinstance(driver.membership.on_commit_refused(codes.UNKNOWN_MEMBER_ID, 3), CommitFailedError)
