"""Fetch: limits, long polls, and incremental sessions that tell what changed and nothing else (KIP-227)."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.node.fetch_session import EVICTION_MS_MIN
from moldau.protocol import errors
from moldau.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from tests.unit.node.world import Asked, NodeWorld, batch, produce_request

PLENTY = 1 << 20
NAMES = 12
IDS = 13


@pytest.fixture
def world() -> NodeWorld:
    world = NodeWorld().start()
    assert world.create("t", 3) == errors.NONE
    return world


def wanted(*partitions: tuple[int, int], max_bytes: int = PLENTY) -> list[FetchTopic]:
    """(partition, offset) of topic t."""
    rows = [FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=max_bytes) for p, offset in partitions]
    return [FetchTopic(topic="t", partitions=rows)]


def request_of(topics: list[FetchTopic], **fields: Any) -> FetchRequest:
    values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": PLENTY, "session_epoch": -1}
    return FetchRequest(topics=topics, **{**values, **fields})


def fetch(world: NodeWorld, topics: list[FetchTopic], version: int = NAMES, **fields: Any) -> FetchResponse:
    response = world.ask(request_of(topics, **fields), version)
    assert isinstance(response, FetchResponse)
    return response


def rows(response: FetchResponse) -> list[PartitionData]:
    return [row for topic in response.responses for row in topic.partitions]


def told(response: FetchResponse) -> list[int]:
    return [row.partition_index for row in rows(response)]


def size(row: PartitionData) -> int:
    return 0 if row.records is None else row.records.size


# Limits


def test_at_least_one_batch_comes_whatever_the_limits_say(world: NodeWorld) -> None:
    world.produce("t", 0, values=50)
    world.produce("t", 1, values=50)
    for limits in ({"max_bytes": 1}, {"max_bytes": 0}):
        found = rows(fetch(world, wanted((0, 0), (1, 0)), **limits))
        assert size(found[0]) > 0 and size(found[1]) == 0
    found = rows(fetch(world, wanted((0, 0), (1, 0), max_bytes=1)))
    assert size(found[0]) > 0 and size(found[1]) == 0


@pytest.mark.parametrize("max_bytes", [-1, -(1 << 31)])
def test_negative_limits_are_harmless(world: NodeWorld, max_bytes: int) -> None:
    world.produce("t", 0)
    fetch(world, wanted((0, 0), max_bytes=max_bytes), max_bytes=max_bytes, min_bytes=max_bytes, max_wait_ms=max_bytes)


def test_a_partition_named_twice_is_read_once(world: NodeWorld) -> None:
    world.produce("t", 0)
    response = fetch(world, wanted((0, 0), (1, 0), (0, 1)))
    assert told(response) == [0, 1]
    assert size(rows(response)[0]) == 0, "from the offset that was said last"


def test_errors_are_told_per_partition(world: NodeWorld) -> None:
    topics = [*wanted((0, 0), (1, 5), (9, 0)), FetchTopic(topic="missing", partitions=[FetchPartition(partition=0)])]
    assert [row.error_code for row in rows(fetch(world, topics, max_wait_ms=10_000))] == [
        errors.NONE,
        errors.OFFSET_OUT_OF_RANGE,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]


# Long polls


def poll(world: NodeWorld, topics: list[FetchTopic], **fields: Any) -> Asked:
    return world.send(request_of(topics, **{"max_wait_ms": 500, **fields}), NAMES)


def test_a_fetch_waits_for_its_minimum(world: NodeWorld) -> None:
    one = len(batch(world.now_ms))
    asked = poll(world, wanted((0, 0), (1, 0)), min_bytes=one + 1)
    world.produce("t", 2)
    world.produce("t", 0)
    assert not asked.reply.done
    world.produce("t", 1)
    assert [size(row) for row in rows(asked.response)] == [one, one]
    assert len(world.node.waiting) == 0


def test_a_fetch_that_gets_nothing_is_answered_at_its_time(world: NodeWorld) -> None:
    asked = poll(world, wanted((0, 0)))
    world.run(480)
    assert not asked.reply.done
    world.run(40)
    assert [size(row) for row in rows(asked.response)] == [0]
    partition = world.node.replicas.find("t", 0)
    assert partition is not None and partition.waiters == []


def test_a_waiting_fetch_hears_that_its_offset_is_gone(world: NodeWorld) -> None:
    world.produce("t", 0)
    asked = poll(world, wanted((0, 0)), min_bytes=PLENTY)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)])],
        timeout_ms=1000,
    )
    assert world.ask(request, 2).topics[0].partitions[0].low_watermark == 1
    assert [row.error_code for row in rows(asked.response)] == [errors.OFFSET_OUT_OF_RANGE]


def test_a_waiting_fetch_hears_that_its_topic_is_gone(world: NodeWorld) -> None:
    asked = poll(world, wanted((0, 0), (1, 0)))
    assert world.delete("t") == errors.NONE
    assert errors.UNKNOWN_TOPIC_OR_PARTITION in {row.error_code for row in rows(asked.response)}


def test_a_waiting_fetch_of_a_client_that_left_leaves_nothing_behind(world: NodeWorld) -> None:
    asked = poll(world, wanted((0, 0), (1, 0)), max_wait_ms=2_000_000_000)
    asked.reply.abandon()
    assert len(world.node.waiting) == 0
    assert all(not partition.waiters for partition in world.node.replicas.all())
    world.produce("t", 0)
    assert not asked.reply.done


def test_many_abandoned_fetches_do_not_pile_up(world: NodeWorld) -> None:
    for _ in range(5000):
        poll(world, wanted((0, 0)), max_wait_ms=2_000_000_000).reply.abandon()
    assert len(world.node.waiting._by_deadline) <= 2048


def test_a_waiting_fetch_of_several_partitions_is_not_kept_by_those_that_stay_quiet(world: NodeWorld) -> None:
    for offset in range(200):
        asked = poll(world, wanted((0, offset), (1, 0)))
        world.send(produce_request("t", 0, batch(world.now_ms)), 9)
        assert asked.reply.done
    quiet = world.node.replicas.find("t", 1)
    assert quiet is not None and len(quiet.waiters) <= 16


# Sessions


def open_session(world: NodeWorld, topics: list[FetchTopic], version: int = NAMES) -> int:
    response = fetch(world, topics, version, session_epoch=0)
    assert response.error_code == errors.NONE and response.session_id != 0
    return response.session_id


def go_on(world: NodeWorld, session: int, epoch: int, topics: list[FetchTopic] | None = None, **more: Any) -> Any:
    return fetch(world, topics or [], session_id=session, session_epoch=epoch, **more)


def test_an_incremental_answer_has_only_what_changed(world: NodeWorld) -> None:
    session = open_session(world, wanted((0, 0), (1, 0), (2, 0)))
    assert told(go_on(world, session, 1)) == []
    world.produce("t", 1)
    response = go_on(world, session, 2)
    assert told(response) == [1] and response.session_id == session
    assert told(go_on(world, session, 3)) == [1], "the client did not move on, so the records come again"
    assert told(go_on(world, session, 4, wanted((1, 1)))) == []


def test_a_new_log_start_is_told_without_records(world: NodeWorld) -> None:
    world.produce("t", 0, values=3)
    session = open_session(world, wanted((0, 3), (1, 0)))
    partition = world.node.replicas.find("t", 0)
    assert partition is not None
    partition.delete_records(2, world.now_ms)
    response = go_on(world, session, 1)
    assert [(row.partition_index, row.log_start_offset, size(row)) for row in rows(response)] == [(0, 2, 0)]
    assert told(go_on(world, session, 2)) == []


def test_an_error_is_told_until_it_is_gone(world: NodeWorld) -> None:
    session = open_session(world, wanted((0, 5), (1, 0)))
    for epoch in (1, 2):
        response = go_on(world, session, epoch)
        assert [(row.partition_index, row.error_code) for row in rows(response)] == [(0, errors.OFFSET_OUT_OF_RANGE)]
    response = go_on(world, session, 3, wanted((0, 0)))
    assert [(row.partition_index, row.error_code) for row in rows(response)] == [(0, errors.NONE)]
    assert told(go_on(world, session, 4)) == []


def test_partitions_join_and_leave_a_session(world: NodeWorld) -> None:
    session = open_session(world, wanted((0, 0)))
    assert told(go_on(world, session, 1, wanted((1, 0)))) == [1], "a new one is told once"
    for index in range(3):
        world.produce("t", index)
    forgotten = [ForgottenTopic(topic="t", partitions=[0])]
    assert told(go_on(world, session, 2, forgotten_topics_data=forgotten)) == [1]


def test_a_session_without_partitions_ends(world: NodeWorld) -> None:
    session = open_session(world, wanted((0, 0)))
    response = go_on(world, session, 1, forgotten_topics_data=[ForgottenTopic(topic="t", partitions=[0])])
    assert response.session_id == 0 and len(world.node.fetch_sessions) == 0
    assert go_on(world, session, 2).error_code == errors.FETCH_SESSION_ID_NOT_FOUND


def test_every_partition_of_a_session_gets_its_turn(world: NodeWorld) -> None:
    for index in range(3):
        world.produce("t", index, values=20)
    session = open_session(world, wanted((0, 0), (1, 0), (2, 0)))
    turns = []
    for epoch in range(1, 7):
        response = go_on(world, session, epoch, max_bytes=1)
        turns += [row.partition_index for row in rows(response) if size(row)]
    assert turns == [0, 1, 2, 0, 1, 2]


def test_wrong_sessions_and_epochs_are_refused(world: NodeWorld) -> None:
    session = open_session(world, wanted((0, 0)))
    assert go_on(world, session + 1, 1).error_code == errors.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(world, session, 2).error_code == errors.INVALID_FETCH_SESSION_EPOCH
    assert go_on(world, session, 1).error_code == errors.NONE
    assert go_on(world, session, 1).error_code == errors.INVALID_FETCH_SESSION_EPOCH, "each epoch is used once"
    by_id = fetch(world, [], IDS, session_id=session, session_epoch=2)
    assert by_id.error_code == errors.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_fetch_replaces_the_session_and_a_final_one_ends_it(world: NodeWorld) -> None:
    first = open_session(world, wanted((0, 0)))
    second = fetch(world, wanted((0, 0)), session_id=first, session_epoch=0).session_id
    assert second not in (0, first) and len(world.node.fetch_sessions) == 1
    last = fetch(world, wanted((0, 0)), session_id=second, session_epoch=-1)
    assert last.session_id == 0 and told(last) == [0] and len(world.node.fetch_sessions) == 0


def test_without_a_free_slot_the_fetch_works_and_has_no_session(world: NodeWorld) -> None:
    world.node.fetch_sessions.slots = 2
    open_session(world, wanted((0, 0)))
    kept = open_session(world, wanted((0, 0)))
    refused = fetch(world, wanted((0, 0)), session_epoch=0)
    assert refused.error_code == errors.NONE and refused.session_id == 0 and told(refused) == [0]
    world.run(1000)
    go_on(world, kept, 1)
    world.now_ms += EVICTION_MS_MIN - 500
    assert open_session(world, wanted((0, 0))) != 0, "the session that was unused for long makes room"
    assert go_on(world, kept, 2).error_code == errors.NONE


def test_a_waiting_incremental_fetch_is_answered_with_what_changed(world: NodeWorld) -> None:
    session = open_session(world, wanted((0, 0), (1, 0)))
    asked = poll(world, [], session_id=session, session_epoch=1)
    assert not asked.reply.done
    world.produce("t", 1)
    assert told(asked.response) == [1]


def by_id(topic_id: bytes, offset: int = 0) -> list[FetchTopic]:
    row = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=PLENTY)
    return [FetchTopic(topic_id=topic_id, partitions=[row])]


def test_a_topic_that_is_created_again_is_not_taken_for_the_old_one(world: NodeWorld) -> None:
    old_id = world.describe("t").topic_id
    session = open_session(world, by_id(old_id), IDS)
    world.delete("t")
    world.create("t", 1)
    world.produce("t", 0)
    incremental = fetch(world, [], IDS, session_id=session, session_epoch=1)
    assert [row.error_code for row in rows(incremental)] == [errors.INCONSISTENT_TOPIC_ID]
    full = fetch(world, by_id(old_id), IDS)
    assert [row.error_code for row in rows(full)] == [errors.UNKNOWN_TOPIC_ID]
    fresh = fetch(world, by_id(world.describe("t").topic_id), IDS)
    assert [(row.error_code, size(row) > 0) for row in rows(fresh)] == [(errors.NONE, True)]


def test_an_id_that_becomes_known_is_read_in_the_same_session(world: NodeWorld) -> None:
    unknown = bytes(15) + b"\x09"
    session = open_session(world, by_id(unknown), IDS)
    response = fetch(world, by_id(world.describe("t").topic_id), IDS, session_id=session, session_epoch=1)
    assert [row.error_code for row in rows(response)] == [errors.UNKNOWN_TOPIC_ID, errors.NONE]
