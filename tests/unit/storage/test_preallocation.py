"""With `preallocate` space for a whole segment is set aside when its file is made, and given back when it is closed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from moldau.config.log_config import LogConfig
from moldau.server.posix_disk import PosixDisk
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append, config, read_all

SEGMENT_BYTES = 1 << 20
SLACK_BYTES = 64 << 10  # what a file system may round up

SETTINGS = config(segment_bytes=SEGMENT_BYTES, preallocate=True)


@pytest.fixture(autouse=True)
def volume_that_can(tmp_path: Path) -> None:
    disk = PosixDisk()
    file = disk.open(str(tmp_path / "probe"), create=True)
    file.reserve(SEGMENT_BYTES)
    if space_of(tmp_path / "probe") < SEGMENT_BYTES:
        pytest.skip(f"the file system of {tmp_path} ({sys.platform}) sets no space aside")
    disk.close()


def space_of(path: Path | str) -> int:
    return os.stat(path).st_blocks * 512


def open_logs(tmp_path: Path, settings: LogConfig = SETTINGS, free_bytes_min: int = 0) -> LogManager:
    logs = LogManager(PosixDisk(), [str(tmp_path / "data")], lambda topic: settings)
    logs.free_bytes_min = free_bytes_min
    logs.load(NOW_MS)
    return logs


def segment_files(log: Log) -> list[str]:
    return [segment.path(".log") for segment in log.segments]


def test_a_new_segment_has_all_its_space_and_no_more_bytes_than_were_written(tmp_path: Path) -> None:
    logs = open_logs(tmp_path)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    (path,) = segment_files(log)
    assert os.path.getsize(path) == 0
    assert space_of(path) >= SEGMENT_BYTES
    append(log, bytes(1000))
    assert os.path.getsize(path) == log.size_bytes < 2000
    assert space_of(path) >= SEGMENT_BYTES
    assert read_all(log) == [(0, bytes(1000))]


def test_off_by_default(tmp_path: Path) -> None:
    assert not LogConfig().preallocate
    logs = open_logs(tmp_path, config(segment_bytes=SEGMENT_BYTES))
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, bytes(1000))
    assert space_of(segment_files(log)[0]) <= SLACK_BYTES


def test_a_closed_segment_takes_no_more_than_it_has(tmp_path: Path) -> None:
    logs = open_logs(tmp_path)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, bytes(1000))
    log.roll(NOW_MS)
    append(log, bytes(1000))
    old, active = segment_files(log)
    assert space_of(old) <= SLACK_BYTES
    assert space_of(active) >= SEGMENT_BYTES
    logs.shutdown(NOW_MS)
    assert space_of(active) <= SLACK_BYTES
    again = open_logs(tmp_path).logs[("t", 0)]
    assert read_all(again) == [(0, bytes(1000)), (1, bytes(1000))]
    # As with Apache Kafka, only a new file is given space.
    append(again, bytes(1000))
    assert space_of(active) <= SLACK_BYTES


@pytest.mark.parametrize("still_on", [True, False])
def test_after_a_kill_the_space_is_still_there_and_goes_back_with_the_next_roll(tmp_path: Path, still_on: bool) -> None:
    logs = open_logs(tmp_path)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, bytes(1000))
    path = segment_files(log)[0]
    logs.disk.unlock_directory(logs.directories[0].path)
    again = open_logs(tmp_path, SETTINGS if still_on else config(segment_bytes=SEGMENT_BYTES)).logs[("t", 0)]
    assert space_of(path) >= SEGMENT_BYTES
    assert not again.log_directory.truncated_in_recovery, "space that was set aside is no torn end"
    append(again, bytes(1000))
    again.roll(NOW_MS)
    assert space_of(path) <= SLACK_BYTES
    assert read_all(again) == [(0, bytes(1000)), (1, bytes(1000))]


def test_a_volume_with_little_space_is_not_filled_with_nothing(tmp_path: Path) -> None:
    """Setting space aside never makes the volume so full that producers are refused."""
    free_bytes = PosixDisk().free_bytes(str(tmp_path))
    settings = config(segment_bytes=free_bytes // 2, preallocate=True)
    logs = open_logs(tmp_path, settings, free_bytes_min=free_bytes * 3 // 4)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, bytes(1000))
    assert space_of(segment_files(log)[0]) <= SLACK_BYTES
    assert not log.log_directory.low_space


def test_a_file_system_that_refuses_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("moldau.server.posix_disk.reserve_space", refuse)
    logs = open_logs(tmp_path)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, bytes(1000))
    assert not log.log_directory.failed
    assert read_all(log) == [(0, bytes(1000))]
