"""Stored records: remote log records (generated).

Written by tools/generate_messages.py from schemas/stored/remote_log_records.txt.
"""

from __future__ import annotations

from typing import ClassVar, Final

from moldau.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    no_such_version,
)
from moldau.protocol.stored.framing import decode_record, encode_record


class RemoteLogSegmentMetadataRecord(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "remote_log_segment_id",
        "start_offset",
        "end_offset",
        "broker_id",
        "max_timestamp_ms",
        "event_timestamp_ms",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "custom_metadata",
        "remote_log_segment_state",
        "txn_index_empty",
    )

    def __init__(
        self,
        remote_log_segment_id: SegmentMetadataId | None = None,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[SegmentMetadataEpoch] | None = None,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.remote_log_segment_id: SegmentMetadataId = (
            SegmentMetadataId() if remote_log_segment_id is None else remote_log_segment_id
        )
        self.start_offset: int = start_offset
        self.end_offset: int = end_offset
        self.broker_id: int = broker_id
        self.max_timestamp_ms: int = max_timestamp_ms
        self.event_timestamp_ms: int = event_timestamp_ms
        self.segment_leader_epochs: list[SegmentMetadataEpoch] = (
            [] if segment_leader_epochs is None else segment_leader_epochs
        )
        self.segment_size_in_bytes: int = segment_size_in_bytes
        self.custom_metadata: bytes | None = custom_metadata
        self.remote_log_segment_state: int = remote_log_segment_state
        self.txn_index_empty: bool = txn_index_empty
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoteLogSegmentMetadataRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemoteLogSegmentMetadataRecord", version))
        remote_log_segment_id = SegmentMetadataId.decode(reader, version)
        start_offset = reader.int64()
        end_offset = reader.int64()
        broker_id = reader.int32()
        max_timestamp_ms = reader.int64()
        event_timestamp_ms = reader.int64()
        segment_leader_epochs: list[SegmentMetadataEpoch] = []
        count = reader.compact_array_length(13)
        for _ in range(count):
            segment_leader_epochs.append(SegmentMetadataEpoch.decode(reader, version))
        segment_size_in_bytes = reader.int32()
        custom_metadata = reader.compact_nullable_bytes()
        remote_log_segment_state = reader.int8()
        txn_index_empty: bool = False
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                txn_index_empty = reader.boolean()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return RemoteLogSegmentMetadataRecord(
            remote_log_segment_id,
            start_offset,
            end_offset,
            broker_id,
            max_timestamp_ms,
            event_timestamp_ms,
            segment_leader_epochs,
            segment_size_in_bytes,
            custom_metadata,
            remote_log_segment_state,
            txn_index_empty,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoteLogSegmentMetadataRecord", version))
        self.remote_log_segment_id.encode(writer, version)
        writer.int64(self.start_offset)
        writer.int64(self.end_offset)
        writer.int32(self.broker_id)
        writer.int64(self.max_timestamp_ms)
        writer.int64(self.event_timestamp_ms)
        writer.compact_array_length(len(self.segment_leader_epochs))
        for segment_leader_epochs_element in self.segment_leader_epochs:
            segment_leader_epochs_element.encode(writer, version)
        writer.int32(self.segment_size_in_bytes)
        writer.compact_nullable_bytes(self.custom_metadata)
        writer.int8(self.remote_log_segment_state)
        tags: UnknownTags = []
        if self.txn_index_empty:
            part = Writer()
            part.boolean(self.txn_index_empty)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class SegmentMetadataId(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id_partition", "id")

    def __init__(
        self,
        topic_id_partition: SegmentMetadataPartition | None = None,
        id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id_partition: SegmentMetadataPartition = (
            SegmentMetadataPartition() if topic_id_partition is None else topic_id_partition
        )
        self.id: bytes = id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SegmentMetadataId:
        topic_id_partition = SegmentMetadataPartition.decode(reader, version)
        id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return SegmentMetadataId(topic_id_partition, id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        self.topic_id_partition.encode(writer, version)
        writer.uuid(self.id)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if not self.topic_id_partition.is_default():
            return False
        if self.id != ZERO_UUID:
            return False
        return self.unknown_tags is None


class SegmentMetadataPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "id", "partition")

    def __init__(
        self,
        name: str = "",
        id: bytes = ZERO_UUID,
        partition: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.id: bytes = id
        self.partition: int = partition
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SegmentMetadataPartition:
        name = reader.compact_string()
        id = reader.uuid()
        partition = reader.int32()
        unknown_tags = reader.unknown_tags()
        return SegmentMetadataPartition(name, id, partition, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.uuid(self.id)
        writer.int32(self.partition)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.name != "":
            return False
        if self.id != ZERO_UUID:
            return False
        if self.partition != 0:
            return False
        return self.unknown_tags is None


class SegmentMetadataEpoch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("leader_epoch", "offset")

    def __init__(self, leader_epoch: int = 0, offset: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.leader_epoch: int = leader_epoch
        self.offset: int = offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SegmentMetadataEpoch:
        leader_epoch = reader.int32()
        offset = reader.int64()
        unknown_tags = reader.unknown_tags()
        return SegmentMetadataEpoch(leader_epoch, offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.leader_epoch)
        writer.int64(self.offset)
        writer.unknown_tags(self.unknown_tags)


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    API_KEY: ClassVar[int] = 3
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "segment_id",
        "start_offset",
        "end_offset",
        "broker_id",
        "max_timestamp_ms",
        "event_timestamp_ms",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "custom_metadata",
        "remote_log_segment_state",
        "txn_index_empty",
    )

    def __init__(
        self,
        segment_id: bytes = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[SegmentSnapshotEpoch] | None = None,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.segment_id: bytes = segment_id
        self.start_offset: int = start_offset
        self.end_offset: int = end_offset
        self.broker_id: int = broker_id
        self.max_timestamp_ms: int = max_timestamp_ms
        self.event_timestamp_ms: int = event_timestamp_ms
        self.segment_leader_epochs: list[SegmentSnapshotEpoch] = (
            [] if segment_leader_epochs is None else segment_leader_epochs
        )
        self.segment_size_in_bytes: int = segment_size_in_bytes
        self.custom_metadata: bytes | None = custom_metadata
        self.remote_log_segment_state: int = remote_log_segment_state
        self.txn_index_empty: bool = txn_index_empty
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoteLogSegmentMetadataSnapshotRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemoteLogSegmentMetadataSnapshotRecord", version))
        segment_id = reader.uuid()
        start_offset = reader.int64()
        end_offset = reader.int64()
        broker_id = reader.int32()
        max_timestamp_ms = reader.int64()
        event_timestamp_ms = reader.int64()
        segment_leader_epochs: list[SegmentSnapshotEpoch] = []
        count = reader.compact_array_length(13)
        for _ in range(count):
            segment_leader_epochs.append(SegmentSnapshotEpoch.decode(reader, version))
        segment_size_in_bytes = reader.int32()
        custom_metadata = reader.compact_nullable_bytes()
        remote_log_segment_state = reader.int8()
        txn_index_empty: bool = False
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                txn_index_empty = reader.boolean()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return RemoteLogSegmentMetadataSnapshotRecord(
            segment_id,
            start_offset,
            end_offset,
            broker_id,
            max_timestamp_ms,
            event_timestamp_ms,
            segment_leader_epochs,
            segment_size_in_bytes,
            custom_metadata,
            remote_log_segment_state,
            txn_index_empty,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoteLogSegmentMetadataSnapshotRecord", version))
        writer.uuid(self.segment_id)
        writer.int64(self.start_offset)
        writer.int64(self.end_offset)
        writer.int32(self.broker_id)
        writer.int64(self.max_timestamp_ms)
        writer.int64(self.event_timestamp_ms)
        writer.compact_array_length(len(self.segment_leader_epochs))
        for segment_leader_epochs_element in self.segment_leader_epochs:
            segment_leader_epochs_element.encode(writer, version)
        writer.int32(self.segment_size_in_bytes)
        writer.compact_nullable_bytes(self.custom_metadata)
        writer.int8(self.remote_log_segment_state)
        tags: UnknownTags = []
        if self.txn_index_empty:
            part = Writer()
            part.boolean(self.txn_index_empty)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class SegmentSnapshotEpoch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("leader_epoch", "offset")

    def __init__(self, leader_epoch: int = 0, offset: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.leader_epoch: int = leader_epoch
        self.offset: int = offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SegmentSnapshotEpoch:
        leader_epoch = reader.int32()
        offset = reader.int64()
        unknown_tags = reader.unknown_tags()
        return SegmentSnapshotEpoch(leader_epoch, offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.leader_epoch)
        writer.int64(self.offset)
        writer.unknown_tags(self.unknown_tags)


class RemoteLogSegmentMetadataUpdateRecord(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "remote_log_segment_id",
        "broker_id",
        "event_timestamp_ms",
        "custom_metadata",
        "remote_log_segment_state",
    )

    def __init__(
        self,
        remote_log_segment_id: SegmentUpdateId | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.remote_log_segment_id: SegmentUpdateId = (
            SegmentUpdateId() if remote_log_segment_id is None else remote_log_segment_id
        )
        self.broker_id: int = broker_id
        self.event_timestamp_ms: int = event_timestamp_ms
        self.custom_metadata: bytes | None = custom_metadata
        self.remote_log_segment_state: int = remote_log_segment_state
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoteLogSegmentMetadataUpdateRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemoteLogSegmentMetadataUpdateRecord", version))
        remote_log_segment_id = SegmentUpdateId.decode(reader, version)
        broker_id = reader.int32()
        event_timestamp_ms = reader.int64()
        custom_metadata = reader.compact_nullable_bytes()
        remote_log_segment_state = reader.int8()
        unknown_tags = reader.unknown_tags()
        return RemoteLogSegmentMetadataUpdateRecord(
            remote_log_segment_id,
            broker_id,
            event_timestamp_ms,
            custom_metadata,
            remote_log_segment_state,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoteLogSegmentMetadataUpdateRecord", version))
        self.remote_log_segment_id.encode(writer, version)
        writer.int32(self.broker_id)
        writer.int64(self.event_timestamp_ms)
        writer.compact_nullable_bytes(self.custom_metadata)
        writer.int8(self.remote_log_segment_state)
        writer.unknown_tags(self.unknown_tags)


class SegmentUpdateId(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id_partition", "id")

    def __init__(
        self,
        topic_id_partition: SegmentUpdatePartition | None = None,
        id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id_partition: SegmentUpdatePartition = (
            SegmentUpdatePartition() if topic_id_partition is None else topic_id_partition
        )
        self.id: bytes = id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SegmentUpdateId:
        topic_id_partition = SegmentUpdatePartition.decode(reader, version)
        id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return SegmentUpdateId(topic_id_partition, id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        self.topic_id_partition.encode(writer, version)
        writer.uuid(self.id)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if not self.topic_id_partition.is_default():
            return False
        if self.id != ZERO_UUID:
            return False
        return self.unknown_tags is None


class SegmentUpdatePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "id", "partition")

    def __init__(
        self,
        name: str = "",
        id: bytes = ZERO_UUID,
        partition: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.id: bytes = id
        self.partition: int = partition
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SegmentUpdatePartition:
        name = reader.compact_string()
        id = reader.uuid()
        partition = reader.int32()
        unknown_tags = reader.unknown_tags()
        return SegmentUpdatePartition(name, id, partition, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.uuid(self.id)
        writer.int32(self.partition)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.name != "":
            return False
        if self.id != ZERO_UUID:
            return False
        if self.partition != 0:
            return False
        return self.unknown_tags is None


class RemotePartitionDeleteMetadataRecord(Message):
    API_KEY: ClassVar[int] = 2
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "topic_id_partition",
        "broker_id",
        "event_timestamp_ms",
        "remote_partition_delete_state",
    )

    def __init__(
        self,
        topic_id_partition: PartitionDeletePartition | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id_partition: PartitionDeletePartition = (
            PartitionDeletePartition() if topic_id_partition is None else topic_id_partition
        )
        self.broker_id: int = broker_id
        self.event_timestamp_ms: int = event_timestamp_ms
        self.remote_partition_delete_state: int = remote_partition_delete_state
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemotePartitionDeleteMetadataRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemotePartitionDeleteMetadataRecord", version))
        topic_id_partition = PartitionDeletePartition.decode(reader, version)
        broker_id = reader.int32()
        event_timestamp_ms = reader.int64()
        remote_partition_delete_state = reader.int8()
        unknown_tags = reader.unknown_tags()
        return RemotePartitionDeleteMetadataRecord(
            topic_id_partition,
            broker_id,
            event_timestamp_ms,
            remote_partition_delete_state,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemotePartitionDeleteMetadataRecord", version))
        self.topic_id_partition.encode(writer, version)
        writer.int32(self.broker_id)
        writer.int64(self.event_timestamp_ms)
        writer.int8(self.remote_partition_delete_state)
        writer.unknown_tags(self.unknown_tags)


class PartitionDeletePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "id", "partition")

    def __init__(
        self,
        name: str = "",
        id: bytes = ZERO_UUID,
        partition: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.id: bytes = id
        self.partition: int = partition
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionDeletePartition:
        name = reader.compact_string()
        id = reader.uuid()
        partition = reader.int32()
        unknown_tags = reader.unknown_tags()
        return PartitionDeletePartition(name, id, partition, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.uuid(self.id)
        writer.int32(self.partition)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.name != "":
            return False
        if self.id != ZERO_UUID:
            return False
        if self.partition != 0:
            return False
        return self.unknown_tags is None


REMOTE_LOG_RECORDS: Final[dict[int, type[Message]]] = {
    0: RemoteLogSegmentMetadataRecord,
    1: RemoteLogSegmentMetadataUpdateRecord,
    2: RemotePartitionDeleteMetadataRecord,
    3: RemoteLogSegmentMetadataSnapshotRecord,
}


def encode_remote_log_record(record: Message, version: int) -> bytes:
    return encode_record(record, version)


def decode_remote_log_record(data: bytes) -> Message:
    return decode_record(REMOTE_LOG_RECORDS, data)
