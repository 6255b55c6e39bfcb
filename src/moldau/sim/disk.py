"""A disk in memory that forgets what was not synced, tears writes, flips bits and runs out of space.

What a real file system may do is modelled, not what one of them does today:

- A file's bytes are durable after `sync`. At a power loss each file keeps, by the seeded choice, all of its unsynced
  changes, none, a prefix whose last write is torn at any byte, or a prefix in which some sectors are zeros or garbage.
- A directory entry (create, rename, remove) is durable after `sync_directory` of its parent; syncing the file is not
  enough. At a power loss a prefix of the remaining changes of each directory survives: one directory's changes keep
  their order, as in every journal, those of different ones need not. A rename is atomic: the old name or the new one,
  never both, never none.
- After a failed sync the data it should have written may be gone although a later sync of the same process succeeds.
- The machine can stop at any operation: `crash_after` raises SimulatedCrash out of the n-th change from now.

`process_crash` is kill -9: everything written stays as it is, and stays unsynced.
"""

from __future__ import annotations

import errno
import os
import random
import weakref
from collections.abc import Callable, Sequence

from moldau.storage.disk import Buffer, Disk, File

SECTOR_SIZES = (64, 512, 4096)


class SimulatedCrash(BaseException):
    """The machine stops inside a disk operation. Not an Exception, so that no code under test handles it."""


class Change:
    """One change of a file's bytes that is not durable yet; `data` None cuts the file to `position`."""

    __slots__ = ("data", "doomed", "number", "position")

    def __init__(self, position: int, data: bytes | None, number: int) -> None:
        self.position = position
        self.data = data
        self.number = number
        self.doomed = False

    def apply(self, content: bytearray, limit: int = -1) -> None:
        if self.data is None:
            del content[self.position :]
            return
        data = self.data if limit < 0 else self.data[:limit]
        if len(content) < self.position:
            content.extend(bytes(self.position - len(content)))
        content[self.position : self.position + len(data)] = data


class Inode:
    """A file's bytes: as the process sees them, as the platter has them, and the changes between the two."""

    __slots__ = ("current", "durable", "pending")

    def __init__(self) -> None:
        self.current = bytearray()
        self.durable = bytearray()
        self.pending: list[Change] = []

    def sync_until(self, number: int) -> None:
        remaining: list[Change] = []
        for change in self.pending:
            if change.number <= number and not change.doomed:
                change.apply(self.durable)
            else:
                remaining.append(change)
        self.pending = remaining

    def lose_power(self, rng: random.Random, *, garbage: bool) -> None:
        if self.pending:
            self.durable = self._surviving(rng, garbage)
            self.pending = []
        self.current = bytearray(self.durable)

    def _surviving(self, rng: random.Random, garbage: bool) -> bytearray:
        content = bytearray(self.durable)
        choice = rng.random()
        if choice < 0.2:
            return content
        kept = [change for change in self.pending if not change.doomed or rng.random() < 0.5]
        if choice < 0.45:
            for change in kept:
                change.apply(content)
            return content
        if choice < 0.5:
            # The cut of a file and the data written after it reach the platter independently.
            kept = [change for change in kept if change.data is not None]
        count = rng.randint(0, len(kept))
        for change in kept[:count]:
            change.apply(content)
        if count < len(kept):
            torn = kept[count].data
            if torn:
                kept[count].apply(content, rng.randint(0, len(torn)))
        if choice >= 0.85:
            self._damage_sectors(content, kept, rng, garbage)
        return content

    def _damage_sectors(self, content: bytearray, kept: list[Change], rng: random.Random, garbage: bool) -> None:
        """The length of the file reached the platter and some of its data did not."""
        sector = rng.choice(SECTOR_SIZES)
        for change in kept:
            if change.data is None or rng.random() < 0.5:
                continue
            end = min(change.position + len(change.data), len(content))
            if end <= change.position:
                continue
            position = rng.randrange(change.position, end)
            start = max(change.position, position - position % sector)
            stop = min(end, start + sector)
            keep_zeros = not garbage or rng.random() < 0.7
            content[start:stop] = bytes(stop - start) if keep_zeros else rng.randbytes(stop - start)


class Directory:
    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}


class EntryChange:
    """One change of directory entries that is not durable yet: `node` leaves `old` and appears as `new`."""

    __slots__ = ("new", "node", "old")

    def __init__(
        self, node: Inode | Directory, old: tuple[Directory, str] | None, new: tuple[Directory, str] | None
    ) -> None:
        self.node = node
        self.old = old
        self.new = new

    def names(self) -> list[tuple[int, str]]:
        return [(id(place[0]), place[1]) for place in (self.old, self.new) if place is not None]

    def touches(self, directory: Directory) -> bool:
        return any(place is not None and place[0] is directory for place in (self.old, self.new))

    def apply(self) -> None:
        if self.old is not None and self.old[0].durable.get(self.old[1]) is self.node:
            del self.old[0].durable[self.old[1]]
        if self.new is not None:
            self.new[0].durable[self.new[1]] = self.node


class Fault:
    """An error that the next matching operations meet."""

    __slots__ = ("code", "fragment", "operation", "remaining", "skip")

    def __init__(self, operation: str, fragment: str, code: int, times: int, skip: int) -> None:
        self.operation = operation
        self.fragment = fragment
        self.code = code
        self.remaining = times
        self.skip = skip


