"""CreateDelegationToken request, versions 1 to 3 (generated).

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


class CreateDelegationTokenRequest(Message):
    API_KEY: ClassVar[int] = 38
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")

    def __init__(
        self,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] | None = None,
        max_lifetime_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.owner_principal_type: str | None = owner_principal_type
        self.owner_principal_name: str | None = owner_principal_name
        self.renewers: list[CreatableRenewers] = [] if renewers is None else renewers
        self.max_lifetime_ms: int = max_lifetime_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreateDelegationTokenRequest:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("CreateDelegationTokenRequest", version))
        owner_principal_type: str | None = ""
        if version >= 3:
            owner_principal_type = reader.compact_nullable_string()
        owner_principal_name: str | None = ""
        if version >= 3:
            owner_principal_name = reader.compact_nullable_string()
        renewers: list[CreatableRenewers] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            renewers.append(CreatableRenewers.decode(reader, version))
        max_lifetime_ms = reader.int64()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreateDelegationTokenRequest(
            owner_principal_type,
            owner_principal_name,
            renewers,
            max_lifetime_ms,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("CreateDelegationTokenRequest", version))
        if version >= 3:
            writer.compact_nullable_string(self.owner_principal_type)
        elif self.owner_principal_type != "":
            raise cannot_send("owner_principal_type", version)
        if version >= 3:
            writer.compact_nullable_string(self.owner_principal_name)
        elif self.owner_principal_name != "":
            raise cannot_send("owner_principal_name", version)
        if version >= 2:
            writer.compact_array_length(len(self.renewers))
        else:
            writer.array_length(len(self.renewers))
        for renewers_element in self.renewers:
            renewers_element.encode(writer, version)
        writer.int64(self.max_lifetime_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatableRenewers(Message):
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
    def decode(reader: Reader, version: int) -> CreatableRenewers:
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
        return CreatableRenewers(principal_type, principal_name, unknown_tags)

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
