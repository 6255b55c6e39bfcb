"""The window of a share partition: what is acquired, acknowledged, released, timed out, and where it starts."""

from __future__ import annotations

import pytest

from moldau.node.share.acknowledgement import (
    Acknowledgement,
    Change,
    acknowledge,
    archive_aborted,
    check_request,
    expire_locks,
    finish,
    release,
)
from moldau.node.share.acquisition import Acquisition
from moldau.node.share.record_states import (
    ACCEPT,
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
)
from moldau.node.share.window import DamagedState, Limits, StateBatch, Window
from moldau.protocol.errors import INVALID_RECORD_STATE, INVALID_REQUEST, KafkaError

LIMITS = Limits(lock_ms=1000)


def take(
    window: Window,
    log: list[tuple[int, int]],
    records_max: int = 500,
    member: str = "a",
    *,
    by_record: bool = False,
    limits: Limits = LIMITS,
    batch_records: int = 500,
    now_ms: int = 0,
) -> list[tuple[int, int, int]]:
    """Reads on where the window says, as much of the log as lies there, and acquires."""
    offset = window.next_fetch_offset()
    read = [batch for batch in log if batch[1] >= offset]
    acquisition = Acquisition(window, member, limits, records_max, by_record, now_ms)
    found = acquisition.acquire(offset, read, batch_records)
    window.check()
    return [(one.first, one.last, one.count) for one in found]


def say(window: Window, kind: int, first: int, last: int, member: str = "a", now_ms: int = 0) -> Change:
    return acknowledge(window, member, [Acknowledgement(first, last, [kind])], LIMITS, now_ms)


def do(window: Window, kind: int, first: int, last: int, member: str = "a", limits: Limits = LIMITS) -> None:
    change = acknowledge(window, member, [Acknowledgement(first, last, [kind])], limits, 0)
    finish(window, change, True, limits, 0)
    window.check()


def states(window: Window) -> list[tuple[int, int, int, int]]:
    return [(run.first, run.last, run.state, run.count) for batch in window.batches for run in batch.runs]


def test_new_records_are_acquired_once() -> None:
    window = Window(0)
    assert take(window, [(0, 9)]) == [(0, 9, 1)]
    assert window.next_fetch_offset() == 10 and window.size == 10
    assert take(window, [(10, 14)], member="b") == [(10, 14, 1)]
    assert take(window, []) == []


def test_a_batch_is_one_object_until_records_of_it_differ() -> None:
    """And one again when they no longer do."""
    window = Window(0)
    take(window, [(0, 999)], records_max=1000)
    assert len(window.batches) == 1 and len(window.batches[0].runs) == 1
    for offset in range(1, 1000, 2):
        do(window, ACCEPT, offset, offset)
    assert len(window.batches[0].runs) == 1000
    for offset in range(2, 1000, 2):
        do(window, ACCEPT, offset, offset)
    assert len(window.batches[0].runs) == 2 and window.start_offset == 0
    do(window, ACCEPT, 0, 0)
    assert window.batches == [] and window.start_offset == window.end_offset == 1000


def test_the_number_of_records_is_a_wish_in_batch_mode() -> None:
    """The last log batch is taken whole."""
    window = Window(0)
    assert take(window, [(0, 9), (10, 19), (20, 29)], records_max=15) == [(0, 19, 1)]


def test_pieces_are_cut_between_log_batches() -> None:
    window = Window(0)
    found = take(window, [(0, 3), (4, 7), (8, 11), (15, 20)], batch_records=6)
    assert found == [(0, 7, 1), (8, 14, 1), (15, 20, 1)]


def test_the_number_of_records_is_a_limit_in_record_mode() -> None:
    """What is left of the log batch is there for the next one, without a delivery counted."""
    window = Window(0)
    assert take(window, [(0, 9), (10, 19)], records_max=4, by_record=True) == [(0, 3, 1)]
    assert states(window) == [(0, 3, ACQUIRED, 1), (4, 9, AVAILABLE, 0)]
    assert take(window, [(0, 9), (10, 19)], records_max=4, member="b", by_record=True) == [(4, 7, 1)]
    assert take(window, [(0, 9), (10, 19)], records_max=4, member="b", by_record=True) == [(8, 9, 1), (10, 11, 1)]


