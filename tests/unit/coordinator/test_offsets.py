"""Committed offsets: what counts, what expires, what goes with its topic or group, and what transactions change."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.coordinator.group.offset_records import (
    CommittedOffset,
    decode_offset_key,
    decode_offset_value,
    encode_offset_key,
    encode_offset_value,
)
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.primitives import DecodeError
from moldau.protocol.stored.framing import decode_key, decode_value, encode_key, encode_value
from moldau.protocol.stored.group_records import GROUP_KEYS, GROUP_VALUES, GroupMetadataKey, OffsetCommitKey
from moldau.protocol.stored.group_records import OffsetCommitValue as Value
from moldau.protocol.uuids import ZERO_UUID
from tests.unit.coordinator.group_world import HOUR_MS, GroupWorld, offsets_of

TOPIC_ID = b"0123456789abcdef"
OTHER_ID = b"fedcba9876543210"
WEEK_MS = 7 * 24 * HOUR_MS

texts = st.text(max_size=40)
longs = st.integers(-(1 << 63), (1 << 63) - 1)


@given(texts, texts, st.integers(0, (1 << 31) - 1))
def test_keys_are_those_of_the_stored_schema(group: str, topic: str, partition: int) -> None:
    key = encode_offset_key(group, topic, partition)
    assert key == encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
    assert decode_offset_key(key) == (group, topic, partition)


@given(longs, st.integers(-1, 1000), st.text(max_size=300), longs, st.sampled_from([ZERO_UUID, TOPIC_ID]))
def test_values_are_those_of_the_stored_schema(offset: int, epoch: int, text: str, time: int, topic_id: bytes) -> None:
    data = encode_offset_value(offset, epoch, text, time, -1, topic_id)
    assert data == encode_value(Value(offset, epoch, text, time, -1, topic_id), 4)
    assert decode_offset_value(data, 9) == CommittedOffset(offset, epoch, text, time, -1, topic_id, 9)


@pytest.mark.parametrize("version", range(5))
def test_values_of_all_versions_are_read(version: int) -> None:
    value = Value(5, 3 if version >= 3 else -1, "text", 77, 99 if version == 1 else -1)
    read = decode_offset_value(encode_value(value, version), 1)
    assert read == CommittedOffset(5, value.leader_epoch, "text", 77, value.expire_timestamp, ZERO_UUID, 1)


def test_an_offset_with_an_end_is_written_in_version_1() -> None:
    data = encode_offset_value(5, 3, "text", 77, 99, TOPIC_ID)
    assert data == encode_value(Value(5, -1, "text", 77, 99), 1)


def test_tags_of_later_releases_are_skipped() -> None:
    value = Value(5, 3, "text", 77, -1, TOPIC_ID, [(1, b"new"), (9, b"")])
    assert decode_offset_value(encode_value(value, 4), 1).topic_id == TOPIC_ID


@given(st.binary(max_size=60))
def test_garbage_is_refused(data: bytes) -> None:
    for decode in (decode_offset_key, lambda value: decode_offset_value(value, 0)):
        try:
            decode(data)
        except (DecodeError, UnicodeDecodeError):
            pass


def test_every_cut_of_a_record_is_refused() -> None:
    key = encode_offset_key("group", "topic", 3)
    value = encode_offset_value(5, 3, "text", 77, -1, TOPIC_ID)
    for size in range(len(key)):
        with pytest.raises(DecodeError):
            decode_offset_key(key[:size])
    for size in range(len(value)):
        with pytest.raises(DecodeError):
            decode_offset_value(value[:size], 0)


# Commit and fetch


def test_the_last_commit_counts() -> None:
    world = GroupWorld()
    assert world.fetch("g", "t", 0) == (-1, 0)
    world.commit("g", "t", 0, 5)
    world.commit("g", "t", 0, 3)
    world.commit("g", "t", 1, 9)
    world.commit("h", "t", 0, 7)
    assert [world.fetch("g", "t", 0), world.fetch("g", "t", 1), world.fetch("h", "t", 0)] == [(3, 0), (9, 0), (7, 0)]


def test_too_much_metadata_is_refused_by_partition() -> None:
    world = GroupWorld(offset_metadata_max_bytes="10")
    assert world.commit("g", "t", 0, 5, "x" * 11) == errors.OFFSET_METADATA_TOO_LARGE
    assert world.commit("g", "t", 0, 5, "x" * 10) == 0
    assert world.commit("g", "t", 0, 5, "\U0001f600" * 6) == errors.OFFSET_METADATA_TOO_LARGE
    assert world.commit("g", "t", 0, 5, None) == 0


def test_a_group_id_that_does_not_fit_into_a_record_is_refused() -> None:
    """What is no UTF-8 is replaced and grows, so an id may be longer than it was on the wire."""
    world = GroupWorld()
    world.commit("x" * 0x7FFF, "t", 0, 5)
    with pytest.raises(KafkaError) as raised:
        world.commit("\ufffd" * 0x7FFF, "t", 0, 5)
    assert raised.value.code == errors.UNKNOWN_SERVER_ERROR and world.log.end == 1


@pytest.mark.parametrize(("version", "code"), [(8, errors.ILLEGAL_GENERATION), (9, errors.GROUP_ID_NOT_FOUND)])
def test_a_generation_needs_a_group(version: int, code: int) -> None:
    world = GroupWorld()
    with pytest.raises(KafkaError) as raised:
        world.commit("g", "t", 0, 5, version=version, generation_id_or_member_epoch=1, member_id="m")
    assert raised.value.code == code and world.log.end == 0


def test_offsets_of_a_topic_of_the_same_name_are_not_seen() -> None:
    from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics

    world = GroupWorld()
    world.commit("g", "t", 0, 5, topic_id=TOPIC_ID)
    for topic_id, offset in ((TOPIC_ID, 5), (ZERO_UUID, 5), (OTHER_ID, -1)):
        request = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t", topic_id, [0])])
        answer = world.machine.offsets.fetch(request, False)
        assert answer.topics[0].partitions[0].committed_offset == offset


# Deletion


def delete(world: GroupWorld, group: str, topic: str, partition: int) -> int:
    rows = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(partition)])]
    answer = world.run(lambda machine: machine.offsets.delete(OffsetDeleteRequest(group, rows)))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def drop(world: GroupWorld, group: str) -> None:
    world.run(lambda machine: machine.admin.delete([group]))


def test_a_group_without_offsets_stays_until_the_next_search() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5)
    assert delete(world, "g", "t", 0) == 0
    assert world.machine.state.group_ids() == ["g"] and world.fetch("g", "t", 0) == (-1, 0)
    world.sleep(600_000)
    assert world.machine.state.group_ids() == []
    assert decode_key(GROUP_KEYS, world.log.records()[-1].key or b"") == GroupMetadataKey(group="g")
    assert world.log.records()[-1].value is None


def test_offsets_go_with_their_topic_and_not_with_another_of_its_name() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5, topic_id=TOPIC_ID)
    world.commit("g", "t", 1, 6, topic_id=OTHER_ID)
    world.commit("g", "t", 2, 7)
    world.commit("g", "u", 0, 8, topic_id=b"u" * 16)
    world.delete_topic("t", TOPIC_ID)
    assert [world.fetch("g", "t", index)[0] for index in range(3)] == [-1, 6, -1]
    assert world.fetch("g", "u", 0) == (8, 0)


def test_offsets_of_a_deleted_topic_go_as_soon_as_they_can() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5, topic_id=TOPIC_ID)
    world.log.failure = KafkaError(errors.KAFKA_STORAGE_ERROR)
    world.delete_topic("t", TOPIC_ID)
    world.sleep(2000)
    assert world.fetch("g", "t", 0) == (5, 0)
    world.log.failure = None
    world.sleep(1000)
    assert world.fetch("g", "t", 0) == (-1, 0)
    end = world.log.end
    world.sleep(10_000)
    assert world.log.end == end, "it is done once"


# Expiry


def test_offsets_of_a_simple_group_expire_by_their_commit() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5)
    world.sleep(3 * 24 * HOUR_MS)
    world.commit("g", "t", 1, 6)
    world.sleep(4 * 24 * HOUR_MS - 1000)
    assert world.fetch("g", "t", 0) == (5, 0)
    world.sleep(600_000)
    assert world.fetch("g", "t", 0) == (-1, 0) and world.fetch("g", "t", 1) == (6, 0)
    assert world.machine.state.group_ids() == ["g"]
    world.sleep(WEEK_MS)
    assert world.machine.state.group_ids() == [] and len(world.machine.state.offsets) == 0


def test_offsets_do_not_expire_while_the_wall_clock_is_in_doubt() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5)
    world.wall.offset_ms = 2 * WEEK_MS
    world.wall.may_delete_by_age = False
    world.sleep(HOUR_MS)
    assert world.fetch("g", "t", 0) == (5, 0)
    world.wall.may_delete_by_age = True
    world.sleep(HOUR_MS)
    assert world.fetch("g", "t", 0) == (-1, 0), "it stayed so, and the commit is two weeks old"


def test_offsets_are_stamped_with_the_wall_clock_and_survive_its_setting_back() -> None:
    world = GroupWorld()
    world.wall.offset_ms = -3 * 24 * HOUR_MS
    world.commit("g", "t", 0, 5)
    (committed,) = world.machine.state.offsets.by_group["g"]["t"].values()
    assert committed.commit_ms == world.now_ms - 3 * 24 * HOUR_MS
    world.wall.offset_ms = -6 * 24 * HOUR_MS
    world.sleep(9 * 24 * HOUR_MS)
    assert world.fetch("g", "t", 0) == (5, 0), "six days by the clock that stamped it"


def test_an_old_client_decides_when_its_offsets_end() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5, version=4, retention_time_ms=HOUR_MS)
    world.commit("g", "t", 1, 6, version=4, retention_time_ms=2 * WEEK_MS)
    world.sleep(HOUR_MS + 600_000)
    assert world.fetch("g", "t", 0) == (-1, 0)
    world.sleep(WEEK_MS)
    assert world.fetch("g", "t", 1) == (6, 0)


def test_expired_offsets_that_cannot_be_removed_now_are_removed_later() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5)
    world.log.failure = KafkaError(errors.NOT_ENOUGH_REPLICAS)
    world.sleep(WEEK_MS + 600_000)
    assert world.fetch("g", "t", 0) == (5, 0)
    world.log.failure = None
    world.sleep(600_000)
    assert world.fetch("g", "t", 0) == (-1, 0)


def test_more_tombstones_than_fit_into_a_batch_are_written_as_several() -> None:
    world = GroupWorld()
    world.log.batch_max = 2000
    for number in range(100):
        world.commit(f"group-{number}", "t", 0, 5)
    world.sleep(WEEK_MS + 600_000)
    assert len(world.machine.state.offsets) == 0 and world.machine.state.group_ids() == []


# Transactions


def test_an_offset_in_a_transaction_counts_when_it_is_committed() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5)
    world.commit_in_transaction(7, "g", "t", 0, 6)
    assert world.fetch("g", "t", 0) == (5, 0)
    assert world.fetch("g", "t", 0, stable=True) == (-1, errors.UNSTABLE_OFFSET_COMMIT)
    assert world.fetch("g", "t", 1, stable=True) == (-1, 0)
    world.end_transaction(7, commit=True)
    assert world.fetch("g", "t", 0, stable=True) == (6, 0)


def test_an_aborted_offset_never_counts() -> None:
    world = GroupWorld()
    world.commit_in_transaction(7, "g", "t", 0, 6)
    world.end_transaction(7, commit=False)
    assert world.fetch("g", "t", 0, stable=True) == (-1, 0)


def test_two_transactions_are_both_waited_for() -> None:
    world = GroupWorld()
    world.commit_in_transaction(7, "g", "t", 0, 6)
    world.commit_in_transaction(8, "g", "t", 0, 9)
    world.commit_in_transaction(8, "g", "t", 0, 10)
    world.end_transaction(8, commit=True)
    assert world.fetch("g", "t", 0, stable=True) == (-1, errors.UNSTABLE_OFFSET_COMMIT)
    world.end_transaction(7, commit=True)
    assert world.fetch("g", "t", 0, stable=True) == (10, 0), "the record of the other transaction lies later in the log"


def test_a_later_commit_outside_of_the_transaction_is_kept() -> None:
    world = GroupWorld()
    world.commit_in_transaction(7, "g", "t", 0, 6)
    world.commit("g", "t", 0, 20)
    world.end_transaction(7, commit=True)
    assert world.fetch("g", "t", 0) == (20, 0)


def test_offsets_that_wait_for_a_transaction_do_not_expire() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5)
    world.commit_in_transaction(7, "g", "t", 0, 6)
    world.sleep(2 * WEEK_MS)
    assert world.fetch("g", "t", 0) == (5, 0) and world.machine.state.group_ids() == ["g"]
    world.end_transaction(7, commit=False)
    world.sleep(600_000)
    assert world.machine.state.group_ids() == []


def deleted_by(world: GroupWorld, how: str) -> None:
    if how == "offset":
        assert delete(world, "g", "t", 0) == 0
    elif how == "group":
        drop(world, "g")
    else:
        world.delete_topic("t", TOPIC_ID)


@pytest.mark.parametrize("how", ["offset", "group", "topic"])
@pytest.mark.parametrize("committed_before", [True, False])
def test_what_was_deleted_does_not_come_back_with_the_end_of_a_transaction(how: str, committed_before: bool) -> None:
    world = GroupWorld()
    if committed_before:
        world.commit("g", "t", 0, 5)
    world.commit_in_transaction(7, "g", "t", 0, 6)
    world.commit_in_transaction(8, "g", "t", 0, 7)
    deleted_by(world, how)
    assert world.fetch("g", "t", 0, stable=True) == (-1, 0)
    for producer_id in (7, 8):
        world.end_transaction(producer_id, commit=True)
    assert world.fetch("g", "t", 0, stable=True) == (-1, 0)
    assert (world.machine.state.find_group("g") is None) == (how == "group")


@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_an_offset_for_a_topic_that_was_made_again_stays(failing: bool, ended: bool) -> None:
    """Offsets in transactions do not tell the id of their topic. Those of the topic before are looked for twice."""
    world = GroupWorld()
    world.commit("g", "t", 0, 5, topic_id=TOPIC_ID)
    world.commit("g", "t", 1, 15, topic_id=TOPIC_ID)
    if failing:
        world.log.failure = KafkaError(errors.KAFKA_STORAGE_ERROR)
    world.delete_topic("t", TOPIC_ID)
    world.log.failure = None
    world.commit_in_transaction(7, "g", "t", 0, 1)
    if ended:
        world.end_transaction(7, commit=True)
    world.sleep(2000)
    assert world.fetch("g", "t", 1) == (-1, 0)
    if not ended:
        world.end_transaction(7, commit=True)
    world.sleep(2000)
    assert world.fetch("g", "t", 0, stable=True) == (1, 0)


def test_the_offset_of_a_deleted_topic_goes_when_what_hid_it_was_aborted() -> None:
    world = GroupWorld()
    world.commit("g", "t", 0, 5, topic_id=TOPIC_ID)
    world.log.failure = KafkaError(errors.KAFKA_STORAGE_ERROR)
    world.delete_topic("t", TOPIC_ID)
    world.log.failure = None
    world.commit_in_transaction(7, "g", "t", 0, 1)
    world.sleep(2000)
    world.end_transaction(7, commit=False)
    world.sleep(2000)
    assert world.fetch("g", "t", 0, stable=True) == (-1, 0)
    end = world.log.end
    world.sleep(10_000)
    assert world.log.end == end


def test_an_offset_that_a_transaction_commits_after_a_deletion_counts() -> None:
    world = GroupWorld()
    world.commit_in_transaction(7, "g", "t", 0, 6)
    world.commit_in_transaction(7, "g", "t", 1, 16)
    delete(world, "g", "t", 0)
    world.commit_in_transaction(7, "g", "t", 0, 8)
    world.end_transaction(7, commit=True)
    assert (world.fetch("g", "t", 0, stable=True), world.fetch("g", "t", 1, stable=True)) == ((8, 0), (16, 0))


# Replay

operations = st.lists(
    st.tuples(
        st.sampled_from(["commit", "commit", "transaction", "end", "abort", "delete", "drop group", "topic", "sleep"]),
        st.sampled_from(["g", "h", "i"]),
        st.sampled_from(["t", "u"]),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=60,
)


def live_offsets(world: GroupWorld) -> dict[tuple[str, str, int], CommittedOffset | None]:
    table = world.machine.state.offsets
    places = itertools.product("ghi", "tu", range(3))
    return {place: table.find(*place) for place in places}


@settings(max_examples=150, deadline=None)
@given(operations)
def test_replaying_the_log_gives_the_live_state(steps: list[tuple[str, str, str, int, int]]) -> None:
    """Whatever happened: a new leader knows what the old one knew, also when the log has been compacted."""
    world = GroupWorld(offsets_retention_check_interval_ms=str(12 * HOUR_MS))
    for number, (what, group, topic, partition, producer) in enumerate(steps):
        if what == "commit":
            world.commit(group, topic, partition, number, topic_id=topic.encode() * 16)
        elif what == "transaction":
            world.commit_in_transaction(producer, group, topic, partition, number)
        elif what in ("end", "abort"):
            world.end_transaction(producer, what == "end")
        elif what == "delete" and world.machine.state.find_group(group) is not None:
            delete(world, group, topic, partition)
        elif what == "drop group":
            drop(world, group)
        elif what == "topic":
            world.delete_topic(topic, topic.encode() * 16)
        elif what == "sleep":
            world.sleep((producer + 1) * 2 * 24 * HOUR_MS)
    assert offsets_of(world.reloaded()) == offsets_of(world.machine)
    for producer in range(4):
        world.end_transaction(producer, commit=producer % 2 == 0)
    live = live_offsets(world)
    world.log.compact()
    world.lead()
    assert live_offsets(world) == live


def test_records_are_what_kafka_writes() -> None:
    """A commit: value version 4 with the topic's id; the batch has no producer and yet sequence 0."""
    from moldau.records.batch import header_at

    world = GroupWorld()
    world.commit("g", "t", 3, 5, "text", topic_id=TOPIC_ID)
    batch = world.log.batches[0]
    header = header_at(batch, 0, len(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    (record,) = world.log.records()
    assert decode_key(GROUP_KEYS, record.key or b"") == OffsetCommitKey("g", "t", 3)
    assert (record.value or b"")[:2] == b"\x00\x04"
    assert decode_value(GROUP_VALUES, 1, record.value or b"") == Value(5, -1, "text", world.now_ms, -1, TOPIC_ID)
