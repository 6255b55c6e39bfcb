"""ControllerRegistration request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/070-controller-registration.txt.
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
    no_such_version,
)


class ControllerRegistrationRequest(Message):
    API_KEY: ClassVar[int] = 70
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "controller_id",
        "incarnation_id",
        "zk_migration_ready",
        "listeners",
        "features",
    )

    def __init__(
        self,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO_UUID,
        zk_migration_ready: bool = False,
        listeners: list[Listener] | None = None,
        features: list[Feature] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.controller_id: int = controller_id
        self.incarnation_id: bytes = incarnation_id
        self.zk_migration_ready: bool = zk_migration_ready
        self.listeners: list[Listener] = [] if listeners is None else listeners
        self.features: list[Feature] = [] if features is None else features
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ControllerRegistrationRequest:
        if version != 0:
            raise DecodeError(no_such_version("ControllerRegistrationRequest", version))
        controller_id = reader.int32()
        incarnation_id = reader.uuid()
        zk_migration_ready = reader.boolean()
        listeners: list[Listener] = []
        count = reader.compact_array_length(7)
        for _ in range(count):
            listeners.append(Listener.decode(reader, version))
        features: list[Feature] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            features.append(Feature.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ControllerRegistrationRequest(
            controller_id,
            incarnation_id,
            zk_migration_ready,
            listeners,
            features,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ControllerRegistrationRequest", version))
        writer.int32(self.controller_id)
        writer.uuid(self.incarnation_id)
        writer.boolean(self.zk_migration_ready)
        writer.compact_array_length(len(self.listeners))
        for listeners_element in self.listeners:
            listeners_element.encode(writer, version)
        writer.compact_array_length(len(self.features))
        for features_element in self.features:
            features_element.encode(writer, version)
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
