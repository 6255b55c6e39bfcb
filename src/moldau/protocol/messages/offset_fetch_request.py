"""OffsetFetch request, versions 1 to 10 (generated).

Written by tools/generate_messages.py from schemas/messages/009-offset-fetch.txt.
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


class OffsetFetchRequest(Message):
    API_KEY: ClassVar[int] = 9
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 10
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics", "groups", "require_stable")

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = NOT_GIVEN,
        groups: list[OffsetFetchRequestGroup] | None = None,
        require_stable: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = [] if topics is NOT_GIVEN else topics
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is None else groups
        self.require_stable: bool = require_stable
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchRequest:
        if version < 1 or version > 10:
            raise DecodeError(no_such_version("OffsetFetchRequest", version))
        group_id: str = ""
        if 6 <= version <= 7:
            group_id = reader.compact_string()
        elif version <= 5:
            group_id = reader.string()
        topics: list[OffsetFetchRequestTopic] | None = []
        if 6 <= version <= 7:
            count = reader.compact_nullable_array_length(3)
            if count < 0:
                topics = None
            else:
                topics = []
                for _ in range(count):
                    topics.append(OffsetFetchRequestTopic.decode(reader, version))
        elif 2 <= version <= 5:
            count = reader.nullable_array_length(6)
            if count < 0:
                topics = None
            else:
                topics = []
                for _ in range(count):
                    topics.append(OffsetFetchRequestTopic.decode(reader, version))
        elif version <= 1:
            count = reader.array_length(6)
            topics = []
            for _ in range(count):
                topics.append(OffsetFetchRequestTopic.decode(reader, version))
        groups: list[OffsetFetchRequestGroup] = []
        if version >= 8:
            count = reader.compact_array_length(3)
            for _ in range(count):
                groups.append(OffsetFetchRequestGroup.decode(reader, version))
        require_stable: bool = False
        if version >= 7:
            require_stable = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return OffsetFetchRequest(group_id, topics, groups, require_stable, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 10:
            raise EncodeError(no_such_version("OffsetFetchRequest", version))
        if version >= 8:
            if self.group_id != "":
                raise cannot_send("group_id", version)
        elif version >= 6:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 8:
            if self.topics is None or len(self.topics) > 0:
                raise cannot_send("topics", version)
        elif version >= 6:
            if self.topics is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.topics))
                for topics_element in self.topics:
                    topics_element.encode(writer, version)
        elif version >= 2:
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
        if version >= 8:
            writer.compact_array_length(len(self.groups))
            for groups_element in self.groups:
                groups_element.encode(writer, version)
        elif len(self.groups) > 0:
            raise cannot_send("groups", version)
        if version >= 7:
            writer.boolean(self.require_stable)
        elif self.require_stable:
            raise cannot_send("require_stable", version)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetFetchRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partition_indexes")

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchRequestTopic:
        name: str
        if version >= 6:
            name = reader.compact_string()
        else:
            name = reader.string()
        if version >= 6:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        partition_indexes = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return OffsetFetchRequestTopic(name, partition_indexes, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_array_length(len(self.partition_indexes))
        else:
            writer.array_length(len(self.partition_indexes))
        writer.int32_list(self.partition_indexes)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetFetchRequestGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id", "member_epoch", "topics")

    def __init__(
        self,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = [] if topics is NOT_GIVEN else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchRequestGroup:
        group_id = reader.compact_string()
        member_id: str | None = None
        if version >= 9:
            member_id = reader.compact_nullable_string()
        member_epoch: int = -1
        if version >= 9:
            member_epoch = reader.int32()
        topics: list[OffsetFetchRequestTopics] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            topics = None
        else:
            topics = []
            for _ in range(count):
                topics.append(OffsetFetchRequestTopics.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return OffsetFetchRequestGroup(group_id, member_id, member_epoch, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        if version >= 9:
            writer.compact_nullable_string(self.member_id)
        if version >= 9:
            writer.int32(self.member_epoch)
        if self.topics is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.topics))
            for topics_element in self.topics:
                topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class OffsetFetchRequestTopics(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id", "partition_indexes")

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchRequestTopics:
        name: str = ""
        if version <= 9:
            name = reader.compact_string()
        topic_id: bytes = ZERO_UUID
        if version >= 10:
            topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        partition_indexes = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return OffsetFetchRequestTopics(name, topic_id, partition_indexes, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 9:
            writer.compact_string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partition_indexes))
        writer.int32_list(self.partition_indexes)
        writer.unknown_tags(self.unknown_tags)
