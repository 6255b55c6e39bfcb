"""Values that are JSON or CSV, parsed by Arrow, a batch of them as one text.

Values are joined so that no value can be taken for a part of its neighbour: a JSON value is put into an object of its
own, which it cannot leave without becoming a syntax error; a CSV value is one line, checked for line ends and open
quotes before. The number of results is compared with the number of values all the same.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from moldau.spark.decode import PREFIX_BYTES, BadValue, BatchDecoder
from moldau.spark.options import OptionError

# A time without a zone is in UTC.
_NO_ZONE = r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)$"


class JsonDecoder(BatchDecoder):
    """One JSON document per value; fields that the schema does not name are left out, missing ones are null."""

    def __init__(self, result_type: pa.DataType) -> None:
        super().__init__(result_type)
        self._by_arrow = not _has(result_type, pa.types.is_map)

    def parse(self, values: pa.Array) -> pa.Array:
        documents = _without_prefix(values)
        return self._parse_by_arrow(documents) if self._by_arrow else self._parse_by_python(documents)

    def _parse_by_arrow(self, documents: pa.Array) -> pa.Array:
        wrapped = pc.binary_join_element_wise(b'{"v":', documents, b"}", b"")
        text = _joined(wrapped)
        table = pyarrow.json.read_json(
            pa.BufferReader(text),
            # One block, because a document must not lie in two; one thread, because the task has one core.
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            pyarrow.json.ParseOptions(
                explicit_schema=pa.schema([("v", _times_as_text(self.result_type))]),
                newlines_in_values=True,
                unexpected_field_behavior="ignore",
            ),
        )
        if table.num_rows != len(documents):
            raise BadValue("it is not one JSON document")
        found = table.column("v").combine_chunks()
        found.validate(full=True)  # text that is not UTF-8 must not reach the JVM
        return _with_times(found, self.result_type)

    def _parse_by_python(self, documents: pa.Array) -> pa.Array:
        """Maps are the one type that Arrow's parser does not know."""
        try:
            found = [_shaped(json.loads(value.as_py()), self.result_type) for value in documents]
            return pa.array(found, self.result_type)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise BadValue(str(error)) from None


class CsvDecoder(BatchDecoder):
    """One line per value, its fields in the order of the schema; an empty field is null."""

    def __init__(self, result_type: pa.DataType) -> None:
        super().__init__(result_type)
        if not pa.types.is_struct(result_type) or any(pa.types.is_nested(item.type) for item in result_type):
            raise OptionError("valueFormat csv needs a valueSchema of plain columns, such as id BIGINT, name STRING.")

    def parse(self, values: pa.Array) -> pa.Array:
        self._check_lines(values)
        text = _joined(values)
        names = [str(number) for number in range(self.result_type.num_fields)]
        kinds = [_times_as_text(item.type) for item in self.result_type]
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text),
            pyarrow.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
            pyarrow.csv.ParseOptions(ignore_empty_lines=False),
            pyarrow.csv.ConvertOptions(
                column_types=dict(zip(names, kinds, strict=True)),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        if table.num_rows != len(values):
            raise BadValue("it is not one line")
        columns = [
            _with_times(column.combine_chunks(), item.type)
            for column, item in zip(table.columns, self.result_type, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self.result_type))

    def _check_lines(self, values: pa.Array) -> None:
        if pc.min(pc.binary_length(values)).as_py() == 0:
            raise BadValue("it is empty")
        if pc.any(pc.match_substring_regex(values, r"[\r\n]")).as_py():
            raise BadValue("there is a line end in it")
        if pc.any(pc.equal(pc.bit_wise_and(pc.count_substring(values, '"'), 1), 1)).as_py():
            raise BadValue("a quote is not closed")


def _joined(values: pa.Array) -> pa.Buffer:
    lists = pa.ListArray.from_arrays([0, len(values)], values)
    return pc.binary_join(lists, b"\n")[0].as_buffer()


def _without_prefix(values: pa.Array) -> pa.Array:
    """No JSON begins with a zero byte, so that one means a schema's id, which JSON can do without."""
    marked = pc.equal(pc.binary_slice(values, 0, 1), b"\0")
    if not pc.any(marked).as_py():
        return values
    return pc.if_else(marked, pc.binary_slice(values, PREFIX_BYTES), values)


def _has(kind: pa.DataType, wanted: Any) -> bool:
    if wanted(kind):
        return True
    if pa.types.is_struct(kind):
        return any(_has(item.type, wanted) for item in kind)
    return pa.types.is_list(kind) and _has(kind.value_type, wanted)


def _times_as_text(kind: pa.DataType) -> pa.DataType:
    """Times are read as text first: Arrow's parsers want a zone where the type has one, and people leave it out."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(item.name, _times_as_text(item.type)) for item in kind])
    if pa.types.is_list(kind):
        return pa.list_(_times_as_text(kind.value_type))
    return kind


def _has_zone(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _with_times(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_temporal(kind):
        text = pc.if_else(pc.equal(array, ""), None, array)
        return (pc.replace_substring_regex(text, _NO_ZONE, r"\1Z") if _has_zone(kind) else text).cast(kind)
    if pa.types.is_struct(kind):
        columns = [_with_times(array.field(place), item.type) for place, item in enumerate(kind)]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind):
        values = _with_times(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
    return array.cast(kind)


def _shaped(value: Any, kind: pa.DataType) -> Any:
    """A parsed document as pa.array() wants it: maps as pairs, and nothing that the schema does not name."""
    if value is None:
        return None
    if pa.types.is_map(kind) or pa.types.is_struct(kind):
        if not isinstance(value, dict):
            raise ValueError(f"an object was expected, not {type(value).__name__}")
        if pa.types.is_map(kind):
            return [(key, _shaped(item, kind.item_type)) for key, item in value.items()]
        return {item.name: _shaped(value.get(item.name), item.type) for item in kind}
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            raise ValueError(f"a list was expected, not {type(value).__name__}")
        return [_shaped(item, kind.value_type) for item in value]
    if pa.types.is_temporal(kind):
        return _with_times(pa.array([value], pa.string()), kind)[0].as_py()
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        raise ValueError(f"{value!r} is not of type {kind}")
    return value
