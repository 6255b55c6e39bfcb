"""Stored records: quorum state (generated).

Written by tools/generate_messages.py from schemas/stored/quorum_state.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
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


class QuorumStateData(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "cluster_id",
        "leader_id",
        "leader_epoch",
        "voted_id",
        "voted_directory_id",
        "applied_offset",
        "current_voters",
    )

    def __init__(
        self,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: bytes = ZERO_UUID,
        applied_offset: int = 0,
        current_voters: list[Voter] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str = cluster_id
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.voted_id: int = voted_id
        self.voted_directory_id: bytes = voted_directory_id
        self.applied_offset: int = applied_offset
        self.current_voters: list[Voter] | None = [] if current_voters is NOT_GIVEN else current_voters
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> QuorumStateData:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("QuorumStateData", version))
        cluster_id: str = ""
        if version <= 0:
            cluster_id = reader.compact_string()
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        voted_id = reader.int32()
        voted_directory_id: bytes = ZERO_UUID
        if version >= 1:
            voted_directory_id = reader.uuid()
        applied_offset: int = 0
        if version <= 0:
            applied_offset = reader.int64()
        current_voters: list[Voter] | None = []
        if version <= 0:
            count = reader.compact_nullable_array_length(5)
            if count < 0:
                current_voters = None
            else:
                current_voters = []
                for _ in range(count):
                    current_voters.append(Voter.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return QuorumStateData(
            cluster_id,
            leader_id,
            leader_epoch,
            voted_id,
            voted_directory_id,
            applied_offset,
            current_voters,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("QuorumStateData", version))
        if version >= 1:
            if self.cluster_id != "":
                raise cannot_send("cluster_id", version)
        else:
            writer.compact_string(self.cluster_id)
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        writer.int32(self.voted_id)
        if version >= 1:
            writer.uuid(self.voted_directory_id)
        elif self.voted_directory_id != ZERO_UUID:
            raise cannot_send("voted_directory_id", version)
        if version >= 1:
            if self.applied_offset != 0:
                raise cannot_send("applied_offset", version)
        else:
            writer.int64(self.applied_offset)
        if version >= 1:
            if self.current_voters is None or len(self.current_voters) > 0:
                raise cannot_send("current_voters", version)
        else:
            if self.current_voters is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.current_voters))
                for current_voters_element in self.current_voters:
                    current_voters_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Voter(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("voter_id",)

    def __init__(self, voter_id: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.voter_id: int = voter_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Voter:
        voter_id = reader.int32()
        unknown_tags = reader.unknown_tags()
        return Voter(voter_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.voter_id)
        writer.unknown_tags(self.unknown_tags)
