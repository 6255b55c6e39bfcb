"""AlterReplicaLogDirs request, versions 1 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/034-alter-replica-log-dirs.txt.
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


class AlterReplicaLogDirsRequest(Message):
    API_KEY: ClassVar[int] = 34
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("dirs",)

    def __init__(self, dirs: list[AlterReplicaLogDir] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is None else dirs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterReplicaLogDirsRequest:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("AlterReplicaLogDirsRequest", version))
        dirs: list[AlterReplicaLogDir] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            dirs.append(AlterReplicaLogDir.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterReplicaLogDirsRequest(dirs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("AlterReplicaLogDirsRequest", version))
        if version >= 2:
            writer.compact_array_length(len(self.dirs))
        else:
            writer.array_length(len(self.dirs))
        for dirs_element in self.dirs:
            dirs_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterReplicaLogDir(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("path", "topics")

    def __init__(
        self,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.path: str = path
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterReplicaLogDir:
        path: str
        if version >= 2:
            path = reader.compact_string()
        else:
            path = reader.string()
        topics: list[AlterReplicaLogDirTopic] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(AlterReplicaLogDirTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterReplicaLogDir(path, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.path)
        else:
            writer.string(self.path)
        if version >= 2:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterReplicaLogDirTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterReplicaLogDirTopic:
        name: str
        if version >= 2:
            name = reader.compact_string()
        else:
            name = reader.string()
        if version >= 2:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterReplicaLogDirTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
