"""Stored records: control records (generated).

Written by tools/generate_messages.py from schemas/stored/control_records.txt.
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


class ControlRecordTypeSchema(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("type",)

    def __init__(self, type: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.type: int = type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ControlRecordTypeSchema:
        if version != 0:
            raise DecodeError(no_such_version("ControlRecordTypeSchema", version))
        type = reader.int16()
        return ControlRecordTypeSchema(type)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ControlRecordTypeSchema", version))
        writer.int16(self.type)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class EndTxnMarker(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("coordinator_epoch",)

    def __init__(self, coordinator_epoch: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.coordinator_epoch: int = coordinator_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EndTxnMarker:
        if version != 0:
            raise DecodeError(no_such_version("EndTxnMarker", version))
        coordinator_epoch = reader.int32()
        return EndTxnMarker(coordinator_epoch)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("EndTxnMarker", version))
        writer.int32(self.coordinator_epoch)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class KRaftVersionRecord(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("version", "kraft_version")

    def __init__(self, version: int = 0, kraft_version: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.version: int = version
        self.kraft_version: int = kraft_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> KRaftVersionRecord:
        if version != 0:
            raise DecodeError(no_such_version("KRaftVersionRecord", version))
        version_ = reader.int16()
        kraft_version = reader.int16()
        unknown_tags = reader.unknown_tags()
        return KRaftVersionRecord(version_, kraft_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("KRaftVersionRecord", version))
        writer.int16(self.version)
        writer.int16(self.kraft_version)
        writer.unknown_tags(self.unknown_tags)


class LeaderChangeMessage(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("version", "leader_id", "voters", "granting_voters")

    def __init__(
        self,
        version: int = 0,
        leader_id: int = 0,
        voters: list[LeaderChangeVoter] | None = None,
        granting_voters: list[LeaderChangeVoter] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.version: int = version
        self.leader_id: int = leader_id
        self.voters: list[LeaderChangeVoter] = [] if voters is None else voters
        self.granting_voters: list[LeaderChangeVoter] = [] if granting_voters is None else granting_voters
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LeaderChangeMessage:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("LeaderChangeMessage", version))
        version_ = reader.int16()
        leader_id = reader.int32()
        voters: list[LeaderChangeVoter] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            voters.append(LeaderChangeVoter.decode(reader, version))
        granting_voters: list[LeaderChangeVoter] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            granting_voters.append(LeaderChangeVoter.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return LeaderChangeMessage(version_, leader_id, voters, granting_voters, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("LeaderChangeMessage", version))
        writer.int16(self.version)
        writer.int32(self.leader_id)
        writer.compact_array_length(len(self.voters))
        for voters_element in self.voters:
            voters_element.encode(writer, version)
        writer.compact_array_length(len(self.granting_voters))
        for granting_voters_element in self.granting_voters:
            granting_voters_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class LeaderChangeVoter(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("voter_id", "voter_directory_id")

    def __init__(
        self,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LeaderChangeVoter:
        voter_id = reader.int32()
        voter_directory_id: bytes = ZERO_UUID
        if version >= 1:
            voter_directory_id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return LeaderChangeVoter(voter_id, voter_directory_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.voter_id)
        if version >= 1:
            writer.uuid(self.voter_directory_id)
        elif self.voter_directory_id != ZERO_UUID:
            raise cannot_send("voter_directory_id", version)
        writer.unknown_tags(self.unknown_tags)


class SnapshotFooterRecord(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("version",)

    def __init__(self, version: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.version: int = version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SnapshotFooterRecord:
        if version != 0:
            raise DecodeError(no_such_version("SnapshotFooterRecord", version))
        version_ = reader.int16()
        unknown_tags = reader.unknown_tags()
        return SnapshotFooterRecord(version_, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("SnapshotFooterRecord", version))
        writer.int16(self.version)
        writer.unknown_tags(self.unknown_tags)


class SnapshotHeaderRecord(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("version", "last_contained_log_timestamp")

    def __init__(
        self,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.version: int = version
        self.last_contained_log_timestamp: int = last_contained_log_timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SnapshotHeaderRecord:
        if version != 0:
            raise DecodeError(no_such_version("SnapshotHeaderRecord", version))
        version_ = reader.int16()
        last_contained_log_timestamp = reader.int64()
        unknown_tags = reader.unknown_tags()
        return SnapshotHeaderRecord(version_, last_contained_log_timestamp, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("SnapshotHeaderRecord", version))
        writer.int16(self.version)
        writer.int64(self.last_contained_log_timestamp)
        writer.unknown_tags(self.unknown_tags)


class VotersRecord(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("version", "voters")

    def __init__(
        self,
        version: int = 0,
        voters: list[Voter] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.version: int = version
        self.voters: list[Voter] = [] if voters is None else voters
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> VotersRecord:
        if version != 0:
            raise DecodeError(no_such_version("VotersRecord", version))
        version_ = reader.int16()
        voters: list[Voter] = []
        count = reader.compact_array_length(27)
        for _ in range(count):
            voters.append(Voter.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return VotersRecord(version_, voters, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("VotersRecord", version))
        writer.int16(self.version)
        writer.compact_array_length(len(self.voters))
        for voters_element in self.voters:
            voters_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Voter(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("voter_id", "voter_directory_id", "endpoints", "kraft_version_feature")

    def __init__(
        self,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        endpoints: list[Endpoint] | None = None,
        kraft_version_feature: KRaftVersionFeature | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.endpoints: list[Endpoint] = [] if endpoints is None else endpoints
        self.kraft_version_feature: KRaftVersionFeature = (
            KRaftVersionFeature() if kraft_version_feature is None else kraft_version_feature
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Voter:
        voter_id = reader.int32()
        voter_directory_id = reader.uuid()
        endpoints: list[Endpoint] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            endpoints.append(Endpoint.decode(reader, version))
        kraft_version_feature = KRaftVersionFeature.decode(reader, version)
        unknown_tags = reader.unknown_tags()
        return Voter(voter_id, voter_directory_id, endpoints, kraft_version_feature, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.voter_id)
        writer.uuid(self.voter_directory_id)
        writer.compact_array_length(len(self.endpoints))
        for endpoints_element in self.endpoints:
            endpoints_element.encode(writer, version)
        self.kraft_version_feature.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Endpoint(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "host", "port")

    def __init__(self, name: str = "", host: str = "", port: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Endpoint:
        name = reader.compact_string()
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return Endpoint(name, host, port, unknown_tags)

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
