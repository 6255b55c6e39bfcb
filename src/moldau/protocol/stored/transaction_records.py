"""Stored records: transaction records (generated).

Written by tools/generate_messages.py from schemas/stored/transaction_records.txt.
"""

from __future__ import annotations

from typing import ClassVar, Final

from moldau.protocol.primitives import (
    NOT_GIVEN,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)
from moldau.protocol.stored.framing import decode_key, decode_value, encode_key, encode_value


class TransactionLogKey(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("transactional_id",)

    def __init__(self, transactional_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.transactional_id: str = transactional_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TransactionLogKey:
        if version != 0:
            raise DecodeError(no_such_version("TransactionLogKey", version))
        transactional_id = reader.string()
        return TransactionLogKey(transactional_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("TransactionLogKey", version))
        writer.string(self.transactional_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TransactionLogValue(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = (
        "producer_id",
        "previous_producer_id",
        "next_producer_id",
        "producer_epoch",
        "next_producer_epoch",
        "transaction_timeout_ms",
        "transaction_status",
        "transaction_partitions",
        "transaction_last_update_timestamp_ms",
        "transaction_start_timestamp_ms",
        "client_transaction_version",
    )

    def __init__(
        self,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = NOT_GIVEN,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.producer_id: int = producer_id
        self.previous_producer_id: int = previous_producer_id
        self.next_producer_id: int = next_producer_id
        self.producer_epoch: int = producer_epoch
        self.next_producer_epoch: int = next_producer_epoch
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_status: int = transaction_status
        self.transaction_partitions: list[PartitionsSchema] | None = (
            [] if transaction_partitions is NOT_GIVEN else transaction_partitions
        )
        self.transaction_last_update_timestamp_ms: int = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms: int = transaction_start_timestamp_ms
        self.client_transaction_version: int = client_transaction_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TransactionLogValue:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("TransactionLogValue", version))
        producer_id = reader.int64()
        previous_producer_id: int = -1
        next_producer_id: int = -1
        producer_epoch = reader.int16()
        next_producer_epoch: int = -1
        transaction_timeout_ms = reader.int32()
        transaction_status = reader.int8()
        transaction_partitions: list[PartitionsSchema] | None
        if version >= 1:
            count = reader.compact_nullable_array_length(3)
        else:
            count = reader.nullable_array_length(6)
        if count < 0:
            transaction_partitions = None
        else:
            transaction_partitions = []
            for _ in range(count):
                transaction_partitions.append(PartitionsSchema.decode(reader, version))
        transaction_last_update_timestamp_ms = reader.int64()
        transaction_start_timestamp_ms = reader.int64()
        client_transaction_version: int = 0
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    previous_producer_id = reader.int64()
                elif tag == 1:
                    next_producer_id = reader.int64()
                elif tag == 2:
                    client_transaction_version = reader.int16()
                elif tag == 3:
                    next_producer_epoch = reader.int16()
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return TransactionLogValue(
            producer_id,
            previous_producer_id,
            next_producer_id,
            producer_epoch,
            next_producer_epoch,
            transaction_timeout_ms,
            transaction_status,
            transaction_partitions,
            transaction_last_update_timestamp_ms,
            transaction_start_timestamp_ms,
            client_transaction_version,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("TransactionLogValue", version))
        writer.int64(self.producer_id)
        if version <= 0 and self.previous_producer_id != -1:
            raise cannot_send("previous_producer_id", version)
        if version <= 0 and self.next_producer_id != -1:
            raise cannot_send("next_producer_id", version)
        writer.int16(self.producer_epoch)
        if version <= 0 and self.next_producer_epoch != -1:
            raise cannot_send("next_producer_epoch", version)
        writer.int32(self.transaction_timeout_ms)
        writer.int8(self.transaction_status)
        if version >= 1:
            if self.transaction_partitions is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.transaction_partitions))
                for transaction_partitions_element in self.transaction_partitions:
                    transaction_partitions_element.encode(writer, version)
        else:
            if self.transaction_partitions is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.transaction_partitions))
                for transaction_partitions_element in self.transaction_partitions:
                    transaction_partitions_element.encode(writer, version)
        writer.int64(self.transaction_last_update_timestamp_ms)
        writer.int64(self.transaction_start_timestamp_ms)
        if version <= 0 and self.client_transaction_version != 0:
            raise cannot_send("client_transaction_version", version)
        if version >= 1:
            tags: UnknownTags = []
            if self.previous_producer_id != -1:
                part = Writer()
                part.int64(self.previous_producer_id)
                tags.append((0, part.to_bytes()))
            if self.next_producer_id != -1:
                part = Writer()
                part.int64(self.next_producer_id)
                tags.append((1, part.to_bytes()))
            if self.client_transaction_version != 0:
                part = Writer()
                part.int16(self.client_transaction_version)
                tags.append((2, part.to_bytes()))
            if self.next_producer_epoch != -1:
                part = Writer()
                part.int16(self.next_producer_epoch)
                tags.append((3, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class PartitionsSchema(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partition_ids")

    def __init__(
        self,
        topic: str = "",
        partition_ids: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partition_ids: list[int] = [] if partition_ids is None else partition_ids
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionsSchema:
        topic: str
        if version >= 1:
            topic = reader.compact_string()
        else:
            topic = reader.string()
        if version >= 1:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        partition_ids = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return PartitionsSchema(topic, partition_ids, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 1:
            writer.compact_array_length(len(self.partition_ids))
        else:
            writer.array_length(len(self.partition_ids))
        writer.int32_list(self.partition_ids)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


TRANSACTION_KEYS: Final[dict[int, type[Message]]] = {
    0: TransactionLogKey,
}

TRANSACTION_VALUES: Final[dict[int, type[Message]]] = {
    0: TransactionLogValue,
}


def encode_transaction_key(key: Message) -> bytes:
    return encode_key(key)


def decode_transaction_key(data: bytes) -> Message:
    return decode_key(TRANSACTION_KEYS, data)


def encode_transaction_value(value: Message, version: int) -> bytes:
    return encode_value(value, version)


def decode_transaction_value(record_type: int, data: bytes) -> Message:
    return decode_value(TRANSACTION_VALUES, record_type, data)
