"""AddRaftVoter request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/080-add-raft-voter.txt.
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


class AddRaftVoterRequest(Message):
    API_KEY: ClassVar[int] = 80
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "cluster_id",
        "timeout_ms",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "ack_when_committed",
    )

    def __init__(
        self,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] | None = None,
        ack_when_committed: bool = True,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.timeout_ms: int = timeout_ms
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.listeners: list[Listener] = [] if listeners is None else listeners
        self.ack_when_committed: bool = ack_when_committed
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddRaftVoterRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("AddRaftVoterRequest", version))
        cluster_id = reader.compact_nullable_string()
        timeout_ms = reader.int32()
        voter_id = reader.int32()
        voter_directory_id = reader.uuid()
        listeners: list[Listener] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            listeners.append(Listener.decode(reader, version))
        ack_when_committed: bool = True
        if version >= 1:
            ack_when_committed = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return AddRaftVoterRequest(
            cluster_id,
            timeout_ms,
            voter_id,
            voter_directory_id,
            listeners,
            ack_when_committed,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("AddRaftVoterRequest", version))
        writer.compact_nullable_string(self.cluster_id)
        writer.int32(self.timeout_ms)
        writer.int32(self.voter_id)
        writer.uuid(self.voter_directory_id)
        writer.compact_array_length(len(self.listeners))
        for listeners_element in self.listeners:
            listeners_element.encode(writer, version)
        if version >= 1:
            writer.boolean(self.ack_when_committed)
        elif not self.ack_when_committed:
            raise cannot_send("ack_when_committed", version)
        writer.unknown_tags(self.unknown_tags)


class Listener(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "host", "port")

    def __init__(self, name: str = "", host: str = "", port: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Listener:
        name = reader.compact_string()
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return Listener(name, host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.unknown_tags(self.unknown_tags)
