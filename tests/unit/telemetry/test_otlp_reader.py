"""What clients push is read as numbers, and nothing that they push can do more than be left out."""

from __future__ import annotations

import random

import pytest

from moldau.telemetry.otlp_reader import CUMULATIVE, DELTA, GAUGE, MalformedMetrics, OtlpReader, Point
from tests.unit.telemetry.otlp import double, field, gauge, histogram, labels, metrics_data, number, total, varint

FIELDS = 1000


def points_of(data: bytes, fields_max: int = FIELDS) -> list[Point]:
    reader = OtlpReader(data)
    while reader.resume(fields_max):
        pass
    return reader.points


def test_gauges_sums_and_histograms() -> None:
    data = metrics_data(
        gauge("g", 1.5, topic="t"), total("d", 7, 1), total("c", -9, 2, is_monotonic=False), histogram("h", 3, 4.5)
    )
    assert points_of(data) == [
        Point("g", GAUGE, False, 1.5, (("topic", "t"),)),
        Point("d", DELTA, True, 7, ()),
        Point("c", CUMULATIVE, False, -9, ()),
        Point("h.count", CUMULATIVE, True, 3, ()),
        Point("h.sum", CUMULATIVE, True, 4.5, ()),
    ]


def test_it_does_not_matter_in_how_many_pieces_it_is_read() -> None:
    data = metrics_data(*[gauge(f"g{index}", index, n=str(index)) for index in range(50)])
    assert points_of(data, 1) == points_of(data, 7) == points_of(data)
    assert len(points_of(data)) == 50


def test_a_turn_reads_no_more_than_it_is_told_to() -> None:
    reader = OtlpReader(metrics_data(*[gauge("g", 1.0)] * 100))
    assert reader.resume(10) and len(reader.points) <= 10


def test_the_official_classes_write_what_is_read() -> None:
    metrics = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
    common = pytest.importorskip("opentelemetry.proto.common.v1.common_pb2")
    tags = [
        common.KeyValue(key="s", value=common.AnyValue(string_value="é")),
        common.KeyValue(key="i", value=common.AnyValue(int_value=-5)),
        common.KeyValue(key="b", value=common.AnyValue(bool_value=True)),
        common.KeyValue(key="d", value=common.AnyValue(double_value=0.5)),
    ]
    point = metrics.NumberDataPoint(attributes=tags, as_int=12, time_unix_nano=1, start_time_unix_nano=1)
    total_of = metrics.Sum(data_points=[point], aggregation_temporality=1, is_monotonic=True)
    metric = metrics.Metric(name="a.b", description="text", unit="1", sum=total_of)
    scope = metrics.ScopeMetrics(metrics=[metric])
    data = metrics.MetricsData(resource_metrics=[metrics.ResourceMetrics(scope_metrics=[scope])])
    expected = (("b", "true"), ("d", "0.5"), ("i", "-5"), ("s", "é"))
    assert points_of(data.SerializeToString()) == [Point("a.b", DELTA, True, 12, expected)]


@pytest.mark.parametrize(
    "metric",
    [
        gauge("n" * 256, 1.0),
        gauge("", 1.0),
        gauge("g", 1.0, **{f"l{index}": "v" for index in range(9)}),
        gauge("g", 1.0, **{"l" * 65: "v"}),
        gauge("g", 1.0, label="v" * 257),
        field(1, "g") + field(5, field(1, labels(7, a="b"))),
        field(1, "g") + field(5, field(1, double(4, 1.0) + field(7, field(1, "list") + field(2, field(5, b""))))),
    ],
)
def test_a_point_that_is_too_much_is_left_out_and_its_neighbours_are_not(metric: bytes) -> None:
    reader = OtlpReader(metrics_data(gauge("a", 1.0), metric, gauge("z", 1.0)))
    assert not reader.resume(FIELDS)
    assert [point.name for point in reader.points] == ["a", "z"] and reader.left_out == 1


def test_kinds_that_are_not_read_are_passed_over() -> None:
    summary = field(1, "s") + field(11, field(1, double(5, 1.0)))
    assert [point.name for point in points_of(metrics_data(summary, gauge("g", 1.0)))] == ["g"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x00\x00",
        b"\x0b\x00",
        b"\x0a\x80",
        varint(1 << 3 | 1) + b"1234567",
        metrics_data(field(1, b"\xff\xfe") + field(5, field(1, double(4, 1.0)))),
    ],
)
def test_what_is_no_protobuf_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMetrics):
        points_of(data)


def test_mutated_bytes_are_read_or_refused() -> None:
    """Nothing else happens, and it comes to an end: every step moves on."""
    rng = random.Random(7)
    good = metrics_data(gauge("g", 1.0, a="b"), total("t", 5), histogram("h", 1, 2.0), field(1, "x") + number(2, 1))
    refused = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        reader = OtlpReader(bytes(data))
        try:
            assert not reader.resume(10 * len(good))
        except MalformedMetrics:
            refused += 1
        assert len(reader.points) <= len(good)
    assert 300 < refused < 3000
