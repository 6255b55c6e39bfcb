"""Reads the metadata of a node that is not running: the latest snapshot, then the log, as far as both make sense.

The log may hold records that were never committed; on a node that stands still nobody can tell them apart.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from moldau.metadata.image import MetadataImage
from moldau.metadata.loader import MetadataLoader
from moldau.node.metadata_log import snapshot_name
from moldau.protocol.primitives import DecodeError, Message
from moldau.protocol.stored.metadata_records import decode_metadata_record
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.raft.batches import parse_control
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.voters import VoterSet
from moldau.storage.disk import Disk
from moldau.storage.inspect.batches import Batch, BatchReader, RecordReader, Unreadable

SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
NO_LIMIT = 1 << 62
SEGMENT_NAME = re.compile(r"(\d{20})\.log")


class OfflineMetadata:
    """What there was to read.

    `damage`: bytes that are not what was written, in a log or in a snapshot. `problems`: what is whole and still makes
    no sense to this version.
    """

    def __init__(self) -> None:
        self.snapshot: OffsetAndEpoch | None = None
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.last_epoch = -1
        self.voters: VoterSet | None = None
        self.kraft_version = 0
        self.damage: list[str] = []
        self.snapshot_damage: list[str] = []
        self.problems: list[str] = []
        self._loader = MetadataLoader(_ignore)

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    def load_snapshot(self, disk: Disk, path: str, snapshot: OffsetAndEpoch) -> None:
        self.snapshot = snapshot
        records: list[Message] = []
        for batch in self._batches(disk, path):
            records += self._records(path, batch)
        try:
            self._loader.load_snapshot(records, snapshot.offset - 1, snapshot.epoch, -1)
        except (LookupError, ValueError) as error:
            self.problems.append(f"{path} has records that do not fit together: {error!r}")

    def load_segment(self, disk: Disk, path: str, end_offset: int = NO_LIMIT) -> None:
        """Stops before the batch that reaches end_offset."""
        for batch in self._batches(disk, path):
            header = batch.header
            if header.last_offset >= end_offset:
                return
            self.last_epoch = int(header.partition_leader_epoch)
            self.log_end_offset = int(header.next_offset)
            records = self._records(path, batch)
            if int(header.last_offset) > self.image.offset:
                epoch = int(header.partition_leader_epoch)
                try:
                    self._loader.load_batch(records, int(header.last_offset), epoch, int(header.max_timestamp))
                except (LookupError, ValueError) as error:
                    where = f"{path} has records at offset {header.base_offset}"
                    self.problems.append(f"{where} that do not fit what lies before them: {error!r}")

    def _batches(self, disk: Disk, path: str) -> Iterator[Batch]:
        """Up to the first that is damaged: what follows it may rest on what was lost."""
        file = disk.open(path)
        try:
            reader = BatchReader(file)
            while (batch := reader.next()) is not None:
                if not batch.is_valid():
                    self._damaged(path, batch.position, "wrong checksum")
                    break
                yield batch
        except Unreadable as error:
            self._damaged(path, reader.position, str(error))
        finally:
            file.close()

    def _damaged(self, path: str, position: int, reason: str) -> None:
        found = self.snapshot_damage if path.endswith(".checkpoint") else self.damage
        found.append(f"{path} is damaged at position {position}: {reason}")

    def _records(self, path: str, batch: Batch) -> list[Message]:
        reader = RecordReader(batch)
        if reader.failure is not None:
            self._damaged(path, batch.position, str(reader.failure))
        records = []
        for record in reader.records:
            try:
                if batch.header.is_control:
                    self._take_control(record.key or b"", record.value or b"")
                else:
                    records.append(decode_metadata_record(record.value or b""))
            except (DecodeError, ValueError) as error:
                self.problems.append(f"{path} has a record at offset {record.offset} that is not known here: {error}")
        return records

    def _take_control(self, key: bytes, value: bytes) -> None:
        version, voters = parse_control(int.from_bytes(key[2:4], "big"), value)
        self.kraft_version = self.kraft_version if version is None else version
        self.voters = voters or self.voters


def _ignore(delta: object, image: MetadataImage) -> None:
    pass


def read_snapshot_file(disk: Disk, path: str) -> OfflineMetadata:
    """One snapshot alone, whatever its name."""
    metadata = OfflineMetadata()
    match = SNAPSHOT_NAME.fullmatch(path.rpartition("/")[2])
    at = OffsetAndEpoch(int(match[1]), int(match[2])) if match is not None else OffsetAndEpoch(0, 0)
    metadata.load_snapshot(disk, path, at)
    return metadata


def read_metadata(
    disk: Disk, log_directory: str, snapshot: OffsetAndEpoch | None = None, end_offset: int = NO_LIMIT
) -> OfflineMetadata | None:
    """The metadata in a log directory; None where there is none.

    Without the arguments: the latest snapshot and everything behind it. `snapshot` begins with another one, of which
    offset 0 means none; `end_offset` ends earlier.
    """
    directory = f"{log_directory.rstrip('/')}/{METADATA_TOPIC}-0"
    if not disk.is_directory(directory):
        return None
    metadata = OfflineMetadata()
    names = disk.list(directory)
    snapshot = max(snapshots_in(names), default=None) if snapshot is None else snapshot
    if snapshot is not None and snapshot.offset >= 0 and snapshot_name(snapshot) in names:
        metadata.load_snapshot(disk, f"{directory}/{snapshot_name(snapshot)}", snapshot)
    segments = sorted(name for name in names if SEGMENT_NAME.fullmatch(name))
    if segments:
        metadata.log_start_offset = metadata.log_end_offset = int(segments[0][:20])
    for name in segments:
        metadata.load_segment(disk, f"{directory}/{name}", end_offset)
    return metadata


def snapshots_in(names: list[str]) -> list[OffsetAndEpoch]:
    """The snapshots among the names of files, oldest first."""
    found = [match for name in names if (match := SNAPSHOT_NAME.fullmatch(name))]
    return sorted(OffsetAndEpoch(int(match[1]), int(match[2])) for match in found)


def read_any(disk: Disk, path: str) -> OfflineMetadata:
    """A snapshot, a segment of the metadata log, the directory of both, or a log directory that has it."""
    path = path.rstrip("/") or "/"
    if not disk.is_directory(path):
        if not path.endswith(".log"):
            return read_snapshot_file(disk, path)
        metadata = OfflineMetadata()
        metadata.load_segment(disk, path)
        return metadata
    if path.rpartition("/")[2] == f"{METADATA_TOPIC}-0":
        path = path.rpartition("/")[0] or "."
    found = read_metadata(disk, path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, f"There is no {METADATA_TOPIC}-0 in it", path)
    return found
