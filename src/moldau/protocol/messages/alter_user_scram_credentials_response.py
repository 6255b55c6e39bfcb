"""AlterUserScramCredentials response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/051-alter-user-scram-credentials.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class AlterUserScramCredentialsResponse(Message):
    API_KEY: ClassVar[int] = 51
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterUserScramCredentialsResponse:
        if version != 0:
            raise DecodeError(no_such_version("AlterUserScramCredentialsResponse", version))
        throttle_time_ms = reader.int32()
        results: list[AlterUserScramCredentialsResult] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            results.append(AlterUserScramCredentialsResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterUserScramCredentialsResponse(throttle_time_ms, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AlterUserScramCredentialsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.compact_array_length(len(self.results))
        for results_element in self.results:
            results_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AlterUserScramCredentialsResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("user", "error_code", "error_message")

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterUserScramCredentialsResult:
        user = reader.compact_string()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return AlterUserScramCredentialsResult(user, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.user)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)
