"""The process that compacts a log ends with its node: alone it would write into files that another node uses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from moldau.server.posix_disk import PosixDisk
from moldau.storage.log_manager import CannotStart, LogManager
from tests.pace import wait_until
from tests.unit.storage.helpers import config

PARENT = """
import asyncio, sys
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.server.compaction_processes import CompactionProcesses
from moldau.server.posix_disk import PosixDisk
from moldau.config.log_config import LogConfig
from moldau.storage.compaction.cleaner import CleanerSettings, LogCleaner
from moldau.storage.log_manager import LogManager

async def main():
    settings = LogConfig(segment_bytes=20_000, compact=True, delete=False)
    disk = PosixDisk()
    logs = LogManager(disk, [sys.argv[1]], lambda topic: settings)
    logs.load(1)
    log = logs.create("t", 0, bytes(16), 1)
    for number in range(100):
        builder = BatchBuilder()
        builder.append(1, b"key", bytes(1000))
        log.append_as_leader(MemoryRecords(builder.build()), 0, 1)
    log.flush()
    workers = CompactionProcesses(disk)
    slow = CleanerSettings(bytes_per_second=1.0)
    LogCleaner(logs, workers, slow, lambda log: log.log_end_offset).poll(1)
    while not workers._processes:
        await asyncio.sleep(0.01)
    print(next(iter(workers._processes.values())).pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def is_running(pid: int) -> bool:
    """Whether it still does something; nobody may be there to collect one that has ended."""
    try:
        return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout[:1] not in (
            "",
            "Z",
        )
    except OSError:
        return Path(f"/proc/{pid}").exists()


def test_it_ends_when_its_node_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    try:
        assert is_running(worker)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_until(lambda: not is_running(worker), 30, "the worker goes on without its node")
    # And nobody holds the directory any more.

    def load() -> LogManager | None:
        logs = LogManager(PosixDisk(), [str(tmp_path)], lambda topic: config(compact=True))
        try:
            logs.load(1)
        except CannotStart:
            return None
        return logs

    logs = wait_until(load, 30)
    assert logs is not None
    assert logs.logs[("t", 0)].log_end_offset == 100
    assert not list((tmp_path / "t-0").glob("*.cleaned"))
