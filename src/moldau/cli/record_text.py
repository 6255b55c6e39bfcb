"""Records as text by kcat's format strings."""

from __future__ import annotations

import json
from base64 import b64encode
from binascii import hexlify
from collections.abc import Callable
from typing import NamedTuple

from moldau.client.record import ConsumerRecord
from moldau.facts.record_json import BadFormat, iso_time, json_value
from moldau.records import text_writer
from moldau.records.text_writer import TextWriter

Renderer = Callable[[ConsumerRecord], bytes]

# Formats that have a name; json, hex and pretty are more than a format string.
PRESETS = {"value": "%s\\n"}

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\x00", "\\": b"\\"}


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
            json_value(record.value if token.letter == "s" else record.key), ensure_ascii=False
        ).encode()
    if token.style:
        encode = hexlify if token.style == "hex" else b64encode
        return lambda record: plain(record) if _is_null(record, token.letter) else encode(plain(record))
    return plain


def _is_null(record: ConsumerRecord, letter: str) -> bool:
    return (record.value if letter == "s" else record.key) is None
