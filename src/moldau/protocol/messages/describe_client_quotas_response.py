"""DescribeClientQuotas response, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/048-describe-client-quotas.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class DescribeClientQuotasResponse(Message):
    API_KEY: ClassVar[int] = 48
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "error_message", "entries")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entries: list[EntryData] | None = [] if entries is NOT_GIVEN else entries
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeClientQuotasResponse:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("DescribeClientQuotasResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message: str | None
        if version >= 1:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        entries: list[EntryData] | None
        if version >= 1:
            count = reader.compact_nullable_array_length(3)
        else:
            count = reader.nullable_array_length(8)
        if count < 0:
            entries = None
        else:
            entries = []
            for _ in range(count):
                entries.append(EntryData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return DescribeClientQuotasResponse(throttle_time_ms, error_code, error_message, entries, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("DescribeClientQuotasResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 1:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 1:
            if self.entries is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.entries))
                for entries_element in self.entries:
                    entries_element.encode(writer, version)
        else:
            if self.entries is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.entries))
                for entries_element in self.entries:
                    entries_element.encode(writer, version)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class EntryData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("entity", "values")

    def __init__(
        self,
        entity: list[EntityData] | None = None,
        values: list[ValueData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        self.values: list[ValueData] = [] if values is None else values
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EntryData:
        entity: list[EntityData] = []
        if version >= 1:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            entity.append(EntityData.decode(reader, version))
        values: list[ValueData] = []
        if version >= 1:
            count = reader.compact_array_length(10)
        else:
            count = reader.array_length(10)
        for _ in range(count):
            values.append(ValueData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return EntryData(entity, values, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_length(len(self.entity))
        else:
            writer.array_length(len(self.entity))
        for entity_element in self.entity:
            entity_element.encode(writer, version)
        if version >= 1:
            writer.compact_array_length(len(self.values))
        else:
            writer.array_length(len(self.values))
        for values_element in self.values:
            values_element.encode(writer, version)
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


class ValueData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "value")

    def __init__(self, key: str = "", value: float = 0.0, unknown_tags: UnknownTags | None = None) -> None:
        self.key: str = key
        self.value: float = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ValueData:
        key: str
        if version >= 1:
            key = reader.compact_string()
        else:
            key = reader.string()
        value = reader.float64()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return ValueData(key, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        writer.float64(self.value)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
