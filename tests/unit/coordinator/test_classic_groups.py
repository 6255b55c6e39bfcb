"""Classic groups: what is not a matter of states: records, offsets' retention, deletion, odd input, timers."""

from __future__ import annotations

import pytest

from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.classic_member import ClassicMember
from moldau.coordinator.group.classic_records import VALUE_VERSION, group_record, load_group, new_group_record
from moldau.coordinator.group.classic_subscription import subscribed_topics
from moldau.coordinator.group.group import CONSUMER, Group
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import DecodeError
from moldau.protocol.stored.framing import encode_value
from moldau.protocol.stored.group_records import GroupMetadataValue, MemberMetadata
from tests.scripts.classic_groups.world import START_MS, GroupWorld, read_group_record, subscription

# The records of a group with one member as Apache Kafka 4.3 wrote them, as hex: new, stable, empty again.
KAFKA_KEY = "00020009672d636f6e736f6c65"


def code_of(call: object, *arguments: object) -> int:
    """The error a check raises, 0 if it does not."""
    assert callable(call)
    try:
        call(*arguments)
    except KafkaError as error:
        return error.code
    return 0


# Records


def test_records_have_the_bytes_of_apache_kafka() -> None:
    """Field by field as the schema says; sizes as in a log that Kafka wrote: 13, 24, 259 and 32 bytes."""
    group = ClassicGroup("g-console", 1_794_713_910_923)
    key, value = new_group_record(group)
    assert key.hex() == KAFKA_KEY
    assert value is not None
    assert value.hex() == "0003" + "0000" + "00000000" + "ffff" + "ffff" + f"{1_794_713_910_923:016x}" + "00000000"
    member_id = "console-consumer-ed614c65-2db3-481c-92c4-7fb4ef4aa451"
    metadata = bytes.fromhex("0003") + subscription("orders")[2:] + bytes.fromhex("00000000ffffffffffff")
    member = ClassicMember(
        member_id,
        None,
        client_id="console-consumer",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=300_000,
        session_timeout_ms=45_000,
        protocols=[("range", metadata)],
    )
    group.member_protocol_type = "consumer"
    group.add(member, None)
    group.generation, group.protocol_name = 1, "range"
    assignment = (
        bytes.fromhex("000300000001")
        + b"\0\6orders"
        + bytes.fromhex("00000004" + "00000000000000010000000200000003" + "ffffffff")
    )
    _, value = group_record(group, {member_id: assignment})
    assert value is not None and len(value) == 259
    group.remove(member_id)
    group.generation, group.protocol_name = 2, None
    _, value = group_record(group, {})
    assert value is not None and len(value) == 32
    assert group.leader is None


@pytest.mark.parametrize("version", range(5))
def test_records_of_every_version_are_loaded(version: int) -> None:
    row = MemberMetadata("m", None, "c", "/h", 70 if version >= 1 else -1, 60, subscription("t"), b"assigned")
    value = encode_value(GroupMetadataValue("consumer", 4, "range", "m", 99 if version >= 2 else -1, [row]), version)
    group = load_group("g", value)
    member = group.members["m"]
    assert (group.state, group.generation, group.leader, group.protocol_name) == ("Stable", 4, "m", "range")
    assert member.rebalance_timeout_ms == (70 if version >= 1 else 60)
    assert group.state_timestamp_ms == (99 if version >= 2 else -1)
    assert group.describe().members[0].member_assignment == b"assigned"
    assert group.is_subscribed_to("t")


@pytest.mark.parametrize("leader", [None, "gone"])
def test_a_loaded_group_has_a_leader_that_is_a_member(leader: str | None) -> None:
    rows = [MemberMetadata(one, None, "c", "/h", 70, 60, b"", b"") for one in ("m", "n")]
    value = encode_value(GroupMetadataValue("consumer", 4, "range", leader, 99, rows), VALUE_VERSION)
    assert load_group("g", value).leader == "m"


def test_what_was_written_is_written_again() -> None:
    """Loading a record and writing the group gives the same bytes."""
    world = GroupWorld()
    world.stable(3)
    key, value = world.log.records[-1]
    assert value is not None and value[:2] == VALUE_VERSION.to_bytes(2, "big")
    loaded = load_group("g", value)
    assert group_record(loaded, {one: row.assignment for one, row in loaded.members.items()}) == (key, value)


