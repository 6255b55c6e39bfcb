"""RemoveRaftVoter request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/081-remove-raft-voter.txt.
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


class RemoveRaftVoterRequest(Message):
    API_KEY: ClassVar[int] = 81
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("cluster_id", "voter_id", "voter_directory_id")

    def __init__(
        self,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.voter_directory_id: bytes = voter_directory_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RemoveRaftVoterRequest:
        if version != 0:
            raise DecodeError(no_such_version("RemoveRaftVoterRequest", version))
        cluster_id = reader.compact_nullable_string()
        voter_id = reader.int32()
        voter_directory_id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return RemoveRaftVoterRequest(cluster_id, voter_id, voter_directory_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("RemoveRaftVoterRequest", version))
        writer.compact_nullable_string(self.cluster_id)
        writer.int32(self.voter_id)
        writer.uuid(self.voter_directory_id)
        writer.unknown_tags(self.unknown_tags)
