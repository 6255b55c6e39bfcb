"""Replicas move between log directories while they are written, and whatever happens on the way costs no record."""

from __future__ import annotations

import errno
import random

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from moldau.protocol.records_data import FileRecords
from moldau.records.batch import split_batches
from moldau.replication.partition import Partition
from moldau.sim.kernel.disk import SimulatedCrash
from moldau.storage.disk import File
from moldau.storage.log import Log
from tests.unit.node.world import NodeWorld


def started(partitions: int = 1, **configs: str) -> NodeWorld:
    world = NodeWorld("/data,/data2").start()
    assert world.create("t", partitions, **configs) == errors.NONE
    world.run(200)
    return world


def find(world: NodeWorld, index: int = 0) -> Partition:
    partition = world.node.replicas.find("t", index)
    assert partition is not None
    return partition


def log_of(world: NodeWorld, index: int = 0) -> Log:
    log = find(world, index).log
    assert log is not None
    return log


def place(world: NodeWorld, index: int = 0) -> str:
    return log_of(world, index).log_directory.path


def other(world: NodeWorld, index: int = 0) -> str:
    return "/data2" if place(world, index) == "/data" else "/data"


def move(world: NodeWorld, path: str, index: int = 0, topic: str = "t") -> int:
    wanted = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])
    response = world.ask(AlterReplicaLogDirsRequest(dirs=[wanted]), 2)
    return int(response.results[0].partitions[0].error_code)


def rows(world: NodeWorld) -> list[tuple[str, bool, int]]:
    """(directory, whether it is a future replica, lag) of the topic's replicas."""
    response = world.ask(DescribeLogDirsRequest(topics=None), 4)
    return sorted(
        (result.log_dir, row.is_future_key, row.offset_lag)
        for result in response.results
        for topic in result.topics
        if topic.name == "t"
        for row in topic.partitions
    )


def content(log: Log) -> bytes:
    found, offset = b"", log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, 1 << 20, log.log_end_offset, True).records
        assert isinstance(records, FileRecords) and isinstance(records.file, File)
        data = records.file.read(records.position, records.size)
        found += data
        offset = int(split_batches(data, 0, len(data))[-1].last_offset) + 1
    return found


def folders(world: NodeWorld) -> list[str]:
    """Those of the topic, without the ones that wait for their removal."""
    names = [f"{path}/{name}" for path in ("/data", "/data2") for name in world.disk.list(path)]
    return [name for name in names if "/t-" in name and not name.endswith("-delete")]


