"""Records in flight, in as few objects as possible: a batch is what was acquired at once, a run what is alike in it.

A batch begins as one run. It is split where records of it differ, and runs that have become alike are joined again.
"""

from __future__ import annotations

from typing import Final

from moldau.node.share.record_states import ACQUIRED, ARCHIVING, SUCCESSORS, UNKNOWN_CAUSE, is_final

NOBODY: Final = ""
NO_CHANGE: Final = 0
UNLOCKED_MS: Final = -1
UNSTORED: Final = -1
"""Instead of the number of a change: records that are ARCHIVING, which is not known to be stored."""


class Run:
    """Neighbouring offsets of one batch with one state, delivery count, owner and lock.

    `change` is the number of a change that is being written: until that is over the records can be neither acquired nor
    acknowledged, and they become `next_state` only if it goes well. `cause` says why they are, or become, ARCHIVING.
    """

    __slots__ = ("cause", "change", "count", "first", "last", "locked_until_ms", "next_state", "owner", "state")

    def __init__(self, first: int, last: int, state: int, count: int, owner: str, locked_until_ms: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.owner = owner
        self.locked_until_ms = locked_until_ms
        self.change = NO_CHANGE
        self.next_state = state
        self.cause = UNKNOWN_CAUSE

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def become(self, state: int) -> None:
        """The one place where records change their state."""
        assert state in SUCCESSORS[self.state], f"{self.first}-{self.last}: state {self.state} does not become {state}"
        self.state = self.next_state = state
        self.change = NO_CHANGE
        if state != ACQUIRED:
            self.owner = NOBODY
            self.locked_until_ms = UNLOCKED_MS

    def is_like(self, other: Run) -> bool:
        """Whether the two may be one. How often a record was delivered that is done with matters to nobody here."""
        if self.state != other.state or self.change != other.change or self.next_state != other.next_state:
            return False
        if is_final(self.state):
            return True
        if ARCHIVING in (self.state, self.next_state) and self.cause != other.cause:
            return False
        return self.count == other.count and self.owner == other.owner and self.locked_until_ms == other.locked_until_ms

    def split_off(self, offset: int) -> Run:
        """Cuts it in two; returns the part that begins at `offset`."""
        rest = Run(offset, self.last, self.state, self.count, self.owner, self.locked_until_ms)
        rest.change = self.change
        rest.next_state = self.next_state
        rest.cause = self.cause
        self.last = offset - 1
        return rest


class InFlightBatch:
    """What entered the window at once; its runs follow each other without a hole.

    `entered` is how many records that were: of some of them the window may know nothing any more. `is_loaded` if it is
    from a stored state, where neighbours that were alike have become one, however many.
    """

    __slots__ = ("entered", "first", "is_loaded", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]
        self.entered = run.size
        self.is_loaded = False

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def runs_within(self, first: int, last: int) -> list[Run]:
        """The runs between the two offsets; those that reach beyond are split, so that each lies inside."""
        self._split_at(first)
        self._split_at(last + 1)
        return [run for run in self.runs if run.first >= first and run.last <= last]

    def _split_at(self, offset: int) -> None:
        if offset <= self.first or offset > self.last:
            return
        runs = self.runs
        for index in range(len(runs)):
            run = runs[index]
            if run.first == offset:
                return
            if run.first < offset <= run.last:
                runs.insert(index + 1, run.split_off(offset))
                return

    def join_runs(self) -> None:
        """Makes one of neighbours that are alike."""
        runs = self.runs
        if len(runs) < 2:
            return
        joined = [runs[0]]
        for index in range(1, len(runs)):
            run = runs[index]
            before = joined[len(joined) - 1]
            if run.is_like(before):
                before.last = run.last
            else:
                joined.append(run)
        self.runs = joined

    def drop_before(self, offset: int) -> None:
        """The batch begins at `offset` from now on, which lies inside of it."""
        self._split_at(offset)
        self.runs = [run for run in self.runs if run.first >= offset]
        self.first = offset
