"""AddPartitionsToTxn request, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/024-add-partitions-to-txn.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class AddPartitionsToTxnRequest(Message):
    API_KEY: ClassVar[int] = 24
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )

    def __init__(
        self,
        transactions: list[AddPartitionsToTxnTransaction] | None = None,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is None else transactions
        self.v3_and_below_transactional_id: str = v3_and_below_transactional_id
        self.v3_and_below_producer_id: int = v3_and_below_producer_id
        self.v3_and_below_producer_epoch: int = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = (
            [] if v3_and_below_topics is None else v3_and_below_topics
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddPartitionsToTxnRequest:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("AddPartitionsToTxnRequest", version))
        transactions: list[AddPartitionsToTxnTransaction] = []
        if version >= 4:
            count = reader.compact_array_length(14)
            for _ in range(count):
                transactions.append(AddPartitionsToTxnTransaction.decode(reader, version))
        v3_and_below_transactional_id: str = ""
        if version == 3:
            v3_and_below_transactional_id = reader.compact_string()
        elif version <= 2:
            v3_and_below_transactional_id = reader.string()
        v3_and_below_producer_id: int = 0
        if version <= 3:
            v3_and_below_producer_id = reader.int64()
        v3_and_below_producer_epoch: int = 0
        if version <= 3:
            v3_and_below_producer_epoch = reader.int16()
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
        if version <= 3:
            if version >= 3:
                count = reader.compact_array_length(3)
            else:
                count = reader.array_length(6)
            for _ in range(count):
                v3_and_below_topics.append(AddPartitionsToTxnTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return AddPartitionsToTxnRequest(
            transactions,
            v3_and_below_transactional_id,
            v3_and_below_producer_id,
            v3_and_below_producer_epoch,
            v3_and_below_topics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("AddPartitionsToTxnRequest", version))
        if version >= 4:
            writer.compact_array_length(len(self.transactions))
            for transactions_element in self.transactions:
                transactions_element.encode(writer, version)
        elif len(self.transactions) > 0:
            raise cannot_send("transactions", version)
        if version >= 4:
            if self.v3_and_below_transactional_id != "":
                raise cannot_send("v3_and_below_transactional_id", version)
        elif version >= 3:
            writer.compact_string(self.v3_and_below_transactional_id)
        else:
            writer.string(self.v3_and_below_transactional_id)
        if version >= 4:
            if self.v3_and_below_producer_id != 0:
                raise cannot_send("v3_and_below_producer_id", version)
        else:
            writer.int64(self.v3_and_below_producer_id)
        if version >= 4:
            if self.v3_and_below_producer_epoch != 0:
                raise cannot_send("v3_and_below_producer_epoch", version)
        else:
            writer.int16(self.v3_and_below_producer_epoch)
        if version >= 4:
            if len(self.v3_and_below_topics) > 0:
                raise cannot_send("v3_and_below_topics", version)
        else:
            if version >= 3:
                writer.compact_array_length(len(self.v3_and_below_topics))
            else:
                writer.array_length(len(self.v3_and_below_topics))
            for v3_and_below_topics_element in self.v3_and_below_topics:
                v3_and_below_topics_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AddPartitionsToTxnTransaction(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.verify_only: bool = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddPartitionsToTxnTransaction:
        transactional_id = reader.compact_string()
        producer_id = reader.int64()
        producer_epoch = reader.int16()
        verify_only = reader.boolean()
        topics: list[AddPartitionsToTxnTopic] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(AddPartitionsToTxnTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AddPartitionsToTxnTransaction(
            transactional_id,
            producer_id,
            producer_epoch,
            verify_only,
            topics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.transactional_id)
        writer.int64(self.producer_id)
        writer.int16(self.producer_epoch)
        writer.boolean(self.verify_only)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AddPartitionsToTxnTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddPartitionsToTxnTopic:
        name: str
        if version >= 3:
            name = reader.compact_string()
        else:
            name = reader.string()
        if version >= 3:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return AddPartitionsToTxnTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 3:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
