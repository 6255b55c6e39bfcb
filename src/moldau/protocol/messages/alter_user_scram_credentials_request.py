"""AlterUserScramCredentials request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/051-alter-user-scram-credentials.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class AlterUserScramCredentialsRequest(Message):
    API_KEY: ClassVar[int] = 51
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("deletions", "upsertions")

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] | None = None,
        upsertions: list[ScramCredentialUpsertion] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is None else deletions
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is None else upsertions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterUserScramCredentialsRequest:
        if version != 0:
            raise DecodeError(no_such_version("AlterUserScramCredentialsRequest", version))
        deletions: list[ScramCredentialDeletion] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            deletions.append(ScramCredentialDeletion.decode(reader, version))
        upsertions: list[ScramCredentialUpsertion] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            upsertions.append(ScramCredentialUpsertion.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterUserScramCredentialsRequest(deletions, upsertions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AlterUserScramCredentialsRequest", version))
        writer.compact_array_length(len(self.deletions))
        for deletions_element in self.deletions:
            deletions_element.encode(writer, version)
        writer.compact_array_length(len(self.upsertions))
        for upsertions_element in self.upsertions:
            upsertions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ScramCredentialDeletion(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "mechanism")

    def __init__(self, name: str = "", mechanism: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ScramCredentialDeletion:
        name = reader.compact_string()
        mechanism = reader.int8()
        unknown_tags = reader.unknown_tags()
        return ScramCredentialDeletion(name, mechanism, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int8(self.mechanism)
        writer.unknown_tags(self.unknown_tags)


class ScramCredentialUpsertion(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "mechanism", "iterations", "salt", "salted_password")

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.salt: bytes = salt
        self.salted_password: bytes = salted_password
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ScramCredentialUpsertion:
        name = reader.compact_string()
        mechanism = reader.int8()
        iterations = reader.int32()
        salt = reader.compact_bytes()
        salted_password = reader.compact_bytes()
        unknown_tags = reader.unknown_tags()
        return ScramCredentialUpsertion(name, mechanism, iterations, salt, salted_password, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int8(self.mechanism)
        writer.int32(self.iterations)
        writer.compact_bytes(self.salt)
        writer.compact_bytes(self.salted_password)
        writer.unknown_tags(self.unknown_tags)
