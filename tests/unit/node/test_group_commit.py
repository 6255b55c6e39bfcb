"""`flush.messages`: producers hear of their records when these are on the medium, and share the syncs."""

from __future__ import annotations

import errno

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.storage.log import Log
from tests.unit.node.world import Asked, NodeWorld, batch, produce_request


def synced_topic(flush_messages: int = 1) -> NodeWorld:
    world = NodeWorld().start()
    world.disk.sync_delay_ms = (30, 30)
    assert world.create("t", flush_messages=str(flush_messages)) == errors.NONE
    log_of(world).flushing.later(0, None)  # its folder: what is left for a flush to sync is the segment
    world.run(200)
    return world


def log_of(world: NodeWorld) -> Log:
    log = world.node.logs.get("t", 0)
    assert log is not None
    return log


def send(world: NodeWorld, acks: int) -> Asked:
    return world.send(produce_request("t", 0, batch(world.now_ms), acks), 9)


def error_of(asked: Asked) -> int:
    return int(asked.response.responses[0].partition_responses[0].error_code)


def visible(world: NodeWorld) -> int:
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20)
    request.topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    return int(world.ask(request, 11).responses[0].partitions[0].high_watermark)


@pytest.mark.parametrize("acks", [1, -1])
def test_many_requests_wait_for_two_syncs(acks: int) -> None:
    """The first append starts a sync, those that come while it runs share the next one."""
    world = synced_topic()
    asked = [send(world, acks) for _ in range(50)]
    assert not any(one.reply.done for one in asked)
    assert visible(world) == 0, "nobody reads what a power loss could take away"
    world.run(40)
    assert [one.reply.done for one in asked] == [True] + [False] * 49
    assert visible(world) == 1
    world.run(40)
    assert all(error_of(one) == errors.NONE for one in asked)
    assert visible(world) == 50
    assert log_of(world).flushing.total == 2


@pytest.mark.parametrize("acks", [1, -1])
def test_what_was_acknowledged_survives_a_power_loss(acks: int) -> None:
    world = synced_topic()
    asked = [send(world, acks) for _ in range(5)]
    world.run(40)
    acknowledged = sum(one.reply.done for one in asked)
    assert acknowledged == 1
    world.events.clear()
    world.disk.power_loss()
    world.start()
    assert log_of(world).log_end_offset >= acknowledged


def test_a_flush_that_fails_is_not_acknowledged() -> None:
    world = synced_topic()
    world.disk.fail("sync", "/t-0/", errno.EIO)
    asked = [send(world, acks) for acks in (1, -1)]
    world.run(100)
    assert {error_of(one) for one in asked} <= {errors.KAFKA_STORAGE_ERROR, errors.NOT_LEADER_OR_FOLLOWER}


def test_without_acknowledgement_nobody_waits() -> None:
    world = synced_topic()
    assert send(world, 0).reply.done


def test_only_the_record_that_makes_it_so_many_waits() -> None:
    world = synced_topic(3)
    assert [send(world, 1).reply.done for _ in range(3)] == [True, True, False]
    assert visible(world) == 2
    world.run(100)
    assert visible(world) == 3
    assert send(world, 1).reply.done


def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    world = synced_topic()
    asked = send(world, 1)
    asked.reply.abandon()
    world.run(100)
    assert len(world.node.waiting) == 0
    partition = world.node.replicas.find("t", 0)
    assert partition is not None and partition.waiters == []


def test_a_roll_while_a_flush_runs_syncs_the_indexes_too() -> None:
    """Else the segment would lie below the recovery point with index entries that a power loss takes away."""
    world = NodeWorld().start()
    world.disk.sync_delay_ms = (30, 30)
    assert world.create("t", flush_messages="1", internal_segment_bytes="400", index_interval_bytes="0") == errors.NONE
    world.run(200)
    log = log_of(world)
    for _ in range(12):
        send(world, 1)
        log.roll(world.now_ms)
        world.run(20)
    world.run(3000)
    assert log.recovery_point == log.log_end_offset == 12
    world.node.logs.checkpoints.write_now()
    world.events.clear()
    world.disk.power_loss()
    world.start()
    log = log_of(world)
    assert log.log_end_offset == 12
    for segment in log.segments[:-1]:
        assert len(segment.time_index().entries()) == 1