def test_a_full_window_gives_only_what_is_in_it() -> None:
    limits = Limits(lock_ms=1000, locks_max=10)
    window = Window(0)
    assert take(window, [(0, 9), (10, 19)], limits=limits) == [(0, 9, 1)]
    assert take(window, [(10, 19)], limits=limits) == []
    do(window, RELEASE, 4, 6)
    assert take(window, [(0, 9), (10, 19)], limits=limits, member="b") == [(4, 6, 2)]


def test_released_records_come_again_with_a_higher_count() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    do(window, RELEASE, 0, 9)
    assert window.next_fetch_offset() == 0
    assert take(window, [(0, 9)], member="b") == [(0, 9, 2)]


def test_at_the_limit_a_record_is_archived_instead() -> None:
    limits = Limits(lock_ms=1000, delivery_count_max=2)
    window = Window(0)
    for count in (1, 2):
        assert take(window, [(0, 0)], limits=limits) == [(0, 0, count)]
        do(window, RELEASE, 0, 0, limits=limits)
    assert window.start_offset == 1 and window.batches == []


def test_with_dead_letters_a_record_waits_for_its_copy() -> None:
    limits = Limits(lock_ms=1000, with_dead_letters=True)
    window = Window(0)
    take(window, [(0, 9)], limits=limits)
    do(window, REJECT, 0, 0, limits=limits)
    do(window, GAP, 1, 9, limits=limits)
    assert states(window) == [(0, 0, ARCHIVING, 1), (1, 9, ARCHIVED, 1)] and window.start_offset == 0


def test_the_start_passes_only_what_is_done_with() -> None:
    window = Window(0)
    take(window, [(0, 9), (20, 29)], batch_records=1)
    do(window, ACCEPT, 5, 19)
    assert window.start_offset == 0 and window.complete_count() == 15
    do(window, REJECT, 0, 2)
    assert window.start_offset == 3
    do(window, GAP, 3, 4)
    assert window.start_offset == 20
    do(window, ACCEPT, 20, 29)
    assert window.start_offset == window.end_offset == 30 and window.next_fetch_offset() == 30


def test_a_change_is_provisional_until_it_is_stored() -> None:
    """The records can neither be acquired nor acknowledged again in the meantime."""
    window = Window(0)
    take(window, [(0, 9)])
    change = say(window, RELEASE, 0, 4)
    assert [repr(batch) for batch in change.batches] == ["StateBatch(0-4, state 0, count 1)"]
    assert window.next_fetch_offset() == 10
    with pytest.raises(KafkaError) as caught:
        say(window, ACCEPT, 4, 4)
    assert caught.value.code == INVALID_RECORD_STATE
    finish(window, change, True, LIMITS, 0)
    assert window.next_fetch_offset() == 0


def test_a_change_that_cannot_be_stored_is_taken_back() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    finish(window, say(window, ACCEPT, 0, 9), False, LIMITS, 999)
    assert states(window) == [(0, 9, ACQUIRED, 1)]
    do(window, ACCEPT, 0, 9)
    assert window.start_offset == 10


def test_a_lock_that_runs_out_meanwhile_counts_if_the_change_fails() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    change = say(window, ACCEPT, 0, 4)
    assert expire_locks(window, LIMITS, 1000) == [StateBatch(5, 9, AVAILABLE, 1)]
    assert finish(window, change, False, LIMITS, 1001) == [StateBatch(0, 4, AVAILABLE, 1)]
    window.check()
    assert take(window, [(0, 9)], member="b") == [(0, 9, 2)]


def test_a_lock_that_runs_out_meanwhile_does_not_count_if_the_change_is_stored() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    change = say(window, ACCEPT, 0, 9)
    assert expire_locks(window, LIMITS, 1000) == []
    finish(window, change, True, LIMITS, 1001)
    assert window.start_offset == 10 and expire_locks(window, LIMITS, 5000) == []


