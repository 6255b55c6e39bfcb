"""JoinGroup request, versions 0 to 9 (generated).

Written by tools/generate_messages.py from schemas/messages/011-join-group.txt.
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


class JoinGroupRequest(Message):
    API_KEY: ClassVar[int] = 11
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 9
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[str, ...]] = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )

    def __init__(
        self,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] | None = None,
        reason: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is None else protocols
        self.reason: str | None = reason
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> JoinGroupRequest:
        if version < 0 or version > 9:
            raise DecodeError(no_such_version("JoinGroupRequest", version))
        group_id: str
        if version >= 6:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        session_timeout_ms = reader.int32()
        rebalance_timeout_ms: int = -1
        if version >= 1:
            rebalance_timeout_ms = reader.int32()
        member_id: str
        if version >= 6:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        group_instance_id: str | None = None
        if version >= 6:
            group_instance_id = reader.compact_nullable_string()
        elif version >= 5:
            group_instance_id = reader.nullable_string()
        protocol_type: str
        if version >= 6:
            protocol_type = reader.compact_string()
        else:
            protocol_type = reader.string()
        protocols: list[JoinGroupRequestProtocol] = []
        if version >= 6:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            protocols.append(JoinGroupRequestProtocol.decode(reader, version))
        reason: str | None = None
        if version >= 8:
            reason = reader.compact_nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return JoinGroupRequest(
            group_id,
            session_timeout_ms,
            rebalance_timeout_ms,
            member_id,
            group_instance_id,
            protocol_type,
            protocols,
            reason,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 9:
            raise EncodeError(no_such_version("JoinGroupRequest", version))
        if version >= 6:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.int32(self.session_timeout_ms)
        if version >= 1:
            writer.int32(self.rebalance_timeout_ms)
        if version >= 6:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 6:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 5:
            writer.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise cannot_send("group_instance_id", version)
        if version >= 6:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if version >= 6:
            writer.compact_array_length(len(self.protocols))
        else:
            writer.array_length(len(self.protocols))
        for protocols_element in self.protocols:
            protocols_element.encode(writer, version)
        if version >= 8:
            writer.compact_nullable_string(self.reason)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class JoinGroupRequestProtocol(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "metadata")

    def __init__(self, name: str = "", metadata: bytes = b"", unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.metadata: bytes = metadata
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> JoinGroupRequestProtocol:
        name: str
        if version >= 6:
            name = reader.compact_string()
        else:
            name = reader.string()
        metadata: bytes
        if version >= 6:
            metadata = reader.compact_bytes()
        else:
            metadata = reader.bytes_()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return JoinGroupRequestProtocol(name, metadata, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_bytes(self.metadata)
        else:
            writer.bytes_(self.metadata)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
