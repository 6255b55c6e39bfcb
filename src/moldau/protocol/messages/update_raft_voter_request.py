"""UpdateRaftVoter request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/082-update-raft-voter.txt.
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


class UpdateRaftVoterRequest(Message):
    API_KEY: ClassVar[int] = 82
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "kraft_version_feature",
    )

    def __init__(
        self,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] | None = None,
        kraft_version_feature: KRaftVersionFeature | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.current_leader_epoch: int = current_leader_epoch
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.listeners: list[Listener] = [] if listeners is None else listeners
        self.kraft_version_feature: KRaftVersionFeature = (
            KRaftVersionFeature() if kraft_version_feature is None else kraft_version_feature
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UpdateRaftVoterRequest:
        if version != 0:
            raise DecodeError(no_such_version("UpdateRaftVoterRequest", version))
        cluster_id = reader.compact_nullable_string()
        current_leader_epoch = reader.int32()
        voter_id = reader.int32()
        voter_directory_id = reader.uuid()
        listeners: list[Listener] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            listeners.append(Listener.decode(reader, version))
        kraft_version_feature = KRaftVersionFeature.decode(reader, version)
        unknown_tags = reader.unknown_tags()
        return UpdateRaftVoterRequest(
            cluster_id,
            current_leader_epoch,
            voter_id,
            voter_directory_id,
            listeners,
            kraft_version_feature,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("UpdateRaftVoterRequest", version))
        writer.compact_nullable_string(self.cluster_id)
        writer.int32(self.current_leader_epoch)
        writer.int32(self.voter_id)
        writer.uuid(self.voter_directory_id)
        writer.compact_array_length(len(self.listeners))
        for listeners_element in self.listeners:
            listeners_element.encode(writer, version)
        self.kraft_version_feature.encode(writer, version)
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


class KRaftVersionFeature(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("min_supported_version", "max_supported_version")

    def __init__(
        self,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> KRaftVersionFeature:
        min_supported_version = reader.int16()
        max_supported_version = reader.int16()
        unknown_tags = reader.unknown_tags()
        return KRaftVersionFeature(min_supported_version, max_supported_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.min_supported_version)
        writer.int16(self.max_supported_version)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.min_supported_version != 0:
            return False
        if self.max_supported_version != 0:
            return False
        return self.unknown_tags is None
