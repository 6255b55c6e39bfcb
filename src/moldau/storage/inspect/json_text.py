"""Stored records as JSON: which fields a version shows, and the text exactly as Kafka's tools write it."""

from __future__ import annotations

import base64
import re

from moldau.protocol.primitives import Message
from moldau.protocol.uuids import uuid_to_text
from moldau.storage.inspect.fields import FIELDS

JsonObject = dict[str, object]

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')
# UTF-16 halves in UTF-8: Java's decoder takes them for one wrong character, Python's for up to three.
_SURROGATES = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def message_to_json(message: Message, version: int) -> JsonObject:
    """The fields of this version, tagged ones only where they differ from the default; bytes stay bytes."""
    kind = type(message)
    defaults: Message | None = None
    shown: JsonObject = {}
    for name, attribute, value_kind, lowest, highest, tagged in FIELDS[
        f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"
    ]:
        if not lowest <= version <= highest:
            continue
        value = getattr(message, attribute)
        if 0 <= tagged <= version:
            if value_kind == "s":
                # A missing struct means one of defaults; that it is null has to be said.
                if value is not None and value == type(value)():
                    continue
            else:
                defaults = kind() if defaults is None else defaults
                if value == getattr(defaults, attribute):
                    continue
        shown[name] = _value_to_json(value, value_kind, version)
    return shown


def _value_to_json(value: object, kind: str, version: int) -> object:
    if isinstance(value, list):
        return [_value_to_json(item, kind, version) for item in value]
    if isinstance(value, Message):
        return message_to_json(value, version)
    if isinstance(value, bytes) and kind == "u":
        return uuid_to_text(value)
    return value


def json_text(value: object) -> str:
    """Compact JSON; bytes as base64, numbers as Java writes them."""
    if isinstance(value, dict):
        return "{" + ",".join([f"{json_string(name)}:{json_text(item)}" for name, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([json_text(item) for item in value]) + "]"
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, bytes):
        return '"' + base64.b64encode(value).decode("ascii") + '"'
    return str(value)


def json_string(text: str) -> str:
    return '"' + _TO_ESCAPE.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04X}"


def java_double(value: float) -> str:
    """As Double.toString: plain between 10^-3 and 10^7, else with an exponent, always with a digit after the point."""
    if value != value:
        return '"NaN"'
    if value in (float("inf"), float("-inf")):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}"
    mantissa, _, exponent = f"{value!r}".partition("e")
    digits = mantissa.replace("-", "").replace(".", "")
    point = len(mantissa.replace("-", "").partition(".")[0]) + (int(exponent) if exponent else 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    stripped = stripped.rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    return f"{sign}{stripped[0]}.{stripped[1:] or '0'}E{point - 1}"


def java_text(data: bytes) -> str:
    """Bytes as a Java string shows them: what is not UTF-8 becomes the replacement character, as often as there."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _SURROGATES.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")
