"""WriteTxnMarkers request, versions 1 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/027-write-txn-markers.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class WriteTxnMarkersRequest(Message):
    API_KEY: ClassVar[int] = 27
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("markers",)

    def __init__(self, markers: list[WritableTxnMarker] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is None else markers
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WriteTxnMarkersRequest:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("WriteTxnMarkersRequest", version))
        markers: list[WritableTxnMarker] = []
        count = reader.compact_array_length(17)
        for _ in range(count):
            markers.append(WritableTxnMarker.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return WriteTxnMarkersRequest(markers, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("WriteTxnMarkersRequest", version))
        writer.compact_array_length(len(self.markers))
        for markers_element in self.markers:
            markers_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class WritableTxnMarker(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] | None = None,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.transaction_result: bool = transaction_result
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is None else topics
        self.coordinator_epoch: int = coordinator_epoch
        self.transaction_version: int = transaction_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WritableTxnMarker:
        producer_id = reader.int64()
        producer_epoch = reader.int16()
        transaction_result = reader.boolean()
        topics: list[WritableTxnMarkerTopic] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(WritableTxnMarkerTopic.decode(reader, version))
        coordinator_epoch = reader.int32()
        transaction_version: int = 0
        if version >= 2:
            transaction_version = reader.int8()
        unknown_tags = reader.unknown_tags()
        return WritableTxnMarker(
            producer_id,
            producer_epoch,
            transaction_result,
            topics,
            coordinator_epoch,
            transaction_version,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.producer_id)
        writer.int16(self.producer_epoch)
        writer.boolean(self.transaction_result)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.int32(self.coordinator_epoch)
        if version >= 2:
            writer.int8(self.transaction_version)
        writer.unknown_tags(self.unknown_tags)


class WritableTxnMarkerTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partition_indexes")

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WritableTxnMarkerTopic:
        name = reader.compact_string()
        count = reader.compact_array_length(4)
        partition_indexes = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return WritableTxnMarkerTopic(name, partition_indexes, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partition_indexes))
        writer.int32_list(self.partition_indexes)
        writer.unknown_tags(self.unknown_tags)
