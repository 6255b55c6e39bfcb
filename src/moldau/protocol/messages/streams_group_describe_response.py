"""StreamsGroupDescribe response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/089-streams-group-describe.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class StreamsGroupDescribeResponse(Message):
    API_KEY: ClassVar[int] = 89
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "groups")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is None else groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupDescribeResponse:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupDescribeResponse", version))
        throttle_time_ms = reader.int32()
        groups: list[DescribedGroup] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            groups.append(DescribedGroup.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return StreamsGroupDescribeResponse(throttle_time_ms, groups, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupDescribeResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.compact_array_length(len(self.groups))
        for groups_element in self.groups:
            groups_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribedGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.topology: Topology | None = topology
        self.members: list[Member] = [] if members is None else members
        self.authorized_operations: int = authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribedGroup:
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        group_id = reader.compact_string()
        group_state = reader.compact_string()
        group_epoch = reader.int32()
        assignment_epoch = reader.int32()
        topology = Topology.decode(reader, version) if reader.int8() >= 0 else None
        members: list[Member] = []
        count = reader.compact_array_length(28)
        for _ in range(count):
            members.append(Member.decode(reader, version))
        authorized_operations = reader.int32()
        unknown_tags = reader.unknown_tags()
        return DescribedGroup(
            error_code,
            error_message,
            group_id,
            group_state,
            group_epoch,
            assignment_epoch,
            topology,
            members,
            authorized_operations,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_string(self.group_id)
        writer.compact_string(self.group_state)
        writer.int32(self.group_epoch)
        writer.int32(self.assignment_epoch)
        if self.topology is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.topology.encode(writer, version)
        writer.compact_array_length(len(self.members))
        for members_element in self.members:
            members_element.encode(writer, version)
        writer.int32(self.authorized_operations)
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
        self.subtopologies: list[Subtopology] | None = subtopologies
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Topology:
        epoch = reader.int32()
        subtopologies: list[Subtopology] | None
        count = reader.compact_nullable_array_length(6)
        if count < 0:
            subtopologies = None
        else:
            subtopologies = []
            for _ in range(count):
                subtopologies.append(Subtopology.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Topology(epoch, subtopologies, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.epoch)
        if self.subtopologies is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.subtopologies))
            for subtopologies_element in self.subtopologies:
                subtopologies_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Subtopology(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        repartition_sink_topics: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is None else source_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is None else repartition_sink_topics
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is None else state_changelog_topics
        self.repartition_source_topics: list[TopicInfo] = (
            [] if repartition_source_topics is None else repartition_source_topics
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Subtopology:
        subtopology_id = reader.compact_string()
        count = reader.compact_array_length(1)
        source_topics = reader.compact_string_list(count)
        count = reader.compact_array_length(1)
        repartition_sink_topics = reader.compact_string_list(count)
        state_changelog_topics: list[TopicInfo] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            state_changelog_topics.append(TopicInfo.decode(reader, version))
        repartition_source_topics: list[TopicInfo] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            repartition_source_topics.append(TopicInfo.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Subtopology(
            subtopology_id,
            source_topics,
            repartition_sink_topics,
            state_changelog_topics,
            repartition_source_topics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_length(len(self.source_topics))
        writer.compact_string_list(self.source_topics)
        writer.compact_array_length(len(self.repartition_sink_topics))
        writer.compact_string_list(self.repartition_sink_topics)
        writer.compact_array_length(len(self.state_changelog_topics))
        for state_changelog_topics_element in self.state_changelog_topics:
            state_changelog_topics_element.encode(writer, version)
        writer.compact_array_length(len(self.repartition_source_topics))
        for repartition_source_topics_element in self.repartition_source_topics:
            repartition_source_topics_element.encode(writer, version)
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


class Member(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )

    def __init__(
        self,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.topology_epoch: int = topology_epoch
        self.process_id: str = process_id
        self.user_endpoint: Endpoint | None = user_endpoint
        self.client_tags: list[KeyValue] = [] if client_tags is None else client_tags
        self.task_offsets: list[TaskOffset] = [] if task_offsets is None else task_offsets
        self.task_end_offsets: list[TaskOffset] = [] if task_end_offsets is None else task_end_offsets
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic: bool = is_classic
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Member:
        member_id = reader.compact_string()
        member_epoch = reader.int32()
        instance_id = reader.compact_nullable_string()
        rack_id = reader.compact_nullable_string()
        client_id = reader.compact_string()
        client_host = reader.compact_string()
        topology_epoch = reader.int32()
        process_id = reader.compact_string()
        user_endpoint = Endpoint.decode(reader, version) if reader.int8() >= 0 else None
        client_tags: list[KeyValue] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            client_tags.append(KeyValue.decode(reader, version))
        task_offsets: list[TaskOffset] = []
        count = reader.compact_array_length(14)
        for _ in range(count):
            task_offsets.append(TaskOffset.decode(reader, version))
        task_end_offsets: list[TaskOffset] = []
        count = reader.compact_array_length(14)
        for _ in range(count):
            task_end_offsets.append(TaskOffset.decode(reader, version))
        assignment = Assignment.decode(reader, version)
        target_assignment = Assignment.decode(reader, version)
        is_classic = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return Member(
            member_id,
            member_epoch,
            instance_id,
            rack_id,
            client_id,
            client_host,
            topology_epoch,
            process_id,
            user_endpoint,
            client_tags,
            task_offsets,
            task_end_offsets,
            assignment,
            target_assignment,
            is_classic,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.int32(self.topology_epoch)
        writer.compact_string(self.process_id)
        if self.user_endpoint is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.user_endpoint.encode(writer, version)
        writer.compact_array_length(len(self.client_tags))
        for client_tags_element in self.client_tags:
            client_tags_element.encode(writer, version)
        writer.compact_array_length(len(self.task_offsets))
        for task_offsets_element in self.task_offsets:
            task_offsets_element.encode(writer, version)
        writer.compact_array_length(len(self.task_end_offsets))
        for task_end_offsets_element in self.task_end_offsets:
            task_end_offsets_element.encode(writer, version)
        self.assignment.encode(writer, version)
        self.target_assignment.encode(writer, version)
        writer.boolean(self.is_classic)
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


class Assignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("active_tasks", "standby_tasks", "warmup_tasks")

    def __init__(
        self,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.active_tasks: list[TaskIds] = [] if active_tasks is None else active_tasks
        self.standby_tasks: list[TaskIds] = [] if standby_tasks is None else standby_tasks
        self.warmup_tasks: list[TaskIds] = [] if warmup_tasks is None else warmup_tasks
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Assignment:
        active_tasks: list[TaskIds] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            active_tasks.append(TaskIds.decode(reader, version))
        standby_tasks: list[TaskIds] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            standby_tasks.append(TaskIds.decode(reader, version))
        warmup_tasks: list[TaskIds] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            warmup_tasks.append(TaskIds.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Assignment(active_tasks, standby_tasks, warmup_tasks, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_array_length(len(self.active_tasks))
        for active_tasks_element in self.active_tasks:
            active_tasks_element.encode(writer, version)
        writer.compact_array_length(len(self.standby_tasks))
        for standby_tasks_element in self.standby_tasks:
            standby_tasks_element.encode(writer, version)
        writer.compact_array_length(len(self.warmup_tasks))
        for warmup_tasks_element in self.warmup_tasks:
            warmup_tasks_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if len(self.active_tasks) > 0:
            return False
        if len(self.standby_tasks) > 0:
            return False
        if len(self.warmup_tasks) > 0:
            return False
        return self.unknown_tags is None


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
