"""What the tests of storage share: batches, logs in a temporary folder, a disk that fails on request."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from moldau.config.log_config import LogConfig
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.batch import split_batches
from moldau.records.builder import BatchBuilder, end_transaction_batch
from moldau.records.walk import Record, read_records
from moldau.server.posix_disk import PosixDisk, PosixFile
from moldau.storage.disk import Buffer
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_results import AppendResult
from moldau.storage.recovery import create_log, load_log
from moldau.storage.validation import COORDINATOR

TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000


class FaultyFile(PosixFile):
    """Writes only `disk.bytes_left` more bytes, then fails as a full or broken disk does."""

    def append(self, parts: Sequence[Buffer]) -> int:
        disk = self.disk
        assert isinstance(disk, FaultyDisk)
        size = sum(map(len, parts))
        if disk.bytes_left is not None and size > disk.bytes_left:
            torn = b"".join(bytes(part) for part in parts)[: disk.bytes_left]
            if torn:
                super().append([torn])
            disk.bytes_left = 0
            raise OSError(disk.error, os.strerror(disk.error), self.path)
        return super().append(parts)

    def truncate(self, size: int) -> None:
        disk = self.disk
        assert isinstance(disk, FaultyDisk)
        if disk.truncate_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)
        super().truncate(size)

    def read(self, position: int, size: int) -> bytes:
        disk = self.disk
        assert isinstance(disk, FaultyDisk)
        if disk.read_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)
        return super().read(position, size)


class FaultyDisk(PosixDisk):
    """A real disk whose faults are switched on by a test."""

    file_class = FaultyFile

    def __init__(self) -> None:
        super().__init__()
        self.bytes_left: int | None = None
        self.error = errno.ENOSPC
        self.truncate_fails = False
        self.read_fails = False


def config(**changes: int | bool | str) -> LogConfig:
    result = LogConfig()
    for name, value in changes.items():
        assert hasattr(result, name), name
        setattr(result, name, value)
    return result


def batch(
    values: Sequence[bytes] = (b"value",),
    timestamp: int = NOW_MS,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    builder = BatchBuilder(base_offset)
    for number, value in enumerate(values):
        builder.append(timestamp + number, b"key", value)
    return builder.build(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
        partition_leader_epoch=leader_epoch,
    )


def marker(
    producer_id: int,
    epoch: int,
    commit: bool,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    timestamp: int = NOW_MS,
) -> bytes:
    return end_transaction_batch(base_offset, -1, timestamp, producer_id, epoch, commit, coordinator_epoch)


def new_log(path: Path, settings: LogConfig | None = None, disk: PosixDisk | None = None, start_offset: int = 0) -> Log:
    disk = disk if disk is not None else PosixDisk()
    directory = LogDirectory(str(path))
    settings = settings if settings is not None else config()
    folder = str(path / "topic-0")
    return create_log(
        disk,
        directory,
        folder,
        "topic",
        0,
        topic_id=TOPIC_ID,
        config=settings,
        now_ms=NOW_MS,
        start_offset=start_offset,
    )


def reopen(
    log: Log, clean: bool = False, recovery_point: int | None = None, log_start: int | None = None, now_ms: int = NOW_MS
) -> Log:
    """Loads the folder of `log` again: after `close` with clean=True, or as after kill -9."""
    return load_log(
        PosixDisk(),
        LogDirectory(log.log_directory.path),
        log.directory,
        "topic",
        0,
        config=log.config,
        now_ms=now_ms,
        recovery_point=log.recovery_point if recovery_point is None else recovery_point,
        log_start_offset=log.log_start_offset if log_start is None else log_start,
        clean=clean,
    )


def append(
    log: Log,
    *values: bytes,
    timestamp: int = NOW_MS,
    leader_epoch: int = 0,
    now_ms: int = NOW_MS,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> AppendResult:
    data = batch(values or (b"value",), timestamp, producer_id, epoch, sequence, transactional)
    return log.append_as_leader(MemoryRecords(data), leader_epoch, now_ms)


def append_marker(
    log: Log,
    producer_id: int,
    epoch: int,
    commit: bool,
    coordinator_epoch: int = 0,
    leader_epoch: int = 0,
    transaction_version: int = 0,
) -> AppendResult:
    data = marker(producer_id, epoch, commit, coordinator_epoch)
    return log.append_as_leader(MemoryRecords(data), leader_epoch, NOW_MS, COORDINATOR, transaction_version)


def content(records: FileRecords | None) -> bytes:
    if records is None:
        return b""
    assert isinstance(records.file, PosixFile)
    return records.file.read(records.position, records.size)


def records_in(data: bytes) -> list[Record]:
    found: list[Record] = []
    for header in split_batches(data, 0, len(data)):
        if not header.is_control:
            found.extend(read_records(data, header))
    return found


def read_all(log: Log, start: int | None = None, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """(offset, value) of everything in the log, read as a consumer does."""
    offset = log.log_start_offset if start is None else start
    found: list[tuple[int, bytes | None]] = []
    while offset < log.log_end_offset:
        data = content(log.read(offset, max_bytes, log.log_end_offset, True).records)
        if not data:
            break
        headers = split_batches(data, 0, len(data))
        assert headers and headers[-1].end == len(data), "a read returns whole batches"
        assert headers[0].last_offset >= offset
        found.extend((record.offset, record.value) for record in records_in(data) if record.offset >= offset)
        offset = int(headers[-1].last_offset) + 1
    return found


def names(log: Log) -> list[str]:
    return sorted(os.listdir(log.directory))
