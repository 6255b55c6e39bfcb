"""Cuts what a verb decided into batches for the log: a batch has a limit, and so a large change is several of them.

What must be all or nothing becomes a metadata transaction (KIP-868); followers show it only when its end is committed,
and a controller that finds one open aborts it.
"""

from __future__ import annotations

from typing import Final

from moldau.controller.result import VersionedRecord
from moldau.metadata.features import supports_transactions
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.stored.metadata_records import BeginTransactionRecord, EndTransactionRecord

RECORDS_PER_BATCH_MAX: Final = 10_000


def split_into_batches(
    records: list[VersionedRecord], is_atomic: bool, metadata_version: int, limit: int = RECORDS_PER_BATCH_MAX
) -> list[list[VersionedRecord]]:
    """Most often one batch; the same records in the same order, with those of a transaction around them if need be."""
    if len(records) <= limit:
        return [records]
    if is_atomic:
        if not supports_transactions(metadata_version):
            message = (
                f"Attempted to atomically commit {len(records)} records, but a batch has at most {limit}, and this "
                "metadata.version has no transactions."
            )
            raise KafkaError(errors.POLICY_VIOLATION, message)
        begin, end = BeginTransactionRecord("A change of more than one batch"), EndTransactionRecord()
        records = [(begin, 0), *records, (end, 0)]
    return [records[start : start + limit] for start in range(0, len(records), limit)]
