"""LeaveGroup response, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/013-leave-group.txt.
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


class LeaveGroupResponse(Message):
    API_KEY: ClassVar[int] = 13
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "members")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: list[MemberResponse] = [] if members is None else members
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LeaveGroupResponse:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("LeaveGroupResponse", version))
        throttle_time_ms: int = 0
        if version >= 1:
            throttle_time_ms = reader.int32()
        error_code = reader.int16()
        members: list[MemberResponse] = []
        if version >= 3:
            if version >= 4:
                count = reader.compact_array_length(5)
            else:
                count = reader.array_length(6)
            for _ in range(count):
                members.append(MemberResponse.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return LeaveGroupResponse(throttle_time_ms, error_code, members, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("LeaveGroupResponse", version))
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 3:
            if version >= 4:
                writer.compact_array_length(len(self.members))
            else:
                writer.array_length(len(self.members))
            for members_element in self.members:
                members_element.encode(writer, version)
        elif len(self.members) > 0:
            raise cannot_send("members", version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class MemberResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("member_id", "group_instance_id", "error_code")

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MemberResponse:
        member_id: str
        if version >= 4:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        group_instance_id: str | None
        if version >= 4:
            group_instance_id = reader.compact_nullable_string()
        else:
            group_instance_id = reader.nullable_string()
        error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return MemberResponse(member_id, group_instance_id, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            writer.compact_nullable_string(self.group_instance_id)
        else:
            writer.nullable_string(self.group_instance_id)
        writer.int16(self.error_code)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
