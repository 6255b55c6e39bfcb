"""Watches the turns of the event loop: how many there are, how long they take, and what a long one did.

A turn is one callback of the loop. While it runs nothing else does: no request, no heartbeat, no timer of the quorum.
So each one that takes longer than 50 ms is counted under what it did and told in the log, and with it how much of the
time this thread was on the CPU: the rest it waited, for a disk, another thread, or a machine that did not run it.

Every callback calls `begin` first and `end` last, and if `end` says so, `tell`. That is two readings of a clock; the
CPU time is read after turns that are not short and now and then after others, so it is an estimate: what the short
turns since the last reading took is taken off.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from moldau.net.log_limit import LogLimit
from moldau.protocol.api_keys import BY_KEY

LONG_TURN_S: Final = 0.05
FAIR_TURN_S: Final = 0.005
"""A turn that took so long leaves what it can to a later one."""
SHORT_TURN_S: Final = 0.001
"""After one that is longer the CPU time is read; after shorter ones only after so many."""
TURNS_PER_CPU_READING: Final = 64

REQUEST: Final = "request"
SEND: Final = "send"
ACCEPT: Final = "accept"
RESPONSE: Final = "response"
TIMERS: Final = "timers"
DISK: Final = "disk"
COMPACTION: Final = "compaction"
CLOSE: Final = "close"

SEVERAL: Final = "several"

log = logging.getLogger("moldau.loop")
log.addFilter(LogLimit())


class LongTurns:
    """Those that did the same kind of thing."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.waited_seconds = 0.0


class Turns:
    """Those of one event loop. `frames` are the requests that the turn handles; it ends with the turn."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, cpu_clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self.began_s = 0.0
        """When the turn that runs now began."""
        self._took_s = 0.0
        self._cpu_at_reading_s = cpu_clock()
        self._busy_at_reading_s = 0.0
        self._step_began_s = 0.0
        self._longest_step = ""
        self._longest_step_s = 0.0
        self.frames: list[tuple[bytes, int, int]] | None = None
        self.turns_total = 0
        self.busy_seconds = 0.0
        self.longest_seconds = 0.0
        # By kind, and by what of that kind.
        self.long_turns: dict[tuple[str, str], LongTurns] = {}

    def begin(self) -> None:
        self.began_s = self._clock()

    def is_longer_than(self, seconds: float) -> bool:
        return self._clock() - self.began_s >= seconds

    def is_used_up(self) -> bool:
        """Whether it is the others' turn."""
        return self._clock() - self.began_s >= FAIR_TURN_S

    def end(self) -> bool:
        """Whether the turn was a long one."""
        took_s = self._clock() - self.began_s
        self.turns_total += 1
        self.busy_seconds += took_s
        if took_s >= LONG_TURN_S:
            self._took_s = took_s
            return True
        self.frames = None
        if took_s > self.longest_seconds:
            self.longest_seconds = took_s
        if took_s >= SHORT_TURN_S or self.turns_total % TURNS_PER_CPU_READING == 0:
            self._cpu_at_reading_s = self._cpu_clock()
            self._busy_at_reading_s = self.busy_seconds
        return False

    def tell(self, kind: str, what: str, text: str) -> None:
        """Counts the long turn that has just ended. `what` is one of few words, `text` goes on after "held up by"."""
        self.frames = None
        took_s = self._took_s
        cpu_s = self._cpu_clock()
        earlier_s = self.busy_seconds - took_s - self._busy_at_reading_s
        used_s = min(max(0.0, cpu_s - self._cpu_at_reading_s - earlier_s), took_s)
        self._cpu_at_reading_s = cpu_s
        self._busy_at_reading_s = self.busy_seconds
        self.longest_seconds = max(self.longest_seconds, took_s)
        known = self.long_turns.get((kind, what))
        if known is None:
            known = self.long_turns[kind, what] = LongTurns()
        known.count += 1
        known.seconds += took_s
        known.waited_seconds += took_s - used_s
        log.warning(
            "the event loop was held up for %d ms by %s: about %d ms on the CPU, %d ms waiting",
            round(took_s * 1000),
            text,
            round(used_s * 1000),
            round((took_s - used_s) * 1000),
        )

    def tell_requests(self, peer: str) -> None:
        """The same for a turn that handled `frames`."""
        keys: list[int] = []
        for data, start, end in self.frames or []:
            key = int.from_bytes(data[start : start + 2], "big") if end - start >= 2 else -1
            if key not in keys:
                keys.append(key)
        names = [BY_KEY[key].name if key in BY_KEY else "a request that does not exist" for key in keys]
        if not names:
            self.tell(REQUEST, "receive", f"what was received from {peer}")
            return
        what = SEVERAL if len(names) > 1 else names[0] if keys[0] in BY_KEY else "unknown"
        self.tell(REQUEST, what, f"{', '.join(names)} from {peer}")

    def run(self, kind: str, function: Callable[[], None]) -> None:
        """A turn that is not worth more words than the name of what is called."""
        self.begin()
        function()
        if self.end():
            what = name_of(function)
            self.tell(kind, what, f"{what} ({kind})")

    # Parts of a turn

    def begin_steps(self) -> None:
        self.begin()
        self._step_began_s = self.began_s
        self._longest_step_s = 0.0
        self._longest_step = ""

    def step(self, name: str) -> None:
        """A part of the turn is over."""
        now_s = self._clock()
        took_s = now_s - self._step_began_s
        self._step_began_s = now_s
        if took_s > self._longest_step_s:
            self._longest_step_s = took_s
            self._longest_step = name

    def end_steps(self, kind: str) -> None:
        if self.end():
            what = self._longest_step or "poll"
            self.tell(kind, what, f"{what} ({kind}), {round(self._longest_step_s * 1000)} ms of it")


def name_of(function: Callable[[], None]) -> str:
    """The name of a function; of one that only passes on to another, the other's."""
    for _ in range(4):
        wrapped = wrapped_function(function)
        if wrapped is None:
            break
        function = wrapped
    name: str = getattr(function, "__qualname__", "") or type(function).__qualname__
    return name.replace(".<locals>", "")


def wrapped_function(function: Callable[[], None]) -> Callable[[], None] | None:
    """What a lambda that closes over one function calls, most likely."""
    if getattr(function, "__name__", "") != "<lambda>":
        return None
    inner = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    called: list[Callable[[], None]] = [one for one in inner if callable(one)]
    return called[0] if called else None
