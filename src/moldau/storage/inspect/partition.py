"""Checks the directory of one partition: batches, records, indexes, snapshots, epochs, and how they fit together.

Nothing is changed and nothing ends the check early. A finding is an error where data or an index contradicts something,
and a warning where a start would put things right or where a file has no meaning.
"""

from __future__ import annotations

import re
from itertools import pairwise

from moldau.protocol.primitives import DecodeError
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.records.batch import NO_TIMESTAMP
from moldau.storage.checkpoints import LEADER_EPOCH_FILE, DamagedCheckpoint, parse_lines
from moldau.storage.disk import Disk
from moldau.storage.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from moldau.storage.inspect.batches import Batch, BatchReader, RecordReader, Unreadable
from moldau.storage.inspect.file import used_entries, used_times
from moldau.storage.inspect.history import LogHistory
from moldau.storage.inspect.index import OffsetEntries, TimeEntries
from moldau.storage.inspect.stored import control_text, metadata_json
from moldau.storage.partition_metadata import PARTITION_METADATA_FILE, DamagedPartitionMetadata, read_topic_id
from moldau.storage.producer_snapshots import DamagedSnapshot, decode_snapshot
from moldau.storage.producer_window import FILE as PRODUCER_WINDOW_FILE
from moldau.storage.txn_index import DamagedTransactionIndex, TransactionIndex

SEGMENT_NAME = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")
CHECKPOINT_NAME = re.compile(r"\d{20}-\d{10}\.checkpoint")
LEFTOVERS = (".deleted", ".cleaned", ".swap", ".tmp", ".part")
KNOWN_NAMES = (PARTITION_METADATA_FILE, LEADER_EPOCH_FILE, PRODUCER_WINDOW_FILE, "quorum-state")

ERROR = "error"
WARNING = "warning"


class Finding:
    """One thing that is not as it should be."""

    def __init__(self, path: str, severity: str, message: str) -> None:
        self.path = path
        self.severity = severity
        self.message = message

    def __repr__(self) -> str:
        return f"{self.severity}: {self.path}: {self.message}"


class Findings:
    """What was found, and how much was looked at."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.files = 0
        self.batches = 0
        self.records = 0
        self.bytes = 0

    def error(self, path: str, message: str) -> None:
        self.found.append(Finding(path, ERROR, message))

    def warn(self, path: str, message: str) -> None:
        self.found.append(Finding(path, WARNING, message))


class SegmentMap:
    """Where the batches of a segment are: what its indexes are compared with."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.last_offset_at: dict[int, int] = {}
        self.timestamp_of: dict[int, int] = {}


