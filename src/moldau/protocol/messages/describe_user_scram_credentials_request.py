"""DescribeUserScramCredentials request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/050-describe-user-scram-credentials.txt.
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
    no_such_version,
)


class DescribeUserScramCredentialsRequest(Message):
    API_KEY: ClassVar[int] = 50
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("users",)

    def __init__(self, users: list[UserName] | None = NOT_GIVEN, unknown_tags: UnknownTags | None = None) -> None:
        self.users: list[UserName] | None = [] if users is NOT_GIVEN else users
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeUserScramCredentialsRequest:
        if version != 0:
            raise DecodeError(no_such_version("DescribeUserScramCredentialsRequest", version))
        users: list[UserName] | None
        count = reader.compact_nullable_array_length(2)
        if count < 0:
            users = None
        else:
            users = []
            for _ in range(count):
                users.append(UserName.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeUserScramCredentialsRequest(users, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeUserScramCredentialsRequest", version))
        if self.users is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.users))
            for users_element in self.users:
                users_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class UserName(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name",)

    def __init__(self, name: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UserName:
        name = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return UserName(name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.unknown_tags(self.unknown_tags)
