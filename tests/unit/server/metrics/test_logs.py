"""What a broker tells of its logs is what is on its disk."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from moldau.metrics.recent_values import RecentValues
from moldau.protocol import errors
from moldau.server.posix_disk import PosixDisk
from tests.pace import patience
from tests.unit.node.test_directory_moves import move, other, started
from tests.unit.node.world import NodeWorld
from tests.unit.server.metrics.pages import page_of


def test_sizes_and_offsets() -> None:
    world = NodeWorld().start()
    assert world.create("t", 2, internal_segment_bytes="300", retention_bytes="2000") == errors.NONE
    for _ in range(6):
        assert world.produce("t", 1, 10).error_code == errors.NONE
    partition = world.node.replicas.find("t", 1)
    assert partition is not None and partition.log is not None
    partition.delete_records(20, world.now_ms)
    page = page_of(world.node, world.now_ms)
    place = ("topic=t", "partition=1")
    size = page["kafka_log_log_size", *place]
    assert size == partition.log.size_bytes > 600
    assert page["kafka_log_log_numlogsegments", *place] == len(partition.log.segments) > 2
    assert page["kafka_log_log_logstartoffset", *place] == 20
    assert page["kafka_log_log_logendoffset", *place] == 60
    assert page["kafka_log_log_retentionsizeinpercent", *place] == int(size * 100 / 2000)
    assert page["kafka_log_log_retentionsizeinpercent", "topic=t", "partition=0"] == 0
    assert page["kafka_topic_partition_oldest_offset", *place] == 20
    assert page["kafka_partition_latest_offset", *place] == 60


def test_a_copy_that_is_being_made_is_told_apart() -> None:
    world = started()
    for _ in range(20):
        world.produce("t", values=10)
    assert move(world, other(world)) == errors.NONE
    rows = page_of(world.node, world.now_ms).rows("kafka_log_log_logendoffset")
    assert rows['topic="t",partition="0"'] == 200
    assert rows['is_future="true",topic="t",partition="0"'] <= 200


def test_directories_that_failed_are_counted() -> None:
    world = NodeWorld(log_dirs="/data,/data2").start()
    world.create("t", 4)
    page = page_of(world.node, world.now_ms)
    assert page["kafka_log_logmanager_offlinelogdirectorycount"] == 0
    failing = next(one for one in world.node.logs.directories if one.path == "/data2")
    hosted = sum(p.log is not None and p.log.log_directory is failing for p in world.node.replicas.all())
    failing.fail(OSError("gone"))
    page = page_of(world.node, world.now_ms)
    assert page["kafka_log_logmanager_offlinelogdirectorycount"] == 1
    assert page["kafka_log_logmanager_logdirectoryoffline", "logDirectory=/data2"] == 1
    assert page["kafka_server_replicamanager_offlinereplicacount"] == hosted == 2


def test_flushes_of_segments_are_timed_and_shown(tmp_path: Path) -> None:
    async def run() -> RecentValues:
        loop = asyncio.get_running_loop()

        def post(function: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(function)

        disk = PosixDisk(post)
        try:
            for name in ("00000000000000000000.log", "00000000000000000000.index"):
                done = loop.create_future()
                file = disk.open(os.fspath(tmp_path / name), create=True)
                file.append([b"x"])
                disk.sync_later(file, done.set_result)
                assert await asyncio.wait_for(done, patience(10)) is None
        finally:
            disk.close()
        return disk.flush_times

    times = asyncio.run(run())
    assert times.count == 1, "an index is no segment"
    world = NodeWorld().start()
    now_ms = int(time.monotonic() * 1000)
    page = page_of(world.node, now_ms, flush_times=times)
    assert page["kafka_log_logflushstats_logflushrateandtimems_count"] == 1
    assert page["kafka_log_logflushstats_logflushrateandtimems", "quantile=0.99"] > 0
