"""AlterClientQuotas request, versions 0 to 1 (generated).

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


class AlterClientQuotasRequest(Message):
    API_KEY: ClassVar[int] = 49
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("entries", "validate_only")

    def __init__(
        self,
        entries: list[EntryData] | None = None,
        validate_only: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.entries: list[EntryData] = [] if entries is None else entries
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterClientQuotasRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("AlterClientQuotasRequest", version))
        entries: list[EntryData] = []
        if version >= 1:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            entries.append(EntryData.decode(reader, version))
        validate_only = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return AlterClientQuotasRequest(entries, validate_only, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("AlterClientQuotasRequest", version))
        if version >= 1:
            writer.compact_array_length(len(self.entries))
        else:
            writer.array_length(len(self.entries))
        for entries_element in self.entries:
            entries_element.encode(writer, version)
        writer.boolean(self.validate_only)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class EntryData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("entity", "ops")

    def __init__(
        self,
        entity: list[EntityData] | None = None,
        ops: list[OpData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        self.ops: list[OpData] = [] if ops is None else ops
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
        ops: list[OpData] = []
        if version >= 1:
            count = reader.compact_array_length(11)
        else:
            count = reader.array_length(11)
        for _ in range(count):
            ops.append(OpData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return EntryData(entity, ops, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_length(len(self.entity))
        else:
            writer.array_length(len(self.entity))
        for entity_element in self.entity:
            entity_element.encode(writer, version)
        if version >= 1:
            writer.compact_array_length(len(self.ops))
        else:
            writer.array_length(len(self.ops))
        for ops_element in self.ops:
            ops_element.encode(writer, version)
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


class OpData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "value", "remove")

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OpData:
        key: str
        if version >= 1:
            key = reader.compact_string()
        else:
            key = reader.string()
        value = reader.float64()
        remove = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return OpData(key, value, remove, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        writer.float64(self.value)
        writer.boolean(self.remove)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