def test_renewed_locks_last_from_then_on() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    assert say(window, RENEW, 0, 4, now_ms=600).is_empty
    assert expire_locks(window, LIMITS, 1000) == [StateBatch(5, 9, AVAILABLE, 1)]
    assert window.next_lock_ms() == 1600
    assert expire_locks(window, LIMITS, 1599) == []
    assert expire_locks(window, LIMITS, 1600) == [StateBatch(0, 4, AVAILABLE, 1)]


@pytest.mark.parametrize(
    ("first", "last", "member", "code"),
    [
        (0, 9, "b", INVALID_RECORD_STATE),  # of another member
        (5, 10, "a", INVALID_REQUEST),  # beyond what was delivered
        (20, 21, "a", INVALID_REQUEST),
    ],
)
def test_what_is_not_acquired_by_the_member_is_refused(first: int, last: int, member: str, code: int) -> None:
    window = Window(0)
    take(window, [(0, 9)])
    with pytest.raises(KafkaError) as caught:
        say(window, ACCEPT, first, last, member)
    assert caught.value.code == code and states(window) == [(0, 9, ACQUIRED, 1)]


def test_all_or_nothing() -> None:
    """One wrong acknowledgement undoes all of the request's."""
    window = Window(0)
    take(window, [(0, 9)])
    do(window, ACCEPT, 7, 7)
    wrong = [Acknowledgement(0, 3, [ACCEPT]), Acknowledgement(5, 8, [ACCEPT])]
    with pytest.raises(KafkaError) as caught:
        acknowledge(window, "a", wrong, LIMITS, 0)
    assert caught.value.code == INVALID_RECORD_STATE
    do(window, ACCEPT, 0, 6)
    assert window.start_offset == 8


def test_what_lies_below_the_start_is_ignored() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    do(window, ACCEPT, 0, 4)
    assert say(window, ACCEPT, 0, 4).is_empty
    do(window, ACCEPT, 2, 7)
    assert window.start_offset == 8


@pytest.mark.parametrize(
    "entries",
    [
        [Acknowledgement(5, 4, [ACCEPT])],
        [Acknowledgement(0, 5, [ACCEPT]), Acknowledgement(4, 9, [ACCEPT])],
        [Acknowledgement(0, 5, [])],
        [Acknowledgement(0, 5, [ACCEPT, ACCEPT])],
        [Acknowledgement(0, 0, [5])],
        [Acknowledgement(0, 0, [-1])],
        [Acknowledgement(0, 0, [RENEW])],
    ],
)
def test_requests_that_make_no_sense(entries: list[Acknowledgement]) -> None:
    with pytest.raises(KafkaError) as caught:
        check_request(entries, False)
    assert caught.value.code == INVALID_REQUEST


def test_a_type_for_each_offset() -> None:
    window = Window(0)
    take(window, [(0, 3)])
    change = acknowledge(window, "a", [Acknowledgement(0, 3, [ACCEPT, RELEASE, RELEASE, REJECT])], LIMITS, 0)
    finish(window, change, True, LIMITS, 0)
    window.check()
    assert states(window) == [(1, 2, AVAILABLE, 1), (3, 3, ARCHIVED, 1)] and window.start_offset == 1


def test_who_goes_gives_everything_back_but_what_is_acknowledged() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    take(window, [(10, 19)], member="b")
    accepted = say(window, ACCEPT, 0, 4)
    released = release(window, "a", LIMITS)
    assert released.batches == [StateBatch(5, 9, AVAILABLE, 1)]
    finish(window, released, True, LIMITS, 0)
    finish(window, accepted, True, LIMITS, 0)
    window.check()
    assert states(window) == [(5, 9, AVAILABLE, 1), (10, 19, ACQUIRED, 1)]


