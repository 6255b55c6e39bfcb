"""Writes a client's metrics as OTLP MetricsData, protobuf by hand: names as Java's client gives them, sums and gauges.

`record-send-total` of `producer-metrics` is `org.apache.kafka.producer.record.send.total`. What ends with `-total` only
grows and is a sum, of which a broker may want what was added since the last push; everything else is a gauge.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping

from moldau.client.metrics.names import CLIENT_ID, MetricName, MetricValue

PREFIX = "org.apache.kafka."
DELTA, CUMULATIVE = 1, 2
SCOPE = "moldau"

_DOUBLE = struct.Struct("<d")
_FIXED = struct.Struct("<Q")


def telemetry_name(metric: MetricName) -> str:
    group = metric.group.replace("-metrics", "")
    return f"{PREFIX}{group}.{metric.name}".replace("-", ".")


def is_sum(metric: MetricName) -> bool:
    return metric.name.endswith("-total")


class OtlpWriter:
    """Remembers what was told of each sum, to tell what was added since."""

    def __init__(self, resource: Mapping[str, str], started_ns: int) -> None:
        """resource: attributes of all metrics. started_ns: since when totals count."""
        self._resource = _message(1, b"".join(_attribute(1, name, value) for name, value in resource.items()))
        self._started_ns = started_ns
        self._told: dict[MetricName, float] = {}
        self._told_ns = started_ns
        self._written: dict[MetricName, float] = {}
        self._written_ns = started_ns
        self._was_delta: bool | None = None

    def write(
        self,
        metrics: Iterable[tuple[MetricName, MetricValue]],
        wants: Callable[[str], bool],
        is_delta: bool,
        now_ns: int,
    ) -> bytes:
        """The metrics that are wanted; numbers alone, and only those that are numbers. Empty if there are none."""
        if is_delta != self._was_delta:
            self._was_delta = is_delta
            self._told.clear()
            self._told_ns = self._started_ns
        written: list[bytes] = []
        self._written, self._written_ns = {}, now_ns
        for metric, value in metrics:
            name = telemetry_name(metric)
            if isinstance(value, str) or value != value or not wants(name):
                continue
            written.append(_message(2, self._metric(metric, name, float(value), is_delta, now_ns)))
            if is_sum(metric):
                self._written[metric] = float(value)
        if not written:
            return b""
        scope = _message(2, _message(1, _text(1, SCOPE)) + b"".join(written))
        return _message(1, self._resource + scope)

    def taken(self) -> None:
        """What was written last has arrived: what is told next begins there."""
        self._told.update(self._written)
        self._told_ns = self._written_ns

    def _metric(self, metric: MetricName, name: str, value: float, is_delta: bool, now_ns: int) -> bytes:
        attributes = b"".join(
            _attribute(7, tag.replace("-", "_"), text) for tag, text in metric.tags if tag != CLIENT_ID
        )
        time = _fixed(3, now_ns)
        if not is_sum(metric):
            return _text(1, name) + _message(5, _message(1, time + _double(4, value) + attributes))
        since_ns = self._told_ns if is_delta else self._started_ns
        amount = value - self._told.get(metric, 0.0) if is_delta else value
        point = _message(1, _fixed(2, since_ns) + time + _double(4, amount) + attributes)
        kind = _number(2, DELTA if is_delta else CUMULATIVE) + _number(3, 1)
        return _text(1, name) + _message(7, point + kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode("utf-8", "replace"))


def _attribute(field: int, name: str, value: str) -> bytes:
    return _message(field, _text(1, name) + _message(2, _text(1, value)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + _DOUBLE.pack(value)


def _fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + _FIXED.pack(value)
