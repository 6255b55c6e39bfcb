"""What a client writes is what the official classes and the broker's reader read."""

from __future__ import annotations

import pytest

from moldau.client.metrics.names import MetricName, MetricValue
from moldau.client.telemetry.otlp_writer import OtlpWriter, telemetry_name
from moldau.telemetry.otlp_reader import CUMULATIVE, DELTA, GAUGE, OtlpReader, Point

TAGS = (("client-id", "c"),)
SENT = MetricName("record-send-total", "producer-metrics", TAGS)
RATE = MetricName("record-send-rate", "producer-metrics", TAGS)
NODE = MetricName("request-latency-avg", "producer-node-metrics", (*TAGS, ("node-id", "node-1")))
TEXT = MetricName("version", "app-info", TAGS)
NAN = MetricName("record-size-avg", "producer-metrics", TAGS)

SENT_NAME = "org.apache.kafka.producer.record.send.total"
RATE_NAME = "org.apache.kafka.producer.record.send.rate"
NODE_NAME = "org.apache.kafka.producer.node.request.latency.avg"


def everything(name: str) -> bool:
    return True


def values(sent: float) -> list[tuple[MetricName, MetricValue]]:
    return [(SENT, sent), (RATE, 0.5), (NODE, 3.25), (TEXT, "4.3"), (NAN, float("nan"))]


def points(data: bytes) -> list[Point]:
    reader = OtlpReader(data)
    assert not reader.resume(100_000)
    return reader.points


def test_names_are_those_of_javas_client() -> None:
    assert [telemetry_name(each) for each in (SENT, RATE, NODE)] == [SENT_NAME, RATE_NAME, NODE_NAME]
    lag = MetricName("records-lag-max", "consumer-fetch-manager-metrics", TAGS)
    assert telemetry_name(lag) == "org.apache.kafka.consumer.fetch.manager.records.lag.max"


def test_sums_are_told_as_what_was_added_since_what_arrived() -> None:
    writer = OtlpWriter({}, 1000)
    assert points(writer.write(values(10.0), everything, True, 2000)) == [
        Point(SENT_NAME, DELTA, True, 10.0, ()),
        Point(RATE_NAME, GAUGE, False, 0.5, ()),
        Point(NODE_NAME, GAUGE, False, 3.25, (("node_id", "node-1"),)),
    ]
    assert points(writer.write(values(15.0), everything, True, 3000))[0].value == 15.0, "the first did not arrive"
    writer.taken()
    assert points(writer.write(values(17.0), everything, True, 4000))[0].value == 2.0


def test_or_as_totals_and_a_change_begins_anew() -> None:
    writer = OtlpWriter({}, 1000)
    for sent in (10.0, 15.0):
        assert points(writer.write(values(sent), everything, False, 2000))[0] == Point(
            SENT_NAME, CUMULATIVE, True, sent, ()
        )
        writer.taken()
    assert points(writer.write(values(15.0), everything, True, 3000))[0].value == 15.0


def test_only_what_is_wanted_is_written_and_nothing_is_nothing() -> None:
    writer = OtlpWriter({"group_id": "g"}, 1000)
    assert [each.name for each in points(writer.write(values(1.0), NODE_NAME.startswith, True, 2000))] == [NODE_NAME]
    assert writer.write(values(1.0), lambda name: False, True, 2000) == b""


def test_the_official_classes_read_it() -> None:
    metrics_pb2 = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
    writer = OtlpWriter({"group_id": "g"}, 1000)
    writer.write(values(1.0), everything, True, 2000)
    writer.taken()
    data = metrics_pb2.MetricsData()
    data.ParseFromString(writer.write(values(4.0), everything, True, 3000))
    (resource,) = data.resource_metrics
    assert [(each.key, each.value.string_value) for each in resource.resource.attributes] == [("group_id", "g")]
    sent, _, node = resource.scope_metrics[0].metrics
    assert (sent.name, sent.sum.is_monotonic, sent.sum.aggregation_temporality) == (SENT_NAME, True, 1)
    point = sent.sum.data_points[0]
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (3.0, 2000, 3000)
    assert node.gauge.data_points[0].as_double == 3.25
    assert [(each.key, each.value.string_value) for each in node.gauge.data_points[0].attributes] == [
        ("node_id", "node-1")
    ]
