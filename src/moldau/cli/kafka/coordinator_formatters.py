"""Formatters of the console consumer for the cluster's own topics: a JSON object for each record, no line ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.kafka.formatters import Formatter
from moldau.cli.kafka.options import JavaFailure
from moldau.protocol.primitives import DecodeError, Message
from moldau.storage.inspect.json_text import json_text, message_to_json
from moldau.storage.inspect.stored import read_message, read_versioned

if TYPE_CHECKING:
    from moldau.client.record import ConsumerRecord

Table = Mapping[int, type[Message]]

OFFSET_COMMITS = frozenset((0, 1))
GROUP_METADATA = frozenset((2,))
# Members, metadata, assignments and state of share groups.
SHARE_GROUPS = frozenset((10, 11, 12, 13, 14, 15))


class CoordinatorFormatter(Formatter):
    """Records whose keys begin with a type and whose values begin with a version; only the shown types."""

    def __init__(self, keys: Table, values: Table, shown: frozenset[int] | None = None) -> None:
        self._keys = keys
        self._values = values
        self._shown = shown

    def write(self, record: ConsumerRecord, out: list[bytes]) -> None:
        if record.key is None:
            return
        try:
            kind, reader = read_versioned(record.key, "key")
            key_class = self._keys.get(kind)
            if key_class is None:
                return
            key = read_message(key_class, reader, 0, kind, "key")
            value = None if record.value is None else self._value(kind, record.value)
            if self._shown is not None and kind not in self._shown:
                return
            shown = {"key": {"type": kind, "data": message_to_json(key, 0)}, "value": value}
        except DecodeError as error:
            sentence = f"Could not read record at offset {record.offset} due to: {error}"
            raise JavaFailure("java.lang.RuntimeException", sentence) from None
        out.append(json_text(shown).encode("utf-8", "replace"))

    def _value(self, kind: int, data: bytes) -> dict[str, object]:
        value_class = self._values[kind]
        version, reader = read_versioned(data, "value")
        if not value_class.LOWEST_VERSION <= version <= value_class.HIGHEST_VERSION:
            raise DecodeError(f"Found an unknown record version {version} for {value_class.API_KEY} type")
        message = read_message(value_class, reader, version, version, "value")
        return {"version": version, "data": message_to_json(message, version)}


def _groups(shown: frozenset[int]) -> Formatter:
    from moldau.protocol.stored.group_records import GROUP_KEYS, GROUP_VALUES

    return CoordinatorFormatter(GROUP_KEYS, GROUP_VALUES, shown)


def offsets(properties: Mapping[str, str]) -> Formatter:
    return _groups(OFFSET_COMMITS)


def group_metadata(properties: Mapping[str, str]) -> Formatter:
    return _groups(GROUP_METADATA)


def share_groups(properties: Mapping[str, str]) -> Formatter:
    return _groups(SHARE_GROUPS)


def transactions(properties: Mapping[str, str]) -> Formatter:
    from moldau.protocol.stored.transaction_records import TRANSACTION_KEYS, TRANSACTION_VALUES

    return CoordinatorFormatter(TRANSACTION_KEYS, TRANSACTION_VALUES)


def share_state(properties: Mapping[str, str]) -> Formatter:
    from moldau.protocol.stored.share_records import SHARE_KEYS, SHARE_VALUES

    return CoordinatorFormatter(SHARE_KEYS, SHARE_VALUES)
