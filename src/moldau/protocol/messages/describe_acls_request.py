"""DescribeAcls request, versions 1 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/029-describe-acls.txt.
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


class DescribeAclsRequest(Message):
    API_KEY: ClassVar[int] = 29
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        self.resource_name_filter: str | None = resource_name_filter
        self.pattern_type_filter: int = pattern_type_filter
        self.principal_filter: str | None = principal_filter
        self.host_filter: str | None = host_filter
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeAclsRequest:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("DescribeAclsRequest", version))
        resource_type_filter = reader.int8()
        resource_name_filter: str | None
        if version >= 2:
            resource_name_filter = reader.compact_nullable_string()
        else:
            resource_name_filter = reader.nullable_string()
        pattern_type_filter = reader.int8()
        principal_filter: str | None
        if version >= 2:
            principal_filter = reader.compact_nullable_string()
        else:
            principal_filter = reader.nullable_string()
        host_filter: str | None
        if version >= 2:
            host_filter = reader.compact_nullable_string()
        else:
            host_filter = reader.nullable_string()
        operation = reader.int8()
        permission_type = reader.int8()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeAclsRequest(
            resource_type_filter,
            resource_name_filter,
            pattern_type_filter,
            principal_filter,
            host_filter,
            operation,
            permission_type,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("DescribeAclsRequest", version))
        writer.int8(self.resource_type_filter)
        if version >= 2:
            writer.compact_nullable_string(self.resource_name_filter)
        else:
            writer.nullable_string(self.resource_name_filter)
        writer.int8(self.pattern_type_filter)
        if version >= 2:
            writer.compact_nullable_string(self.principal_filter)
        else:
            writer.nullable_string(self.principal_filter)
        if version >= 2:
            writer.compact_nullable_string(self.host_filter)
        else:
            writer.nullable_string(self.host_filter)
        writer.int8(self.operation)
        writer.int8(self.permission_type)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
