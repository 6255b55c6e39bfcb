"""The disk on a real POSIX file system: lazy descriptors under a cap, atomic small files, slow work in threads.

A File opens its descriptor when it is first used and may lose it again when too many are open; it then opens by itself
at the path it has now (renames through the Disk are followed). A small append is one system call. Everything but the
worker threads runs in the node's own thread; a worker uses a duplicate descriptor, so closing or reusing the original
in the meantime does no harm.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from moldau.server.machine_memory import MachineMemory, find_memory_folder
from moldau.storage.disk import Buffer, Disk, File

DEFAULT_OPEN_FILES_MAX = 4096
WORKER_THREADS = 4
PARTS_PER_WRITE_MAX = 512  # below IOV_MAX of Linux and macOS (1024)

LATER_SUFFIX = ".later.tmp"
FALLOC_FL_KEEP_SIZE = 1

Post = Callable[[Callable[[], None]], None]


def sync_descriptor(descriptor: int) -> None:
    """Durable on the medium: macOS only promises that with F_FULLFSYNC, Linux with fdatasync (which keeps the size)."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(descriptor, full_sync)
            return
        except OSError:
            pass  # not every file system has it; fsync is what remains
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def reserve_space(descriptor: int, size: int) -> None:
    """Blocks for `size` bytes, while the file keeps its size, so that appends go on where it ends.

    Only Linux has this; elsewhere, and on file systems without it, the file grows as it is written.
    """
    if sys.platform != "linux":
        return
    import ctypes  # few want this, and it takes a megabyte

    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if call is None:
        return
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if call(descriptor, FALLOC_FL_KEEP_SIZE, 0, size) != 0:
        number = ctypes.get_errno()
        if number not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(number, os.strerror(number))


def sync_and_close(descriptor: int) -> None:
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def read_and_close(descriptor: int, position: int, size: int) -> bytes:
    try:
        return read_all(descriptor, position, size)
    finally:
        os.close(descriptor)


def read_all(descriptor: int, position: int, size: int) -> bytes:
    """Up to `size` bytes, fewer at the end of the file: one call may return less than there is (2 GB, signals)."""
    data = os.pread(descriptor, size, position)
    if len(data) == size or not data:
        return data
    chunks = [data]
    received = len(data)
    while received < size:
        data = os.pread(descriptor, size - received, position + received)
        if not data:
            break
        chunks.append(data)
        received += len(data)
    return b"".join(chunks)


def write_all(descriptor: int, parts: Sequence[Buffer]) -> int:
    """Writes every byte of all parts; a short write goes on where it stopped."""
    total = 0
    pending = [memoryview(part).cast("B") for part in parts if len(part)]
    index = 0
    while index < len(pending):
        written = os.writev(descriptor, pending[index : index + PARTS_PER_WRITE_MAX])
        total += written
        while index < len(pending) and written >= len(pending[index]):
            written -= len(pending[index])
            index += 1
        if written:
            pending[index] = pending[index][written:]
    return total


class PosixFile(File):
    """One file. The descriptor is owned by the disk's table of open files and may be -1 at any time."""

    __slots__ = ("descriptor", "disk", "path", "used")

    def __init__(self, disk: PosixDisk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.descriptor = -1
        self.used = False  # since the table of open files last looked; used ones are not closed first

    def append(self, parts: Sequence[Buffer]) -> int:
        descriptor = self.fileno()
        if len(parts) == 1:
            part = parts[0]
            written = os.write(descriptor, part)
            if written == len(part):
                return written
            return written + write_all(descriptor, [memoryview(part)[written:]])
        if len(parts) <= PARTS_PER_WRITE_MAX:
            written = os.writev(descriptor, parts)
            for part in parts:
                written -= len(part)
            if written == 0:
                return sum(map(len, parts))
            total = written + sum(map(len, parts))
            rest = memoryview(b"".join(parts))[total:]
            return total + write_all(descriptor, [rest])
        return write_all(descriptor, parts)

    def read(self, position: int, size: int) -> bytes:
        return read_all(self.fileno(), position, size)

    def size(self) -> int:
        if self.descriptor >= 0:
            return os.fstat(self.descriptor).st_size
        return os.stat(self.path).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fileno(), size)

    def reserve(self, size: int) -> None:
        reserve_space(self.fileno(), size)

    def sync(self) -> None:
        sync_descriptor(self.fileno())

    def close(self) -> None:
        self.disk._close_descriptor(self)

    def fileno(self) -> int:
        """Valid until the next call into this disk: ask again for every sendfile."""
        self.used = True
        if self.descriptor >= 0:
            return self.descriptor
        return self.disk._open_descriptor(self)


