"""DescribeClientQuotas request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/048-describe-client-quotas.txt.
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


class DescribeClientQuotasRequest(Message):
    API_KEY: ClassVar[int] = 48
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("components", "strict")

    def __init__(
        self,
        components: list[ComponentData] | None = None,
        strict: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.components: list[ComponentData] = [] if components is None else components
        self.strict: bool = strict
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeClientQuotasRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("DescribeClientQuotasRequest", version))
        components: list[ComponentData] = []
        if version >= 1:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(5)
        for _ in range(count):
            components.append(ComponentData.decode(reader, version))
        strict = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return DescribeClientQuotasRequest(components, strict, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("DescribeClientQuotasRequest", version))
        if version >= 1:
            writer.compact_array_length(len(self.components))
        else:
            writer.array_length(len(self.components))
        for components_element in self.components:
            components_element.encode(writer, version)
        writer.boolean(self.strict)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ComponentData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("entity_type", "match_type", "match")

    def __init__(
        self,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.entity_type: str = entity_type
        self.match_type: int = match_type
        self.match: str | None = match
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ComponentData:
        entity_type: str
        if version >= 1:
            entity_type = reader.compact_string()
        else:
            entity_type = reader.string()
        match_type = reader.int8()
        match: str | None
        if version >= 1:
            match = reader.compact_nullable_string()
        else:
            match = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return ComponentData(entity_type, match_type, match, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.entity_type)
        else:
            writer.string(self.entity_type)
        writer.int8(self.match_type)
        if version >= 1:
            writer.compact_nullable_string(self.match)
        else:
            writer.nullable_string(self.match)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
