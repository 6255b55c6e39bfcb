"""Vote response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/052-vote.txt.
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


class VoteResponse(Message):
    API_KEY: ClassVar[int] = 52
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "topics", "node_endpoints")

    def __init__(
        self,
        error_code: int = 0,
        topics: list[TopicData] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[TopicData] = [] if topics is None else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> VoteResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("VoteResponse", version))
        error_code = reader.int16()
        topics: list[TopicData] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        node_endpoints: list[NodeEndpoint] = []
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0 and version >= 1:
                count = reader.compact_array_length(8)
                node_endpoints = []
                for _ in range(count):
                    node_endpoints.append(NodeEndpoint.decode(reader, version))
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return VoteResponse(error_code, topics, node_endpoints, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("VoteResponse", version))
        writer.int16(self.error_code)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version <= 0 and len(self.node_endpoints) > 0:
            raise cannot_send("node_endpoints", version)
        tags: UnknownTags = []
        if version >= 1 and len(self.node_endpoints) > 0:
            part = Writer()
            part.compact_array_length(len(self.node_endpoints))
            for node_endpoints_element in self.node_endpoints:
                node_endpoints_element.encode(part, version)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class TopicData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicData:
        topic_name = reader.compact_string()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(16)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicData(topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted")

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.vote_granted: bool = vote_granted
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        error_code = reader.int16()
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        vote_granted = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return PartitionData(partition_index, error_code, leader_id, leader_epoch, vote_granted, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        writer.boolean(self.vote_granted)
        writer.unknown_tags(self.unknown_tags)


class NodeEndpoint(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("node_id", "host", "port")

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> NodeEndpoint:
        node_id = reader.int32()
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return NodeEndpoint(node_id, host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.unknown_tags(self.unknown_tags)
