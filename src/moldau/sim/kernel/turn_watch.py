"""Watches what one turn of a simulated process asks of its disk: while a node serves, no turn waits for the medium.

Time alone does not show it: most simulated disks are fast, and a read of a few bytes costs nothing here. So each call
that would wait is an offence by itself, whatever it costs, and what a turn reads is counted. A start and a stop may
wait; so may a thread, and whoever reads with `Disk.refuses_cold` does not wait by definition.

What was on the disk before the process began may be cold. A turn reads little of that without asking: the header of a
segment's first batch, the last entry of an index, what lies behind the last entry after a cut. The log of the metadata
is read in the turn as well: what is applied or fetched was written a moment ago, as a rule.
"""

from __future__ import annotations

import sys

from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.sim.kernel.world import Violation

COLD_BYTES_MAX = 8192
"""Of one read without asking: one look at a log."""
COLD_INDEX_BYTES_MAX = 4096
"""The same of an index: a page."""
READS_MAX = 150
"""Of one turn, without asking: a retention run looks at some dozens of segments in one."""
FRAMES_MAX = 5


class TurnWatch:
    """Of one machine. `begin` and `end` enclose each turn of its process."""

    def __init__(self) -> None:
        self.is_serving = False
        self.reads = 0
        self.reads_max = 0
        """The most that a turn had so far, for whoever wants to know how far the limit is."""
        self._depth = 0
        self._is_rebuilding = False
        self._offence = ""

    def begin(self, *, is_serving: bool) -> None:
        self._depth += 1
        if self._depth == 1:
            self.is_serving = is_serving
            self.reads = 0
            self._is_rebuilding = False
            self._offence = ""

    def end(self) -> None:
        """Raises Violation when something waited for the medium; not before, since code under test may handle it."""
        self._depth -= 1
        if self._depth > 0:
            return
        self.is_serving = False
        self.reads_max = max(self.reads_max, self.reads)
        if self._offence:
            offence, self._offence = self._offence, ""
            raise Violation(offence)

    def on_wait(self, call: str) -> None:
        if self.is_serving:
            self._accuse(f"while a node serves no turn waits for the medium: {call}")

    def on_rebuild(self) -> None:
        """An index is damaged and built anew, in one turn, as ADR 13 has it."""
        self._is_rebuilding = True

    def on_read(self, path: str, size: int, *, may_be_cold: bool) -> None:
        """Somebody reads without asking whether that would wait."""
        if not self.is_serving or METADATA_TOPIC in path:
            return
        self.reads += 1
        if self._is_rebuilding:
            return
        if may_be_cold and size > (COLD_INDEX_BYTES_MAX if path.endswith("index") else COLD_BYTES_MAX):
            self._accuse(f"while a node serves no turn reads what may be cold: {size} bytes of {path}")
        if self.reads > READS_MAX:
            self._accuse(f"a turn of a node that serves does a bounded amount of work: {self.reads} reads")

    def _accuse(self, sentence: str) -> None:
        if not self._offence:
            self._offence = f"{sentence} ({callers()})"


def callers() -> str:
    """Who asked for it, the innermost first, as far as that is not compiled."""
    frame = sys._getframe(1)
    found: list[str] = []
    while frame is not None and len(found) < FRAMES_MAX:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("moldau.") and not module.startswith("moldau.sim."):
            found.append(f"{module.removeprefix('moldau.')}.{frame.f_code.co_name}")
        if frame.f_back is None:
            break
        frame = frame.f_back
    return " < ".join(found) or "compiled code"
