"""State batches of a share partition: how an older state and what a leader writes become one.

Where ranges overlap the larger delivery count wins, then the larger state: a leader's writes may arrive again, and a
count never goes back. Neighbours that are alike become one; offsets of which nobody said anything stay unmentioned.
"""

from __future__ import annotations

import heapq


class StateBatch:
    """Offsets from `first` to `last` with one state and delivery count."""

    __slots__ = ("count", "first", "last", "state")

    def __init__(self, first: int, last: int, state: int, count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count

    def values(self) -> tuple[int, int, int, int]:
        return self.first, self.last, self.state, self.count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateBatch) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash(self.values())

    def __repr__(self) -> str:
        return f"StateBatch{self.values()}"


def combine(known: list[StateBatch], written: list[StateBatch], start_offset: int) -> list[StateBatch]:
    """Both of them, without what lies below `start_offset`; in order, and nothing twice. A sweep over the borders, so
    that thousands of ranges that overlap take no longer than sorting them."""
    rows = [batch for batch in (*known, *written) if batch.last >= start_offset and batch.last >= batch.first]
    rows.sort(key=first_of)
    borders = sorted({max(row.first, start_offset) for row in rows} | {row.last + 1 for row in rows})
    combined: list[StateBatch] = []
    open_rows: list[tuple[int, int, int]] = []  # (-count, -state, last) of those that have begun: the first one wins
    at = 0
    for number in range(len(borders) - 1):
        first, end = borders[number], borders[number + 1]
        while at < len(rows) and rows[at].first <= first:
            heapq.heappush(open_rows, (-rows[at].count, -rows[at].state, rows[at].last))
            at += 1
        while open_rows and open_rows[0][2] < first:
            heapq.heappop(open_rows)
        if open_rows:
            append_joined(combined, StateBatch(first, end - 1, -open_rows[0][1], -open_rows[0][0]))
    return combined


def first_of(batch: StateBatch) -> int:
    return batch.first


def append_joined(batches: list[StateBatch], batch: StateBatch) -> None:
    if batches:
        before = batches[-1]
        if before.last + 1 == batch.first and before.state == batch.state and before.count == batch.count:
            before.last = batch.last
            return
    batches.append(batch)
