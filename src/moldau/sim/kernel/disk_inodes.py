"""Files and directories of a simulated disk: as the process sees them, as the medium has them, and between the two."""

from __future__ import annotations

import random

SECTOR_SIZES = (64, 512, 4096)


class Change:
    """One change of a file's bytes that is not durable yet; `data` None truncates the file to `position`."""

    __slots__ = ("data", "is_given_up", "number", "position")

    def __init__(self, position: int, data: bytes | None, number: int) -> None:
        self.position = position
        self.data = data
        self.number = number
        self.is_given_up = False

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

    __slots__ = ("current", "durable", "old_end", "pending", "unseen_error")

    def __init__(self) -> None:
        self.current = bytearray()
        self.durable = bytearray()
        self.old_end = 0  # what lies before that was written by an earlier process
        self.pending: list[Change] = []
        self.unseen_error = False  # the system could not write something back and has told nobody yet

    def fail_write_back(self) -> None:
        """The system has given up writing what was pending. Memory shows it all the same, until it is needed."""
        for change in self.pending:
            change.is_given_up = True
        self.unseen_error = bool(self.pending)

    def restore(self, content: bytes) -> None:
        self.current, self.durable = bytearray(content), bytearray(content)
        self.grow_old()
        self.pending = []
        self.unseen_error = False

    def grow_old(self) -> None:
        """The process that wrote it is gone."""
        self.old_end = len(self.current)

    def evict(self) -> None:
        """Memory shows what the medium has, and what will still be written there."""
        if any(change.is_given_up for change in self.pending):
            self.pending = [change for change in self.pending if not change.is_given_up]
            self.current = bytearray(self.durable)
            for change in self.pending:
                change.apply(self.current)

    def sync_until(self, number: int) -> None:
        remaining: list[Change] = []
        for change in self.pending:
            if change.number <= number and not change.is_given_up:
                change.apply(self.durable)
            else:
                remaining.append(change)
        self.pending = remaining

    def lose_power(self, rng: random.Random, *, garbage: bool) -> None:
        self.unseen_error = False
        if self.pending:
            self.durable = self._surviving(rng, garbage)
            self.pending = []
        self.current = bytearray(self.durable)

    def _surviving(self, rng: random.Random, garbage: bool) -> bytearray:
        content = bytearray(self.durable)
        choice = rng.random()
        if choice < 0.2:
            return content
        kept = [change for change in self.pending if not change.is_given_up or rng.random() < 0.5]
        if choice < 0.45:
            for change in kept:
                change.apply(content)
            return content
        if choice < 0.5:
            # The truncation of a file and the data written after it reach the platter independently.
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
