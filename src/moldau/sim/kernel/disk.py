"""A disk in memory that forgets what was not synced, tears writes, flips bits and runs out of space.

What a real file system may do is modelled, not what one of them does today:

- A file's bytes are durable after `sync`. At a power loss each file keeps, by the seeded choice, all of its unsynced
  changes, none, a prefix whose last write is torn at any byte, or a prefix in which some sectors are zeros or garbage.
- A directory entry (create, rename, remove) is durable after `sync_directory` of its parent; syncing the file is not
  enough. At a power loss a prefix of the remaining changes of each directory survives: one directory's changes keep
  their order, as in every journal, those of different ones need not. A rename is atomic: the old name or the new one,
  never both, never none.
- After a failed sync the data it should have written may be gone although a later sync of the same process succeeds.
- A part of a file may be cold (`sim/kernel/cold_memory.py`).
- The machine can stop at any operation: `crash_after` raises SimulatedCrash out of the n-th change from now.
- Calls take time. What is done later takes `sync_delay_ms`; a call that waits for the medium in the process's own turn
  takes `block_delay_ms`, which adds up in `blocked_ms`: whoever runs the process lets it stand still for so long. While
  a node serves there must be none of these (`sim/kernel/turn_watch.py`).

`process_crash` is kill -9: everything written stays as it is, and stays unsynced.
"""

from __future__ import annotations

import errno
import os
import random
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from moldau.sim.kernel.cold_memory import ColdMemory, MemoryFile
from moldau.sim.kernel.disk_calls import Fault, LaterCall, PendingJob, nothing
from moldau.sim.kernel.disk_inodes import Change, Directory, EntryChange, Inode
from moldau.sim.kernel.turn_watch import TurnWatch
from moldau.storage.disk import BlockingDisk, Buffer, Done, File, Job, WholeDisk

NORMAL_SYNC_MS = (0, 10)
NORMAL_BLOCK_MS = (0, 0)


class SimulatedCrash(BaseException):
    """The machine stops inside a disk operation. Not an Exception, so that no code under test handles it."""


class SimFile(MemoryFile):
    def __init__(self, disk: SimDisk, inode: Inode, path: str) -> None:
        super().__init__(disk, disk.memory)
        self.path = path
        self.inode = inode
        self._disk = disk
        self._generation = disk.generation
        self._closed = False

    def append(self, parts: Sequence[Buffer]) -> int:
        self._check_open()
        data = b"".join(parts)
        self._disk.append_to(self.inode, self.path, data)
        return len(data)

    def read(self, position: int, size: int) -> bytes:
        data = self.read_as_asked(position, size)
        self._disk.note_read(self.inode, self.path, position, len(data))
        return data

    def read_as_asked(self, position: int, size: int) -> bytes:
        """For who has asked whether it would wait, and for what the system does by itself (`sendfile`)."""
        self._check_open()
        self._disk.check_fault("read", self.path)
        self.check_cold(position, size)
        return bytes(self.inode.current[position : position + size])

    def identity(self) -> object:
        return self.inode

    def content(self) -> bytearray:
        return self.inode.current

    def size(self) -> int:
        self._check_open()
        return len(self.inode.current)

    def truncate(self, size: int) -> None:
        self._check_open()
        self._disk.truncate_inode(self.inode, self.path, size)

    def sync(self) -> None:
        self._check_open()
        self._disk.wait_for_medium("sync", self.path)
        self._disk.sync_inode(self.inode, self.path, self._disk.last_number)

    def close(self) -> None:
        self._closed = True

    def fileno(self) -> int:
        return -1

    def _check_open(self) -> None:
        if self._generation != self._disk.generation:
            raise SimulatedCrash(f"{self.path} belongs to a process that has died")
        if self._closed:
            # As on a real disk: a closed file opens by itself, at the path it has now, if that is still there.
            self.inode = self._disk.inode_at(self.path)
            self._closed = False


