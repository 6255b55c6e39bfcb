"""CreatePartitions response, versions 0 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/037-create-partitions.txt.
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


class CreatePartitionsResponse(Message):
    API_KEY: ClassVar[int] = 37
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatePartitionsResponse:
        if version < 0 or version > 3:
            raise DecodeError(no_such_version("CreatePartitionsResponse", version))
        throttle_time_ms = reader.int32()
        results: list[CreatePartitionsTopicResult] = []
        if version >= 2:
            count = reader.compact_array_length(5)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            results.append(CreatePartitionsTopicResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreatePartitionsResponse(throttle_time_ms, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 3:
            raise EncodeError(no_such_version("CreatePartitionsResponse", version))
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


class CreatePartitionsTopicResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "error_code", "error_message")

    def __init__(
        self,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatePartitionsTopicResult:
        name: str
        if version >= 2:
            name = reader.compact_string()
        else:
            name = reader.string()
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreatePartitionsTopicResult(name, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
