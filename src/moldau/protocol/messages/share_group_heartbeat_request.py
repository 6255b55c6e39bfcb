"""ShareGroupHeartbeat request, version 1 (generated).

Written by tools/generate_messages.py from schemas/messages/076-share-group-heartbeat.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class ShareGroupHeartbeatRequest(Message):
    API_KEY: ClassVar[int] = 76
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.rack_id: str | None = rack_id
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupHeartbeatRequest:
        if version != 1:
            raise DecodeError(no_such_version("ShareGroupHeartbeatRequest", version))
        group_id = reader.compact_string()
        member_id = reader.compact_string()
        member_epoch = reader.int32()
        rack_id = reader.compact_nullable_string()
        count = reader.compact_nullable_array_length(1)
        subscribed_topic_names = None if count < 0 else reader.compact_string_list(count)
        unknown_tags = reader.unknown_tags()
        return ShareGroupHeartbeatRequest(
            group_id,
            member_id,
            member_epoch,
            rack_id,
            subscribed_topic_names,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 1:
            raise EncodeError(no_such_version("ShareGroupHeartbeatRequest", version))
        writer.compact_string(self.group_id)
        writer.compact_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.compact_nullable_string(self.rack_id)
        if self.subscribed_topic_names is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.subscribed_topic_names))
            writer.compact_string_list(self.subscribed_topic_names)
        writer.unknown_tags(self.unknown_tags)
