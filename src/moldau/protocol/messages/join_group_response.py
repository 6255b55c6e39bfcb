"""JoinGroup response, versions 0 to 9 (generated).

Written by tools/generate_messages.py from schemas/messages/011-join-group.txt.
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


class JoinGroupResponse(Message):
    API_KEY: ClassVar[int] = 11
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 9
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: list[JoinGroupResponseMember] = [] if members is None else members
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> JoinGroupResponse:
        if version < 0 or version > 9:
            raise DecodeError(no_such_version("JoinGroupResponse", version))
        throttle_time_ms: int = 0
        if version >= 2:
            throttle_time_ms = reader.int32()
        error_code = reader.int16()
        generation_id = reader.int32()
        protocol_type: str | None = None
        if version >= 7:
            protocol_type = reader.compact_nullable_string()
        protocol_name: str | None
        if version >= 7:
            protocol_name = reader.compact_nullable_string()
        elif version >= 6:
            protocol_name = reader.compact_string()
        else:
            protocol_name = reader.string()
        leader: str
        if version >= 6:
            leader = reader.compact_string()
        else:
            leader = reader.string()
        skip_assignment: bool = False
        if version >= 9:
            skip_assignment = reader.boolean()
        member_id: str
        if version >= 6:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        members: list[JoinGroupResponseMember] = []
        if version >= 6:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            members.append(JoinGroupResponseMember.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return JoinGroupResponse(
            throttle_time_ms,
            error_code,
            generation_id,
            protocol_type,
            protocol_name,
            leader,
            skip_assignment,
            member_id,
            members,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 9:
            raise EncodeError(no_such_version("JoinGroupResponse", version))
        if version >= 2:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.int32(self.generation_id)
        if version >= 7:
            writer.compact_nullable_string(self.protocol_type)
        if version >= 7:
            writer.compact_nullable_string(self.protocol_name)
        elif version >= 6:
            if self.protocol_name is None:
                raise cannot_send("protocol_name", version)
            writer.compact_string(self.protocol_name)
        else:
            if self.protocol_name is None:
                raise cannot_send("protocol_name", version)
            writer.string(self.protocol_name)
        if version >= 6:
            writer.compact_string(self.leader)
        else:
            writer.string(self.leader)
        if version >= 9:
            writer.boolean(self.skip_assignment)
        elif self.skip_assignment:
            raise cannot_send("skip_assignment", version)
        if version >= 6:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 6:
            writer.compact_array_length(len(self.members))
        else:
            writer.array_length(len(self.members))
        for members_element in self.members:
            members_element.encode(writer, version)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class JoinGroupResponseMember(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("member_id", "group_instance_id", "metadata")

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.metadata: bytes = metadata
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> JoinGroupResponseMember:
        member_id: str
        if version >= 6:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        group_instance_id: str | None = None
        if version >= 6:
            group_instance_id = reader.compact_nullable_string()
        elif version >= 5:
            group_instance_id = reader.nullable_string()
        metadata: bytes
        if version >= 6:
            metadata = reader.compact_bytes()
        else:
            metadata = reader.bytes_()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return JoinGroupResponseMember(member_id, group_instance_id, metadata, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 6:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 5:
            writer.nullable_string(self.group_instance_id)
        if version >= 6:
            writer.compact_bytes(self.metadata)
        else:
            writer.bytes_(self.metadata)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
