"""SyncGroup response, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/014-sync-group.txt.
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


class SyncGroupResponse(Message):
    API_KEY: ClassVar[int] = 14
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "protocol_type",
        "protocol_name",
        "assignment",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: bytes = assignment
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SyncGroupResponse:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("SyncGroupResponse", version))
        throttle_time_ms: int = 0
        if version >= 1:
            throttle_time_ms = reader.int32()
        error_code = reader.int16()
        protocol_type: str | None = None
        if version >= 5:
            protocol_type = reader.compact_nullable_string()
        protocol_name: str | None = None
        if version >= 5:
            protocol_name = reader.compact_nullable_string()
        assignment: bytes
        if version >= 4:
            assignment = reader.compact_bytes()
        else:
            assignment = reader.bytes_()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return SyncGroupResponse(throttle_time_ms, error_code, protocol_type, protocol_name, assignment, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("SyncGroupResponse", version))
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_type)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_name)
        if version >= 4:
            writer.compact_bytes(self.assignment)
        else:
            writer.bytes_(self.assignment)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
