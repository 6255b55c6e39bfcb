"""ListGroups request, versions 0 to 5 (generated).

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


class ListGroupsRequest(Message):
    API_KEY: ClassVar[int] = 16
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("states_filter", "types_filter")

    def __init__(
        self,
        states_filter: list[str] | None = None,
        types_filter: list[str] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is None else states_filter
        self.types_filter: list[str] = [] if types_filter is None else types_filter
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListGroupsRequest:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("ListGroupsRequest", version))
        states_filter: list[str] = []
        if version >= 4:
            count = reader.compact_array_length(1)
            states_filter = reader.compact_string_list(count)
        types_filter: list[str] = []
        if version >= 5:
            count = reader.compact_array_length(1)
            types_filter = reader.compact_string_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return ListGroupsRequest(states_filter, types_filter, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("ListGroupsRequest", version))
        if version >= 4:
            writer.compact_array_length(len(self.states_filter))
            writer.compact_string_list(self.states_filter)
        elif len(self.states_filter) > 0:
            raise cannot_send("states_filter", version)
        if version >= 5:
            writer.compact_array_length(len(self.types_filter))
            writer.compact_string_list(self.types_filter)
        elif len(self.types_filter) > 0:
            raise cannot_send("types_filter", version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
