"""DeleteShareGroupOffsets request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/092-delete-share-group-offsets.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DeleteShareGroupOffsetsRequest(Message):
    API_KEY: ClassVar[int] = 92
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics")

    def __init__(
        self,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DeleteShareGroupOffsetsRequestTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteShareGroupOffsetsRequest:
        if version != 0:
            raise DecodeError(no_such_version("DeleteShareGroupOffsetsRequest", version))
        group_id = reader.compact_string()
        topics: list[DeleteShareGroupOffsetsRequestTopic] = []
        count = reader.compact_array_length(2)
        for _ in range(count):
            topics.append(DeleteShareGroupOffsetsRequestTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DeleteShareGroupOffsetsRequest(group_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DeleteShareGroupOffsetsRequest", version))
        writer.compact_string(self.group_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DeleteShareGroupOffsetsRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name",)

    def __init__(self, topic_name: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.topic_name: str = topic_name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteShareGroupOffsetsRequestTopic:
        topic_name = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return DeleteShareGroupOffsetsRequestTopic(topic_name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.unknown_tags(self.unknown_tags)
