"""The membership of a share group, heartbeat by heartbeat: every state, every error, on a clock that the test holds."""

from __future__ import annotations

import pytest

from moldau.client.connection.backoff import Backoff
from moldau.client.errors import NetworkError, UnsupportedVersionError
from moldau.client.group.membership import FOREVER_MS
from moldau.client.share.membership import ShareMembership, State
from moldau.protocol import errors as codes
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

T1 = b"1" * 16


def answer(epoch: int, partitions: list[int] | None = None, code: int = 0) -> ShareGroupHeartbeatResponse:
    assignment = None
    if partitions is not None:
        assignment = Assignment(topic_partitions=[TopicPartitions(topic_id=T1, partitions=partitions)])
    return ShareGroupHeartbeatResponse(
        error_code=code, member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=assignment
    )


class Driver:
    """Plays coordinator and user."""

    def __init__(self) -> None:
        self.membership = ShareMembership("g", "me", Backoff(100, 1000, lambda: 0.5), "rack", 60_000)
        self.now_ms = 1_000
        self.membership.subscribe({"t"})
        self.membership.on_poll(self.now_ms)

    def heartbeat(self) -> ShareGroupHeartbeatRequest:
        found = self.membership.next_request(self.now_ms)
        assert isinstance(found, ShareGroupHeartbeatRequest)
        return found

    def nothing(self) -> None:
        assert self.membership.next_request(self.now_ms) is None

    def exchange(self, response: ShareGroupHeartbeatResponse) -> ShareGroupHeartbeatRequest:
        request = self.heartbeat()
        self.membership.on_response(request, response, self.now_ms)
        return request

    def sleep(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.membership.tick(self.now_ms)


def stable() -> Driver:
    driver = Driver()
    driver.exchange(answer(3, [0, 1]))
    assert driver.membership.state is State.STABLE and driver.membership.epoch == 3
    return driver


def test_nothing_is_sent_without_a_subscription_or_a_poll() -> None:
    membership = ShareMembership("g", "me", Backoff(100, 1000, lambda: 0.5), None, 60_000)
    membership.on_poll(0)
    assert membership.next_request(0) is None and membership.next_deadline_ms() == FOREVER_MS
    membership.subscribe({"t"})
    assert membership.next_request(0) is None
    assert membership.on_poll(0) and membership.next_request(0) is not None


def test_topics_and_rack_are_sent_with_the_first_heartbeat_and_topics_when_they_change() -> None:
    driver = Driver()
    first = driver.exchange(answer(1, []))
    assert (first.member_id, first.member_epoch, first.rack_id) == ("me", 0, "rack")
    assert first.subscribed_topic_names == ["t"]
    driver.nothing()
    driver.sleep(5_000)
    second = driver.exchange(answer(2, [0]))
    assert (second.member_epoch, second.rack_id, second.subscribed_topic_names) == (1, None, None)
    assert driver.membership.assignment == {T1: frozenset([0])}
    driver.membership.subscribe({"u", "t"})
    assert driver.heartbeat().subscribed_topic_names == ["t", "u"]


def test_a_subscription_that_changes_under_way_is_sent_at_once_behind_the_answer() -> None:
    driver = Driver()
    request = driver.heartbeat()
    driver.membership.subscribe({"u"})
    driver.nothing()
    driver.membership.on_response(request, answer(1, []), driver.now_ms)
    assert driver.heartbeat().subscribed_topic_names == ["u"]


def test_an_answer_without_assignment_leaves_it_and_one_that_is_empty_takes_it() -> None:
    driver = stable()
    driver.sleep(5_000)
    driver.exchange(answer(3))
    assert driver.membership.assignment == {T1: frozenset([0, 1])}
    driver.sleep(5_000)
    driver.exchange(answer(4, []))
    assert driver.membership.assignment == {}


@pytest.mark.parametrize("code", [codes.UNKNOWN_MEMBER_ID, codes.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_drops_its_partitions_and_joins_again_with_its_id(code: int) -> None:
    driver = stable()
    driver.sleep(5_000)
    driver.exchange(answer(0, code=code))
    assert driver.membership.assignment == {}
    again = driver.heartbeat()
    assert (again.member_id, again.member_epoch, again.subscribed_topic_names) == ("me", 0, ["t"])


@pytest.mark.parametrize("code", [codes.NOT_COORDINATOR, codes.COORDINATOR_NOT_AVAILABLE])
def test_another_coordinator_is_asked_at_once_and_with_a_pause_if_it_says_the_same(code: int) -> None:
    driver = stable()
    driver.sleep(5_000)
    request = driver.heartbeat()
    assert not driver.membership.on_response(request, answer(0, code=code), driver.now_ms)
    request = driver.heartbeat()
    assert request.member_epoch == 3 and request.subscribed_topic_names == ["t"]
    driver.membership.on_response(request, answer(0, code=code), driver.now_ms)
    driver.nothing()
    driver.sleep(300)
    driver.heartbeat()
    assert driver.membership.assignment == {T1: frozenset([0, 1])}


def test_a_coordinator_that_loads_is_asked_again_after_a_pause() -> None:
    driver = Driver()
    driver.exchange(answer(0, code=codes.COORDINATOR_LOAD_IN_PROGRESS))
    driver.nothing()
    driver.sleep(100)
    driver.heartbeat()


@pytest.mark.parametrize(
    "code",
    [
        codes.INVALID_REQUEST,
        codes.GROUP_MAX_SIZE_REACHED,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.UNSUPPORTED_VERSION,
        codes.GROUP_ID_NOT_FOUND,
    ],
)
def test_errors_that_stay_end_the_membership(code: int) -> None:
    driver = stable()
    driver.sleep(5_000)
    driver.exchange(answer(0, code=code))
    assert driver.membership.fatal is not None and driver.membership.fatal.code == code
    driver.sleep(60_000)
    driver.nothing()


def test_a_topic_that_may_not_be_read_is_told_and_heartbeats_go_on() -> None:
    driver = stable()
    driver.sleep(5_000)
    driver.exchange(answer(0, code=codes.TOPIC_AUTHORIZATION_FAILED))
    assert driver.membership.problem is not None and driver.membership.fatal is None
    driver.sleep(5_000)
    driver.heartbeat()


def test_a_lost_answer_is_asked_for_again_with_everything() -> None:
    driver = stable()
    driver.sleep(5_000)
    driver.membership.on_failure(driver.heartbeat(), NetworkError("lost"), driver.now_ms)
    driver.nothing()
    driver.sleep(100)
    assert driver.heartbeat().subscribed_topic_names == ["t"]


def test_a_broker_without_share_groups_is_told_of() -> None:
    driver = Driver()
    driver.membership.on_failure(driver.heartbeat(), UnsupportedVersionError("old"), driver.now_ms)
    assert isinstance(driver.membership.fatal, UnsupportedVersionError)


def test_a_member_that_is_not_polled_leaves_and_joins_with_the_next_poll() -> None:
    driver = stable()
    for _ in range(13):
        driver.sleep(5_000)
        if driver.membership.state is State.LEAVING:
            break
        driver.exchange(answer(3))
    assert driver.heartbeat().member_epoch == -1 and driver.membership.assignment == {}
    driver.nothing()
    assert driver.membership.on_poll(driver.now_ms)
    assert driver.heartbeat().member_epoch == 0


def test_leaving_sends_the_last_epoch_once() -> None:
    driver = stable()
    driver.membership.leave(driver.now_ms, "the end")
    assert driver.membership.leaving and driver.membership.assignment == {}
    request = driver.heartbeat()
    assert request.member_epoch == -1 and driver.membership.leaving
    driver.membership.on_response(request, answer(-1), driver.now_ms)
    assert not driver.membership.leaving
    driver.nothing()


def test_one_that_was_never_announced_leaves_silently() -> None:
    driver = Driver()
    driver.membership.leave(driver.now_ms, "the end")
    assert not driver.membership.leaving
    driver.nothing()
