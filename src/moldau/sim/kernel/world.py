"""The simulated world: one clock, one queue of events, one seed, and everything that happens written down.

Nothing in the world happens but by an event of its queue, and every choice comes from its seeded generator: the same
seed gives the same trace. Hosts (`host.py`) run nodes, links (`network.py`) join clients to them, and whoever plays
clients or faults schedules events of its own.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.sim.kernel.host import Host

START_MS = 1_700_000_000_000


class Violation(AssertionError):
    """Something happened that must never happen. The message is the checker's sentence and what it saw."""


class Event:
    __slots__ = ("action", "cancelled")

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.cancelled = False


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now_ms = START_MS
        self.trace: list[str] = []
        self.echo: Callable[[str], None] | None = None
        self.hosts: dict[int, Host] = {}
        self.events_run = 0
        self._queue: list[tuple[int, int, Event]] = []
        self._number = 0

    def note(self, line: str) -> None:
        """Writes one line into the trace."""
        text = f"{self.now_ms - START_MS:>8} {line}"
        self.trace.append(text)
        if self.echo is not None:
            self.echo(text)

    def schedule(self, delay_ms: int, action: Callable[[], None]) -> Event:
        event = Event(action)
        self._number += 1
        heapq.heappush(self._queue, (self.now_ms + max(0, delay_ms), self._number, event))
        return event

    def derived_rng(self, name: str) -> random.Random:
        """A generator of its own for one part of the world, so that one part's choices do not shift another's."""
        return random.Random(f"{self.seed}/{name}")

    def step(self) -> bool:
        """Runs the next event; False when there is none."""
        while self._queue:
            time_ms, _, event = heapq.heappop(self._queue)
            if event.cancelled:
                continue
            self.now_ms = max(self.now_ms, time_ms)
            self.events_run += 1
            event.action()
            return True
        return False

    def _is_due(self, deadline_ms: int) -> bool:
        """Whether an event that was not called off comes until then."""
        while self._queue and self._queue[0][2].cancelled:
            heapq.heappop(self._queue)
        return bool(self._queue) and self._queue[0][0] <= deadline_ms

    def run_for(self, duration_ms: int) -> None:
        """Runs every event of the next milliseconds."""
        deadline_ms = self.now_ms + duration_ms
        while self._is_due(deadline_ms):
            self.step()
        self.now_ms = max(self.now_ms, deadline_ms)

    def run_until(self, condition: Callable[[], bool], timeout_ms: int) -> bool:
        """Runs events until the condition holds; False when it did not within the (simulated) time."""
        deadline_ms = self.now_ms + timeout_ms
        while not condition():
            if not self._is_due(deadline_ms):
                self.now_ms = max(self.now_ms, deadline_ms)
                return condition()
            self.step()
        return True
