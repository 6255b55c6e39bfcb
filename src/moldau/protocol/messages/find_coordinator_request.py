"""FindCoordinator request, versions 0 to 6 (generated).

Written by tools/generate_messages.py from schemas/messages/010-find-coordinator.txt.
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


class FindCoordinatorRequest(Message):
    API_KEY: ClassVar[int] = 10
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("key", "key_type", "coordinator_keys")

    def __init__(
        self,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.key: str = key
        self.key_type: int = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is None else coordinator_keys
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FindCoordinatorRequest:
        if version < 0 or version > 6:
            raise DecodeError(no_such_version("FindCoordinatorRequest", version))
        key: str = ""
        if version == 3:
            key = reader.compact_string()
        elif version <= 2:
            key = reader.string()
        key_type: int = 0
        if version >= 1:
            key_type = reader.int8()
        coordinator_keys: list[str] = []
        if version >= 4:
            count = reader.compact_array_length(1)
            coordinator_keys = reader.compact_string_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return FindCoordinatorRequest(key, key_type, coordinator_keys, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 6:
            raise EncodeError(no_such_version("FindCoordinatorRequest", version))
        if version >= 4:
            if self.key != "":
                raise cannot_send("key", version)
        elif version >= 3:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        if version >= 1:
            writer.int8(self.key_type)
        elif self.key_type != 0:
            raise cannot_send("key_type", version)
        if version >= 4:
            writer.compact_array_length(len(self.coordinator_keys))
            writer.compact_string_list(self.coordinator_keys)
        elif len(self.coordinator_keys) > 0:
            raise cannot_send("coordinator_keys", version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
