"""GetTelemetrySubscriptions and PushTelemetry, from the request to what is on the page of metrics."""

from __future__ import annotations

import gzip

import pytest

from moldau.api.registry import offered_keys
from moldau.node import client_telemetry
from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.api_table import GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY
from moldau.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.push_telemetry_request import PushTelemetryRequest
from moldau.records.codecs import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from tests.unit.node.world import NodeWorld
from tests.unit.server.metrics.pages import Page, page_of
from tests.unit.telemetry.otlp import gauge, metrics_data, total

CLIENT_METRICS = 16
SEND = "org.apache.kafka.producer.record.send.total"


class TelemetryWorld(NodeWorld):
    def __init__(self, **settings: str) -> None:
        super().__init__(**{"moldau_client_telemetry_enable": "true", **settings})
        self.start()

    def subscribe(self, name: str = "s", **configs: str) -> None:
        rows = [AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(CLIENT_METRICS, name, rows)])
        assert [row.error_code for row in self.ask(request, 1).responses] == [errors.NONE]

    def get(self, instance_id: bytes = bytes(16)) -> GetTelemetrySubscriptionsResponse:
        response = self.ask(GetTelemetrySubscriptionsRequest(instance_id), 0)
        assert isinstance(response, GetTelemetrySubscriptionsResponse)
        return response

    def push(
        self, told: GetTelemetrySubscriptionsResponse, data: bytes, codec: int = NONE, terminating: bool = False
    ) -> int:
        request = PushTelemetryRequest(told.client_instance_id, told.subscription_id, terminating, codec, data)
        return int(self.ask(request, 0).error_code)

    def page(self) -> Page:
        return page_of(self.node, self.now_ms)


def test_it_is_offered_where_it_is_switched_on() -> None:
    keys = {GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY}
    for setting in ("true", "false"):
        world = TelemetryWorld(moldau_client_telemetry_enable=setting)
        assert keys <= set(offered_keys(False, world.node.config)) or setting == "false"
        assert not keys & set(offered_keys(False, world.node.config)) or setting == "true"
        assert not keys & set(offered_keys(True, world.node.config))
    assert not keys & set(offered_keys(False, NodeWorld().start().node.config)), "by default as Kafka without a plugin"


def test_a_client_is_told_what_the_subscriptions_in_the_metadata_ask_for() -> None:
    world = TelemetryWorld(telemetry_max_bytes="5000")
    world.subscribe(metrics="org.apache.kafka.producer", interval_ms="1000", match="client_id=te.t")
    world.subscribe("other", metrics="x", match="client_source_address=10[.].*")
    told = world.get()
    assert told.error_code == 0 and told.client_instance_id != bytes(16)
    assert (told.push_interval_ms, told.requested_metrics) == (1000, ["org.apache.kafka.producer"])
    assert told.accepted_compression_types == [ZSTD, LZ4, GZIP, SNAPPY]
    assert told.telemetry_max_bytes == 5000 and told.delta_temporality
    assert world.get(told.client_instance_id).error_code == errors.THROTTLING_QUOTA_EXCEEDED


def test_subscriptions_are_there_after_a_start() -> None:
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="2000")
    world.leave()
    world.stop()
    world.start()
    told = world.get()
    assert (told.push_interval_ms, told.requested_metrics) == (2000, ["*"])


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_what_is_pushed_is_on_the_page_until_its_connection_ends(codec: int) -> None:
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    told = world.get()
    for _ in range(2):
        data = metrics_data(
            total(SEND, 5), gauge("org.apache.kafka.producer.node.request.latency.avg", 1.5, node_id="1")
        )
        assert world.push(told, compress(codec, data), codec) == errors.NONE
        world.run(200)
    page = world.page()
    assert page["moldau_client_producer_record_send_total", "client_id=test"] == 10
    assert page["moldau_client_producer_node_request_latency_avg", "node_id=1"] == 1.5
    assert page["kafka_server_client_metrics_instance_count"] == 1
    assert page["moldau_client_telemetry_pushes_total"] == 2 and page["moldau_client_telemetry_series"] == 2
    assert "# TYPE moldau_client_producer_record_send_total counter" in page.text
    world.context.closed(world.now_ms)
    page = world.page()
    assert page["kafka_server_client_metrics_instance_count"] == page["moldau_client_telemetry_series"] == 0
    assert "moldau_client_producer" not in page.text


