"""DescribeCluster request, versions 0 to 2 (generated).

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


class DescribeClusterRequest(Message):
    API_KEY: ClassVar[int] = 60
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "include_cluster_authorized_operations",
        "endpoint_type",
        "include_fenced_brokers",
    )

    def __init__(
        self,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeClusterRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("DescribeClusterRequest", version))
        include_cluster_authorized_operations = reader.boolean()
        endpoint_type: int = 1
        if version >= 1:
            endpoint_type = reader.int8()
        include_fenced_brokers: bool = False
        if version >= 2:
            include_fenced_brokers = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return DescribeClusterRequest(
            include_cluster_authorized_operations,
            endpoint_type,
            include_fenced_brokers,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("DescribeClusterRequest", version))
        writer.boolean(self.include_cluster_authorized_operations)
        if version >= 1:
            writer.int8(self.endpoint_type)
        elif self.endpoint_type != 1:
            raise cannot_send("endpoint_type", version)
        if version >= 2:
            writer.boolean(self.include_fenced_brokers)
        elif self.include_fenced_brokers:
            raise cannot_send("include_fenced_brokers", version)
        writer.unknown_tags(self.unknown_tags)
