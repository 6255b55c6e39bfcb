"""ListTransactions request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/066-list-transactions.txt.
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


class ListTransactionsRequest(Message):
    API_KEY: ClassVar[int] = 66
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )

    def __init__(
        self,
        state_filters: list[str] | None = None,
        producer_id_filters: list[int] | None = None,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is None else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is None else producer_id_filters
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListTransactionsRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("ListTransactionsRequest", version))
        count = reader.compact_array_length(1)
        state_filters = reader.compact_string_list(count)
        count = reader.compact_array_length(8)
        producer_id_filters = reader.int64_list(count)
        duration_filter: int = -1
        if version >= 1:
            duration_filter = reader.int64()
        transactional_id_pattern: str | None = None
        if version >= 2:
            transactional_id_pattern = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return ListTransactionsRequest(
            state_filters,
            producer_id_filters,
            duration_filter,
            transactional_id_pattern,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("ListTransactionsRequest", version))
        writer.compact_array_length(len(self.state_filters))
        writer.compact_string_list(self.state_filters)
        writer.compact_array_length(len(self.producer_id_filters))
        writer.int64_list(self.producer_id_filters)
        if version >= 1:
            writer.int64(self.duration_filter)
        elif self.duration_filter != -1:
            raise cannot_send("duration_filter", version)
        if version >= 2:
            writer.compact_nullable_string(self.transactional_id_pattern)
        elif self.transactional_id_pattern is not None:
            raise cannot_send("transactional_id_pattern", version)
        writer.unknown_tags(self.unknown_tags)
