"""The columns of a read as Spark's types, made from the Arrow schema that the readers fill."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from moldau.spark.options import OptionError, ReadOptions, ValueOptions, schema_options
from moldau.spark.rows import arrow_schema

# The formats whose schema is written in Spark's own language, which only Spark itself can read.
_IN_SPARKS_WORDS = ("json", "csv")
_WHOLE_TYPES = ("struct<", "array<", "map<")


def read_schema(options: Mapping[str, str]) -> StructType | str:
    """What a read with these options gives; no broker is asked for it. As text where Spark has to parse it."""
    include_headers, value = schema_options(options)
    plain = arrow_schema(include_headers)
    if value.format in _IN_SPARKS_WORDS:
        from moldau.spark.value_reader import value_schema

        return _with_written_type(from_arrow_schema(value_schema(plain, pa.binary(), value)), value)
    return from_arrow_schema(_with_decoded_type(plain, value))


def _with_decoded_type(plain: pa.Schema, value: ValueOptions) -> pa.Schema:
    if not value.format:
        return plain
    from moldau.spark.decoders import make_decoder
    from moldau.spark.value_reader import value_schema

    decoder = make_decoder(value)
    return plain if decoder is None else value_schema(plain, decoder.result_type, value)


def _with_written_type(fields: StructType, value: ValueOptions) -> StructType | str:
    text = value.schema.strip()
    if not text:
        raise OptionError(f"valueFormat {value.format} needs valueSchema, such as id BIGINT, name STRING.")
    if text.startswith("{"):
        try:
            kind: DataType = StructType.fromJson(json.loads(text))
        except Exception as error:
            raise OptionError(f"valueSchema is no JSON of a Spark schema: {error}.") from None
        return StructType([StructField("value", kind) if row.name == "value" else row for row in fields])
    written = text if text.lower().replace(" ", "").startswith(_WHOLE_TYPES) else f"STRUCT<{text}>"
    columns = [(row.name, written if row.name == "value" else row.dataType.simpleString()) for row in fields]
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


def checked_schema(options: ReadOptions, schema: StructType) -> pa.Schema:
    """The schema as Arrow has it; raises OptionError for one of the user's own, which is not filled."""
    value = options.value
    plain = arrow_schema(options.include_headers)
    given = to_arrow_schema(schema, timezone="UTC")
    if value.format in _IN_SPARKS_WORDS and "value" in given.names:
        from moldau.spark.value_reader import value_schema

        expected = value_schema(plain, given.field("value").type, value)
    else:
        expected = _with_decoded_type(plain, value)
    if from_arrow_schema(expected).simpleString() != schema.simpleString():
        raise OptionError(
            f"A read has the columns {from_arrow_schema(expected).simpleString()}: leave out schema(…), which says"
            f" {schema.simpleString()}, and select and cast columns in the query."
        )
    return given
