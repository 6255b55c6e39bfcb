"""Records of streams groups byte for byte, replay in any order, transactions, expiry, and many members at once."""

from __future__ import annotations

import random

import pytest

from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import UNKNOWN, StreamsMember
from moldau.coordinator.group.streams.records import (
    assignment_epoch_record,
    current_record,
    group_record,
    member_record,
    target_record,
    topology_record,
)
from moldau.coordinator.group.streams.tasks import CurrentTasks, TasksByRole
from moldau.coordinator.group.streams.topology import topology_from_request
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.coordinator.consumer_world import GROUP, raises
from tests.unit.coordinator.group_world import HOUR_MS
from tests.unit.coordinator.streams_world import StreamsWorld, make_topology


@pytest.fixture
def world() -> StreamsWorld:
    world = StreamsWorld()
    world.topic("in", 2)
    return world


def shown(record: StoredRecord) -> tuple[str, str]:
    key, value = record
    return key.hex(), "" if value is None else value.hex()


# Records


def test_records_have_the_bytes_that_kafka_writes() -> None:
    """Keys are not flexible, values are; epochs are told of active tasks only."""
    member = StreamsMember("m")
    member.client_id, member.client_host, member.process_id = "c", "/h", "p"
    member.rebalance_timeout_ms, member.topology_epoch = 1000, 0
    member.client_tags = {"z": "1"}
    member.user_endpoint = ("e", 8080)
    member.member_epoch, member.previous_member_epoch = 3, 2
    member.assigned = CurrentTasks({"0": {1: 3, 0: 2}}, {"1": frozenset({0})}, {})
    name = b"num.standby.replicas".hex()
    assert shown(group_record("g", 2, 5, 0, {"num.standby.replicas": "0"})) == (
        read("0011 0001 67"),
        read(f"0000 00000002 0000000000000005 02 00 04 00000000 01 19 02 15 {name} 02 30 00"),
    )
    assert shown(group_record("g", 2, 5, -1, {}))[1] == read("0000 00000002 0000000000000005 00")
    assert shown(member_record("g", member)) == (
        read("0013 0001 67 0001 6d"),
        read("0000 00 00 0263 032f68 000003e8 00000000 0270 01 0265 1f90 00 02 027a 0231 00 00"),
    )
    assert shown(current_record("g", member)) == (
        read("0016 0001 67 0001 6d"),
        read(
            "0000 00000003 00000002 01 02 0230 03 00000000 00000001 01 00 09 03 00000002 00000003"
            " 02 0231 02 00000000 00 01 01 01 01 00"
        ),
    )
    target = TasksByRole({"1": frozenset({0}), "0": frozenset({1, 0})}, {}, {})
    assert shown(target_record("g", "m", target)) == (
        read("0015 0001 67 0001 6d"),
        read("0000 03 0230 03 00000000 00000001 00 0231 02 00000000 00 01 01 00"),
    )
    assert shown(assignment_epoch_record("g", 4, 7)) == (
        read("0014 0001 67"),
        read("0000 00000004 01 00 08 0000000000000007"),
    )
    assert shown(topology_record("g", topology_from_request(make_topology("0:a>b")))) == (
        read("0017 0001 67"),
        read("0000 00000000 02 0230 02 0261 01 01 02 0262 01 01 00 00"),
    )


def read(text: str) -> str:
    return text.replace(" ", "")


def test_records_may_be_replayed_in_any_order(world: StreamsWorld) -> None:
    """Compaction leaves the last record of each key, in an order that no heartbeat made."""
    threads = [world.thread(name) for name in ("a", "b")]
    for thread in threads:
        thread.join()
    for _ in range(3):
        for thread in threads:
            thread.acknowledge()
    group = world.streams
    records = [
        group_record(
            GROUP,
            group.group_epoch,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        ),
        topology_record(GROUP, topology_from_request(make_topology("0:in"))),
        assignment_epoch_record(GROUP, group.assignment_epoch, group.assignment_timestamp_ms),
    ]
    for member_id, member in group.members.items():
        records += [member_record(GROUP, member), current_record(GROUP, member)]
        records.append(target_record(GROUP, member_id, group.target_of(member_id)))
    for seed in range(10):
        other = StreamsWorld()
        for key, value in random.Random(seed).sample(records, len(records)):
            other.machine.replay(key, value, 0, -1, -1)
        other.check_tasks()
        assert other.streams.state_name() == "Stable"
        assert other.streams.active_owners == group.active_owners
        assert other.streams.targets == group.targets