def wait_for_move(world: NodeWorld, limit_ms: int = 20_000) -> None:
    for _ in range(limit_ms // 100):
        if len(world.node.directory_moves) == 0:
            return
        world.run(100)
    raise AssertionError("the move does not end")


def test_a_replica_moves_while_it_is_written() -> None:
    world = started()
    for _ in range(20):
        assert world.produce("t", values=10).error_code == errors.NONE
    before, old, new = content(log_of(world)), place(world), other(world)
    assert move(world, new) == errors.NONE
    assert world.produce("t", values=10).error_code == errors.NONE
    wait_for_move(world)
    assert place(world) == new
    assert content(log_of(world)).startswith(before)
    assert log_of(world).log_end_offset == 210
    assert folders(world) == [f"{new}/t-0"]
    assert world.produce("t").base_offset == 210
    ids = {directory.path: directory.directory_id for directory in world.node.logs.directories}
    world.run(200)
    assert world.node.image.topics_by_name["t"].partitions[0].directory_of(1) == ids[new]
    assert not world.node.replicas.misplaced
    world.run(70_000)
    assert [name for name in world.disk.list(old) if name.startswith("t-")] == []


def test_the_moved_log_survives_a_clean_restart_and_a_crash() -> None:
    world = started()
    world.produce("t", values=7)
    new = other(world)
    assert move(world, new) == errors.NONE
    wait_for_move(world)
    expected = content(log_of(world))
    world.leave()
    world.stop()
    world.start()
    assert (place(world), content(log_of(world))) == (new, expected)
    world.disk.process_crash()
    world.events.clear()
    world.start()
    assert (place(world), content(log_of(world))) == (new, expected)


def test_an_empty_replica_moves() -> None:
    world = started()
    new = other(world)
    assert move(world, new) == errors.NONE
    wait_for_move(world)
    assert place(world) == new
    assert world.produce("t").base_offset == 0


def test_describe_log_dirs_shows_the_future_replica_and_its_lag() -> None:
    world = started()
    world.produce("t", values=5)
    old, new = place(world), other(world)
    world.node.directory_moves.quota.limit = 1
    world.node.directory_moves.quota.record(1000, world.now_ms)
    assert move(world, new) == errors.NONE
    assert rows(world) == sorted([(old, False, 0), (new, True, 5)])


def test_a_throttle_slows_the_copy() -> None:
    world = started(segment_bytes="1048576")
    for _ in range(5):
        world.produce("t", values=20_000)
    size = log_of(world).size_bytes
    world.node.directory_moves.quota.limit = size // 10
    start_ms = world.now_ms
    assert move(world, other(world)) == errors.NONE
    wait_for_move(world)
    took_ms = world.now_ms - start_ms
    # The first piece is larger than what is allowed in a second; then the rate holds.
    assert 5_000 <= took_ms <= 13_000


def test_a_move_to_where_the_replica_is_ends_the_one_under_way() -> None:
    world = started()
    world.produce("t", values=5)
    old, new = place(world), other(world)
    world.node.directory_moves.quota.limit = 1
    world.node.directory_moves.quota.record(1000, world.now_ms)
    assert move(world, new) == errors.NONE
    assert len(folders(world)) == 2
    assert move(world, old) == errors.NONE
    assert len(world.node.directory_moves) == 0
    assert folders(world) == [f"{old}/t-0"] and rows(world) == [(old, False, 0)]
    assert world.produce("t").error_code == errors.NONE


def test_what_cannot_be_moved_is_answered_as_kafka_does() -> None:
    world = started()
    assert move(world, "/nowhere") == errors.LOG_DIR_NOT_FOUND
    assert move(world, "/data2", topic="unknown") == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert move(world, "/data2", index=9) == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert move(world, "/data2", topic="x" * 220) == errors.INVALID_TOPIC_EXCEPTION
    world.node.logs.directories[1].failed = True
    assert move(world, "/data2") == errors.KAFKA_STORAGE_ERROR


def test_a_topic_that_is_deleted_while_it_moves_is_gone_in_both_directories() -> None:
    world = started()
    world.produce("t", values=5)
    world.node.directory_moves.quota.limit = 1
    world.node.directory_moves.quota.record(1000, world.now_ms)
    assert move(world, other(world)) == errors.NONE
    assert world.delete("t") == errors.NONE
    world.run(100)
    assert folders(world) == [] and len(world.node.directory_moves) == 0


def test_a_directory_that_fails_ends_the_moves_into_it_and_nothing_else() -> None:
    world = started(4)
    index = next(number for number in range(4) if place(world, number) == "/data")
    world.produce("t", index, values=5)
    world.disk.fail("append", f"/data2/t-{index}.", errno.EIO, skip=1)
    assert move(world, "/data2", index) == errors.NONE
    world.run(500)
    assert len(world.node.directory_moves) == 0
    assert world.produce("t", index).error_code == errors.NONE
    assert world.fatal == []


def test_a_current_log_that_is_cut_takes_the_copy_with_it() -> None:
    """As when a follower finds that its log parted from its leader's while it moves."""
    world = started()
    for _ in range(4):
        world.produce("t", values=5)
    moves, partition, log = world.node.directory_moves, find(world), log_of(world)
    directory = moves.check_directory("t", 0, other(world))
    moves.assigns_directories = True
    moves.tell_directory = None  # stays caught up without taking over
    moves.request(partition, directory, world.now_ms)
    world.run(300)
    going = moves.find(partition)
    assert going is not None and going.lag == 0
    world.node.logs.truncate(log, 10, world.now_ms)
    log.leader_epochs.assign(7, 10)
    partition.leader_epoch = 7
    partition.high_watermark.restart_at(10)
    world.run(50)
    world.produce("t", values=3)
    world.run(300)
    assert going.lag == 0 and content(going.future) == content(log)
    assert going.future.leader_epochs.entries() == log.leader_epochs.entries()


def test_records_deleted_before_they_were_copied_are_left_out() -> None:
    world = started()
    for _ in range(4):
        world.produce("t", values=5)
    world.node.directory_moves.quota.limit = 1
    world.node.directory_moves.quota.record(1000, world.now_ms)
    assert move(world, other(world)) == errors.NONE
    find(world).delete_records(12, world.now_ms)
    world.node.directory_moves.quota.limit = 1 << 60
    wait_for_move(world)
    assert (log_of(world).log_start_offset, log_of(world).log_end_offset) == (12, 20)


@pytest.mark.parametrize("changes", [1, 5, 9, 10, 12, 15, 19, 24, 30, 31, 32, 33, 34, 35, 36])
@pytest.mark.parametrize("power", [False, True], ids=["killed", "without power"])
def test_a_crash_at_any_moment_of_a_move_costs_no_record_and_leaves_one_folder(changes: int, power: bool) -> None:
    """`changes` of the disk after the move began, up to its end, the machine stops; power takes what was not synced."""
    world = started()
    for _ in range(3):
        world.produce("t", values=50)
    log_of(world).flush()
    world.node.logs.checkpoints.write_now()
    flushed = content(log_of(world))
    old, new = place(world), other(world)
    assert world.produce("t", values=5).error_code == errors.NONE
    expected = content(log_of(world))
    world.disk.crash_after(changes)
    with pytest.raises(SimulatedCrash):
        move(world, new)
        world.run(2000)
    world.events.clear()
    if power:
        world.disk.power_loss(random.Random(changes))
    else:
        world.disk.process_crash()
    world.start()
    found = content(log_of(world))
    assert found.startswith(flushed) if power else found == expected
    wait_for_move(world)
    assert content(log_of(world)) == found
    assert folders(world) in ([f"{old}/t-0"], [f"{new}/t-0"])
    assert world.produce("t").base_offset == (155 if len(found) == len(expected) else 150)
