"""SyncGroup request, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/014-sync-group.txt.
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


class SyncGroupRequest(Message):
    API_KEY: ClassVar[int] = 14
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is None else assignments
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SyncGroupRequest:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("SyncGroupRequest", version))
        group_id: str
        if version >= 4:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        generation_id = reader.int32()
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
        protocol_type: str | None = None
        if version >= 5:
            protocol_type = reader.compact_nullable_string()
        protocol_name: str | None = None
        if version >= 5:
            protocol_name = reader.compact_nullable_string()
        assignments: list[SyncGroupRequestAssignment] = []
        if version >= 4:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            assignments.append(SyncGroupRequestAssignment.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return SyncGroupRequest(
            group_id,
            generation_id,
            member_id,
            group_instance_id,
            protocol_type,
            protocol_name,
            assignments,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("SyncGroupRequest", version))
        if version >= 4:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.int32(self.generation_id)
        if version >= 4:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 3:
            writer.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise cannot_send("group_instance_id", version)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_type)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_name)
        if version >= 4:
            writer.compact_array_length(len(self.assignments))
        else:
            writer.array_length(len(self.assignments))
        for assignments_element in self.assignments:
            assignments_element.encode(writer, version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class SyncGroupRequestAssignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("member_id", "assignment")

    def __init__(self, member_id: str = "", assignment: bytes = b"", unknown_tags: UnknownTags | None = None) -> None:
        self.member_id: str = member_id
        self.assignment: bytes = assignment
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SyncGroupRequestAssignment:
        member_id: str
        if version >= 4:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        assignment: bytes
        if version >= 4:
            assignment = reader.compact_bytes()
        else:
            assignment = reader.bytes_()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return SyncGroupRequestAssignment(member_id, assignment, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            writer.compact_bytes(self.assignment)
        else:
            writer.bytes_(self.assignment)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
