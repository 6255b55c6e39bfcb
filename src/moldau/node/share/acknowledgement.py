"""Acknowledges, releases and times out records of a share partition.

A change that a member asks for is provisional until the share coordinator has stored it: `acknowledge` and `release`
begin one, `finish` makes it real or takes it back. A lock that runs out changes its records at once; that is stored
afterwards, and if it cannot be, a later leader delivers them anyway. Kafka: SharePartition.
"""

from __future__ import annotations

from moldau.node.share.record_states import (
    ACCEPT,
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DELIVERED_TOO_OFTEN,
    GAP,
    REJECT,
    REJECTED,
    RENEW,
    UNKNOWN_CAUSE,
)
from moldau.node.share.runs import NO_CHANGE, UNSTORED, InFlightBatch, Run
from moldau.node.share.window import Limits, StateBatch, Window
from moldau.protocol.errors import INVALID_RECORD_STATE, INVALID_REQUEST, KafkaError


class Acknowledgement:
    """What a member says of the offsets from `first` to `last`: one type for all of them, or one for each."""

    __slots__ = ("first", "last", "types")

    def __init__(self, first: int, last: int, types: list[int]) -> None:
        self.first = first
        self.last = last
        self.types = types


class Change:
    """One change on its way: what is to be stored. `is_empty` if there is nothing to store."""

    __slots__ = ("batches", "number", "renewed")

    def __init__(self, number: int) -> None:
        self.number = number
        self.batches: list[StateBatch] = []
        self.renewed = 0

    @property
    def is_empty(self) -> bool:
        return not self.batches


class _Planned:
    __slots__ = ("batch", "kind", "run")

    def __init__(self, batch: InFlightBatch, run: Run, kind: int) -> None:
        self.batch = batch
        self.run = run
        self.kind = kind


def check_request(acknowledgements: list[Acknowledgement], renew_allowed: bool) -> None:
    """What is wrong whatever the records are; raises INVALID_REQUEST."""
    type_max = RENEW if renew_allowed else REJECT
    before = -1
    for entry in acknowledgements:
        if entry.first > entry.last or entry.first < before:
            raise KafkaError(INVALID_REQUEST, f"The acknowledged offsets {entry.first}-{entry.last} are out of order.")
        if not entry.types or (len(entry.types) > 1 and len(entry.types) != entry.last - entry.first + 1):
            raise KafkaError(INVALID_REQUEST, f"The offsets {entry.first}-{entry.last} need one type, or one each.")
        for kind in entry.types:
            if kind < GAP or kind > type_max:
                raise KafkaError(INVALID_REQUEST, f"Acknowledge type {kind} is not allowed in this request.")
        before = entry.last


def acknowledge(
    window: Window, member_id: str, acknowledgements: list[Acknowledgement], limits: Limits, now_ms: int
) -> Change:
    """Begins to do what the member asks for, all of it or, with a KafkaError, nothing."""
    planned: list[_Planned] = []
    planned_to = -1
    for entry in acknowledgements:
        if entry.last < window.start_offset:
            continue
        if entry.first <= planned_to:
            raise not_in_state(entry.first, "is acknowledged twice")
        planned_to = entry.last
        _plan(window, member_id, entry, limits, planned)
    window.changes += 1
    change = Change(window.changes)
    for item in planned:
        _begin(window, change, item, limits, now_ms)
    return change


def not_in_state(offset: int, why: str) -> KafkaError:
    return KafkaError(INVALID_RECORD_STATE, f"The record at offset {offset} {why}.")


