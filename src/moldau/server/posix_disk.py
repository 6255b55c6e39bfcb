"""The disk on a real POSIX file system: lazy descriptors under a cap, atomic small files, slow work in threads.

A File opens its descriptor when it is first used and may lose it again when too many are open; it then opens by itself
at the path it has now (renames through the Disk are followed). A small append is one system call. Everything but the
worker threads runs in the node's own thread; a worker uses a duplicate descriptor, so closing or reusing the original
in the meantime does no harm.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from moldau.metrics.recent_values import RecentValues
from moldau.server.cold_readers import ColdJob, ColdReaders, stop_read_ahead, warm
from moldau.server.disk_lanes import MEMORY_LANE, REMOVE_LANE, DiskLanes, Post
from moldau.server.machine_memory import MachineMemory, find_memory_directory
from moldau.server.posix_calls import (
    PARTS_PER_WRITE_MAX,
    read_all,
    read_whole_file,
    reserve_space,
    write_all,
    write_back_and_close,
)
from moldau.server.residency import (
    HAS_NOWAIT,
    RWF_NOWAIT,
    CannotTell,
    are_here,
    count_missing_pages,
    is_here,
    read_and_leave_no_trace,
    read_resident,
)
from moldau.storage.disk import BlockingDisk, Buffer, ColdRead, Done, File, Job, Reading, WholeDisk
from moldau.storage.segment import LOG_SUFFIX

DEFAULT_OPEN_FILES_MAX = 4096

SYNC_THREADS = 8
# What was found in memory is believed to be there for so long, and asked about a little ahead of who reads on.
WARM_S = 1.0
LOOK_AHEAD_BYTES = 4 << 20
# Where the system does not tell: who reads so close to the end of a file most likely reads what was just written.
NEAR_END_BYTES = 8 << 20
COLD_S = 10.0


log = logging.getLogger("moldau.server")


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


def sync_directory(path: str) -> None:
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems have no sync of directories; their renames are durable without one.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_temporary(temporary: str, data: bytes, sync: bool, mode: int) -> None:
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


def sync_and_close(descriptor: int) -> None:
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_or_drop(path: str) -> bool:
    """Whether all of a file could be written. If not, memory may show what the medium will never have: it is dropped,
    and the next read tells what is left. What cannot even be opened is for its reader to find out."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        sync_descriptor(descriptor)
    except OSError as error:
        log.error("cannot sync %s: %s", path, error)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return False
    finally:
        os.close(descriptor)
    return True


def done_now(job: Callable[[], None], done: Done) -> None:
    try:
        job()
    except OSError as error:
        done(error)
    else:
        done(None)


