"""What a records field holds: bytes of a frame that were not copied, or a piece of a file that was not read.

A produce request leaves its record batches where they arrived (MemoryRecords); a fetch response names the part of a
segment that is to be sent (FileRecords), so that the connection can use sendfile.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Records:
    """The value of a records field; size is its length in bytes."""

    def __init__(self, size: int) -> None:
        self.size: int = size


class MemoryRecords(Records):
    """The bytes from start up to end of data."""

    def __init__(self, data: bytes, start: int = 0, end: int = -1) -> None:
        if end < 0:
            end = len(data)
        self.data: bytes = data
        self.start: int = start
        self.end: int = end
        self.size = end - start

    def to_bytes(self) -> bytes:
        if self.start == 0 and self.end == len(self.data):
            return self.data
        return self.data[self.start : self.end]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRecords) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        return f"MemoryRecords({self.size} bytes)"


class FileRecords(Records):
    """The size bytes from position on in an open file (a storage.disk.File; this package does not know that class)."""

    def __init__(self, file: object, position: int, size: int) -> None:
        self.file: object = file
        self.position: int = position
        self.size = size

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FileRecords)
            and self.file is other.file
            and self.position == other.position
            and self.size == other.size
        )

    def __hash__(self) -> int:
        return hash((id(self.file), self.position, self.size))

    def __repr__(self) -> str:
        return f"FileRecords(position={self.position}, size={self.size})"
