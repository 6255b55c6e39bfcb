"""What is remembered of the run that writes to a log directory: was it ended by a kill only, or by the machine's end?

What a process wrote is in the page cache and outlives the process. A broker that was killed, on a machine that went on,
has lost nothing that it acknowledged; its next run may say so when it registers, as after a clean stop, and stays
eligible to lead (KIP-966). `Disk.remember` sees to it that nothing is recalled once that is not sure any more. Beside
the epoch the note holds where every log ended and in which leader epoch, at most a second old: a log that ends before
that, or in an older epoch, is not the one that was written. The cases are in docs/adr/0012-trusting-a-killed-broker.md.
"""

from __future__ import annotations

import logging
import struct
from array import array
from collections.abc import Mapping

from moldau.storage.checkpoints import Partition
from moldau.storage.disk import Disk
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.recovery import offset_of
from moldau.storage.segment import LOG_SUFFIX

logger = logging.getLogger("moldau.storage")

UNKNOWN_BROKER_EPOCH = -1
NO_EPOCH = -1
LOGS_PER_TURN = 5_000
"""Where there are more, each is looked at every other second, or less often: a turn has better things to do."""
HEAD = struct.Struct("<BIQ")
VERSION = 1


def note_run(disk: Disk, directory: str, broker_epoch: int, details: bytes = b"") -> None:
    """This process writes there from now on, as the broker of this epoch; -1: it has lost something, or may have."""
    if broker_epoch == UNKNOWN_BROKER_EPOCH:
        disk.forget(directory)
    else:
        disk.remember(directory, str(broker_epoch), details)


def forget_run(disk: Disk, directory: str) -> None:
    """The run ends well, or its disk has failed: what the page cache shows need not be what was written then."""
    disk.forget(directory)


def end_epoch(log: Log) -> int:
    """The leader epoch of the last record; -1 when there is none, or none is known."""
    epochs, end = log.leader_epochs, log.log_end_offset
    if epochs.latest_epoch < 0 or end <= log.log_start_offset:
        return NO_EPOCH
    return epochs.latest_epoch if epochs.start_offsets[-1] < end else epochs.epoch_for_offset(end - 1)


