"""StreamsGroupHeartbeat response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/088-streams-group-heartbeat.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    no_such_version,
)


class StreamsGroupHeartbeatResponse(Message):
    API_KEY: ClassVar[int] = 88
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = NOT_GIVEN,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.acceptable_recovery_lag: int = acceptable_recovery_lag
        self.task_offset_interval_ms: int = task_offset_interval_ms
        self.status: list[Status] | None = [] if status is NOT_GIVEN else status
        self.active_tasks: list[TaskIds] | None = active_tasks
        self.standby_tasks: list[TaskIds] | None = standby_tasks
        self.warmup_tasks: list[TaskIds] | None = warmup_tasks
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.partitions_by_user_endpoint: list[EndpointToPartitions] | None = partitions_by_user_endpoint
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StreamsGroupHeartbeatResponse:
        if version != 0:
            raise DecodeError(no_such_version("StreamsGroupHeartbeatResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        member_id = reader.compact_string()
        member_epoch = reader.int32()
        heartbeat_interval_ms = reader.int32()
        acceptable_recovery_lag = reader.int32()
        task_offset_interval_ms = reader.int32()
        status: list[Status] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            status = None
        else:
            status = []
            for _ in range(count):
                status.append(Status.decode(reader, version))
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
        endpoint_information_epoch = reader.int32()
        partitions_by_user_endpoint: list[EndpointToPartitions] | None
        count = reader.compact_nullable_array_length(7)
        if count < 0:
            partitions_by_user_endpoint = None
        else:
            partitions_by_user_endpoint = []
            for _ in range(count):
                partitions_by_user_endpoint.append(EndpointToPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return StreamsGroupHeartbeatResponse(
            throttle_time_ms,
            error_code,
            error_message,
            member_id,
            member_epoch,
            heartbeat_interval_ms,
            acceptable_recovery_lag,
            task_offset_interval_ms,
            status,
            active_tasks,
            standby_tasks,
            warmup_tasks,
            endpoint_information_epoch,
            partitions_by_user_endpoint,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("StreamsGroupHeartbeatResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.int32(self.heartbeat_interval_ms)
        writer.int32(self.acceptable_recovery_lag)
        writer.int32(self.task_offset_interval_ms)
        if self.status is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.status))
            for status_element in self.status:
                status_element.encode(writer, version)
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
        writer.int32(self.endpoint_information_epoch)
        if self.partitions_by_user_endpoint is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.partitions_by_user_endpoint))
            for partitions_by_user_endpoint_element in self.partitions_by_user_endpoint:
                partitions_by_user_endpoint_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Status(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("status_code", "status_detail")

    def __init__(self, status_code: int = 0, status_detail: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.status_code: int = status_code
        self.status_detail: str = status_detail
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Status:
        status_code = reader.int8()
        status_detail = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return Status(status_code, status_detail, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.status_code)
        writer.compact_string(self.status_detail)
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


class EndpointToPartitions(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("user_endpoint", "active_partitions", "standby_partitions")

    def __init__(
        self,
        user_endpoint: Endpoint | None = None,
        active_partitions: list[TopicPartition] | None = None,
        standby_partitions: list[TopicPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.user_endpoint: Endpoint = Endpoint() if user_endpoint is None else user_endpoint
        self.active_partitions: list[TopicPartition] = [] if active_partitions is None else active_partitions
        self.standby_partitions: list[TopicPartition] = [] if standby_partitions is None else standby_partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EndpointToPartitions:
        user_endpoint = Endpoint.decode(reader, version)
        active_partitions: list[TopicPartition] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            active_partitions.append(TopicPartition.decode(reader, version))
        standby_partitions: list[TopicPartition] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            standby_partitions.append(TopicPartition.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return EndpointToPartitions(user_endpoint, active_partitions, standby_partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        self.user_endpoint.encode(writer, version)
        writer.compact_array_length(len(self.active_partitions))
        for active_partitions_element in self.active_partitions:
            active_partitions_element.encode(writer, version)
        writer.compact_array_length(len(self.standby_partitions))
        for standby_partitions_element in self.standby_partitions:
            standby_partitions_element.encode(writer, version)
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

    def is_default(self) -> bool:
        if self.host != "":
            return False
        if self.port != 0:
            return False
        return self.unknown_tags is None


class TopicPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partitions")

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicPartition:
        topic = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return TopicPartition(topic, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)
