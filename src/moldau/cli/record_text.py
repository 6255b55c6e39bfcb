"""Records as text: kcat's format strings and JSON lines, both ways."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import hexlify
from collections.abc import Callable
from typing import NamedTuple

from moldau.client.record import ConsumerRecord
from moldau.records import text_writer
from moldau.records.text_writer import TextWriter

Renderer = Callable[[ConsumerRecord], bytes]

# Formats that have a name; json, hex and pretty are more than a format string.
PRESETS = {"value": "%s\\n"}

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\x00", "\\": b"\\"}


class BadFormat(ValueError):
    """The format string, or the line, is not what it should be; the text says why."""


class Token(NamedTuple):
    """A field of a format string: its letter, and how it is to be shown."""

    letter: str
    style: str


# What stands for the fields in the compiled writer, which does without objects for records.
_FIELDS = {
    "s": text_writer.VALUE,
    "S": text_writer.VALUE_SIZE,
    "k": text_writer.KEY,
    "K": text_writer.KEY_SIZE,
    "h": text_writer.HEADERS,
    "t": text_writer.TOPIC,
    "p": text_writer.PARTITION,
    "o": text_writer.OFFSET,
    "T": text_writer.TIMESTAMP,
    "R": text_writer.BINARY_SIZE,
}
_STYLES = {"s": ("hex", "base64", "json"), "k": ("hex", "base64", "json"), "T": ("iso",)}


def compile_format(text: str, null: bytes = b"") -> Renderer:
    """A function that renders a record by a kcat format string.

    %s value, %S its size (-1: null), %k key, %K its size, %h headers, %t topic, %p partition, %o offset, %T timestamp,
    %R size of the value and %% as in kcat; %s{hex}, %s{base64}, %s{json} and the same of %k, %T{iso};
    \\n \\r \\t \\0 \\\\ \\xHH.
    """
    tokens = _tokens(null)
    parts = [part if isinstance(part, bytes) else _styled(tokens[part.letter], part) for part in parse_format(text)]
    return lambda record: b"".join(part if isinstance(part, bytes) else part(record) for part in parts)


def fast_writer(text: str, null: bytes = b"") -> TextWriter | None:
    """The compiled writer for a format string, `json` or `value`; None where the format asks for more than it can."""
    if text == "json":
        return TextWriter(b"", bytes([text_writer.JSON]), [b"\n"], null)
    parts = parse_format(PRESETS.get(text, text))
    if any(isinstance(part, Token) and part.style for part in parts):
        return None
    before = b""
    fields = bytearray()
    literals: list[bytes] = []
    for part in parts:
        if isinstance(part, Token):
            fields.append(_FIELDS[part.letter])
            literals.append(b"")
        elif literals:
            literals[-1] = part
        else:
            before = part
    return TextWriter(before, bytes(fields), literals, null)


def parse_format(text: str) -> list[bytes | Token]:
    """Literal text and tokens in turn."""
    parts: list[bytes | Token] = []
    literal = bytearray()
    position = 0
    while position < len(text):
        letter = text[position]
        follower = text[position + 1 : position + 2]
        if letter == "%":
            position += 2
            if follower == "%":
                literal += b"%"
            elif follower in _FIELDS and follower:
                if literal:
                    parts.append(bytes(literal))
                    literal.clear()
                style = next(
                    (name for name in _STYLES.get(follower, ()) if text.startswith(f"{{{name}}}", position)), ""
                )
                position += len(style) + 2 if style else 0
                parts.append(Token(follower, style))
            else:
                known = ", ".join(f"%{name}" for name in _FIELDS)
                raise BadFormat(f"There is no %{follower} in a format string; use {known}.")
        elif letter == "\\":
            literal_bytes, used = _escape(text, position)
            literal += literal_bytes
            position += used
        else:
            literal += letter.encode()
            position += 1
    if literal:
        parts.append(bytes(literal))
    return parts


def unescape(text: str) -> bytes:
    """Text of an option with the escapes of format strings in it."""
    data = bytearray()
    position = 0
    while position < len(text):
        used = 1
        if text[position] == "\\":
            literal, used = _escape(text, position)
            data += literal
        else:
            data += text[position].encode("utf-8", "surrogateescape")
        position += used
    return bytes(data)


def _escape(text: str, position: int) -> tuple[bytes, int]:
    follower = text[position + 1 : position + 2]
    if follower in _ESCAPES and follower:
        return _ESCAPES[follower], 2
    if follower == "x":
        digits = text[position + 2 : position + 4]
        if len(digits) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            return bytes.fromhex(digits), 4
        raise BadFormat(f"\\x wants two hexadecimal digits behind it, not {digits!r}.")
    raise BadFormat(f"There is no \\{follower} in a format string; use \\n, \\r, \\t, \\0, \\\\ or \\xHH.")


def _tokens(null: bytes) -> dict[str, Renderer]:
    return {
        "s": lambda record: null if record.value is None else record.value,
        "S": lambda record: b"-1" if record.value is None else b"%d" % len(record.value),
        "k": lambda record: null if record.key is None else record.key,
        "K": lambda record: b"-1" if record.key is None else b"%d" % len(record.key),
        "h": lambda record: b",".join(
            name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers
        ),
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
        "R": lambda record: (-1 if record.value is None else len(record.value)).to_bytes(4, "big", signed=True),
    }


def _styled(plain: Renderer, token: Token) -> Renderer:
    if token.style == "iso":
        return lambda record: iso_time(record.timestamp).encode()
    if token.style == "json":
        return lambda record: json.dumps(
            _json_value(record.value if token.letter == "s" else record.key), ensure_ascii=False
        ).encode()
    if token.style:
        encode = hexlify if token.style == "hex" else b64encode
        return lambda record: plain(record) if _is_null(record, token.letter) else encode(plain(record))
    return plain


def _is_null(record: ConsumerRecord, letter: str) -> bool:
    return (record.value if letter == "s" else record.key) is None


def iso_time(timestamp: int) -> str:
    """A timestamp as 2026-01-31T12:00:00.123Z; the number itself where there is no such time."""
    from datetime import UTC, datetime

    try:
        text = datetime.fromtimestamp(timestamp // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(timestamp)
    return f"{text}.{timestamp % 1000:03d}Z"


def to_json_line(record: ConsumerRecord) -> bytes:
    """One JSON object; bytes that are not text become {"base64": ...}."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _json_value(record.key),
        "value": _json_value(record.value),
        "headers": [{"name": name, "value": _json_value(value)} for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _json_value(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


class ParsedRecord:
    """A record that was read from a line."""

    __slots__ = ("headers", "key", "partition", "timestamp", "value")

    def __init__(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        self.key = key
        self.value = value
        self.headers = headers
        self.partition = partition
        self.timestamp = timestamp


def from_json_line(line: bytes) -> ParsedRecord:
    """What to_json_line() wrote: value, and optionally key, headers, partition, timestamp; other fields are left."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise BadFormat(f"is not JSON ({error}).") from None
    if not isinstance(fields, dict):
        raise BadFormat('is not a JSON object; write {"key": ..., "value": ...}.')
    headers = fields.get("headers") or []
    pairs: list[tuple[str, bytes | None]] = []
    if isinstance(headers, dict):
        headers = [{"name": name, "value": value} for name, value in headers.items()]
    if not isinstance(headers, list):
        raise BadFormat("has headers that are neither a list nor an object.")
    for header in headers:
        if not isinstance(header, dict) or not isinstance(header.get("name"), str):
            raise BadFormat("has a header without a name.")
        pairs.append((header["name"], _from_json_value("a header", header.get("value"))))
    return ParsedRecord(
        _from_json_value("the key", fields.get("key")),
        _from_json_value("the value", fields.get("value")),
        pairs,
        _optional_int("partition", fields.get("partition")),
        _optional_int("timestamp", fields.get("timestamp")),
    )


def _optional_int(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadFormat(f"has a {name} that is not a whole number.")
    return value


def _from_json_value(what: str, value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        try:
            return b64decode(value["base64"], validate=True)
        except ValueError:
            raise BadFormat(f"has base64 in {what} that cannot be decoded.") from None
    # Anything else is taken as the document that the user wants to send.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
