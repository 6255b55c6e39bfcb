"""DescribeTransactions request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/065-describe-transactions.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DescribeTransactionsRequest(Message):
    API_KEY: ClassVar[int] = 65
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("transactional_ids",)

    def __init__(self, transactional_ids: list[str] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is None else transactional_ids
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeTransactionsRequest:
        if version != 0:
            raise DecodeError(no_such_version("DescribeTransactionsRequest", version))
        count = reader.compact_array_length(1)
        transactional_ids = reader.compact_string_list(count)
        unknown_tags = reader.unknown_tags()
        return DescribeTransactionsRequest(transactional_ids, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeTransactionsRequest", version))
        writer.compact_array_length(len(self.transactional_ids))
        writer.compact_string_list(self.transactional_ids)
        writer.unknown_tags(self.unknown_tags)
