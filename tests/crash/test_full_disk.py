"""A volume that fills up under load: nothing acknowledged is lost, the node stays, service comes back with space."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.raw import RawConnection, parse_produce_answer
from tests.crash.test_kill import TOPIC, PartitionLoad, check_everything_acknowledged_is_there
from tests.interop.nodes import MoldauNode
from tests.pace import patience

VOLUME_MB = 40
BALLAST_MB = 12
KAFKA_STORAGE_ERROR = 56
COMES_BACK_S_MAX = patience(20)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small volume needs root on Linux")
    path = tmp_path / "node" / "data"
    path.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={VOLUME_MB}m", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small volume cannot be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


class Writer:
    """Pipelines produce requests; refused ones are sent again later as new records, as far as the log is concerned."""

    def __init__(self, node: MoldauNode, loads: list[PartitionLoad]) -> None:
        self.loads = loads
        self.rng = random.Random(4)
        self.base_ms = int(time.time() * 1000) - 1_000_000
        self.connection = RawConnection(node.port)
        self.acknowledged = 0
        self.refused = 0

    def write(self, requests: int) -> None:
        waiting: deque[tuple[int, int, int]] = deque()
        for number in range(requests + 20):
            if number < requests:
                load = self.rng.choice(self.loads)
                first, count, batch = load.next_batch(self.rng, self.base_ms)
                self.connection.send_produce(TOPIC, load.partition, batch, acks=self.rng.choice((1, -1)))
                waiting.append((load.partition, first, count))
            if waiting and (len(waiting) >= 20 or number >= requests):
                self._receive(*waiting.popleft())

    def _receive(self, partition: int, first: int, count: int) -> None:
        answered, error, base_offset = parse_produce_answer(self.connection.receive()[1], TOPIC)
        assert answered == partition
        if error == 0:
            self.acknowledged += 1
            self.loads[partition].acknowledge(base_offset, first, count)
        else:
            assert error == KAFKA_STORAGE_ERROR, "the one error that tells producers to try again"
            self.refused += 1


def fill_to_the_last_byte(path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass


def check_log(node: MoldauNode, loads: list[PartitionLoad]) -> None:
    with RawConnection(node.port) as connection:
        for load in loads:
            check_everything_acknowledged_is_there(connection, load)


@pytest.mark.parametrize("free_bytes_min", ["-1", "0"], ids=["refused before it is full", "full"])
def test_a_full_disk_under_load(tmp_path: Path, volume: Path, free_bytes_min: str) -> None:
    """Without protection the writes themselves fail, also those of the node's own small files."""
    settings = {
        "moldau.log.dir.free.bytes.min": free_bytes_min,
        "log.flush.offset.checkpoint.interval.ms": "300",
        "replica.high.watermark.checkpoint.interval.ms": "300",
    }
    node = MoldauNode(tmp_path / "node", settings)
    node.format()
    node.start()
    ballast = volume / "ballast"
    loads = [PartitionLoad(partition) for partition in range(2)]
    try:
        with RawConnection(node.port) as connection:
            connection.create_topic(TOPIC, 2, {"segment.bytes": str(1 << 20), "retention.ms": "-1"})
            connection.await_topic(TOPIC, 2)
        ballast.write_bytes(bytes(BALLAST_MB << 20))
        writer = Writer(node, loads)
        deadline = time.monotonic() + patience(120)
        while writer.refused < 50:
            writer.write(200)
            assert time.monotonic() < deadline, "the volume does not fill up"
        status = os.statvfs(volume)
        if free_bytes_min == "-1":
            assert status.f_bavail > 0, "producers were refused before the disk was full"
        fill_to_the_last_byte(ballast)
        for _ in range(6):
            writer.write(50)
            time.sleep(0.3)
        assert node.process is not None and node.process.poll() is None, node.output()[-3000:]
        check_log(node, loads)
        before = writer.acknowledged
        ballast.unlink()
        freed = time.monotonic()
        while writer.acknowledged == before:
            writer.write(1)
            time.sleep(0.1)
            assert time.monotonic() < freed + COMES_BACK_S_MAX, "service does not come back with the space"
        writer.write(500)
        check_log(node, loads)
        writer.connection.close()
        assert node.stop() == 0, node.output()[-3000:]
        node.start()
        check_log(node, loads)
        assert node.stop() == 0
    finally:
        node.kill()
