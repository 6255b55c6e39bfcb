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
    from moldau.records.text_writer import TextWriter

PACKAGE = "org.apache.kafka.tools.consumer."
DEFAULT = PACKAGE + "DefaultMessageFormatter"
DEFAULT_LOGGER = DEFAULT
TIMESTAMP_TYPES = (b"CreateTime:", b"LogAppendTime:")


class Formatter:
    """Writes one record after another."""

    def write(self, record: ConsumerRecord, out: list[bytes]) -> None:
        """Adds the record as it is printed; JavaFailure for one that cannot be shown, and what could be is there."""
        raise NotImplementedError

    def text_writer(self) -> TextWriter | None:
        """Writes the same without an object for each record, where that can be done."""
        return None

    def write_all(self, records: Sequence[ConsumerRecord]) -> bytes:
        """The same for many; on JavaFailure nothing is known of the others."""
        out: list[bytes] = []
        for record in records:
            self.write(record, out)
        return b"".join(out)


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

    def text_writer(self) -> TextWriter | None:
        from moldau.records.text_writer import KEY, OFFSET, PARTITION, VALUE, TextWriter

        unknown = (self._timestamp, self._delivery, self._epoch, self._headers)
        if any(unknown) or self._of_key is not None or self._of_value is not None:
            return None
        wanted = (
            (self._partition, b"Partition:", PARTITION),
            (self._offset, b"Offset:", OFFSET),
            (self._key, b"", KEY),
            (self._value, b"", VALUE),
        )
        shown = [(before, field) for is_wanted, before, field in wanted if is_wanted]
        if not shown:
            return None
        behind = [self._separator + before for before, _ in shown[1:]] + [self._line_end]
        return TextWriter(shown[0][0], bytes(field for _, field in shown), behind, self._null)

    def write(self, record: ConsumerRecord, out: list[bytes]) -> None:
        first = len(out)
        if self._timestamp:
            out.append(b"%b%d" % (TIMESTAMP_TYPES[record.timestamp_type], record.timestamp))
        if self._partition:
            self._begin(out, first, b"Partition:%d" % record.partition)
        if self._offset:
            self._begin(out, first, b"Offset:%d" % record.offset)
        if self._delivery:
            # Share groups count deliveries, from 1.
            count = record.delivery_count
            self._begin(out, first, b"Delivery:%d" % count if count else b"Delivery:NOT_PRESENT")
        if self._epoch:
            # The tool copies the record before it is shown, and leaves the epoch out.
            self._begin(out, first, b"Epoch:NOT_PRESENT")
        if self._headers:
            self._begin(out, first, b"")
            self._show_headers(record, out)
        if self._key:
            self._begin(out, first, b"")
            out.append(self._show(self._of_key, record.key))
        if self._value:
            self._begin(out, first, b"")
            out.append(self._show(self._of_value, record.value))
        if len(out) > first:
            out.append(self._line_end)

    def _begin(self, out: list[bytes], first: int, text: bytes) -> None:
        """The next part, behind a separator unless it is the first one."""
        out.append(self._separator + text if len(out) > first else text)

    def _show(self, deserializer: Deserializer | None, data: bytes | None) -> bytes:
        shown = self._null if data is None else data
        return shown if deserializer is None else deserializer(shown).encode("utf-8", "replace")

    def _show_headers(self, record: ConsumerRecord, out: list[bytes]) -> None:
        headers = record.headers
        if not headers:
            out.append(b"NO_HEADERS")
        for index, (name, data) in enumerate(headers):
            out.append((self._headers_separator if index else b"") + name.encode("utf-8", "replace") + b":")
            out.append(self._show(self._of_headers, data))


class LoggingFormatter(DefaultFormatter):
    """The same, and a line in the log for each record; the tools' own settings show no such lines."""


class NoFormatter(Formatter):
    """Shows nothing."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        pass

    def write_all(self, records: Sequence[ConsumerRecord]) -> bytes:
        return b""

    def write(self, record: ConsumerRecord, out: list[bytes]) -> None:
        pass


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
        from moldau.cli.kafka.java_log import write_log

        write_log("ERROR", f"Unable to instantiate a deserializer from {wanted}", DEFAULT_LOGGER, failure)
        return None