def test_the_log_start_moves_on() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    take(window, [(10, 19)])
    do(window, RELEASE, 0, 4)
    window.start_at_least(7)
    window.check()
    assert window.start_offset == 7 and states(window)[0] == (7, 9, ACQUIRED, 1)
    assert say(window, ACCEPT, 0, 6).is_empty
    window.start_at_least(50)
    window.check()
    assert window.start_offset == window.next_fetch_offset() == 50


def test_compaction_took_what_was_released() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    do(window, RELEASE, 0, 9)
    assert take(window, [(6, 9)], member="b") == [(6, 9, 2)]
    assert window.start_offset == 6


def test_aborted_records_are_for_nobody() -> None:
    window = Window(0)
    take(window, [(0, 9)])
    archive_aborted(window, [(0, 2), (5, 6)])
    window.check()
    assert states(window) == [(3, 4, ACQUIRED, 1), (5, 6, ARCHIVED, 1), (7, 9, ACQUIRED, 1)]


def test_a_loaded_state_delivers_its_gaps() -> None:
    """With a count of 1, and the start does not pass them."""
    window = Window(5)
    window.load([StateBatch(8, 9, ACKNOWLEDGED, 1), StateBatch(12, 14, AVAILABLE, 2)])
    window.check()
    assert window.start_offset == 5 and window.next_fetch_offset() == 5
    found = take(window, [(0, 9), (10, 19)])
    assert found == [(5, 7, 1), (10, 11, 1), (12, 14, 3), (15, 19, 1)]
    do(window, ACCEPT, 5, 7)
    assert window.start_offset == 10


def test_a_loaded_state_is_delivered_by_log_batches() -> None:
    """Though what was alike in it has become one batch: who wants one record does not get a thousand."""
    window = Window(0)
    window.load([StateBatch(0, 99, AVAILABLE, 1)])
    log = [(first, first + 9) for first in range(0, 100, 10)]
    assert take(window, log, 15) == [(0, 19, 2)]
    assert take(window, log, 1) == [(20, 29, 2)]
    assert take(window, log, 5, by_record=True) == [(30, 34, 2)]
    assert take(window, log, 500) == [(35, 99, 2)]


def test_a_loaded_state_that_is_done_with_moves_the_start() -> None:
    window = Window(0)
    window.load([StateBatch(0, 9, ACKNOWLEDGED, 1), StateBatch(10, 11, ARCHIVED, 5)])
    assert window.start_offset == window.next_fetch_offset() == 12


def test_a_gap_that_the_log_does_not_have_is_passed() -> None:
    window = Window(0)
    window.load([StateBatch(5, 9, ACKNOWLEDGED, 1), StateBatch(10, 10, AVAILABLE, 1)])
    assert take(window, [(10, 12)]) == [(10, 10, 2), (11, 12, 1)]
    assert window.start_offset == 10


@pytest.mark.parametrize(
    "batches",
    [
        [StateBatch(4, 6, 0, 1)],
        [StateBatch(6, 5, 0, 1)],
        [StateBatch(5, 6, 1, 1)],
        [StateBatch(5, 8, 0, 1), StateBatch(7, 9, 0, 1)],
    ],
)
def test_a_damaged_state_is_refused(batches: list[StateBatch]) -> None:
    with pytest.raises(DamagedState):
        Window(5).load(batches)


def test_one_bad_record_does_not_use_up_the_deliveries_of_the_others() -> None:
    """Of a batch of 500 with a limit of 5 that fails whenever one record of it is delivered, only that one is lost."""
    window = Window(0)
    log = [(0, 499)]
    lost: set[int] = set()
    accepted: set[int] = set()
    for _ in range(3000):
        found = take(window, log)
        if not found:
            break
        offsets = [offset for first, last, _ in found for offset in range(first, last + 1)]
        kind = RELEASE if 137 in offsets else ACCEPT
        for first, last, count in found:
            do(window, kind, first, last)
            if kind == ACCEPT:
                accepted.update(range(first, last + 1))
            elif count == 5:
                lost.update(range(first, last + 1))
    assert lost == {137} and len(accepted) == 499
