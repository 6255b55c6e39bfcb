"""Offsets that are missing between two segments: removed by compaction, and then nothing else goes; or lost.

The records behind a loss go too, so that a follower fetches all of them again; behind a compaction they stay.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.log_config import LogConfig
from moldau.server.posix_disk import PosixDisk
from moldau.storage.checkpoints import CLEANER_FILE, RECOVERY_POINT_FILE, read_offsets, write_offsets
from moldau.storage.log_manager import LogManager
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append, config, read_all

ONE_BATCH_A_SEGMENT = config(segment_bytes=100)
COMPACTED = config(segment_bytes=100, compact=True, delete=False)
PARTITION = ("t", 0)
ALL = [0, 1, 2, 3, 4, 5]


def crashed_with_gap(tmp_path: Path, recovery_point: int | None, cleaned_to: int | None) -> None:
    """Segments at 0 to 5 of which the one at 2 is empty; the checkpoints are as given, None for a missing file."""
    disk = PosixDisk()
    logs = LogManager(disk, [str(tmp_path)], lambda topic: ONE_BATCH_A_SEGMENT)
    logs.load(NOW_MS)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for number in range(6):
        append(log, b"%d" % number)
    assert log.base_offsets == ALL
    disk.close()
    (tmp_path / "t-0" / f"{2:020d}.log").write_bytes(b"")
    for name, offset in ((RECOVERY_POINT_FILE, recovery_point), (CLEANER_FILE, cleaned_to)):
        if offset is None:
            (tmp_path / name).unlink(missing_ok=True)
        else:
            write_offsets(disk, str(tmp_path / name), {PARTITION: offset})


def offsets_after_start(tmp_path: Path, settings: LogConfig) -> list[int]:
    disk = PosixDisk()
    logs = LogManager(disk, [str(tmp_path)], lambda topic: settings)
    logs.load(NOW_MS)
    log = logs.logs[PARTITION]
    found = [offset for offset, _ in read_all(log)]
    assert log.producers.end_offset == log.log_end_offset, "a snapshot is named after it"
    disk.close()
    return found


@pytest.mark.parametrize(
    ("recovery_point", "cleaned_to", "settings", "kept"),
    [
        (0, 0, ONE_BATCH_A_SEGMENT, [0, 1]),  # a loss: nobody has compacted anything there
        (2, 2, ONE_BATCH_A_SEGMENT, [0, 1]),
        (3, 0, ONE_BATCH_A_SEGMENT, [0, 1, 3, 4, 5]),  # flushed, so not lost
        (0, 5, ONE_BATCH_A_SEGMENT, [0, 1, 3, 4, 5]),  # compacted, as the checkpoint of the cleaner says
        (0, 0, COMPACTED, [0, 1, 3, 4, 5]),  # Apache Kafka may compact what it has not flushed
        (None, 0, ONE_BATCH_A_SEGMENT, [0, 1, 3, 4, 5]),  # nobody knows
        (0, None, ONE_BATCH_A_SEGMENT, [0, 1, 3, 4, 5]),
    ],
)
def test_what_is_behind_a_gap(
    tmp_path: Path, recovery_point: int | None, cleaned_to: int | None, settings: LogConfig, kept: list[int]
) -> None:
    crashed_with_gap(tmp_path, recovery_point, cleaned_to)
    assert offsets_after_start(tmp_path, settings) == kept


@pytest.mark.parametrize("unknown", [True, False])
def test_a_gap_that_was_accepted_once_stays_accepted(tmp_path: Path, unknown: bool) -> None:
    """The policy may change to delete right after the start, and the node crash once more."""
    crashed_with_gap(tmp_path, None if unknown else 0, 0)
    assert offsets_after_start(tmp_path, ONE_BATCH_A_SEGMENT if unknown else COMPACTED) == [0, 1, 3, 4, 5]
    assert offsets_after_start(tmp_path, ONE_BATCH_A_SEGMENT) == [0, 1, 3, 4, 5]


def test_the_recovery_point_on_disk_is_raised_before_a_compaction(tmp_path: Path) -> None:
    disk = PosixDisk()
    logs = LogManager(disk, [str(tmp_path)], lambda topic: COMPACTED)
    logs.load(NOW_MS)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for number in range(6):
        append(log, b"%d" % number)
    path = str(tmp_path / RECOVERY_POINT_FILE)
    assert log.recovery_point == 5
    assert read_offsets(disk, path).get(PARTITION, 0) == 0
    logs.checkpoints.ensure_recovery_point(log, 5, lambda error: None)
    assert read_offsets(disk, path) == {PARTITION: 5}
    disk.close()
