"""The aborted transactions of a log: collected from the indexes of its segments, built anew where one is damaged.

An index is believed as far as somebody reads it. What was wrong with it when the log was opened is found only then, so
it is the reader who has it built again, from the batches of the segment and the producer snapshot before them. It is
kept in memory until the log is closed: below the recovery point nothing half written may take the place of a file.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from typing import TYPE_CHECKING

from moldau.storage.batch_scanner import BatchScanner
from moldau.storage.control_markers import read_marker
from moldau.storage.log_results import ReadResult
from moldau.storage.producer_snapshots import DamagedSnapshot, decode_snapshot
from moldau.storage.producer_state import ProducerState
from moldau.storage.segment import LOG_SUFFIX, DamagedSegment, Segment
from moldau.storage.txn_index import AbortedTransaction, DamagedTransactionIndex

if TYPE_CHECKING:
    from moldau.storage.log import Log

logger = logging.getLogger("moldau.storage")


def end_of_read(log: Log, found: ReadResult) -> int:
    """An offset above all that was read, as low as can be told without reading it."""
    segment = log.segments[bisect_right(log.base_offsets, found.segment_base_offset) - 1]
    size = 0 if found.records is None else found.records.size
    behind = segment.offset_behind(found.position + size)
    return found.end_offset if behind < 0 else min(behind, found.end_offset)


def collect_aborted(log: Log, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """Those that overlap [start_offset, end_offset), also if their marker lies beyond the end."""
    found: list[AbortedTransaction] = []
    number = max(0, bisect_right(log.base_offsets, start_offset) - 1)
    for segment in log.segments[number:]:
        if segment.transaction_index_exists:
            try:
                is_last = segment.transaction_index().collect(start_offset, end_offset, found)
            except DamagedTransactionIndex as error:
                rebuild_aborted(log, segment, error)
                is_last = segment.transaction_index().collect(start_offset, end_offset, found)
            if is_last:
                break
    return found


def truncate_files(log: Log, segment: Segment, offset: int) -> None:
    """The files of a segment that was truncated in memory, its transaction index too, whatever state that is in."""
    try:
        segment.truncate_files(offset)
    except DamagedTransactionIndex as error:
        rebuild_aborted(log, segment, error)
        segment.truncate_files(offset)


def add_aborted(log: Log, segment: Segment, aborted: AbortedTransaction) -> None:
    """Its marker is in the segment."""
    index = segment.transaction_index()
    segment.transaction_index_exists = True
    try:
        index.append(aborted)
    except DamagedTransactionIndex as error:
        logger.warning(
            "transaction index of %s-%d is damaged, the next read_committed fetch rebuilds it: %s",
            log.topic,
            log.partition,
            error,
        )


def rebuild_aborted(log: Log, segment: Segment, error: DamagedTransactionIndex) -> None:
    """Raises DamagedSegment when the batches are no better than the index."""
    logger.warning("rebuilding the transaction index of %s: %s", segment.path(LOG_SUFFIX), error)
    producers = _producers_before(log, segment.base_offset)
    number = max(0, bisect_right(log.base_offsets, producers.end_offset) - 1)
    entries: list[AbortedTransaction] = []
    for one in log.segments[number : bisect_right(log.base_offsets, segment.base_offset)]:
        entries = _walk(one, producers)
    segment.transaction_index().replace(entries)


def _producers_before(log: Log, offset: int) -> ProducerState:
    """The newest state of producers up to there that was written down."""
    producers = ProducerState()
    producers.clear(log.base_offsets[0])
    for known in reversed(log.snapshots.offsets[: bisect_right(log.snapshots.offsets, offset)]):
        path = log.snapshots.path(known)
        try:
            producers.restore(decode_snapshot(log.disk.read_file(path), path), known)
            break
        except (DamagedSnapshot, FileNotFoundError) as error:
            logger.warning("cannot load a producer snapshot, trying an older one: %s", error)
    return producers


def _walk(segment: Segment, producers: ProducerState) -> list[AbortedTransaction]:
    """The transactions that were aborted in this segment."""
    entries: list[AbortedTransaction] = []
    scanner = BatchScanner(segment.log_file(), 0, segment.size)
    header = scanner.next()
    while header is not None:
        if header.producer_id >= 0 and header.base_offset >= producers.end_offset:
            completed = producers.note(header, read_marker(scanner.data, header), 0)
            if completed is not None:
                stable = producers.last_stable_offset_after(completed)
                if completed.aborted:
                    entries.append(
                        AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)
                    )
                producers.complete(completed)
        header = scanner.next()
    if scanner.problem:
        raise DamagedSegment(f"{segment.path(LOG_SUFFIX)} at {scanner.next_position}: {scanner.problem}")
    return entries
