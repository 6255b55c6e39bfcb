"""DefaultPrincipalData, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/principal.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DefaultPrincipalData(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("type", "name", "token_authenticated")

    def __init__(
        self,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.type: str = type
        self.name: str = name
        self.token_authenticated: bool = token_authenticated
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DefaultPrincipalData:
        if version != 0:
            raise DecodeError(no_such_version("DefaultPrincipalData", version))
        type = reader.compact_string()
        name = reader.compact_string()
        token_authenticated = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return DefaultPrincipalData(type, name, token_authenticated, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DefaultPrincipalData", version))
        writer.compact_string(self.type)
        writer.compact_string(self.name)
        writer.boolean(self.token_authenticated)
        writer.unknown_tags(self.unknown_tags)
