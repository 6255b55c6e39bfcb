"""Records of a window that wait for their dead letters: which of them are due, and what they hold up."""

from __future__ import annotations

from moldau.node.share.acknowledgement import (
    Acknowledgement,
    acknowledge,
    archive_dead_letters,
    expire_locks,
    finish,
    letters_due,
    mark_stored,
    unstored_letters,
)
from moldau.node.share.record_states import (
    ACCEPT,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DELIVERED_TOO_OFTEN,
    REJECT,
    REJECTED,
    RELEASE,
)
from moldau.node.share.window import Limits, StateBatch, Window
from tests.unit.share.test_window import do, states, take

LIMITS = Limits(lock_ms=1000, delivery_count_max=1, with_dead_letters=True)


def due(window: Window, records_max: int = 100) -> list[tuple[int, int, int]]:
    return [(one.first, one.last, one.cause) for one in letters_due(window, LIMITS, records_max)]


def test_letters_are_due_with_their_causes() -> None:
    """The two causes stay apart, though the records are alike in all else."""
    window = Window(0)
    take(window, [(0, 9)], limits=LIMITS)
    do(window, REJECT, 0, 2, limits=LIMITS)
    do(window, RELEASE, 3, 5, limits=LIMITS)
    do(window, ACCEPT, 6, 9, limits=LIMITS)
    assert due(window) == [(0, 2, REJECTED), (3, 5, DELIVERED_TOO_OFTEN)]
    assert due(window, 4) == [(0, 2, REJECTED), (3, 3, DELIVERED_TOO_OFTEN)]
    assert window.start_offset == 0 and window.archiving == 6 and window.complete_count() == 4
    assert archive_dead_letters(window, 0, 3) == [StateBatch(0, 3, ARCHIVED, 1)]
    window.check()
    assert window.start_offset == 4 and due(window) == [(4, 5, DELIVERED_TOO_OFTEN)]


def test_a_rejection_that_is_not_stored_has_no_letter() -> None:
    window = Window(0)
    take(window, [(0, 9)], limits=LIMITS)
    change = acknowledge(window, "a", [Acknowledgement(0, 9, [REJECT])], LIMITS, 0)
    assert due(window) == []
    finish(window, change, False, LIMITS, 0)
    assert due(window) == [] and window.archiving == 0
    do(window, ACCEPT, 0, 9, limits=LIMITS)
    assert window.start_offset == 10


def test_a_lock_that_ran_out_has_a_letter_only_when_that_is_stored() -> None:
    """Also if two that ran out have become one run meanwhile."""
    window = Window(0)
    take(window, [(0, 9)], limits=LIMITS)
    acknowledged = acknowledge(window, "a", [Acknowledgement(5, 9, [ACCEPT])], LIMITS, 0)
    first = expire_locks(window, LIMITS, 1000)
    second = finish(window, acknowledged, False, LIMITS, 1000)
    assert (first, second) == ([StateBatch(0, 4, ARCHIVING, 1)], [StateBatch(5, 9, ARCHIVING, 1)])
    assert due(window) == [] and len(window.batches[0].runs) == 1
    assert archive_dead_letters(window, 0, 9) == [], "not before"
    mark_stored(window, first)
    assert due(window) == [(0, 4, DELIVERED_TOO_OFTEN)]
    assert unstored_letters(window) == [StateBatch(5, 9, ARCHIVING, 1)]
    mark_stored(window, second)
    assert due(window) == [(0, 9, DELIVERED_TOO_OFTEN)] and unstored_letters(window) == []
    window.check()


def test_what_was_loaded_tells_its_cause_by_its_count() -> None:
    window = Window(0)
    window.load([StateBatch(0, 1, ARCHIVING, 1), StateBatch(2, 3, ARCHIVING, 3), StateBatch(4, 5, AVAILABLE, 1)])
    found = letters_due(window, Limits(delivery_count_max=3, with_dead_letters=True), 100)
    assert [(one.first, one.last, one.cause) for one in found] == [(0, 1, REJECTED), (2, 3, DELIVERED_TOO_OFTEN)]
    assert window.next_fetch_offset() == 4, "they are not delivered again"


def test_a_log_that_begins_later_passes_no_record_that_waits() -> None:
    window = Window(0)
    take(window, [(0, 9)], limits=LIMITS)
    do(window, REJECT, 2, 3, limits=LIMITS)
    window.start_at_least(8)
    window.check()
    assert states(window)[0] == (2, 3, ARCHIVING, 1) and window.start_offset == 2
    assert window.acquired == 2, "8 and 9 are held as before"
    archive_dead_letters(window, 2, 3)
    assert window.start_offset == 8
    window.check()


def test_a_log_that_begins_behind_the_window_neither() -> None:
    window = Window(0)
    take(window, [(0, 9)], limits=LIMITS)
    do(window, REJECT, 9, 9, limits=LIMITS)
    window.start_at_least(50)
    window.check()
    assert window.start_offset == 9 and window.acquired == 0
    archive_dead_letters(window, 9, 9)
    assert (window.start_offset, window.size) == (10, 0)
    window.start_at_least(50)
    assert window.next_fetch_offset() == 50


def test_a_rejection_on_its_way_is_waited_for() -> None:
    window = Window(0)
    take(window, [(0, 9)], limits=LIMITS)
    change = acknowledge(window, "a", [Acknowledgement(0, 0, [REJECT])], LIMITS, 0)
    window.start_at_least(5)
    finish(window, change, True, LIMITS, 0)
    assert due(window) == [(0, 0, REJECTED)] and window.start_offset == 0
    window.check()
