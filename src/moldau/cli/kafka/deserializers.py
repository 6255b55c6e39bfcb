"""Kafka's deserializers by their Java names: what the console consumer shows of bytes that are not text."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable, Mapping

from moldau.cli.kafka.java_text import decode_utf8, double_text, escape_bytes, float_text
from moldau.cli.kafka.options import JavaFailure

PACKAGE = "org.apache.kafka.common.serialization."
SERIALIZATION_EXCEPTION = "org.apache.kafka.common.errors.SerializationException"

Deserializer = Callable[[bytes], str]


def find(name: str, settings: Mapping[str, str], is_key: bool) -> Deserializer:
    """The deserializer with this class name; settings are those behind its own name. JavaFailure: there is none."""
    if name == PACKAGE + "StringDeserializer":
        return _string(settings, is_key)
    if name in _FIXED:
        size, kind, shown = _FIXED[name]
        return _fixed(name.removeprefix(PACKAGE), size, kind, shown)
    if name in _OTHERS:
        return _OTHERS[name]
    raise JavaFailure("java.lang.ClassNotFoundException", name)


def _string(settings: Mapping[str, str], is_key: bool) -> Deserializer:
    own = "key.deserializer.encoding" if is_key else "value.deserializer.encoding"
    encoding = settings.get(own, settings.get("deserializer.encoding", "UTF-8"))
    if encoding.lower() in ("utf-8", "utf8"):
        return decode_utf8
    try:
        codec = codecs.lookup(encoding)
    except LookupError:
        # The real tool fails at the first record too.
        return _refusing(f"Error when deserializing byte[] to string due to unsupported encoding {encoding}")

    def decode(data: bytes) -> str:
        return codec.decode(data, "replace")[0]

    return decode


def _refusing(sentence: str) -> Deserializer:
    def refuse(data: bytes) -> str:
        raise JavaFailure(SERIALIZATION_EXCEPTION, sentence)

    return refuse


def _fixed(name: str, size: int, kind: str, shown: Callable[[float], str]) -> Deserializer:
    def decode(data: bytes) -> str:
        if len(data) != size:
            raise JavaFailure(SERIALIZATION_EXCEPTION, f"Size of data received by {name} is not {size}")
        return shown(struct.unpack(kind, data)[0])

    return decode


def _boolean(data: bytes) -> str:
    if len(data) != 1:
        raise JavaFailure(SERIALIZATION_EXCEPTION, "Size of data received by BooleanDeserializer is not 1")
    if data[0] > 1:
        byte = data[0] - 256 if data[0] > 127 else data[0]
        raise JavaFailure(SERIALIZATION_EXCEPTION, f"Unexpected byte received by BooleanDeserializer: {byte}")
    return "true" if data[0] else "false"


def _uuid(data: bytes) -> str:
    """Five hexadecimal numbers between hyphens, brought to their full length."""
    text = decode_utf8(data)
    parts = text.split("-")
    widths = (8, 4, 4, 4, 12)
    try:
        if len(parts) != len(widths) or not all(parts):
            raise ValueError(text)
        numbers = [int(part, 16) & ((1 << 4 * width) - 1) for part, width in zip(parts, widths, strict=True)]
    except ValueError:
        reason = JavaFailure("java.lang.IllegalArgumentException", f"Invalid UUID string: {text}")
        raise JavaFailure(SERIALIZATION_EXCEPTION, "Error parsing data into UUID", reason) from None
    return "-".join(f"{number:0{width}x}" for number, width in zip(numbers, widths, strict=True))


def _void(data: bytes) -> str:
    raise JavaFailure("java.lang.IllegalArgumentException", "Data should be null for a VoidDeserializer.")


def _byte_array(data: bytes) -> str:
    """Java shows an array as its kind and where it lies."""
    return f"[B@{id(data) & 0x7FFFFFFF:x}"


def _byte_buffer(data: bytes) -> str:
    return f"java.nio.HeapByteBuffer[pos=0 lim={len(data)} cap={len(data)}]"


# name -> (size, struct format, how the number is shown)
_FIXED: dict[str, tuple[int, str, Callable[[float], str]]] = {
    PACKAGE + "LongDeserializer": (8, ">q", str),
    PACKAGE + "IntegerDeserializer": (4, ">i", str),
    PACKAGE + "ShortDeserializer": (2, ">h", str),
    PACKAGE + "FloatDeserializer": (4, ">f", float_text),
    PACKAGE + "DoubleDeserializer": (8, ">d", double_text),
}
_OTHERS: dict[str, Deserializer] = {
    PACKAGE + "BooleanDeserializer": _boolean,
    PACKAGE + "ByteArrayDeserializer": _byte_array,
    PACKAGE + "ByteBufferDeserializer": _byte_buffer,
    PACKAGE + "BytesDeserializer": escape_bytes,
    PACKAGE + "UUIDDeserializer": _uuid,
    PACKAGE + "VoidDeserializer": _void,
}
