"""The end of a transaction, as a control batch in the log tells it."""

from __future__ import annotations

from typing import Final

from moldau.records.batch import BatchHeader, CorruptBatch
from moldau.records.walk import read_records
from moldau.storage.producer_state import TransactionMarker

ABORT_TYPE: Final = 0
COMMIT_TYPE: Final = 1


def read_marker(data: bytes, header: BatchHeader) -> TransactionMarker | None:
    """The end of a transaction that a control batch holds; None for other control batches and emptied ones."""
    if not header.is_control or header.producer_id < 0 or header.records_count < 1:
        return None
    record = read_records(data, header)[0]
    key, value = record.key, record.value
    if key is None or value is None or len(key) < 4 or len(value) < 6:
        raise CorruptBatch("a control record is too short")
    control_type = int.from_bytes(key[2:4], "big", signed=True)
    if control_type != ABORT_TYPE and control_type != COMMIT_TYPE:
        return None
    return TransactionMarker(control_type == COMMIT_TYPE, int.from_bytes(value[2:6], "big", signed=True))
