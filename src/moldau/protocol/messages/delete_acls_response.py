"""DeleteAcls response, versions 1 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/031-delete-acls.txt.
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


class DeleteAclsResponse(Message):
    API_KEY: ClassVar[int] = 31
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "filter_results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.filter_results: list[DeleteAclsFilterResult] = [] if filter_results is None else filter_results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteAclsResponse:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("DeleteAclsResponse", version))
        throttle_time_ms = reader.int32()
        filter_results: list[DeleteAclsFilterResult] = []
        if version >= 2:
            count = reader.compact_array_length(5)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            filter_results.append(DeleteAclsFilterResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeleteAclsResponse(throttle_time_ms, filter_results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("DeleteAclsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_length(len(self.filter_results))
        else:
            writer.array_length(len(self.filter_results))
        for filter_results_element in self.filter_results:
            filter_results_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DeleteAclsFilterResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "error_message", "matching_acls")

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.matching_acls: list[DeleteAclsMatchingAcl] = [] if matching_acls is None else matching_acls
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteAclsFilterResult:
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        matching_acls: list[DeleteAclsMatchingAcl] = []
        if version >= 2:
            count = reader.compact_array_length(11)
        else:
            count = reader.array_length(14)
        for _ in range(count):
            matching_acls.append(DeleteAclsMatchingAcl.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeleteAclsFilterResult(error_code, error_message, matching_acls, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.compact_array_length(len(self.matching_acls))
        else:
            writer.array_length(len(self.matching_acls))
        for matching_acls_element in self.matching_acls:
            matching_acls_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DeleteAclsMatchingAcl(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteAclsMatchingAcl:
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        resource_type = reader.int8()
        resource_name: str
        if version >= 2:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        pattern_type = reader.int8()
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
        return DeleteAclsMatchingAcl(
            error_code,
            error_message,
            resource_type,
            resource_name,
            pattern_type,
            principal,
            host,
            operation,
            permission_type,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        writer.int8(self.pattern_type)
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
