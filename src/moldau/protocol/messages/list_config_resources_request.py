"""ListConfigResources request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/074-list-config-resources.txt.
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


class ListConfigResourcesRequest(Message):
    API_KEY: ClassVar[int] = 74
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("resource_types",)

    def __init__(self, resource_types: list[int] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.resource_types: list[int] = [] if resource_types is None else resource_types
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListConfigResourcesRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("ListConfigResourcesRequest", version))
        resource_types: list[int] = []
        if version >= 1:
            count = reader.compact_array_length(1)
            resource_types = reader.int8_list(count)
        unknown_tags = reader.unknown_tags()
        return ListConfigResourcesRequest(resource_types, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("ListConfigResourcesRequest", version))
        if version >= 1:
            writer.compact_array_length(len(self.resource_types))
            writer.int8_list(self.resource_types)
        elif len(self.resource_types) > 0:
            raise cannot_send("resource_types", version)
        writer.unknown_tags(self.unknown_tags)
