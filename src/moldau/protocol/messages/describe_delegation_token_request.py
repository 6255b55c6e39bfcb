"""DescribeDelegationToken request, versions 1 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/041-describe-delegation-token.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class DescribeDelegationTokenRequest(Message):
    API_KEY: ClassVar[int] = 41
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("owners",)

    def __init__(
        self,
        owners: list[DescribeDelegationTokenOwner] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.owners: list[DescribeDelegationTokenOwner] | None = [] if owners is NOT_GIVEN else owners
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeDelegationTokenRequest:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("DescribeDelegationTokenRequest", version))
        owners: list[DescribeDelegationTokenOwner] | None
        if version >= 2:
            count = reader.compact_nullable_array_length(3)
        else:
            count = reader.nullable_array_length(4)
        if count < 0:
            owners = None
        else:
            owners = []
            for _ in range(count):
                owners.append(DescribeDelegationTokenOwner.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeDelegationTokenRequest(owners, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("DescribeDelegationTokenRequest", version))
        if version >= 2:
            if self.owners is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.owners))
                for owners_element in self.owners:
                    owners_element.encode(writer, version)
        else:
            if self.owners is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.owners))
                for owners_element in self.owners:
                    owners_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribeDelegationTokenOwner(Message):
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
    def decode(reader: Reader, version: int) -> DescribeDelegationTokenOwner:
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
        return DescribeDelegationTokenOwner(principal_type, principal_name, unknown_tags)

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
