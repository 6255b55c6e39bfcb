"""Heartbeat request, versions 0 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/012-heartbeat.txt.
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


class HeartbeatRequest(Message):
    API_KEY: ClassVar[int] = 12
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "generation_id", "member_id", "group_instance_id")

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> HeartbeatRequest:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("HeartbeatRequest", version))
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
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return HeartbeatRequest(group_id, generation_id, member_id, group_instance_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("HeartbeatRequest", version))
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
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
