"""How the console consumer shows records: the formatters of Kafka's tools by their Java names.

A formatter turns records into bytes, many at a time. `FORMATTERS` says where each lives; one that decodes the records
of a topic of the cluster itself is imported only when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from moldau.cli.kafka.options import JavaFailure

if TYPE_CHECKING:
    from moldau.cli.kafka.deserializers import Deserializer
    from moldau.client.record import ConsumerRecord

PACKAGE = "org.apache.kafka.tools.consumer."
DEFAULT = PACKAGE + "DefaultMessageFormatter"
DEFAULT_LOGGER = DEFAULT
TIMESTAMP_TYPES = (b"CreateTime:", b"LogAppendTime:")


class Formatter:
    """Writes one record after another."""

    def write(self, record: ConsumerRecord) -> bytes:
        """The record as it is printed; raises JavaFailure for one that cannot be shown."""
        raise NotImplementedError

    def write_all(self, records: Sequence[ConsumerRecord]) -> bytes:
        """The same for many; on JavaFailure nothing is known of the others."""
        return b"".join([self.write(record) for record in records])


Factory = Callable[[Mapping[str, str]], Formatter]

# Java class -> where its formatter is made: module:function(properties)
FORMATTERS: dict[str, str] = {
    DEFAULT: "moldau.cli.kafka.formatters:DefaultFormatter",
    PACKAGE + "LoggingMessageFormatter": "moldau.cli.kafka.formatters:LoggingFormatter",
    PACKAGE + "NoOpMessageFormatter": "moldau.cli.kafka.formatters:NoFormatter",
    PACKAGE + "OffsetsMessageFormatter": "moldau.cli.kafka.coordinator_formatters:offsets",
    PACKAGE + "GroupMetadataMessageFormatter": "moldau.cli.kafka.coordinator_formatters:group_metadata",
    PACKAGE + "ShareGroupMessageFormatter": "moldau.cli.kafka.coordinator_formatters:share_groups",
    PACKAGE + "TransactionLogMessageFormatter": "moldau.cli.kafka.coordinator_formatters:transactions",
    PACKAGE + "group.share.ShareGroupStateMessageFormatter": "moldau.cli.kafka.coordinator_formatters:share_state",
}


def new_formatter(name: str, properties: Mapping[str, str]) -> Formatter:
    """The formatter with this class name, set up with its properties."""
    where = FORMATTERS.get(name)
    if where is None:
        raise JavaFailure("java.lang.ClassNotFoundException", name)
    module, _, function = where.partition(":")
    made: Formatter = getattr(import_module(module), function)(properties)
    return made


class DefaultFormatter(Formatter):
    """Parts of the record behind each other, the value last."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._timestamp = _is_true(properties, "print.timestamp")
        self._partition = _is_true(properties, "print.partition")
        self._offset = _is_true(properties, "print.offset")
        self._delivery = _is_true(properties, "print.delivery")
        self._epoch = _is_true(properties, "print.epoch")
        self._headers = _is_true(properties, "print.headers")
        self._key = _is_true(properties, "print.key")
        self._value = _is_true(properties, "print.value", "true")
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._of_key = _deserializer(properties, "key.deserializer", True)
        self._of_value = _deserializer(properties, "value.deserializer", False)
        self._of_headers = _deserializer(properties, "headers.deserializer", False)
        extras = self._timestamp or self._partition or self._offset or self._delivery or self._epoch or self._headers
        self._plain = self._value and self._of_value is None and self._of_key is None and not extras

    def write_all(self, records: Sequence[ConsumerRecord]) -> bytes:
        if not self._plain:
            return super().write_all(records)
        null, end = self._null, self._line_end
        if not self._key:
            values = [null if record.value is None else record.value for record in records]
            return end.join(values) + end if values else b""
        between = self._separator
        parts = [
            b"%b%b%b%b"
            % (
                null if record.key is None else record.key,
                between,
                null if record.value is None else record.value,
                end,
            )
            for record in records
        ]
        return b"".join(parts)

    def write(self, record: ConsumerRecord) -> bytes:
        parts: list[bytes] = []
        if self._timestamp:
            parts.append(b"%b%d" % (TIMESTAMP_TYPES[record.timestamp_type], record.timestamp))
        if self._partition:
            parts.append(b"Partition:%d" % record.partition)
        if self._offset:
            parts.append(b"Offset:%d" % record.offset)
        if self._delivery:
            parts.append(b"Delivery:NOT_PRESENT")
        if self._epoch:
            # The tool copies the record before it is shown, and leaves the epoch out.
            parts.append(b"Epoch:NOT_PRESENT")
        if self._headers:
            parts.append(self._show_headers(record))
        if self._key:
            parts.append(self._show(self._of_key, record.key))
        if self._value:
            parts.append(self._show(self._of_value, record.value))
        return self._separator.join(parts) + self._line_end if parts else b""

    def _show(self, deserializer: Deserializer | None, data: bytes | None) -> bytes:
        shown = self._null if data is None else data
        return shown if deserializer is None else deserializer(shown).encode("utf-8", "replace")

    def _show_headers(self, record: ConsumerRecord) -> bytes:
        headers = record.headers
        if not headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode("utf-8", "replace") + b":" + self._show(self._of_headers, data) for name, data in headers
        )


class LoggingFormatter(DefaultFormatter):
    """The same, and a line in the log for each record; the tools' own settings show no such lines."""


class NoFormatter(Formatter):
    """Shows nothing."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        pass

    def write_all(self, records: Sequence[ConsumerRecord]) -> bytes:
        return b""

    def write(self, record: ConsumerRecord) -> bytes:
        return b""


def _is_true(properties: Mapping[str, str], name: str, default: str = "") -> bool:
    return properties.get(name, default).strip().lower() == "true"


def _deserializer(properties: Mapping[str, str], name: str, is_key: bool) -> Deserializer | None:
    """The one that a property names; where it cannot be had the log says so, and records are shown as they are."""
    wanted = properties.get(name)
    if wanted is None:
        return None
    from moldau.cli.kafka.deserializers import find

    own = {key.removeprefix(name + "."): value for key, value in properties.items() if key.startswith(name + ".")}
    try:
        return find(wanted, own, is_key)
    except JavaFailure as failure:
        from moldau.cli.kafka.java_client import write_log

        write_log("ERROR", f"Unable to instantiate a deserializer from {wanted}", DEFAULT_LOGGER, failure)
        return None
