"""DescribeCluster response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/060-describe-cluster.txt.
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


class DescribeClusterResponse(Message):
    API_KEY: ClassVar[int] = 60
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] | None = None,
        cluster_authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: list[DescribeClusterBroker] = [] if brokers is None else brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeClusterResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("DescribeClusterResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        endpoint_type: int = 1
        if version >= 1:
            endpoint_type = reader.int8()
        cluster_id = reader.compact_string()
        controller_id = reader.int32()
        brokers: list[DescribeClusterBroker] = []
        count = reader.compact_array_length(11)
        for _ in range(count):
            brokers.append(DescribeClusterBroker.decode(reader, version))
        cluster_authorized_operations = reader.int32()
        unknown_tags = reader.unknown_tags()
        return DescribeClusterResponse(
            throttle_time_ms,
            error_code,
            error_message,
            endpoint_type,
            cluster_id,
            controller_id,
            brokers,
            cluster_authorized_operations,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("DescribeClusterResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        if version >= 1:
            writer.int8(self.endpoint_type)
        elif self.endpoint_type != 1:
            raise cannot_send("endpoint_type", version)
        writer.compact_string(self.cluster_id)
        writer.int32(self.controller_id)
        writer.compact_array_length(len(self.brokers))
        for brokers_element in self.brokers:
            brokers_element.encode(writer, version)
        writer.int32(self.cluster_authorized_operations)
        writer.unknown_tags(self.unknown_tags)


class DescribeClusterBroker(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_id", "host", "port", "rack", "is_fenced")

    def __init__(
        self,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.is_fenced: bool = is_fenced
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeClusterBroker:
        broker_id = reader.int32()
        host = reader.compact_string()
        port = reader.int32()
        rack = reader.compact_nullable_string()
        is_fenced: bool = False
        if version >= 2:
            is_fenced = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return DescribeClusterBroker(broker_id, host, port, rack, is_fenced, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.broker_id)
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.compact_nullable_string(self.rack)
        if version >= 2:
            writer.boolean(self.is_fenced)
        elif self.is_fenced:
            raise cannot_send("is_fenced", version)
        writer.unknown_tags(self.unknown_tags)
