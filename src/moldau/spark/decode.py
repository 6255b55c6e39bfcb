"""Values become columns: what a decoder is, and how bad values are told from good ones.

A decoder gets the values of a batch and gives as many results, with a reason for each value that could not be decoded.
Formats that Arrow parses (json, csv, string) are parsed a whole batch at a time; where a batch fails it is halved
until the bad values stand alone, so that one poison record costs a few more parses and not the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

# What stands in front of a value that names its schema by id: a zero and four bytes.
PREFIX_BYTES = 5
REASON_CHARACTERS_MAX = 300


class BadValue(ValueError):
    """At least one of the values is not what it should be."""


class Decoded(NamedTuple):
    """As many results as there were values; reasons are None, or null where the value was good."""

    values: pa.Array
    reasons: pa.Array | None


class Decoder(ABC):
    """Turns values into Arrow arrays of one type. Plain data: pickled to executors."""

    def __init__(self, result_type: pa.DataType) -> None:
        self.result_type = result_type

    def decode(self, values: pa.Array) -> Decoded:
        """Null stays null: a tombstone is no bad record."""
        if values.null_count == 0:
            return self.decode_present(values)
        places = pc.subtract(pc.cumulative_sum(values.is_valid().cast(pa.int64())), 1)
        indices = pc.if_else(values.is_valid(), places, pa.scalar(None, pa.int64()))
        found = self.decode_present(values.drop_null())
        return Decoded(found.values.take(indices), None if found.reasons is None else found.reasons.take(indices))

    @abstractmethod
    def decode_present(self, values: pa.Array) -> Decoded:
        """The same for values that are all there."""


class BatchDecoder(Decoder):
    """One that parses many values at once."""

    def decode_present(self, values: pa.Array) -> Decoded:
        pieces: list[pa.Array] = []
        reasons: list[str | None] = []
        self._decode_some(values, pieces, reasons)
        found = pa.concat_arrays(pieces) if pieces else pa.nulls(0, self.result_type)
        return Decoded(found, pa.array(reasons, pa.string()) if any(reasons) else None)

    def _decode_some(self, values: pa.Array, pieces: list[pa.Array], reasons: list[str | None]) -> None:
        if not len(values):
            return
        try:
            found = self.parse(values)
        except (BadValue, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if len(values) == 1:
                pieces.append(pa.nulls(1, self.result_type))
                reasons.append(shorten(str(error)))
                return
            half = len(values) // 2
            self._decode_some(values.slice(0, half), pieces, reasons)
            self._decode_some(values.slice(half), pieces, reasons)
            return
        pieces.append(found)
        reasons += [None] * len(values)

    @abstractmethod
    def parse(self, values: pa.Array) -> pa.Array:
        """All of the values, or BadValue (or Arrow's own error) if any of them is bad."""


class RecordDecoder(Decoder):
    """One whose format has no parser for many values: each is decoded by itself."""

    def decode_present(self, values: pa.Array) -> Decoded:
        decode = self.open()
        found: list[object] = []
        reasons: list[str | None] = []
        for value in values:
            try:
                found.append(decode(value.as_py()))
                reasons.append(None)
            except Exception as error:  # parsers meet bytes that they were not made for in many ways
                found.append(None)
                reasons.append(shorten(f"{type(error).__name__}: {error}"))
        return Decoded(pa.array(found, self.result_type), pa.array(reasons, pa.string()) if any(reasons) else None)

    @abstractmethod
    def open(self) -> Callable[[bytes], object]:
        """The function for one value; it raises whatever it likes."""


class StringDecoder(BatchDecoder):
    """Values that are text."""

    def __init__(self) -> None:
        super().__init__(pa.string())

    def parse(self, values: pa.Array) -> pa.Array:
        return values.cast(pa.string())


def shorten(text: str) -> str:
    # Arrow counts rows within what was parsed at once, which tells nobody anything.
    line = " ".join(text.split()).removesuffix(" in row 0")
    return line if len(line) <= REASON_CHARACTERS_MAX else f"{line[: REASON_CHARACTERS_MAX - 1]}…"


def split_prefix(value: bytes) -> tuple[int, bytes]:
    """The schema's id, and what lies behind the prefix."""
    if len(value) < PREFIX_BYTES or value[0] != 0:
        raise BadValue("it has no schema id: a zero byte and four bytes with the id stand in front of such values")
    return int.from_bytes(value[1:PREFIX_BYTES], "big"), value[PREFIX_BYTES:]
