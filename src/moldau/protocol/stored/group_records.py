"""Stored records: group records (generated).

Written by tools/generate_messages.py from schemas/stored/group_records.txt.
"""

from __future__ import annotations

from typing import ClassVar, Final

from moldau.protocol.primitives import (
    NOT_GIVEN,
    ZERO_UUID,
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


class LegacyOffsetCommitKey(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group", "topic", "partition")

    def __init__(
        self,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group: str = group
        self.topic: str = topic
        self.partition: int = partition
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LegacyOffsetCommitKey:
        if version != 0:
            raise DecodeError(no_such_version("LegacyOffsetCommitKey", version))
        group = reader.string()
        topic = reader.string()
        partition = reader.int32()
        return LegacyOffsetCommitKey(group, topic, partition)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("LegacyOffsetCommitKey", version))
        writer.string(self.group)
        writer.string(self.topic)
        writer.int32(self.partition)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class LegacyOffsetCommitValue(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("offset", "metadata", "commit_timestamp")

    def __init__(
        self,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.offset: int = offset
        self.metadata: str = metadata
        self.commit_timestamp: int = commit_timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LegacyOffsetCommitValue:
        if version != 0:
            raise DecodeError(no_such_version("LegacyOffsetCommitValue", version))
        offset = reader.int64()
        metadata = reader.string()
        commit_timestamp = reader.int64()
        return LegacyOffsetCommitValue(offset, metadata, commit_timestamp)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("LegacyOffsetCommitValue", version))
        writer.int64(self.offset)
        writer.string(self.metadata)
        writer.int64(self.commit_timestamp)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetCommitKey(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group", "topic", "partition")

    def __init__(
        self,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group: str = group
        self.topic: str = topic
        self.partition: int = partition
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetCommitKey:
        if version != 0:
            raise DecodeError(no_such_version("OffsetCommitKey", version))
        group = reader.string()
        topic = reader.string()
        partition = reader.int32()
        return OffsetCommitKey(group, topic, partition)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("OffsetCommitKey", version))
        writer.string(self.group)
        writer.string(self.topic)
        writer.int32(self.partition)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetCommitValue(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = (
        "offset",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "expire_timestamp",
        "topic_id",
    )

    def __init__(
        self,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch
        self.metadata: str = metadata
        self.commit_timestamp: int = commit_timestamp
        self.expire_timestamp: int = expire_timestamp
        self.topic_id: bytes = topic_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetCommitValue:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("OffsetCommitValue", version))
        offset = reader.int64()
        leader_epoch: int = -1
        if version >= 3:
            leader_epoch = reader.int32()
        metadata: str
        if version >= 4:
            metadata = reader.compact_string()
        else:
            metadata = reader.string()
        commit_timestamp = reader.int64()
        expire_timestamp: int = -1
        if version == 1:
            expire_timestamp = reader.int64()
        topic_id: bytes = ZERO_UUID
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    topic_id = reader.uuid()
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return OffsetCommitValue(
            offset,
            leader_epoch,
            metadata,
            commit_timestamp,
            expire_timestamp,
            topic_id,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("OffsetCommitValue", version))
        writer.int64(self.offset)
        if version >= 3:
            writer.int32(self.leader_epoch)
        if version >= 4:
            writer.compact_string(self.metadata)
        else:
            writer.string(self.metadata)
        writer.int64(self.commit_timestamp)
        if version == 1:
            writer.int64(self.expire_timestamp)
        if version >= 4:
            tags: UnknownTags = []
            if self.topic_id != ZERO_UUID:
                part = Writer()
                part.uuid(self.topic_id)
                tags.append((0, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class GroupMetadataKey(Message):
    API_KEY: ClassVar[int] = 2
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group",)

    def __init__(self, group: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group: str = group
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> GroupMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("GroupMetadataKey", version))
        group = reader.string()
        return GroupMetadataKey(group)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("GroupMetadataKey", version))
        writer.string(self.group)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class GroupMetadataValue(Message):
    API_KEY: ClassVar[int] = 2
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = (
        "protocol_type",
        "generation",
        "protocol",
        "leader",
        "current_state_timestamp",
        "members",
    )

    def __init__(
        self,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.protocol_type: str = protocol_type
        self.generation: int = generation
        self.protocol: str | None = protocol
        self.leader: str | None = leader
        self.current_state_timestamp: int = current_state_timestamp
        self.members: list[MemberMetadata] = [] if members is None else members
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> GroupMetadataValue:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("GroupMetadataValue", version))
        protocol_type: str
        if version >= 4:
            protocol_type = reader.compact_string()
        else:
            protocol_type = reader.string()
        generation = reader.int32()
        protocol: str | None
        if version >= 4:
            protocol = reader.compact_nullable_string()
        else:
            protocol = reader.nullable_string()
        leader: str | None
        if version >= 4:
            leader = reader.compact_nullable_string()
        else:
            leader = reader.nullable_string()
        current_state_timestamp: int = -1
        if version >= 2:
            current_state_timestamp = reader.int64()
        members: list[MemberMetadata] = []
        if version >= 4:
            count = reader.compact_array_length(15)
        else:
            count = reader.array_length(18)
        for _ in range(count):
            members.append(MemberMetadata.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return GroupMetadataValue(
            protocol_type,
            generation,
            protocol,
            leader,
            current_state_timestamp,
            members,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("GroupMetadataValue", version))
        if version >= 4:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        writer.int32(self.generation)
        if version >= 4:
            writer.compact_nullable_string(self.protocol)
        else:
            writer.nullable_string(self.protocol)
        if version >= 4:
            writer.compact_nullable_string(self.leader)
        else:
            writer.nullable_string(self.leader)
        if version >= 2:
            writer.int64(self.current_state_timestamp)
        if version >= 4:
            writer.compact_array_length(len(self.members))
        else:
            writer.array_length(len(self.members))
        for members_element in self.members:
            members_element.encode(writer, version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class MemberMetadata(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
        "assignment",
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.rebalance_timeout: int = rebalance_timeout
        self.session_timeout: int = session_timeout
        self.subscription: bytes = subscription
        self.assignment: bytes = assignment
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MemberMetadata:
        member_id: str
        if version >= 4:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        group_instance_id: str | None = None
        if version >= 4:
            group_instance_id = reader.compact_nullable_string()
        elif version >= 3:
            group_instance_id = reader.nullable_string()
        client_id: str
        if version >= 4:
            client_id = reader.compact_string()
        else:
            client_id = reader.string()
        client_host: str
        if version >= 4:
            client_host = reader.compact_string()
        else:
            client_host = reader.string()
        rebalance_timeout: int = -1
        if version >= 1:
            rebalance_timeout = reader.int32()
        session_timeout = reader.int32()
        subscription: bytes
        if version >= 4:
            subscription = reader.compact_bytes()
        else:
            subscription = reader.bytes_()
        assignment: bytes
        if version >= 4:
            assignment = reader.compact_bytes()
        else:
            assignment = reader.bytes_()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return MemberMetadata(
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout,
            session_timeout,
            subscription,
            assignment,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 3:
            writer.nullable_string(self.group_instance_id)
        if version >= 4:
            writer.compact_string(self.client_id)
        else:
            writer.string(self.client_id)
        if version >= 4:
            writer.compact_string(self.client_host)
        else:
            writer.string(self.client_host)
        if version >= 1:
            writer.int32(self.rebalance_timeout)
        writer.int32(self.session_timeout)
        if version >= 4:
            writer.compact_bytes(self.subscription)
        else:
            writer.bytes_(self.subscription)
        if version >= 4:
            writer.compact_bytes(self.assignment)
        else:
            writer.bytes_(self.assignment)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupMetadataKey(Message):
    API_KEY: ClassVar[int] = 3
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupMetadataKey", version))
        group_id = reader.string()
        return ConsumerGroupMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupMetadataValue(Message):
    API_KEY: ClassVar[int] = 3
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("epoch", "metadata_hash")

    def __init__(self, epoch: int = 0, metadata_hash: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupMetadataValue", version))
        epoch = reader.int32()
        metadata_hash: int = 0
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                metadata_hash = reader.int64()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return ConsumerGroupMetadataValue(epoch, metadata_hash, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupMetadataValue", version))
        writer.int32(self.epoch)
        tags: UnknownTags = []
        if self.metadata_hash != 0:
            part = Writer()
            part.int64(self.metadata_hash)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ConsumerGroupPartitionMetadataKey(Message):
    API_KEY: ClassVar[int] = 4
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupPartitionMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupPartitionMetadataKey", version))
        group_id = reader.string()
        return ConsumerGroupPartitionMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupPartitionMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupPartitionMetadataValue(Message):
    API_KEY: ClassVar[int] = 4
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topics",)

    def __init__(self, topics: list[TopicMetadata] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.topics: list[TopicMetadata] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupPartitionMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupPartitionMetadataValue", version))
        topics: list[TopicMetadata] = []
        count = reader.compact_array_length(23)
        for _ in range(count):
            topics.append(TopicMetadata.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ConsumerGroupPartitionMetadataValue(topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupPartitionMetadataValue", version))
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicMetadata(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "topic_name", "num_partitions", "partition_metadata")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.num_partitions: int = num_partitions
        self.partition_metadata: list[PartitionMetadata] = [] if partition_metadata is None else partition_metadata
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicMetadata:
        topic_id = reader.uuid()
        topic_name = reader.compact_string()
        num_partitions = reader.int32()
        partition_metadata: list[PartitionMetadata] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            partition_metadata.append(PartitionMetadata.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicMetadata(topic_id, topic_name, num_partitions, partition_metadata, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_string(self.topic_name)
        writer.int32(self.num_partitions)
        writer.compact_array_length(len(self.partition_metadata))
        for partition_metadata_element in self.partition_metadata:
            partition_metadata_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionMetadata(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition", "racks")

    def __init__(
        self,
        partition: int = 0,
        racks: list[str] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition: int = partition
        self.racks: list[str] = [] if racks is None else racks
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionMetadata:
        partition = reader.int32()
        count = reader.compact_array_length(1)
        racks = reader.compact_string_list(count)
        unknown_tags = reader.unknown_tags()
        return PartitionMetadata(partition, racks, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.compact_array_length(len(self.racks))
        writer.compact_string_list(self.racks)
        writer.unknown_tags(self.unknown_tags)


class ConsumerGroupMemberMetadataKey(Message):
    API_KEY: ClassVar[int] = 5
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupMemberMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupMemberMetadataKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return ConsumerGroupMemberMetadataKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupMemberMetadataKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupMemberMetadataValue(Message):
    API_KEY: ClassVar[int] = 5
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "rebalance_timeout_ms",
        "server_assignor",
        "classic_member_metadata",
    )

    def __init__(
        self,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is None else subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.server_assignor: str | None = server_assignor
        self.classic_member_metadata: ClassicMemberMetadata | None = classic_member_metadata
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupMemberMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupMemberMetadataValue", version))
        instance_id = reader.compact_nullable_string()
        rack_id = reader.compact_nullable_string()
        client_id = reader.compact_string()
        client_host = reader.compact_string()
        count = reader.compact_array_length(1)
        subscribed_topic_names = reader.compact_string_list(count)
        subscribed_topic_regex = reader.compact_nullable_string()
        rebalance_timeout_ms = reader.int32()
        server_assignor = reader.compact_nullable_string()
        classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                classic_member_metadata = ClassicMemberMetadata.decode(reader, version) if reader.int8() > 0 else None
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return ConsumerGroupMemberMetadataValue(
            instance_id,
            rack_id,
            client_id,
            client_host,
            subscribed_topic_names,
            subscribed_topic_regex,
            rebalance_timeout_ms,
            server_assignor,
            classic_member_metadata,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupMemberMetadataValue", version))
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.compact_array_length(len(self.subscribed_topic_names))
        writer.compact_string_list(self.subscribed_topic_names)
        writer.compact_nullable_string(self.subscribed_topic_regex)
        writer.int32(self.rebalance_timeout_ms)
        writer.compact_nullable_string(self.server_assignor)
        tags: UnknownTags = []
        if self.classic_member_metadata is None or not self.classic_member_metadata.is_default():
            part = Writer()
            if self.classic_member_metadata is None:
                part.int8(0)
            else:
                part.int8(1)
                self.classic_member_metadata.encode(part, version)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ClassicMemberMetadata(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("session_timeout_ms", "supported_protocols")

    def __init__(
        self,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.session_timeout_ms: int = session_timeout_ms
        self.supported_protocols: list[ClassicProtocol] = [] if supported_protocols is None else supported_protocols
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ClassicMemberMetadata:
        session_timeout_ms = reader.int32()
        supported_protocols: list[ClassicProtocol] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            supported_protocols.append(ClassicProtocol.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ClassicMemberMetadata(session_timeout_ms, supported_protocols, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.session_timeout_ms)
        writer.compact_array_length(len(self.supported_protocols))
        for supported_protocols_element in self.supported_protocols:
            supported_protocols_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.session_timeout_ms != 0:
            return False
        if len(self.supported_protocols) > 0:
            return False
        return self.unknown_tags is None


class ClassicProtocol(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "metadata")

    def __init__(self, name: str = "", metadata: bytes = b"", unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.metadata: bytes = metadata
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ClassicProtocol:
        name = reader.compact_string()
        metadata = reader.compact_bytes()
        unknown_tags = reader.unknown_tags()
        return ClassicProtocol(name, metadata, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_bytes(self.metadata)
        writer.unknown_tags(self.unknown_tags)


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    API_KEY: ClassVar[int] = 6
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupTargetAssignmentMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupTargetAssignmentMetadataKey", version))
        group_id = reader.string()
        return ConsumerGroupTargetAssignmentMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupTargetAssignmentMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    API_KEY: ClassVar[int] = 6
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("assignment_epoch", "assignment_timestamp")

    def __init__(
        self,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupTargetAssignmentMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupTargetAssignmentMetadataValue", version))
        assignment_epoch = reader.int32()
        assignment_timestamp: int = 0
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                assignment_timestamp = reader.int64()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch, assignment_timestamp, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupTargetAssignmentMetadataValue", version))
        writer.int32(self.assignment_epoch)
        tags: UnknownTags = []
        if self.assignment_timestamp != 0:
            part = Writer()
            part.int64(self.assignment_timestamp)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ConsumerGroupTargetAssignmentMemberKey(Message):
    API_KEY: ClassVar[int] = 7
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupTargetAssignmentMemberKey:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupTargetAssignmentMemberKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupTargetAssignmentMemberKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupTargetAssignmentMemberValue(Message):
    API_KEY: ClassVar[int] = 7
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[ConsumerTargetPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_partitions: list[ConsumerTargetPartitions] = [] if topic_partitions is None else topic_partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupTargetAssignmentMemberValue:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupTargetAssignmentMemberValue", version))
        topic_partitions: list[ConsumerTargetPartitions] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topic_partitions.append(ConsumerTargetPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ConsumerGroupTargetAssignmentMemberValue(topic_partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupTargetAssignmentMemberValue", version))
        writer.compact_array_length(len(self.topic_partitions))
        for topic_partitions_element in self.topic_partitions:
            topic_partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ConsumerTargetPartitions(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerTargetPartitions:
        topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return ConsumerTargetPartitions(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    API_KEY: ClassVar[int] = 8
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupCurrentMemberAssignmentKey:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupCurrentMemberAssignmentKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupCurrentMemberAssignmentKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    API_KEY: ClassVar[int] = 8
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "assigned_partitions",
        "partitions_pending_revocation",
    )

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ConsumerCurrentPartitions] | None = None,
        partitions_pending_revocation: list[ConsumerCurrentPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.assigned_partitions: list[ConsumerCurrentPartitions] = (
            [] if assigned_partitions is None else assigned_partitions
        )
        self.partitions_pending_revocation: list[ConsumerCurrentPartitions] = (
            [] if partitions_pending_revocation is None else partitions_pending_revocation
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupCurrentMemberAssignmentValue:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupCurrentMemberAssignmentValue", version))
        member_epoch = reader.int32()
        previous_member_epoch = reader.int32()
        state = reader.int8()
        assigned_partitions: list[ConsumerCurrentPartitions] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            assigned_partitions.append(ConsumerCurrentPartitions.decode(reader, version))
        partitions_pending_revocation: list[ConsumerCurrentPartitions] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            partitions_pending_revocation.append(ConsumerCurrentPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch,
            previous_member_epoch,
            state,
            assigned_partitions,
            partitions_pending_revocation,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupCurrentMemberAssignmentValue", version))
        writer.int32(self.member_epoch)
        writer.int32(self.previous_member_epoch)
        writer.int8(self.state)
        writer.compact_array_length(len(self.assigned_partitions))
        for assigned_partitions_element in self.assigned_partitions:
            assigned_partitions_element.encode(writer, version)
        writer.compact_array_length(len(self.partitions_pending_revocation))
        for partitions_pending_revocation_element in self.partitions_pending_revocation:
            partitions_pending_revocation_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ConsumerCurrentPartitions(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions", "assignment_epochs")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
        assignment_epochs: list[int] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.assignment_epochs: list[int] | None = [] if assignment_epochs is NOT_GIVEN else assignment_epochs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerCurrentPartitions:
        topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        assignment_epochs: list[int] | None = []
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                count = reader.compact_nullable_array_length(4)
                assignment_epochs = None if count < 0 else reader.int32_list(count)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return ConsumerCurrentPartitions(topic_id, partitions, assignment_epochs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        tags: UnknownTags = []
        if self.assignment_epochs is None or len(self.assignment_epochs) > 0:
            part = Writer()
            if self.assignment_epochs is None:
                part.compact_array_length(-1)
            else:
                part.compact_array_length(len(self.assignment_epochs))
                part.int32_list(self.assignment_epochs)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ShareGroupMemberMetadataKey(Message):
    API_KEY: ClassVar[int] = 10
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupMemberMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupMemberMetadataKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return ShareGroupMemberMetadataKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupMemberMetadataKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareGroupMemberMetadataValue(Message):
    API_KEY: ClassVar[int] = 10
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("rack_id", "client_id", "client_host", "subscribed_topic_names")

    def __init__(
        self,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is None else subscribed_topic_names
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupMemberMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupMemberMetadataValue", version))
        rack_id = reader.compact_nullable_string()
        client_id = reader.compact_string()
        client_host = reader.compact_string()
        count = reader.compact_array_length(1)
        subscribed_topic_names = reader.compact_string_list(count)
        unknown_tags = reader.unknown_tags()
        return ShareGroupMemberMetadataValue(rack_id, client_id, client_host, subscribed_topic_names, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupMemberMetadataValue", version))
        writer.compact_nullable_string(self.rack_id)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.compact_array_length(len(self.subscribed_topic_names))
        writer.compact_string_list(self.subscribed_topic_names)
        writer.unknown_tags(self.unknown_tags)


class ShareGroupMetadataKey(Message):
    API_KEY: ClassVar[int] = 11
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupMetadataKey", version))
        group_id = reader.string()
        return ShareGroupMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareGroupMetadataValue(Message):
    API_KEY: ClassVar[int] = 11
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("epoch", "metadata_hash")

    def __init__(self, epoch: int = 0, metadata_hash: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupMetadataValue", version))
        epoch = reader.int32()
        metadata_hash = reader.int64()
        unknown_tags = reader.unknown_tags()
        return ShareGroupMetadataValue(epoch, metadata_hash, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupMetadataValue", version))
        writer.int32(self.epoch)
        writer.int64(self.metadata_hash)
        writer.unknown_tags(self.unknown_tags)


class ShareGroupTargetAssignmentMetadataKey(Message):
    API_KEY: ClassVar[int] = 12
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupTargetAssignmentMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupTargetAssignmentMetadataKey", version))
        group_id = reader.string()
        return ShareGroupTargetAssignmentMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupTargetAssignmentMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareGroupTargetAssignmentMetadataValue(Message):
    API_KEY: ClassVar[int] = 12
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("assignment_epoch", "assignment_timestamp")

    def __init__(
        self,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupTargetAssignmentMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupTargetAssignmentMetadataValue", version))
        assignment_epoch = reader.int32()
        assignment_timestamp: int = 0
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                assignment_timestamp = reader.int64()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return ShareGroupTargetAssignmentMetadataValue(assignment_epoch, assignment_timestamp, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupTargetAssignmentMetadataValue", version))
        writer.int32(self.assignment_epoch)
        tags: UnknownTags = []
        if self.assignment_timestamp != 0:
            part = Writer()
            part.int64(self.assignment_timestamp)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ShareGroupTargetAssignmentMemberKey(Message):
    API_KEY: ClassVar[int] = 13
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupTargetAssignmentMemberKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupTargetAssignmentMemberKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return ShareGroupTargetAssignmentMemberKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupTargetAssignmentMemberKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareGroupTargetAssignmentMemberValue(Message):
    API_KEY: ClassVar[int] = 13
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[ShareTargetPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_partitions: list[ShareTargetPartitions] = [] if topic_partitions is None else topic_partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupTargetAssignmentMemberValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupTargetAssignmentMemberValue", version))
        topic_partitions: list[ShareTargetPartitions] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topic_partitions.append(ShareTargetPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareGroupTargetAssignmentMemberValue(topic_partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupTargetAssignmentMemberValue", version))
        writer.compact_array_length(len(self.topic_partitions))
        for topic_partitions_element in self.topic_partitions:
            topic_partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ShareTargetPartitions(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareTargetPartitions:
        topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return ShareTargetPartitions(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)


class ShareGroupCurrentMemberAssignmentKey(Message):
    API_KEY: ClassVar[int] = 14
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupCurrentMemberAssignmentKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupCurrentMemberAssignmentKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return ShareGroupCurrentMemberAssignmentKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupCurrentMemberAssignmentKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareGroupCurrentMemberAssignmentValue(Message):
    API_KEY: ClassVar[int] = 14
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ShareCurrentPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.assigned_partitions: list[ShareCurrentPartitions] = (
            [] if assigned_partitions is None else assigned_partitions
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupCurrentMemberAssignmentValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupCurrentMemberAssignmentValue", version))
        member_epoch = reader.int32()
        previous_member_epoch = reader.int32()
        state = reader.int8()
        assigned_partitions: list[ShareCurrentPartitions] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            assigned_partitions.append(ShareCurrentPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch,
            previous_member_epoch,
            state,
            assigned_partitions,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupCurrentMemberAssignmentValue", version))
        writer.int32(self.member_epoch)
        writer.int32(self.previous_member_epoch)
        writer.int8(self.state)
        writer.compact_array_length(len(self.assigned_partitions))
        for assigned_partitions_element in self.assigned_partitions:
            assigned_partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ShareCurrentPartitions(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareCurrentPartitions:
        topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return ShareCurrentPartitions(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)


class ShareGroupStatePartitionMetadataKey(Message):
    API_KEY: ClassVar[int] = 15
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupStatePartitionMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupStatePartitionMetadataKey", version))
        group_id = reader.string()
        return ShareGroupStatePartitionMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupStatePartitionMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareGroupStatePartitionMetadataValue(Message):
    API_KEY: ClassVar[int] = 15
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("initializing_topics", "initialized_topics", "deleting_topics")

    def __init__(
        self,
        initializing_topics: list[TopicPartitionsInfo] | None = None,
        initialized_topics: list[TopicPartitionsInfo] | None = None,
        deleting_topics: list[ShareTopicInfo] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.initializing_topics: list[TopicPartitionsInfo] = [] if initializing_topics is None else initializing_topics
        self.initialized_topics: list[TopicPartitionsInfo] = [] if initialized_topics is None else initialized_topics
        self.deleting_topics: list[ShareTopicInfo] = [] if deleting_topics is None else deleting_topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupStatePartitionMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareGroupStatePartitionMetadataValue", version))
        initializing_topics: list[TopicPartitionsInfo] = []
        count = reader.compact_array_length(19)
        for _ in range(count):
            initializing_topics.append(TopicPartitionsInfo.decode(reader, version))
        initialized_topics: list[TopicPartitionsInfo] = []
        count = reader.compact_array_length(19)
        for _ in range(count):
            initialized_topics.append(TopicPartitionsInfo.decode(reader, version))
        deleting_topics: list[ShareTopicInfo] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            deleting_topics.append(ShareTopicInfo.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics,
            initialized_topics,
            deleting_topics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareGroupStatePartitionMetadataValue", version))
        writer.compact_array_length(len(self.initializing_topics))
        for initializing_topics_element in self.initializing_topics:
            initializing_topics_element.encode(writer, version)
        writer.compact_array_length(len(self.initialized_topics))
        for initialized_topics_element in self.initialized_topics:
            initialized_topics_element.encode(writer, version)
        writer.compact_array_length(len(self.deleting_topics))
        for deleting_topics_element in self.deleting_topics:
            deleting_topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicPartitionsInfo(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "topic_name", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicPartitionsInfo:
        topic_id = reader.uuid()
        topic_name = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return TopicPartitionsInfo(topic_id, topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_string(self.topic_name)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)


class ShareTopicInfo(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "topic_name")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareTopicInfo:
        topic_id = reader.uuid()
        topic_name = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return ShareTopicInfo(topic_id, topic_name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_string(self.topic_name)
        writer.unknown_tags(self.unknown_tags)


class ConsumerGroupRegularExpressionKey(Message):
    API_KEY: ClassVar[int] = 16
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "regular_expression")

    def __init__(
        self,
        group_id: str = "",
        regular_expression: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.regular_expression: str = regular_expression
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupRegularExpressionKey:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupRegularExpressionKey", version))
        group_id = reader.string()
        regular_expression = reader.string()
        return ConsumerGroupRegularExpressionKey(group_id, regular_expression)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupRegularExpressionKey", version))
        writer.string(self.group_id)
        writer.string(self.regular_expression)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerGroupRegularExpressionValue(Message):
    API_KEY: ClassVar[int] = 16
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topics", "version", "timestamp")

    def __init__(
        self,
        topics: list[str] | None = None,
        version: int = 0,
        timestamp: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[str] = [] if topics is None else topics
        self.version: int = version
        self.timestamp: int = timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupRegularExpressionValue:
        if version != 0:
            raise DecodeError(no_such_version("ConsumerGroupRegularExpressionValue", version))
        count = reader.compact_array_length(1)
        topics = reader.compact_string_list(count)
        version_ = reader.int64()
        timestamp = reader.int64()
        unknown_tags = reader.unknown_tags()
        return ConsumerGroupRegularExpressionValue(topics, version_, timestamp, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConsumerGroupRegularExpressionValue", version))
        writer.compact_array_length(len(self.topics))
        writer.compact_string_list(self.topics)
        writer.int64(self.version)
        writer.int64(self.timestamp)
        writer.unknown_tags(self.unknown_tags)


class StreamsGroupMetadataKey(Message):
    API_KEY: ClassVar[int] = 17
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupMetadataKey", version))
        group_id = reader.string()
        return StreamsGroupMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class StreamsGroupMetadataValue(Message):
    API_KEY: ClassVar[int] = 17
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "epoch",
        "metadata_hash",
        "validated_topology_epoch",
        "last_assignment_configs",
    )

    def __init__(
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash
        self.validated_topology_epoch: int = validated_topology_epoch
        self.last_assignment_configs: list[LastAssignmentConfig] | None = (
            [] if last_assignment_configs is NOT_GIVEN else last_assignment_configs
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupMetadataValue", version))
        epoch = reader.int32()
        metadata_hash = reader.int64()
        validated_topology_epoch: int = -1
        last_assignment_configs: list[LastAssignmentConfig] | None = []
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                validated_topology_epoch = reader.int32()
            elif tag == 1:
                count = reader.compact_nullable_array_length(3)
                if count < 0:
                    last_assignment_configs = None
                else:
                    last_assignment_configs = []
                    for _ in range(count):
                        last_assignment_configs.append(LastAssignmentConfig.decode(reader, version))
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return StreamsGroupMetadataValue(
            epoch,
            metadata_hash,
            validated_topology_epoch,
            last_assignment_configs,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupMetadataValue", version))
        writer.int32(self.epoch)
        writer.int64(self.metadata_hash)
        tags: UnknownTags = []
        if self.validated_topology_epoch != -1:
            part = Writer()
            part.int32(self.validated_topology_epoch)
            tags.append((0, part.to_bytes()))
        if self.last_assignment_configs is None or len(self.last_assignment_configs) > 0:
            part = Writer()
            if self.last_assignment_configs is None:
                part.compact_array_length(-1)
            else:
                part.compact_array_length(len(self.last_assignment_configs))
                for last_assignment_configs_element in self.last_assignment_configs:
                    last_assignment_configs_element.encode(part, version)
            tags.append((1, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class LastAssignmentConfig(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "value")

    def __init__(self, key: str = "", value: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.key: str = key
        self.value: str = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LastAssignmentConfig:
        key = reader.compact_string()
        value = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return LastAssignmentConfig(key, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.key)
        writer.compact_string(self.value)
        writer.unknown_tags(self.unknown_tags)


class StreamsGroupMemberMetadataKey(Message):
    API_KEY: ClassVar[int] = 19
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupMemberMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupMemberMetadataKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return StreamsGroupMemberMetadataKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupMemberMetadataKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class StreamsGroupMemberMetadataValue(Message):
    API_KEY: ClassVar[int] = 19
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "rebalance_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
    )

    def __init__(
        self,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.topology_epoch: int = topology_epoch
        self.process_id: str = process_id
        self.user_endpoint: Endpoint | None = user_endpoint
        self.client_tags: list[KeyValue] = [] if client_tags is None else client_tags
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupMemberMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupMemberMetadataValue", version))
        instance_id = reader.compact_nullable_string()
        rack_id = reader.compact_nullable_string()
        client_id = reader.compact_string()
        client_host = reader.compact_string()
        rebalance_timeout_ms = reader.int32()
        topology_epoch = reader.int32()
        process_id = reader.compact_string()
        user_endpoint = Endpoint.decode(reader, version) if reader.int8() >= 0 else None
        client_tags: list[KeyValue] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            client_tags.append(KeyValue.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return StreamsGroupMemberMetadataValue(
            instance_id,
            rack_id,
            client_id,
            client_host,
            rebalance_timeout_ms,
            topology_epoch,
            process_id,
            user_endpoint,
            client_tags,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupMemberMetadataValue", version))
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.int32(self.rebalance_timeout_ms)
        writer.int32(self.topology_epoch)
        writer.compact_string(self.process_id)
        if self.user_endpoint is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.user_endpoint.encode(writer, version)
        writer.compact_array_length(len(self.client_tags))
        for client_tags_element in self.client_tags:
            client_tags_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Endpoint(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("host", "port")

    def __init__(self, host: str = "", port: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Endpoint:
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return Endpoint(host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.unknown_tags(self.unknown_tags)


class KeyValue(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "value")

    def __init__(self, key: str = "", value: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.key: str = key
        self.value: str = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> KeyValue:
        key = reader.compact_string()
        value = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return KeyValue(key, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.key)
        writer.compact_string(self.value)
        writer.unknown_tags(self.unknown_tags)


class StreamsGroupTargetAssignmentMetadataKey(Message):
    API_KEY: ClassVar[int] = 20
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupTargetAssignmentMetadataKey:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupTargetAssignmentMetadataKey", version))
        group_id = reader.string()
        return StreamsGroupTargetAssignmentMetadataKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupTargetAssignmentMetadataKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class StreamsGroupTargetAssignmentMetadataValue(Message):
    API_KEY: ClassVar[int] = 20
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("assignment_epoch", "assignment_timestamp")

    def __init__(
        self,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupTargetAssignmentMetadataValue:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupTargetAssignmentMetadataValue", version))
        assignment_epoch = reader.int32()
        assignment_timestamp: int = 0
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                assignment_timestamp = reader.int64()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return StreamsGroupTargetAssignmentMetadataValue(assignment_epoch, assignment_timestamp, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupTargetAssignmentMetadataValue", version))
        writer.int32(self.assignment_epoch)
        tags: UnknownTags = []
        if self.assignment_timestamp != 0:
            part = Writer()
            part.int64(self.assignment_timestamp)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class StreamsGroupTargetAssignmentMemberKey(Message):
    API_KEY: ClassVar[int] = 21
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupTargetAssignmentMemberKey:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupTargetAssignmentMemberKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return StreamsGroupTargetAssignmentMemberKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupTargetAssignmentMemberKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class StreamsGroupTargetAssignmentMemberValue(Message):
    API_KEY: ClassVar[int] = 21
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("active_tasks", "standby_tasks", "warmup_tasks")

    def __init__(
        self,
        active_tasks: list[StreamsTargetTasks] | None = None,
        standby_tasks: list[StreamsTargetTasks] | None = None,
        warmup_tasks: list[StreamsTargetTasks] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.active_tasks: list[StreamsTargetTasks] = [] if active_tasks is None else active_tasks
        self.standby_tasks: list[StreamsTargetTasks] = [] if standby_tasks is None else standby_tasks
        self.warmup_tasks: list[StreamsTargetTasks] = [] if warmup_tasks is None else warmup_tasks
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupTargetAssignmentMemberValue:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupTargetAssignmentMemberValue", version))
        active_tasks: list[StreamsTargetTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            active_tasks.append(StreamsTargetTasks.decode(reader, version))
        standby_tasks: list[StreamsTargetTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            standby_tasks.append(StreamsTargetTasks.decode(reader, version))
        warmup_tasks: list[StreamsTargetTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            warmup_tasks.append(StreamsTargetTasks.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return StreamsGroupTargetAssignmentMemberValue(active_tasks, standby_tasks, warmup_tasks, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupTargetAssignmentMemberValue", version))
        writer.compact_array_length(len(self.active_tasks))
        for active_tasks_element in self.active_tasks:
            active_tasks_element.encode(writer, version)
        writer.compact_array_length(len(self.standby_tasks))
        for standby_tasks_element in self.standby_tasks:
            standby_tasks_element.encode(writer, version)
        writer.compact_array_length(len(self.warmup_tasks))
        for warmup_tasks_element in self.warmup_tasks:
            warmup_tasks_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class StreamsTargetTasks(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("subtopology_id", "partitions")

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsTargetTasks:
        subtopology_id = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return StreamsTargetTasks(subtopology_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)


class StreamsGroupCurrentMemberAssignmentKey(Message):
    API_KEY: ClassVar[int] = 22
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id")

    def __init__(self, group_id: str = "", member_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupCurrentMemberAssignmentKey:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupCurrentMemberAssignmentKey", version))
        group_id = reader.string()
        member_id = reader.string()
        return StreamsGroupCurrentMemberAssignmentKey(group_id, member_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupCurrentMemberAssignmentKey", version))
        writer.string(self.group_id)
        writer.string(self.member_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class StreamsGroupCurrentMemberAssignmentValue(Message):
    API_KEY: ClassVar[int] = 22
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "active_tasks_pending_revocation",
        "standby_tasks_pending_revocation",
        "warmup_tasks_pending_revocation",
    )

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[StreamsCurrentTasks] | None = None,
        standby_tasks: list[StreamsCurrentTasks] | None = None,
        warmup_tasks: list[StreamsCurrentTasks] | None = None,
        active_tasks_pending_revocation: list[StreamsCurrentTasks] | None = None,
        standby_tasks_pending_revocation: list[StreamsCurrentTasks] | None = None,
        warmup_tasks_pending_revocation: list[StreamsCurrentTasks] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.active_tasks: list[StreamsCurrentTasks] = [] if active_tasks is None else active_tasks
        self.standby_tasks: list[StreamsCurrentTasks] = [] if standby_tasks is None else standby_tasks
        self.warmup_tasks: list[StreamsCurrentTasks] = [] if warmup_tasks is None else warmup_tasks
        self.active_tasks_pending_revocation: list[StreamsCurrentTasks] = (
            [] if active_tasks_pending_revocation is None else active_tasks_pending_revocation
        )
        self.standby_tasks_pending_revocation: list[StreamsCurrentTasks] = (
            [] if standby_tasks_pending_revocation is None else standby_tasks_pending_revocation
        )
        self.warmup_tasks_pending_revocation: list[StreamsCurrentTasks] = (
            [] if warmup_tasks_pending_revocation is None else warmup_tasks_pending_revocation
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupCurrentMemberAssignmentValue:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupCurrentMemberAssignmentValue", version))
        member_epoch = reader.int32()
        previous_member_epoch = reader.int32()
        state = reader.int8()
        active_tasks: list[StreamsCurrentTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            active_tasks.append(StreamsCurrentTasks.decode(reader, version))
        standby_tasks: list[StreamsCurrentTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            standby_tasks.append(StreamsCurrentTasks.decode(reader, version))
        warmup_tasks: list[StreamsCurrentTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            warmup_tasks.append(StreamsCurrentTasks.decode(reader, version))
        active_tasks_pending_revocation: list[StreamsCurrentTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            active_tasks_pending_revocation.append(StreamsCurrentTasks.decode(reader, version))
        standby_tasks_pending_revocation: list[StreamsCurrentTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            standby_tasks_pending_revocation.append(StreamsCurrentTasks.decode(reader, version))
        warmup_tasks_pending_revocation: list[StreamsCurrentTasks] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            warmup_tasks_pending_revocation.append(StreamsCurrentTasks.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return StreamsGroupCurrentMemberAssignmentValue(
            member_epoch,
            previous_member_epoch,
            state,
            active_tasks,
            standby_tasks,
            warmup_tasks,
            active_tasks_pending_revocation,
            standby_tasks_pending_revocation,
            warmup_tasks_pending_revocation,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupCurrentMemberAssignmentValue", version))
        writer.int32(self.member_epoch)
        writer.int32(self.previous_member_epoch)
        writer.int8(self.state)
        writer.compact_array_length(len(self.active_tasks))
        for active_tasks_element in self.active_tasks:
            active_tasks_element.encode(writer, version)
        writer.compact_array_length(len(self.standby_tasks))
        for standby_tasks_element in self.standby_tasks:
            standby_tasks_element.encode(writer, version)
        writer.compact_array_length(len(self.warmup_tasks))
        for warmup_tasks_element in self.warmup_tasks:
            warmup_tasks_element.encode(writer, version)
        writer.compact_array_length(len(self.active_tasks_pending_revocation))
        for active_tasks_pending_revocation_element in self.active_tasks_pending_revocation:
            active_tasks_pending_revocation_element.encode(writer, version)
        writer.compact_array_length(len(self.standby_tasks_pending_revocation))
        for standby_tasks_pending_revocation_element in self.standby_tasks_pending_revocation:
            standby_tasks_pending_revocation_element.encode(writer, version)
        writer.compact_array_length(len(self.warmup_tasks_pending_revocation))
        for warmup_tasks_pending_revocation_element in self.warmup_tasks_pending_revocation:
            warmup_tasks_pending_revocation_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class StreamsCurrentTasks(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("subtopology_id", "partitions", "assignment_epochs")

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
        assignment_epochs: list[int] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.assignment_epochs: list[int] | None = [] if assignment_epochs is NOT_GIVEN else assignment_epochs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsCurrentTasks:
        subtopology_id = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        assignment_epochs: list[int] | None = []
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                count = reader.compact_nullable_array_length(4)
                assignment_epochs = None if count < 0 else reader.int32_list(count)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return StreamsCurrentTasks(subtopology_id, partitions, assignment_epochs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        tags: UnknownTags = []
        if self.assignment_epochs is None or len(self.assignment_epochs) > 0:
            part = Writer()
            if self.assignment_epochs is None:
                part.compact_array_length(-1)
            else:
                part.compact_array_length(len(self.assignment_epochs))
                part.int32_list(self.assignment_epochs)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class StreamsGroupTopologyKey(Message):
    API_KEY: ClassVar[int] = 23
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id",)

    def __init__(self, group_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupTopologyKey:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupTopologyKey", version))
        group_id = reader.string()
        return StreamsGroupTopologyKey(group_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupTopologyKey", version))
        writer.string(self.group_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class StreamsGroupTopologyValue(Message):
    API_KEY: ClassVar[int] = 23
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("epoch", "subtopologies")

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[Subtopology] = [] if subtopologies is None else subtopologies
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupTopologyValue:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupTopologyValue", version))
        epoch = reader.int32()
        subtopologies: list[Subtopology] = []
        count = reader.compact_array_length(8)
        for _ in range(count):
            subtopologies.append(Subtopology.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return StreamsGroupTopologyValue(epoch, subtopologies, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupTopologyValue", version))
        writer.int32(self.epoch)
        writer.compact_array_length(len(self.subtopologies))
        for subtopologies_element in self.subtopologies:
            subtopologies_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Subtopology(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        source_topic_regex: list[str] | None = None,
        state_changelog_topics: list[StreamsTopicInfo] | None = None,
        repartition_sink_topics: list[str] | None = None,
        repartition_source_topics: list[StreamsTopicInfo] | None = None,
        copartition_groups: list[CopartitionGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is None else source_topics
        self.source_topic_regex: list[str] = [] if source_topic_regex is None else source_topic_regex
        self.state_changelog_topics: list[StreamsTopicInfo] = (
            [] if state_changelog_topics is None else state_changelog_topics
        )
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is None else repartition_sink_topics
        self.repartition_source_topics: list[StreamsTopicInfo] = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.copartition_groups: list[CopartitionGroup] = [] if copartition_groups is None else copartition_groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Subtopology:
        subtopology_id = reader.compact_string()
        count = reader.compact_array_length(1)
        source_topics = reader.compact_string_list(count)
        count = reader.compact_array_length(1)
        source_topic_regex = reader.compact_string_list(count)
        state_changelog_topics: list[StreamsTopicInfo] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            state_changelog_topics.append(StreamsTopicInfo.decode(reader, version))
        count = reader.compact_array_length(1)
        repartition_sink_topics = reader.compact_string_list(count)
        repartition_source_topics: list[StreamsTopicInfo] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            repartition_source_topics.append(StreamsTopicInfo.decode(reader, version))
        copartition_groups: list[CopartitionGroup] = []
        count = reader.compact_array_length(4)
        for _ in range(count):
            copartition_groups.append(CopartitionGroup.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Subtopology(
            subtopology_id,
            source_topics,
            source_topic_regex,
            state_changelog_topics,
            repartition_sink_topics,
            repartition_source_topics,
            copartition_groups,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_length(len(self.source_topics))
        writer.compact_string_list(self.source_topics)
        writer.compact_array_length(len(self.source_topic_regex))
        writer.compact_string_list(self.source_topic_regex)
        writer.compact_array_length(len(self.state_changelog_topics))
        for state_changelog_topics_element in self.state_changelog_topics:
            state_changelog_topics_element.encode(writer, version)
        writer.compact_array_length(len(self.repartition_sink_topics))
        writer.compact_string_list(self.repartition_sink_topics)
        writer.compact_array_length(len(self.repartition_source_topics))
        for repartition_source_topics_element in self.repartition_source_topics:
            repartition_source_topics_element.encode(writer, version)
        writer.compact_array_length(len(self.copartition_groups))
        for copartition_groups_element in self.copartition_groups:
            copartition_groups_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class StreamsTopicInfo(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions", "replication_factor", "topic_configs")

    def __init__(
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[TopicConfig] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: int = partitions
        self.replication_factor: int = replication_factor
        self.topic_configs: list[TopicConfig] = [] if topic_configs is None else topic_configs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsTopicInfo:
        name = reader.compact_string()
        partitions = reader.int32()
        replication_factor = reader.int16()
        topic_configs: list[TopicConfig] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topic_configs.append(TopicConfig.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return StreamsTopicInfo(name, partitions, replication_factor, topic_configs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int32(self.partitions)
        writer.int16(self.replication_factor)
        writer.compact_array_length(len(self.topic_configs))
        for topic_configs_element in self.topic_configs:
            topic_configs_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class CopartitionGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("source_topics", "source_topic_regex", "repartition_source_topics")

    def __init__(
        self,
        source_topics: list[int] | None = None,
        source_topic_regex: list[int] | None = None,
        repartition_source_topics: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.source_topics: list[int] = [] if source_topics is None else source_topics
        self.source_topic_regex: list[int] = [] if source_topic_regex is None else source_topic_regex
        self.repartition_source_topics: list[int] = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CopartitionGroup:
        count = reader.compact_array_length(2)
        source_topics = reader.int16_list(count)
        count = reader.compact_array_length(2)
        source_topic_regex = reader.int16_list(count)
        count = reader.compact_array_length(2)
        repartition_source_topics = reader.int16_list(count)
        unknown_tags = reader.unknown_tags()
        return CopartitionGroup(source_topics, source_topic_regex, repartition_source_topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_array_length(len(self.source_topics))
        writer.int16_list(self.source_topics)
        writer.compact_array_length(len(self.source_topic_regex))
        writer.int16_list(self.source_topic_regex)
        writer.compact_array_length(len(self.repartition_source_topics))
        writer.int16_list(self.repartition_source_topics)
        writer.unknown_tags(self.unknown_tags)


class TopicConfig(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "value")

    def __init__(self, key: str = "", value: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.key: str = key
        self.value: str = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicConfig:
        key = reader.compact_string()
        value = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return TopicConfig(key, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.key)
        writer.compact_string(self.value)
        writer.unknown_tags(self.unknown_tags)


GROUP_KEYS: Final[dict[int, type[Message]]] = {
    0: LegacyOffsetCommitKey,
    1: OffsetCommitKey,
    2: GroupMetadataKey,
    3: ConsumerGroupMetadataKey,
    4: ConsumerGroupPartitionMetadataKey,
    5: ConsumerGroupMemberMetadataKey,
    6: ConsumerGroupTargetAssignmentMetadataKey,
    7: ConsumerGroupTargetAssignmentMemberKey,
    8: ConsumerGroupCurrentMemberAssignmentKey,
    10: ShareGroupMemberMetadataKey,
    11: ShareGroupMetadataKey,
    12: ShareGroupTargetAssignmentMetadataKey,
    13: ShareGroupTargetAssignmentMemberKey,
    14: ShareGroupCurrentMemberAssignmentKey,
    15: ShareGroupStatePartitionMetadataKey,
    16: ConsumerGroupRegularExpressionKey,
    17: StreamsGroupMetadataKey,
    19: StreamsGroupMemberMetadataKey,
    20: StreamsGroupTargetAssignmentMetadataKey,
    21: StreamsGroupTargetAssignmentMemberKey,
    22: StreamsGroupCurrentMemberAssignmentKey,
    23: StreamsGroupTopologyKey,
}

GROUP_VALUES: Final[dict[int, type[Message]]] = {
    0: LegacyOffsetCommitValue,
    1: OffsetCommitValue,
    2: GroupMetadataValue,
    3: ConsumerGroupMetadataValue,
    4: ConsumerGroupPartitionMetadataValue,
    5: ConsumerGroupMemberMetadataValue,
    6: ConsumerGroupTargetAssignmentMetadataValue,
    7: ConsumerGroupTargetAssignmentMemberValue,
    8: ConsumerGroupCurrentMemberAssignmentValue,
    10: ShareGroupMemberMetadataValue,
    11: ShareGroupMetadataValue,
    12: ShareGroupTargetAssignmentMetadataValue,
    13: ShareGroupTargetAssignmentMemberValue,
    14: ShareGroupCurrentMemberAssignmentValue,
    15: ShareGroupStatePartitionMetadataValue,
    16: ConsumerGroupRegularExpressionValue,
    17: StreamsGroupMetadataValue,
    19: StreamsGroupMemberMetadataValue,
    20: StreamsGroupTargetAssignmentMetadataValue,
    21: StreamsGroupTargetAssignmentMemberValue,
    22: StreamsGroupCurrentMemberAssignmentValue,
    23: StreamsGroupTopologyValue,
}


def encode_group_key(key: Message) -> bytes:
    return encode_key(key)


def decode_group_key(data: bytes) -> Message:
    return decode_key(GROUP_KEYS, data)


def encode_group_value(value: Message, version: int) -> bytes:
    return encode_value(value, version)


def decode_group_value(record_type: int, data: bytes) -> Message:
    return decode_value(GROUP_VALUES, record_type, data)
