"""DeleteTopics request, versions 1 to 6 (generated).

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


class DeleteTopicsRequest(Message):
    API_KEY: ClassVar[int] = 20
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("topics", "topic_names", "timeout_ms")

    def __init__(
        self,
        topics: list[DeleteTopicState] | None = None,
        topic_names: list[str] | None = None,
        timeout_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if topics is None else topics
        self.topic_names: list[str] = [] if topic_names is None else topic_names
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteTopicsRequest:
        if version < 1 or version > 6:
            raise DecodeError(no_such_version("DeleteTopicsRequest", version))
        topics: list[DeleteTopicState] = []
        if version >= 6:
            count = reader.compact_array_length(18)
            for _ in range(count):
                topics.append(DeleteTopicState.decode(reader, version))
        topic_names: list[str] = []
        if 4 <= version <= 5:
            count = reader.compact_array_length(1)
            topic_names = reader.compact_string_list(count)
        elif version <= 3:
            count = reader.array_length(2)
            topic_names = reader.string_list(count)
        timeout_ms = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DeleteTopicsRequest(topics, topic_names, timeout_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 6:
            raise EncodeError(no_such_version("DeleteTopicsRequest", version))
        if version >= 6:
            writer.compact_array_length(len(self.topics))
            for topics_element in self.topics:
                topics_element.encode(writer, version)
        elif len(self.topics) > 0:
            raise cannot_send("topics", version)
        if 4 <= version <= 5:
            writer.compact_array_length(len(self.topic_names))
            writer.compact_string_list(self.topic_names)
        elif version <= 3:
            writer.array_length(len(self.topic_names))
            writer.string_list(self.topic_names)
        writer.int32(self.timeout_ms)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DeleteTopicState(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id")

    def __init__(
        self,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteTopicState:
        name = reader.compact_nullable_string()
        topic_id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return DeleteTopicState(name, topic_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.unknown_tags(self.unknown_tags)