def test_a_tombstone_ends_a_group_and_its_timers() -> None:
    """Also of those who were given an id and have not come back with it."""
    world = GroupWorld()
    [member] = world.stable(1)
    world.leave((member, None))
    pending = world.new_id()
    timers = world.machine.state.timers
    before = len(timers)
    ((key, _),) = world.group().tombstones()
    world.machine.replay(key, None, 0, -1, -1)
    assert "g" not in world.machine.state.groups
    assert len(timers) == before - 1
    assert world.join(pending).code == errors.UNKNOWN_MEMBER_ID


# Retention of offsets (KIP-211) and deletion


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty() -> None:
    world = GroupWorld()
    [member] = world.stable(1)
    assert world.group().offsets_expire_from("t", 5) == -1
    assert world.group().offsets_expire_from("not subscribed", 5) == 5
    world.leave((member, None))
    assert world.group().offsets_expire_from("t", 5) == world.now_ms
    old = load_group("g", encode_value(GroupMetadataValue("consumer", 1, None, None, -1, []), 1))
    assert old.offsets_expire_from("t", 5) == 5


def test_offsets_of_a_group_in_a_rebalance_do_not_expire() -> None:
    world = GroupWorld()
    world.stable(1)
    world.join(world.group().leader or "")
    assert world.group().offsets_expire_from("not subscribed", 5) == -1


def test_offsets_of_members_that_cannot_be_read_do_not_expire() -> None:
    """Nobody knows which topics they read; other protocol types never say."""
    world = GroupWorld()
    world.stable(1, protocols=[("range", b"\xff")])
    assert world.group().offsets_expire_from("t", 5) == -1
    assert world.group().is_subscribed_to("anything")
    world.stable(1, group="connect", protocol_type="connect", protocols=[("default", b"")])
    connect = world.group("connect")
    assert connect.offsets_expire_from("t", 5) == -1
    assert not connect.is_subscribed_to("t")
    assert code_of(connect.check_offset_delete) == errors.NON_EMPTY_GROUP


def test_a_group_with_members_cannot_be_deleted() -> None:
    world = GroupWorld()
    [member] = world.stable(1)
    group = world.group()
    assert code_of(group.check_delete) == errors.NON_EMPTY_GROUP
    assert code_of(group.check_offset_delete) == 0
    assert not group.is_empty()
    world.leave((member, None))
    assert code_of(group.check_delete) == 0
    world.stop()
    assert code_of(group.check_delete) == errors.GROUP_ID_NOT_FOUND
    assert code_of(group.check_offset_delete) == errors.GROUP_ID_NOT_FOUND
    assert code_of(group.check_offset_fetch, "m", 1) == errors.GROUP_ID_NOT_FOUND


# Commits


def test_transactional_commits_need_no_member_but_a_known_one_if_named() -> None:
    world = GroupWorld()
    [member] = world.stable(1)
    group = world.group()
    assert code_of(group.check_offset_commit, "", None, -1, True, 3, 0) == 0
    assert code_of(group.check_offset_commit, member, None, 1, True, 3, 0) == 0
    assert code_of(group.check_offset_commit, member, None, 2, True, 3, 0) == errors.ILLEGAL_GENERATION
    assert code_of(group.check_offset_commit, "other", None, 1, True, 3, 0) == errors.UNKNOWN_MEMBER_ID
    assert code_of(group.check_offset_commit, member, "instance", 1, True, 3, 0) == errors.UNKNOWN_MEMBER_ID
    world.join(member)
    assert group.state == "CompletingRebalance"
    assert code_of(group.check_offset_commit, member, None, 2, True, 3, 0) == 0
    assert code_of(group.check_offset_commit, member, None, 2, False, 8, 0) == errors.REBALANCE_IN_PROGRESS


def test_a_commit_counts_as_a_heartbeat() -> None:
    world = GroupWorld()
    [member] = world.stable(1, session_ms=10_000)
    for _ in range(3):
        world.tick(9_000)
        world.group().check_offset_commit(member, None, 1, False, 8, world.now_ms)
    assert member in world.group().members
    world.tick(10_000)
    assert world.group().is_empty()


