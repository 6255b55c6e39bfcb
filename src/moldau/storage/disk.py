"""The disk as the code below the line sees it: directories, files, syncs.

`server/posix_disk.py` implements it on a real file system, `sim/kernel/disk.py` on a simulated one that loses unsynced
data, tears writes and runs out of space. Paths are plain strings with `/`. Failures are OSError, as from the system.

One thread serves all clients, so nothing that waits for the medium may happen in its turn. What may wait (syncs,
removals, reads of cold data) is asked for with a `…_later` method and done on a thread; a sequence of such steps is a
job for `do_later`, which is handed a `BlockingDisk`. Appends and renames stay in the turn: they change memory. A node
that does not serve yet or not any more, and a worker process, ask for `blocking()`; a test knows who may.

Data is cold when the system does not have it in memory. Who serves a request sets `Disk.refuses_cold` while it reads:
every read that would wait for the medium then raises `ColdRead`, and the request is taken up again when a thread has
read what was missing (`node/cold_requests.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Buffer = bytes | bytearray | memoryview


class ColdRead(Exception):
    """These bytes would have to come from the medium. Not an OSError: nothing is wrong with the disk."""

    def __init__(self, file: File, position: int, size: int) -> None:
        super().__init__(f"{size} bytes at {position} of {file.path} are not in memory")
        self.file = file
        self.position = position
        self.size = size


class BroughtPiece:
    """Bytes that a thread has read for a request that met them cold, for the case that they are cold again."""

    __slots__ = ("changes", "data", "path", "position")

    def __init__(self, path: str, position: int, data: bytes, changes: int) -> None:
        self.path = path
        self.position = position
        self.data = data
        self.changes = changes  # `Disk.changes_seen` when they were asked for: a file may have been truncated since


class Reading:
    """A read on a thread. Who is not interested any more says so, and it may be left out."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False


class File:
    """One open file. The descriptor may be opened lazily; a File stays valid when the Disk renames its path."""

    path: str

    def append(self, parts: Sequence[Buffer]) -> int:
        """Writes all parts at the end, one after the other; returns the bytes written. Failing may leave a torn end."""
        raise NotImplementedError

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        raise NotImplementedError

    def read_now(self, position: int, size: int) -> bytes | bytearray | None:
        """The bytes if all of them can be had without waiting, else None."""
        raise NotImplementedError

    def is_resident(self, position: int, size: int) -> bool:
        """Whether reading or sending these bytes would not wait, as far as that can be told at little cost."""
        raise NotImplementedError

    def warm_later(self, position: int, size: int, done: Done) -> Reading:
        """Brings a part of the file into the system's memory without blocking the caller; `done` is called later, in
        the node's own turn."""
        raise NotImplementedError

    def read_later(self, position: int, size: int, done: Callable[[bytes | OSError], None]) -> None:
        """As `Disk.read_later`, for who has a file and does not know the disk."""
        raise NotImplementedError

    def size(self) -> int:
        raise NotImplementedError

    def truncate(self, size: int) -> None:
        """Cuts the file; what was set aside beyond that size goes back to the volume."""
        raise NotImplementedError

    def reserve(self, size: int) -> None:
        """Sets space aside for a file that will grow to `size`; its own size stays what it is. Nothing happens where
        that cannot be done."""

    def close(self) -> None:
        raise NotImplementedError

    def fileno(self) -> int:
        """A descriptor for sendfile, or -1 where there is none (simulation)."""
        raise NotImplementedError


