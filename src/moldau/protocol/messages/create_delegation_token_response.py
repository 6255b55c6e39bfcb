"""CreateDelegationToken response, versions 1 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/038-create-delegation-token.txt.
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


class CreateDelegationTokenResponse(Message):
    API_KEY: ClassVar[int] = 38
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )

    def __init__(
        self,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp_ms: int = issue_timestamp_ms
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.max_timestamp_ms: int = max_timestamp_ms
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.throttle_time_ms: int = throttle_time_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreateDelegationTokenResponse:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("CreateDelegationTokenResponse", version))
        error_code = reader.int16()
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
        issue_timestamp_ms = reader.int64()
        expiry_timestamp_ms = reader.int64()
        max_timestamp_ms = reader.int64()
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
        throttle_time_ms = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreateDelegationTokenResponse(
            error_code,
            principal_type,
            principal_name,
            token_requester_principal_type,
            token_requester_principal_name,
            issue_timestamp_ms,
            expiry_timestamp_ms,
            max_timestamp_ms,
            token_id,
            hmac,
            throttle_time_ms,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("CreateDelegationTokenResponse", version))
        writer.int16(self.error_code)
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
        writer.int64(self.issue_timestamp_ms)
        writer.int64(self.expiry_timestamp_ms)
        writer.int64(self.max_timestamp_ms)
        if version >= 2:
            writer.compact_string(self.token_id)
        else:
            writer.string(self.token_id)
        if version >= 2:
            writer.compact_bytes(self.hmac)
        else:
            writer.bytes_(self.hmac)
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
