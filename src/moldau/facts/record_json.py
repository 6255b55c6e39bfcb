"""Records as JSON lines, both ways."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode

from moldau.client.record import ConsumerRecord


class BadFormat(ValueError):
    """The format string, or the line, is not what it should be; the text says why."""


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
        "key": json_value(record.key),
        "value": json_value(record.value),
        "headers": [{"name": name, "value": json_value(value)} for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def json_value(data: bytes | None) -> object:
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
