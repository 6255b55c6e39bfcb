"""The records of a share partition that are in flight: between its start offset and its end offset.

What lies below the start offset is done with. What lies above the end offset was never delivered. In between are
batches, holes that never were records (compaction), and gaps: offsets of a state that was loaded and says nothing of
them, because they were delivered and not acknowledged when the leader before this one ended. Gaps are delivered again.

Nothing here reads a log or a clock or writes anything; `acquisition.py` and `acknowledgement.py` are the ways to change
it. Kafka: SharePartition.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right

from moldau.node.share.record_states import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, is_final
from moldau.node.share.runs import NO_CHANGE, NOBODY, UNLOCKED_MS, InFlightBatch, Run
from moldau.records.clocks import NEVER_MS


class DamagedState(Exception):
    """The state that was loaded contradicts itself."""


class Limits:
    """What the configuration of the group says now."""

    __slots__ = ("delivery_count_max", "lock_ms", "locks_max", "may_renew", "with_dead_letters")

    def __init__(
        self,
        lock_ms: int = 30_000,
        delivery_count_max: int = 5,
        locks_max: int = 2000,
        may_renew: bool = True,
        with_dead_letters: bool = False,
    ) -> None:
        self.lock_ms = lock_ms
        self.delivery_count_max = delivery_count_max
        self.locks_max = locks_max
        self.may_renew = may_renew
        self.with_dead_letters = with_dead_letters


class StateBatch:
    """Offsets with one state and count, as the share coordinator stores them."""

    __slots__ = ("count", "first", "last", "state")

    def __init__(self, first: int, last: int, state: int, count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateBatch) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int, int, int]:
        return self.first, self.last, self.state, self.count

    def __repr__(self) -> str:
        return f"StateBatch({self.first}-{self.last}, state {self.state}, count {self.count})"


class Window:
    """See the module. `end_offset` is the last offset in flight; of an empty window the next one to deliver."""

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.batches: list[InFlightBatch] = []
        self.firsts: list[int] = []
        self.gaps: list[tuple[int, int]] = []
        # How many records are in which state; of the final ones those inside of the window.
        self.available = 0
        self.acquired = 0
        self.archiving = 0
        self.complete = 0
        self.changes = NO_CHANGE
        """The number of the last change that was begun."""
        # (until when, first, last) of locks; those that were given up before stay in it and mean nothing.
        self._locks: list[tuple[int, int, int]] = []

    @property
    def size(self) -> int:
        """All offsets from the start to the end count, also those that are done with."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def next_fetch_offset(self) -> int:
        """Where to read next: what is available again, or a gap, else what comes behind the window."""
        if not self.batches:
            return self.end_offset
        gap = self.gaps[0][0] if self.gaps else -1
        if self.available > 0:
            for batch in self.batches:
                if 0 <= gap < batch.first:
                    return gap
                for run in batch.runs:
                    if run.state == AVAILABLE and run.change == NO_CHANGE:
                        return max(run.first, self.start_offset)
        return gap if gap >= 0 else self.end_offset + 1

    def complete_count(self) -> int:
        """Records in the window that are done with, and those that will be if what is being written goes well."""
        count = self.complete
        for batch in self.batches:
            for run in batch.runs:
                if run.change != NO_CHANGE and is_final(run.next_state):
                    count += run.size
        return count

    # Loading

    def load(self, batches: list[StateBatch]) -> None:
        """Takes up a stored state that begins at the start offset; raises DamagedState."""
        expected = self.start_offset
        for stored in sorted(batches, key=first_of):
            if stored.first < expected or stored.last < stored.first:
                raise DamagedState(f"{stored} lies below {expected}, or ends before it begins")
            if stored.state not in (AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED):
                raise DamagedState(f"{stored} has a state that is not stored")
            if stored.first > expected:
                self.gaps.append((expected, stored.first - 1))
            batch = self.add(Run(stored.first, stored.last, stored.state, stored.count, NOBODY, UNLOCKED_MS))
            batch.is_loaded = True
            expected = stored.last + 1
        self.move_start()

    # Batches

    def add(self, run: Run) -> InFlightBatch:
        """A new batch of one run, which lies where no other batch is."""
        batch = InFlightBatch(run)
        at = bisect_right(self.firsts, run.first)
        self.firsts.insert(at, run.first)
        self.batches.insert(at, batch)
        if len(self.batches) == 1 or run.last > self.end_offset:
            self.end_offset = run.last
        self.count_in(run.state, run.size)
        return batch

    def batches_within(self, first: int, last: int) -> list[InFlightBatch]:
        """Those that hold something between the two offsets, in order."""
        at = max(0, bisect_right(self.firsts, first) - 1)
        found = []
        for index in range(at, len(self.batches)):
            batch = self.batches[index]
            if batch.first > last:
                break
            if batch.last >= first:
                found.append(batch)
        return found

    def count_in(self, state: int, size: int) -> None:
        if state == AVAILABLE:
            self.available += size
        elif state == ACQUIRED:
            self.acquired += size
        elif state == ARCHIVING:
            self.archiving += size
        elif is_final(state):
            self.complete += size

    def change_state(self, run: Run, state: int) -> None:
        """Of a run that is in the window."""
        self.count_in(run.state, -run.size)
        run.become(state)
        self.count_in(state, run.size)

    def lock(self, run: Run, until_ms: int) -> None:
        run.locked_until_ms = until_ms
        heapq.heappush(self._locks, (until_ms, run.first, run.last))

    def next_lock_ms(self) -> int:
        """When the next lock may run out."""
        return self._locks[0][0] if self._locks else NEVER_MS

    def take_due_locks(self, now_ms: int) -> list[Run]:
        """Acquired records whose time is over, unless a change of them is being written."""
        due: list[Run] = []
        while self._locks and self._locks[0][0] <= now_ms:
            _, first, last = heapq.heappop(self._locks)
            for batch in self.batches_within(first, last):
                for run in batch.runs:
                    if (
                        run.first <= last
                        and run.last >= first
                        and run.state == ACQUIRED
                        and run.change == NO_CHANGE
                        and run.locked_until_ms <= now_ms
                        and run not in due
                    ):
                        due.append(run)
        return due

    # The start offset

    def move_start(self) -> bool:
        """Passes what is done with at the beginning of the window; never a record that is not, never a gap."""
        before = self.start_offset
        gap = self.gaps[0][0] if self.gaps else -1
        done = 0
        for batch in self.batches:
            if 0 <= gap < batch.first:
                break
            end = _final_prefix_end(batch)
            if end > batch.last:
                done += 1
                self.complete -= batch.size
                continue
            if end > batch.first:
                self.complete -= end - batch.first
                batch.drop_before(end)
            break
        if done > 0:
            del self.batches[:done]
        if not self.batches:
            self.firsts = []
            if done > 0:
                self.start_offset = self.end_offset = self.end_offset + 1
            return self.start_offset > before
        self.firsts = [batch.first for batch in self.batches]
        first = self.batches[0].first
        self.start_offset = max(before, first if gap < 0 else min(gap, first))
        return self.start_offset > before

    def start_at_least(self, offset: int) -> None:
        """The log begins at `offset` now: what lies before it is gone, whoever holds it. Whoever waits for its dead
        letter still gets it, and is passed afterwards."""
        if offset <= self.start_offset:
            return
        if self._awaits_letters_before(offset):
            self._archive_before(offset)
            return
        kept = []
        for batch in self.batches:
            if batch.first < offset:
                for run in batch.runs_within(batch.first, min(batch.last, offset - 1)):
                    self.count_in(run.state, -run.size)
                if batch.last < offset:
                    continue
                batch.drop_before(offset)
            kept.append(batch)
        self.batches = kept
        self.firsts = [batch.first for batch in kept]
        self.gaps = [(max(first, offset), last) for first, last in self.gaps if last >= offset]
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        if not kept:
            self.gaps = []
            self.end_offset = offset
        self.move_start()

    def _awaits_letters_before(self, offset: int) -> bool:
        for batch in self.batches:
            if batch.first >= offset:
                break
            for run in batch.runs:
                if run.first < offset and ARCHIVING in (run.state, run.next_state):
                    return True
        return False

    def _archive_before(self, offset: int) -> None:
        for batch in self.batches_within(self.start_offset, offset - 1):
            for run in batch.runs_within(batch.first, min(batch.last, offset - 1)):
                if ARCHIVING not in (run.state, run.next_state) and not is_final(run.state):
                    self.change_state(run, ARCHIVED)
            batch.join_runs()
        self.fill_gaps(self.start_offset, offset - 1)
        self.move_start()

    def archive_missing(self, first: int, last: int) -> None:
        """Offsets that the log has no more, though nothing before them is gone: compaction took them."""
        for batch in self.batches_within(first, last):
            for run in batch.runs_within(max(first, batch.first), min(last, batch.last)):
                if run.state == AVAILABLE and run.change == NO_CHANGE:
                    self.change_state(run, ARCHIVED)
            batch.join_runs()
        self.fill_gaps(first, last)
        self.move_start()

    def fill_gaps(self, first: int, last: int) -> None:
        """These offsets are in flight now, or known to hold nothing."""
        left = []
        for gap_first, gap_last in self.gaps:
            if gap_last < first or gap_first > last:
                left.append((gap_first, gap_last))
                continue
            if gap_first < first:
                left.append((gap_first, first - 1))
            if gap_last > last:
                left.append((last + 1, gap_last))
        self.gaps = left

    # For tests and invariants

    def check(self) -> None:
        """What must always hold."""
        counts = {AVAILABLE: 0, ACQUIRED: 0, ARCHIVING: 0}
        complete = 0
        expected = self.start_offset
        for batch, first in zip(self.batches, self.firsts, strict=True):
            assert batch.first == first >= expected, "batches are in order, above the start offset"
            at = batch.first
            for run in batch.runs:
                assert run.first == at <= run.last, "runs follow each other without a hole"
                assert (run.state == ACQUIRED) == (run.owner != NOBODY), "who has acquired something owns it"
                at = run.last + 1
                if run.state in counts:
                    counts[run.state] += run.size
                elif is_final(run.state):
                    complete += run.size
            assert at == batch.last + 1
            expected = batch.last + 1
        assert self.archiving == counts[ARCHIVING]
        assert self.available == counts[AVAILABLE] and self.acquired == counts[ACQUIRED] and self.complete == complete
        assert not self.batches or self.end_offset == self.batches[-1].last
        assert self.end_offset >= self.start_offset


def first_of(batch: StateBatch) -> int:
    return batch.first


def _final_prefix_end(batch: InFlightBatch) -> int:
    """Behind the last record, from the beginning of the batch on, that is done with."""
    for run in batch.runs:
        if not is_final(run.state) or run.change != NO_CHANGE:
            return run.first
    return batch.last + 1
