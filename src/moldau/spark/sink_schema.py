"""Which columns a query must have, and of which types, so that its rows can become records."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from moldau.spark.options import OptionError
from moldau.spark.sink_options import WriteOptions

KEY, VALUE, HEADERS, TOPIC, PARTITION, TIMESTAMP = "key", "value", "headers", "topic", "partition", "timestamp"


def check_schema(schema: StructType, options: WriteOptions) -> None:
    """Refuses columns that cannot become records; other columns are left alone, as Spark's connector does."""
    types = {field.name: field.dataType for field in schema.fields}
    if VALUE not in types:
        raise OptionError(
            f"A write needs the column value, text or binary; there are {', '.join(types) or 'none'}. Select one, such"
            " as to_json(struct(*)) AS value."
        )
    if not options.topic and TOPIC not in types:
        raise OptionError("Where do the records go? Set the option topic, or select a column topic.")
    text = (StringType, BinaryType)
    _check(types, KEY, text, "text or binary")
    _check(types, VALUE, text, "text or binary")
    if not options.topic:
        _check(types, TOPIC, (StringType,), "text")
    _check(types, PARTITION, (IntegerType,), "an integer: cast it to int")
    if options.with_timestamps:
        if TIMESTAMP not in types:
            raise OptionError("writeTimestamps=true needs the column timestamp.")
        _check(types, TIMESTAMP, (TimestampType, TimestampNTZType, LongType), "a timestamp, or milliseconds as long")
    if HEADERS in types and not _is_headers(types[HEADERS]):
        raise OptionError(
            f"The column headers is {types[HEADERS].simpleString()}: it must be array<struct<key:string,value:binary>>."
        )


def _check(types: dict[str, DataType], name: str, allowed: tuple[type[DataType], ...], words: str) -> None:
    found = types.get(name)
    if found is not None and not isinstance(found, allowed):
        raise OptionError(f"The column {name} is {found.simpleString()}: it must be {words}.")


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return (
        [field.name for field in fields] == ["key", "value"]
        and isinstance(fields[0].dataType, StringType)
        and isinstance(fields[1].dataType, (BinaryType, StringType))
    )