class PartitionCheck:
    """One directory. After run(), `end_offset` is where its log ends and `start_offset` where its first segment starts.

    clean_stop: the directory says that its node stopped in order. Without that, small files may be behind the log.
    log_start_offset: what the directory says of it; None where that is not known.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        findings: Findings,
        with_records: bool = True,
        clean_stop: bool = False,
        log_start_offset: int | None = None,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.findings = findings
        self.with_records = with_records
        self.clean_stop = clean_stop
        self.log_start_offset = log_start_offset
        self.history = LogHistory()
        self.topic_id: bytes | None = None
        self.is_metadata = directory.rpartition("/")[2].rpartition("-")[0] == METADATA_TOPIC
        self.start_offset = 0
        self.end_offset = 0

    def run(self) -> None:
        names = self.disk.list_with_sizes(self.directory)
        bases = sorted(int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.log", name))
        if not bases:
            self.findings.warn(self.directory, "there is no segment; a start makes an empty one")
        self.start_offset = self.end_offset = bases[0] if bases else 0
        for base_offset in bases:
            if base_offset < self.end_offset:
                text = f"the segment starts at {base_offset}, the one before it ends at {self.end_offset}"
                self.findings.error(self._path(base_offset, "log"), text)
            segment = self._check_log(base_offset)
            self.end_offset = max(self.end_offset, segment.next_offset)
            self._check_index(segment, names)
            self._check_time_index(segment, names)
            self._check_transactions(segment, names)
        for name in sorted(names):
            self._check_other(name, bases)
        self._check_epochs(names)
        self._check_topic_id(names)
        self._expect_snapshot(names)
        self.findings.files += len(names)
        self.findings.bytes += sum(size for size in names.values() if size > 0)

    def _check_topic_id(self, names: dict[str, int]) -> None:
        path = f"{self.directory}/{PARTITION_METADATA_FILE}"
        if PARTITION_METADATA_FILE not in names:
            self.findings.warn(path, "missing; a start writes it")
            return
        try:
            self.topic_id = read_topic_id(self.disk, self.directory)
        except DamagedPartitionMetadata as error:
            self.findings.error(path, str(error))

    def _expect_snapshot(self, names: dict[str, int]) -> None:
        """A clean stop leaves the state of the producers as of the end of the log."""
        path = self._path(self.end_offset, "snapshot")
        if self.clean_stop and self.history.last_batch_of and path.rpartition("/")[2] not in names:
            count = len(self.history.last_batch_of)
            self.findings.warn(path, f"missing although {count} producers wrote; a start learns them from the log")

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self.directory}/{base_offset:020d}.{suffix}"

    def _check_log(self, base_offset: int) -> SegmentMap:
        path = self._path(base_offset, "log")
        segment = SegmentMap(base_offset)
        file = self.disk.open(path)
        try:
            reader = BatchReader(file)
            epoch = -1
            while (batch := reader.next()) is not None:
                self._check_batch(path, batch, segment)
                if batch.header.partition_leader_epoch < epoch:
                    text = f"the leader epoch falls from {epoch} to {batch.header.partition_leader_epoch}"
                    self.findings.error(path, f"{text} at offset {batch.header.base_offset}")
                epoch = max(epoch, int(batch.header.partition_leader_epoch))
            if reader.end > reader.position:
                text = f"{reader.end - reader.position} bytes from position {reader.position} on are no whole batch"
                self.findings.error(path, text)
        except Unreadable as error:
            self.findings.error(path, f"unreadable from position {reader.position} on: {error}")
        finally:
            file.close()
        return segment

    def _check_batch(self, path: str, batch: Batch, segment: SegmentMap) -> None:
        header, findings = batch.header, self.findings
        where = f"the batch at position {batch.position} (offsets {header.base_offset} to {header.last_offset})"
        findings.batches += 1
        if header.base_offset < segment.next_offset:
            findings.error(path, f"{where} should start at {segment.next_offset} or later")
        if header.last_offset < header.base_offset:
            findings.error(path, f"{where} ends before it starts")
        segment.next_offset = max(segment.next_offset, int(header.next_offset))
        segment.last_offset_at[batch.position] = int(header.last_offset)
        segment.timestamp_of[int(header.last_offset)] = int(header.max_timestamp)
        if not batch.is_valid():
            findings.error(path, f"{where} has a wrong checksum")
            return
        self.history.take(batch)
        if self.with_records:
            self._check_records(path, batch, where)

    def _check_records(self, path: str, batch: Batch, where: str) -> None:
        header, findings = batch.header, self.findings
        records = RecordReader(batch)
        findings.records += len(records.records)
        if records.failure is not None:
            findings.error(path, f"{where} has unreadable records: {records.failure}")
            return
        previous = int(header.base_offset) - 1
        largest = NO_TIMESTAMP
        for record in records.records:
            if not previous < record.offset <= header.last_offset:
                findings.error(path, f"{where} has a record with offset {record.offset} after {previous}")
            previous = record.offset
            largest = max(largest, record.timestamp)
            try:
                if header.is_control:
                    control_text(record)
                elif self.is_metadata:
                    metadata_json(record.value or b"")
            except (Unreadable, DecodeError) as error:
                findings.error(path, f"{where} has a record at {record.offset} that makes no sense: {error}")
        if records.records and not header.is_log_append_time and largest != header.max_timestamp:
            findings.error(path, f"{where} promises timestamps up to {header.max_timestamp} and has {largest}")

    def _check_index(self, segment: SegmentMap, names: dict[str, int]) -> None:
        path = self._path(segment.base_offset, "index")
        if path.rpartition("/")[2] not in names:
            if segment.last_offset_at:
                self.findings.warn(path, "missing; a start builds it from the log")
            return
        index = OffsetEntries(self.disk, path, segment.base_offset)
        if index.size % OFFSET_ENTRY_SIZE:
            self.findings.error(path, f"{index.size} bytes are not a multiple of {OFFSET_ENTRY_SIZE}")
        previous = -1
        for offset, position in used_entries(index.entries, segment.base_offset):
            if offset <= previous:
                self.findings.error(path, f"the entry for offset {offset} comes after that for {previous}")
            previous = offset
            there = segment.last_offset_at.get(position)
            if there is None:
                self.findings.error(path, f"the entry for offset {offset} points to {position}, where no batch starts")
            elif there != offset:
                text = f"the entry for offset {offset} points to {position}, where the batch ends at {there}"
                self.findings.error(path, text)

    def _check_time_index(self, segment: SegmentMap, names: dict[str, int]) -> None:
        path = self._path(segment.base_offset, "timeindex")
        if path.rpartition("/")[2] not in names:
            if segment.last_offset_at:
                self.findings.warn(path, "missing; a start builds it from the log")
            return
        times = TimeEntries(self.disk, path, segment.base_offset)
        if times.size % TIME_ENTRY_SIZE:
            self.findings.error(path, f"{times.size} bytes are not a multiple of {TIME_ENTRY_SIZE}")
        previous = NO_TIMESTAMP
        for timestamp, offset in used_times(times.entries, segment.base_offset):
            if timestamp <= previous:
                self.findings.error(path, f"the entry for time {timestamp} comes after that for {previous}")
            previous = timestamp
            there = segment.timestamp_of.get(offset)
            if there is None:
                self.findings.error(path, f"the entry for time {timestamp} names offset {offset}, where no batch ends")
            elif there != timestamp:
                text = f"the entry for time {timestamp} names offset {offset}, whose batch goes up to {there}"
                self.findings.error(path, text)

    def _check_transactions(self, segment: SegmentMap, names: dict[str, int]) -> None:
        path = self._path(segment.base_offset, "txnindex")
        exists = path.rpartition("/")[2] in names
        try:
            entries = TransactionIndex(self.disk, path, segment.base_offset, exists).load()
        except DamagedTransactionIndex as error:
            self.findings.error(path, str(error))
            entries = []
        for entry in entries:
            if not entry.first_offset <= entry.last_offset < segment.next_offset:
                text = f"an aborted transaction from {entry.first_offset} to {entry.last_offset} is not in its segment"
                self.findings.error(path, text)
        for text in self.history.check_transactions(entries):
            self.findings.error(path, text)

    def _check_other(self, name: str, bases: list[int]) -> None:
        path = f"{self.directory}/{name}"
        match = SEGMENT_NAME.fullmatch(name)
        if match is not None and match[2] == "snapshot":
            self._check_snapshot(path, int(match[1]))
        elif match is not None:
            if int(match[1]) not in bases:
                self.findings.warn(path, "belongs to no segment; a start removes it")
        elif CHECKPOINT_NAME.fullmatch(name):
            check_metadata_snapshot(self.disk, path, self.findings)
        elif name.endswith(LEFTOVERS):
            self.findings.warn(path, "left over from something that was not finished; a start removes it")
        elif name not in KNOWN_NAMES:
            self.findings.warn(path, "not a file of a partition")

    def _check_snapshot(self, path: str, offset: int) -> None:
        try:
            entries = decode_snapshot(self.disk.read_file(path), path)
        except DamagedSnapshot as error:
            self.findings.error(path, str(error))
            entries = []
        if offset == self.end_offset:
            for text in self.history.check_producers(entries):
                self.findings.error(path, text)
        if offset > self.end_offset:
            self.findings.warn(path, f"is of offset {offset}, the log ends at {self.end_offset}; a start removes it")

    def _check_epochs(self, names: dict[str, int]) -> None:
        path = f"{self.directory}/{LEADER_EPOCH_FILE}"
        if LEADER_EPOCH_FILE not in names:
            if self.history.epochs:
                self.findings.warn(path, "missing; a start builds it from the log")
            return
        try:
            rows = [(int(epoch), int(start)) for epoch, start in parse_lines(self.disk.read_file(path), path)]
        except DamagedCheckpoint as error:
            self.findings.error(path, str(error))
            return
        except ValueError:
            self.findings.error(path, "an entry is not 'epoch offset'")
            return
        in_order = True
        for (epoch, start), (next_epoch, next_start) in pairwise(rows):
            if next_epoch <= epoch or next_start < start:
                self.findings.error(path, f"epoch {next_epoch} at {next_start} comes after epoch {epoch} at {start}")
                in_order = False
        if in_order:
            tell = self.findings.error if self.clean_stop else self.findings.warn
            for text in self.history.check_epochs(rows, self.log_start_offset):
                tell(path, text)
        if rows and rows[-1][1] > self.end_offset:
            text = f"epoch {rows[-1][0]} starts at {rows[-1][1]}, the log ends at {self.end_offset}"
            self.findings.error(path, text)


def check_metadata_snapshot(disk: Disk, path: str, findings: Findings) -> None:
    """A snapshot of the metadata, or bootstrap.checkpoint: a header, records, a footer."""
    file = disk.open(path)
    said: list[str] = []
    try:
        reader = BatchReader(file)
        while (batch := reader.next()) is not None:
            findings.batches += 1
            if not batch.is_valid():
                findings.error(path, f"the batch at position {batch.position} has a wrong checksum")
                continue
            records = RecordReader(batch)
            findings.records += len(records.records)
            for record in records.records:
                if batch.header.is_control:
                    said.append(control_text(record))
                else:
                    metadata_json(record.value or b"")
            if records.failure is not None:
                raise records.failure
        if reader.end > reader.position:
            findings.error(path, f"{reader.end - reader.position} bytes at the end are no whole batch")
    except (Unreadable, DecodeError) as error:
        findings.error(path, f"unreadable: {error}")
        return
    finally:
        file.close()
    if not said or not said[0].startswith("SnapshotHeader") or not said[-1].startswith("SnapshotFooter"):
        findings.error(path, "does not begin with a snapshot header and end with a footer: it is not complete")
