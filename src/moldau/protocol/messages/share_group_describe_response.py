"""ShareGroupDescribe response, version 1 (generated).

Written by tools/generate_messages.py from schemas/messages/077-share-group-describe.txt.
"""

from __future__ import annotations

from typing import ClassVar

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


class ShareGroupDescribeResponse(Message):
    API_KEY: ClassVar[int] = 77
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "groups")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is None else groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupDescribeResponse:
        if version != 1:
            raise DecodeError(no_such_version("ShareGroupDescribeResponse", version))
        throttle_time_ms = reader.int32()
        groups: list[DescribedGroup] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            groups.append(DescribedGroup.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareGroupDescribeResponse(throttle_time_ms, groups, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 1:
            raise EncodeError(no_such_version("ShareGroupDescribeResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.compact_array_length(len(self.groups))
        for groups_element in self.groups:
            groups_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribedGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: list[Member] = [] if members is None else members
        self.authorized_operations: int = authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribedGroup:
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        group_id = reader.compact_string()
        group_state = reader.compact_string()
        group_epoch = reader.int32()
        assignment_epoch = reader.int32()
        assignor_name = reader.compact_string()
        members: list[Member] = []
        count = reader.compact_array_length(12)
        for _ in range(count):
            members.append(Member.decode(reader, version))
        authorized_operations = reader.int32()
        unknown_tags = reader.unknown_tags()
        return DescribedGroup(
            error_code,
            error_message,
            group_id,
            group_state,
            group_epoch,
            assignment_epoch,
            assignor_name,
            members,
            authorized_operations,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_string(self.group_id)
        writer.compact_string(self.group_state)
        writer.int32(self.group_epoch)
        writer.int32(self.assignment_epoch)
        writer.compact_string(self.assignor_name)
        writer.compact_array_length(len(self.members))
        for members_element in self.members:
            members_element.encode(writer, version)
        writer.int32(self.authorized_operations)
        writer.unknown_tags(self.unknown_tags)


class Member(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "member_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "assignment",
    )

    def __init__(
        self,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        assignment: Assignment | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is None else subscribed_topic_names
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Member:
        member_id = reader.compact_string()
        rack_id = reader.compact_nullable_string()
        member_epoch = reader.int32()
        client_id = reader.compact_string()
        client_host = reader.compact_string()
        count = reader.compact_array_length(1)
        subscribed_topic_names = reader.compact_string_list(count)
        assignment = Assignment.decode(reader, version)
        unknown_tags = reader.unknown_tags()
        return Member(
            member_id,
            rack_id,
            member_epoch,
            client_id,
            client_host,
            subscribed_topic_names,
            assignment,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.member_id)
        writer.compact_nullable_string(self.rack_id)
        writer.int32(self.member_epoch)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.compact_array_length(len(self.subscribed_topic_names))
        writer.compact_string_list(self.subscribed_topic_names)
        self.assignment.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Assignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is None else topic_partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Assignment:
        topic_partitions: list[TopicPartitions] = []
        count = reader.compact_array_length(19)
        for _ in range(count):
            topic_partitions.append(TopicPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Assignment(topic_partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_array_length(len(self.topic_partitions))
        for topic_partitions_element in self.topic_partitions:
            topic_partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if len(self.topic_partitions) > 0:
            return False
        return self.unknown_tags is None


class TopicPartitions(Message):
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
    def decode(reader: Reader, version: int) -> TopicPartitions:
        topic_id = reader.uuid()
        topic_name = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return TopicPartitions(topic_id, topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_string(self.topic_name)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)