class SimFile(File):
    def __init__(self, disk: SimDisk, inode: Inode, path: str) -> None:
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
        self._check_open()
        self._disk.check_fault("read", self.path)
        return bytes(self.inode.current[position : position + size])

    def size(self) -> int:
        self._check_open()
        return len(self.inode.current)

    def truncate(self, size: int) -> None:
        self._check_open()
        self._disk.truncate_inode(self.inode, self.path, size)

    def sync(self) -> None:
        self._check_open()
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


class SimDisk(Disk):
    """The file system of one simulated machine. It outlives the processes that run on it."""

    def __init__(self, seed: int = 0, schedule: Callable[[int, Callable[[], None]], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.root = Directory()
        self.journal: list[EntryChange] = []
        self.generation = 0
        self.last_number = 0
        self.changes = 0
        self.capacity_bytes: int | None = None
        self.sync_delay_ms = (0, 10)
        self._written_later: dict[str, bytes] = {}
        self.observer: Callable[[str], None] | None = None
        self._schedule = schedule
        self._faults: list[Fault] = []
        self._crash_countdown = 0
        self._crashing = False
        self._doomed: list[Inode] = []
        self._locks: set[str] = set()
        self._memory: dict[str, str] = {}  # of the machine, not of the disk
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
        # What a failed sync left behind is forgiven to the next process: no log can defend itself against a page cache
        # that shows bytes which it has given up writing.
        for inode in self._doomed:
            for change in inode.pending:
                change.doomed = False
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
        except OSError:
            for change in inode.pending:
                change.doomed = True
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
        del old_directory.entries[old_name]
        new_directory.entries[new_name] = node
        self.journal.append(EntryChange(node, (old_directory, old_name), (new_directory, new_name)))
        self._say(f"rename {old} {new}")
        self._move_open_files(old, new)

    def remove(self, path: str) -> None:
        node = self._find(path)
        if node is None:
            return
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._unlink(path)

    def remove_tree(self, path: str) -> None:
        node = self._find(path)
        if isinstance(node, Directory):
            for name in sorted(node.entries):
                self.remove_tree(f"{path.rstrip('/')}/{name}")
        if node is not None:
            self._unlink(path)

    def read_file(self, path: str) -> bytes:
        inode = self.inode_at(path)
        self.check_fault("read", path)
        return bytes(inode.current)

    def write_file(self, path: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        self._written_later.pop(path, None)
        self._replace(path, f"{path}.tmp", data, sync)
        if sync:
            self.sync_directory(path.rpartition("/")[0])

    def _replace(self, path: str, temporary: str, data: bytes, sync: bool) -> None:
        self.remove(temporary)
        file = self.open(temporary, create=True)
        file.append([data])
        if sync:
            file.sync()
        file.close()
        self.rename(temporary, path)

    def write_file_later(self, path: str, data: bytes, done: Callable[[OSError | None], None]) -> None:
        """All of it happens at the end of the delay; the folder is not synced, so a power loss may undo the rename."""
        self._written_later[path] = data

        def complete() -> None:
            failure: OSError | None = None
            try:
                if self._written_later.get(path) is data:
                    del self._written_later[path]
                    self._replace(path, f"{path}.later.tmp", data, True)
            except OSError as error:
                failure = error
            done(failure)

        self._do_later(complete)

    def read_later(self, file: File, position: int, size: int, done: Callable[[bytes | OSError], None]) -> None:
        def complete() -> None:
            try:
                outcome: bytes | OSError = file.read(position, size)
            except OSError as error:
                outcome = error
            done(outcome)

        self._do_later(complete)

    def _do_later(self, action: Callable[[], None]) -> None:
        """What a thread of the process does: it never happens if the process ends before."""
        if self._schedule is None:
            raise RuntimeError("a disk without a scheduler does nothing later")
        generation = self.generation
        self._schedule(
            self.rng.randint(*self.sync_delay_ms), lambda: action() if generation == self.generation else None
        )

    def sync_directory(self, path: str) -> None:
        directory = self._directory_at(path)
        if self._begin_change("sync_directory", path):
            self._crash_now()
        self.check_fault("sync_directory", path)
        self.journal = self._apply_with_dependencies([change.touches(directory) for change in self.journal])
        self._say(f"sync_directory {path}")

    def sync_later(self, file: File, done: Callable[[OSError | None], None]) -> None:
        if not isinstance(file, SimFile):
            raise TypeError("not a file of this disk")
        number = self.last_number

        def complete() -> None:
            failure: OSError | None = None
            try:
                self.sync_inode(file.inode, file.path, number)
            except OSError as error:
                failure = error
            done(failure)

        self._do_later(complete)

    def free_bytes(self, path: str) -> int:
        if self.capacity_bytes is None:
            return 1 << 40
        return self.capacity_bytes - self.used_bytes()

    def total_bytes(self, path: str) -> int:
        return 1 << 41 if self.capacity_bytes is None else self.capacity_bytes

    def remember(self, directory: str, text: str) -> None:
        self.check_fault("remember", directory)
        self._memory[directory] = text

    def recall(self, directory: str) -> str:
        return self._memory.get(directory, "")

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
            self.remove(f"{path.rstrip('/')}/.lock")

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
