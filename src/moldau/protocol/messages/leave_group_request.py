"""LeaveGroup request, versions 0 to 5 (generated).

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


class LeaveGroupRequest(Message):
    API_KEY: ClassVar[int] = 13
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id", "members")

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.members: list[MemberIdentity] = [] if members is None else members
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LeaveGroupRequest:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("LeaveGroupRequest", version))
        group_id: str
        if version >= 4:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        member_id: str = ""
        if version <= 2:
            member_id = reader.string()
        members: list[MemberIdentity] = []
        if version >= 3:
            if version >= 4:
                count = reader.compact_array_length(3)
            else:
                count = reader.array_length(4)
            for _ in range(count):
                members.append(MemberIdentity.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return LeaveGroupRequest(group_id, member_id, members, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("LeaveGroupRequest", version))
        if version >= 4:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 3:
            if self.member_id != "":
                raise cannot_send("member_id", version)
        else:
            writer.string(self.member_id)
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


class MemberIdentity(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("member_id", "group_instance_id", "reason")

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.reason: str | None = reason
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MemberIdentity:
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
        reason: str | None = None
        if version >= 5:
            reason = reader.compact_nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return MemberIdentity(member_id, group_instance_id, reason, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            writer.compact_nullable_string(self.group_instance_id)
        else:
            writer.nullable_string(self.group_instance_id)
        if version >= 5:
            writer.compact_nullable_string(self.reason)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