class ThreadDisk(BlockingDisk):
    """What jobs on threads get: it has no state, so any number of threads may use it."""

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def read_file(self, path: str) -> bytes:
        return read_whole_file(path)

    def sync_file(self, path: str) -> None:
        sync_and_close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def sync_directory(self, path: str) -> None:
        sync_directory(path)

    def write_file(self, path: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        write_temporary(path + ".job.tmp", data, sync, mode)
        os.replace(path + ".job.tmp", path)
        if sync:
            sync_directory(os.path.dirname(path))

    def remove(self, path: str) -> None:
        try:
            os.remove(path)
        except FileNotFoundError:
            pass

    def remove_tree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass


class PosixFile(File):
    """One file. The descriptor is owned by the disk's table of open files and may be -1 at any time."""

    __slots__ = ("cold_at", "descriptor", "disk", "path", "used", "warm_at", "warm_from", "warm_to")

    def __init__(self, disk: PosixDisk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.descriptor = -1
        self.used = False  # since the table of open files last looked; used ones are not closed first
        self.warm_from = 0  # the part that was last found in memory, and when
        self.warm_to = 0
        self.warm_at = 0.0
        self.cold_at = -COLD_S  # when somebody last met something cold here

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
        disk = self.disk
        if disk.refuses_cold and size > 0 and not self._is_known_warm(position, position + size):
            if disk.has_nowait:
                data = bytearray(size)
                try:
                    if os.preadv(self.fileno(), [data], position, RWF_NOWAIT) == size:
                        return bytes(data)
                except OSError:
                    pass  # cold, most likely; else it shows again
            return self._read_or_refuse(position, size)
        return read_all(self.fileno(), position, size)

    def _read_or_refuse(self, position: int, size: int) -> bytes:
        """Something is cold, or the file has ended, or the system does not tell."""
        disk = self.disk
        descriptor = self.fileno()
        size = min(size, os.fstat(descriptor).st_size - position)  # so that few bytes mean cold ones
        if size <= 0:
            return b""
        if disk.has_nowait:
            try:
                data = read_resident(descriptor, position, size)
            except CannotTell:
                disk.has_nowait = False
            else:
                if data is not None:
                    return bytes(data)
        if not disk.has_nowait and self.is_resident(position, size):
            return read_all(descriptor, position, size)
        brought = disk.find_brought(self.path, position, size)
        if brought is not None:
            return brought
        raise ColdRead(self, position, size)

    def read_now(self, position: int, size: int) -> bytes | bytearray | None:
        disk = self.disk
        if disk.has_nowait and not self._is_known_warm(position, position + size):
            try:
                return read_resident(self.fileno(), position, size)
            except CannotTell:
                disk.has_nowait = False
        if not disk.has_nowait and not self.is_resident(position, size):
            return None
        data = read_all(self.fileno(), position, size)
        return data if len(data) == size else None

    def is_resident(self, position: int, size: int) -> bool:
        end = position + size
        now = time.monotonic()
        if self.warm_from <= position and end <= self.warm_to and now - self.warm_at < WARM_S:
            return True
        descriptor = self.fileno()
        file_end = os.fstat(descriptor).st_size
        if position >= file_end:
            return True  # nothing is there to wait for
        end = min(end, file_end)
        if now - self.cold_at > COLD_S:
            # Nobody reads cold data here: samples are enough, and serve for a while.
            ahead = min(max(end, position + LOOK_AHEAD_BYTES), file_end)
            warm_to = self._find_resident_by_samples(descriptor, position, end, ahead)
        else:
            warm_to = self._find_resident(descriptor, position, end)
        if warm_to < end:
            self.cold_at = now
            return False
        self._note_warm(position, warm_to, now)
        return True

    def _find_resident(self, descriptor: int, position: int, end: int) -> int:
        """`end` if the file is in memory up to there, else `position`. Pages are counted from the moment on at which
        somebody asked for them: whether they have come is asked for at both ends."""
        missing = count_missing_pages(descriptor, position, end)
        if missing < 0:
            return self._find_resident_by_samples(descriptor, position, end, end)
        return end if missing == 0 and self._have_come(descriptor, position, end) else position

    def _have_come(self, descriptor: int, position: int, end: int) -> bool:
        if not self.disk.has_nowait:
            return True
        try:
            return is_here(descriptor, position) and is_here(descriptor, end - 1)
        except CannotTell:
            self.disk.has_nowait = False
            return True

    def _find_resident_by_samples(self, descriptor: int, position: int, end: int, ahead: int) -> int:
        """Up to where the file is in memory, as far as samples tell: `ahead`, `end`, or `position` if less is. Where
        one byte cannot be asked for (tmpfs, overlays) pages are counted; where they cannot be counted either, what is
        near the end is believed."""
        disk = self.disk
        if disk.has_nowait:
            try:
                if not are_here(descriptor, position, end):
                    return position
                return ahead if ahead > end and are_here(descriptor, end, ahead) else end
            except CannotTell:
                disk.has_nowait = False
        missing = count_missing_pages(descriptor, position, ahead)
        if missing > 0:
            ahead = end
            missing = count_missing_pages(descriptor, position, end)
        if missing < 0:
            return end if self._is_near_end(position) else position
        return ahead if missing == 0 else position

    def _is_known_warm(self, position: int, end: int) -> bool:
        return self.warm_from <= position and end <= self.warm_to and time.monotonic() - self.warm_at < WARM_S

    def _note_warm(self, position: int, end: int, now: float) -> None:
        self.warm_from = position
        self.warm_to = end
        self.warm_at = now

    def _is_near_end(self, position: int) -> bool:
        return os.fstat(self.fileno()).st_size - position <= NEAR_END_BYTES

    def warm_later(self, position: int, size: int, done: Done) -> Reading:
        return self.disk._warm_later(self, position, size, done)

    def read_later(self, position: int, size: int, done: Callable[[bytes | OSError], None]) -> None:
        self.disk.read_later(self, position, size, done)

    def size(self) -> int:
        if self.descriptor >= 0:
            return os.fstat(self.descriptor).st_size
        return os.stat(self.path).st_size

    def truncate(self, size: int) -> None:
        self.disk.changes_seen += 1
        self.warm_to = min(self.warm_to, size)
        os.ftruncate(self.fileno(), size)

    def reserve(self, size: int) -> None:
        reserve_space(self.fileno(), size)

    def close(self) -> None:
        self.disk._close_descriptor(self)

    def fileno(self) -> int:
        """Valid until the next call into this disk: ask again for every sendfile."""
        self.used = True
        if self.descriptor >= 0:
            return self.descriptor
        return self.disk._open_descriptor(self)


class TimedFlush:
    """The sync of a segment on a thread, and how long it took."""

    def __init__(self, descriptor: int, times: RecentValues, done: Done) -> None:
        self._descriptor = descriptor
        self._times = times
        self._done = done
        self._began_s = self._ended_s = 0.0

    def run(self) -> None:
        self._began_s = time.monotonic()
        sync_and_close(self._descriptor)
        self._ended_s = time.monotonic()

    def on_done(self, error: OSError | None) -> None:
        if error is None:
            self._times.record(int((self._ended_s - self._began_s) * 1e6), self._ended_s)
        self._done(error)


class PosixDisk(WholeDisk):
    """The file system of this process. `post` runs a function in the node's own thread (loop.call_soon_threadsafe)."""

    file_class = PosixFile

    def __init__(self, post: Post | None = None, open_files_max: int = DEFAULT_OPEN_FILES_MAX) -> None:
        self._post = post
        self._open_files_max = open_files_max
        self._open: OrderedDict[int, weakref.ref[PosixFile]] = OrderedDict()
        # Files by the directory they are in, so that a renamed directory finds the files that must follow it.
        self._by_directory: dict[str, weakref.WeakSet[PosixFile]] = {}
        self._locks: dict[str, int] = {}
        self._lanes = DiskLanes(post) if post is not None else None
        self.cold_readers = ColdReaders(post) if post is not None else None
        self.has_nowait = HAS_NOWAIT
        self._jobs = ThreadDisk()
        self._memory: MachineMemory | None = None
        self.flush_times = RecentValues()
        """Of segments, in microseconds."""

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
        self.changes_seen += 1
        moved = self._by_directory.pop(old, None)
        if moved is not None:  # a directory: its files follow
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
        self.changes_seen += 1
        try:
            os.remove(path)
        except FileNotFoundError:
            pass

    def remove_tree(self, path: str) -> None:
        self._close_files_in(path)
        self._jobs.remove_tree(path)

    def _close_files_in(self, path: str) -> None:
        self.changes_seen += 1
        for file in list(self._by_directory.pop(path, ())):
            self._close_descriptor(file)

    def read_file(self, path: str) -> bytes:
        if self.refuses_cold:
            file = self.open(path)
            return file.read(0, file.size())
        return read_whole_file(path)

    def write_file(self, path: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        self.changes_seen += 1
        write_temporary(path + ".tmp", data, sync, mode)
        os.replace(path + ".tmp", path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    # Work in threads

    def _lane_of(self, path: str) -> str:
        return self._lanes.lane_of(path) if self._lanes is not None else ""

    def _submit(self, lane: str, key: str, job: Callable[[], None], done: Done) -> None:
        """Without an owner's turn to come back to, as in tools, everything is done at once."""
        if self._lanes is None:
            done_now(job, done)
        else:
            self._lanes.submit(lane, key, job, done)

    def _duplicate(self, file: File, failed: Callable[[OSError], None]) -> int:
        """A descriptor for a thread; -1 if there is none, which is told in a later turn."""
        try:
            return os.dup(file.fileno())
        except OSError as error:
            failure = error
            if self._post is None:
                failed(failure)
            else:
                self._post(lambda: failed(failure))
            return -1

    def read_later(
        self, file: File, position: int, size: int, done: Callable[[bytes | OSError], None], keep: bool = True
    ) -> None:
        descriptor = self._duplicate(file, done)
        if descriptor < 0:
            return
        found: list[bytes] = []
        leaves_no_trace = not keep and hasattr(os, "posix_fadvise")

        def read(descriptor: int, position: int, size: int) -> None:
            if leaves_no_trace:
                found.append(read_and_leave_no_trace(descriptor, position, size))
            else:
                stop_read_ahead(descriptor)
                found.append(read_all(descriptor, position, size))

        def finished(failure: OSError | None) -> None:
            done(found[0] if failure is None else failure)

        self._submit_read(file, ColdJob(descriptor, position, size, read, finished))

    def _warm_later(self, file: PosixFile, position: int, size: int, done: Done) -> Reading:
        file.cold_at = time.monotonic()

        def finished(failure: OSError | None) -> None:
            if failure is None:
                if not self.has_nowait:
                    file._note_warm(position, position + size, time.monotonic())
            elif self.on_read_failed is not None and not job.cancelled:
                self.on_read_failed(file.path, failure)
            done(failure)

        descriptor = self._duplicate(file, done)
        job = ColdJob(descriptor, position, size, warm, finished)
        if descriptor >= 0:
            self._submit_read(file, job)
        return job

    def _submit_read(self, file: File, job: ColdJob) -> None:
        if self.cold_readers is not None:
            self.cold_readers.submit(self._lane_of(file.path), job)
            return

        def read_and_close() -> None:
            try:
                job.read(job.descriptor, job.position, job.size)
            finally:
                os.close(job.descriptor)

        done_now(read_and_close, job.finished)

    def sync_directory(self, path: str) -> None:
        sync_directory(path)

    def sync_file(self, path: str) -> None:
        self._jobs.sync_file(path)

    def sync_later(self, file: File, done: Done) -> None:
        descriptor = self._duplicate(file, done)
        if descriptor >= 0:
            if not file.path.endswith(LOG_SUFFIX):
                self._submit(self._lane_of(file.path), "", lambda: sync_and_close(descriptor), done)
                return
            timed = TimedFlush(descriptor, self.flush_times, done)
            self._submit(self._lane_of(file.path), "", timed.run, timed.on_done)

    def do_later(self, path: str, job: Job, done: Done) -> None:
        self._submit(self._lane_of(path), path, lambda: job(self._jobs), done)

    def remove_later(self, paths: Sequence[str], done: Done) -> None:
        self.changes_seen += 1
        wanted = list(paths)

        def remove_all() -> None:
            for path in wanted:
                self._jobs.remove(path)

        self._submit(REMOVE_LANE, "", remove_all, done)

    def remove_tree_later(self, path: str, done: Done) -> None:
        self._close_files_in(path)
        self._submit(REMOVE_LANE, "", lambda: self._jobs.remove_tree(path), done)

    def write_back_later(self, file: File, position: int, size: int, done: Done) -> None:
        descriptor = self._duplicate(file, done)
        if descriptor >= 0:
            self._submit(self._lane_of(file.path), "", lambda: write_back_and_close(descriptor, position, size), done)

    def finish_jobs(self) -> None:
        if self._lanes is not None:
            self._lanes.finish_all()

    def sync_all(self, paths: Sequence[str]) -> Sequence[str]:
        if not paths:
            return []
        with ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="disk sync") as threads:
            outcomes = list(threads.map(sync_or_drop, paths))
        return [path for path, is_whole in zip(paths, outcomes, strict=True) if not is_whole]

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    # What the machine remembers

    def _machine_memory(self) -> MachineMemory:
        if self._memory is None:
            self._memory = MachineMemory(find_memory_directory())
        return self._memory

    def remember(self, directory: str, text: str, details: bytes = b"") -> None:
        self._machine_memory().remember(directory, text, details)

    def remember_details_later(self, directory: str, details: bytes, done: Done) -> None:
        memory = self._machine_memory()
        self._submit(MEMORY_LANE, directory, lambda: memory.remember_details(directory, details), done)

    def recall_details(self, directory: str) -> bytes:
        return self._machine_memory().recall_details(directory)

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
        if self._lanes is not None:
            self._lanes.add_directory(path)

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
        if self.cold_readers is not None:
            self.cold_readers.close()
        if self._lanes is not None:
            self._lanes.close()
        while self._open:
            descriptor, reference = self._open.popitem()
            owner = reference()
            if owner is not None:
                owner.descriptor = -1
            os.close(descriptor)
        for path in list(self._locks):
            self.unlock_directory(path)

    def read_at(self, path: str, position: int, size: int) -> bytes:
        refuses = self.refuses_cold and size > 0
        if refuses and not self.has_nowait:
            return super().read_at(path, position, size)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not refuses:
                return read_all(descriptor, position, size)
            data = bytearray(size)
            if os.preadv(descriptor, [data], position, RWF_NOWAIT) == size:
                return bytes(data)
        except OSError:
            if not refuses:
                raise
        finally:
            os.close(descriptor)
        return super().read_at(path, position, size)  # cold, or at the end of the file: a File finds out which


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
