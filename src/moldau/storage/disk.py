"""The disk as the code below the line sees it: directories, files, syncs.

`server/posix_disk.py` implements it on a real file system, `sim/disk.py` on a simulated one that loses unsynced
data, tears writes and runs out of space. Paths are plain strings with `/`. Failures are OSError, as from the system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Buffer = bytes | bytearray | memoryview


class File:
    """One open file. The descriptor may be opened lazily; a File stays valid when the Disk renames its path."""

    path: str

    def append(self, parts: Sequence[Buffer]) -> int:
        """Writes all parts at the end, one after the other; returns the bytes written. Failing may leave a torn end."""
        raise NotImplementedError

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        raise NotImplementedError

    def size(self) -> int:
        raise NotImplementedError

    def truncate(self, size: int) -> None:
        """Cuts the file; what was set aside beyond that size goes back to the volume."""
        raise NotImplementedError

    def reserve(self, size: int) -> None:
        """Sets space aside for a file that will grow to `size`; its own size stays what it is. Nothing happens where
        that cannot be done."""

    def sync(self) -> None:
        """Returns when everything written so far would survive a power loss."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def fileno(self) -> int:
        """A descriptor for sendfile, or -1 where there is none (simulation)."""
        raise NotImplementedError


class Disk:
    """The file system of one node."""

    def open(self, path: str, create: bool = False) -> File:
        """Raises FileNotFoundError when the file is missing and `create` is not set."""
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        raise NotImplementedError

    def is_directory(self, path: str) -> bool:
        raise NotImplementedError

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        raise NotImplementedError

    def list_with_sizes(self, path: str) -> dict[str, int]:
        """The files of a directory and their sizes in one pass; directories inside it have size -1."""
        raise NotImplementedError

    def size(self, path: str) -> int:
        raise NotImplementedError

    def make_directory(self, path: str) -> None:
        """Creates it and its parents; nothing happens when it is there."""
        raise NotImplementedError

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces a file that is in the way. Works for files and directories; open Files follow."""
        raise NotImplementedError

    def remove(self, path: str) -> None:
        """Removes a file; nothing happens when it is missing."""
        raise NotImplementedError

    def remove_tree(self, path: str) -> None:
        raise NotImplementedError

    def read_file(self, path: str) -> bytes:
        raise NotImplementedError

    def write_file(self, path: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        """Replaces a small file atomically: `path.tmp` is written, synced (if asked for), renamed over `path`."""
        raise NotImplementedError

    def write_file_later(self, path: str, data: bytes, done: Callable[[OSError | None], None]) -> None:
        """The same without blocking the caller; `done` is called later, in the node's own turn. After a power loss
        the file may still be the old one. A `write_file` to the path that is called in the meantime wins."""
        raise NotImplementedError

    def sync_directory(self, path: str) -> None:
        raise NotImplementedError

    def sync_later(self, file: File, done: Callable[[OSError | None], None]) -> None:
        """Syncs without blocking the caller; `done` is called later, in the node's own turn."""
        raise NotImplementedError

    def read_later(self, file: File, position: int, size: int, done: Callable[[bytes | OSError], None]) -> None:
        """Reads as `File.read` does, without blocking the caller; `done` is called later, in the node's own turn."""
        raise NotImplementedError

    def free_bytes(self, path: str) -> int:
        raise NotImplementedError

    def total_bytes(self, path: str) -> int:
        """The size of the volume that holds the path."""
        raise NotImplementedError

    def remember(self, directory: str, text: str) -> None:
        """Keeps a few words about a directory for as long as everything written there, synced or not, is sure to be
        there: in the machine's memory, where no failing disk and no copy can bring them back. Nothing happens where
        that cannot be had."""

    def recall(self, directory: str) -> str:
        """What `remember` was told, also by an earlier process; empty if that is not sure any more."""
        return ""

    def forget(self, directory: str) -> None:
        """From now on `recall` knows nothing of the directory. Never fails, whatever the disk does."""

    def lock_directory(self, path: str) -> None:
        """Takes the `.lock` file of a log directory for this process; BlockingIOError when another one has it."""
        raise NotImplementedError

    def unlock_directory(self, path: str) -> None:
        raise NotImplementedError
