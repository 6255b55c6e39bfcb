"""TransactionLogKey and TransactionLogValue as Kafka writes them: version 1 from transaction.version 1 on, else 0."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.outcome import StoredRecord
from moldau.coordinator.txn.transaction import EMPTY, Transaction
from moldau.protocol.primitives import Reader
from moldau.protocol.stored.framing import encode_key, encode_value
from moldau.protocol.stored.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

KEY_TYPE: Final = 0
FIRST_TAGGED_VERSION: Final = 1


def encode_transaction(transaction: Transaction, transaction_version: int) -> StoredRecord:
    version = FIRST_TAGGED_VERSION if transaction_version >= 1 else 0
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state == EMPTY else partitions_by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if version >= FIRST_TAGGED_VERSION:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.next_producer_epoch = transaction.next_epoch
        value.client_transaction_version = transaction.client_version
    return encode_key(TransactionLogKey(transaction.transactional_id)), encode_value(value, version)


def partitions_by_topic(transaction: Transaction) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic, indexes) for topic, indexes in topics.items()]


def tombstone(transactional_id: str) -> StoredRecord:
    return encode_key(TransactionLogKey(transactional_id)), None


def decode_transactional_id(key: bytes) -> str | None:
    """None for a record of another type, which a later release may write."""
    reader = Reader(key)
    if reader.int16() != KEY_TYPE:
        return None
    return TransactionLogKey.decode(reader, 0).transactional_id


def decode_transaction(transactional_id: str, data: bytes) -> Transaction:
    reader = Reader(data)
    value = TransactionLogValue.decode(reader, reader.int16())
    transaction = Transaction(
        transactional_id, value.producer_id, value.transaction_timeout_ms, value.transaction_last_update_timestamp_ms
    )
    transaction.previous_producer_id = value.previous_producer_id
    transaction.next_producer_id = value.next_producer_id
    transaction.epoch = value.producer_epoch
    transaction.next_epoch = value.next_producer_epoch
    transaction.state = value.transaction_status
    transaction.start_ms = value.transaction_start_timestamp_ms
    transaction.client_version = value.client_transaction_version
    if value.transaction_partitions is not None:
        transaction.partitions = frozenset(
            [(topic.topic, index) for topic in value.transaction_partitions for index in topic.partition_ids]
        )
    return transaction
