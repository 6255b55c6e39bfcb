"""The columns of a read as Spark's types, made from the Arrow schema that the readers fill."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from moldau.spark.options import OptionError, ReadOptions, schema_options
from moldau.spark.rows import arrow_schema


def read_schema(options: Mapping[str, str]) -> StructType:
    """What a read with these options gives; nothing is asked of a broker for it."""
    include_headers, _ = schema_options(options)
    return from_arrow_schema(arrow_schema(include_headers))


def check_schema(options: ReadOptions, schema: StructType) -> None:
    """A schema of the user's own is not filled: columns are renamed and cast in the query."""
    expected = from_arrow_schema(arrow_schema(options.include_headers))
    if schema != expected:
        raise OptionError(
            f"A read has the columns {expected.simpleString()}: leave out schema(…), which says"
            f" {schema.simpleString()}, and select and cast columns in the query."
        )
