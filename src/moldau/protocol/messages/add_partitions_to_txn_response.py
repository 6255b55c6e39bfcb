"""AddPartitionsToTxn response, versions 0 to 5 (generated).

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


class AddPartitionsToTxnResponse(Message):
    API_KEY: ClassVar[int] = 24
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "results_by_transaction",
        "results_by_topic_v3_and_below",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] | None = None,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = (
            [] if results_by_transaction is None else results_by_transaction
        )
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = (
            [] if results_by_topic_v3_and_below is None else results_by_topic_v3_and_below
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddPartitionsToTxnResponse:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("AddPartitionsToTxnResponse", version))
        throttle_time_ms = reader.int32()
        error_code: int = 0
        if version >= 4:
            error_code = reader.int16()
        results_by_transaction: list[AddPartitionsToTxnResult] = []
        if version >= 4:
            count = reader.compact_array_length(3)
            for _ in range(count):
                results_by_transaction.append(AddPartitionsToTxnResult.decode(reader, version))
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
        if version <= 3:
            if version >= 3:
                count = reader.compact_array_length(3)
            else:
                count = reader.array_length(6)
            for _ in range(count):
                results_by_topic_v3_and_below.append(AddPartitionsToTxnTopicResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return AddPartitionsToTxnResponse(
            throttle_time_ms,
            error_code,
            results_by_transaction,
            results_by_topic_v3_and_below,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("AddPartitionsToTxnResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 4:
            writer.int16(self.error_code)
        if version >= 4:
            writer.compact_array_length(len(self.results_by_transaction))
            for results_by_transaction_element in self.results_by_transaction:
                results_by_transaction_element.encode(writer, version)
        elif len(self.results_by_transaction) > 0:
            raise cannot_send("results_by_transaction", version)
        if version >= 4:
            if len(self.results_by_topic_v3_and_below) > 0:
                raise cannot_send("results_by_topic_v3_and_below", version)
        else:
            if version >= 3:
                writer.compact_array_length(len(self.results_by_topic_v3_and_below))
            else:
                writer.array_length(len(self.results_by_topic_v3_and_below))
            for results_by_topic_v3_and_below_element in self.results_by_topic_v3_and_below:
                results_by_topic_v3_and_below_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AddPartitionsToTxnResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("transactional_id", "topic_results")

    def __init__(
        self,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = [] if topic_results is None else topic_results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddPartitionsToTxnResult:
        transactional_id = reader.compact_string()
        topic_results: list[AddPartitionsToTxnTopicResult] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topic_results.append(AddPartitionsToTxnTopicResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AddPartitionsToTxnResult(transactional_id, topic_results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.transactional_id)
        writer.compact_array_length(len(self.topic_results))
        for topic_results_element in self.topic_results:
            topic_results_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AddPartitionsToTxnTopicResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "results_by_partition")

    def __init__(
        self,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = (
            [] if results_by_partition is None else results_by_partition
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddPartitionsToTxnTopicResult:
        name: str
        if version >= 3:
            name = reader.compact_string()
        else:
            name = reader.string()
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
        if version >= 3:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            results_by_partition.append(AddPartitionsToTxnPartitionResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return AddPartitionsToTxnTopicResult(name, results_by_partition, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 3:
            writer.compact_array_length(len(self.results_by_partition))
        else:
            writer.array_length(len(self.results_by_partition))
        for results_by_partition_element in self.results_by_partition:
            results_by_partition_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AddPartitionsToTxnPartitionResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "partition_error_code")

    def __init__(
        self,
        partition_index: int = 0,
        partition_error_code: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_error_code: int = partition_error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddPartitionsToTxnPartitionResult:
        partition_index = reader.int32()
        partition_error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return AddPartitionsToTxnPartitionResult(partition_index, partition_error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.partition_error_code)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
