"""DescribeTransactions response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/065-describe-transactions.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DescribeTransactionsResponse(Message):
    API_KEY: ClassVar[int] = 65
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "transaction_states")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.transaction_states: list[TransactionState] = [] if transaction_states is None else transaction_states
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeTransactionsResponse:
        if version != 0:
            raise DecodeError(no_such_version("DescribeTransactionsResponse", version))
        throttle_time_ms = reader.int32()
        transaction_states: list[TransactionState] = []
        count = reader.compact_array_length(28)
        for _ in range(count):
            transaction_states.append(TransactionState.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeTransactionsResponse(throttle_time_ms, transaction_states, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeTransactionsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.compact_array_length(len(self.transaction_states))
        for transaction_states_element in self.transaction_states:
            transaction_states_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TransactionState(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )

    def __init__(
        self,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.transactional_id: str = transactional_id
        self.transaction_state: str = transaction_state
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_start_time_ms: int = transaction_start_time_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.topics: list[TopicData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TransactionState:
        error_code = reader.int16()
        transactional_id = reader.compact_string()
        transaction_state = reader.compact_string()
        transaction_timeout_ms = reader.int32()
        transaction_start_time_ms = reader.int64()
        producer_id = reader.int64()
        producer_epoch = reader.int16()
        topics: list[TopicData] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TransactionState(
            error_code,
            transactional_id,
            transaction_state,
            transaction_timeout_ms,
            transaction_start_time_ms,
            producer_id,
            producer_epoch,
            topics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_string(self.transactional_id)
        writer.compact_string(self.transaction_state)
        writer.int32(self.transaction_timeout_ms)
        writer.int64(self.transaction_start_time_ms)
        writer.int64(self.producer_id)
        writer.int16(self.producer_epoch)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partitions")

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicData:
        topic = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return TopicData(topic, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)
