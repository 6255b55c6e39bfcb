"""Puts decoded values in the place of the bytes, and bad records where onBadRecord says: nowhere on, away, or aside."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.decode import Decoder
from moldau.spark.lookup import ReadError
from moldau.spark.options import DEAD_LETTER, DROP, FAIL, ReadOptions, ValueOptions

if TYPE_CHECKING:
    from moldau.spark.dead_letters import DeadLetterTopic

logger = logging.getLogger("moldau.spark")

DEAD_LETTER_COLUMN = "deadLetter"
DEAD_LETTER_TYPE = pa.struct([pa.field("value", pa.binary()), pa.field("reason", pa.string())])


def value_schema(plain: pa.Schema, value_type: pa.DataType, options: ValueOptions) -> pa.Schema:
    """The columns of a read whose values are decoded; a column for bad records where they have no topic."""
    place = plain.get_field_index("value")
    schema = plain.set(place, pa.field("value", value_type))
    if has_dead_letter_column(options):
        schema = schema.append(pa.field(DEAD_LETTER_COLUMN, DEAD_LETTER_TYPE))
    return schema


def has_dead_letter_column(options: ValueOptions) -> bool:
    return bool(options.format) and options.on_bad_record == DEAD_LETTER and not options.dead_letter_topic


def decode_values(
    batches: Iterator[pa.RecordBatch], decoder: Decoder, options: ReadOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The batches with decoded values, as the schema has them."""
    wanted = options.value
    letters = _dead_letter_topic(options)
    dropped = 0
    try:
        for batch in batches:
            found, reasons = decoder.decode(batch.column("value"))
            if reasons is not None:
                if wanted.on_bad_record == FAIL:
                    raise ReadError(_sentence(batch, reasons, wanted.format))
                if letters is not None:
                    letters.send(batch, reasons)
                if wanted.on_bad_record == DROP or letters is not None:
                    good = reasons.is_null()
                    dropped += batch.num_rows - pc.sum(good).as_py()
                    batch, found = batch.filter(good), found.filter(good)
            yield _replaced(batch, found, reasons if has_dead_letter_column(wanted) else None, schema)
        if letters is not None:
            letters.flush()
    finally:
        if letters is not None:
            letters.close()
    if dropped and letters is None:
        logger.warning("%d records were dropped that could not be decoded as %s.", dropped, wanted.format)


def _dead_letter_topic(options: ReadOptions) -> DeadLetterTopic | None:
    if not options.value.dead_letter_topic:
        return None
    from moldau.spark.dead_letters import DeadLetterTopic

    return DeadLetterTopic(options.value.dead_letter_topic, options.client_config)


def _replaced(batch: pa.RecordBatch, found: pa.Array, reasons: pa.Array | None, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [found if name == "value" else batch.column(name) for name in batch.schema.names]
    if DEAD_LETTER_COLUMN in schema.names:
        arrays.append(_dead_letters(batch, reasons))
    cast = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(arrays, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(cast, schema=schema)


def _dead_letters(batch: pa.RecordBatch, reasons: pa.Array | None) -> pa.Array:
    if reasons is None:
        return pa.nulls(batch.num_rows, DEAD_LETTER_TYPE)
    fields = list(DEAD_LETTER_TYPE)
    return pa.StructArray.from_arrays([batch.column("value"), reasons], fields=fields, mask=reasons.is_null())


def _sentence(batch: pa.RecordBatch, reasons: pa.Array, kind: str) -> str:
    place = pc.index(reasons.is_valid(), True).as_py()
    topic, partition, offset = (batch.column(name)[place].as_py() for name in ("topic", "partition", "offset"))
    return (
        f"The value at offset {offset} of {topic}-{partition} cannot be decoded as {kind}: {reasons[place].as_py()}."
        " Correct valueSchema, or set onBadRecord to drop or deadLetter."
    )
