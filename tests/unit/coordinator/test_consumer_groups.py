"""Consumer groups: what scripts do not show, such as records of other releases and requests that are too long."""

from __future__ import annotations

import pytest

from moldau.coordinator.group import regex_refresh
from moldau.coordinator.group.consumer_checks import ID_BYTES_MAX
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.consumer_member import STABLE, UNKNOWN
from moldau.coordinator.group.consumer_records import current_record, group_epoch_record, member_record, target_record
from moldau.coordinator.group.regex_refresh import WORK_PER_STEP, RegexJob
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.metadata.model import TopicImage
from moldau.protocol import errors
from moldau.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from moldau.protocol.stored.group_records import (
    ConsumerCurrentPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    encode_group_key,
    encode_group_value,
)
from tests.unit.coordinator.consumer_world import GROUP, ConsumerWorld, raises


@pytest.fixture
def world() -> ConsumerWorld:
    world = ConsumerWorld()
    world.topic("t", 4)
    return world


def write(world: ConsumerWorld, *records: StoredRecord) -> None:
    """As if another release had written them."""
    world.run(lambda machine: Outcome(list(records), ConsumerGroupHeartbeatResponse()))


def current_value(member_epoch: int, state: int, epochs: list[int] | None) -> bytes:
    topic = ConsumerCurrentPartitions(b"t".ljust(16, b"."), [0, 1], epochs)
    return encode_group_value(ConsumerGroupCurrentMemberAssignmentValue(member_epoch, 0, state, [topic], []), 0)


def test_the_partition_metadata_of_older_releases_is_removed(world: ConsumerWorld) -> None:
    """Since 4.1 there is a hash instead; the old record goes when the group is looked at next."""
    world.consumer("a").join("t")
    key = encode_group_key(ConsumerGroupPartitionMetadataKey(GROUP))
    write(world, (key, encode_group_value(ConsumerGroupPartitionMetadataValue(), 0)))
    assert world.group.has_partition_metadata_record
    world.new_records()
    world.consumer("b").join("t")
    assert (ConsumerGroupPartitionMetadataKey(GROUP), None) in world.new_records()
    assert not world.group.has_partition_metadata_record


def test_assignments_without_epochs_have_those_of_their_member(world: ConsumerWorld) -> None:
    """Releases before 4.3 did not write since when a member has a partition."""
    world.consumer("a").join("t")
    key = encode_group_key(ConsumerGroupCurrentMemberAssignmentKey(GROUP, "a"))
    write(world, (key, current_value(7, 0, None)))
    assert world.group.members["a"].assigned == {b"t".ljust(16, b"."): {0: 7, 1: 7}}
    write(world, (key, current_value(-2, 0, [])))
    assert world.group.members["a"].assigned == {b"t".ljust(16, b"."): {0: 0, 1: 0}}


def test_a_member_in_a_state_of_a_later_release_starts_again(world: ConsumerWorld) -> None:
    consumer = world.consumer("a")
    consumer.join("t")
    key = encode_group_key(ConsumerGroupCurrentMemberAssignmentKey(GROUP, "a"))
    write(world, (key, current_value(2, 9, [2, 2])))
    assert world.group.members["a"].state == UNKNOWN
    assert "unknown state" in raises(errors.FENCED_MEMBER_EPOCH, consumer.acknowledge)
    consumer.owned = {}
    assert consumer.acknowledge().member_epoch == 2
    assert world.group.state_name() == "Stable"


def test_a_member_without_topics_has_nothing_to_give_up(world: ConsumerWorld) -> None:
    """It gives its subscription up while it owns nothing, and does not repeat that it owns nothing."""
    consumer = world.consumer("a")
    consumer.join("later")
    consumer.beat(subscribed_topic_names=[])
    assert world.group.members["a"].state == STABLE
    consumer.beat(subscribed_topic_names=["t"])
    world.sleep(30_000)
    consumer.beat()
    assert world.group.members["a"].state == STABLE
    assert consumer.owned == {b"t".ljust(16, b"."): [0, 1, 2, 3]}


def test_tombstones_of_what_is_not_there_are_left_alone(world: ConsumerWorld) -> None:
    """Compaction may have removed what they removed."""
    group = ConsumerGroup(GROUP)
    write(world, *group.tombstones_of(["a", "b"]))
    assert GROUP not in world.machine.state.groups


def test_records_in_the_order_of_a_compacted_log(world: ConsumerWorld) -> None:
    """Of each key only the last record is left: a member may be known by its assignment first."""
    consumer = world.consumer("a")
    consumer.join("t")
    member = world.group.members["a"]
    target = world.group.target_of("a")
    other = ConsumerWorld()
    write(
        other,
        current_record(GROUP, member),
        target_record(GROUP, "a", target),
        member_record(GROUP, member),
        group_epoch_record(GROUP, world.group.group_epoch, world.group.metadata_hash),
    )
    assert other.group.members["a"].assigned == member.assigned
    assert other.group.members["a"].subscribed_topic_names == {"t"}
    assert other.group.owners == world.group.owners


