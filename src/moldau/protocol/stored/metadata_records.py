"""Stored records: metadata records (generated).

Written by tools/generate_messages.py from schemas/stored/metadata_records.txt.
"""

from __future__ import annotations

from typing import ClassVar, Final

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
from moldau.protocol.stored.framing import decode_record, encode_record


class RegisterBrokerRecord(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "broker_id",
        "is_migrating_zk_broker",
        "incarnation_id",
        "broker_epoch",
        "end_points",
        "features",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )

    def __init__(
        self,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: bytes = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[BrokerEndpoint] | None = None,
        features: list[BrokerFeature] | None = None,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        self.incarnation_id: bytes = incarnation_id
        self.broker_epoch: int = broker_epoch
        self.end_points: list[BrokerEndpoint] = [] if end_points is None else end_points
        self.features: list[BrokerFeature] = [] if features is None else features
        self.rack: str | None = rack
        self.fenced: bool = fenced
        self.in_controlled_shutdown: bool = in_controlled_shutdown
        self.log_dirs: list[bytes] = [] if log_dirs is None else log_dirs
        self.cordoned_log_dirs: list[bytes] | None = cordoned_log_dirs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RegisterBrokerRecord:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("RegisterBrokerRecord", version))
        broker_id = reader.int32()
        is_migrating_zk_broker: bool = False
        if version >= 2:
            is_migrating_zk_broker = reader.boolean()
        incarnation_id = reader.uuid()
        broker_epoch = reader.int64()
        end_points: list[BrokerEndpoint] = []
        count = reader.compact_array_length(7)
        for _ in range(count):
            end_points.append(BrokerEndpoint.decode(reader, version))
        features: list[BrokerFeature] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            features.append(BrokerFeature.decode(reader, version))
        rack = reader.compact_nullable_string()
        fenced = reader.boolean()
        in_controlled_shutdown: bool = False
        if version >= 1:
            in_controlled_shutdown = reader.boolean()
        log_dirs: list[bytes] = []
        cordoned_log_dirs: list[bytes] | None = None
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0 and version >= 3:
                count = reader.compact_array_length(16)
                log_dirs = reader.uuid_list(count)
            elif tag == 1 and version >= 4:
                count = reader.compact_nullable_array_length(16)
                cordoned_log_dirs = None if count < 0 else reader.uuid_list(count)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return RegisterBrokerRecord(
            broker_id,
            is_migrating_zk_broker,
            incarnation_id,
            broker_epoch,
            end_points,
            features,
            rack,
            fenced,
            in_controlled_shutdown,
            log_dirs,
            cordoned_log_dirs,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("RegisterBrokerRecord", version))
        writer.int32(self.broker_id)
        if version >= 2:
            writer.boolean(self.is_migrating_zk_broker)
        elif self.is_migrating_zk_broker:
            raise cannot_send("is_migrating_zk_broker", version)
        writer.uuid(self.incarnation_id)
        writer.int64(self.broker_epoch)
        writer.compact_array_length(len(self.end_points))
        for end_points_element in self.end_points:
            end_points_element.encode(writer, version)
        writer.compact_array_length(len(self.features))
        for features_element in self.features:
            features_element.encode(writer, version)
        writer.compact_nullable_string(self.rack)
        writer.boolean(self.fenced)
        if version >= 1:
            writer.boolean(self.in_controlled_shutdown)
        elif self.in_controlled_shutdown:
            raise cannot_send("in_controlled_shutdown", version)
        if version <= 2 and len(self.log_dirs) > 0:
            raise cannot_send("log_dirs", version)
        if version <= 3 and self.cordoned_log_dirs is not None:
            raise cannot_send("cordoned_log_dirs", version)
        tags: UnknownTags = []
        if version >= 3 and len(self.log_dirs) > 0:
            part = Writer()
            part.compact_array_length(len(self.log_dirs))
            part.uuid_list(self.log_dirs)
            tags.append((0, part.to_bytes()))
        if version >= 4 and self.cordoned_log_dirs is not None:
            part = Writer()
            part.compact_array_length(len(self.cordoned_log_dirs))
            part.uuid_list(self.cordoned_log_dirs)
            tags.append((1, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class BrokerEndpoint(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "host", "port", "security_protocol")

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.security_protocol: int = security_protocol
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerEndpoint:
        name = reader.compact_string()
        host = reader.compact_string()
        port = reader.uint16()
        security_protocol = reader.int16()
        unknown_tags = reader.unknown_tags()
        return BrokerEndpoint(name, host, port, security_protocol, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.int16(self.security_protocol)
        writer.unknown_tags(self.unknown_tags)


class BrokerFeature(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "min_supported_version", "max_supported_version")

    def __init__(
        self,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerFeature:
        name = reader.compact_string()
        min_supported_version = reader.int16()
        max_supported_version = reader.int16()
        unknown_tags = reader.unknown_tags()
        return BrokerFeature(name, min_supported_version, max_supported_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int16(self.min_supported_version)
        writer.int16(self.max_supported_version)
        writer.unknown_tags(self.unknown_tags)


class UnregisterBrokerRecord(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_id", "broker_epoch")

    def __init__(self, broker_id: int = 0, broker_epoch: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UnregisterBrokerRecord:
        if version != 0:
            raise DecodeError(no_such_version("UnregisterBrokerRecord", version))
        broker_id = reader.int32()
        broker_epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return UnregisterBrokerRecord(broker_id, broker_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("UnregisterBrokerRecord", version))
        writer.int32(self.broker_id)
        writer.int64(self.broker_epoch)
        writer.unknown_tags(self.unknown_tags)


class TopicRecord(Message):
    API_KEY: ClassVar[int] = 2
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id")

    def __init__(self, name: str = "", topic_id: bytes = ZERO_UUID, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicRecord:
        if version != 0:
            raise DecodeError(no_such_version("TopicRecord", version))
        name = reader.compact_string()
        topic_id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return TopicRecord(name, topic_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("TopicRecord", version))
        writer.compact_string(self.name)
        writer.uuid(self.topic_id)
        writer.unknown_tags(self.unknown_tags)


class PartitionRecord(Message):
    API_KEY: ClassVar[int] = 3
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_id",
        "topic_id",
        "replicas",
        "isr",
        "removing_replicas",
        "adding_replicas",
        "leader",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )

    def __init__(
        self,
        partition_id: int = -1,
        topic_id: bytes = ZERO_UUID,
        replicas: list[int] | None = None,
        isr: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[bytes] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_id: int = partition_id
        self.topic_id: bytes = topic_id
        self.replicas: list[int] = [] if replicas is None else replicas
        self.isr: list[int] = [] if isr is None else isr
        self.removing_replicas: list[int] = [] if removing_replicas is None else removing_replicas
        self.adding_replicas: list[int] = [] if adding_replicas is None else adding_replicas
        self.leader: int = leader
        self.leader_recovery_state: int = leader_recovery_state
        self.leader_epoch: int = leader_epoch
        self.partition_epoch: int = partition_epoch
        self.directories: list[bytes] = [] if directories is None else directories
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionRecord:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("PartitionRecord", version))
        partition_id = reader.int32()
        topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        replicas = reader.int32_list(count)
        count = reader.compact_array_length(4)
        isr = reader.int32_list(count)
        count = reader.compact_array_length(4)
        removing_replicas = reader.int32_list(count)
        count = reader.compact_array_length(4)
        adding_replicas = reader.int32_list(count)
        leader = reader.int32()
        leader_recovery_state: int = 0
        leader_epoch = reader.int32()
        partition_epoch = reader.int32()
        directories: list[bytes] = []
        if version >= 1:
            count = reader.compact_array_length(16)
            directories = reader.uuid_list(count)
        eligible_leader_replicas: list[int] | None = None
        last_known_elr: list[int] | None = None
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                leader_recovery_state = reader.int8()
            elif tag == 1 and version >= 2:
                count = reader.compact_nullable_array_length(4)
                eligible_leader_replicas = None if count < 0 else reader.int32_list(count)
            elif tag == 2 and version >= 2:
                count = reader.compact_nullable_array_length(4)
                last_known_elr = None if count < 0 else reader.int32_list(count)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return PartitionRecord(
            partition_id,
            topic_id,
            replicas,
            isr,
            removing_replicas,
            adding_replicas,
            leader,
            leader_recovery_state,
            leader_epoch,
            partition_epoch,
            directories,
            eligible_leader_replicas,
            last_known_elr,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("PartitionRecord", version))
        writer.int32(self.partition_id)
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.replicas))
        writer.int32_list(self.replicas)
        writer.compact_array_length(len(self.isr))
        writer.int32_list(self.isr)
        writer.compact_array_length(len(self.removing_replicas))
        writer.int32_list(self.removing_replicas)
        writer.compact_array_length(len(self.adding_replicas))
        writer.int32_list(self.adding_replicas)
        writer.int32(self.leader)
        writer.int32(self.leader_epoch)
        writer.int32(self.partition_epoch)
        if version >= 1:
            writer.compact_array_length(len(self.directories))
            writer.uuid_list(self.directories)
        elif len(self.directories) > 0:
            raise cannot_send("directories", version)
        if version <= 1 and self.eligible_leader_replicas is not None:
            raise cannot_send("eligible_leader_replicas", version)
        if version <= 1 and self.last_known_elr is not None:
            raise cannot_send("last_known_elr", version)
        tags: UnknownTags = []
        if self.leader_recovery_state != 0:
            part = Writer()
            part.int8(self.leader_recovery_state)
            tags.append((0, part.to_bytes()))
        if version >= 2 and self.eligible_leader_replicas is not None:
            part = Writer()
            part.compact_array_length(len(self.eligible_leader_replicas))
            part.int32_list(self.eligible_leader_replicas)
            tags.append((1, part.to_bytes()))
        if version >= 2 and self.last_known_elr is not None:
            part = Writer()
            part.compact_array_length(len(self.last_known_elr))
            part.int32_list(self.last_known_elr)
            tags.append((2, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ConfigRecord(Message):
    API_KEY: ClassVar[int] = 4
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("resource_type", "resource_name", "name", "value")

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.name: str = name
        self.value: str | None = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConfigRecord:
        if version != 0:
            raise DecodeError(no_such_version("ConfigRecord", version))
        resource_type = reader.int8()
        resource_name = reader.compact_string()
        name = reader.compact_string()
        value = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return ConfigRecord(resource_type, resource_name, name, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ConfigRecord", version))
        writer.int8(self.resource_type)
        writer.compact_string(self.resource_name)
        writer.compact_string(self.name)
        writer.compact_nullable_string(self.value)
        writer.unknown_tags(self.unknown_tags)


class PartitionChangeRecord(Message):
    API_KEY: ClassVar[int] = 5
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_id",
        "topic_id",
        "isr",
        "leader",
        "replicas",
        "removing_replicas",
        "adding_replicas",
        "leader_recovery_state",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )

    def __init__(
        self,
        partition_id: int = -1,
        topic_id: bytes = ZERO_UUID,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[bytes] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_id: int = partition_id
        self.topic_id: bytes = topic_id
        self.isr: list[int] | None = isr
        self.leader: int = leader
        self.replicas: list[int] | None = replicas
        self.removing_replicas: list[int] | None = removing_replicas
        self.adding_replicas: list[int] | None = adding_replicas
        self.leader_recovery_state: int = leader_recovery_state
        self.directories: list[bytes] | None = directories
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionChangeRecord:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("PartitionChangeRecord", version))
        partition_id = reader.int32()
        topic_id = reader.uuid()
        isr: list[int] | None = None
        leader: int = -2
        replicas: list[int] | None = None
        removing_replicas: list[int] | None = None
        adding_replicas: list[int] | None = None
        leader_recovery_state: int = -1
        directories: list[bytes] | None = None
        eligible_leader_replicas: list[int] | None = None
        last_known_elr: list[int] | None = None
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                count = reader.compact_nullable_array_length(4)
                isr = None if count < 0 else reader.int32_list(count)
            elif tag == 1:
                leader = reader.int32()
            elif tag == 2:
                count = reader.compact_nullable_array_length(4)
                replicas = None if count < 0 else reader.int32_list(count)
            elif tag == 3:
                count = reader.compact_nullable_array_length(4)
                removing_replicas = None if count < 0 else reader.int32_list(count)
            elif tag == 4:
                count = reader.compact_nullable_array_length(4)
                adding_replicas = None if count < 0 else reader.int32_list(count)
            elif tag == 5:
                leader_recovery_state = reader.int8()
            elif tag == 6 and version >= 2:
                count = reader.compact_nullable_array_length(4)
                eligible_leader_replicas = None if count < 0 else reader.int32_list(count)
            elif tag == 7 and version >= 2:
                count = reader.compact_nullable_array_length(4)
                last_known_elr = None if count < 0 else reader.int32_list(count)
            elif tag == 8 and version >= 1:
                count = reader.compact_nullable_array_length(16)
                directories = None if count < 0 else reader.uuid_list(count)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return PartitionChangeRecord(
            partition_id,
            topic_id,
            isr,
            leader,
            replicas,
            removing_replicas,
            adding_replicas,
            leader_recovery_state,
            directories,
            eligible_leader_replicas,
            last_known_elr,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("PartitionChangeRecord", version))
        writer.int32(self.partition_id)
        writer.uuid(self.topic_id)
        if version <= 0 and self.directories is not None:
            raise cannot_send("directories", version)
        if version <= 1 and self.eligible_leader_replicas is not None:
            raise cannot_send("eligible_leader_replicas", version)
        if version <= 1 and self.last_known_elr is not None:
            raise cannot_send("last_known_elr", version)
        tags: UnknownTags = []
        if self.isr is not None:
            part = Writer()
            part.compact_array_length(len(self.isr))
            part.int32_list(self.isr)
            tags.append((0, part.to_bytes()))
        if self.leader != -2:
            part = Writer()
            part.int32(self.leader)
            tags.append((1, part.to_bytes()))
        if self.replicas is not None:
            part = Writer()
            part.compact_array_length(len(self.replicas))
            part.int32_list(self.replicas)
            tags.append((2, part.to_bytes()))
        if self.removing_replicas is not None:
            part = Writer()
            part.compact_array_length(len(self.removing_replicas))
            part.int32_list(self.removing_replicas)
            tags.append((3, part.to_bytes()))
        if self.adding_replicas is not None:
            part = Writer()
            part.compact_array_length(len(self.adding_replicas))
            part.int32_list(self.adding_replicas)
            tags.append((4, part.to_bytes()))
        if self.leader_recovery_state != -1:
            part = Writer()
            part.int8(self.leader_recovery_state)
            tags.append((5, part.to_bytes()))
        if version >= 2 and self.eligible_leader_replicas is not None:
            part = Writer()
            part.compact_array_length(len(self.eligible_leader_replicas))
            part.int32_list(self.eligible_leader_replicas)
            tags.append((6, part.to_bytes()))
        if version >= 2 and self.last_known_elr is not None:
            part = Writer()
            part.compact_array_length(len(self.last_known_elr))
            part.int32_list(self.last_known_elr)
            tags.append((7, part.to_bytes()))
        if version >= 1 and self.directories is not None:
            part = Writer()
            part.compact_array_length(len(self.directories))
            part.uuid_list(self.directories)
            tags.append((8, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class FenceBrokerRecord(Message):
    API_KEY: ClassVar[int] = 7
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "epoch")

    def __init__(self, id: int = 0, epoch: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.id: int = id
        self.epoch: int = epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FenceBrokerRecord:
        if version != 0:
            raise DecodeError(no_such_version("FenceBrokerRecord", version))
        id = reader.int32()
        epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return FenceBrokerRecord(id, epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("FenceBrokerRecord", version))
        writer.int32(self.id)
        writer.int64(self.epoch)
        writer.unknown_tags(self.unknown_tags)


class UnfenceBrokerRecord(Message):
    API_KEY: ClassVar[int] = 8
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "epoch")

    def __init__(self, id: int = 0, epoch: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.id: int = id
        self.epoch: int = epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UnfenceBrokerRecord:
        if version != 0:
            raise DecodeError(no_such_version("UnfenceBrokerRecord", version))
        id = reader.int32()
        epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return UnfenceBrokerRecord(id, epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("UnfenceBrokerRecord", version))
        writer.int32(self.id)
        writer.int64(self.epoch)
        writer.unknown_tags(self.unknown_tags)


class RemoveTopicRecord(Message):
    API_KEY: ClassVar[int] = 9
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id",)

    def __init__(self, topic_id: bytes = ZERO_UUID, unknown_tags: UnknownTags | None = None) -> None:
        self.topic_id: bytes = topic_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoveTopicRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemoveTopicRecord", version))
        topic_id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return RemoveTopicRecord(topic_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoveTopicRecord", version))
        writer.uuid(self.topic_id)
        writer.unknown_tags(self.unknown_tags)


class DelegationTokenRecord(Message):
    API_KEY: ClassVar[int] = 10
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "owner",
        "requester",
        "renewers",
        "issue_timestamp",
        "max_timestamp",
        "expiration_timestamp",
        "token_id",
    )

    def __init__(
        self,
        owner: str = "",
        requester: str = "",
        renewers: list[str] | None = None,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.owner: str = owner
        self.requester: str = requester
        self.renewers: list[str] = [] if renewers is None else renewers
        self.issue_timestamp: int = issue_timestamp
        self.max_timestamp: int = max_timestamp
        self.expiration_timestamp: int = expiration_timestamp
        self.token_id: str = token_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DelegationTokenRecord:
        if version != 0:
            raise DecodeError(no_such_version("DelegationTokenRecord", version))
        owner = reader.compact_string()
        requester = reader.compact_string()
        count = reader.compact_array_length(1)
        renewers = reader.compact_string_list(count)
        issue_timestamp = reader.int64()
        max_timestamp = reader.int64()
        expiration_timestamp = reader.int64()
        token_id = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return DelegationTokenRecord(
            owner,
            requester,
            renewers,
            issue_timestamp,
            max_timestamp,
            expiration_timestamp,
            token_id,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DelegationTokenRecord", version))
        writer.compact_string(self.owner)
        writer.compact_string(self.requester)
        writer.compact_array_length(len(self.renewers))
        writer.compact_string_list(self.renewers)
        writer.int64(self.issue_timestamp)
        writer.int64(self.max_timestamp)
        writer.int64(self.expiration_timestamp)
        writer.compact_string(self.token_id)
        writer.unknown_tags(self.unknown_tags)


class UserScramCredentialRecord(Message):
    API_KEY: ClassVar[int] = 11
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.salt: bytes = salt
        self.stored_key: bytes = stored_key
        self.server_key: bytes = server_key
        self.iterations: int = iterations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UserScramCredentialRecord:
        if version != 0:
            raise DecodeError(no_such_version("UserScramCredentialRecord", version))
        name = reader.compact_string()
        mechanism = reader.int8()
        salt = reader.compact_bytes()
        stored_key = reader.compact_bytes()
        server_key = reader.compact_bytes()
        iterations = reader.int32()
        unknown_tags = reader.unknown_tags()
        return UserScramCredentialRecord(name, mechanism, salt, stored_key, server_key, iterations, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("UserScramCredentialRecord", version))
        writer.compact_string(self.name)
        writer.int8(self.mechanism)
        writer.compact_bytes(self.salt)
        writer.compact_bytes(self.stored_key)
        writer.compact_bytes(self.server_key)
        writer.int32(self.iterations)
        writer.unknown_tags(self.unknown_tags)


class FeatureLevelRecord(Message):
    API_KEY: ClassVar[int] = 12
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "feature_level")

    def __init__(self, name: str = "", feature_level: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.feature_level: int = feature_level
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FeatureLevelRecord:
        if version != 0:
            raise DecodeError(no_such_version("FeatureLevelRecord", version))
        name = reader.compact_string()
        feature_level = reader.int16()
        unknown_tags = reader.unknown_tags()
        return FeatureLevelRecord(name, feature_level, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("FeatureLevelRecord", version))
        writer.compact_string(self.name)
        writer.int16(self.feature_level)
        writer.unknown_tags(self.unknown_tags)


class ClientQuotaRecord(Message):
    API_KEY: ClassVar[int] = 14
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("entity", "key", "value", "remove")

    def __init__(
        self,
        entity: list[EntityData] | None = None,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ClientQuotaRecord:
        if version != 0:
            raise DecodeError(no_such_version("ClientQuotaRecord", version))
        entity: list[EntityData] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            entity.append(EntityData.decode(reader, version))
        key = reader.compact_string()
        value = reader.float64()
        remove = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return ClientQuotaRecord(entity, key, value, remove, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ClientQuotaRecord", version))
        writer.compact_array_length(len(self.entity))
        for entity_element in self.entity:
            entity_element.encode(writer, version)
        writer.compact_string(self.key)
        writer.float64(self.value)
        writer.boolean(self.remove)
        writer.unknown_tags(self.unknown_tags)


class EntityData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("entity_type", "entity_name")

    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EntityData:
        entity_type = reader.compact_string()
        entity_name = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return EntityData(entity_type, entity_name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.entity_type)
        writer.compact_nullable_string(self.entity_name)
        writer.unknown_tags(self.unknown_tags)


class ProducerIdsRecord(Message):
    API_KEY: ClassVar[int] = 15
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_id", "broker_epoch", "next_producer_id")

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.next_producer_id: int = next_producer_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ProducerIdsRecord:
        if version != 0:
            raise DecodeError(no_such_version("ProducerIdsRecord", version))
        broker_id = reader.int32()
        broker_epoch = reader.int64()
        next_producer_id = reader.int64()
        unknown_tags = reader.unknown_tags()
        return ProducerIdsRecord(broker_id, broker_epoch, next_producer_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ProducerIdsRecord", version))
        writer.int32(self.broker_id)
        writer.int64(self.broker_epoch)
        writer.int64(self.next_producer_id)
        writer.unknown_tags(self.unknown_tags)


class BrokerRegistrationChangeRecord(Message):
    API_KEY: ClassVar[int] = 17
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "broker_id",
        "broker_epoch",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[bytes] | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.fenced: int = fenced
        self.in_controlled_shutdown: int = in_controlled_shutdown
        self.log_dirs: list[bytes] = [] if log_dirs is None else log_dirs
        self.cordoned_log_dirs: list[bytes] | None = cordoned_log_dirs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerRegistrationChangeRecord:
        if version < 0 or version > 3:
            raise DecodeError(no_such_version("BrokerRegistrationChangeRecord", version))
        broker_id = reader.int32()
        broker_epoch = reader.int64()
        fenced: int = 0
        in_controlled_shutdown: int = 0
        log_dirs: list[bytes] = []
        cordoned_log_dirs: list[bytes] | None = None
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                fenced = reader.int8()
            elif tag == 1 and version >= 1:
                in_controlled_shutdown = reader.int8()
            elif tag == 2 and version >= 2:
                count = reader.compact_array_length(16)
                log_dirs = reader.uuid_list(count)
            elif tag == 3 and version >= 3:
                count = reader.compact_nullable_array_length(16)
                cordoned_log_dirs = None if count < 0 else reader.uuid_list(count)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return BrokerRegistrationChangeRecord(
            broker_id,
            broker_epoch,
            fenced,
            in_controlled_shutdown,
            log_dirs,
            cordoned_log_dirs,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 3:
            raise EncodeError(no_such_version("BrokerRegistrationChangeRecord", version))
        writer.int32(self.broker_id)
        writer.int64(self.broker_epoch)
        if version <= 0 and self.in_controlled_shutdown != 0:
            raise cannot_send("in_controlled_shutdown", version)
        if version <= 1 and len(self.log_dirs) > 0:
            raise cannot_send("log_dirs", version)
        if version <= 2 and self.cordoned_log_dirs is not None:
            raise cannot_send("cordoned_log_dirs", version)
        tags: UnknownTags = []
        if self.fenced != 0:
            part = Writer()
            part.int8(self.fenced)
            tags.append((0, part.to_bytes()))
        if version >= 1 and self.in_controlled_shutdown != 0:
            part = Writer()
            part.int8(self.in_controlled_shutdown)
            tags.append((1, part.to_bytes()))
        if version >= 2 and len(self.log_dirs) > 0:
            part = Writer()
            part.compact_array_length(len(self.log_dirs))
            part.uuid_list(self.log_dirs)
            tags.append((2, part.to_bytes()))
        if version >= 3 and self.cordoned_log_dirs is not None:
            part = Writer()
            part.compact_array_length(len(self.cordoned_log_dirs))
            part.uuid_list(self.cordoned_log_dirs)
            tags.append((3, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class AccessControlEntryRecord(Message):
    API_KEY: ClassVar[int] = 18
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "id",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        id: bytes = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.id: bytes = id
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AccessControlEntryRecord:
        if version != 0:
            raise DecodeError(no_such_version("AccessControlEntryRecord", version))
        id = reader.uuid()
        resource_type = reader.int8()
        resource_name = reader.compact_string()
        pattern_type = reader.int8()
        principal = reader.compact_string()
        host = reader.compact_string()
        operation = reader.int8()
        permission_type = reader.int8()
        unknown_tags = reader.unknown_tags()
        return AccessControlEntryRecord(
            id,
            resource_type,
            resource_name,
            pattern_type,
            principal,
            host,
            operation,
            permission_type,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AccessControlEntryRecord", version))
        writer.uuid(self.id)
        writer.int8(self.resource_type)
        writer.compact_string(self.resource_name)
        writer.int8(self.pattern_type)
        writer.compact_string(self.principal)
        writer.compact_string(self.host)
        writer.int8(self.operation)
        writer.int8(self.permission_type)
        writer.unknown_tags(self.unknown_tags)


class RemoveAccessControlEntryRecord(Message):
    API_KEY: ClassVar[int] = 19
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("id",)

    def __init__(self, id: bytes = ZERO_UUID, unknown_tags: UnknownTags | None = None) -> None:
        self.id: bytes = id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoveAccessControlEntryRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemoveAccessControlEntryRecord", version))
        id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return RemoveAccessControlEntryRecord(id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoveAccessControlEntryRecord", version))
        writer.uuid(self.id)
        writer.unknown_tags(self.unknown_tags)


class NoOpRecord(Message):
    API_KEY: ClassVar[int] = 20
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, unknown_tags: UnknownTags | None = None) -> None:
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> NoOpRecord:
        if version != 0:
            raise DecodeError(no_such_version("NoOpRecord", version))
        unknown_tags = reader.unknown_tags()
        return NoOpRecord(unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("NoOpRecord", version))
        writer.unknown_tags(self.unknown_tags)


class ZkMigrationStateRecord(Message):
    API_KEY: ClassVar[int] = 21
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("zk_migration_state",)

    def __init__(self, zk_migration_state: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.zk_migration_state: int = zk_migration_state
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ZkMigrationStateRecord:
        if version != 0:
            raise DecodeError(no_such_version("ZkMigrationStateRecord", version))
        zk_migration_state = reader.int8()
        unknown_tags = reader.unknown_tags()
        return ZkMigrationStateRecord(zk_migration_state, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ZkMigrationStateRecord", version))
        writer.int8(self.zk_migration_state)
        writer.unknown_tags(self.unknown_tags)


class RemoveUserScramCredentialRecord(Message):
    API_KEY: ClassVar[int] = 22
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "mechanism")

    def __init__(self, name: str = "", mechanism: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoveUserScramCredentialRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemoveUserScramCredentialRecord", version))
        name = reader.compact_string()
        mechanism = reader.int8()
        unknown_tags = reader.unknown_tags()
        return RemoveUserScramCredentialRecord(name, mechanism, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoveUserScramCredentialRecord", version))
        writer.compact_string(self.name)
        writer.int8(self.mechanism)
        writer.unknown_tags(self.unknown_tags)


class BeginTransactionRecord(Message):
    API_KEY: ClassVar[int] = 23
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("name",)

    def __init__(self, name: str | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str | None = name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BeginTransactionRecord:
        if version != 0:
            raise DecodeError(no_such_version("BeginTransactionRecord", version))
        name: str | None = None
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                name = reader.compact_nullable_string()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return BeginTransactionRecord(name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("BeginTransactionRecord", version))
        tags: UnknownTags = []
        if self.name is not None:
            part = Writer()
            part.compact_nullable_string(self.name)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class EndTransactionRecord(Message):
    API_KEY: ClassVar[int] = 24
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, unknown_tags: UnknownTags | None = None) -> None:
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EndTransactionRecord:
        if version != 0:
            raise DecodeError(no_such_version("EndTransactionRecord", version))
        unknown_tags = reader.unknown_tags()
        return EndTransactionRecord(unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("EndTransactionRecord", version))
        writer.unknown_tags(self.unknown_tags)


class AbortTransactionRecord(Message):
    API_KEY: ClassVar[int] = 25
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("reason",)

    def __init__(self, reason: str | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.reason: str | None = reason
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AbortTransactionRecord:
        if version != 0:
            raise DecodeError(no_such_version("AbortTransactionRecord", version))
        reason: str | None = None
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                reason = reader.compact_nullable_string()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return AbortTransactionRecord(reason, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AbortTransactionRecord", version))
        tags: UnknownTags = []
        if self.reason is not None:
            part = Writer()
            part.compact_nullable_string(self.reason)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class RemoveDelegationTokenRecord(Message):
    API_KEY: ClassVar[int] = 26
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("token_id",)

    def __init__(self, token_id: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.token_id: str = token_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoveDelegationTokenRecord:
        if version != 0:
            raise DecodeError(no_such_version("RemoveDelegationTokenRecord", version))
        token_id = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return RemoveDelegationTokenRecord(token_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoveDelegationTokenRecord", version))
        writer.compact_string(self.token_id)
        writer.unknown_tags(self.unknown_tags)


class RegisterControllerRecord(Message):
    API_KEY: ClassVar[int] = 27
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "controller_id",
        "incarnation_id",
        "zk_migration_ready",
        "end_points",
        "features",
    )

    def __init__(
        self,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO_UUID,
        zk_migration_ready: bool = False,
        end_points: list[ControllerEndpoint] | None = None,
        features: list[ControllerFeature] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.controller_id: int = controller_id
        self.incarnation_id: bytes = incarnation_id
        self.zk_migration_ready: bool = zk_migration_ready
        self.end_points: list[ControllerEndpoint] = [] if end_points is None else end_points
        self.features: list[ControllerFeature] = [] if features is None else features
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RegisterControllerRecord:
        if version != 0:
            raise DecodeError(no_such_version("RegisterControllerRecord", version))
        controller_id = reader.int32()
        incarnation_id = reader.uuid()
        zk_migration_ready = reader.boolean()
        end_points: list[ControllerEndpoint] = []
        count = reader.compact_array_length(7)
        for _ in range(count):
            end_points.append(ControllerEndpoint.decode(reader, version))
        features: list[ControllerFeature] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            features.append(ControllerFeature.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return RegisterControllerRecord(
            controller_id,
            incarnation_id,
            zk_migration_ready,
            end_points,
            features,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RegisterControllerRecord", version))
        writer.int32(self.controller_id)
        writer.uuid(self.incarnation_id)
        writer.boolean(self.zk_migration_ready)
        writer.compact_array_length(len(self.end_points))
        for end_points_element in self.end_points:
            end_points_element.encode(writer, version)
        writer.compact_array_length(len(self.features))
        for features_element in self.features:
            features_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ControllerEndpoint(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "host", "port", "security_protocol")

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.security_protocol: int = security_protocol
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ControllerEndpoint:
        name = reader.compact_string()
        host = reader.compact_string()
        port = reader.uint16()
        security_protocol = reader.int16()
        unknown_tags = reader.unknown_tags()
        return ControllerEndpoint(name, host, port, security_protocol, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.int16(self.security_protocol)
        writer.unknown_tags(self.unknown_tags)


class ControllerFeature(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "min_supported_version", "max_supported_version")

    def __init__(
        self,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ControllerFeature:
        name = reader.compact_string()
        min_supported_version = reader.int16()
        max_supported_version = reader.int16()
        unknown_tags = reader.unknown_tags()
        return ControllerFeature(name, min_supported_version, max_supported_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int16(self.min_supported_version)
        writer.int16(self.max_supported_version)
        writer.unknown_tags(self.unknown_tags)


class ClearElrRecord(Message):
    API_KEY: ClassVar[int] = 28
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name",)

    def __init__(self, topic_name: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.topic_name: str = topic_name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ClearElrRecord:
        if version != 0:
            raise DecodeError(no_such_version("ClearElrRecord", version))
        topic_name = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return ClearElrRecord(topic_name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ClearElrRecord", version))
        writer.compact_string(self.topic_name)
        writer.unknown_tags(self.unknown_tags)


METADATA_RECORDS: Final[dict[int, type[Message]]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
}


def encode_metadata_record(record: Message, version: int) -> bytes:
    return encode_record(record, version)


def decode_metadata_record(data: bytes) -> Message:
    return decode_record(METADATA_RECORDS, data)
