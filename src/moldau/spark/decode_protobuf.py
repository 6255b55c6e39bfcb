"""Values that are protobuf messages, decoded by Google's own package with a descriptor file.

`protoc --include_imports --descriptor_set_out=FILE` makes the descriptor file; valueSchemaMessage names the message in
it. With a directory of `<id>.desc` files, values stand behind the id of their schema and the place of their message in
it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from moldau.spark.decode import BadValue, RecordDecoder, split_prefix
from moldau.spark.options import OptionError, ValueOptions

TIMESTAMP = "google.protobuf.Timestamp"
_VARINT_BYTES_MAX = 5


class ProtobufDecoder(RecordDecoder):
    """Gives the fields of the message as the newest descriptor has them; unknown fields are left out."""

    def __init__(self, message: str, descriptors: bytes, by_id: dict[int, bytes] | None, directory: str) -> None:
        self._message = message
        self._descriptors = descriptors
        self._by_id = by_id
        self._directory = directory
        super().__init__(message_type(message_class(descriptors, message).DESCRIPTOR))

    def open(self) -> Callable[[bytes], object]:
        newest = message_class(self._descriptors, self._message)
        if self._by_id is None:
            return lambda value: _fields(newest.FromString(value))

        def decode(value: bytes) -> object:
            number, body = split_prefix(value)
            # Protobuf reads older and newer messages with one descriptor; the id must be known all the same.
            if number not in (self._by_id or {}) and not (Path(self._directory) / f"{number}.desc").is_file():
                raise BadValue(f"there is no schema {number}.desc in valueSchemaDirectory")
            return _fields(newest.FromString(_without_message_place(body)))

        return decode


def protobuf_decoder(options: ValueOptions) -> ProtobufDecoder:
    _check_package()
    if not options.message:
        raise OptionError(
            "valueFormat protobuf needs valueSchemaMessage, the message's full name in its descriptor file."
        )
    by_id: dict[int, bytes] | None = None
    if options.schema_directory:
        directory = Path(options.schema_directory)
        by_id = {int(path.stem): path.read_bytes() for path in directory.glob("*.desc") if path.stem.isdigit()}
        if not by_id:
            raise OptionError(f"The valueSchemaDirectory {directory} has no schemas: files are named <id>.desc.")
    if options.schema:
        path = Path(options.schema)
        if not path.is_file():
            raise OptionError(f"valueSchema {path} is no descriptor file that the driver can read.")
        descriptors = path.read_bytes()
    elif by_id:
        descriptors = by_id[max(by_id)]
    else:
        raise OptionError("valueFormat protobuf needs valueSchema, a descriptor file, or a valueSchemaDirectory.")
    return ProtobufDecoder(options.message, descriptors, by_id, options.schema_directory)


def _check_package() -> None:
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        raise OptionError("valueFormat protobuf needs the package protobuf: pip install 'moldau[formats]'.") from None


def message_class(descriptors: bytes, name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
            pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        raise OptionError(
            f"The descriptor file has no message {name}: valueSchemaMessage wants its full name."
        ) from None
    except Exception as error:
        raise OptionError(f"The descriptor file cannot be read: {error}.") from None


def message_type(descriptor: Any, inside: tuple[str, ...] = ()) -> pa.DataType:
    if descriptor.full_name == TIMESTAMP:
        return pa.timestamp("us", tz="UTC")
    if descriptor.full_name in inside:
        raise OptionError(f"The message {descriptor.full_name} contains itself, and Spark has no such type.")
    within = (*inside, descriptor.full_name)
    return pa.struct([pa.field(field.name, _field_type(field, within)) for field in descriptor.fields])


def _field_type(field: Any, inside: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_single_type(key, inside), _single_type(value, inside))
    single = _single_type(field, inside)
    return pa.list_(single) if _is_repeated(field) else single


def _single_type(field: Any, inside: tuple[str, ...]) -> pa.DataType:
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return message_type(field.message_type, inside)
    if field.cpp_type == field.CPPTYPE_STRING:
        return pa.binary() if field.type == field.TYPE_BYTES else pa.string()
    return {
        field.CPPTYPE_INT32: pa.int32(),
        field.CPPTYPE_INT64: pa.int64(),
        # Spark has no unsigned numbers: the next larger one holds them all.
        field.CPPTYPE_UINT32: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20, 0),
        field.CPPTYPE_DOUBLE: pa.float64(),
        field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_BOOL: pa.bool_(),
        field.CPPTYPE_ENUM: pa.string(),
    }[field.cpp_type]


def _is_repeated(field: Any) -> bool:
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if repeated is None else repeated)


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _fields(message: Any) -> object:
    """A message as pa.array() wants it; a field that has presence and is not set is null."""
    if message.DESCRIPTOR.full_name == TIMESTAMP:
        return message.seconds * 1_000_000 + message.nanos // 1_000
    found: dict[str, object] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            item = field.message_type.fields_by_name["value"]
            found[field.name] = [(key, _value(item, value[key])) for key in value]
        elif _is_repeated(field):
            found[field.name] = [_value(field, item) for item in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _value(field, value)
    return found


def _value(field: Any, value: Any) -> object:
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return _fields(value)
    if field.cpp_type == field.CPPTYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value


def _without_message_place(body: bytes) -> bytes:
    """Behind the id stands where in its file the message is: a zigzag count and as many indexes, or a zero."""
    count, place = _read_zigzag(body, 0)
    if not 0 <= count <= len(body):
        raise BadValue(f"the place of its message has {count} parts")
    for _ in range(count):
        _, place = _read_zigzag(body, place)
    return body[place:]


def _read_zigzag(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(_VARINT_BYTES_MAX):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place
    raise BadValue("the place of its message in the schema cannot be read")