class KilledRun:
    """The run before this one, if everything it wrote must still be there; else its `broker_epoch` is -1."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.details = b""
        self.ends: dict[Partition, tuple[int, int]] = {}
        text = disk.recall(directory)
        if not text:
            return
        try:
            self.broker_epoch = int(text)
            self.details = disk.recall_details(directory)
            self.ends = decode_ends(self.details)
        except ValueError as error:
            self.doubt(f"what is remembered of the last run cannot be read: {error}")

    def doubt(self, reason: str) -> None:
        logger.warning(
            "log directory %s: %s; the broker registers as one that may have lost records", self._directory, reason
        )
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.details = b""
        self.ends = {}

    def sync(self, logs: Mapping[str, int]) -> None:
        """Brings to the medium what is not known to be there: of each directory, from its recovery point on. That tells
        of a write that failed after the kernel had taken it, which nobody else has been told of. Recovery has to know
        also where there is no trust to lose: else it believes what memory shows and nothing else has."""
        paths: list[str] = []
        for directory, recovery_point in logs.items():
            paths += segments_from(self._disk, directory, recovery_point)
        lost = self._disk.sync_all(paths)
        if lost:
            self.doubt(f"the disk could not write what it had taken of {', '.join(lost[:3])}")

    def check(self, logs: Mapping[Partition, Log], directory: LogDirectory) -> None:
        """After the logs were loaded: each of them is at least as long as it was, and ends in no older epoch. One that
        ends in a later epoch may be shorter: no older copy has that, it was truncated since and went on."""
        for partition, (end, epoch) in self.ends.items():
            log = logs.get(partition)
            name = f"{partition[0]}-{partition[1]}"
            if log is None or log.log_directory is not directory:
                self.doubt(f"{name}, which ended at offset {end}, is not here any more")
                return
            found_epoch = end_epoch(log)
            is_shorter = log.log_end_offset < end and found_epoch <= epoch
            if is_shorter or (log.log_end_offset > log.log_start_offset and found_epoch < epoch):
                found = f"offset {log.log_end_offset} in epoch {found_epoch}"
                self.doubt(f"{name} ended at offset {end} in epoch {epoch} and ends at {found}: an older copy?")
                return


def segments_from(disk: Disk, directory: str, recovery_point: int) -> list[str]:
    """The segments that may hold something which was never synced."""
    names = [name for name in disk.list(directory) if name.endswith(LOG_SUFFIX) and offset_of(name) >= 0]
    first = 0
    for number, name in enumerate(names):
        if offset_of(name) <= recovery_point:
            first = number
    return [f"{directory}/{name}" for name in names[first:]]


class DirectoryEnds:
    """Where the logs of one directory end, as its note has it. Every log has a place, which another one gets after it:
    a topic that comes or goes must not cost a look at all of them."""

    def __init__(self) -> None:
        self.is_noted = False
        self.is_writing = False
        self.is_urgent = False
        self._places: dict[Partition, int] = {}
        self._free: list[int] = []
        self._logs: list[Log | None] = []
        self._names: list[bytes] = []
        self._ends: array[int] = array("q")
        self._latest: array[int] = array("q")
        self._epochs: array[int] = array("q")
        self.is_changed = True
        self._next = 0

    def add(self, log: Log) -> None:
        if not self._free:
            self._free.append(len(self._logs))
            self._logs.append(None)
            self._names.append(b"")
            for numbers in (self._ends, self._latest, self._epochs):
                numbers.append(NO_EPOCH)
        place = self._places[(log.topic, log.partition)] = self._free.pop()
        self._logs[place] = log
        self._names[place] = f"{log.topic}-{log.partition}".encode()
        self.look_at(log)

    def remove(self, log: Log) -> bool:
        """Says whether the log was one of them."""
        place = self._places.get((log.topic, log.partition))
        if place is None or self._logs[place] is not log:
            return False
        del self._places[(log.topic, log.partition)]
        self._free.append(place)
        self._logs[place], self._names[place] = None, b""
        self._ends[place] = self._latest[place] = self._epochs[place] = NO_EPOCH
        self.is_changed = True
        return True

    def look(self, most: int) -> bool:
        """Looks at the next logs, at most so many; says whether there is anything that the note does not have."""
        first = self._next if self._next < len(self._logs) else 0
        self._next = min(first + most, len(self._logs))
        logs = self._logs[first : self._next]
        # All at once, for there may be thousands, of which few have changed.
        ends = array("q", [NO_EPOCH if log is None else log.log_end_offset for log in logs])
        latest = array("q", [NO_EPOCH if log is None else log.leader_epochs.latest_epoch for log in logs])
        old_ends, old_latest = self._ends[first : self._next], self._latest[first : self._next]
        if ends.tobytes() != old_ends.tobytes() or latest.tobytes() != old_latest.tobytes():
            self._ends[first : self._next], self._latest[first : self._next] = ends, latest
            for number, log in enumerate(logs):
                if log is not None and (ends[number], latest[number]) != (old_ends[number], old_latest[number]):
                    self._epochs[first + number] = end_epoch(log)
            self.is_changed = True
        return self.is_changed

    def look_at(self, log: Log) -> bool:
        """Says whether the log is one of them."""
        place = self._places.get((log.topic, log.partition))
        if place is None or self._logs[place] is not log:
            return False
        self._ends[place], self._latest[place] = log.log_end_offset, log.leader_epochs.latest_epoch
        self._epochs[place] = end_epoch(log)
        self.is_changed = True
        return True

    def look_at_all(self) -> None:
        self._next = 0
        self.look(len(self._logs))

    def encoded(self) -> bytes:
        """For the note; from now on it counts as written."""
        self.is_changed = False
        names = b"\n".join(self._names)
        head = HEAD.pack(VERSION, len(self._logs), len(names))
        return b"".join((head, names, self._ends.tobytes(), self._epochs.tobytes()))


def decode_ends(data: bytes) -> dict[Partition, tuple[int, int]]:
    """End offset and leader epoch of each log; raises ValueError for anything that `DirectoryEnds` did not write."""
    if len(data) < HEAD.size:
        raise ValueError("it says nothing of the logs")
    version, count, names_size = HEAD.unpack_from(data)
    if version != VERSION or len(data) != HEAD.size + names_size + 16 * count:
        raise ValueError(f"version {version}, {count} logs in {len(data)} bytes")
    numbers: array[int] = array("q")
    numbers.frombytes(data[HEAD.size + names_size :])
    names = data[HEAD.size : HEAD.size + names_size].decode().split("\n") if count else []
    if len(names) != count:
        raise ValueError(f"{len(names)} names of {count} logs")
    found: dict[Partition, tuple[int, int]] = {}
    for number, name in enumerate(names):
        if not name:
            continue  # a place that no log has
        topic, _, partition = name.rpartition("-")
        found[(topic, int(partition))] = (numbers[number], numbers[count + number])
    return found


class RunNotes:
    """The notes of this process, one for each directory."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._ends: dict[str, DirectoryEnds] = {}

    def ends_of(self, directory: LogDirectory) -> DirectoryEnds:
        found = self._ends.get(directory.path)
        if found is None:
            found = self._ends[directory.path] = DirectoryEnds()
        return found

    def begin(self, directory: LogDirectory, broker_epoch: int) -> None:
        """From now on this process writes there, as the broker of this epoch; raises OSError."""
        ends = self.ends_of(directory)
        ends.is_noted = broker_epoch != UNKNOWN_BROKER_EPOCH
        ends.look_at_all()
        note_run(self._disk, directory.path, broker_epoch, ends.encoded())

    def refresh(self, directories: list[LogDirectory]) -> None:
        """Every second or so."""
        for directory in directories:
            ends = self.ends_of(directory)
            if ends.is_noted and not ends.is_writing and ends.look(LOGS_PER_TURN):
                self._write(directory.path, ends)

    def on_truncated(self, log: Log) -> None:
        if self.ends_of(log.log_directory).look_at(log):
            self._write_soon(log.log_directory)

    def on_removed(self, log: Log) -> None:
        if self.ends_of(log.log_directory).remove(log):
            self._write_soon(log.log_directory)

    def _write_soon(self, directory: LogDirectory) -> None:
        """A log ends before its note, or is gone: a kill before the note is written anew costs no more than the trust,
        but it costs that."""
        ends = self.ends_of(directory)
        if ends.is_writing:
            ends.is_urgent = True  # once, with all others that are truncated or removed in the meantime
        elif ends.is_noted:
            self._write(directory.path, ends)

    def _write(self, path: str, ends: DirectoryEnds) -> None:
        def on_written(failure: OSError | None) -> None:
            ends.is_writing = False
            if failure is None and ends.is_urgent:
                self._write(path, ends)
            if failure is not None:
                # The note is old, and says less than it could.
                ends.is_changed = True
                logger.warning("cannot note the log end offsets of log directory %s: %s", path, failure)

        ends.is_writing = True
        ends.is_urgent = False
        self._disk.remember_details_later(path, ends.encoded(), on_written)
