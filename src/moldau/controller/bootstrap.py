"""The first records of a cluster: what the first active controller writes into an empty log."""

from __future__ import annotations

from moldau.controller.result import VersionedRecord
from moldau.metadata.features import ELR_VERSION, METADATA_VERSION, supports_transactions
from moldau.metadata.model import BROKER_RESOURCE
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


def bootstrap_records(from_format: list[Message], min_insync_replicas: int) -> list[VersionedRecord]:
    """The records of bootstrap.checkpoint in a metadata transaction, so that either all of them count or none.

    With eligible leader replicas the minimum of in-sync replicas has to be one for the whole cluster: it is
    written down as the default of all brokers.
    """
    levels = {record.name: record.feature_level for record in from_format if isinstance(record, FeatureLevelRecord)}
    records: list[VersionedRecord] = [(record, 0) for record in from_format]
    if levels.get(ELR_VERSION, 0) >= 1:
        value = str(min_insync_replicas)
        records.append((ConfigRecord(BROKER_RESOURCE, "", "min.insync.replicas", value), 0))
    if supports_transactions(levels.get(METADATA_VERSION, 0)):
        records = [(BeginTransactionRecord("Bootstrap records"), 0), *records, (EndTransactionRecord(), 0)]
    return records
