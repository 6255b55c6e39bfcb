"""Members of share groups: what a heartbeat checks and in which order, epochs, partitions, and how a group ends."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moldau.coordinator.group.share import StateDeletion
from moldau.coordinator.outcome import Outcome
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.delete_groups_response import DeleteGroupsResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tests.unit.coordinator.consumer_world import raises
from tests.unit.coordinator.share_world import GROUP, Member, ShareWorld, state_of


@pytest.fixture
def world() -> ShareWorld:
    world = ShareWorld()
    world.topic("t", 3)
    return world


def joined(world: ShareWorld, *names: str, topic: str = "t") -> list[Member]:
    members = [world.member(name) for name in names]
    for member in members:
        member.join(topic)
    world.settle(*members)
    return members


# Joining


def test_the_first_answer_is_empty_and_partitions_follow(world: ShareWorld) -> None:
    member = world.member("m1")
    answer = member.join("t")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m1", 2, 5000)
    assert answer.assignment.topic_partitions == []
    ((group_id, topics, epoch),) = world.coordinators.asked
    assert (group_id, topics, epoch) == (GROUP, {world.topic_id("t"): ("t", frozenset({0, 1, 2}))}, 2)
    assert world.share_group.partitions.initialized == {}
    world.initialize()
    world.sleep(1000)
    answer = member.beat()
    assert (answer.member_epoch, member.owned) == (3, {"t": [0, 1, 2]})
    assert member.beat().assignment is None


def test_assignments_are_told_when_somebody_asks(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    assert member.beat(subscribed_topic_names=["t"]).assignment is not None
    assert member.beat().assignment is None
    assert member.beat(member_epoch=0, subscribed_topic_names=["t"]).member_epoch == 3


def test_epochs_that_are_too_large_or_too_small_are_fenced(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    epoch = member.epoch
    raises(errors.FENCED_MEMBER_EPOCH, lambda: member.beat(member_epoch=epoch + 1))
    assert member.beat(member_epoch=epoch - 1).member_epoch == epoch, "the answer to it was lost"
    joined(world, "m2")
    world.settle(member)
    raises(errors.FENCED_MEMBER_EPOCH, lambda: member.beat(member_epoch=epoch - 1))


def test_a_fenced_member_joins_again_with_its_id(world: ShareWorld) -> None:
    """The coordinator still knows it with a higher epoch (KAFKA-19233)."""
    (member,) = joined(world, "m1")
    before = member.epoch
    assert member.join("t").member_epoch == before
    assert member.owned == {"t": [0, 1, 2]} and list(world.share_group.members) == ["m1"]


def test_the_checks_come_in_order(world: ShareWorld) -> None:
    stranger = world.member("x")
    stranger.epoch = 3
    raises(errors.GROUP_ID_NOT_FOUND, stranger.beat)
    raises(errors.GROUP_ID_NOT_FOUND, stranger.leave)
    joined(world, "m1")
    raises(errors.UNKNOWN_MEMBER_ID, stranger.beat)
    raises(errors.UNKNOWN_MEMBER_ID, stranger.leave)


def test_a_group_has_so_many_members() -> None:
    """Who is there stays; who is not hears that first, even with an epoch."""
    world = ShareWorld(group_share_max_size="2")
    world.topic("t", 1)
    first, _ = joined(world, "m1", "m2")
    third = world.member("m3")
    raises(errors.GROUP_MAX_SIZE_REACHED, lambda: third.join("t"))
    third.epoch = 2
    raises(errors.GROUP_MAX_SIZE_REACHED, third.beat)
    first.join("t")
    first.leave()
    assert third.join("t").member_epoch > 0


def test_what_a_member_says_of_itself_is_kept(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    world.new_records()
    member.beat()
    assert world.new_records() == [], "nothing new is nothing to write"
    member.beat(rack_id="rack")
    (record,) = world.new_records()
    assert type(record[0]).__name__ == "ShareGroupMemberMetadataKey"
    assert world.described().members[0].rack_id == "rack"


# Sessions


def test_a_silent_member_is_removed(world: ShareWorld) -> None:
    first, second = joined(world, "m1", "m2")
    world.sleep(40_000)
    first.beat()
    world.sleep(5000)
    assert list(world.share_group.members) == ["m1"]
    raises(errors.UNKNOWN_MEMBER_ID, second.beat)
    world.settle(first)
    assert first.owned == {"t": [0, 1, 2]}


def test_a_group_may_have_its_own_times(world: ShareWorld) -> None:
    world.configure("share.session.timeout.ms", "50000")
    world.configure("share.heartbeat.interval.ms", "7000")
    (member,) = joined(world, "m1")
    assert member.beat().heartbeat_interval_ms == 7000
    world.sleep(49_000)
    assert "m1" in world.share_group.members
    world.sleep(2000)
    assert world.share_group.members == {}


def test_a_value_that_the_broker_no_longer_allows_is_bounded() -> None:
    world = ShareWorld(group_share_max_heartbeat_interval_ms="8000")
    world.topic("t", 1)
    world.configure("share.heartbeat.interval.ms", "15000")
    assert world.member("m1").join("t").heartbeat_interval_ms == 8000


def test_after_a_failover_sessions_begin_anew(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    world.sleep(40_000)
    world.lead()
    world.sleep(40_000)
    assert member.beat().member_epoch == member.epoch
    world.sleep(46_000)
    assert world.share_group.members == {}


# Leaving


def test_who_leaves_is_gone_and_epochs_agree(world: ShareWorld) -> None:
    """Also of a group that is empty now (KAFKA-20442)."""
    first, second = joined(world, "m1", "m2")
    world.new_records()
    answer = first.leave()
    assert (answer.member_id, answer.member_epoch, answer.assignment) == ("m1", -1, None)
    kinds = [(type(key).__name__, value is None) for key, value in world.new_records()]
    assert kinds == [
        ("ShareGroupCurrentMemberAssignmentKey", True),
        ("ShareGroupTargetAssignmentMemberKey", True),
        ("ShareGroupMemberMetadataKey", True),
        ("ShareGroupMetadataKey", False),
    ]
    world.settle(second)
    assert second.owned == {"t": [0, 1, 2]}
    second.leave()
    described = world.described()
    assert described.group_state == "Empty" and described.group_epoch == described.assignment_epoch
    raises(errors.UNKNOWN_MEMBER_ID, second.leave)


# Initialising


def test_two_members_at_once_ask_for_partitions_once(world: ShareWorld) -> None:
    """The second one comes before the first heartbeat is stored (KAFKA-19457)."""
    world.log.commits_at_once = False
    answers: list[object] = []
    for name in ("m1", "m2"):
        request = ShareGroupHeartbeatRequest(GROUP, name, 0, None, ["t"])
        world.runtime.run(
            0,
            lambda machine, request=request: machine.share.heartbeat(request, "c", "/h", world.now_ms),
            answers.append,
            world.now_ms,
        )
    assert world.coordinators.asked == [], "nothing is stored yet"
    world.log.commit(world.now_ms)
    assert len(answers) == 2
    assert len(world.coordinators.asked) == 1


def test_what_cannot_be_initialised_is_asked_for_again(world: ShareWorld) -> None:
    member = world.member("m1")
    member.join("t")
    world.initialize(failed=True)
    assert world.share_group.partitions.is_empty
    member.beat()
    assert len(world.coordinators.asked) == 1 and set(world.coordinators.offsets.values()) == {-1}
    world.initialize()
    world.sleep(1000)
    member.beat()
    assert member.owned == {"t": [0, 1, 2]}


def test_an_answer_that_never_comes_is_waited_for_a_while(world: ShareWorld) -> None:
    member = world.member("m1")
    member.join("t")
    for _ in range(5):
        world.sleep(5000)
        member.beat()
    assert len(world.coordinators.asked) == 1, "one question at a time"
    world.sleep(10_000)
    member.beat()
    assert len(world.coordinators.asked) == 2


def test_another_coordinator_asks_again(world: ShareWorld) -> None:
    """It does not know whether the one before it was heard (KAFKA-19204)."""
    member = world.member("m1")
    member.join("t")
    world.coordinators.asked.clear()
    world.lead()
    member.beat()
    assert len(world.coordinators.asked) == 1
    world.initialize()
    world.sleep(1000)
    member.beat()
    assert member.owned == {"t": [0, 1, 2]}


def test_an_answer_to_a_group_that_is_gone_is_ignored(world: ShareWorld) -> None:
    member = world.member("m1")
    member.join("t")
    member.leave()
    world.delete_group()
    world.initialize()
    assert GROUP not in world.machine.state.groups


# Topics


def test_a_topic_grows(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    world.topic("t", 5)
    member.beat()
    ((_, topics, _),) = world.coordinators.asked
    assert topics == {world.topic_id("t"): ("t", frozenset({3, 4}))}
    assert set(world.coordinators.offsets.values()) == {0}, "what was written before they were known is not skipped"
    world.settle(member)
    assert member.owned == {"t": [0, 1, 2, 3, 4]}


def test_a_topic_comes_later(world: ShareWorld) -> None:
    (member,) = joined(world, "m1", topic="late")
    assert member.owned == {}
    world.topic("late", 2)
    world.settle(member)
    assert member.owned == {"late": [0, 1]}


def test_a_topic_goes(world: ShareWorld) -> None:
    """Described and asked meanwhile (KAFKA-19198, KAFKA-19201, KAFKA-19454); of the same name it is another one."""
    (member,) = joined(world, "m1")
    world.delete("t")
    assert world.described().members[0].assignment.topic_partitions == []
    assert world.share_group.partitions.is_empty
    world.settle(member)
    assert member.owned == {}
    world.topic("t", 2, topic_id=b"u".ljust(16, b"."))
    world.settle(member)
    assert member.owned == {"u": [0, 1]}


def test_a_topic_goes_while_nobody_leads_the_group(world: ShareWorld) -> None:
    joined(world, "m1")
    world.image = MetadataImage()
    world.lead()
    assert world.share_group.partitions.is_empty


def test_a_topic_goes_while_it_is_initialised(world: ShareWorld) -> None:
    member = world.member("m1")
    member.join("t")
    world.delete("t")
    world.initialize()
    assert world.share_group.partitions.is_empty


def test_members_may_want_different_topics(world: ShareWorld) -> None:
    world.topic("u", 2)
    first, second = world.member("m1"), world.member("m2")
    first.join("t")
    second.join("t", "u")
    world.settle(first, second)
    assert "u" not in first.owned and second.owned["u"] == [0, 1]
    second.beat(subscribed_topic_names=["u"])
    world.settle(first, second)
    assert (first.owned, second.owned) == ({"t": [0, 1, 2]}, {"u": [0, 1]})


def test_targets_are_not_computed_too_often(world: ShareWorld) -> None:
    world.configure("share.assignment.interval.ms", "10000")
    member = world.member("m1")
    member.join("t")
    world.initialize()
    world.sleep(5000)
    assert member.beat().member_epoch == 2
    world.sleep(6000)
    assert member.beat().member_epoch == 3 and member.owned == {"t": [0, 1, 2]}


def test_targets_of_another_coordinator_do_not_wait_for_a_wall_clock_that_stands_still(world: ShareWorld) -> None:
    (first,) = joined(world, "m1")
    world.configure("share.assignment.interval.ms", "10000")
    world.lead()
    epoch = world.share_group.assignment_epoch
    second = world.member("m2")
    second.join("t")
    assert world.share_group.assignment_epoch == epoch
    for _ in range(3):
        world.sleep(4_000)
        world.wall.offset_ms -= 4_000
        first.beat()
        second.beat()
    assert world.share_group.assignment_epoch == epoch + 1


# Deleting


def test_only_an_empty_group_is_deleted(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    raises(errors.NON_EMPTY_GROUP, lambda: world.run(lambda machine: machine.share.begin_delete(GROUP, None)[0]))
    member.leave()
    world.machine.share.begin_delete(GROUP, None)
    assert world.delete_group() == [0]
    assert GROUP not in world.machine.state.groups and GROUP not in world.reloaded().state.groups


def test_a_delete_names_partitions_that_nobody_subscribes_to(world: ShareWorld) -> None:
    """Also those of a delete that failed half way (KAFKA-18629)."""
    (member,) = joined(world, "m1")
    member.leave()
    for _ in range(2):
        outcome, deletion = world.machine.share.begin_delete(GROUP, None)
        assert deletion.topics == {world.topic_id("t"): ("t", frozenset({0, 1, 2}))}
        world.runtime.run(0, lambda machine, outcome=outcome: outcome, lambda result: None, world.now_ms)
        assert world.share_group.partitions.deleting == {world.topic_id("t"): "t"}


def begin_delete(world: ShareWorld) -> tuple[StateDeletion, list[Any]]:
    """An administrator wants the states of all topics to be forgotten; also returns what it will hear."""
    begun: list[StateDeletion] = []
    heard: list[Any] = []

    def decide(machine: Any) -> Outcome:
        outcome, deletion = machine.share.begin_delete(GROUP, None)
        outcome.response = DeleteGroupsResponse()
        begun.append(deletion)
        return outcome

    world.runtime.run(0, decide, heard.append, world.now_ms)
    return begun[0], heard


def end_delete(world: ShareWorld, deletion: StateDeletion, gone: frozenset[bytes] = frozenset()) -> None:
    """The share coordinators have forgotten the states of these topics; the others could not be reached."""

    def decide(machine: Any) -> Outcome:
        outcome: Outcome = machine.share.on_deleted(deletion, set(gone))
        return outcome

    world.runtime.run(0, decide, lambda result: None, world.now_ms)


def test_a_topic_whose_delete_failed_can_be_used_again(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    member.leave()
    deletion, _ = begin_delete(world)
    member.join("t")
    assert world.coordinators.asked == [], "the state may be deleted at any moment"
    end_delete(world, deletion)
    world.settle(member)
    assert member.owned == {"t": [0, 1, 2]} and world.share_group.partitions.deleting == {}


def test_a_topic_whose_delete_was_stored_too_late_can_be_used_again(world: ShareWorld) -> None:
    """Nobody asks the share coordinators any more, so nobody will tell that they have responded."""
    (member,) = joined(world, "m1")
    member.leave()
    world.log.commits_at_once = False
    _, heard = begin_delete(world)
    world.sleep(world.runtime.write_timeout_ms)
    assert [error.code for error in heard] == [errors.REQUEST_TIMED_OUT]
    world.log.commits_at_once = True
    world.log.commit(world.now_ms)
    assert world.share_group.partitions.deleting == {world.topic_id("t"): "t"}
    member.join("t")
    world.settle(member)
    assert member.owned == {"t": [0, 1, 2]} and world.share_group.partitions.deleting == {}


def test_a_topic_whose_delete_could_not_be_stored_grows_as_before(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    member.leave()
    world.log.failure = KafkaError(errors.NOT_ENOUGH_REPLICAS)
    _, heard = begin_delete(world)
    assert heard == [world.log.failure]
    world.log.failure = None
    world.topic("t", 4)
    member.join("t")
    world.settle(member)
    assert member.owned == {"t": [0, 1, 2, 3]}


def test_a_delete_that_ends_does_not_end_another(world: ShareWorld) -> None:
    """One that could not be stored, one whose share coordinators have responded: the last one still is under way."""
    (member,) = joined(world, "m1")
    member.leave()
    first, _ = begin_delete(world)
    second, _ = begin_delete(world)
    world.log.failure = KafkaError(errors.NOT_ENOUGH_REPLICAS)
    begin_delete(world)
    world.log.failure = None
    end_delete(world, first)
    member.join("t")
    assert world.coordinators.asked == []
    end_delete(world, second)
    world.settle(member)
    assert member.owned == {"t": [0, 1, 2]}


def test_a_state_that_was_made_while_it_is_to_be_deleted_is_made_again(world: ShareWorld) -> None:
    """Share coordinators may carry out the one or the other first: whether there is a state, nobody knows."""
    member = world.member("m1")
    member.join("t")
    member.leave()
    deletion, _ = begin_delete(world)
    world.initialize()
    end_delete(world, deletion, gone=frozenset({world.topic_id("t")}))
    assert world.share_group.partitions.is_empty
    member.join("t")
    ((_, topics, _),) = world.coordinators.asked
    assert topics == {world.topic_id("t"): ("t", frozenset({0, 1, 2}))}
    assert set(world.coordinators.offsets.values()) == {-1}, "if there is one, it stays as it is"
    world.settle(member)
    assert member.owned == {"t": [0, 1, 2]}


def test_a_new_group_waits_for_deletes_of_the_one_before_it(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    member.leave()
    deletion, _ = begin_delete(world)
    assert world.delete_group() == [0]
    member.join("t")
    assert world.coordinators.asked == []
    member.leave()
    assert world.delete_group() == [0]
    end_delete(world, deletion)
    member.join("t")
    world.settle(member)
    assert member.owned == {"t": [0, 1, 2]}, "also if there was no group when the share coordinators responded"


def test_a_share_group_stays_one_when_it_is_empty(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    member.leave()
    protocols = [JoinGroupRequestProtocol("range", b"")]
    request = JoinGroupRequest(GROUP, 30_000, 30_000, "", None, "consumer", protocols)
    answer: Any = world.ask_classic(request, 9, "c").take()
    assert answer.error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert world.share_group.kind == "share"
    assert world.fetch(GROUP, "t", 0) == (-1, 0), "it has no offsets of consumers"
    raises(errors.GROUP_ID_NOT_FOUND, lambda: world.commit(GROUP, "t", 0, 5))


def test_share_groups_do_not_expire(world: ShareWorld) -> None:
    (member,) = joined(world, "m1")
    member.leave()
    world.sleep(30 * 24 * 3_600_000)
    assert GROUP in world.machine.state.groups


# Replay


@pytest.mark.parametrize("seed", range(12))
def test_replay_tells_what_was_decided(seed: int) -> None:
    """At random: members come, go, change their minds; topics too; coordinators fail over, states fail."""
    dice = random.Random(seed)
    world = ShareWorld(group_share_max_size="5")
    members = {name: world.member(name) for name in "abcdef"}
    for _ in range(120):
        try:
            act_at_random(world, dice.choice(list(members.values())), dice)
        except KafkaError:
            pass
        assert state_of(world.reloaded()) == state_of(world.machine)
    live = [member for member in members.values() if member.member_id in members_of(world)]
    for member in live:
        member.join("t")
    world.topic("t", 4)
    if live:
        world.settle(*live)
        given = [index for member in live for index in member.owned.get("t", [])]
        assert set(given) == set(range(len(world.image.topics_by_name["t"].partitions)))
        assert all(member.owned for member in live), "nobody is idle"


def members_of(world: ShareWorld) -> set[str]:
    return set(world.share_group.members) if GROUP in world.machine.state.groups else set()


def act_at_random(world: ShareWorld, member: Member, dice: random.Random) -> None:
    names = dice.sample(["t", "u", "v"], dice.randint(1, 3))
    topic = world.image.topic(names[0])
    act = dice.randint(0, 10)
    if act == 0:
        member.join(*names)
    elif act <= 2:
        member.beat()
    elif act == 3:
        member.beat(subscribed_topic_names=names)
    elif act == 4:
        member.leave()
    elif act == 5:
        world.topic(names[0], 1 if topic is None else len(topic.partitions) + 1)
    elif act == 6 and topic is not None:
        world.delete(names[0])
    elif act == 7:
        world.initialize(failed=dice.random() < 0.3)
    elif act == 8:
        world.sleep(dice.choice((100, 2000, 20_000)))
    elif act == 9:
        world.lead()
    else:
        world.run(lambda machine: machine.admin.delete([GROUP]))
