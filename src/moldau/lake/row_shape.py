"""From records to rows: values decoded and spread over columns of their own, envelopes of change data unwrapped.

A `RowShape` is made on the driver, which takes the table's schema from it, and travels to the tasks, which use it.
It is plain data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moldau.lake.ddl import parse_schema
from moldau.lake.errors import LakeError
from moldau.lake.extras import need
from moldau.lake.table import DATE
from moldau.spark.options import ReadOptions

PREFIX = "value_"
# In change files only: whether the record deletes its key.
DELETED = "_deleted"
PLAIN = ""
DEBEZIUM = "debezium"
ENVELOPES = (PLAIN, DEBEZIUM)


@dataclass(frozen=True)
class RowShape:
    """How records of one load become rows."""

    options: ReadOptions
    # Of the rows as the table has them.
    schema: Any
    # None: values stay bytes.
    decoder: Any = None
    decoded_schema: Any = None
    envelope: str = PLAIN
    # Whether rows say if they delete their key: tombstones, and deletes of envelopes.
    changes: bool = False

    def rows(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of a range as rows."""
        if self.decoder is None and not self.changes:
            yield from batches
            return
        decoded = batches
        if self.decoder is not None:
            from moldau.spark.value_reader import decode_values

            decoded = decode_values(batches, self.decoder, self.options, self.decoded_schema)
        for batch in decoded:
            yield self._shaped(batch)

    def _shaped(self, batch: Any) -> Any:
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        values = batch.column("value")
        deleted = values.is_null()
        if self.envelope == DEBEZIUM:
            values, removed = _unwrap(batch, values)
            deleted = compute.or_(deleted, removed)
        arrays, names = [], []
        for name in batch.schema.names:
            if name != "value":
                arrays.append(batch.column(name))
                names.append(name)
            elif pa.types.is_struct(values.type):
                arrays += _fields(values)
                names += [column_name(item.name, batch.schema.names) for item in values.type]
            else:
                arrays.append(values)
                names.append(name)
        if self.changes:
            arrays.append(deleted)
            names.append(DELETED)
        return pa.RecordBatch.from_arrays(arrays, names)


def make_shape(options: ReadOptions, envelope: str = PLAIN, changes: bool = False) -> RowShape:
    """The shape of what a read with these options gives; LakeError or OptionError where a schema is wrong."""
    need("pyarrow")
    from moldau.spark.decoders import make_decoder
    from moldau.spark.rows import arrow_schema
    from moldau.spark.value_reader import value_schema

    plain = arrow_schema(options.include_headers)
    if envelope not in ENVELOPES:
        raise LakeError(f"{envelope} is no envelope of change data: there is {DEBEZIUM}.")
    if envelope and options.value.format != "json":
        raise LakeError("Debezium envelopes need --value-format json, and the row's --value-schema.")
    if not options.value.format:
        return RowShape(options, plain, changes=changes)
    row_type = parse_schema(options.value.schema) if options.value.format in ("json", "csv") else None
    value_type = _debezium_type(row_type) if envelope else row_type
    decoder = make_decoder(options.value, value_type)
    assert decoder is not None
    decoded = value_schema(plain, decoder.result_type, options.value)
    return RowShape(
        options, _table_schema(decoded, row_type or decoder.result_type), decoder, decoded, envelope, changes
    )


def _table_schema(decoded: Any, row_type: Any) -> Any:
    pa = need("pyarrow")
    fields: list[Any] = []
    for item in decoded:
        if item.name != "value":
            fields.append(item)
        elif pa.types.is_struct(row_type):
            fields += [inner.with_name(column_name(inner.name, decoded.names)) for inner in row_type]
        else:
            fields.append(pa.field("value", row_type))
    names = [item.name.lower() for item in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise LakeError(f"Two columns would have the name {twice}: rename a field of the value's schema.")
    return pa.schema(fields)


def column_name(name: str, taken: list[str]) -> str:
    """The column of a value's field: its name, with a prefix where a record's own column has it."""
    own = {other.lower() for other in taken if other != "value"} | {DATE, DELETED}
    return f"{PREFIX}{name}" if name.lower() in own else name


def _fields(values: Any) -> list[Any]:
    """The fields of a struct as arrays that are null where it is null, also of a part of a longer array."""
    compute = need("pyarrow.compute")
    return [compute.struct_field(values, [place]) for place in range(values.type.num_fields)]


def _debezium_type(row_type: Any) -> Any:
    """Envelopes as they are, and within a payload as converters with schemas write them."""
    pa = need("pyarrow")
    if not pa.types.is_struct(row_type):
        raise LakeError(
            "Debezium envelopes hold rows: write their columns, such as --value-schema 'id BIGINT, name STRING'."
        )
    inner = [pa.field("after", row_type), pa.field("op", pa.string())]
    return pa.struct([*inner, pa.field("payload", pa.struct(inner))])


def _unwrap(batch: Any, values: Any) -> tuple[Any, Any]:
    """(the row after the change, whether the row was deleted)"""
    compute = need("pyarrow.compute")
    after, operation, payload = (compute.struct_field(values, [place]) for place in range(3))
    after = _first(after, compute.struct_field(payload, [0]))
    operation = compute.coalesce(operation, compute.struct_field(payload, [1]))
    removed = compute.fill_null(compute.equal(operation, "d"), False)
    strange = compute.and_(compute.and_(after.is_null(), compute.invert(removed)), values.is_valid())
    if compute.any(strange).as_py():
        place = compute.index(strange, True).as_py()
        where = ", ".join(f"{name} {batch.column(name)[place]}" for name in ("topic", "partition", "offset"))
        raise LakeError(
            f"The change at {where} has no row and is no delete (op {operation[place]}): is it a Debezium envelope?"
            " Truncations cannot be loaded; forget the topic and load it anew."
        )
    return after, removed


def _first(one: Any, other: Any) -> Any:
    """Row by row the first of two structs that is not null."""
    if not one.null_count:
        return one
    if other.null_count == len(other):
        return one
    return need("pyarrow.compute").if_else(one.is_valid(), one, other)
