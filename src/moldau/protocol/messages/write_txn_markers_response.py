"""WriteTxnMarkers response, versions 1 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/027-write-txn-markers.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class WriteTxnMarkersResponse(Message):
    API_KEY: ClassVar[int] = 27
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("markers",)

    def __init__(
        self,
        markers: list[WritableTxnMarkerResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is None else markers
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WriteTxnMarkersResponse:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("WriteTxnMarkersResponse", version))
        markers: list[WritableTxnMarkerResult] = []
        count = reader.compact_array_length(10)
        for _ in range(count):
            markers.append(WritableTxnMarkerResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return WriteTxnMarkersResponse(markers, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("WriteTxnMarkersResponse", version))
        writer.compact_array_length(len(self.markers))
        for markers_element in self.markers:
            markers_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class WritableTxnMarkerResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("producer_id", "topics")

    def __init__(
        self,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.producer_id: int = producer_id
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WritableTxnMarkerResult:
        producer_id = reader.int64()
        topics: list[WritableTxnMarkerTopicResult] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(WritableTxnMarkerTopicResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return WritableTxnMarkerResult(producer_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.producer_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class WritableTxnMarkerTopicResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WritableTxnMarkerTopicResult:
        name = reader.compact_string()
        partitions: list[WritableTxnMarkerPartitionResult] = []
        count = reader.compact_array_length(7)
        for _ in range(count):
            partitions.append(WritableTxnMarkerPartitionResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return WritableTxnMarkerTopicResult(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class WritableTxnMarkerPartitionResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code")

    def __init__(self, partition_index: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WritableTxnMarkerPartitionResult:
        partition_index = reader.int32()
        error_code = reader.int16()
        unknown_tags = reader.unknown_tags()
        return WritableTxnMarkerPartitionResult(partition_index, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.unknown_tags(self.unknown_tags)
