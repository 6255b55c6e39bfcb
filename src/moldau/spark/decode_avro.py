"""Values that are Avro, decoded by fastavro: all with one schema, or each behind the id of its own.

Schemas by id lie in a directory as `<id>.avsc`. The driver reads them and sends them along, so that executors need no
copy; an id that appears later is looked for in the directory where the executor has it too.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from moldau.spark.decode import BadValue, RecordDecoder, split_prefix
from moldau.spark.options import OptionError, ValueOptions

_PRIMITIVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_TIMES = {"timestamp-millis", "timestamp-micros"}
_LOCAL_TIMES = {"local-timestamp-millis", "local-timestamp-micros"}


class AvroDecoder(RecordDecoder):
    """Decodes with the writer's schema and gives the fields of the reader's, by Avro's own rules of resolution."""

    def __init__(self, reader_schema: Any, schemas: dict[int, Any] | None, directory: str) -> None:
        super().__init__(arrow_type(reader_schema))
        self._reader_schema = reader_schema
        # None: values have no id, and are written with the reader's schema.
        self._schemas = schemas
        self._directory = directory

    def open(self) -> Callable[[bytes], object]:
        fastavro = fastavro_module()
        reader = fastavro.parse_schema(self._reader_schema)
        if self._schemas is None:
            return lambda value: _read(fastavro, value, reader, None)
        parsed = {number: fastavro.parse_schema(schema) for number, schema in self._schemas.items()}

        def decode(value: bytes) -> object:
            number, body = split_prefix(value)
            if number not in parsed:
                parsed[number] = fastavro.parse_schema(self._find_schema(number))
            return _read(fastavro, body, parsed[number], reader)

        return decode

    def _find_schema(self, number: int) -> Any:
        path = Path(self._directory) / f"{number}.avsc"
        if not path.is_file():
            raise BadValue(f"there is no schema {path.name} in valueSchemaDirectory")
        return json.loads(path.read_text())


def _read(fastavro: Any, value: bytes, writer: Any, reader: Any) -> object:
    stream = io.BytesIO(value)
    found = fastavro.schemaless_reader(stream, writer, reader)
    if stream.tell() != len(value):
        raise BadValue(f"{len(value) - stream.tell()} bytes are left behind the value")
    return _plain(found)


def _plain(value: Any) -> Any:
    """What pa.array() does not take as it is: uuids, and maps, which it wants as pairs of a dict's items."""
    import uuid

    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, uuid.UUID) else value


def avro_decoder(options: ValueOptions) -> AvroDecoder:
    fastavro_module()
    directory = options.schema_directory
    schemas = _read_directory(directory) if directory else None
    if options.schema:
        reader: Any = _load_schema(options.schema)
    elif schemas:
        reader = schemas[max(schemas)]
    else:
        raise OptionError("valueFormat avro needs valueSchema, an Avro schema or its file, or a valueSchemaDirectory.")
    return AvroDecoder(reader, schemas, directory)


def fastavro_module() -> Any:
    try:
        import fastavro
        import fastavro.schema
    except ImportError:
        raise OptionError("valueFormat avro needs the package fastavro: pip install 'moldau[formats]'.") from None
    return fastavro


def _read_directory(directory: str) -> dict[int, Any]:
    place = Path(directory)
    if not place.is_dir():
        raise OptionError(f"The valueSchemaDirectory {directory} is no directory that the driver can read.")
    found = {int(path.stem): _load_schema(path.read_text()) for path in place.glob("*.avsc") if path.stem.isdigit()}
    if not found:
        raise OptionError(f"The valueSchemaDirectory {directory} has no schemas: files are named <id>.avsc.")
    return found


def _load_schema(text: str) -> Any:
    """A schema as text, or the name of the file that has it."""
    if not text.lstrip().startswith(("{", "[", '"')):
        path = Path(text)
        if not path.is_file():
            raise OptionError(f"valueSchema {text} is neither an Avro schema nor a file that the driver can read.")
        text = path.read_text()
    try:
        schema = json.loads(text)
        fastavro_module().parse_schema(schema)
    except OptionError:
        raise
    except Exception as error:
        raise OptionError(f"The Avro schema cannot be read: {error}.") from None
    return schema


def arrow_type(schema: Any, names: dict[str, Any] | None = None, inside: tuple[str, ...] = ()) -> pa.DataType:
    """The Arrow type of an Avro schema; raises OptionError for what Spark has no type for."""
    known: dict[str, Any] = {} if names is None else names
    if isinstance(schema, list):
        return _union_type(schema, known, inside)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        if schema in inside:
            raise OptionError(f"The Avro type {schema} contains itself, and Spark has no such type.")
        if schema not in known:
            raise OptionError(f"The Avro schema names the type {schema}, which it does not define.")
        return arrow_type(known[schema], known, inside)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return arrow_type(kind, known, inside)
    if kind in ("record", "enum", "fixed"):
        known[schema["name"]] = schema
        if "namespace" in schema:
            known[f"{schema['namespace']}.{schema['name']}"] = schema
    if kind == "record":
        within = (*inside, schema["name"])
        return pa.struct([pa.field(row["name"], arrow_type(row["type"], known, within)) for row in schema["fields"]])
    if kind == "array":
        return pa.list_(arrow_type(schema["items"], known, inside))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(schema["values"], known, inside))
    return _scalar_type(schema, kind)


def _union_type(schema: list[Any], names: dict[str, Any], inside: tuple[str, ...]) -> pa.DataType:
    others = [item for item in schema if item != "null"]
    if len(others) != 1:
        raise OptionError(f"The Avro union {json.dumps(schema)} has several types: only one beside null can be read.")
    return arrow_type(others[0], names, inside)


def _scalar_type(schema: dict[str, Any], kind: str) -> pa.DataType:
    logical = schema.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical == "date":
        return pa.date32()
    if logical in _TIMES:
        return pa.timestamp("us", tz="UTC")
    if logical in _LOCAL_TIMES:
        return pa.timestamp("us")
    if logical in ("time-millis", "time-micros"):
        raise OptionError(f"The Avro type {logical} cannot be read: write the field as a number without logicalType.")
    if logical == "uuid" or kind == "enum":
        return pa.string()
    if kind == "fixed":
        return pa.binary()
    return arrow_type(kind, {})
