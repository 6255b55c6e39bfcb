"""FindCoordinator response, versions 0 to 6 (generated).

Written by tools/generate_messages.py from schemas/messages/010-find-coordinator.txt.
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


class FindCoordinatorResponse(Message):
    API_KEY: ClassVar[int] = 10
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
        "coordinators",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.coordinators: list[Coordinator] = [] if coordinators is None else coordinators
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FindCoordinatorResponse:
        if version < 0 or version > 6:
            raise DecodeError(no_such_version("FindCoordinatorResponse", version))
        throttle_time_ms: int = 0
        if version >= 1:
            throttle_time_ms = reader.int32()
        error_code: int = 0
        if version <= 3:
            error_code = reader.int16()
        error_message: str | None = ""
        if version == 3:
            error_message = reader.compact_nullable_string()
        elif 1 <= version <= 2:
            error_message = reader.nullable_string()
        node_id: int = 0
        if version <= 3:
            node_id = reader.int32()
        host: str = ""
        if version == 3:
            host = reader.compact_string()
        elif version <= 2:
            host = reader.string()
        port: int = 0
        if version <= 3:
            port = reader.int32()
        coordinators: list[Coordinator] = []
        if version >= 4:
            count = reader.compact_array_length(14)
            for _ in range(count):
                coordinators.append(Coordinator.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return FindCoordinatorResponse(
            throttle_time_ms,
            error_code,
            error_message,
            node_id,
            host,
            port,
            coordinators,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 6:
            raise EncodeError(no_such_version("FindCoordinatorResponse", version))
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version >= 4:
            if self.error_code != 0:
                raise cannot_send("error_code", version)
        else:
            writer.int16(self.error_code)
        if version == 3:
            writer.compact_nullable_string(self.error_message)
        elif 1 <= version <= 2:
            writer.nullable_string(self.error_message)
        if version >= 4:
            if self.node_id != 0:
                raise cannot_send("node_id", version)
        else:
            writer.int32(self.node_id)
        if version >= 4:
            if self.host != "":
                raise cannot_send("host", version)
        elif version >= 3:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        if version >= 4:
            if self.port != 0:
                raise cannot_send("port", version)
        else:
            writer.int32(self.port)
        if version >= 4:
            writer.compact_array_length(len(self.coordinators))
            for coordinators_element in self.coordinators:
                coordinators_element.encode(writer, version)
        elif len(self.coordinators) > 0:
            raise cannot_send("coordinators", version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class Coordinator(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "node_id", "host", "port", "error_code", "error_message")

    def __init__(
        self,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.key: str = key
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Coordinator:
        key = reader.compact_string()
        node_id = reader.int32()
        host = reader.compact_string()
        port = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return Coordinator(key, node_id, host, port, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.key)
        writer.int32(self.node_id)
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)
