"""How `kafka-console-producer` reads records from lines: headers, key and value, each behind its own separator."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.kafka.java_regex import compile_pattern
from moldau.cli.kafka.java_text import clean_utf8
from moldau.cli.kafka.options import JavaFailure

CLASS_NAME = "org.apache.kafka.tools.LineMessageReader"
KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"

Headers = list[tuple[str, bytes | None]]
Parsed = tuple[bytes | None, bytes | None, Headers | None]

# Which two properties may not be the same, in the order in which they are checked.
_DIFFERENT = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
    ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"),
    ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)


class LineSplitter:
    """Cuts what is read piece by piece into lines, which end as Java's lines do: with \\n, \\r or both."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._after_return = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now."""
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        if not data:
            self._after_return = False
            return []
        self._after_return = data.endswith(b"\r")
        lines = data.splitlines()
        whole = self._after_return or data.endswith(b"\n")
        if not whole and len(lines) == 1:
            self._rest.append(data)
            return []
        if self._rest:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest = []
        if not whole:
            self._rest = [lines.pop()]
        return lines if data.isascii() and lines[:1] and lines[0].isascii() else [clean_utf8(line) for line in lines]

    def end(self) -> list[bytes]:
        """The last line, if it has no end."""
        rest, self._rest = b"".join(self._rest), []
        return [clean_utf8(rest)] if rest else []


class LineReader:
    """Makes a record of a line; settings as the reader of the real tool has them."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.parse_key = _is_true(properties, "parse.key")
        self.parse_headers = _is_true(properties, "parse.headers")
        self.ignore_error = _is_true(properties, "ignore.error")
        values = {
            "key.separator": "\t",
            "headers.delimiter": "\t",
            "headers.separator": ",",
            "headers.key.separator": ":",
            **properties,
        }
        for one, other in _DIFFERENT:
            if values.get(one) is not None and values.get(one) == values[other]:
                raise JavaFailure(KAFKA_EXCEPTION, f"{one} and {other} may not be equal")
        self._key_separator = values["key.separator"].encode()
        self._headers_delimiter = values["headers.delimiter"].encode()
        self._headers_separator = compile_pattern(values["headers.separator"])
        self._headers_key_separator = values["headers.key.separator"]
        marker = properties.get("null.marker")
        self.null_marker = None if marker is None else marker.encode()
        self._null_text = marker

    @property
    def plain(self) -> bool:
        """A line is a value and nothing else."""
        return not self.parse_key and not self.parse_headers and self.null_marker is None

    def parse(self, line: bytes, number: int) -> Parsed:
        """Key, value and headers of the line with this number; a line that cannot be read ends the tool."""
        headers: Headers | None = None
        key: bytes | None = None
        value: bytes | None = line
        position = 0
        if self.parse_headers:
            end = self._find(line, 0, self._headers_delimiter, "headers delimiter", number)
            if end >= 0:
                text = line[:end]
                headers = None if text == self.null_marker else self._read_headers(text.decode(), number)
                position = end + len(self._headers_delimiter)
        if self.parse_key:
            end = self._find(line, position, self._key_separator, "key separator", number)
            if end >= 0:
                key = line[position:end]
                position = end + len(self._key_separator)
        if position:
            value = line[position:]
        if self.null_marker is not None:
            key = None if key == self.null_marker else key
            value = None if value == self.null_marker else value
        return key, value, headers

    def _find(self, line: bytes, start: int, separator: bytes, name: str, number: int) -> int:
        place = line.find(separator, start)
        if place < 0 and not self.ignore_error:
            sentence = f"No {name} found on line number {number}: '{line.decode()}'"
            raise JavaFailure(KAFKA_EXCEPTION, sentence)
        return place

    def _read_headers(self, text: str, number: int) -> Headers:
        pairs = self._headers_separator.split(text)
        # Java's split leaves out empty pieces at the end, and gives one piece for an empty text.
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        if len(pairs) == 1 and not pairs[0] and text:
            pairs = []
        return [self._read_header(pair, number) for pair in pairs]

    def _read_header(self, pair: str, number: int) -> tuple[str, bytes | None]:
        name, found, value = (
            pair.partition(self._headers_key_separator) if self._headers_key_separator else ("", " ", pair)
        )
        if not found:
            if self.ignore_error:
                return pair, None
            sentence = f"No header key separator found in pair '{pair}' on line number {number}"
            raise JavaFailure(KAFKA_EXCEPTION, sentence)
        if name == self._null_text:
            sentence = f"Header keys should not be equal to the null marker '{name}' as they can't be null"
            raise JavaFailure(KAFKA_EXCEPTION, sentence)
        return name, None if value == self._null_text else value.encode()


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"
