"""Offsets that compaction has left out: they are passed over, and never make a record of nothing."""

from __future__ import annotations

from moldau.node.share.acquisition import Acquisition
from moldau.node.share.reads import ShareRead
from moldau.node.share.record_states import ACKNOWLEDGED, ARCHIVED
from moldau.node.share.window import Limits, StateBatch, Window
from moldau.protocol.records_data import FileRecords


def acquired(window: Window, offset: int, log_batches: list[tuple[int, int]], by_record: bool) -> list[tuple[int, int]]:
    found = Acquisition(window, "m", Limits(), 10, by_record, 0).acquire(offset, log_batches, 10)
    window.check()
    return [(one.first, one.last) for one in found]


def test_a_window_that_ends_in_a_hole_goes_on_behind_it() -> None:
    """What was available is gone, so the start moves into the hole behind the first batch that was read."""
    for by_record in (False, True):
        window = Window(239)
        rows = [StateBatch(239, 239, 0, 1), StateBatch(240, 244, ARCHIVED, 1), StateBatch(245, 245, ACKNOWLEDGED, 1)]
        window.load(rows)
        assert acquired(window, 239, [(244, 244), (270, 270), (284, 284)], by_record)[0][0] == 270
        assert window.start_offset <= 270


def test_nothing_is_sent_for_offsets_that_are_in_no_batch() -> None:
    read = ShareRead(106, FileRecords(None, 0, 0), [])  # type: ignore[arg-type]
    read.data = b"x" * 243
    read.keep(108, 108)
    assert read.records.size == 0
    assert read.records.to_bytes() == b""
