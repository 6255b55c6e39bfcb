"""A client pushes once a broker offers to take its metrics, until it is closed; what fails does not reach its user."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from moldau.client.config import PRODUCER, ClientConfig
from moldau.client.connection import cluster as cluster_module
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ConfigError, RequestTimeoutError, UnsupportedVersionError
from moldau.client.metrics.names import MetricName, Metrics
from moldau.client.telemetry.watch import Telemetry
from moldau.protocol import api_keys, errors
from moldau.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.messages.push_telemetry_request import PushTelemetryRequest
from moldau.protocol.messages.push_telemetry_response import PushTelemetryResponse
from moldau.protocol.primitives import Message
from moldau.records.codecs import GZIP, ZSTD, decompress
from moldau.telemetry.otlp_reader import OtlpReader
from tests.pace import patience
from tests.unit.client.fake_network import FakeNetwork, ScriptedBroker

ADDRESS = ("broker", 9092)
INSTANCE_ID = b"instance" * 2
SENT = MetricName("record-send-total", "producer-metrics", (("client-id", "c"),))


class TelemetryBroker(ScriptedBroker):
    """Takes metrics; `codes` are the answers to the next pushes."""

    def __init__(self, interval_ms: int = 20, offers: bool = True) -> None:
        super().__init__()
        self.offers = offers
        self.interval_ms = interval_ms
        self.get_code = errors.NONE
        self.codes: list[int] = []
        self.gets: list[bytes] = []
        self.pushes: list[PushTelemetryRequest] = []
        self.on(GetTelemetrySubscriptionsRequest, self.get)
        self.on(PushTelemetryRequest, self.push)
        self.on(MetadataRequest, lambda request, version: MetadataResponse())

    def versions(self) -> ApiVersionsResponse:
        rows = api_keys.advertised(api_keys.BROKER, telemetry=self.offers)
        return ApiVersionsResponse(
            api_keys=[ApiVersion(api.key, api.lowest_advertised, api.highest_advertised) for api in rows]
        )

    def get(self, request: Message, version: int) -> GetTelemetrySubscriptionsResponse:
        assert isinstance(request, GetTelemetrySubscriptionsRequest)
        self.gets.append(request.client_instance_id)
        return GetTelemetrySubscriptionsResponse(
            error_code=self.get_code,
            client_instance_id=INSTANCE_ID,
            subscription_id=len(self.gets),
            accepted_compression_types=[ZSTD, GZIP],
            push_interval_ms=self.interval_ms,
            telemetry_max_bytes=10_000,
            delta_temporality=True,
            requested_metrics=["org.apache.kafka.producer"],
        )

    def push(self, request: Message, version: int) -> PushTelemetryResponse:
        assert isinstance(request, PushTelemetryRequest)
        self.pushes.append(request)
        return PushTelemetryResponse(error_code=self.codes.pop(0) if self.codes else errors.NONE)


class World:
    """A client with a network of its own, and one for what is pushed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, broker: TelemetryBroker, **settings: object) -> None:
        monkeypatch.setattr(
            cluster_module, "socket_network", lambda config: FakeNetwork({ADDRESS: broker}, real_time=True)
        )
        self.broker = broker
        self.config = ClientConfig(PRODUCER, {"bootstrap.servers": "broker:9092", **settings})
        self.cluster = Cluster(self.config, FakeNetwork({ADDRESS: broker}))
        self.total = 0.0
        self.telemetry = Telemetry(self.config, self.cluster, self.metrics)

    def metrics(self) -> Metrics:
        self.total += 3.0
        return Metrics({SENT: self.total})

    def connect(self) -> None:
        self.cluster.refresh([], 1000)


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + patience(10)
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.002)


def value_in(request: PushTelemetryRequest) -> float:
    reader = OtlpReader(decompress(request.compression_type, request.metrics, 10_000))
    assert not reader.resume(1000)
    (point,) = reader.points
    assert point.name == "org.apache.kafka.producer.record.send.total"
    return point.value


def test_it_begins_with_a_connection_and_ends_with_a_last_push(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, TelemetryBroker())
    broker = world.broker
    assert not broker.gets
    world.connect()
    assert world.telemetry.instance_id(10_000) == INSTANCE_ID
    until(lambda: len(broker.pushes) >= 3)
    world.telemetry.close()
    assert broker.gets == [bytes(16)]
    assert [each.terminating for each in broker.pushes] == [False] * (len(broker.pushes) - 1) + [True]
    assert {each.compression_type for each in broker.pushes} == {ZSTD}
    assert [value_in(each) for each in broker.pushes] == [3.0] * len(broker.pushes), "what was added since the last"
    world.telemetry.close()


def test_a_client_that_is_closed_early_says_so_with_its_first_push(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, TelemetryBroker(interval_ms=300_000))
    world.connect()
    world.telemetry.instance_id(10_000)
    world.telemetry.close()
    assert [each.terminating for each in world.broker.pushes] == [True]


def test_another_subscription_is_asked_for_and_a_refused_codec_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = TelemetryBroker()
    broker.codes = [errors.UNKNOWN_SUBSCRIPTION_ID, errors.UNSUPPORTED_COMPRESSION_TYPE, errors.NONE]
    world = World(monkeypatch, broker)
    world.connect()
    until(lambda: len(broker.pushes) >= 3)
    world.telemetry.close()
    assert broker.gets == [bytes(16), INSTANCE_ID, INSTANCE_ID]
    assert [each.subscription_id for each in broker.pushes[:3]] == [1, 2, 3]
    assert [each.compression_type for each in broker.pushes[:3]] == [ZSTD, ZSTD, GZIP]
    assert value_in(broker.pushes[2]) == 9.0, "what was refused is told again"


def test_an_error_that_does_not_pass_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = TelemetryBroker()
    broker.get_code = errors.INVALID_REQUEST
    world = World(monkeypatch, broker)
    world.connect()
    until(lambda: len(broker.gets) == 1)
    with pytest.raises(RequestTimeoutError):
        world.telemetry.instance_id(20)
    world.telemetry.close()
    assert not broker.pushes and len(broker.gets) == 1


def test_a_broker_that_takes_none_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, TelemetryBroker(offers=False))
    with pytest.raises(RequestTimeoutError):
        world.telemetry.instance_id(1)
    world.connect()
    with pytest.raises(UnsupportedVersionError):
        world.telemetry.instance_id(10_000)
    assert not world.broker.gets
    world.telemetry.close()


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, TelemetryBroker(), **{"enable.metrics.push": False})
    world.connect()
    with pytest.raises(ConfigError):
        world.telemetry.instance_id(1)
    world.telemetry.close()
    assert not world.broker.gets


def test_metrics_that_are_too_large_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, TelemetryBroker())
    names = [MetricName("x" * 200 + str(number), "producer-metrics", SENT.tags) for number in range(100)]
    many = Metrics(dict.fromkeys(names, 1.0))
    world.telemetry._metrics = lambda: many
    world.connect()
    world.telemetry.instance_id(10_000)
    time.sleep(0.1)
    world.telemetry.close()
    assert not world.broker.pushes
