"""Bytes of records as text for people: JSON, text, numbers, hexadecimal, Avro, protobuf, Kafka's own topics.

Nothing in a record is ever more than text: what would command a terminal, turn the direction of writing or hide itself
is shown as an escape. Schemas come with the question and are kept by nobody but the page that has them.
"""

from __future__ import annotations

import base64
import io
import json
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from moldau.actions.refusals import Refused
from moldau.client.record import ConsumerRecord

AUTO = "auto"
FORMATS = (AUTO, "json", "text", "hex", "base64", "int32", "int64", "float64", "avro", "protobuf", "kafka")
AVRO_MAGIC = b"Obj\x01"
REGISTRY_PREFIX_BYTES = 5
# Control characters besides tab and line ends, and what changes the direction of the text around it or has no width.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
# Text in which more than one of so many characters is one of these is no text.
CONTROLS_PER_TEXT = 20


class Schema(NamedTuple):
    """What the decoders of one side of a record are told: an Avro schema, or protobuf's descriptors and a message."""

    format: str = AUTO
    avro: str = ""
    descriptors: bytes = b""
    message: str = ""


class Shown(NamedTuple):
    """A key or value: which format it is shown in, the text, and what is to be said about it."""

    format: str
    text: str
    note: str = ""


class CannotDecode(Exception):
    """The bytes are not what the format says; the text says why."""


def read_schema(given: object) -> Schema:
    """The schema of a request; raises Refused."""
    if given is None:
        return Schema()
    if not isinstance(given, dict):
        raise Refused("A format is an object.")
    name = given.get("format", AUTO)
    if name not in FORMATS:
        raise Refused(f"There is no format {name!r}; there are {', '.join(FORMATS)}.")
    texts = [given.get(field) or "" for field in ("avro", "descriptors", "message")]
    if not all(isinstance(text, str) for text in texts):
        raise Refused("A schema is a text.")
    try:
        descriptors = base64.b64decode(texts[1], validate=True)
    except ValueError:
        raise Refused("The descriptor file is not base64.") from None
    return Schema(name, texts[0], descriptors, texts[2])


def visible(text: str) -> str:
    """The text with everything in it to be seen."""
    return _INVISIBLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def show(data: bytes | None, schema: Schema) -> Shown:
    """Bytes in the wanted format; what they are not is shown in hexadecimal, with the reason."""
    if data is None:
        return Shown("null", "null")
    if schema.format == AUTO:
        return _guess(data, schema)
    try:
        return Shown(schema.format, visible(_DECODERS[schema.format](data, schema)))
    except CannotDecode as error:
        return Shown("hex", to_hex(data), f"Not {schema.format}: {error}")


def show_record(record: ConsumerRecord, key: Schema, value: Schema) -> tuple[Shown, Shown]:
    """Key and value; those of Kafka's own topics are decoded together."""
    stored = _show_stored(record) if "kafka" in (key.format, value.format) or _is_internal(record, key, value) else None
    if stored is not None:
        return stored
    return show(record.key, key), show(record.value, value)


def _is_internal(record: ConsumerRecord, key: Schema, value: Schema) -> bool:
    return record.topic.startswith("__") and key.format == AUTO and value.format == AUTO


def _show_stored(record: ConsumerRecord) -> tuple[Shown, Shown] | None:
    """A record of __consumer_offsets, __transaction_state and the like; None for any other."""
    from moldau.records.walk import Record
    from moldau.storage.inspect.batches import Unreadable
    from moldau.storage.inspect.file import decoder_for

    decoder = decoder_for(f"{record.topic}-0/00000000000000000000.log")
    if decoder is None:
        return None
    try:
        texts = decoder(Record(record.offset, record.timestamp, record.key, record.value, record.headers))
    except Unreadable:
        return None
    key, value = (Shown("null", "null") if text is None else Shown("kafka", visible(_pretty(text))) for text in texts)
    return key, value


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _guess(data: bytes, schema: Schema) -> Shown:
    if data.startswith(AVRO_MAGIC):
        try:
            return Shown("avro", visible(_avro(data, schema)))
        except CannotDecode as error:
            return Shown("hex", to_hex(data), str(error))
    if data[:1] in (b"{", b"["):
        try:
            return Shown("json", visible(_json(data, schema)))
        except CannotDecode:
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Shown("hex", to_hex(data), _about_prefix(data))
    if len(_INVISIBLE.findall(text)) * CONTROLS_PER_TEXT > max(len(text), CONTROLS_PER_TEXT):
        return Shown("hex", to_hex(data), _about_prefix(data))
    return Shown("text", visible(text))


def _about_prefix(data: bytes) -> str:
    """A registry's serializers put a zero byte and the number of the schema in front."""
    if len(data) > REGISTRY_PREFIX_BYTES and data[0] == 0:
        number = int.from_bytes(data[1:REGISTRY_PREFIX_BYTES], "big")
        return f"It begins like a value of schema {number} of a registry: choose Avro or protobuf and give the schema."
    return ""


def _text(data: bytes, schema: Schema) -> str:
    return data.decode("utf-8", "backslashreplace")


