"""UpdateRaftVoter response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/082-update-raft-voter.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class UpdateRaftVoterResponse(Message):
    API_KEY: ClassVar[int] = 82
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "current_leader")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.current_leader: CurrentLeader = CurrentLeader() if current_leader is None else current_leader
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UpdateRaftVoterResponse:
        if version != 0:
            raise DecodeError(no_such_version("UpdateRaftVoterResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        current_leader: CurrentLeader = CurrentLeader()
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                current_leader = CurrentLeader.decode(reader, version)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return UpdateRaftVoterResponse(throttle_time_ms, error_code, current_leader, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("UpdateRaftVoterResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        tags: UnknownTags = []
        if not self.current_leader.is_default():
            part = Writer()
            self.current_leader.encode(part, version)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class CurrentLeader(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("leader_id", "leader_epoch", "host", "port")

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CurrentLeader:
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        host = reader.compact_string()
        port = reader.int32()
        unknown_tags = reader.unknown_tags()
        return CurrentLeader(leader_id, leader_epoch, host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.leader_id != -1:
            return False
        if self.leader_epoch != -1:
            return False
        if self.host != "":
            return False
        if self.port != 0:
            return False
        return self.unknown_tags is None
