"""The disk for commands that only look: nothing on it can be changed, and read permission is enough."""

from __future__ import annotations

import os

from moldau.storage.disk import Disk, File


class ReadOnlyFile(File):
    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY)

    def read(self, position: int, size: int) -> bytes:
        parts = []
        while size > 0:
            part = os.pread(self._descriptor, size, position)
            if not part:
                break
            parts.append(part)
            position += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def fileno(self) -> int:
        return self._descriptor


class ReadOnlyDisk(Disk):
    """Every method that writes stays what it is in the interface: not implemented."""

    def open(self, path: str, create: bool = False) -> File:
        return ReadOnlyFile(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def list_with_sizes(self, path: str) -> dict[str, int]:
        with os.scandir(path) as entries:
            return {entry.name: -1 if entry.is_dir() else entry.stat().st_size for entry in entries}

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()
