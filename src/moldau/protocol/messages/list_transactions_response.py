"""ListTransactions response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/066-list-transactions.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class ListTransactionsResponse(Message):
    API_KEY: ClassVar[int] = 66
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] | None = None,
        transaction_states: list[TransactionState] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is None else unknown_state_filters
        self.transaction_states: list[TransactionState] = [] if transaction_states is None else transaction_states
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListTransactionsResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("ListTransactionsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        count = reader.compact_array_length(1)
        unknown_state_filters = reader.compact_string_list(count)
        transaction_states: list[TransactionState] = []
        count = reader.compact_array_length(11)
        for _ in range(count):
            transaction_states.append(TransactionState.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ListTransactionsResponse(
            throttle_time_ms,
            error_code,
            unknown_state_filters,
            transaction_states,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("ListTransactionsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_array_length(len(self.unknown_state_filters))
        writer.compact_string_list(self.unknown_state_filters)
        writer.compact_array_length(len(self.transaction_states))
        for transaction_states_element in self.transaction_states:
            transaction_states_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TransactionState(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("transactional_id", "producer_id", "transaction_state")

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.transaction_state: str = transaction_state
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TransactionState:
        transactional_id = reader.compact_string()
        producer_id = reader.int64()
        transaction_state = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return TransactionState(transactional_id, producer_id, transaction_state, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.transactional_id)
        writer.int64(self.producer_id)
        writer.compact_string(self.transaction_state)
        writer.unknown_tags(self.unknown_tags)
