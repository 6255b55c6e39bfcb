"""Requests that must look at cold data: they wait for the disk, nobody else does, and the answer is the same."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from moldau.api import offset_lookups
from moldau.node import cold_requests
from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.sim.kernel import cold_memory
from tests.unit.node.world import Asked, NodeWorld, batch, produce_request

BATCHES = 60
VERSION = 12


def filled_world() -> NodeWorld:
    """A node that was started on two partitions with many closed segments each; nothing of them is loaded."""
    world = NodeWorld().start()
    assert world.create("t", 2, index_interval_bytes="500") == errors.NONE
    for number in range(BATCHES):
        for index in (0, 1):
            world.ask(produce_request("t", index, batch(world.now_ms + number, 3, bytes(100))), 9)
            if number % 10 == 9:
                partition = world.node.replicas.find("t", index)
                assert partition is not None and partition.log is not None
                partition.log.roll(world.now_ms)
    assert world.leave()
    world.stop()
    return world.start()


@pytest.fixture
def world() -> NodeWorld:
    world = filled_world()
    world.disk.memory.cold_chance = 1.0
    return world


def fetch_request(*rows: tuple[int, int], **fields: Any) -> FetchRequest:
    partitions = [FetchPartition(partition=p, fetch_offset=at, partition_max_bytes=3000) for p, at in rows]
    values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **fields}
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=partitions)], **values)


def rows(response: FetchResponse) -> list[PartitionData]:
    return [row for topic in response.responses for row in topic.partitions]


def content(response: FetchResponse) -> list[tuple[int, int, bytes]]:
    return [(row.partition_index, row.error_code, row.records.to_bytes()) for row in rows(response)]  # type: ignore[union-attr]


def list_request(timestamp: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in (0, 1)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])


def reads_in_turn(world: NodeWorld, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every read that a request's own turn makes although the bytes are cold."""
    from moldau.sim.kernel.disk import SimFile

    seen: list[tuple[str, int]] = []
    real = SimFile.read

    def read(file: SimFile, position: int, size: int) -> bytes:
        if not world.disk.refuses_cold and not world.disk._on_thread and file.path.startswith("/data/t-"):
            seen.append((file.path, position))
        return real(file, position, size)

    monkeypatch.setattr(SimFile, "read", read)
    return seen


