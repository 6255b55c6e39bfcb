"""Reads the numbers out of OTLP metrics (MetricsData, protobuf) that a client pushed, a bounded piece at a time.

Whoever pushes chose the bytes: every length is checked against what contains it, names and labels are bounded, and a
point that exceeds a bound is left out and counted. Numbers are gauges and sums; of a histogram count and sum are read.
Exemplars, summaries and exponential histograms are passed over.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

GAUGE: Final = 0
CUMULATIVE: Final = 1
DELTA: Final = 2

NAME_BYTES_MAX: Final = 255
LABELS_MAX: Final = 8
LABEL_NAME_BYTES_MAX: Final = 64
LABEL_VALUE_BYTES_MAX: Final = 256

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Messages that contain others, by what the reader does with their fields.
_DATA, _RESOURCE, _SCOPE, _METRIC = 0, 1, 2, 3
# The field that holds the next message, for those that do nothing else.
_INNER: Final = {_DATA: (1, _RESOURCE), _RESOURCE: (2, _SCOPE), _SCOPE: (2, _METRIC)}
_GAUGE_FIELD, _SUM_FIELD, _HISTOGRAM_FIELD = 5, 7, 9
_POINTS: Final = _METRIC + 1

_DOUBLE: Final = struct.Struct("<d")
_SIGNED: Final = struct.Struct("<q")
_UNSIGNED: Final = struct.Struct("<Q")


class MalformedMetrics(Exception):
    """Not protobuf, or not what these fields hold."""


class Point(NamedTuple):
    """One number. `temporality` says whether it is a value, a count since the start or what was added to one."""

    name: str
    temporality: int
    is_monotonic: bool
    value: float
    labels: tuple[tuple[str, str], ...]


class _Metric:
    """What the points of a metric have in common."""

    def __init__(self) -> None:
        self.name = ""
        self.temporality = GAUGE
        self.is_monotonic = False
        self.is_histogram = False


class _Cursor:
    """A message that is being walked over: what it is, where the walk is and where the message ends."""

    def __init__(self, kind: int, position: int, end: int, metric: _Metric | None = None) -> None:
        self.kind = kind
        self.position = position
        self.end = end
        self.metric = metric


class OtlpReader:
    """One payload. `resume` as often as it says that there is more; `points` is emptied by whoever takes them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._cursors = [_Cursor(_DATA, 0, len(data))]
        self.points: list[Point] = []
        self.left_out = 0

    def resume(self, fields_max: int) -> bool:
        """Reads at most about so many fields; whether there is more. MalformedMetrics ends it."""
        for _ in range(fields_max):
            if not self._cursors:
                return False
            cursor = self._cursors[-1]
            if cursor.position >= cursor.end:
                self._cursors.pop()
                continue
            self._read_field(cursor)
        return bool(self._cursors)

    def _read_field(self, cursor: _Cursor) -> None:
        field, wire, start, end = self._next(cursor.position, cursor.end)
        cursor.position = end
        if cursor.kind in _INNER:
            wanted, inner = _INNER[cursor.kind]
            if field == wanted and wire == _BYTES:
                if inner == _METRIC:
                    self._open_metric(start, end)
                else:
                    self._cursors.append(_Cursor(inner, start, end))
        elif cursor.kind == _POINTS and field == 1 and wire == _BYTES:
            assert cursor.metric is not None
            self._read_point(cursor.metric, start, end)

    def _open_metric(self, position: int, end: int) -> None:
        """Fields come in any order, so the name is looked for before the points are read."""
        metric = _Metric()
        data: tuple[int, int] | None = None
        while position < end:
            field, wire, start, position = self._next(position, end)
            if wire != _BYTES:
                continue
            if field == 1:
                metric.name = self._text(start, position, NAME_BYTES_MAX) or ""
            elif field in (_GAUGE_FIELD, _SUM_FIELD, _HISTOGRAM_FIELD):
                data = (start, position)
                metric.is_histogram = field == _HISTOGRAM_FIELD
                if field != _GAUGE_FIELD:
                    self._read_kind(metric, start, position)
        if data is None:
            return
        if not metric.name:
            self.left_out += 1
            return
        self._cursors.append(_Cursor(_POINTS, data[0], data[1], metric))

    def _read_kind(self, metric: _Metric, position: int, end: int) -> None:
        """Of a sum or histogram; where the temporality is not told it counts as cumulative."""
        metric.temporality = CUMULATIVE
        metric.is_monotonic = metric.is_histogram
        while position < end:
            field, wire, start, position = self._next(position, end)
            if field == 2 and wire == _VARINT:
                metric.temporality = DELTA if self._varint(start, end)[0] == 1 else CUMULATIVE
            elif field == 3 and wire == _VARINT:
                metric.is_monotonic = self._varint(start, end)[0] != 0

    def _read_point(self, metric: _Metric, position: int, end: int) -> None:
        labels_field = 9 if metric.is_histogram else 7
        labels: list[tuple[str, str]] = []
        values: dict[int, float] = {}
        fits = True
        while position < end:
            field, wire, start, position = self._next(position, end)
            if field == labels_field and wire == _BYTES:
                label = self._label(start, position) if len(labels) < LABELS_MAX else None
                if label is None:
                    fits = False
                else:
                    labels.append(label)
            elif wire == _FIXED64:
                self._read_number(metric, field, start, values)
        if not fits or not values:
            self.left_out += 1
            return
        labels.sort()
        if metric.is_histogram:
            for suffix, value in ((".count", values.get(4)), (".sum", values.get(5))):
                if value is not None:
                    self._add(metric, metric.name + suffix, value, labels)
        else:
            self._add(metric, metric.name, next(iter(values.values())), labels)

    def _read_number(self, metric: _Metric, field: int, start: int, values: dict[int, float]) -> None:
        if metric.is_histogram:
            if field == 4:
                values[4] = _UNSIGNED.unpack_from(self._data, start)[0]
            elif field == 5:
                values[5] = _DOUBLE.unpack_from(self._data, start)[0]
        elif field == 4:
            values[4] = _DOUBLE.unpack_from(self._data, start)[0]
        elif field == 6:
            values[6] = _SIGNED.unpack_from(self._data, start)[0]

    def _add(self, metric: _Metric, name: str, value: float, labels: list[tuple[str, str]]) -> None:
        self.points.append(Point(name, metric.temporality, metric.is_monotonic, value, tuple(labels)))

    def _label(self, position: int, end: int) -> tuple[str, str] | None:
        """A key and its value as text; None where one is too long or of a kind that is no label."""
        name: str | None = None
        value: str | None = None
        while position < end:
            field, wire, start, position = self._next(position, end)
            if field == 1 and wire == _BYTES:
                name = self._text(start, position, LABEL_NAME_BYTES_MAX)
            elif field == 2 and wire == _BYTES:
                value = self._label_value(start, position)
        return None if not name or value is None else (name, value)

    def _label_value(self, position: int, end: int) -> str | None:
        found: str | None = ""
        while position < end:
            field, wire, start, position = self._next(position, end)
            if field == 1 and wire == _BYTES:
                found = self._text(start, position, LABEL_VALUE_BYTES_MAX)
            elif field == 2 and wire == _VARINT:
                found = "true" if self._varint(start, end)[0] else "false"
            elif field == 3 and wire == _VARINT:
                number = self._varint(start, end)[0]
                found = str(number - (1 << 64) if number >= 1 << 63 else number)
            elif field == 4 and wire == _FIXED64:
                found = repr(_DOUBLE.unpack_from(self._data, start)[0])
            else:
                found = None
        return found

    # Protobuf

    def _next(self, position: int, end: int) -> tuple[int, int, int, int]:
        """The field at a position: its number, wire type, and where its content starts and ends."""
        tag, position = self._varint(position, end)
        field, wire = tag >> 3, tag & 7
        if field == 0:
            raise MalformedMetrics("a field has the number 0")
        if wire == _BYTES:
            size, position = self._varint(position, end)
            after = position + size
        elif wire == _FIXED64:
            after = position + 8
        elif wire == _FIXED32:
            after = position + 4
        elif wire == _VARINT:
            after = self._varint(position, end)[1]
        else:
            raise MalformedMetrics(f"wire type {wire} does not exist")
        if after > end:
            raise MalformedMetrics("a field is longer than what contains it")
        return field, wire, position, after

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        data = self._data
        value = shift = 0
        while position < end and shift < 70:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, position
            shift += 7
        raise MalformedMetrics("a number has no end")

    def _text(self, start: int, end: int, size_max: int) -> str | None:
        """None where it is too long."""
        if end - start > size_max:
            return None
        try:
            return self._data[start:end].decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedMetrics("a text is not UTF-8") from None
