"""DescribeAcls response, versions 1 to 3 (generated).

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


class DescribeAclsResponse(Message):
    API_KEY: ClassVar[int] = 29
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "error_message", "resources")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: list[DescribeAclsResource] = [] if resources is None else resources
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeAclsResponse:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("DescribeAclsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        resources: list[DescribeAclsResource] = []
        if version >= 2:
            count = reader.compact_array_length(5)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            resources.append(DescribeAclsResource.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeAclsResponse(throttle_time_ms, error_code, error_message, resources, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("DescribeAclsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.compact_array_length(len(self.resources))
        else:
            writer.array_length(len(self.resources))
        for resources_element in self.resources:
            resources_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribeAclsResource(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("resource_type", "resource_name", "pattern_type", "acls")

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.acls: list[AclDescription] = [] if acls is None else acls
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeAclsResource:
        resource_type = reader.int8()
        resource_name: str
        if version >= 2:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        pattern_type = reader.int8()
        acls: list[AclDescription] = []
        if version >= 2:
            count = reader.compact_array_length(5)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            acls.append(AclDescription.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeAclsResource(resource_type, resource_name, pattern_type, acls, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        writer.int8(self.pattern_type)
        if version >= 2:
            writer.compact_array_length(len(self.acls))
        else:
            writer.array_length(len(self.acls))
        for acls_element in self.acls:
            acls_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AclDescription(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("principal", "host", "operation", "permission_type")

    def __init__(
        self,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AclDescription:
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
        return AclDescription(principal, host, operation, permission_type, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
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
