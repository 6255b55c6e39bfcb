"""Metadata request, versions 0 to 13 (generated).

Written by tools/generate_messages.py from schemas/messages/003-metadata.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
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


class MetadataRequest(Message):
    API_KEY: ClassVar[int] = 3
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 13
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[str, ...]] = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = NOT_GIVEN,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if topics is NOT_GIVEN else topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MetadataRequest:
        if version < 0 or version > 13:
            raise DecodeError(no_such_version("MetadataRequest", version))
        topics: list[MetadataRequestTopic] | None
        if version >= 9:
            count = reader.compact_nullable_array_length(2)
            if count < 0:
                topics = None
            else:
                topics = []
                for _ in range(count):
                    topics.append(MetadataRequestTopic.decode(reader, version))
        elif version >= 1:
            count = reader.nullable_array_length(2)
            if count < 0:
                topics = None
            else:
                topics = []
                for _ in range(count):
                    topics.append(MetadataRequestTopic.decode(reader, version))
        else:
            count = reader.array_length(2)
            topics = []
            for _ in range(count):
                topics.append(MetadataRequestTopic.decode(reader, version))
        allow_auto_topic_creation: bool = True
        if version >= 4:
            allow_auto_topic_creation = reader.boolean()
        include_cluster_authorized_operations: bool = False
        if 8 <= version <= 10:
            include_cluster_authorized_operations = reader.boolean()
        include_topic_authorized_operations: bool = False
        if version >= 8:
            include_topic_authorized_operations = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return MetadataRequest(
            topics,
            allow_auto_topic_creation,
            include_cluster_authorized_operations,
            include_topic_authorized_operations,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 13:
            raise EncodeError(no_such_version("MetadataRequest", version))
        if version >= 9:
            if self.topics is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.topics))
                for topics_element in self.topics:
                    topics_element.encode(writer, version)
        elif version >= 1:
            if self.topics is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.topics))
                for topics_element in self.topics:
                    topics_element.encode(writer, version)
        else:
            if self.topics is None:
                raise cannot_send("topics", version)
            writer.array_length(len(self.topics))
            for topics_element in self.topics:
                topics_element.encode(writer, version)
        if version >= 4:
            writer.boolean(self.allow_auto_topic_creation)
        elif not self.allow_auto_topic_creation:
            raise cannot_send("allow_auto_topic_creation", version)
        if version >= 11:
            if self.include_cluster_authorized_operations:
                raise cannot_send("include_cluster_authorized_operations", version)
        elif version >= 8:
            writer.boolean(self.include_cluster_authorized_operations)
        elif self.include_cluster_authorized_operations:
            raise cannot_send("include_cluster_authorized_operations", version)
        if version >= 8:
            writer.boolean(self.include_topic_authorized_operations)
        elif self.include_topic_authorized_operations:
            raise cannot_send("include_topic_authorized_operations", version)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class MetadataRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "name")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        name: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str | None = name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MetadataRequestTopic:
        topic_id: bytes = ZERO_UUID
        if version >= 10:
            topic_id = reader.uuid()
        name: str | None
        if version >= 10:
            name = reader.compact_nullable_string()
        elif version >= 9:
            name = reader.compact_string()
        else:
            name = reader.string()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return MetadataRequestTopic(topic_id, name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 10:
            writer.compact_nullable_string(self.name)
        elif version >= 9:
            if self.name is None:
                raise cannot_send("name", version)
            writer.compact_string(self.name)
        else:
            if self.name is None:
                raise cannot_send("name", version)
            writer.string(self.name)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
