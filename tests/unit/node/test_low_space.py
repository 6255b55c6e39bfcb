"""Little free space: producers are told to wait before the disk is full, others go on, and it ends by itself."""

from __future__ import annotations

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.unit.node.world import NodeWorld

GIB = 1 << 30


def world_with_topic(**settings: str) -> NodeWorld:
    world = NodeWorld(**settings).start()
    assert world.create("t") == errors.NONE
    assert world.produce("t").base_offset == 0
    return world


def set_free(world: NodeWorld, free: int, total: int = 100 * GIB) -> None:
    """The volume has this much room, of which other programs leave so much."""
    world.disk.free_bytes = lambda path: free  # type: ignore[method-assign]
    world.disk.total_bytes = lambda path: total  # type: ignore[method-assign]
    world.run(1100)


def fetched(world: NodeWorld) -> int:
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20)
    request.topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    partition = world.ask(request, 11).responses[0].partitions[0]
    assert partition.error_code == errors.NONE
    return len(partition.records.to_bytes())


def commit(world: NodeWorld) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
    asked = world.send(request, 8)
    world.run(2000)
    return int(asked.response.topics[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("setting", "total", "low", "enough"),
    [
        ("", 100 * GIB, (256 << 20) - 1, GIB),
        ("", 100 << 20, (5 << 20) - 1, 6 << 20),
        ("10000000", 100 * GIB, 9_999_999, 11_000_000),
    ],
)
def test_producers_wait_and_consumers_go_on(setting: str, total: int, low: int, enough: int) -> None:
    world = world_with_topic(**({"moldau_log_dir_free_bytes_min": setting} if setting else {}))
    set_free(world, low, total)
    answer = world.produce("t")
    assert answer.error_code == errors.KAFKA_STORAGE_ERROR
    assert answer.error_message is not None and "free space" in answer.error_message
    assert fetched(world) > 0
    assert world.node.logs.directories[0].low_space_refusals_total == 1
    set_free(world, enough, total)
    assert world.produce("t").base_offset == 1
    assert world.fatal == []


def test_the_nodes_own_logs_still_grow() -> None:
    """Topics are deleted and offsets committed while producers wait: that is how space comes back."""
    world = world_with_topic(offsets_topic_num_partitions="1", offsets_topic_replication_factor="1")
    world.ask(FindCoordinatorRequest(key="g"), 3)
    world.run(2000)
    set_free(world, 1 << 20)
    assert commit(world) == errors.NONE
    assert world.create("u") == errors.NONE
    assert world.delete("t") == errors.NONE


def test_zero_switches_it_off() -> None:
    world = world_with_topic(moldau_log_dir_free_bytes_min="0")
    set_free(world, 100_000)
    assert world.produce("t").error_code == errors.NONE


def test_a_volume_on_the_edge_does_not_come_and_go() -> None:
    world = world_with_topic(moldau_log_dir_free_bytes_min="1000000")
    set_free(world, 999_999)
    set_free(world, 1_000_001)
    assert world.produce("t").error_code == errors.KAFKA_STORAGE_ERROR
    set_free(world, 1_100_000)
    assert world.produce("t").error_code == errors.NONE
