"""Reads input in pieces as large as they come, so that lines that are typed arrive at once and pipes flow fast."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from typing import BinaryIO

PIECE_BYTES = 1024 * 1024
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, Linux alone


class Input:
    """A file, a pipe or a terminal; something in memory under tests."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.position = 0
        self.descriptor: int | None = None
        self.is_terminal = False
        self.size: int | None = None
        try:
            self.descriptor = file.fileno()
        except (OSError, ValueError):
            return
        self.is_terminal = os.isatty(self.descriptor)
        status = os.fstat(self.descriptor)
        if status.st_size > 0:
            self.size = status.st_size
        else:
            _widen(self.descriptor)

    def read(self) -> bytes:
        """What there is, at least one byte; nothing at the end."""
        data = self._file.read(PIECE_BYTES) if self.descriptor is None else os.read(self.descriptor, PIECE_BYTES)
        self.position += len(data)
        return data

    def more_at_once(self) -> bool:
        """Whether read() would return without waiting."""
        if self.descriptor is None:
            return True
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def read_all(self) -> bytes:
        return b"".join(read_pieces(self))


def _widen(descriptor: int) -> None:
    """A pipe that holds more makes fewer switches between the processes at its ends."""
    try:
        import fcntl

        fcntl.fcntl(descriptor, _SET_PIPE_SIZE, PIECE_BYTES)
    except (ImportError, OSError):
        pass  # not a pipe, or not Linux


def read_pieces(source: Input) -> Iterator[bytes]:
    while data := source.read():
        yield data


def read_lines(source: Input, delimiter: bytes) -> Iterator[bytes]:
    """Lines without their delimiters, each as soon as it is there."""
    rest = b""
    for data in read_pieces(source):
        lines = (rest + data).split(delimiter)
        rest = lines.pop()
        yield from lines
    if rest:
        yield rest