def test_a_dead_group_tells_members_to_look_elsewhere() -> None:
    world = GroupWorld()
    [member] = world.stable(1)
    group = world.group()
    world.stop()
    assert group.state_name() == "Dead"
    assert code_of(group.check_offset_commit, member, None, 1, False, 8, 0) == errors.COORDINATOR_NOT_AVAILABLE


# Odd input


def test_a_protocol_named_twice_counts_once() -> None:
    world = GroupWorld()
    member = world.new_id()
    world.join(member, protocols=[("range", b"a"), ("range", b"b")])
    world.tick(3000)
    assert world.group().join_members()[0].metadata == b"a"
    world.leave((member, None))
    assert world.group().is_empty()


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0", b"\0\0\0\0\0\1", b"\0\0\x7f\xff\xff\xff", b"\xff\xff\0\0\0\0\xff\xff\xff\xff"]
)
def test_a_subscription_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(DecodeError):
        subscribed_topics(data)


def test_a_subscription_of_a_later_version_is_read() -> None:
    """All of them begin alike."""
    assert subscribed_topics(b"\0\x63" + subscription("t", "u")[2:] + b"more") == ["t", "u"]


def test_assignments_for_strangers_are_dropped_and_forgotten_members_get_none() -> None:
    world = GroupWorld()
    ids = [world.new_id(), world.new_id()]
    waiting = [world.join(one) for one in ids]
    world.tick(6000)
    leader = waiting[0].answer.leader
    follower = next(one for one in ids if one != leader)
    world.sync(leader, 1, {"stranger": b"x", leader: b"mine"})
    assert world.sync(follower, 1).answer.assignment == b""
    _, value = read_group_record(*world.log.records[-1])
    assert value is not None
    assert {row.member_id: row.assignment for row in value.members} == {leader: b"mine", follower: b""}


def test_a_new_member_is_not_in_a_group_of_another_kind() -> None:
    """Nobody takes classic members into it: the join is refused, other requests do not know them."""

    class Other(Group):
        kind = CONSUMER

        def is_empty(self) -> bool:
            return False

    world = GroupWorld()
    world.machine.state.groups["g"] = Other("g")
    world.machine.classic.elsewhere = type(world.machine.classic.elsewhere).__mro__[-2]()
    assert world.join().code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync("m", 1).code == errors.UNKNOWN_MEMBER_ID
    assert world.heartbeat("m", 1).code == errors.UNKNOWN_MEMBER_ID
    assert world.leave(("m", None)).code == errors.UNKNOWN_MEMBER_ID


def test_an_empty_group_of_another_kind_makes_way() -> None:
    """Its tombstones are written before the new group; if that fails, it is still there."""

    class Other(Group):
        kind = CONSUMER

        def is_empty(self) -> bool:
            return True

        def tombstones(self) -> list[StoredRecord]:
            return [(b"\0\3\0\1g", None)]

    world = GroupWorld()
    other = world.machine.state.groups["g"] = Other("g")
    world.log.failing = errors.NOT_ENOUGH_REPLICAS
    assert world.join().code == errors.NOT_ENOUGH_REPLICAS
    assert world.machine.state.groups["g"] is other
    world.log.failing = None
    assert world.join().code == errors.MEMBER_ID_REQUIRED
    assert world.group().is_empty()
    assert [value is None for _, value in world.log.records] == [True, False]


def test_group_and_member_ids_of_any_shape_have_timers_of_their_own() -> None:
    """Names that would run into each other when joined do not share a timer."""
    world = GroupWorld()
    first = world.new_id(group="a", client="b c")
    second = world.new_id(group="a b", client="c")
    assert len(first) + len("a") == len(second) + len("a b")
    world.tick(10_000)
    assert world.join(first, group="a").code == errors.UNKNOWN_MEMBER_ID
    assert world.join(second, group="a b").code == errors.UNKNOWN_MEMBER_ID


def test_heartbeats_do_not_grow_the_timers() -> None:
    world = GroupWorld()
    ids = world.stable(20, session_ms=10_000)
    timers = world.machine.state.timers
    before = len(timers)
    for _ in range(50):
        world.tick(1000)
        for one in ids:
            assert world.heartbeat(one, 1).code == 0
    assert len(timers) == before
    assert world.now_ms > START_MS + 50_000
