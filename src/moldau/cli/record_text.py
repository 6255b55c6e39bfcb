"""Records as text: kcat's format strings and JSON lines, both ways."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable

from moldau.client.fetcher import ConsumerRecord

Renderer = Callable[[ConsumerRecord], bytes]

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\x00", "\\": b"\\"}


class BadFormat(ValueError):
    """The format string, or the line, is not what it should be; the text says why."""


def compile_format(text: str, null: bytes = b"") -> Renderer:
    """A function that renders a record by a kcat format string.

    %s value, %S its size (-1: null), %k key, %K its size, %h headers, %t topic, %p partition, %o offset, %T timestamp,
    %R size of the value and %% as in kcat; \\n \\r \\t \\0 \\\\ \\xHH.
    """
    parts = _parse_format(text, null)
    if len(parts) == 2 and callable(parts[0]) and isinstance(parts[1], bytes):
        first, tail = parts[0], parts[1]
        return lambda record: first(record) + tail
    return lambda record: b"".join(part if isinstance(part, bytes) else part(record) for part in parts)


def _parse_format(text: str, null: bytes) -> list[bytes | Renderer]:
    tokens = _tokens(null)
    parts: list[bytes | Renderer] = []
    literal = bytearray()
    position = 0
    while position < len(text):
        letter = text[position]
        follower = text[position + 1 : position + 2]
        if letter == "%":
            if follower == "%":
                literal += b"%"
            elif follower in tokens and follower:
                if literal:
                    parts.append(bytes(literal))
                    literal.clear()
                parts.append(tokens[follower])
            else:
                raise BadFormat(f"There is no %{follower} in a format string; use {_known_tokens(tokens)}.")
            position += 2
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


def _escape(text: str, position: int) -> tuple[bytes, int]:
    follower = text[position + 1 : position + 2]
    if follower in _ESCAPES and follower:
        return _ESCAPES[follower], 2
    if follower == "x":
        digits = text[position + 2 : position + 4]
        try:
            return bytes.fromhex(digits) if len(digits) == 2 else _no_escape(digits), 4
        except ValueError:
            raise BadFormat(f"\\x wants two hexadecimal digits behind it, not {digits!r}.") from None
    raise BadFormat(f"There is no \\{follower} in a format string; use \\n, \\r, \\t, \\0, \\\\ or \\xHH.")


def _no_escape(digits: str) -> bytes:
    raise ValueError(digits)


def _known_tokens(tokens: dict[str, Renderer]) -> str:
    return ", ".join(f"%{name}" for name in tokens)


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