def test_a_fetch_of_cold_data_reads_nothing_in_its_own_turn(world: NodeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = reads_in_turn(world, monkeypatch)
    asked = world.send(fetch_request((0, 50), (1, 20)), VERSION)
    assert not asked.reply.done and seen == []
    world.run(500)
    warm = filled_world().ask(fetch_request((0, 50), (1, 20)), VERSION)
    assert content(asked.response) == content(warm) and all(len(row[2]) > 0 for row in content(warm))


@pytest.mark.parametrize("evicted", [0.0, 0.5, 1.0])
def test_memory_that_is_too_short_does_not_keep_a_fetch_waiting_for_ever(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch, evicted: float
) -> None:
    """What a thread has read is used for the request it was read for, also if it is cold again by then."""
    monkeypatch.setattr(cold_memory, "EVICTED_AT_ONCE_CHANCE", evicted)
    warm = filled_world()
    for offset in range(0, 3 * BATCHES, 17):
        asked = world.send(fetch_request((0, offset)), VERSION)
        world.run(500)
        assert content(asked.response) == content(warm.ask(fetch_request((0, offset)), VERSION))


def test_a_request_that_is_cold_forever_ends_in_any_case(world: NodeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_memory, "EVICTED_AT_ONCE_CHANCE", 1.0)
    monkeypatch.setattr(cold_requests, "PIECES_MAX", 0)
    asked = world.send(fetch_request((0, 50)), VERSION)
    world.run(5000)
    assert rows(asked.response)[0].error_code == errors.NONE


def test_others_are_served_while_a_fetch_waits_for_the_disk(world: NodeWorld) -> None:
    asked = world.send(fetch_request((0, 5)), VERSION)
    produced = world.send(produce_request("t", 1, batch(world.now_ms)), 9)
    assert not asked.reply.done
    world.run(500)
    assert asked.reply.done and produced.reply.done


@pytest.mark.parametrize("timestamp_of", [lambda start: start, lambda start: start + BATCHES // 2, lambda start: -3])
def test_timestamps_are_looked_up_without_waiting_in_the_turn(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch, timestamp_of: Any
) -> None:
    timestamp = timestamp_of(1_700_000_001_000)
    seen = reads_in_turn(world, monkeypatch)
    asked = world.send(list_request(timestamp), 7)
    assert not asked.reply.done and seen == []
    world.run(1000)
    warm = filled_world().ask(list_request(timestamp), 7)
    found = [partition.offset for partition in asked.response.topics[0].partitions]
    assert found == [partition.offset for partition in warm.topics[0].partitions]


def test_many_lookups_are_cut_into_turns_and_others_are_served_between_them(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.disk.memory.cold_chance = 0.0
    monkeypatch.setattr(offset_lookups, "WORK_PER_TURN", 1)
    asked = world.send(list_request(1_700_000_001_000), 7)
    assert not asked.reply.done and len(world.node.later_turns) == 1
    produced = world.send(produce_request("t", 1, batch(world.now_ms)), 9)
    assert produced.reply.done and not asked.reply.done
    world.run(10)
    warm = filled_world().ask(list_request(1_700_000_001_000), 7)
    assert [row.offset for row in asked.response.topics[0].partitions] == [
        row.offset for row in warm.topics[0].partitions
    ]
    left = world.send(list_request(1_700_000_001_000), 7)
    left.reply.abandon()
    world.run(10)
    assert not left.reply.done and len(world.node.later_turns) == 0


def test_each_row_may_be_cold_as_often_as_one_alone(world: NodeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit after which a request waits for the medium in its turn is not one for all partitions together."""
    timestamp = 1_700_000_001_000
    needed = cold_reads_of_a_row(timestamp, monkeypatch)
    monkeypatch.setattr(cold_requests, "TRIES_MAX", needed + 1)
    seen = reads_in_turn(world, monkeypatch)
    asked = world.send(list_request(timestamp), 7)
    world.run(1000)
    assert asked.reply.done and needed > 1 and seen == []


def cold_reads_of_a_row(timestamp: int, monkeypatch: pytest.MonkeyPatch) -> int:
    world = filled_world()
    world.disk.memory.cold_chance = 1.0
    brought: list[int] = []
    real = cold_requests.ColdWait.bring

    def bring(wait: cold_requests.ColdWait, cold: Any) -> None:
        brought.append(cold.position)
        real(wait, cold)

    with monkeypatch.context() as patch:
        patch.setattr(cold_requests.ColdWait, "bring", bring)
        partitions = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        world.send(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)]), 7)
        world.run(1000)
    return len(brought)


def test_a_long_poll_is_answered_when_the_disk_has_read_even_if_its_time_is_over(world: NodeWorld) -> None:
    world.disk.sync_delay_ms = (900, 900)
    asked = world.send(fetch_request((0, 0), max_wait_ms=500, min_bytes=1 << 20), VERSION)
    world.run(600)
    assert not asked.reply.done
    world.disk.sync_delay_ms = (0, 0)
    world.run(2000)
    assert len(content(asked.response)[0][2]) > 0
    assert len(world.node.waiting) == 0


def test_a_client_that_leaves_meanwhile_leaves_nothing_behind(world: NodeWorld) -> None:
    for max_wait_ms in (0, 500):
        fetched = world.send(fetch_request((0, 0), max_wait_ms=max_wait_ms), VERSION)
        listed = world.send(list_request(1_700_000_001_000), 7)
        for asked in (fetched, listed):
            asked.reply.abandon()
        world.run(1000)
        assert not fetched.reply.done and not listed.reply.done
    assert len(world.node.waiting) == 0


def test_a_disk_that_cannot_be_read_takes_its_directory_offline(world: NodeWorld) -> None:
    other = world.node.logs.directories[0]
    asked = world.send(fetch_request((0, 0)), VERSION)
    world.disk.fail("read", "/data/t-0", errno.EIO, times=1000)
    world.run(500)
    assert rows(asked.response)[0].error_code == errors.KAFKA_STORAGE_ERROR
    assert other.failed


def test_a_segment_that_is_deleted_meanwhile_is_no_failure(world: NodeWorld) -> None:
    """Retention removes what a fetch waits for: the fetch hears that the offset is gone."""
    asked: Asked = world.send(fetch_request((0, 0)), VERSION)
    partition = world.node.replicas.find("t", 0)
    assert partition is not None and partition.log is not None
    world.disk.memory.cold_chance = 0.0
    partition.log.advance_log_start(100)
    world.run(500)
    assert rows(asked.response)[0].error_code in (errors.OFFSET_OUT_OF_RANGE, errors.NONE)
    assert not world.node.logs.directories[0].failed
