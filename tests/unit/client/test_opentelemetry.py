"""Clients as instruments of OpenTelemetry, and spans with the trace's context in the headers of records."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from moldau.client.errors import ClientError
from moldau.client.opentelemetry import observe
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.client.tracing import TracingConsumer, TracingProducer, extract, process
from moldau.client.wiring import wired
from moldau.protocol.errors import MESSAGE_TOO_LARGE
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from tests.unit.client import test_consumer, test_metrics, test_producer
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata


def points(reader: InMemoryMetricReader) -> dict[str, list[tuple[dict[str, Any], float]]]:
    found: dict[str, list[tuple[dict[str, Any], float]]] = {}
    data = reader.get_metrics_data()
    assert data is not None
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    assert isinstance(point, NumberDataPoint)
                    found.setdefault(metric.name, []).append((dict(point.attributes or {}), point.value))
    return found


def test_metrics_are_instruments_with_the_finest_attributes() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    producer, _, _ = test_metrics.produce(10, client_id="shop")
    with producer:
        observe(producer, provider)
        found = points(reader)
        assert found["kafka.producer.record_send_total"] == [({"client-id": "shop", "topic": "t"}, 10)]
        assert [tags for tags, _ in found["kafka.producer.request_total"]] == [
            {"client-id": "shop", "node-id": "node-1"}
        ]
        assert found["kafka.producer.connection_count"][0][0] == {"client-id": "shop"}
        assert "kafka.producer.version" not in found
    provider.shutdown()


class Traces:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())


def test_a_span_lasts_until_the_record_is_delivered_and_travels_with_it() -> None:
    traces = Traces()
    network, log = test_producer.set_up({"t": [1]})
    told: list[object] = []
    with TracingProducer(
        "broker:9092", config=wired(network=network), linger_ms=0, tracer_provider=traces.provider
    ) as producer:
        future = producer.send(
            "t", b"1", "k", headers={"mine": b"x"}, on_delivery=lambda metadata, error: told.append(metadata)
        )
        future.result(60_000)
        producer.flush()
    [span] = traces.spans
    assert span.name == "send t" and span.kind is SpanKind.PRODUCER
    assert span.attributes["messaging.system"] == "kafka" and span.attributes["messaging.destination.name"] == "t"
    assert span.attributes["messaging.kafka.offset"] == 0 and span.attributes["messaging.kafka.message.key"] == "k"
    assert told and told[0] is not None
    headers = dict(log.records[0][0].headers)
    assert headers["mine"] == b"x"
    assert headers["traceparent"] is not None and f"{span.context.trace_id:032x}".encode() in headers["traceparent"]


def test_a_record_that_fails_is_an_error_of_its_span() -> None:
    traces = Traces()
    network, log = test_producer.set_up({"t": [1]})
    log.faults = [MESSAGE_TOO_LARGE]
    with TracingProducer(
        "broker:9092", config=wired(network=network), linger_ms=0, tracer_provider=traces.provider
    ) as producer:
        with pytest.raises(ClientError):
            producer.send("t", b"1").result(60_000)
        with pytest.raises(TypeError):
            producer.send("t", object())
        producer.flush()
    assert [span.status.status_code for span in traces.spans] == [StatusCode.ERROR] * 2
    assert {span.attributes["error.type"] for span in traces.spans} == {"RecordTooLargeError", "TypeError"}


def test_many_records_have_a_span_each() -> None:
    traces = Traces()
    network, _ = test_producer.set_up({"t": [1]})
    with TracingProducer("broker:9092", config=wired(network=network), tracer_provider=traces.provider) as producer:
        for future in producer.send_many("t", [b"1", b"2"], [b"a", b"b"]):
            future.result(60_000)
        with pytest.raises(ValueError, match="more values than keys"):
            producer.send_many("t", [b"1", b"2"], [b"a"])
        producer.flush()
    assert len(traces.spans) == 4


def test_poll_has_links_to_those_that_sent_and_process_is_within_their_trace() -> None:
    traces = Traces()
    network, sent = test_producer.set_up({"t": [1]})
    with TracingProducer("broker:9092", config=wired(network=network), tracer_provider=traces.provider) as producer:
        producer.send("t", b"1").result(60_000)
        producer.flush()
    [origin] = traces.spans
    traces.exporter.clear()
    record = ConsumerRecord(
        "t",
        0,
        7,
        timestamp=0,
        timestamp_type=0,
        key=None,
        value=b"1",
        headers=list(sent.records[0][0].headers),
        leader_epoch=0,
    )
    with process(record, traces.provider):
        pass
    [span] = traces.spans
    assert span.name == "process t" and span.kind is SpanKind.CONSUMER
    assert span.context.trace_id == origin.context.trace_id and span.parent.span_id == origin.context.span_id
    assert span.links[0].context.span_id == origin.context.span_id
    assert extract(record)


def test_poll_has_a_span_where_it_gives_records() -> None:
    traces = Traces()
    log = test_consumer.Log()
    log.add(0, [b"a", b"b"])
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"t": [1]}))
    broker.on(ListOffsetsRequest, log.list_offsets)
    broker.on(FetchRequest, log.fetch)
    network = FakeNetwork({HOME: broker})
    with TracingConsumer("broker:9092", config=wired(network=network), tracer_provider=traces.provider) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek_to_beginning()
        while not consumer.poll(100):
            assert not traces.spans
    [span] = traces.spans
    assert span.name == "poll t" and span.kind is SpanKind.CLIENT
    assert span.attributes["messaging.batch.message_count"] == 2
