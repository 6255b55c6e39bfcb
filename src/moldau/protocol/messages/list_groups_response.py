"""ListGroups response, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/016-list-groups.txt.
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


class ListGroupsResponse(Message):
    API_KEY: ClassVar[int] = 16
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "groups")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: list[ListedGroup] = [] if groups is None else groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListGroupsResponse:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("ListGroupsResponse", version))
        throttle_time_ms: int = 0
        if version >= 1:
            throttle_time_ms = reader.int32()
        error_code = reader.int16()
        groups: list[ListedGroup] = []
        if version >= 3:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            groups.append(ListedGroup.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return ListGroupsResponse(throttle_time_ms, error_code, groups, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("ListGroupsResponse", version))
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 3:
            writer.compact_array_length(len(self.groups))
        else:
            writer.array_length(len(self.groups))
        for groups_element in self.groups:
            groups_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ListedGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "protocol_type", "group_state", "group_type")

    def __init__(
        self,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.protocol_type: str = protocol_type
        self.group_state: str = group_state
        self.group_type: str = group_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListedGroup:
        group_id: str
        if version >= 3:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        protocol_type: str
        if version >= 3:
            protocol_type = reader.compact_string()
        else:
            protocol_type = reader.string()
        group_state: str = ""
        if version >= 4:
            group_state = reader.compact_string()
        group_type: str = ""
        if version >= 5:
            group_type = reader.compact_string()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return ListedGroup(group_id, protocol_type, group_state, group_type, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 3:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if version >= 4:
            writer.compact_string(self.group_state)
        if version >= 5:
            writer.compact_string(self.group_type)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
