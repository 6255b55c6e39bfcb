"""A failed log directory takes its own partitions offline, tells the controller, and costs no other partition."""

from __future__ import annotations

import errno

import pytest

from moldau.protocol import errors
from tests.unit.node.world import NodeWorld, batch, produce_request


def two_directories() -> NodeWorld:
    world = NodeWorld("/data,/data2").start()
    assert world.create("t", 4) == errors.NONE
    world.run(200)
    return world


def directory_of(world: NodeWorld, topic: str, index: int) -> str:
    partition = world.node.replicas.find(topic, index)
    assert partition is not None and partition.log is not None
    return partition.log.log_directory.path


def in_second(world: NodeWorld, topic: str) -> int:
    return next(index for index in range(4) if directory_of(world, topic, index) == "/data2")


def in_first(world: NodeWorld, topic: str) -> int:
    return next(index for index in range(4) if directory_of(world, topic, index) == "/data")


def leaders(world: NodeWorld, topic: str) -> dict[int, int]:
    return {partition.partition_index: partition.leader_id for partition in world.describe(topic).partitions}


def test_the_controller_learns_in_which_directory_each_replica_is() -> None:
    world = two_directories()
    ids = {directory.path: directory.directory_id for directory in world.node.logs.directories}
    topic = world.node.image.topics_by_name["t"]
    for index, registration in topic.partitions.items():
        assert registration.directory_of(1) == ids[directory_of(world, "t", index)]
    assert world.node.replicas.misplaced == {}


def test_partitions_of_a_failed_directory_lose_their_leader_and_the_others_go_on() -> None:
    world = two_directories()
    lost, kept = in_second(world, "t"), in_first(world, "t")
    world.disk.fail("append", "/data2/", errno.EIO)
    assert world.produce("t", lost).error_code == errors.KAFKA_STORAGE_ERROR
    assert world.produce("t", kept).error_code == errors.NONE
    world.run(3000)
    assert leaders(world, "t")[lost] == -1 and leaders(world, "t")[kept] == 1
    assert world.describe("t").partitions[lost].offline_replicas == [1]
    assert world.fatal == []


def test_deleting_a_topic_of_a_directory_that_fails_meanwhile_does_not_stop_the_node() -> None:
    world = two_directories()
    assert world.create("u", 4) == errors.NONE
    world.disk.fail("rename", "/data2/", errno.EIO)
    assert world.delete("u") == errors.NONE
    assert world.fatal == []
    assert world.produce("t", in_first(world, "t")).error_code == errors.NONE


def test_a_new_partition_whose_directory_fails_is_made_in_another() -> None:
    world = two_directories()
    lost = in_second(world, "t")
    world.disk.fail("open", "/data2/u-", errno.EIO, times=100)
    world.disk.fail("mkdir", "/data2/u-", errno.EIO, times=100)
    assert world.create("u", 4) == errors.NONE
    world.run(4000)
    assert set(leaders(world, "u").values()) == {1} and leaders(world, "t")[lost] == -1
    assert {directory_of(world, "u", index) for index in range(4)} == {"/data"}
    world.disk.clear_faults()
    world.leave()
    world.stop()
    world.start()
    world.run(1000)
    assert set(leaders(world, "u").values()) == {1} and set(leaders(world, "t").values()) == {1}
    assert [world.produce("u", index).base_offset for index in range(4)] == [0, 0, 0, 0]


def test_a_directory_that_is_unreadable_at_start_is_not_replaced_by_empty_logs() -> None:
    world = two_directories()
    lost = in_second(world, "t")
    assert world.produce("t", lost).base_offset == 0
    world.leave()
    world.stop()
    world.disk.fail("read", "/data2/", errno.EIO, times=100)
    world.disk.fail("list", "/data2", errno.EIO, times=100)
    world.start()
    world.run(3000)
    assert world.node.replicas.find("t", lost).log is None  # type: ignore[union-attr]
    assert leaders(world, "t")[lost] == -1
    world.leave()
    world.stop()
    world.disk.clear_faults()
    world.start()
    world.run(1000)
    assert world.produce("t", lost).base_offset == 1


# A full disk


def test_a_full_disk_keeps_a_new_partition_waiting_and_everything_else_going() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    world.disk.fail("open", "/data/u-", errno.ENOSPC, times=6)
    assert world.create("u", 2) == errors.NONE
    assert world.produce("t").error_code == errors.NONE
    assert errors.NONE not in {world.produce("u", index).error_code for index in range(2)}
    world.run(6000)
    assert world.fatal == []
    assert leaders(world, "u") == {0: 1, 1: 1}
    assert [world.produce("u", index).base_offset for index in range(2)] == [0, 0]


def test_a_new_partition_that_waits_for_space_may_be_deleted() -> None:
    world = NodeWorld().start()
    world.disk.fail("open", "/data/u-", errno.ENOSPC, times=1000)
    assert world.create("u") == errors.NONE
    assert world.delete("u") == errors.NONE
    world.disk.clear_faults()
    world.run(3000)
    assert "/data/u-0" not in {path.rpartition("/")[0] for path in world.disk.all_files()}
    assert world.create("u") == errors.NONE
    assert world.produce("u").base_offset == 0


def test_checkpoints_wait_for_space(caplog: pytest.LogCaptureFixture) -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    world.disk.fail("append", "-checkpoint.tmp", errno.ENOSPC, times=1000)
    for _ in range(4):
        assert world.produce("t").error_code == errors.NONE
        world.run(5000)
    assert world.fatal == []
    assert sum("is full" in record.getMessage() for record in caplog.records) == 1
    world.disk.clear_faults()
    world.produce("t")
    world.run(6000)
    assert any("has space again" in record.getMessage() for record in caplog.records)


def test_a_stop_on_a_full_disk_does_not_claim_to_be_clean() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    assert world.produce("t").error_code == errors.NONE
    world.disk.fail("append", "-checkpoint.tmp", errno.ENOSPC, times=1000)
    world.leave()
    world.stop()
    assert not world.disk.exists("/data/.kafka_cleanshutdown")
    world.disk.clear_faults()
    world.start()
    assert world.produce("t").base_offset == 1


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_a_disk_that_fails_under_the_metadata_log_is_not_trusted_with_partitions_either(operation: str) -> None:
    """The node ends: nobody else tells what it has lost."""
    world = two_directories()
    assert [world.disk.recall(path) != "" for path in ("/data", "/data2")] == [True, True]
    world.disk.fail(operation, "__cluster_metadata-0", errno.EIO)
    world.run(3000)
    assert world.fatal
    assert [world.disk.recall(path) != "" for path in ("/data", "/data2")] == [False, True]


def test_a_disk_that_is_full_under_the_metadata_log_has_lost_nothing() -> None:
    world = two_directories()
    world.disk.fail("append", "__cluster_metadata-0", errno.ENOSPC, times=100)
    world.run(3000)
    assert world.disk.recall("/data") != ""


def test_a_node_whose_disk_breaks_down_forgets_its_run_without_it() -> None:
    """The next run, on a disk that came back without what was written last, does not say that it has lost nothing."""
    world = NodeWorld().start()
    assert world.create("t", 1) == errors.NONE
    world.run(200)
    assert world.disk.recall("/data") != ""
    world.disk.break_down()
    world.send(produce_request("t", 0, batch(world.now_ms)), 9)
    world.run(3000)
    assert world.fatal and world.disk.recall("/data") == ""
    world.events.clear()
    world.disk.come_back()
    world.start()
    assert world.node.logs.runs.previous_broker_epoch() == -1
