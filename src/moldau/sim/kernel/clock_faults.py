"""What befalls the clocks of simulated machines: wrong for one reading, set forward or back, too fast, standing still.

Whatever they say, nobody's session may end for it, and nothing may be deleted that is not old. A process that starts
while the clock is wrong cannot know: here clocks are right when a process starts.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.protocol.integers import LONG_MAX
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.world import World

DAY_MS = 86_400_000
# Back only by less than anything is kept: what was stamped so would be old for whoever starts with a right clock.
STEPS_MS = (500, 5_000, 61_000, 3_600_000, 10 * DAY_MS, 400 * DAY_MS, -500, -61_000, -3_600_000)
PAUSES_MS = (100, 500, 2000, 5000)
AGES = {
    "log.message.timestamp.after.max.ms": str(LONG_MAX),  # whatever the broker's clock says, records are taken
    "offsets.retention.check.interval.ms": "1000",
    "producer.id.expiration.check.interval.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}
"""Settings of worlds whose clocks go wrong: what goes by its age is looked for often."""
SPEEDS_PPM = (0, 500_000, 950_000, 1_100_000, 3_000_000, 50_000_000)


class ClockFaults:
    def __init__(self, world: World, hosts: Callable[[], list[Host]]) -> None:
        self.world = world
        self.rng = world.derived_rng("clocks")
        self.over = False
        self.counts: dict[str, int] = {}
        self._hosts = hosts
        self._pace_ms = self.rng.choice((200, 600, 2000))
        # Each part of a machine is a little off.
        for host in hosts():
            host.clock.speed_ppm = 1_000_000 + self.rng.randint(-300, 300)
            host.clock.skew_ms = self.rng.choice((0, 0, self.rng.randint(-3000, 3000)))
        self._kinds: list[tuple[str, Callable[[Host], None]]] = [
            ("one wrong reading", self._glitch),
            ("clock set", self._step),
            ("clock too fast or too slow", self._change_speed),
            ("clock set right", self._set_right),
        ]

    def add_pauses(self) -> None:
        self._kinds.append(("stop", self._pause))

    def start(self) -> None:
        self.world.schedule(self.rng.randint(1, 2 * self._pace_ms), self._strike)

    def end(self) -> None:
        """Clocks stay as they are: they must not matter."""
        self.over = True

    def _strike(self) -> None:
        if self.over:
            return
        self.world.schedule(self.rng.randint(self._pace_ms // 4, 2 * self._pace_ms), self._strike)
        kind, action = self.rng.choice(self._kinds)
        running = [host for host in self._hosts() if host.running and not host.paused]
        if running:
            host = self.rng.choice(running)
            action(host)
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.world.note(f"{kind} at {host.host_id}: off by {host.clock.wall_ms() - self.world.now_ms} ms")

    def _some_ms(self) -> int:
        return self.rng.choice(STEPS_MS)

    def _glitch(self, host: Host) -> None:
        """The clock is read once while it is wrong, and the process goes on with what it read."""
        step_ms = self._some_ms()
        host.clock.step(step_ms)
        host.poll_now()
        host.clock.step(-step_ms)

    def _step(self, host: Host) -> None:
        host.clock.step(self._some_ms())
        host.poll_now()

    def _change_speed(self, host: Host) -> None:
        host.clock.run_at(self.rng.choice(SPEEDS_PPM))

    def _set_right(self, host: Host) -> None:
        host.clock.set_right()

    def _pause(self, host: Host) -> None:
        host.pause()
        self.world.schedule(self.rng.choice(PAUSES_MS), host.resume)
