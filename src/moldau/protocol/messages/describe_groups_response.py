"""DescribeGroups response, versions 0 to 6 (generated).

Written by tools/generate_messages.py from schemas/messages/015-describe-groups.txt.
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


class DescribeGroupsResponse(Message):
    API_KEY: ClassVar[int] = 15
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 5
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
    def decode(reader: Reader, version: int) -> DescribeGroupsResponse:
        if version < 0 or version > 6:
            raise DecodeError(no_such_version("DescribeGroupsResponse", version))
        throttle_time_ms: int = 0
        if version >= 1:
            throttle_time_ms = reader.int32()
        groups: list[DescribedGroup] = []
        if version >= 5:
            count = reader.compact_array_length(12)
        else:
            count = reader.array_length(14)
        for _ in range(count):
            groups.append(DescribedGroup.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return DescribeGroupsResponse(throttle_time_ms, groups, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 6:
            raise EncodeError(no_such_version("DescribeGroupsResponse", version))
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version >= 5:
            writer.compact_array_length(len(self.groups))
        else:
            writer.array_length(len(self.groups))
        for groups_element in self.groups:
            groups_element.encode(writer, version)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribedGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] | None = None,
        authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.protocol_type: str = protocol_type
        self.protocol_data: str = protocol_data
        self.members: list[DescribedGroupMember] = [] if members is None else members
        self.authorized_operations: int = authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribedGroup:
        error_code = reader.int16()
        error_message: str | None = None
        if version >= 6:
            error_message = reader.compact_nullable_string()
        group_id: str
        if version >= 5:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        group_state: str
        if version >= 5:
            group_state = reader.compact_string()
        else:
            group_state = reader.string()
        protocol_type: str
        if version >= 5:
            protocol_type = reader.compact_string()
        else:
            protocol_type = reader.string()
        protocol_data: str
        if version >= 5:
            protocol_data = reader.compact_string()
        else:
            protocol_data = reader.string()
        members: list[DescribedGroupMember] = []
        if version >= 5:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(14)
        for _ in range(count):
            members.append(DescribedGroupMember.decode(reader, version))
        authorized_operations: int = -2147483648
        if version >= 3:
            authorized_operations = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return DescribedGroup(
            error_code,
            error_message,
            group_id,
            group_state,
            protocol_type,
            protocol_data,
            members,
            authorized_operations,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 6:
            writer.compact_nullable_string(self.error_message)
        elif self.error_message is not None:
            raise cannot_send("error_message", version)
        if version >= 5:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 5:
            writer.compact_string(self.group_state)
        else:
            writer.string(self.group_state)
        if version >= 5:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if version >= 5:
            writer.compact_string(self.protocol_data)
        else:
            writer.string(self.protocol_data)
        if version >= 5:
            writer.compact_array_length(len(self.members))
        else:
            writer.array_length(len(self.members))
        for members_element in self.members:
            members_element.encode(writer, version)
        if version >= 3:
            writer.int32(self.authorized_operations)
        elif self.authorized_operations != -2147483648:
            raise cannot_send("authorized_operations", version)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribedGroupMember(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_metadata",
        "member_assignment",
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.member_metadata: bytes = member_metadata
        self.member_assignment: bytes = member_assignment
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribedGroupMember:
        member_id: str
        if version >= 5:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        group_instance_id: str | None = None
        if version >= 5:
            group_instance_id = reader.compact_nullable_string()
        elif version >= 4:
            group_instance_id = reader.nullable_string()
        client_id: str
        if version >= 5:
            client_id = reader.compact_string()
        else:
            client_id = reader.string()
        client_host: str
        if version >= 5:
            client_host = reader.compact_string()
        else:
            client_host = reader.string()
        member_metadata: bytes
        if version >= 5:
            member_metadata = reader.compact_bytes()
        else:
            member_metadata = reader.bytes_()
        member_assignment: bytes
        if version >= 5:
            member_assignment = reader.compact_bytes()
        else:
            member_assignment = reader.bytes_()
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return DescribedGroupMember(
            member_id,
            group_instance_id,
            client_id,
            client_host,
            member_metadata,
            member_assignment,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 5:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 4:
            writer.nullable_string(self.group_instance_id)
        if version >= 5:
            writer.compact_string(self.client_id)
        else:
            writer.string(self.client_id)
        if version >= 5:
            writer.compact_string(self.client_host)
        else:
            writer.string(self.client_host)
        if version >= 5:
            writer.compact_bytes(self.member_metadata)
        else:
            writer.bytes_(self.member_metadata)
        if version >= 5:
            writer.compact_bytes(self.member_assignment)
        else:
            writer.bytes_(self.member_assignment)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
