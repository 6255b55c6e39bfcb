"""CreateAcls request, versions 1 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/030-create-acls.txt.
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


class CreateAclsRequest(Message):
    API_KEY: ClassVar[int] = 30
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("creations",)

    def __init__(self, creations: list[AclCreation] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.creations: list[AclCreation] = [] if creations is None else creations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreateAclsRequest:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("CreateAclsRequest", version))
        creations: list[AclCreation] = []
        if version >= 2:
            count = reader.compact_array_length(8)
        else:
            count = reader.array_length(10)
        for _ in range(count):
            creations.append(AclCreation.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreateAclsRequest(creations, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("CreateAclsRequest", version))
        if version >= 2:
            writer.compact_array_length(len(self.creations))
        else:
            writer.array_length(len(self.creations))
        for creations_element in self.creations:
            creations_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AclCreation(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.resource_pattern_type: int = resource_pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AclCreation:
        resource_type = reader.int8()
        resource_name: str
        if version >= 2:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        resource_pattern_type = reader.int8()
        principal: str
        if version >= 2:
            principal = reader.compact_string()
        else:
            principal = reader.string()
        host: str
        if version >= 2:
            host = reader.compact_string()
        else:
            host = reader.string()
        operation = reader.int8()
        permission_type = reader.int8()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AclCreation(
            resource_type,
            resource_name,
            resource_pattern_type,
            principal,
            host,
            operation,
            permission_type,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        writer.int8(self.resource_pattern_type)
        if version >= 2:
            writer.compact_string(self.principal)
        else:
            writer.string(self.principal)
        if version >= 2:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        writer.int8(self.operation)
        writer.int8(self.permission_type)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