def _plan(window: Window, member_id: str, entry: Acknowledgement, limits: Limits, planned: list[_Planned]) -> None:
    batches = window.batches_within(entry.first, entry.last)
    starts_inside = entry.first <= window.start_offset <= entry.last
    if not window.batches or (entry.first < window.firsts[0] and not starts_inside):
        raise not_in_state(entry.first, "is not in flight")
    if not batches or entry.last > batches[len(batches) - 1].last:
        raise KafkaError(INVALID_REQUEST, f"The offsets up to {entry.last} were not delivered.")
    for batch in batches:
        low, high = max(entry.first, batch.first), min(entry.last, batch.last)
        for first, last, kind in _spans(entry, low, high):
            for run in batch.runs_within(first, last):
                if run.state != ACQUIRED or run.owner != member_id:
                    raise not_in_state(run.first, "is not acquired by this member")
                if run.change != NO_CHANGE:
                    raise not_in_state(run.first, "has a change that is not stored yet")
                if kind == RENEW and not limits.may_renew:
                    raise not_in_state(run.first, "cannot be renewed in this group")
                planned.append(_Planned(batch, run, kind))


def _spans(entry: Acknowledgement, low: int, high: int) -> list[tuple[int, int, int]]:
    """Neighbours of one type, between the two offsets."""
    if len(entry.types) == 1:
        return [(low, high, entry.types[0])]
    found: list[tuple[int, int, int]] = []
    begin = low
    for offset in range(low + 1, high + 1):
        if entry.types[offset - entry.first] != entry.types[begin - entry.first]:
            found.append((begin, offset - 1, entry.types[begin - entry.first]))
            begin = offset
    found.append((begin, high, entry.types[begin - entry.first]))
    return found


def _begin(window: Window, change: Change, item: _Planned, limits: Limits, now_ms: int) -> None:
    run = item.run
    if item.kind == RENEW:
        change.renewed += run.size
        window.lock(run, now_ms + limits.lock_ms)
        return
    if item.kind == ACCEPT:
        target = ACKNOWLEDGED
    elif item.kind == GAP:
        target = ARCHIVED
    elif item.kind == REJECT:
        target = ARCHIVING if limits.with_dead_letters else ARCHIVED
    else:
        target = released_state(run, limits)
    _propose(change, run, target)
    if item.kind == REJECT:
        run.cause = REJECTED


def _propose(change: Change, run: Run, target: int) -> None:
    run.change = change.number
    run.next_state = target
    run.cause = DELIVERED_TOO_OFTEN
    add_state(change.batches, run.first, run.last, target, run.count)


def add_state(batches: list[StateBatch], first: int, last: int, state: int, count: int) -> None:
    """Appends, or lets the last one grow."""
    if batches:
        before = batches[len(batches) - 1]
        if before.last + 1 == first and before.state == state and before.count == count:
            before.last = last
            return
    batches.append(StateBatch(first, last, state, count))


def released_state(run: Run, limits: Limits) -> int:
    """What becomes of a record that was delivered and not processed."""
    if run.count < limits.delivery_count_max:
        return AVAILABLE
    return ARCHIVING if limits.with_dead_letters else ARCHIVED


def release(window: Window, member_id: str, limits: Limits) -> Change:
    """The member is gone: begins to give back everything it holds, but for what it has acknowledged already."""
    window.changes += 1
    change = Change(window.changes)
    for batch in window.batches:
        for run in batch.runs:
            if run.state == ACQUIRED and run.owner == member_id and run.change == NO_CHANGE:
                _propose(change, run, released_state(run, limits))
    return change


def finish(window: Window, change: Change, stored: bool, limits: Limits, now_ms: int) -> list[StateBatch]:
    """The change is stored, or could not be. Returns what a lock that ran out in the meantime has changed, to be stored
    in turn."""
    expired: list[StateBatch] = []
    for stored_batch in change.batches:
        for batch in window.batches_within(stored_batch.first, stored_batch.last):
            for run in batch.runs:
                if run.change != change.number:
                    continue
                if stored:
                    window.change_state(run, run.next_state)
                elif run.locked_until_ms <= now_ms:
                    run.change = NO_CHANGE
                    _expire(window, run, limits, expired)
                else:
                    run.change = NO_CHANGE
                    run.next_state = run.state
            batch.join_runs()
    window.move_start()
    return expired


