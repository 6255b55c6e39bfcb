"""Which parts of simulated files are in the machine's memory: some are cold, by the seed's choice."""

from __future__ import annotations

import random
from collections.abc import Callable

from moldau.storage.disk import ColdRead, Disk, Done, File, Reading

EVICTED_AT_ONCE_CHANCE = 0.1


class ColdMemory:
    """What a thread has read is there for the next who asks, unless memory is short."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed ^ 0xC01D)
        self.cold_chance = 0.0
        self._warm: set[tuple[object, int]] = set()

    def choose_chance(self) -> None:
        """Most machines have everything in memory; some have little, or were just started."""
        self.cold_chance = self._rng.choice((0.0, 0.0, 0.1, 0.6))

    def is_cold(self, content: object, position: int) -> bool:
        if self.cold_chance == 0.0:
            return False
        if (content, position) in self._warm:
            self._warm.discard((content, position))
            return self._rng.random() < EVICTED_AT_ONCE_CHANCE
        return self._rng.random() < self.cold_chance

    def note_read(self, content: object, position: int) -> None:
        if self.cold_chance > 0.0:
            self._warm.add((content, position))


class MemoryFile(File):
    """The part of a simulated file that knows what is in memory; the rest is in `sim/kernel/disk.py`."""

    def __init__(self, disk: Disk, memory: ColdMemory) -> None:
        self._memory_disk = disk
        self.memory = memory

    def identity(self) -> object:
        """Of the bytes, whatever the file is called."""
        raise NotImplementedError

    def content(self) -> bytearray:
        raise NotImplementedError

    def read_as_asked(self, position: int, size: int) -> bytes:
        raise NotImplementedError

    def check_cold(self, position: int, size: int) -> None:
        """Raises ColdRead where a request must not wait and nobody has brought these bytes for it."""
        size = min(size, self.size() - position)
        disk = self._memory_disk
        if not disk.refuses_cold or size <= 0 or not self.memory.is_cold(self.identity(), position):
            return
        brought = disk.find_brought(self.path, position, size)
        if brought is None:
            raise ColdRead(self, position, size)
        assert brought == self.content()[position : position + size], f"{self.path} is not what was brought"

    def read_now(self, position: int, size: int) -> bytes | bytearray | None:
        if self.memory.is_cold(self.identity(), position):
            return None
        data = self.read_as_asked(position, size)
        return data if len(data) == size else None

    def is_resident(self, position: int, size: int) -> bool:
        return not self.memory.is_cold(self.identity(), position)

    def warm_later(self, position: int, size: int, done: Done) -> Reading:
        def finished(outcome: bytes | OSError) -> None:
            if isinstance(outcome, OSError):
                if self._memory_disk.on_read_failed is not None:
                    self._memory_disk.on_read_failed(self.path, outcome)
                done(outcome)
            else:
                done(None)

        self._memory_disk.read_later(self, position, size, finished)
        return Reading()

    def read_later(self, position: int, size: int, done: Callable[[bytes | OSError], None]) -> None:
        self._memory_disk.read_later(self, position, size, done)
