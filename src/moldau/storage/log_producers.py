"""What a log asks about producers: markers among batches, whether an append may be, producer state read back from disk.

Free functions over the parts of a log, which itself only appends and truncates. Kafka keeps this in UnifiedLog.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import BatchHeader, split_batches
from moldau.storage.aborted import add_aborted
from moldau.storage.batch_scanner import BatchScanner
from moldau.storage.control_markers import read_marker
from moldau.storage.producer_state import CompletedTransaction, ProducedBatch, ProducerState, TransactionMarker
from moldau.storage.segment import Segment
from moldau.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from moldau.storage.log import Log


def read_markers(records: MemoryRecords, headers: list[BatchHeader]) -> list[TransactionMarker | None] | None:
    """The transaction markers among the batches, one place per batch; None when there is no control batch."""
    found = False
    for header in headers:
        if header.is_control:
            found = True
    if not found:
        return None
    # The headers may describe batches that validation wrote anew; what the records say is in the original bytes.
    originals = split_batches(records.data, records.start, records.end)
    markers: list[TransactionMarker | None] = []
    for index in range(len(headers)):
        markers.append(read_marker(records.data, originals[index]))
    return markers


def check_producers(
    producers: ProducerState,
    headers: list[BatchHeader],
    markers: list[TransactionMarker | None] | None,
    from_client: bool,
    transaction_version: int,
) -> ProducedBatch | None:
    """A batch that was appended before, or None; raises when a producer may not write this now."""
    if len(headers) == 1:
        header = headers[0]
        if from_client:
            duplicate = producers.find_duplicate(header)
            if duplicate is not None:
                return duplicate
        marker = markers[0] if markers is not None else None
        producers.check(header, marker, from_client, transaction_version)
        return None
    if from_client:
        for header in headers:
            if header.producer_id >= 0:
                duplicate = producers.find_duplicate(header)
                if duplicate is not None:
                    return duplicate
    no_markers: list[TransactionMarker | None] = [None] * len(headers)
    producers.check_several(headers, markers if markers is not None else no_markers, from_client)
    return None


def note_producers(
    log: Log,
    segment: Segment,
    headers: list[BatchHeader],
    markers: list[TransactionMarker | None] | None,
    now_ms: int,
) -> None:
    """The batches are in the log."""
    producers = log.producers
    assert producers.end_offset <= headers[0].base_offset, f"{log}: producers are known to {producers.end_offset}"
    for index in range(len(headers)):
        header = headers[index]
        if header.producer_id >= 0:
            completed = producers.note(header, markers[index] if markers is not None else None, now_ms)
            if completed is not None:
                _complete_transaction(log, segment, completed)
    producers.end_offset = log.log_end_offset


def _complete_transaction(log: Log, segment: Segment, completed: CompletedTransaction) -> None:
    last_stable_offset = log.producers.last_stable_offset_after(completed)
    if completed.aborted:
        aborted = AbortedTransaction(
            completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
        )
        try:
            add_aborted(log, segment, aborted)
        except OSError as error:
            raise log.storage_failure(error) from error
        log.directory_changed = True
    log.producers.complete(completed)


def reload_producers(log: Log, now_ms: int, expiration_ms: int) -> list[str]:
    """Producer state up to the end of the log: the newest snapshot, then the batches behind it. Returns the files of
    snapshots that are of no use any more."""
    end = log.log_end_offset
    useless = log.snapshots.restore(log.producers, log.log_start_offset, end, now_ms, expiration_ms)
    if log.producers.end_offset < end:
        replay_producers(log.producers, log.segments, log.base_offsets, now_ms)
        log.producers.end_offset = end
    return useless


def replay_producers(producers: ProducerState, segments: list[Segment], base_offsets: list[int], now_ms: int) -> None:
    """Notes every batch of the log from where the producer state stands."""
    number = max(0, bisect_right(base_offsets, producers.end_offset) - 1)
    for segment in segments[number:]:
        replay_segment(producers, segment, now_ms)


def replay_segment(producers: ProducerState, segment: Segment, now_ms: int) -> None:
    start_offset = max(segment.base_offset, producers.end_offset)
    position = segment.find_batch(start_offset)[0]
    if position < 0:
        return
    scanner = BatchScanner(segment.log_file(), position, segment.size)
    header = scanner.next()
    while header is not None:
        if header.producer_id >= 0 and header.base_offset >= start_offset:
            completed = producers.note(header, read_marker(scanner.data, header), now_ms)
            if completed is not None:
                producers.complete(completed)
        header = scanner.next()