def expire_locks(window: Window, limits: Limits, now_ms: int) -> list[StateBatch]:
    """Gives back what was not acknowledged in time; returns what is to be stored."""
    expired: list[StateBatch] = []
    due = sorted(window.take_due_locks(now_ms), key=first_of_run)
    for run in due:
        _expire(window, run, limits, expired)
    if due:
        for batch in window.batches_within(due[0].first, due[len(due) - 1].last):
            batch.join_runs()
        window.move_start()
    return expired


def first_of_run(run: Run) -> int:
    return run.first


def _expire(window: Window, run: Run, limits: Limits, expired: list[StateBatch]) -> None:
    window.change_state(run, released_state(run, limits))
    if run.state == ARCHIVING:
        run.change = UNSTORED
        run.cause = DELIVERED_TOO_OFTEN
    add_state(expired, run.first, run.last, run.state, run.count)


def archive_aborted(window: Window, ranges: list[tuple[int, int]]) -> None:
    """Records of aborted transactions among those that were just acquired: nobody sees them."""
    for first, last in ranges:
        for batch in window.batches_within(first, last):
            for run in batch.runs_within(max(first, batch.first), min(last, batch.last)):
                if run.state == ACQUIRED and run.change == NO_CHANGE:
                    window.change_state(run, ARCHIVED)
            batch.join_runs()
    window.move_start()


# Dead letters


class Letters:
    """Neighbouring records that get dead letters, for one cause."""

    __slots__ = ("cause", "count", "first", "last")

    def __init__(self, first: int, last: int, count: int, cause: int) -> None:
        self.first = first
        self.last = last
        self.count = count
        self.cause = cause

    def __repr__(self) -> str:
        return f"Letters({self.first}-{self.last}, count {self.count}, cause {self.cause})"


def letters_due(window: Window, limits: Limits, records_max: int) -> list[Letters]:
    """The first records that wait for their dead letters, and of which that is stored."""
    found: list[Letters] = []
    left = records_max
    for batch in window.batches if window.archiving > 0 else []:
        for run in batch.runs:
            if run.state != ARCHIVING or run.change != NO_CHANGE:
                continue
            cause = run.cause
            if cause == UNKNOWN_CAUSE:
                cause = DELIVERED_TOO_OFTEN if run.count >= limits.delivery_count_max else REJECTED
            found.append(Letters(run.first, min(run.last, run.first + left - 1), run.count, cause))
            left -= found[len(found) - 1].last - run.first + 1
            if left <= 0:
                return found
    return found


def mark_stored(window: Window, batches: list[StateBatch]) -> None:
    """That these records are ARCHIVING is stored: their dead letters may be written. A leader that comes later will not
    deliver them any more."""
    for stored in batches:
        for batch in window.batches_within(stored.first, stored.last):
            for run in batch.runs_within(max(stored.first, batch.first), min(stored.last, batch.last)):
                if run.change == UNSTORED:
                    run.change = NO_CHANGE
            batch.join_runs()


def unstored_letters(window: Window) -> list[StateBatch]:
    """What could not be stored, and is to be."""
    found: list[StateBatch] = []
    for batch in window.batches if window.archiving > 0 else []:
        for run in batch.runs:
            if run.change == UNSTORED:
                add_state(found, run.first, run.last, ARCHIVING, run.count)
    return found


def archive_dead_letters(window: Window, first: int, last: int) -> list[StateBatch]:
    """Their dead letters are written, or never will be: they are done with. Returns what is to be stored."""
    stored: list[StateBatch] = []
    for batch in window.batches_within(first, last):
        for run in batch.runs_within(max(first, batch.first), min(last, batch.last)):
            if run.state == ARCHIVING and run.change == NO_CHANGE:
                window.change_state(run, ARCHIVED)
                add_state(stored, run.first, run.last, ARCHIVED, run.count)
        batch.join_runs()
    window.move_start()
    return stored
