"""ConsumerGroupDescribe request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/069-consumer-group-describe.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class ConsumerGroupDescribeRequest(Message):
    API_KEY: ClassVar[int] = 69
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("group_ids", "include_authorized_operations")

    def __init__(
        self,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is None else group_ids
        self.include_authorized_operations: bool = include_authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupDescribeRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("ConsumerGroupDescribeRequest", version))
        count = reader.compact_array_length(1)
        group_ids = reader.compact_string_list(count)
        include_authorized_operations = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return ConsumerGroupDescribeRequest(group_ids, include_authorized_operations, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("ConsumerGroupDescribeRequest", version))
        writer.compact_array_length(len(self.group_ids))
        writer.compact_string_list(self.group_ids)
        writer.boolean(self.include_authorized_operations)
        writer.unknown_tags(self.unknown_tags)
