"""DescribeUserScramCredentials response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/050-describe-user-scram-credentials.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DescribeUserScramCredentialsResponse(Message):
    API_KEY: ClassVar[int] = 50
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "error_message", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeUserScramCredentialsResponse:
        if version != 0:
            raise DecodeError(no_such_version("DescribeUserScramCredentialsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        results: list[DescribeUserScramCredentialsResult] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            results.append(DescribeUserScramCredentialsResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeUserScramCredentialsResponse(throttle_time_ms, error_code, error_message, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeUserScramCredentialsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_length(len(self.results))
        for results_element in self.results:
            results_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribeUserScramCredentialsResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("user", "error_code", "error_message", "credential_infos")

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is None else credential_infos
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeUserScramCredentialsResult:
        user = reader.compact_string()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        credential_infos: list[CredentialInfo] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            credential_infos.append(CredentialInfo.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeUserScramCredentialsResult(user, error_code, error_message, credential_infos, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.user)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_length(len(self.credential_infos))
        for credential_infos_element in self.credential_infos:
            credential_infos_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class CredentialInfo(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("mechanism", "iterations")

    def __init__(self, mechanism: int = 0, iterations: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CredentialInfo:
        mechanism = reader.int8()
        iterations = reader.int32()
        unknown_tags = reader.unknown_tags()
        return CredentialInfo(mechanism, iterations, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.mechanism)
        writer.int32(self.iterations)
        writer.unknown_tags(self.unknown_tags)
