"""The checkpoint files of one log directory: recovery points, log starts, how far compaction came; who waits for them.

A running node has them written on a thread, one write at a time: what is asked for meanwhile shares the next one, which
has every change up to its start. So a hundred partitions that are deleted or truncated in one turn cost two writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.storage.checkpoints import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    Partition,
    format_offsets,
    write_offsets,
)
from moldau.storage.disk import BlockingDisk, Disk, Done
from moldau.storage.log_directory import LogDirectory

FILES: Final = (RECOVERY_POINT_FILE, LOG_START_FILE, CLEANER_FILE)

Offsets = dict[Partition, int]


class FileWrites:
    """What one job writes."""

    def __init__(self, directory: str, contents: dict[str, Offsets]) -> None:
        self.contents = contents
        self._files = [(f"{directory}/{name}", format_offsets(offsets)) for name, offsets in contents.items()]

    def run(self, disk: BlockingDisk) -> None:
        """On a thread."""
        for path, data in self._files:
            disk.write_file(path, data)


class DirectoryCheckpoints:
    """`offsets_of` says what a file should have now."""

    def __init__(self, disk: Disk, directory: LogDirectory, offsets_of: Callable[[str], Offsets]) -> None:
        self._disk = disk
        self._directory = directory
        self._offsets_of = offsets_of
        # What is on the medium, for files of which that is certain; and what may be there, sooner or later.
        self._durable: dict[str, Offsets] = {}
        self._possible: dict[str, list[Offsets]] = {name: [] for name in FILES}
        self._is_writing = False
        self._dirty: set[str] = set()
        self._waiting: list[Done] = []

    def load(self, name: str, offsets: Offsets) -> None:
        """What a start found."""
        self._durable[name] = offsets
        self._possible[name] = [offsets]

    # Asking

    def is_durable(self, name: str, partition: Partition, offset: int) -> bool:
        """Whether the file has at least that offset for the partition, on the medium, until it is written again."""
        return self._durable.get(name, {}).get(partition, 0) >= offset

    def may_have(self, partition: Partition, above: int = -1) -> bool:
        """Whether a crash could find an offset above that one for the partition."""
        for contents in self._possible.values():
            for offsets in contents:
                if offsets.get(partition, -1) > above:
                    return True
        return False

    # Writing

    def write_now(self, *names: str) -> None:
        """On the medium when it returns; for a node that does not serve. Raises OSError."""
        for name in names:
            offsets = self._offsets_of(name)
            write_offsets(self._disk.blocking(), f"{self._directory.path}/{name}", offsets)
            self.load(name, offsets)

    def write_if_changed(self, name: str) -> None:
        """From time to time."""
        if name in self._dirty or self._durable.get(name) == self._offsets_of(name):
            return
        self.write_later(None, name)

    def write_later(self, done: Done | None, *names: str) -> None:
        """`done` is called, in a later turn, when the files have what is so now, or could not be written."""
        self._dirty.update(names)
        if done is not None:
            self._waiting.append(done)
        if not self._is_writing:
            self._start()

    def _start(self) -> None:
        names, self._dirty = self._dirty, set()
        waiting, self._waiting = self._waiting, []
        contents = {name: self._offsets_of(name) for name in FILES if name in names}
        for name, offsets in contents.items():
            self._durable.pop(name, None)
            self._possible[name].append(offsets)
        self._is_writing = True
        writes = FileWrites(self._directory.path, contents)
        self._disk.do_later(
            f"{self._directory.path}/checkpoints", writes.run, lambda error: self._on_written(contents, waiting, error)
        )

    def _on_written(self, contents: dict[str, Offsets], waiting: list[Done], error: OSError | None) -> None:
        self._is_writing = False
        if error is None:
            for name, offsets in contents.items():
                self.load(name, offsets)
            self._directory.on_written()
        else:
            self._directory.on_write_failed(error)
        for done in waiting:
            done(error)
        if self._dirty and not self._is_writing and not self._directory.failed:
            self._start()
