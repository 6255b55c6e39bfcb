"""DescribeGroups request, versions 0 to 6 (generated).

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


class DescribeGroupsRequest(Message):
    API_KEY: ClassVar[int] = 15
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[str, ...]] = ("groups", "include_authorized_operations")

    def __init__(
        self,
        groups: list[str] | None = None,
        include_authorized_operations: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.groups: list[str] = [] if groups is None else groups
        self.include_authorized_operations: bool = include_authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeGroupsRequest:
        if version < 0 or version > 6:
            raise DecodeError(no_such_version("DescribeGroupsRequest", version))
        groups: list[str]
        if version >= 5:
            count = reader.compact_array_length(1)
            groups = reader.compact_string_list(count)
        else:
            count = reader.array_length(2)
            groups = reader.string_list(count)
        include_authorized_operations: bool = False
        if version >= 3:
            include_authorized_operations = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return DescribeGroupsRequest(groups, include_authorized_operations, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 6:
            raise EncodeError(no_such_version("DescribeGroupsRequest", version))
        if version >= 5:
            writer.compact_array_length(len(self.groups))
            writer.compact_string_list(self.groups)
        else:
            writer.array_length(len(self.groups))
            writer.string_list(self.groups)
        if version >= 3:
            writer.boolean(self.include_authorized_operations)
        elif self.include_authorized_operations:
            raise cannot_send("include_authorized_operations", version)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
