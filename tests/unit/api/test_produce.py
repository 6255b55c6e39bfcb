"""Produce: every partition fails or succeeds by itself, and acks says when and whether there is an answer."""

from __future__ import annotations

import errno

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import PartitionProduceResponse
from moldau.protocol.records_data import MemoryRecords
from moldau.replication.partition import Partition
from tests.unit.node.world import NodeWorld, batch, produce_request


@pytest.fixture
def world() -> NodeWorld:
    world = NodeWorld().start()
    assert world.create("t", 2) == errors.NONE
    return world


def partition(world: NodeWorld, index: int = 0) -> Partition:
    found = world.node.replicas.find("t", index)
    assert found is not None
    return found


def end_offset(world: NodeWorld, index: int = 0) -> int:
    log = partition(world, index).log
    assert log is not None
    return log.log_end_offset


def data(index: int, content: bytes | None) -> PartitionProduceData:
    records = None if content is None else MemoryRecords(content, 0, len(content))
    return PartitionProduceData(index=index, records=records)


def request_of(topics: dict[str, list[PartitionProduceData]], acks: int = 1, timeout_ms: int = 1000) -> ProduceRequest:
    rows = [TopicProduceData(name=name, partition_data=rows) for name, rows in topics.items()]
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=rows)


def spoiled(now_ms: int) -> bytes:
    content = bytearray(batch(now_ms))
    content[-1] ^= 1
    return bytes(content)


def answers(world: NodeWorld, request: ProduceRequest, version: int = 9) -> list[PartitionProduceResponse]:
    return [row for topic in world.ask(request, version).responses for row in topic.partition_responses]


