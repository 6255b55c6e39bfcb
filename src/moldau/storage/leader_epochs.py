"""Which leader epoch wrote which offsets of one log, and its checkpoint file.

Entries rise strictly in epoch and in start offset. The file is replaced without a sync on each change; it is synced
before the recovery point passes data of a new epoch, and what lies behind that point is learned again from the batches
after an unclean stop. A change that cannot be written stays `unsynced` and is tried again by the next flush, which
reports the failure. An epoch that begins in a log with a file stays in memory until a flush finds records of it: five
thousand idle partitions start without touching five thousand files. Kafka: LeaderEpochFileCache.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from typing import Final

from moldau.storage.checkpoints import LEADER_EPOCH_FILE, DamagedCheckpoint, format_lines, parse_lines
from moldau.storage.disk import Disk

logger = logging.getLogger("moldau.storage")

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class LeaderEpochs:
    """The cache; `latest_epoch` is -1 while there is none."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self.disk = disk
        self.directory = directory
        self.epochs: list[int] = []
        self.start_offsets: list[int] = []
        self.latest_epoch = UNDEFINED_EPOCH
        self.unsynced = False
        self.has_file = False
        self.begun_in_memory = False
        self.changes = 0  # so that whoever syncs the file knows whether it was replaced meanwhile

    def load(self, data: bytes) -> None:
        """Takes over the content of the checkpoint file; raises DamagedCheckpoint."""
        path = f"{self.directory}/{LEADER_EPOCH_FILE}"
        epochs: list[int] = []
        start_offsets: list[int] = []
        for fields in parse_lines(data, path):
            try:
                epoch, start_offset = int(fields[0]), int(fields[1])
            except (ValueError, IndexError) as error:
                raise DamagedCheckpoint(f"{path} has an entry that is not 'epoch offset'") from error
            if epoch < 0 or start_offset < 0 or len(fields) != 2:
                raise DamagedCheckpoint(f"{path} has an entry that is not 'epoch offset'")
            if epochs and (epoch <= epochs[-1] or start_offset < start_offsets[-1]):
                raise DamagedCheckpoint(f"{path} has entries out of order")
            epochs.append(epoch)
            start_offsets.append(start_offset)
        self.epochs = epochs
        self.start_offsets = start_offsets
        self.latest_epoch = epochs[-1] if epochs else UNDEFINED_EPOCH
        self.has_file = True

    def write(self) -> None:
        """Replaces the file, which counts as unsynced until `on_synced`."""
        lines = []
        for index in range(len(self.epochs)):
            lines.append(f"{self.epochs[index]} {self.start_offsets[index]}")
        path = f"{self.directory}/{LEADER_EPOCH_FILE}"
        self.disk.replace_file(path, format_lines(lines))
        self.has_file = True
        self.begun_in_memory = False
        self.unsynced = True
        self.changes += 1

    def on_synced(self, changes: int) -> None:
        """The file as it was when `changes` was read is on the medium."""
        if changes == self.changes:
            self.unsynced = False

    def _on_changed(self, write: bool) -> None:
        self.latest_epoch = self.epochs[-1] if self.epochs else UNDEFINED_EPOCH
        self.unsynced = True
        self.changes += 1
        if write:
            try:
                self.write()
            except OSError as error:
                logger.warning(
                    "cannot write the leader epoch checkpoint of %s, trying again later: %s", self.directory, error
                )

    def assign(self, epoch: int, start_offset: int, write: bool = True) -> bool:
        """Notes that `epoch` starts at `start_offset`; entries that contradict it go. Says whether anything changed."""
        if epoch < 0:
            return False
        if self.epochs and epoch == self.latest_epoch and start_offset >= self.start_offsets[-1]:
            return False
        while self.epochs and (self.epochs[-1] >= epoch or self.start_offsets[-1] >= start_offset):
            self.epochs.pop()
            self.start_offsets.pop()
        self.epochs.append(epoch)
        self.start_offsets.append(start_offset)
        self._on_changed(write)
        return True

    def begin(self, epoch: int, log_end_offset: int) -> None:
        """A new leader epoch at the end of the log, without any record yet."""
        if not self.has_file:
            self.assign(epoch, log_end_offset)
            return
        if self.begun_in_memory and self.start_offsets and self.start_offsets[-1] < log_end_offset:
            self.unsynced = True  # the epoch before has records, and is not in the file yet
        unsynced = self.unsynced
        if self.assign(epoch, log_end_offset, write=False):
            self.begun_in_memory = True
            self.unsynced = unsynced

    def needs_sync(self, log_end_offset: int) -> bool:
        """Whether the file lacks something that the recovery point must not pass."""
        if self.unsynced:
            return True
        return self.begun_in_memory and bool(self.start_offsets) and self.start_offsets[-1] < log_end_offset

    def drop_empty(self, log_end_offset: int) -> None:
        """Forgets epochs without records; the file may keep them, they are dropped again when it is loaded."""
        while self.epochs and self.start_offsets[-1] >= log_end_offset:
            self.epochs.pop()
            self.start_offsets.pop()
        self.latest_epoch = self.epochs[-1] if self.epochs else UNDEFINED_EPOCH

    def end_offset_for_epoch(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch found, its end offset): the response to OffsetForLeaderEpoch; (-1, -1) when nothing can be said."""
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        higher = bisect_right(self.epochs, epoch)
        if higher == len(self.epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if higher == 0:
            # Older than everything known: it ended where the first known epoch starts.
            return epoch, self.start_offsets[0]
        return self.epochs[higher - 1], self.start_offsets[higher]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that wrote `offset`, -1 when it lies before the first entry."""
        index = bisect_right(self.start_offsets, offset)
        return self.epochs[index - 1] if index > 0 else UNDEFINED_EPOCH

    def previous_epoch(self) -> int:
        return self.epochs[-2] if len(self.epochs) > 1 else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int, write: bool = True) -> None:
        """Drops the entries that start at or after `end_offset`."""
        changed = False
        while self.epochs and self.start_offsets[-1] >= end_offset:
            self.epochs.pop()
            self.start_offsets.pop()
            changed = True
        if changed:
            self._on_changed(write)

    def truncate_from_start(self, start_offset: int, write: bool = True) -> None:
        """The log begins at `start_offset` now: older entries go, the one that covers it starts there."""
        index = bisect_right(self.start_offsets, start_offset) - 1
        if index < 0 or (index == 0 and self.start_offsets[0] == start_offset):
            return
        self.epochs = self.epochs[index:]
        self.start_offsets = self.start_offsets[index:]
        self.start_offsets[0] = start_offset
        self._on_changed(write)

    def clear(self) -> None:
        """Forgets all, in the file too: what that kept of records that are gone would be held for the epoch of the
        records before the log."""
        self.epochs = []
        self.start_offsets = []
        self._on_changed(self.has_file)

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self.epochs, self.start_offsets, strict=True))
