"""ApiVersions request, versions 0 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/018-api-versions.txt.
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


class ApiVersionsRequest(Message):
    API_KEY: ClassVar[int] = 18
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("client_software_name", "client_software_version")

    def __init__(
        self,
        client_software_name: str = "",
        client_software_version: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ApiVersionsRequest:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("ApiVersionsRequest", version))
        client_software_name: str = ""
        if version >= 3:
            client_software_name = reader.compact_string()
        client_software_version: str = ""
        if version >= 3:
            client_software_version = reader.compact_string()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return ApiVersionsRequest(client_software_name, client_software_version, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("ApiVersionsRequest", version))
        if version >= 3:
            writer.compact_string(self.client_software_name)
        if version >= 3:
            writer.compact_string(self.client_software_version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
