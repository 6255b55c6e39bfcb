"""A node that stops has written everything down; one that starts again goes on where it was."""

from __future__ import annotations

import errno

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.storage.log_manager import CannotStart
from tests.unit.node.cluster import Cluster
from tests.unit.node.world import NodeWorld, batch, produce_request


def test_a_controlled_shutdown_gives_leadership_up_before_it_ends() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    assert world.leave()
    assert world.produce("t").error_code == errors.NOT_LEADER_OR_FOLLOWER
    world.stop()
    assert world.disk.exists("/data/.kafka_cleanshutdown")


def test_a_waiting_fetch_is_answered_when_the_node_leaves() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    partition = FetchPartition(partition=0, current_leader_epoch=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1000,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=[partition])],
    )
    asked = world.send(request, 12)
    assert not asked.reply.done
    assert world.leave()
    assert asked.response.responses[0].partitions[0].error_code == errors.FENCED_LEADER_EPOCH


def test_a_clean_stop_keeps_records_offsets_topics_and_the_high_watermark() -> None:
    world = NodeWorld().start()
    assert world.create("t", 3) == errors.NONE
    for index in range(3):
        assert world.produce("t", index, values=index + 1).error_code == errors.NONE
    topic_id = world.describe("t").topic_id
    world.leave()
    world.stop()
    world.start()
    assert world.describe("t").topic_id == topic_id
    assert [world.produce("t", index).base_offset for index in range(3)] == [1, 2, 3]
    assert world.node.logs.runs.loaded_unclean is False


def test_a_stop_without_a_start_to_the_end_is_harmless() -> None:
    world = NodeWorld().start()
    world.stop()
    world.start()
    assert world.create("t") == errors.NONE


def test_a_disk_that_fails_while_the_node_stops_is_reported_and_nothing_more() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    world.send(produce_request("t", 0, batch(world.now_ms)), 9)
    for operation in ("append", "sync", "rename", "create", "open"):
        world.disk.fail(operation, "/data", errno.EIO, times=1000)
    world.stop()
    world.disk.clear_faults()
    assert not world.disk.exists("/data/.kafka_cleanshutdown")
    world.disk.unlock_directory("/data")
    world.start()
    assert world.produce("t").base_offset in (0, 1)


def test_high_watermarks_are_written_down_without_waiting_for_the_disk() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    world.run(6000)
    world.disk.fail("sync", "replication-offset-checkpoint", errno.EIO, times=1000)
    assert world.produce("t", values=3).error_code == errors.NONE
    world.run(6000)
    assert world.disk.peek("/data/replication-offset-checkpoint") == b"0\n1\nt 0 3\n"
    assert world.fatal == []


METADATA = "/data/__cluster_metadata-0/00000000000000000000.log"


def with_topics() -> NodeWorld:
    world = NodeWorld().start()
    for topic in ("t", "u"):
        assert world.create(topic) == errors.NONE
    return world


def test_a_metadata_log_that_is_damaged_after_a_clean_stop_is_not_cut() -> None:
    world = with_topics()
    world.leave()
    world.stop()
    before = world.disk.peek(METADATA)
    for position in (8, 30, len(before) // 2, len(before) - 1):
        world.disk.flip_bit(METADATA, position, 3)
        damaged = world.disk.peek(METADATA)
        with pytest.raises(CannotStart, match="damaged"):
            world.start()
        world.disk.unlock_directory("/data")
        assert world.disk.peek(METADATA) == damaged
        world.disk.flip_bit(METADATA, position, 3)
    world.start()
    assert world.describe("t").error_code == errors.NONE


def test_a_metadata_log_that_is_torn_after_a_crash_is_cut() -> None:
    world = with_topics()
    world.disk.process_crash()
    world.disk.flip_bit(METADATA, len(world.disk.peek(METADATA)) - 1, 3)
    world.events.clear()
    world.start()
    assert world.describe("t").error_code == errors.NONE


@pytest.mark.parametrize("roles", ["broker", "broker,controller"])
def test_a_sync_that_ends_after_the_stop_is_no_failure(roles: str, caplog: pytest.LogCaptureFixture) -> None:
    """A node that stops while it still catches up has a sync of its metadata log under way, whose end then says that
    more is committed: it must not look for that in a log that is closed. Stopped after each millisecond of a start."""
    cluster = Cluster({1: "broker,controller", 2: roles, 3: "broker,controller"})
    for node_id in (1, 3):
        cluster[node_id].start()
    cluster.run_until(cluster.has_active)
    for run_ms in range(60):
        cluster[2].start()
        cluster.run(run_ms)
        cluster[2].node.stop(cluster.now_ms)
        cluster[2].is_up = False
        cluster.run(50)
        assert cluster[2].fatal == [], f"stopped after {run_ms} ms"
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_snapshot_that_is_synced_after_the_stop_touches_nothing() -> None:
    """By then the directory may belong to another process."""
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    world.node.metadata.write_snapshot(world.now_ms)
    events = list(world.events)
    world.stop()
    before = world.disk.list("/data/__cluster_metadata-0")
    assert events
    for _, _, action in sorted(events, key=lambda event: event[:2]):
        action()
    assert world.disk.list("/data/__cluster_metadata-0") == before
    assert world.fatal == []
    world.start()
    assert world.describe("t").error_code == errors.NONE
