"""BrokerRegistration request, versions 0 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/062-broker-registration.txt.
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


class BrokerRegistrationRequest(Message):
    API_KEY: ClassVar[int] = 62
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )

    def __init__(
        self,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = ZERO_UUID,
        listeners: list[Listener] | None = None,
        features: list[Feature] | None = None,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] | None = None,
        previous_broker_epoch: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.cluster_id: str = cluster_id
        self.incarnation_id: bytes = incarnation_id
        self.listeners: list[Listener] = [] if listeners is None else listeners
        self.features: list[Feature] = [] if features is None else features
        self.rack: str | None = rack
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        self.log_dirs: list[bytes] = [] if log_dirs is None else log_dirs
        self.previous_broker_epoch: int = previous_broker_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerRegistrationRequest:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("BrokerRegistrationRequest", version))
        broker_id = reader.int32()
        cluster_id = reader.compact_string()
        incarnation_id = reader.uuid()
        listeners: list[Listener] = []
        count = reader.compact_array_length(7)
        for _ in range(count):
            listeners.append(Listener.decode(reader, version))
        features: list[Feature] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            features.append(Feature.decode(reader, version))
        rack = reader.compact_nullable_string()
        is_migrating_zk_broker: bool = False
        if version >= 1:
            is_migrating_zk_broker = reader.boolean()
        log_dirs: list[bytes] = []
        if version >= 2:
            count = reader.compact_array_length(16)
            log_dirs = reader.uuid_list(count)
        previous_broker_epoch: int = -1
        if version >= 3:
            previous_broker_epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return BrokerRegistrationRequest(
            broker_id,
            cluster_id,
            incarnation_id,
            listeners,
            features,
            rack,
            is_migrating_zk_broker,
            log_dirs,
            previous_broker_epoch,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("BrokerRegistrationRequest", version))
        writer.int32(self.broker_id)
        writer.compact_string(self.cluster_id)
        writer.uuid(self.incarnation_id)
        writer.compact_array_length(len(self.listeners))
        for listeners_element in self.listeners:
            listeners_element.encode(writer, version)
        writer.compact_array_length(len(self.features))
        for features_element in self.features:
            features_element.encode(writer, version)
        writer.compact_nullable_string(self.rack)
        if version >= 1:
            writer.boolean(self.is_migrating_zk_broker)
        elif self.is_migrating_zk_broker:
            raise cannot_send("is_migrating_zk_broker", version)
        if version >= 2:
            writer.compact_array_length(len(self.log_dirs))
            writer.uuid_list(self.log_dirs)
        if version >= 3:
            writer.int64(self.previous_broker_epoch)
        writer.unknown_tags(self.unknown_tags)


class Listener(Message):
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
    def decode(reader: Reader, version: int) -> Listener:
        name = reader.compact_string()
        host = reader.compact_string()
        port = reader.uint16()
        security_protocol = reader.int16()
        unknown_tags = reader.unknown_tags()
        return Listener(name, host, port, security_protocol, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.int16(self.security_protocol)
        writer.unknown_tags(self.unknown_tags)


class Feature(Message):
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
    def decode(reader: Reader, version: int) -> Feature:
        name = reader.compact_string()
        min_supported_version = reader.int16()
        max_supported_version = reader.int16()
        unknown_tags = reader.unknown_tags()
        return Feature(name, min_supported_version, max_supported_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int16(self.min_supported_version)
        writer.int16(self.max_supported_version)
        writer.unknown_tags(self.unknown_tags)
