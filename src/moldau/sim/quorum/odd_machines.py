"""Machines of a simulated quorum that are not alike: clocks that run fast or slow and show another time, and processes
that are stopped for a while and go on. None of that may harm what the quorum promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.sim.kernel.world import World
from moldau.sim.quorum.replica import Replica

SKEWS_MS = (0, 700, -700, 3_600_000, -3_600_000)
SPEEDS_PPM = (1_000_000, 999_700, 900_000, 1_100_000)


class OddMachines:
    """`go_on` runs what came to a replica while it was stopped."""

    def __init__(
        self, world: World, replicas: Iterable[Replica], patience_ms: int, go_on: Callable[[Replica], None]
    ) -> None:
        self.world = world
        self.rng = world.derived_rng("odd machines")
        self.pauses = 0
        self.over = False
        self._replicas = list(replicas)
        self._pauses_ms = (patience_ms // 2, 2 * patience_ms, 10 * patience_ms)
        self._pace_ms = self.rng.choice((300, 1000, 4000))
        self._go_on = go_on
        for replica in self._replicas:
            replica.clock.skew_ms = self.rng.choice(SKEWS_MS)
            replica.clock.speed_ppm = self.rng.choice(SPEEDS_PPM)

    def leave_out(self) -> None:
        self.over = True
        for replica in self._replicas:
            replica.clock.skew_ms, replica.clock.speed_ppm = 0, 1_000_000

    def start(self) -> None:
        if not self.over:
            self.world.schedule(self.rng.randint(1, self._pace_ms), self._strike)

    def end(self) -> None:
        """Clocks stay as they are: they must not matter."""
        self.over = True
        for replica in self._replicas:
            self._resume(replica, replica.lives)

    def _strike(self) -> None:
        if self.over:
            return
        self.world.schedule(self.rng.randint(self._pace_ms // 4, 2 * self._pace_ms), self._strike)
        replica, pause_ms = self.rng.choice(self._replicas), self.rng.choice(self._pauses_ms)
        if replica.raft is not None and not replica.is_paused:
            self.pauses += 1
            self.world.note(f"{replica.key.id} is stopped for {pause_ms} ms")
            replica.is_paused = True
            life = replica.lives
            self.world.schedule(pause_ms, lambda: self._resume(replica, life))

    def _resume(self, replica: Replica, life: int) -> None:
        if replica.is_paused and replica.lives == life:
            self.world.note(f"{replica.key.id} goes on")
            replica.is_paused = False
            self._go_on(replica)
