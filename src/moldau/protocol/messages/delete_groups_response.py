"""DeleteGroups response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/042-delete-groups.txt.
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


class DeleteGroupsResponse(Message):
    API_KEY: ClassVar[int] = 42
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteGroupsResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("DeleteGroupsResponse", version))
        throttle_time_ms = reader.int32()
        results: list[DeletableGroupResult] = []
        if version >= 2:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            results.append(DeletableGroupResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeleteGroupsResponse(throttle_time_ms, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("DeleteGroupsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_length(len(self.results))
        else:
            writer.array_length(len(self.results))
        for results_element in self.results:
            results_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DeletableGroupResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "error_code")

    def __init__(self, group_id: str = "", error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.group_id: str = group_id
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeletableGroupResult:
        group_id: str
        if version >= 2:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeletableGroupResult(group_id, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.int16(self.error_code)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
