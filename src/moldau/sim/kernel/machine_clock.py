"""The clocks of one simulated machine: a monotonic one, a little fast or slow, and a wall clock that says anything.

Only the world knows what time it really is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.sim.kernel.world import World

MILLION = 1_000_000


class MachineClock:
    def __init__(self, world: World) -> None:
        self._world = world
        self._started_ms = world.now_ms
        self.speed_ppm = MILLION
        """Of the monotonic clock: how far it goes in a million milliseconds."""
        self.skew_ms = 0
        """How far the wall clock is off when it is right: no two are the same."""
        self.wall_offset_ms = 0
        self._wall_speed_ppm = MILLION
        self._since_ms = world.now_ms

    def monotonic_ms(self) -> int:
        return (self._world.now_ms - self._started_ms) * self.speed_ppm // MILLION

    def wall_ms(self) -> int:
        drift_ms = (self._world.now_ms - self._since_ms) * (self._wall_speed_ppm - MILLION) // MILLION
        return self._world.now_ms + self.skew_ms + self.wall_offset_ms + drift_ms

    def step(self, step_ms: int) -> None:
        """Somebody sets the wall clock."""
        self.wall_offset_ms += step_ms

    def run_at(self, wall_speed_ppm: int) -> None:
        """The wall clock runs at this speed from now on; at 0 it stands still."""
        self.wall_offset_ms = self.wall_ms() - self.skew_ms - self._world.now_ms
        self._since_ms = self._world.now_ms
        self._wall_speed_ppm = wall_speed_ppm

    def set_right(self) -> None:
        self.wall_offset_ms = 0
        self._since_ms = self._world.now_ms
        self._wall_speed_ppm = MILLION
