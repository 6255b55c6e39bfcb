"""What befalls the disks of simulated machines without breaking them: slow for a while, always, by chance, or stuck.

What a disk is asked for later comes later; a call that waits for it in the process's own turn makes the process stand
still (`kernel/disk.py`). Often only the segments are slow, as behind a device that writes a lot of them.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.sim.kernel.disk import SimDisk
from moldau.sim.kernel.world import World

STUCK_MS = 30_000
KINDS: dict[str, tuple[tuple[int, int], ...]] = {
    "slow disk": ((20, 20), (300, 300), (5000, 5000)),
    "unsteady disk": ((0, 100), (0, 1500), (200, 5000)),
    "stuck disk": ((STUCK_MS, STUCK_MS),),
}
"""How long a call takes that waits for the medium."""
LASTS_MS = (500, 3000, 8000, STUCK_MS)


class SlowDisks:
    """`disks` are those that may become slow just now, each with a name for the trace."""

    def __init__(self, world: World, disks: Callable[[], dict[str, SimDisk]]) -> None:
        self.world = world
        self.rng = world.derived_rng("slow disks")
        self.over = False
        self.counts: dict[str, int] = {}
        self.ended_ms = 0
        """When the last one was fast again."""
        self.spares_metadata: set[str] = set()
        """Disks on which what is written for the quorum is never slow."""
        self._disks = disks
        self._slow: dict[SimDisk, int] = {}
        """Those that are slow, and which of the strikes that was."""
        self._strikes = 0
        self._pace_ms = self.rng.choice((1000, 3000, 9000))

    @property
    def is_any_slow(self) -> bool:
        return bool(self._slow)

    def leave_out(self) -> None:
        """A world without them is what it was before there were any."""
        self.over = True

    def start(self) -> None:
        if not self.over:
            self.world.schedule(self.rng.randint(1, self._pace_ms), self._strike)

    def end(self) -> None:
        """Also for the calls that are stuck: they come back soon."""
        self.over = True
        for disk in list(self._slow):
            self.repair(disk)

    def repair(self, disk: SimDisk) -> None:
        if self._slow.pop(disk, None) is not None:
            self.ended_ms = self.world.now_ms
            disk.end_slowness()

    def _strike(self) -> None:
        if self.over:
            return
        self.world.schedule(self.rng.randint(self._pace_ms // 4, 2 * self._pace_ms), self._strike)
        disks = {name: disk for name, disk in self._disks().items() if disk not in self._slow}
        kind = self.rng.choice(list(KINDS))
        delay_ms, lasts_ms = self.rng.choice(KINDS[kind]), self.rng.choice(LASTS_MS)
        spared = self.rng.choice(("", METADATA_TOPIC))
        if disks:
            name = self.rng.choice(list(disks))
            spared = METADATA_TOPIC if name in self.spares_metadata else spared
            self.slow_down(name, disks[name], kind, delay_ms, lasts_ms, spared)

    def slow_down(
        self, name: str, disk: SimDisk, kind: str, delay_ms: tuple[int, int], lasts_ms: int, spared: str
    ) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self._strikes += 1
        strike = self._slow[disk] = self._strikes
        where = " but for the metadata" if spared else ""
        self.world.note(f"{kind} at {name}{where}: calls take {delay_ms[0]} to {delay_ms[1]} ms, for {lasts_ms} ms")
        disk.slow_down(delay_ms, spared)
        self.world.schedule(lasts_ms, lambda: self.repair(disk) if self._slow.get(disk) == strike else None)
