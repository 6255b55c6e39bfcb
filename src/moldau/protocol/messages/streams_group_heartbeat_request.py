"""StreamsGroupHeartbeat request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/088-streams-group-heartbeat.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class StreamsGroupHeartbeatRequest(Message):
    API_KEY: ClassVar[int] = 88
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.topology: Topology | None = topology
        self.active_tasks: list[TaskIds] | None = active_tasks
        self.standby_tasks: list[TaskIds] | None = standby_tasks
        self.warmup_tasks: list[TaskIds] | None = warmup_tasks
        self.process_id: str | None = process_id
        self.user_endpoint: Endpoint | None = user_endpoint
        self.client_tags: list[KeyValue] | None = client_tags
        self.task_offsets: list[TaskOffset] | None = task_offsets
        self.task_end_offsets: list[TaskOffset] | None = task_end_offsets
        self.shutdown_application: bool = shutdown_application
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupHeartbeatRequest:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupHeartbeatRequest", version))
        group_id = reader.compact_string()
        member_id = reader.compact_string()
        member_epoch = reader.int32()
        endpoint_information_epoch = reader.int32()
        instance_id = reader.compact_nullable_string()
        rack_id = reader.compact_nullable_string()
        rebalance_timeout_ms = reader.int32()
        topology = Topology.decode(reader, version) if reader.int8() >= 0 else None
        active_tasks: list[TaskIds] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            active_tasks = None
        else:
            active_tasks = []
            for _ in range(count):
                active_tasks.append(TaskIds.decode(reader, version))
        standby_tasks: list[TaskIds] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            standby_tasks = None
        else:
            standby_tasks = []
            for _ in range(count):
                standby_tasks.append(TaskIds.decode(reader, version))
        warmup_tasks: list[TaskIds] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            warmup_tasks = None
        else:
            warmup_tasks = []
            for _ in range(count):
                warmup_tasks.append(TaskIds.decode(reader, version))
        process_id = reader.compact_nullable_string()
        user_endpoint = Endpoint.decode(reader, version) if reader.int8() >= 0 else None
        client_tags: list[KeyValue] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            client_tags = None
        else:
            client_tags = []
            for _ in range(count):
                client_tags.append(KeyValue.decode(reader, version))
        task_offsets: list[TaskOffset] | None
        count = reader.compact_nullable_array_length(14)
        if count < 0:
            task_offsets = None
        else:
            task_offsets = []
            for _ in range(count):
                task_offsets.append(TaskOffset.decode(reader, version))
        task_end_offsets: list[TaskOffset] | None
        count = reader.compact_nullable_array_length(14)
        if count < 0:
            task_end_offsets = None
        else:
            task_end_offsets = []
            for _ in range(count):
                task_end_offsets.append(TaskOffset.decode(reader, version))
        shutdown_application = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return StreamsGroupHeartbeatRequest(
            group_id,
            member_id,
            member_epoch,
            endpoint_information_epoch,
            instance_id,
            rack_id,
            rebalance_timeout_ms,
            topology,
            active_tasks,
            standby_tasks,
            warmup_tasks,
            process_id,
            user_endpoint,
            client_tags,
            task_offsets,
            task_end_offsets,
            shutdown_application,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupHeartbeatRequest", version))
        writer.compact_string(self.group_id)
        writer.compact_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.int32(self.endpoint_information_epoch)
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.int32(self.rebalance_timeout_ms)
        if self.topology is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.topology.encode(writer, version)
        if self.active_tasks is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.active_tasks))
            for active_tasks_element in self.active_tasks:
                active_tasks_element.encode(writer, version)
        if self.standby_tasks is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.standby_tasks))
            for standby_tasks_element in self.standby_tasks:
                standby_tasks_element.encode(writer, version)
        if self.warmup_tasks is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.warmup_tasks))
            for warmup_tasks_element in self.warmup_tasks:
                warmup_tasks_element.encode(writer, version)
        writer.compact_nullable_string(self.process_id)
        if self.user_endpoint is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.user_endpoint.encode(writer, version)
        if self.client_tags is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.client_tags))
            for client_tags_element in self.client_tags:
                client_tags_element.encode(writer, version)
        if self.task_offsets is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.task_offsets))
            for task_offsets_element in self.task_offsets:
                task_offsets_element.encode(writer, version)
        if self.task_end_offsets is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.task_end_offsets))
            for task_end_offsets_element in self.task_end_offsets:
                task_end_offsets_element.encode(writer, version)
        writer.boolean(self.shutdown_application)
        writer.unknown_tags(self.unknown_tags)


class Topology(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("epoch", "subtopologies")

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[Subtopology] = [] if subtopologies is None else subtopologies
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Topology:
        epoch = reader.int32()
        subtopologies: list[Subtopology] = []
        count = reader.compact_array_length(8)
        for _ in range(count):
            subtopologies.append(Subtopology.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Topology(epoch, subtopologies, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.epoch)
        writer.compact_array_length(len(self.subtopologies))
        for subtopologies_element in self.subtopologies:
            subtopologies_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Subtopology(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        source_topic_regex: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_sink_topics: list[str] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
        copartition_groups: list[CopartitionGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is None else source_topics
        self.source_topic_regex: list[str] = [] if source_topic_regex is None else source_topic_regex
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is None else state_changelog_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is None else repartition_sink_topics
        self.repartition_source_topics: list[TopicInfo] = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.copartition_groups: list[CopartitionGroup] = [] if copartition_groups is None else copartition_groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Subtopology:
        subtopology_id = reader.compact_string()
        count = reader.compact_array_length(1)
        source_topics = reader.compact_string_list(count)
        count = reader.compact_array_length(1)
        source_topic_regex = reader.compact_string_list(count)
        state_changelog_topics: list[TopicInfo] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            state_changelog_topics.append(TopicInfo.decode(reader, version))
        count = reader.compact_array_length(1)
        repartition_sink_topics = reader.compact_string_list(count)
        repartition_source_topics: list[TopicInfo] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            repartition_source_topics.append(TopicInfo.decode(reader, version))
        copartition_groups: list[CopartitionGroup] = []
        count = reader.compact_array_length(4)
        for _ in range(count):
            copartition_groups.append(CopartitionGroup.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Subtopology(
            subtopology_id,
            source_topics,
            source_topic_regex,
            state_changelog_topics,
            repartition_sink_topics,
            repartition_source_topics,
            copartition_groups,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_length(len(self.source_topics))
        writer.compact_string_list(self.source_topics)
        writer.compact_array_length(len(self.source_topic_regex))
        writer.compact_string_list(self.source_topic_regex)
        writer.compact_array_length(len(self.state_changelog_topics))
        for state_changelog_topics_element in self.state_changelog_topics:
            state_changelog_topics_element.encode(writer, version)
        writer.compact_array_length(len(self.repartition_sink_topics))
        writer.compact_string_list(self.repartition_sink_topics)
        writer.compact_array_length(len(self.repartition_source_topics))
        for repartition_source_topics_element in self.repartition_source_topics:
            repartition_source_topics_element.encode(writer, version)
        writer.compact_array_length(len(self.copartition_groups))
        for copartition_groups_element in self.copartition_groups:
            copartition_groups_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicInfo(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions", "replication_factor", "topic_configs")

    def __init__(
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: int = partitions
        self.replication_factor: int = replication_factor
        self.topic_configs: list[KeyValue] = [] if topic_configs is None else topic_configs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicInfo:
        name = reader.compact_string()
        partitions = reader.int32()
        replication_factor = reader.int16()
        topic_configs: list[KeyValue] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topic_configs.append(KeyValue.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicInfo(name, partitions, replication_factor, topic_configs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int32(self.partitions)
        writer.int16(self.replication_factor)
        writer.compact_array_length(len(self.topic_configs))
        for topic_configs_element in self.topic_configs:
            topic_configs_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class CopartitionGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("source_topics", "source_topic_regex", "repartition_source_topics")

    def __init__(
        self,
        source_topics: list[int] | None = None,
        source_topic_regex: list[int] | None = None,
        repartition_source_topics: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.source_topics: list[int] = [] if source_topics is None else source_topics
        self.source_topic_regex: list[int] = [] if source_topic_regex is None else source_topic_regex
        self.repartition_source_topics: list[int] = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CopartitionGroup:
        count = reader.compact_array_length(2)
        source_topics = reader.int16_list(count)
        count = reader.compact_array_length(2)
        source_topic_regex = reader.int16_list(count)
        count = reader.compact_array_length(2)
        repartition_source_topics = reader.int16_list(count)
        unknown_tags = reader.unknown_tags()
        return CopartitionGroup(source_topics, source_topic_regex, repartition_source_topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_array_length(len(self.source_topics))
        writer.int16_list(self.source_topics)
        writer.compact_array_length(len(self.source_topic_regex))
        writer.int16_list(self.source_topic_regex)
        writer.compact_array_length(len(self.repartition_source_topics))
        writer.int16_list(self.repartition_source_topics)
        writer.unknown_tags(self.unknown_tags)


class TaskIds(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("subtopology_id", "partitions")

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TaskIds:
        subtopology_id = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return TaskIds(subtopology_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)


class Endpoint(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("host", "port")

    def __init__(self, host: str = "", port: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Endpoint:
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return Endpoint(host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.unknown_tags(self.unknown_tags)


class KeyValue(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "value")

    def __init__(self, key: str = "", value: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.key: str = key
        self.value: str = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> KeyValue:
        key = reader.compact_string()
        value = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return KeyValue(key, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.key)
        writer.compact_string(self.value)
        writer.unknown_tags(self.unknown_tags)


class TaskOffset(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("subtopology_id", "partition", "offset")

    def __init__(
        self,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partition: int = partition
        self.offset: int = offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TaskOffset:
        subtopology_id = reader.compact_string()
        partition = reader.int32()
        offset = reader.int64()
        unknown_tags = reader.unknown_tags()
        return TaskOffset(subtopology_id, partition, offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.int32(self.partition)
        writer.int64(self.offset)
        writer.unknown_tags(self.unknown_tags)
