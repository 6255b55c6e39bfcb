"""DeleteTopics response, versions 1 to 6 (generated).

Written by tools/generate_messages.py from schemas/messages/020-delete-topics.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class DeleteTopicsResponse(Message):
    API_KEY: ClassVar[int] = 20
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "responses")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[DeletableTopicResult] = [] if responses is None else responses
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteTopicsResponse:
        if version < 1 or version > 6:
            raise DecodeError(no_such_version("DeleteTopicsResponse", version))
        throttle_time_ms = reader.int32()
        responses: list[DeletableTopicResult] = []
        if version >= 4:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            responses.append(DeletableTopicResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DeleteTopicsResponse(throttle_time_ms, responses, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 6:
            raise EncodeError(no_such_version("DeleteTopicsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 4:
            writer.compact_array_length(len(self.responses))
        else:
            writer.array_length(len(self.responses))
        for responses_element in self.responses:
            responses_element.encode(writer, version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DeletableTopicResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeletableTopicResult:
        name: str | None
        if version >= 6:
            name = reader.compact_nullable_string()
        elif version >= 4:
            name = reader.compact_string()
        else:
            name = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 6:
            topic_id = reader.uuid()
        error_code = reader.int16()
        error_message: str | None = None
        if version >= 5:
            error_message = reader.compact_nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DeletableTopicResult(name, topic_id, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_nullable_string(self.name)
        elif version >= 4:
            if self.name is None:
                raise cannot_send("name", version)
            writer.compact_string(self.name)
        else:
            if self.name is None:
                raise cannot_send("name", version)
            writer.string(self.name)
        if version >= 6:
            writer.uuid(self.topic_id)
        writer.int16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.error_message)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
