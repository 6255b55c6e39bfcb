"""Acquires records of a share partition for a member, out of what was read from the log.

Batch mode hands out whole log batches: the number of records is a wish. Record mode never hands out more than that.
A record that was delivered often is delivered with fewer others, in the end alone, so that one record which nobody can
process does not use up the deliveries of its neighbours. Kafka: SharePartition.acquire.
"""

from __future__ import annotations

from moldau.node.share.record_states import ACQUIRED, AVAILABLE
from moldau.node.share.runs import NO_CHANGE, NOBODY, UNLOCKED_MS, InFlightBatch, Run
from moldau.node.share.window import Limits, Window


class AcquiredRecords:
    """Offsets that a member holds now, all delivered for the `count`-th time."""

    __slots__ = ("count", "first", "last")

    def __init__(self, first: int, last: int, count: int) -> None:
        self.first = first
        self.last = last
        self.count = count

    def __repr__(self) -> str:
        return f"AcquiredRecords({self.first}-{self.last}, count {self.count})"


class Acquisition:
    """One fetch of one member: what it may have, and what it got."""

    def __init__(
        self, window: Window, member_id: str, limits: Limits, records_max: int, by_record: bool, now_ms: int
    ) -> None:
        self._window = window
        self._member_id = member_id
        self._records_max = records_max
        self._by_record = by_record
        self._limits = limits
        self._until_ms = now_ms + limits.lock_ms
        self._log_batches: list[tuple[int, int]] = []
        self._wanted = 0
        self._throttled = False
        self.taken = 0
        self.acquired: list[AcquiredRecords] = []

    def acquire(
        self, fetch_offset: int, log_batches: list[tuple[int, int]], batch_records: int
    ) -> list[AcquiredRecords]:
        """`log_batches` are the first and last offsets of what was read from `fetch_offset` on, whole batches;
        `batch_records` says how long a piece of new records may be."""
        window = self._window
        if not log_batches or self._records_max <= 0:
            return self.acquired
        self._log_batches = log_batches
        first, last = log_batches[0][0], log_batches[len(log_batches) - 1][1]
        if first > fetch_offset:
            window.archive_missing(fetch_offset, first - 1)
        first = max(first, window.start_offset)
        self._wanted = min(self._records_max, self._limits.locks_max - window.size)
        if self._wanted <= 0:
            if not window.batches or fetch_offset > window.end_offset:
                return self.acquired
            # The window is full, which is no reason to hold back what is in it already.
            last = min(last, window.end_offset)
            self._wanted = min(self._records_max, window.end_offset - fetch_offset + 1)
        position = first
        for batch in window.batches_within(first, last):
            self._take_gaps(position, min(batch.first - 1, last), batch_records)
            if self._is_over():
                break
            self._take_again(batch, first, last)
            position = batch.last + 1
        if not self._is_over() and position <= last:
            self._take_gaps(position, min(last, window.end_offset) if window.batches else position - 1, batch_records)
            beyond = max(position, window.end_offset + 1) if window.batches else position
            if not self._is_over() and beyond <= last:
                self._take_new(beyond, last, batch_records)
        return self.acquired

    def _is_over(self) -> bool:
        return self._throttled or self.taken >= self._wanted

    def _take_gaps(self, first: int, last: int, batch_records: int) -> None:
        """Of the offsets between batches only those that the loaded state did not mention are new."""
        for gap_first, gap_last in list(self._window.gaps):
            if gap_last < first or gap_first > last or self._is_over():
                continue
            self._take_new(max(first, gap_first), min(last, gap_last), batch_records)

    # What was never delivered

    def _take_new(self, first: int, last: int, batch_records: int) -> None:
        first = self._first_in_log(first)
        if first > last:
            return
        left = self._wanted - self.taken
        if last - first + 1 > left:
            last = min(last, self._log_batch_end(first + left - 1))
        if self._by_record:
            self._take_piece(first, last, min(last, first + left - 1))
            return
        piece = first
        for base, _ in self._log_batches:
            # Between log batches only, and no sooner than a piece is full.
            if piece < base <= last and base - piece >= batch_records > 0:
                self._take_piece(piece, base - 1, base - 1)
                piece = base
        self._take_piece(piece, last, last)

    def _first_in_log(self, offset: int) -> int:
        """The first offset from there on that is in a log batch: what compaction has left out is not delivered."""
        for base, last in self._log_batches:
            if last >= offset:
                return max(offset, base)
        return self._log_batches[len(self._log_batches) - 1][1] + 1

    def _log_batch_end(self, offset: int) -> int:
        """The end of the log batch that holds the offset, or that lies before it when it is in a hole."""
        end = offset
        for base, last in self._log_batches:
            if base > offset:
                break
            end = last
        return end

    def _take_piece(self, first: int, last: int, acquired_to: int) -> None:
        """A new batch in the window. What the member cannot have of it is there for the next one."""
        window = self._window
        window.fill_gaps(first, last)
        run = Run(first, acquired_to, ACQUIRED, 1, self._member_id, self._until_ms)
        batch = window.add(run)
        window.lock(run, self._until_ms)
        if acquired_to < last:
            rest = Run(acquired_to + 1, last, AVAILABLE, 0, NOBODY, UNLOCKED_MS)
            batch.runs.append(rest)
            batch.last = last
            batch.entered = batch.size
            window.end_offset = max(window.end_offset, last)
            window.count_in(AVAILABLE, rest.size)
        self.taken += run.size
        self.acquired.append(AcquiredRecords(first, acquired_to, 1))

    # What is delivered again

    def _take_again(self, batch: InFlightBatch, first: int, last: int) -> None:
        low, high = max(batch.first, first), min(batch.last, last)
        highest = self._highest_count(batch, low, high)
        if highest < 0:
            return
        if highest >= self._throttle_count():
            if self.taken > 0:
                self._throttled = True
                return
            self._take_some(batch, low, high, self._records_when_throttled(batch, highest))
            self._throttled = True
            return
        left = self._wanted - self.taken
        if batch.is_loaded and not self._by_record:
            # Whole log batches, as if they had come one by one.
            high = min(high, self._log_batch_end(self._first_available(batch, low) + left - 1))
        self._take_some(batch, low, high, left if self._by_record else batch.size)

    def _first_available(self, batch: InFlightBatch, low: int) -> int:
        for run in batch.runs:
            if run.state == AVAILABLE and run.change == NO_CHANGE and run.last >= low:
                return max(run.first, low)
        return low

    def _highest_count(self, batch: InFlightBatch, low: int, high: int) -> int:
        highest = -1
        for run in batch.runs:
            if run.state == AVAILABLE and run.change == NO_CHANGE and run.last >= low and run.first <= high:
                highest = max(highest, run.count)
        return highest

    def _throttle_count(self) -> int:
        """From how many deliveries on a record is held apart."""
        return max(2, (self._limits.delivery_count_max + 1) // 2)

    def _records_when_throttled(self, batch: InFlightBatch, count: int) -> int:
        limit = self._limits.delivery_count_max
        if limit > 2 and count >= limit - 1:
            return 1  # the last attempt
        shift = count - self._throttle_count() + 1
        size = max(1, batch.entered >> shift)
        return min(size, self._wanted) if self._by_record else size

    def _take_some(self, batch: InFlightBatch, low: int, high: int, records_max: int) -> None:
        left = records_max
        entry: AcquiredRecords | None = None
        for run in list(batch.runs):
            if run.last < low or run.first > high or run.state != AVAILABLE or run.change != NO_CHANGE:
                continue
            if left <= 0:
                break
            begin = max(run.first, low)
            for part in batch.runs_within(begin, min(run.last, high, begin + left - 1)):
                part.count += 1
                part.owner = self._member_id
                self._window.change_state(part, ACQUIRED)
                self._window.lock(part, self._until_ms)
                left -= part.size
                self.taken += part.size
                if entry is not None and entry.count == part.count and entry.last + 1 == part.first:
                    entry.last = part.last
                else:
                    entry = AcquiredRecords(part.first, part.last, part.count)
                    self.acquired.append(entry)
        batch.join_runs()
