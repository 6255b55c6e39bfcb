"""DescribeDelegationToken response, versions 1 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/041-describe-delegation-token.txt.
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


class DescribeDelegationTokenResponse(Message):
    API_KEY: ClassVar[int] = 41
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "tokens", "throttle_time_ms")

    def __init__(
        self,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] | None = None,
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.tokens: list[DescribedDelegationToken] = [] if tokens is None else tokens
        self.throttle_time_ms: int = throttle_time_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeDelegationTokenResponse:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("DescribeDelegationTokenResponse", version))
        error_code = reader.int16()
        tokens: list[DescribedDelegationToken] = []
        if version >= 2:
            count = reader.compact_array_length(30)
        else:
            count = reader.array_length(38)
        for _ in range(count):
            tokens.append(DescribedDelegationToken.decode(reader, version))
        throttle_time_ms = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeDelegationTokenResponse(error_code, tokens, throttle_time_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("DescribeDelegationTokenResponse", version))
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_array_length(len(self.tokens))
        else:
            writer.array_length(len(self.tokens))
        for tokens_element in self.tokens:
            tokens_element.encode(writer, version)
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribedDelegationToken(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp: int = issue_timestamp
        self.expiry_timestamp: int = expiry_timestamp
        self.max_timestamp: int = max_timestamp
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.renewers: list[DescribedDelegationTokenRenewer] = [] if renewers is None else renewers
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribedDelegationToken:
        principal_type: str
        if version >= 2:
            principal_type = reader.compact_string()
        else:
            principal_type = reader.string()
        principal_name: str
        if version >= 2:
            principal_name = reader.compact_string()
        else:
            principal_name = reader.string()
        token_requester_principal_type: str = ""
        if version >= 3:
            token_requester_principal_type = reader.compact_string()
        token_requester_principal_name: str = ""
        if version >= 3:
            token_requester_principal_name = reader.compact_string()
        issue_timestamp = reader.int64()
        expiry_timestamp = reader.int64()
        max_timestamp = reader.int64()
        token_id: str
        if version >= 2:
            token_id = reader.compact_string()
        else:
            token_id = reader.string()
        hmac: bytes
        if version >= 2:
            hmac = reader.compact_bytes()
        else:
            hmac = reader.bytes_()
        renewers: list[DescribedDelegationTokenRenewer] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            renewers.append(DescribedDelegationTokenRenewer.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribedDelegationToken(
            principal_type,
            principal_name,
            token_requester_principal_type,
            token_requester_principal_name,
            issue_timestamp,
            expiry_timestamp,
            max_timestamp,
            token_id,
            hmac,
            renewers,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.principal_type)
        else:
            writer.string(self.principal_type)
        if version >= 2:
            writer.compact_string(self.principal_name)
        else:
            writer.string(self.principal_name)
        if version >= 3:
            writer.compact_string(self.token_requester_principal_type)
        elif self.token_requester_principal_type != "":
            raise cannot_send("token_requester_principal_type", version)
        if version >= 3:
            writer.compact_string(self.token_requester_principal_name)
        elif self.token_requester_principal_name != "":
            raise cannot_send("token_requester_principal_name", version)
        writer.int64(self.issue_timestamp)
        writer.int64(self.expiry_timestamp)
        writer.int64(self.max_timestamp)
        if version >= 2:
            writer.compact_string(self.token_id)
        else:
            writer.string(self.token_id)
        if version >= 2:
            writer.compact_bytes(self.hmac)
        else:
            writer.bytes_(self.hmac)
        if version >= 2:
            writer.compact_array_length(len(self.renewers))
        else:
            writer.array_length(len(self.renewers))
        for renewers_element in self.renewers:
            renewers_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribedDelegationTokenRenewer(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("principal_type", "principal_name")

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribedDelegationTokenRenewer:
        principal_type: str
        if version >= 2:
            principal_type = reader.compact_string()
        else:
            principal_type = reader.string()
        principal_name: str
        if version >= 2:
            principal_name = reader.compact_string()
        else:
            principal_name = reader.string()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribedDelegationTokenRenewer(principal_type, principal_name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.principal_type)
        else:
            writer.string(self.principal_type)
        if version >= 2:
            writer.compact_string(self.principal_name)
        else:
            writer.string(self.principal_name)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