class PosixDisk(Disk):
    """The file system of this process. `post` runs a function in the node's own thread (loop.call_soon_threadsafe)."""

    file_class = PosixFile

    def __init__(self, post: Post | None = None, open_files_max: int = DEFAULT_OPEN_FILES_MAX) -> None:
        self._post = post
        self._open_files_max = open_files_max
        self._open: OrderedDict[int, weakref.ref[PosixFile]] = OrderedDict()
        # Files by the folder they are in, so that a renamed folder finds the files that must follow it.
        self._by_directory: dict[str, weakref.WeakSet[PosixFile]] = {}
        self._locks: dict[str, int] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._memory: MachineMemory | None = None
        self._later: set[str] = set()  # small files that a thread is writing
        self._overtaken: set[str] = set()  # those of them that were written again since

    # Descriptors

    def _open_descriptor(self, file: PosixFile) -> int:
        try:
            descriptor = os.open(file.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except PermissionError:
            # Snapshots have mode 0400: readable, and nobody appends to them.
            descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        return self._adopt(file, descriptor)

    def _adopt(self, file: PosixFile, descriptor: int) -> int:
        while len(self._open) >= self._open_files_max:
            self._close_one()
        self._open[descriptor] = weakref.ref(file, _Closer(self._open, descriptor))
        file.descriptor = descriptor
        return descriptor

    def _close_one(self) -> None:
        """Closes the oldest descriptor that was not used since it was last looked at (a clock, nearly an LRU)."""
        descriptor, reference = self._open.popitem(last=False)
        owner = reference()
        if owner is not None and owner.used:
            owner.used = False
            self._open[descriptor] = reference
            return
        if owner is not None:
            owner.descriptor = -1
        os.close(descriptor)

    def _close_descriptor(self, file: PosixFile) -> None:
        descriptor = file.descriptor
        if descriptor >= 0:
            file.descriptor = -1
            self._open.pop(descriptor, None)
            os.close(descriptor)

    def open_files(self) -> int:
        """How many descriptors are open now."""
        return len(self._open)

    # Files

    def open(self, path: str, create: bool = False) -> File:
        file = self.file_class(self, path)
        if create:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._adopt(file, descriptor)
        elif not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._by_directory.setdefault(os.path.dirname(path), weakref.WeakSet()).add(file)
        return file

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def list_with_sizes(self, path: str) -> dict[str, int]:
        found: dict[str, int] = {}
        with os.scandir(path) as entries:
            for entry in entries:
                found[entry.name] = -1 if entry.is_dir(follow_symlinks=True) else entry.stat().st_size
        return found

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileExistsError:
            pass
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)
        moved = self._by_directory.pop(old, None)
        if moved is not None:  # a folder: its files follow
            self._by_directory[new] = moved
            for file in moved:
                file.path = new + file.path[len(old) :]
            return
        files = self._by_directory.get(os.path.dirname(old))
        if files is None:
            return
        for file in [file for file in files if file.path == old]:
            files.discard(file)
            file.path = new
            self._by_directory.setdefault(os.path.dirname(new), weakref.WeakSet()).add(file)

    def remove(self, path: str) -> None:
        try:
            os.remove(path)
        except FileNotFoundError:
            pass

    def remove_tree(self, path: str) -> None:
        for file in list(self._by_directory.pop(path, ())):
            self._close_descriptor(file)
        shutil.rmtree(path)

    def read_file(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            data = os.read(descriptor, size + 1)
            while len(data) <= size:
                more = os.read(descriptor, size + 1 - len(data))
                if not more:
                    break
                data += more
            return data
        finally:
            os.close(descriptor)

    def write_file(self, path: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        if path in self._later:
            self._overtaken.add(path)
        self._write_temporary(path + ".tmp", data, sync, mode)
        os.replace(path + ".tmp", path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def _write_temporary(self, temporary: str, data: bytes, sync: bool, mode: int) -> None:
        # A leftover with mode 0400 could not be opened for writing.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            descriptor = os.open(temporary, flags, mode)
        except PermissionError:
            os.remove(temporary)
            descriptor = os.open(temporary, flags, mode)
        try:
            write_all(descriptor, [data])
            if sync:
                sync_descriptor(descriptor)
        finally:
            os.close(descriptor)

    def write_file_later(self, path: str, data: bytes, done: Callable[[OSError | None], None]) -> None:
        if self._post is None or path in self._later:
            try:
                self.write_file(path, data)
            except OSError as error:
                done(error)
            else:
                done(None)
            return
        self._later.add(path)
        self._in_thread(
            lambda: self._write_temporary(path + LATER_SUFFIX, data, True, 0o644),
            lambda failure: self._rename_written(path, failure, done),
        )

    def _rename_written(self, path: str, failure: OSError | None, done: Callable[[OSError | None], None]) -> None:
        """In the node's own turn, so that nothing written in the meantime is replaced by something older."""
        self._later.discard(path)
        try:
            if path in self._overtaken:
                self._overtaken.discard(path)
                self.remove(path + LATER_SUFFIX)
            elif failure is None:
                os.replace(path + LATER_SUFFIX, path)
        except OSError as error:
            failure = error
        done(failure)

    # Work in threads

    def _in_thread(self, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(WORKER_THREADS, thread_name_prefix="disk")
        self._pool.submit(self._run_in_thread, work, done)

    def _run_in_thread(self, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        failure: OSError | None = None
        try:
            work()
        except OSError as error:
            failure = error
        assert self._post is not None
        try:
            self._post(lambda: done(failure))
        except RuntimeError:
            pass  # the loop is closed: the process is ending and nobody waits for this any more

    def read_later(self, file: File, position: int, size: int, done: Callable[[bytes | OSError], None]) -> None:
        if self._post is None:
            try:
                outcome: bytes | OSError = file.read(position, size)
            except OSError as error:
                outcome = error
            done(outcome)
            return
        try:
            descriptor = os.dup(file.fileno())
        except OSError as error:
            missing = error
            self._post(lambda: done(missing))
            return
        found: list[bytes] = []
        self._in_thread(
            lambda: found.append(read_and_close(descriptor, position, size)),
            lambda failure: done(found[0] if failure is None else failure),
        )

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            # Some file systems have no sync of folders; their renames are durable without one.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)

    def sync_later(self, file: File, done: Callable[[OSError | None], None]) -> None:
        if self._post is None:
            try:
                file.sync()
            except OSError as error:
                done(error)
            else:
                done(None)
            return
        try:
            descriptor = os.dup(file.fileno())
        except OSError as error:
            failure = error
            self._post(lambda: done(failure))
            return
        self._in_thread(lambda: sync_and_close(descriptor), done)

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    # What the machine remembers

    def _machine_memory(self) -> MachineMemory:
        if self._memory is None:
            self._memory = MachineMemory(find_memory_folder())
        return self._memory

    def remember(self, directory: str, text: str) -> None:
        self._machine_memory().remember(directory, text)

    def recall(self, directory: str) -> str:
        return self._machine_memory().recall(directory)

    def forget(self, directory: str) -> None:
        self._machine_memory().forget(directory)

    # Locks and the end

    def lock_directory(self, path: str) -> None:
        if path in self._locks:
            raise BlockingIOError(errno.EAGAIN, "the directory is locked by this process already", path)
        descriptor = os.open(os.path.join(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # lockf is the kind of lock that Java takes, so a running Kafka and we keep each other out.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The other kind of lock is passed on to processes that work for this one, and outlives it in them.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise BlockingIOError(errno.EAGAIN, "another process has locked the directory", path) from error
            raise
        self._locks[path] = descriptor

    def lock_descriptors(self) -> Sequence[int]:
        """For processes that change files in these directories: who has inherited them keeps others out."""
        return tuple(self._locks.values())

    def unlock_directory(self, path: str) -> None:
        descriptor = self._locks.pop(path, None)
        if descriptor is not None:
            try:
                os.remove(os.path.join(path, ".lock"))
            except OSError:
                pass  # a directory that went offline; the lock goes with the descriptor
            os.close(descriptor)

    def close(self) -> None:
        """Ends the worker threads and closes every descriptor; Files open again if they are used again."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        while self._open:
            descriptor, reference = self._open.popitem()
            owner = reference()
            if owner is not None:
                owner.descriptor = -1
            os.close(descriptor)
        for path in list(self._locks):
            self.unlock_directory(path)


class _Closer:
    """Closes the descriptor of a File that nobody holds any more."""

    __slots__ = ("descriptor", "table")

    def __init__(self, table: OrderedDict[int, weakref.ref[PosixFile]], descriptor: int) -> None:
        self.table = table
        self.descriptor = descriptor

    def __call__(self, reference: weakref.ref[PosixFile]) -> None:
        if self.table.get(self.descriptor) is reference:
            del self.table[self.descriptor]
            os.close(self.descriptor)
