"""A disk that shows on a terminal how much of a directory has been read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from moldau.cli.kafka.files import ReadOnlyDisk, ReadOnlyFile
from moldau.cli.progress import WorkBar
from moldau.storage.disk import File


@contextmanager
def watched_disk(title: str, directory: str) -> Iterator[ReadOnlyDisk]:
    """A disk to read the directory with; the bar goes by the bytes that were read of it."""
    with WorkBar(title, _bytes_below(directory)) as bar:
        yield _WatchedDisk(bar)


def _bytes_below(directory: str) -> int:
    total = 0
    for where, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.stat(os.path.join(where, name)).st_size
            except OSError:
                pass  # gone meanwhile
    return total


class _WatchedDisk(ReadOnlyDisk):
    def __init__(self, bar: WorkBar) -> None:
        self.bar = bar
        self.bytes_read = 0

    def open(self, path: str, create: bool = False) -> File:
        return _WatchedFile(path, self)


class _WatchedFile(ReadOnlyFile):
    def __init__(self, path: str, disk: _WatchedDisk) -> None:
        super().__init__(path)
        self._disk = disk

    def read(self, position: int, size: int) -> bytes:
        data = super().read(position, size)
        self._disk.bytes_read += len(data)
        self._disk.bar.update(self._disk.bytes_read, None, self._disk.bytes_read)
        return data