def _json(data: bytes, schema: Schema) -> str:
    """Indented, with every number as it was written: a float of Python's would round some."""
    text = data.decode("utf-8", "replace")
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotDecode(str(error)) from None
    return _indent(text)


def _indent(text: str) -> str:
    parts: list[str] = []
    depth = 0
    for token in _JSON_TOKEN.findall(text):
        if token in "{[":
            depth += 1
            parts.append(token + "\n" + "  " * depth)
        elif token in "}]":
            depth -= 1
            if parts and parts[-1].endswith("\n" + "  " * (depth + 1)) and parts[-1][0] in "{[":
                parts[-1] = parts[-1][0] + token
            else:
                parts.append("\n" + "  " * depth + token)
        elif token == ",":
            parts.append(",\n" + "  " * depth)
        else:
            parts.append(": " if token == ":" else token)
    return "".join(parts)


def _number(form: str, size: int) -> Callable[[bytes, Schema], str]:
    def decode(data: bytes, schema: Schema) -> str:
        if len(data) != size:
            raise CannotDecode(f"it has {len(data)} bytes, not {size}.")
        return str(struct.unpack(form, data)[0])

    return decode


def to_hex(data: bytes) -> str:
    """Sixteen bytes a line: where, in hexadecimal, and what of them can be printed."""
    lines = []
    for start in range(0, len(data), 16):
        piece = data[start : start + 16]
        left, right = piece[:8].hex(" "), piece[8:].hex(" ")
        printed = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {left:<23}  {right:<23}  {printed}")
    return "\n".join(lines)


def _avro(data: bytes, schema: Schema) -> str:
    try:
        import fastavro
    except ImportError:
        raise CannotDecode("Avro needs the package fastavro: pip install 'moldau[formats]'.") from None
    try:
        if data.startswith(AVRO_MAGIC):
            found: object = list(fastavro.reader(io.BytesIO(data)))
        elif not schema.avro.strip():
            raise CannotDecode("give the Avro schema that it was written with.")
        else:
            found = _read_avro(fastavro, data, _parsed_avro(schema.avro))
    except CannotDecode:
        raise
    except Exception as error:
        # fastavro fails in many ways on bytes that are something else.
        raise CannotDecode(f"{type(error).__name__}: {error}") from None
    return json.dumps(found, indent=2, ensure_ascii=False, default=_plain)


@lru_cache(16)
def _parsed_avro(text: str) -> Any:
    import fastavro

    return fastavro.parse_schema(json.loads(text))


def _read_avro(fastavro: Any, data: bytes, schema: Any) -> object:
    """With or without the prefix of a registry: whichever uses up all bytes."""
    for body in (data, data[REGISTRY_PREFIX_BYTES:]) if data[:1] == b"\0" else (data,):
        stream = io.BytesIO(body)
        try:
            found: object = fastavro.schemaless_reader(stream, schema, None)
        except Exception:
            if body is not data or data[:1] != b"\0":
                raise
            continue
        if stream.tell() == len(body):
            return found
    raise CannotDecode("bytes are left behind the value: it was written with another schema.")


def _plain(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _protobuf(data: bytes, schema: Schema) -> str:
    if not schema.descriptors or not schema.message:
        raise CannotDecode("give a descriptor file (protoc --descriptor_set_out) and the message's full name.")
    try:
        from google.protobuf import json_format
    except ImportError:
        raise CannotDecode("protobuf needs its package: pip install 'moldau[formats]'.") from None
    message = _message_class(schema.descriptors, schema.message)
    for body in (data, _behind_prefix(data)) if data[:1] == b"\0" else (data,):
        try:
            found = json_format.MessageToDict(message.FromString(body), preserving_proto_field_name=True)
            return json.dumps(found, indent=2, ensure_ascii=False)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    raise CannotDecode(reason)


@lru_cache(8)
def _message_class(descriptors: bytes, name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
            pool.AddSerializedFile(file.SerializeToString())
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        raise CannotDecode(f"the descriptor file has no message {name}.") from None
    except Exception as error:
        raise CannotDecode(f"the descriptor file cannot be read: {error}.") from None


def _behind_prefix(data: bytes) -> bytes:
    """Behind a registry's number stand the places of the message in its file, of which 0 is written as one zero."""
    rest = data[REGISTRY_PREFIX_BYTES:]
    if rest[:1] == b"\0":
        return rest[1:]
    count = rest[0] >> 1 if rest else 0
    return rest[1 + count :]


def _stored(data: bytes, schema: Schema) -> str:
    raise CannotDecode("it is in none of Kafka's own topics.")


_DECODERS: dict[str, Callable[[bytes, Schema], str]] = {
    "json": _json,
    "text": _text,
    "hex": lambda data, schema: to_hex(data),
    "base64": lambda data, schema: base64.b64encode(data).decode(),
    "int32": _number(">i", 4),
    "int64": _number(">q", 8),
    "float64": _number(">d", 8),
    "avro": _avro,
    "protobuf": _protobuf,
    "kafka": _stored,
}
