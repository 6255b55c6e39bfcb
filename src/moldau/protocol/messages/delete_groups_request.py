"""DeleteGroups request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/042-delete-groups.txt.
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


class DeleteGroupsRequest(Message):
    API_KEY: ClassVar[int] = 42
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("groups_names",)

    def __init__(self, groups_names: list[str] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.groups_names: list[str] = [] if groups_names is None else groups_names
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteGroupsRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("DeleteGroupsRequest", version))
        groups_names: list[str]
        if version >= 2:
            count = reader.compact_array_length(1)
            groups_names = reader.compact_string_list(count)
        else:
            count = reader.array_length(2)
            groups_names = reader.string_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeleteGroupsRequest(groups_names, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("DeleteGroupsRequest", version))
        if version >= 2:
            writer.compact_array_length(len(self.groups_names))
            writer.compact_string_list(self.groups_names)
        else:
            writer.array_length(len(self.groups_names))
            writer.string_list(self.groups_names)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
