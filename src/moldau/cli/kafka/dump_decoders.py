"""Decoders of `kafka-dump-log` that are not plain text; imported only when one is asked for."""

from __future__ import annotations

from collections.abc import Callable

from moldau.cli.kafka.options import JavaFailure
from moldau.records.walk import Record
from moldau.storage.inspect.json_text import java_text
from moldau.storage.inspect.stored import (
    Decoder,
    Shown,
    coordinator_decoder,
    decode_metadata,
    decode_remote_log_metadata,
)

PACKAGE = "org.apache.kafka.tools.api."


def stored_decoder(option: str) -> Decoder:
    """The decoder that an option of that name asks for."""
    if option == "offsets-decoder":
        from moldau.protocol.stored.group_records import GROUP_KEYS, GROUP_VALUES

        return coordinator_decoder(GROUP_KEYS, GROUP_VALUES, topic_is_offsets=True)
    if option == "transaction-log-decoder":
        from moldau.protocol.stored.transaction_records import TRANSACTION_KEYS, TRANSACTION_VALUES

        return coordinator_decoder(TRANSACTION_KEYS, TRANSACTION_VALUES)
    if option == "share-group-state-decoder":
        from moldau.protocol.stored.share_records import SHARE_KEYS, SHARE_VALUES

        return coordinator_decoder(SHARE_KEYS, SHARE_VALUES)
    if option == "cluster-metadata-decoder":
        return decode_metadata
    return decode_remote_log_metadata


def class_decoder(key_class: str, value_class: str) -> Decoder:
    """Keys and values by the name of a decoder class."""
    read_key, read_value = _by_class(key_class), _by_class(value_class)

    def decode(record: Record) -> Shown:
        return (
            None if record.key is None else read_key(record.key),
            None if record.value is None else read_value(record.value),
        )

    return decode


def _by_class(name: str) -> Callable[[bytes], str]:
    known: dict[str, Callable[[bytes], str]] = {
        "StringDecoder": java_text,
        "IntegerDecoder": _integer,
        "LongDecoder": _long,
        "DefaultDecoder": bytes.hex,
    }
    found = known.get(name.removeprefix(PACKAGE)) if name.startswith(PACKAGE) else None
    if found is None:
        raise JavaFailure("java.lang.RuntimeException", "Failed to load decoder class")
    return found


def _integer(data: bytes) -> str:
    return str(_number(data, 4))


def _long(data: bytes) -> str:
    return str(_number(data, 8))


def _number(data: bytes, size: int) -> int:
    if len(data) < size:
        raise JavaFailure("java.nio.BufferUnderflowException", None)
    return int.from_bytes(data[:size], "big", signed=True)