def test_each_partition_fails_by_itself(world: NodeWorld) -> None:
    good = batch(world.now_ms, 3)
    request = request_of(
        {"t": [data(0, good), data(1, spoiled(world.now_ms)), data(7, good)], "missing": [data(0, good)]}
    )
    rows = answers(world, request)
    assert [(row.index, row.error_code, row.base_offset) for row in rows] == [
        (0, errors.NONE, 0),
        (1, errors.CORRUPT_MESSAGE, -1),
        (7, errors.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (0, errors.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert (end_offset(world, 0), end_offset(world, 1)) == (3, 0)


@pytest.mark.parametrize("acks", [-2, 2, 32767])
def test_acks_that_do_not_exist(world: NodeWorld, acks: int) -> None:
    rows = answers(world, request_of({"t": [data(0, batch(world.now_ms))]}, acks))
    assert [row.error_code for row in rows] == [errors.INVALID_REQUIRED_ACKS]
    assert end_offset(world) == 0


def test_a_partition_named_twice_counts_once_with_what_was_said_last(world: NodeWorld) -> None:
    rows = answers(world, request_of({"t": [data(0, batch(world.now_ms, 5)), data(0, batch(world.now_ms, 2))]}))
    assert [(row.error_code, row.base_offset) for row in rows] == [(errors.NONE, 0)]
    assert end_offset(world) == 2


@pytest.mark.parametrize("content", [None, b"", b"\x00" * 30])
def test_a_partition_without_a_batch(world: NodeWorld, content: bytes | None) -> None:
    rows = answers(world, request_of({"t": [data(0, content), data(1, batch(world.now_ms))]}))
    assert rows[0].error_code != errors.NONE and rows[0].log_start_offset == -1
    assert rows[1].error_code == errors.NONE


# acks


def test_acks_0_gets_no_answer_and_keeps_the_connection(world: NodeWorld) -> None:
    asked = world.send(request_of({"t": [data(0, batch(world.now_ms))]}, acks=0), 9)
    assert asked.reply.done and asked.reply.parts is None and not asked.reply.close_connection
    assert end_offset(world) == 1


def test_acks_0_closes_the_connection_when_anything_fails_and_keeps_what_did_not(world: NodeWorld) -> None:
    request = request_of({"t": [data(0, batch(world.now_ms)), data(1, spoiled(world.now_ms))]}, acks=0)
    asked = world.send(request, 9)
    assert asked.reply.done and asked.reply.parts is None and asked.reply.close_connection
    assert end_offset(world) == 1


@pytest.mark.parametrize("acks", [1, -1])
def test_the_only_replica_answers_at_once(world: NodeWorld, acks: int) -> None:
    asked = world.send(produce_request("t", 0, batch(world.now_ms), acks), 9)
    assert asked.reply.done
    assert partition(world).high_watermark.offset == 1


def out_of_reach(world: NodeWorld) -> None:
    """As if another replica were in sync, whose position this broker does not know."""
    found = partition(world)
    found.replicas = [1, 2]
    found.in_sync_replicas = [1, 2]


def test_acks_all_waits_for_the_high_watermark(world: NodeWorld) -> None:
    out_of_reach(world)
    asked = world.send(produce_request("t", 0, batch(world.now_ms, 2), -1), 9)
    assert not asked.reply.done and len(world.node.waiting) == 1
    first = world.send(produce_request("t", 0, batch(world.now_ms), 1), 9)
    assert first.reply.done, "acks=1 does not wait"
    partition(world).in_sync_replicas = [1]
    partition(world).advance_high_watermark(world.now_ms)
    row = asked.response.responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (errors.NONE, 0)
    assert len(world.node.waiting) == 0 and partition(world).waiters == []


def test_acks_all_times_out_and_the_records_stay(world: NodeWorld) -> None:
    out_of_reach(world)
    asked = world.send(produce_request("t", 0, batch(world.now_ms), -1), 9)
    world.run(900)
    assert not asked.reply.done
    world.run(200)
    row = asked.response.responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (errors.REQUEST_TIMED_OUT, -1)
    assert end_offset(world) == 1


def test_acks_all_with_a_timeout_of_zero_still_answers(world: NodeWorld) -> None:
    out_of_reach(world)
    for timeout_ms in (0, -1):
        asked = world.send(request_of({"t": [data(0, batch(world.now_ms))]}, -1, timeout_ms), 9)
        world.run(40)
        assert asked.response.responses[0].partition_responses[0].error_code == errors.REQUEST_TIMED_OUT


def test_a_parked_produce_hears_that_its_topic_was_deleted(world: NodeWorld) -> None:
    out_of_reach(world)
    asked = world.send(produce_request("t", 0, batch(world.now_ms), -1), 9)
    assert world.delete("t") == errors.NONE
    assert asked.response.responses[0].partition_responses[0].error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_a_parked_produce_of_a_client_that_left_is_forgotten(world: NodeWorld) -> None:
    out_of_reach(world)
    asked = world.send(produce_request("t", 0, batch(world.now_ms), -1), 9)
    asked.reply.abandon()
    assert len(world.node.waiting) == 0 and partition(world).waiters == []
    world.run(2000)
    assert not asked.reply.done


def test_too_few_replicas_in_sync_refuse_acks_all_only(world: NodeWorld) -> None:
    log = partition(world).log
    assert log is not None
    log.config.min_insync_replicas = 2
    partition(world).replicas = [1, 2]
    assert world.produce("t", acks=-1).error_code == errors.NOT_ENOUGH_REPLICAS
    assert world.produce("t", acks=1).error_code == errors.NONE
    assert end_offset(world) == 1


# Topics that come and go


def test_a_topic_is_known_by_its_id(world: NodeWorld) -> None:
    topic_id = world.describe("t").topic_id
    row = TopicProduceData(topic_id=topic_id, partition_data=[data(0, batch(world.now_ms))])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[row])
    assert answers(world, request, 13)[0].error_code == errors.NONE
    assert world.delete("t") == errors.NONE and world.create("t", 2) == errors.NONE
    assert answers(world, request, 13)[0].error_code == errors.UNKNOWN_TOPIC_ID, "the id of the topic that is gone"
    assert end_offset(world) == 0


def test_a_topic_that_is_created_again_starts_anew_with_its_own_settings(world: NodeWorld) -> None:
    assert world.create("u", 1, max_message_bytes="100", cleanup_policy="compact") == errors.NONE
    assert world.produce("u", values=20).error_code != errors.NONE
    assert world.delete("u") == errors.NONE and world.create("u") == errors.NONE
    row = world.produce("u", values=20)
    assert (row.error_code, row.base_offset, row.log_start_offset) == (errors.NONE, 0, 0)


def test_a_full_disk_refuses_the_batch_and_the_next_one_that_fits_is_taken(world: NodeWorld) -> None:
    assert world.produce("t").base_offset == 0
    world.disk.fail("append", "/data/t-0/", errno.ENOSPC)
    assert world.produce("t").error_code == errors.KAFKA_STORAGE_ERROR
    assert world.produce("t").base_offset == 1
    assert world.fatal == []