def test_tombstones_of_what_is_not_there_are_left_alone(world: StreamsWorld) -> None:
    world.thread("a").join()
    for key, _ in world.streams.tombstones():
        StreamsWorld().machine.replay(key, None, 0, -1, -1)
    for key, _ in reversed(world.streams.tombstones()):
        world.machine.replay(key, None, 0, -1, -1)
    assert GROUP not in world.machine.state.groups


def test_a_member_in_a_state_of_a_later_release_starts_from_nothing(world: StreamsWorld) -> None:
    thread = world.thread("a")
    thread.join()
    member = world.streams.members["a"].copy()
    member.state = 99
    key, value = current_record(GROUP, member)
    world.machine.replay(key, value, 0, -1, -1)
    assert world.streams.members["a"].state == UNKNOWN
    world.topic("in", 3)
    assert "unknown state" in raises(errors.FENCED_MEMBER_EPOCH, thread.beat)
    assert thread.join().member_epoch == 3
    assert len(thread.has()) == 3


# Transactions, expiry


def commit_in_transaction(world: StreamsWorld, member_id: str, epoch: int, topic: str, partition: int) -> None:
    row = TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(partition, 5)])
    request = TxnOffsetCommitRequest("x", GROUP, 1, 0, epoch, member_id, None, [row])
    world.run(lambda machine: machine.offsets.commit_in_transaction(request, 5, world.now_ms))


def test_offsets_in_a_transaction_are_held_to_epochs_too(world: StreamsWorld) -> None:
    first, second = world.thread("a"), world.thread("b")
    first.join()
    first.acknowledge()
    second.join()
    first.beat()
    commit_in_transaction(world, "a", 2, "in", 0)
    first.acknowledge()
    second.beat()
    commit_in_transaction(world, "a", 2, "in", 0)
    commit_in_transaction(world, "a", 3, "in", 0)
    commit_in_transaction(world, "b", 3, "in", 1)
    raises(errors.ILLEGAL_GENERATION, lambda: commit_in_transaction(world, "b", 2, "in", 1))
    raises(errors.ILLEGAL_GENERATION, lambda: commit_in_transaction(world, "a", 9, "in", 0))
    raises(errors.UNKNOWN_MEMBER_ID, lambda: commit_in_transaction(world, "z", 3, "in", 0))


def test_offsets_expire_once_the_group_is_empty() -> None:
    world = StreamsWorld(offsets_retention_minutes="60", offsets_retention_check_interval_ms="60000")
    world.topic("in", 2)
    thread = world.thread("a")
    thread.join()
    assert world.commit(GROUP, "in", 0, 5, version=9, member_id="a", generation_id_or_member_epoch=thread.epoch) == 0
    for _ in range(200):
        world.sleep(40_000)
        thread.beat()
    assert world.fetch(GROUP, "in", 0) == (5, 0)
    thread.leave()
    world.sleep(HOUR_MS + 120_000)
    assert world.fetch(GROUP, "in", 0) == (-1, 0)
    assert world.machine.state.find_group(GROUP) is None
    assert world.reloaded().state.find_group(GROUP) is None


# Many at once


def test_members_that_come_within_the_initial_delay_are_assigned_once() -> None:
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms="3000")
    world.topic("in", 200)
    threads = [world.thread(f"m{number:03}", f"p{number % 10}") for number in range(100)]
    for thread in threads:
        thread.join()
        world.sleep(20)
    world.new_records()
    world.sleep(3000)
    written = world.new_records()
    assert len(written) == 101
    for thread in threads:
        thread.beat()
    assert {len(thread.has()) for thread in threads} == {2}
    assert world.streams.state_name() == "Stable"


def test_a_classic_group_with_members_is_not_taken_over(world: StreamsWorld) -> None:
    world.consumer("x").join("in")
    text = raises(errors.GROUP_ID_NOT_FOUND, world.thread("a").join)
    assert text == "Group g is not a streams group."


def test_describing_a_group_that_is_not_there(world: StreamsWorld) -> None:
    described = world.describe()
    assert (described.error_code, described.error_message) == (errors.GROUP_ID_NOT_FOUND, "Group g not found.")
    assert described.topology is None


def test_a_group_without_its_topology_asks_members_to_join_again(world: StreamsWorld) -> None:
    thread = world.thread("a")
    thread.join()
    key, _ = topology_record(GROUP, topology_from_request(make_topology("0:in")))
    world.machine.replay(key, None, 0, -1, -1)
    assert isinstance(world.machine.state.groups[GROUP], StreamsGroup)
    assert world.streams.state_name() == "NotReady"
    with pytest.raises(KafkaError):
        thread.beat()
    assert thread.join().member_epoch >= 2
    assert len(thread.has()) == 2