class SimDisk(WholeDisk):
    """The file system of one simulated machine. It outlives the processes that run on it."""

    def __init__(self, seed: int = 0, schedule: Callable[[int, Callable[[], None]], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.memory = ColdMemory(seed)
        self.watch = TurnWatch()
        self.root = Directory()
        self.journal: list[EntryChange] = []
        self.generation = 0
        self.last_number = 0
        self.changes = 0
        self.capacity_bytes: int | None = None
        self.sync_delay_ms = NORMAL_SYNC_MS
        self.block_delay_ms = NORMAL_BLOCK_MS
        self.blocked_ms = 0
        self._spared = ""
        self._on_thread = False
        self._calls: dict[LaterCall, None] = {}
        """Those that are under way, in the order in which they were made."""
        # Jobs by what they belong to, the one under way first: a path is here as long as it has one.
        self._jobs: dict[str, deque[PendingJob]] = {}
        self.observer: Callable[[str], None] | None = None
        self._schedule = schedule
        self._faults: list[Fault] = []
        self._crash_countdown = 0
        self._crashing = False
        self._doomed: list[Inode] = []
        self._locks: set[str] = set()
        self._memory: dict[str, tuple[str, bytes]] = {}  # of the machine, not of the disk
        self._is_broken = False
        self._files: weakref.WeakSet[SimFile] = weakref.WeakSet()

    # Faults

    def fail(self, operation: str, fragment: str = "", code: int = errno.EIO, times: int = 1, skip: int = 0) -> None:
        """The next `times` operations of this name on paths that contain `fragment` fail, after `skip` that do not."""
        self._faults.append(Fault(operation, fragment, code, times, skip))

    def clear_faults(self) -> None:
        self._faults.clear()
        self.capacity_bytes = None

    def crash_after(self, changes: int) -> None:
        """The machine or process stops inside the n-th change from now (1 is the next); 0 calls it off."""
        self._crash_countdown = changes

    def flip_bit(self, path: str, position: int, bit: int) -> None:
        """The medium changes one bit, of the durable bytes as of those in memory."""
        inode = self.inode_at(path)
        for content in (inode.current, inode.durable):
            if position < len(content):
                content[position] ^= 1 << bit
        self._say(f"flip {path} {position}.{bit}")

    def slow_down(self, delay_ms: tuple[int, int], spared: str = "") -> None:
        """Every call that waits for the medium takes so long from now on, on a thread or in the process's own turn; not
        so on paths with what is spared in them."""
        self.sync_delay_ms = delay_ms
        self.block_delay_ms = delay_ms
        self._spared = spared

    def end_slowness(self) -> None:
        """Also for the calls that are stuck: they come back soon."""
        self.sync_delay_ms = NORMAL_SYNC_MS
        self.block_delay_ms = NORMAL_BLOCK_MS
        self._spared = ""
        if self._schedule is not None:
            for call in list(self._calls):
                self._schedule(self.rng.randint(*NORMAL_SYNC_MS), call.run)

    def fail_write_back(self, fragment: str = "") -> None:
        """What was written to files of that name and not synced is given up by the system, which tells whoever syncs
        such a file next, once."""
        for path in self.all_files():
            if fragment in path:
                self.inode_at(path).fail_write_back()
        self._say(f"what was not synced of *{fragment}* is not written back")

    @property
    def has_unseen_errors(self) -> bool:
        return any(self.inode_at(path).unseen_error for path in self.all_files())

    def copy_files(self) -> dict[str, bytes]:
        """A copy of all files as they are now, by somebody who does not know what they are."""
        return {path: self.peek(path) for path in self.all_files()}

    def restore_files(self, copy: dict[str, bytes], leave_alone: Callable[[str], bool]) -> None:
        """Somebody puts a copy in the place of what is there, and removes what a directory of logs had not then; what
        machines remember stays as it is."""
        for change in self.journal:
            change.apply()
        self.journal.clear()
        directories = {path.rpartition("/")[0] for path in copy if path.endswith(".log")}
        for path in self.all_files():
            if leave_alone(path):
                continue
            if path in copy:
                self.inode_at(path).restore(copy[path])
            elif path.rpartition("/")[0] in directories:
                directory, name = self._parent(path)
                del directory.entries[name]
                directory.durable.pop(name, None)
        self._say("an older copy is put in place")

    def evict(self) -> None:
        """Memory gets tight: what could not be written back is not shown any more."""
        for path in self.all_files():
            self.inode_at(path).evict()

    def power_loss(self, rng: random.Random | None = None) -> None:
        """Everything unsynced is at the mercy of the seed; the process is gone."""
        self._memory.clear()
        self.lose_unsynced(rng)

    def break_down(self) -> None:
        """From now on every operation fails; the machine goes on, with whatever it remembers."""
        self._is_broken = True
        self._say("the disk breaks down")

    @property
    def is_broken(self) -> bool:
        return self._is_broken

    def come_back(self, rng: random.Random | None = None) -> None:
        """The broken disk works again, after the process that used it is gone, without what was not synced."""
        self._is_broken = False
        self.lose_unsynced(rng)

    def lose_unsynced(self, rng: random.Random | None = None) -> None:
        choose = rng if rng is not None else self.rng
        self._keep_entries(choose)
        self._restore(self.root, choose, set())
        self.process_crash()

    def process_crash(self) -> None:
        """The process is gone; the machine, with all that was written, goes on."""
        self.generation += 1
        for path in self.all_files():
            self.inode_at(path).grow_old()
        self._jobs.clear()
        self._calls.clear()
        # What a sync left behind that has told of its failure is forgiven to the next process: no log can defend itself
        # against a page cache that shows bytes which it has given up writing. What nobody was told of stays as it is.
        for inode in self._doomed:
            for change in inode.pending:
                change.is_given_up = False
        self._doomed.clear()
        self._crash_countdown = 0
        self._crashing = False
        self._locks.clear()

    def _keep_entries(self, rng: random.Random) -> None:
        if rng.random() < 0.6:
            for change in self.journal[: rng.randint(0, len(self.journal))]:
                change.apply()
        else:
            left: dict[int, int] = {}
            for change in self.journal:
                for directory, _ in change.names():
                    left[directory] = left.get(directory, 0) + 1
            left = {directory: rng.randint(0, count) for directory, count in left.items()}
            chosen = []
            for change in self.journal:
                directories = [directory for directory, _ in change.names()]
                chosen.append(all(left[directory] > 0 for directory in directories))
                for directory in directories:
                    left[directory] -= 1
            self._apply_with_dependencies(chosen)
        self.journal.clear()

    def _apply_with_dependencies(self, chosen: list[bool]) -> list[EntryChange]:
        """Applies the chosen changes and every earlier one of the same names; returns the others."""
        keys: set[tuple[int, str]] = set()
        for index in range(len(self.journal) - 1, -1, -1):
            change = self.journal[index]
            if chosen[index] or any(key in keys for key in change.names()):
                chosen[index] = True
                keys.update(change.names())
        for index, change in enumerate(self.journal):
            if chosen[index]:
                change.apply()
        return [change for index, change in enumerate(self.journal) if not chosen[index]]

    def _restore(self, directory: Directory, rng: random.Random, seen: set[int]) -> None:
        directory.entries = dict(directory.durable)
        for name in sorted(directory.entries):
            node = directory.entries[name]
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Directory):
                self._restore(node, rng, seen)
            else:
                # Foreign bytes are for files with checksums: the others could not tell them from their own.
                node.lose_power(rng, garbage=name.endswith(".log"))

    # Operations of open files

    def append_to(self, inode: Inode, path: str, data: bytes) -> None:
        position = len(inode.current)
        if self._begin_change("append", path):
            self._write(inode, data[: self.rng.randint(0, len(data))])
            self._crash_now()
        self.check_fault("append", path)
        room = self.free_bytes(path)
        if len(data) > room:
            self._write(inode, data[: max(0, room)])
            self._say(f"append {path} {position}+{len(data)}: no space beyond {room}")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._write(inode, data)
        self._say(f"append {path} {position}+{len(data)}")

    def truncate_inode(self, inode: Inode, path: str, size: int) -> None:
        if self._begin_change("truncate", path):
            self._crash_now()
        self.check_fault("truncate", path)
        self.changes_seen += 1
        if size < len(inode.current):
            self.last_number += 1
            inode.pending.append(Change(size, None, self.last_number))
            del inode.current[size:]
        elif size > len(inode.current):
            self._write(inode, bytes(size - len(inode.current)))
        self._say(f"truncate {path} {size}")

    def sync_inode(self, inode: Inode, path: str, number: int) -> None:
        if self._begin_change("sync", path):
            self._crash_now()
        try:
            self.check_fault("sync", path)
            if inode.unseen_error:
                inode.unseen_error = False
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        except OSError:
            for change in inode.pending:
                change.is_given_up = True
            self._doomed.append(inode)
            raise
        inode.sync_until(number)
        self._say(f"sync {path}")

    def check_fault(self, operation: str, path: str) -> None:
        if self._is_broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        for fault in self._faults:
            if fault.operation == operation and fault.fragment in path and fault.remaining > 0:
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.remaining -= 1
                self._say(f"{operation} {path}: {errno.errorcode[fault.code]}")
                raise OSError(fault.code, os.strerror(fault.code), path)

    def _write(self, inode: Inode, data: bytes) -> None:
        self.last_number += 1
        inode.pending.append(Change(len(inode.current), data, self.last_number))
        inode.current.extend(data)

    def _begin_change(self, operation: str, path: str) -> bool:
        """Counts one change; True when the machine stops in it."""
        if self._crashing:
            raise SimulatedCrash(f"{operation} {path} after the machine stopped")
        self.changes += 1
        if self._crash_countdown > 0:
            self._crash_countdown -= 1
            if self._crash_countdown == 0:
                self._say(f"{operation} {path}: the machine stops")
                return True
        return False

    def _crash_now(self) -> None:
        self._crashing = True
        raise SimulatedCrash("the machine stops")

    def _say(self, line: str) -> None:
        if self.observer is not None:
            self.observer(line)

    # Disk

    def open(self, path: str, create: bool = False) -> File:
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self.check_fault("open", path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            if self._begin_change("create", path):
                self._crash_now()
            node = Inode()
            self._link(node, directory, name)
            self._say(f"create {path}")
        file = SimFile(self, node, path)
        self._files.add(file)
        return file

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Directory)

    def list(self, path: str) -> list[str]:
        self.check_fault("list", path)
        return sorted(self._directory_at(path).entries)

    def list_with_sizes(self, path: str) -> dict[str, int]:
        self.check_fault("list", path)
        entries = self._directory_at(path).entries
        return {name: len(node.current) if isinstance(node, Inode) else -1 for name, node in sorted(entries.items())}

    def size(self, path: str) -> int:
        return len(self.inode_at(path).current)

    def make_directory(self, path: str) -> None:
        directory = self.root
        for name in _parts(path):
            node = directory.entries.get(name)
            if node is None:
                if self._begin_change("mkdir", path):
                    self._crash_now()
                self.check_fault("mkdir", path)
                node = Directory()
                self._link(node, directory, name)
                self._say(f"mkdir {path}")
            if isinstance(node, Inode):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            directory = node

    def rename(self, old: str, new: str) -> None:
        old_directory, old_name = self._parent(old)
        new_directory, new_name = self._parent(new)
        node = old_directory.entries.get(old_name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        target = new_directory.entries.get(new_name)
        if isinstance(target, Directory) and target.entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
        if self._begin_change("rename", old):
            self._crash_now()
        self.check_fault("rename", old)
        self.changes_seen += 1
        del old_directory.entries[old_name]
        new_directory.entries[new_name] = node
        self.journal.append(EntryChange(node, (old_directory, old_name), (new_directory, new_name)))
        self._say(f"rename {old} {new}")
        self._move_open_files(old, new)

    def remove(self, path: str) -> None:
        if not self._on_thread:
            self.watch.on_wait(f"remove {path}")
        self._remove(path)

    def _remove(self, path: str) -> None:
        node = self._find(path)
        if node is None:
            return
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._unlink(path)

    def remove_tree(self, path: str) -> None:
        self.wait_for_medium("remove", path)
        self._remove_tree(path)

    def _remove_tree(self, path: str) -> None:
        node = self._find(path)
        if isinstance(node, Directory):
            for name in sorted(node.entries):
                self._remove_tree(f"{path.rstrip('/')}/{name}")
        if node is not None:
            self._unlink(path)

    def read_file(self, path: str) -> bytes:
        inode = self.inode_at(path)
        if self.refuses_cold:
            return SimFile(self, inode, path).read(0, len(inode.current))
        self.check_fault("read", path)
        self.note_read(inode, path, 0, len(inode.current))
        return bytes(inode.current)

    def note_read(self, inode: Inode, path: str, position: int, size: int) -> None:
        if not self._on_thread and not self.refuses_cold:
            self.watch.on_read(path, size, may_be_cold=position < inode.old_end)

    def write_file(self, path: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        self._replace(path, f"{path}.tmp", data, sync)
        if sync:
            self.sync_directory(path.rpartition("/")[0])

    def _replace(self, path: str, temporary: str, data: bytes, sync: bool) -> None:
        self._remove(temporary)
        file = self.open(temporary, create=True)
        file.append([data])
        if sync:
            self.sync_file(temporary)
        file.close()
        self.rename(temporary, path)

    def read_later(
        self, file: File, position: int, size: int, done: Callable[[bytes | OSError], None], keep: bool = True
    ) -> None:
        found: list[bytes] = []

        def read() -> None:
            found.append(file.read(position, size))
            if keep and isinstance(file, SimFile):
                self.memory.note_read(file.inode, position)

        self._do_later(file.path, read, lambda failure: done(found[0] if failure is None else failure))

    def _do_later(self, path: str, work: Callable[[], None], done: Done) -> None:
        """What a thread of the process does: it never happens if the process ends before. `done` hears how it went, in
        the process's own turn."""
        if self._schedule is None:
            raise RuntimeError("a disk without a scheduler does nothing later")
        call = LaterCall(self, work, done)
        self._calls[call] = None
        is_spared = self._spared != "" and self._spared in path
        self._schedule(self.rng.randint(*(NORMAL_SYNC_MS if is_spared else self.sync_delay_ms)), call.run)

    def take_call(self, call: LaterCall) -> bool:
        """False if it has come back already."""
        if call not in self._calls:
            return False
        del self._calls[call]
        return True

    def run_on_thread(self, work: Callable[[], None]) -> OSError | None:
        self._on_thread = True
        try:
            work()
        except OSError as error:
            return error
        finally:
            self._on_thread = False
        return None

    def wait_for_medium(self, call: str, path: str) -> None:
        """A call that waits: on a thread that costs nobody anything, in the process's own turn it does."""
        if not self._on_thread:
            self.watch.on_wait(f"{call} {path}")
            self.blocked_ms += self.rng.randint(*self.block_delay_ms) if self.block_delay_ms[1] > 0 else 0

    def take_blocked_ms(self) -> int:
        """For how long the process stood still since it was last asked."""
        blocked_ms, self.blocked_ms = self.blocked_ms, 0
        return blocked_ms

    def sync_directory(self, path: str) -> None:
        self.wait_for_medium("sync of the directory", path)
        directory = self._directory_at(path)
        if self._begin_change("sync_directory", path):
            self._crash_now()
        self.check_fault("sync_directory", path)
        self.journal = self._apply_with_dependencies([change.touches(directory) for change in self.journal])
        self._say(f"sync_directory {path}")

    def sync_later(self, file: File, done: Done) -> None:
        if not isinstance(file, SimFile):
            raise TypeError("not a file of this disk")
        number = self.last_number
        self._do_later(file.path, lambda: self.sync_inode(file.inode, file.path, number), done)

    def sync_file(self, path: str) -> None:
        self.wait_for_medium("sync", path)
        self.sync_inode(self.inode_at(path), path, self.last_number)

    def do_later(self, path: str, job: Job, done: Done) -> None:
        """The work is done at one moment and reported at a later one: the machine may stop in between."""
        queue = self._jobs.setdefault(path, deque())
        queue.append(PendingJob(job, done))
        if len(queue) == 1:
            self._begin_job(path, queue)

    def _begin_job(self, path: str, queue: deque[PendingJob]) -> None:
        def run() -> None:
            if self._jobs.get(path) is queue:  # else it was finished at the end of the node
                queue[0].has_run = True
                queue[0].job(self)

        def ran(failure: OSError | None) -> None:
            self._do_later(path, nothing, lambda _: self._finish_job(path, queue, failure))

        self._do_later(path, run, ran)

    def _finish_job(self, path: str, queue: deque[PendingJob], failure: OSError | None) -> None:
        if self._jobs.get(path) is not queue:
            return
        pending = queue.popleft()
        if queue:
            self._begin_job(path, queue)
        else:
            del self._jobs[path]
        pending.done(failure)

    def remove_later(self, paths: Sequence[str], done: Done) -> None:
        wanted = list(paths)

        def remove_all() -> None:
            for path in wanted:
                self._remove(path)

        self._do_later(wanted[0] if wanted else "", remove_all, done)

    def remove_tree_later(self, path: str, done: Done) -> None:
        self._do_later(path, lambda: self._remove_tree(path), done)

    def write_back_later(self, file: File, position: int, size: int, done: Done) -> None:
        self._do_later(file.path, nothing, done)

    def sync_all(self, paths: Sequence[str]) -> Sequence[str]:
        lost: list[str] = []
        for path in paths:
            try:
                self.sync_file(path)
            except OSError:
                lost.append(path)
                self.inode_at(path).evict()
        return lost

    def finish_jobs(self) -> None:
        jobs, self._jobs = self._jobs, {}
        for queue in jobs.values():
            for pending in queue:
                if not pending.has_run:
                    try:
                        pending.job(self)
                    except OSError as error:
                        self._say(f"a last job failed: {error}")

    def free_bytes(self, path: str) -> int:
        if self.capacity_bytes is None:
            return 1 << 40
        return self.capacity_bytes - self.used_bytes()

    def total_bytes(self, path: str) -> int:
        return 1 << 41 if self.capacity_bytes is None else self.capacity_bytes

    def remember(self, directory: str, text: str, details: bytes = b"") -> None:
        self.check_fault("remember", directory)
        self._memory[directory] = (text, details)

    def remember_details_later(self, directory: str, details: bytes, done: Done) -> None:
        def note(disk: BlockingDisk) -> None:
            if directory in self._memory:
                self._memory[directory] = (self._memory[directory][0], details)

        self.do_later(f"the note of {directory}", note, done)

    def recall(self, directory: str) -> str:
        return self._memory.get(directory, ("", b""))[0]

    def recall_details(self, directory: str) -> bytes:
        return self._memory.get(directory, ("", b""))[1]

    def forget(self, directory: str) -> None:
        self._memory.pop(directory, None)

    def peek(self, path: str) -> bytes:
        """The bytes of a file, for checkers: no fault is met."""
        return bytes(self.inode_at(path).current)

    def used_bytes(self) -> int:
        return _size_of(self.root)

    def lock_directory(self, path: str) -> None:
        key = "/".join(_parts(path))
        if key in self._locks:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self.open(f"{path.rstrip('/')}/.lock", create=True).close()
        self._locks.add(key)

    def unlock_directory(self, path: str) -> None:
        key = "/".join(_parts(path))
        if key in self._locks:
            self._locks.remove(key)
            self._remove(f"{path.rstrip('/')}/.lock")

    def all_files(self) -> Sequence[str]:
        """The path of every file, sorted; for checkers and faults that pick one."""
        found: list[str] = []
        _collect_files(self.root, "", found)
        return found

    # Names

    def _link(self, node: Inode | Directory, directory: Directory, name: str) -> None:
        directory.entries[name] = node
        self.journal.append(EntryChange(node, None, (directory, name)))

    def _unlink(self, path: str) -> None:
        directory, name = self._parent(path)
        if self._begin_change("remove", path):
            self._crash_now()
        self.check_fault("remove", path)
        self.changes_seen += 1
        node = directory.entries.pop(name)
        self.journal.append(EntryChange(node, (directory, name), None))
        self._say(f"remove {path}")

    def _move_open_files(self, old: str, new: str) -> None:
        for file in self._files:
            if file.path == old or file.path.startswith(f"{old}/"):
                file.path = new + file.path[len(old) :]

    def _find(self, path: str) -> Inode | Directory | None:
        node: Inode | Directory | None = self.root
        for name in _parts(path):
            if not isinstance(node, Directory):
                return None
            node = node.entries.get(name)
        return node

    def _directory_at(self, path: str) -> Directory:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if not isinstance(node, Directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def inode_at(self, path: str) -> Inode:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        parts = _parts(path)
        if not parts:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return self._directory_at("/".join(parts[:-1])), parts[-1]


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _size_of(node: Inode | Directory) -> int:
    if isinstance(node, Inode):
        return len(node.current)
    return sum(_size_of(child) for child in node.entries.values())


def _collect_files(directory: Directory, prefix: str, found: list[str]) -> None:
    for name in sorted(directory.entries):
        node = directory.entries[name]
        if isinstance(node, Directory):
            _collect_files(node, f"{prefix}{name}/", found)
        else:
            found.append(prefix + name)