def test_gauges_that_are_not_numbers_are_not_shown() -> None:
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    data = metrics_data(gauge("a", float("nan")), gauge("b", float("-inf")), gauge("c", 1e300), gauge("d", -0.0))
    assert world.push(world.get(), data) == errors.NONE
    world.run(100)
    assert sorted(name for name in world.page().names if len(name) == len("moldau_client_a")) == [
        "moldau_client_c",
        "moldau_client_d",
    ]


def test_a_bomb_and_garbage_are_refused_and_an_empty_push_is_not() -> None:
    world = TelemetryWorld(telemetry_max_bytes="2000")
    world.subscribe(metrics="*", interval_ms="100")
    told = world.get()
    bomb = gzip.compress(bytes(1_000_000))
    assert len(bomb) < 2000
    for data, codec, expected in (
        (bomb, GZIP, errors.INVALID_RECORD),
        (b"nonsense", ZSTD, errors.INVALID_RECORD),
        (bytes(2001), NONE, errors.TELEMETRY_TOO_LARGE),
        (b"", NONE, errors.NONE),
    ):
        assert world.push(told, data, codec) == expected
        world.run(200)
    page = world.page()
    assert page["moldau_client_telemetry_failed_total"] == 2 and page["moldau_client_telemetry_pushes_total"] == 0


def test_metrics_that_cannot_be_read_are_taken_and_counted() -> None:
    """As in Kafka, where brokers do not look into what is pushed."""
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    assert world.push(world.get(), b"\xff\xff\xff") == errors.NONE
    world.run(100)
    assert world.page()["moldau_client_telemetry_failed_total"] == 1


def test_a_large_push_is_read_in_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "FIELDS_PER_TURN", 20)
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    woken: list[int] = []
    world.node.telemetry.on_deadline = woken.append
    assert world.push(world.get(), metrics_data(*[gauge(f"m{number}", 1.0) for number in range(100)])) == errors.NONE
    assert woken == [world.now_ms]
    world.node.poll(world.now_ms)
    assert 0 < world.node.telemetry.series.count < 20
    world.run(2000)
    assert world.node.telemetry.series.count == 100


def test_what_waits_to_be_read_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "WAITING_BYTES_MAX", 100)
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    data = metrics_data(gauge("m", 1.0))
    for number in range(5):
        world.context = ClientContext("PLAINTEXT", f"127.0.0.1:{5000 + number}")
        assert world.push(world.get(), data) == errors.NONE
    assert world.node.telemetry.dropped_total == 5 - 100 // len(data)


def test_a_client_that_goes_before_its_push_is_read_leaves_nothing_behind() -> None:
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    assert world.push(world.get(), metrics_data(gauge("m", 1.0))) == errors.NONE
    world.context.closed(world.now_ms)
    world.run(100)
    assert world.node.telemetry.series.count == 0


def test_what_is_pushed_is_passed_on_as_it_is() -> None:
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    passed: list[bytes] = []
    world.node.telemetry.export = passed.append
    data = metrics_data(gauge("m", 1.0))
    assert world.push(world.get(), compress(ZSTD, data), ZSTD) == errors.NONE
    assert passed == [data]


def test_the_number_of_series_is_a_setting() -> None:
    world = TelemetryWorld(moldau_client_telemetry_series_max="3")
    world.subscribe(metrics="*", interval_ms="100")
    assert world.push(world.get(), metrics_data(*[gauge(f"m{number}", 1.0) for number in range(10)])) == errors.NONE
    world.run(100)
    page = world.page()
    assert page["moldau_client_telemetry_series"] == 3 and page["moldau_client_telemetry_left_out_total"] == 7


def test_names_of_the_brokers_own_metrics_cannot_be_taken() -> None:
    """The page is read by its own checks: no name and no row is there twice."""
    world = TelemetryWorld()
    world.subscribe(metrics="*", interval_ms="100")
    names = ["telemetry.pushes.total", "kafka_server_kafkaserver_brokerstate", "a.b", "a_b"]
    assert world.push(world.get(), metrics_data(*[gauge(name, 9.0) for name in names])) == errors.NONE
    world.run(100)
    page = world.page()
    assert page["moldau_client_telemetry_pushes_total"] == 1
    assert page["kafka_server_kafkaserver_brokerstate"] != 9
    assert page["moldau_client_kafka_server_kafkaserver_brokerstate", "client_id=test"] == 9