class BlockingDisk:
    """What may wait for the medium: for jobs on threads, for a node that does not serve yet or not any more, and for
    worker processes. Names are changed by the Disk alone, whose open files follow them."""

    def exists(self, path: str) -> bool:
        raise NotImplementedError

    def read_file(self, path: str) -> bytes:
        raise NotImplementedError

    def sync_file(self, path: str) -> None:
        """Everything written to the file so far would survive a power loss; its name may need `sync_directory`."""
        raise NotImplementedError

    def sync_directory(self, path: str) -> None:
        """The names in it, as they are now, would survive a power loss."""
        raise NotImplementedError

    def write_file(self, path: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        """Replaces a small file atomically: `path.tmp` is written, synced (if asked for), renamed over `path`."""
        raise NotImplementedError

    def remove(self, path: str) -> None:
        """Removes a file; nothing happens when it is missing."""
        raise NotImplementedError

    def remove_tree(self, path: str) -> None:
        """Removes a directory with all that is in it; nothing happens when it is missing."""
        raise NotImplementedError


Job = Callable[[BlockingDisk], None]
Done = Callable[[OSError | None], None]


class Disk:
    """The file system of one node."""

    refuses_cold = False
    """While this is set, `File.read` and `read_file` raise ColdRead instead of waiting for the medium."""

    brought: Sequence[BroughtPiece] = ()
    """What was read by threads for the request that reads now; looked at when the same bytes are cold again."""

    changes_seen = 0
    """Counts truncations, renames and removals of files: a piece that was read before one of them is not used after
    it."""

    on_read_failed: Callable[[str, OSError], None] | None = None
    """Told of the path that could not be read when a thread failed to for a connection."""

    def find_brought(self, path: str, position: int, size: int) -> bytes | None:
        for piece in self.brought:
            if piece.path == path and piece.position == position and piece.changes == self.changes_seen:
                if len(piece.data) >= size:
                    return piece.data[:size]
        return None

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

    def read_file(self, path: str) -> bytes:
        raise NotImplementedError

    def replace_file(self, path: str, data: bytes) -> None:
        """Replaces a small file: `path.tmp` is written and renamed over `path`. A power loss may undo that, or leave
        the new file without its content."""
        raise NotImplementedError

    def blocking(self) -> BlockingDisk:
        """For code that runs before a node serves, after it has, or in a process of its own."""
        raise NotImplementedError

    def sync_later(self, file: File, done: Callable[[OSError | None], None]) -> None:
        """Syncs without blocking the caller; `done` is called later, in the node's own turn."""
        raise NotImplementedError

    def read_later(
        self, file: File, position: int, size: int, done: Callable[[bytes | OSError], None], keep: bool = True
    ) -> None:
        """Reads as `File.read` does, without blocking the caller; `done` is called later, in the node's own turn. With
        `keep` off the system's memory holds afterwards what it held before: for who passes over everything once."""
        raise NotImplementedError

    def do_later(self, path: str, job: Job, done: Done) -> None:
        """Runs `job` on a thread, after all jobs that were handed in for the same path, and calls `done` in the node's
        own turn. The path says what the job belongs to, and with it which thread does it: a log's directory, a log
        directory. The job knows files by their names, so it must not outlive a rename of its directory unnoticed."""
        raise NotImplementedError

    def remove_later(self, paths: Sequence[str], done: Done) -> None:
        """Removes files without blocking the caller; those that are missing do not matter."""
        raise NotImplementedError

    def remove_tree_later(self, path: str, done: Done) -> None:
        raise NotImplementedError

    def write_back_later(self, file: File, position: int, size: int, done: Done) -> None:
        """Has the system begin to write a part of a file to the medium, so that a later sync has little to do. Promises
        nothing, and nothing happens where that cannot be done; `done` is called in any case."""
        raise NotImplementedError

    def finish_jobs(self) -> None:
        """What was asked for with `…_later` is done when this returns; nobody is told. For the end of a node."""

    def sync_all(self, paths: Sequence[str]) -> Sequence[str]:
        """Syncs files, several at a time, before a node serves. Returns those of which something could not be written,
        now or behind the back of a process that is gone. Of these memory keeps nothing that the medium has not: whoever
        reads them sees what is left."""
        raise NotImplementedError

    def free_bytes(self, path: str) -> int:
        raise NotImplementedError

    def total_bytes(self, path: str) -> int:
        """The size of the volume that holds the path."""
        raise NotImplementedError

    def remember(self, directory: str, text: str, details: bytes = b"") -> None:
        """Keeps a few words about a directory for as long as everything written there, synced or not, is sure to be
        there: in the machine's memory, where no failing disk and no copy can bring them back. Nothing happens where
        that cannot be had."""

    def remember_details_later(self, directory: str, details: bytes, done: Done) -> None:
        """Replaces the details of what is remembered, if anything is; `done` is called later, in the node's turn."""
        raise NotImplementedError

    def recall_details(self, directory: str) -> bytes:
        """The last details that came with what `recall` returns."""
        return b""

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

    def read_at(self, path: str, position: int, size: int) -> bytes:
        """A few bytes of a file that nobody keeps open; fewer only at its end."""
        file = self.open(path)
        try:
            return file.read(position, size)
        finally:
            file.close()


class WholeDisk(Disk, BlockingDisk):
    """Both of them at once, for those who implement them."""

    def blocking(self) -> BlockingDisk:
        return self

    def replace_file(self, path: str, data: bytes) -> None:
        self.write_file(path, data, sync=False)
