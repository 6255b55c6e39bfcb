"""AllocateProducerIds response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/067-allocate-producer-ids.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class AllocateProducerIdsResponse(Message):
    API_KEY: ClassVar[int] = 67
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id_start: int = producer_id_start
        self.producer_id_len: int = producer_id_len
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AllocateProducerIdsResponse:
        if version != 0:
            raise DecodeError(no_such_version("AllocateProducerIdsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        producer_id_start = reader.int64()
        producer_id_len = reader.int32()
        unknown_tags = reader.unknown_tags()
        return AllocateProducerIdsResponse(
            throttle_time_ms,
            error_code,
            producer_id_start,
            producer_id_len,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AllocateProducerIdsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.int64(self.producer_id_start)
        writer.int32(self.producer_id_len)
        writer.unknown_tags(self.unknown_tags)