def test_ids_that_do_not_fit_into_a_record_are_refused(world: ConsumerWorld) -> None:
    assert "MemberId" in raises(errors.INVALID_REQUEST, lambda: world.consumer("m" * (ID_BYTES_MAX + 1)).join("t"))
    assert "MemberId" in raises(errors.INVALID_REQUEST, lambda: world.consumer("ü" * ID_BYTES_MAX).join("t"))
    world.consumer("m" * ID_BYTES_MAX).join("t")


def test_steady_heartbeats_write_nothing(world: ConsumerWorld) -> None:
    consumer = world.consumer("a")
    consumer.join("t")
    world.new_records()
    for _ in range(50):
        world.sleep(5000)
        consumer.beat()
    assert world.new_records() == []
    assert world.group.state_name() == "Stable"


def test_timers_of_members_go_with_them(world: ConsumerWorld) -> None:
    before = len(world.shard.timers)
    consumers = [world.consumer(f"m{number}") for number in range(5)]
    for consumer in consumers:
        consumer.join("t")
    world.sleep(1000)
    for consumer in consumers:
        consumer.beat()
    for consumer in consumers:
        consumer.leave()
    assert len(world.shard.timers) == before


def test_a_search_among_many_topics_takes_turns(world: ConsumerWorld) -> None:
    """Other requests are served between two steps; the result is the same."""
    names = [f"topic-{number}" for number in range(5000)]
    for name in names:
        world.image.topics_by_name[name] = TopicImage(name, name.encode().ljust(16), {})
    job = RegexJob(GROUP, ["topic-[0-9]*7", "(a|b)*"], world.image, 0)
    steps = 1
    while not job.step():
        steps += 1
    assert steps > 5000 * len("topic-123") // WORK_PER_STEP
    assert job.resolved["topic-[0-9]*7"].topics == {name for name in names if name.endswith("7")}
    assert job.resolved["(a|b)*"].topics == frozenset()


def test_a_costly_expression_is_searched_in_small_steps(world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step ends in the middle of a name, and a search that would never end finds nothing."""
    name = "a" * 249
    world.image.topics_by_name[name] = TopicImage(name, bytes(16), {})
    text = "(?:.?){900}x"
    job = RegexJob(GROUP, [text], world.image, 0)
    steps = 1
    while not job.step():
        steps += 1
    assert steps > 5
    assert job.resolved[text].topics == frozenset()
    monkeypatch.setattr(regex_refresh, "WORK_MAX", 3 * WORK_PER_STEP)
    costly = RegexJob(GROUP, ["(?:.?){900}a", "a+"], world.image, 0)
    while not costly.step():
        pass
    assert costly.resolved["(?:.?){900}a"].topics == frozenset()
    assert costly.resolved["a+"].topics == {name}


def test_a_group_that_is_gone_when_its_topics_are_found(world: ConsumerWorld) -> None:
    consumer = world.consumer("a")
    consumer.join(regex="t.*")
    consumer.leave()
    world.delete_group()
    world.new_records()
    world.sleep(10)
    assert world.new_records() == []


def test_targets_of_another_coordinator_do_not_wait_for_a_wall_clock_that_stands_still(world: ConsumerWorld) -> None:
    world.configure("consumer.assignment.interval.ms", "10000")
    first, second = world.consumer("a"), world.consumer("b")
    first.join("t")
    world.lead()
    epoch = world.group.assignment_epoch
    second.join("t")
    assert world.group.assignment_epoch == epoch
    for _ in range(3):
        world.sleep(4_000)
        world.machine.state.wall.offset_ms -= 4_000
        second.beat()
    assert world.group.assignment_epoch == epoch + 1


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000, 5_000])
def test_targets_wait_by_the_steady_clock(world: ConsumerWorld, step_ms: int) -> None:
    """Somebody sets the wall clock: the next assignment comes neither sooner nor later for it."""
    world.configure("consumer.assignment.interval.ms", "10000")
    first, second = world.consumer("a"), world.consumer("b")
    first.join("t")
    epoch = world.group.group_epoch
    assert world.group.assignment_epoch == epoch
    second.join("t")
    world.machine.state.wall.offset_ms += step_ms
    world.sleep(9_000)
    second.beat()
    assert (world.group.group_epoch, world.group.assignment_epoch) == (epoch + 1, epoch)
    world.sleep(1_000)
    second.beat()
    assert world.group.assignment_epoch == epoch + 1
