"""AlterClientQuotas response, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/049-alter-client-quotas.txt.
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


class AlterClientQuotasResponse(Message):
    API_KEY: ClassVar[int] = 49
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "entries")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[EntryData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.entries: list[EntryData] = [] if entries is None else entries
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterClientQuotasResponse:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("AlterClientQuotasResponse", version))
        throttle_time_ms = reader.int32()
        entries: list[EntryData] = []
        if version >= 1:
            count = reader.compact_array_length(5)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            entries.append(EntryData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return AlterClientQuotasResponse(throttle_time_ms, entries, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("AlterClientQuotasResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 1:
            writer.compact_array_length(len(self.entries))
        else:
            writer.array_length(len(self.entries))
        for entries_element in self.entries:
            entries_element.encode(writer, version)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class EntryData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "error_message", "entity")

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entity: list[EntityData] = [] if entity is None else entity
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EntryData:
        error_code = reader.int16()
        error_message: str | None
        if version >= 1:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        entity: list[EntityData] = []
        if version >= 1:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            entity.append(EntityData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return EntryData(error_code, error_message, entity, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 1:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 1:
            writer.compact_array_length(len(self.entity))
        else:
            writer.array_length(len(self.entity))
        for entity_element in self.entity:
            entity_element.encode(writer, version)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class EntityData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("entity_type", "entity_name")

    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EntityData:
        entity_type: str
        if version >= 1:
            entity_type = reader.compact_string()
        else:
            entity_type = reader.string()
        entity_name: str | None
        if version >= 1:
            entity_name = reader.compact_nullable_string()
        else:
            entity_name = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return EntityData(entity_type, entity_name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.entity_type)
        else:
            writer.string(self.entity_type)
        if version >= 1:
            writer.compact_nullable_string(self.entity_name)
        else:
            writer.nullable_string(self.entity_name)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
