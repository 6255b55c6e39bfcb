"""Client telemetry as Apache Kafka has it with a plugin: what clients are asked for, ids, the order of the checks."""

from __future__ import annotations

import gzip
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.errors import error_name
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.push_telemetry_request import PushTelemetryRequest
from moldau.telemetry.subscriptions import subscription_id
from tests.interop.conftest import Same, require_kafka, running
from tests.interop.kafka_oracle import LIBS, KafkaNode, java_command
from tests.interop.nodes import MoldauNode, Node
from tests.interop.peers import Peer
from tests.interop.wire import CLOSED
from tests.pace import patience

pytestmark = pytest.mark.interop

CLIENT_METRICS = 16
BYTES_MAX = 5000
ZERO, ONE = bytes(16), bytes(15) + b"\1"
SET, DELETE = 0, 1
GZIP = 1
LONG_MS = "60000"


class KafkaWithPlugin(KafkaNode):
    """With a metric reporter that takes telemetry."""

    def server_command(self) -> list[str]:
        command = java_command("kafka.Kafka", str(self.properties), heap="512M", level="INFO")
        place = command.index("-cp") + 1
        command[place] = f"{LIBS}/*:{self.folder}"
        return command

    def compile_plugin(self) -> None:
        source = Path(__file__).parent / "TelemetryPlugin.java"
        subprocess.run(["javac", "-cp", f"{LIBS}/*", "-d", str(self.folder), str(source)], check=True)


@pytest.fixture(scope="module")
def with_plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    require_kafka()
    settings = {"metric.reporters": "TelemetryPlugin", "telemetry.max.bytes": str(BYTES_MAX)}
    node = KafkaWithPlugin(tmp_path_factory.mktemp("kafka"), settings)
    node.compile_plugin()
    yield from running(node)


@pytest.fixture(scope="module")
def with_telemetry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    settings = {"moldau.client.telemetry.enable": "true", "telemetry.max.bytes": str(BYTES_MAX)}
    yield from running(MoldauNode(tmp_path_factory.mktemp("moldau"), settings))


@pytest.fixture
def both(with_plugin: Node, with_telemetry: Node) -> Iterator[list[Peer]]:
    peers = [Peer(with_plugin), Peer(with_telemetry)]
    yield peers
    for peer in peers:
        peer.close()


def alter(peer: Peer, name: str, **configs: str | None) -> None:
    rows = [
        AlterableConfig(key.replace("_", "."), DELETE if value is None else SET, value)
        for key, value in configs.items()
    ]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(CLIENT_METRICS, name, rows)])
    (answer,) = peer.ask(request, 1).responses
    assert answer.error_code == 0, answer.error_message


def forget(peer: Peer, name: str) -> None:
    alter(peer, name, metrics=None, interval_ms=None, match=None)


def get(peer: Peer, instance_id: bytes = ZERO, client_id: str | None = "wire") -> Any:
    return peer.ask(GetTelemetrySubscriptionsRequest(instance_id), 0, client_id)


def get_when(peer: Peer, metrics: set[str]) -> Any:
    """A new instance that is asked for these: brokers see a change a moment later."""
    deadline = time.monotonic() + patience(20)
    while True:
        answer = get(peer)
        if set(answer.requested_metrics) == metrics:
            return answer
        assert time.monotonic() < deadline, answer.requested_metrics
        time.sleep(0.05)


def push(peer: Peer, told: Any, data: bytes = b"", codec: int = 0, last: bool = False, id_plus: int = 0) -> str:
    request = PushTelemetryRequest(told.client_instance_id, told.subscription_id + id_plus, last, codec, data)
    return error_name(peer.ask(request, 0).error_code)


def seen(answer: Any) -> dict[str, Any]:
    expected = subscription_id(answer.requested_metrics, answer.push_interval_ms, answer.client_instance_id)
    return {
        "error": error_name(answer.error_code),
        "has id": answer.client_instance_id != ZERO,
        "codecs": answer.accepted_compression_types,
        "interval": answer.push_interval_ms,
        "bytes": answer.telemetry_max_bytes,
        "delta": answer.delta_temporality,
        "metrics": answer.requested_metrics,
        "id is as computed": answer.subscription_id == expected,
    }


def test_without_a_plugin_it_is_not_offered(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        offered = [row.api_key for row in peer.ask(ApiVersionsRequest("test", "1"), 4).api_keys]
        answer = get(peer)
        told = "closed" if answer == CLOSED else {**seen(answer), "id is as computed": True}
        return [key for key in offered if key in (71, 72)], told

    offered, _ = same(scenario)
    assert offered == []


def test_with_one_the_same_is_offered(both: list[Peer]) -> None:
    rows = []
    for peer in both:
        answer = peer.ask(ApiVersionsRequest("test", "1"), 4)
        rows.append([(row.api_key, row.min_version, row.max_version) for row in answer.api_keys])
    assert rows[0] == rows[1] and (71, 0, 0) in rows[0] and (72, 0, 0) in rows[0]


def test_what_clients_are_asked_for_and_the_id_of_it(both: list[Peer]) -> None:
    names = [f"org.apache.kafka.part{number}.metric{number * 7}" for number in range(30)]
    observed = []
    for peer in both:
        told = [seen(get(peer))]
        alter(peer, "many", metrics=",".join(names), interval_ms="2000")
        told.append(seen(get_when(peer, set(names))))
        alter(peer, "few", metrics="b,a,abc,ab", interval_ms="3000", match="client_id=wi.e,client_source_address=127.*")
        told.append(seen(get_when(peer, {*names, "b", "a", "abc", "ab"})))
        told.append(seen(get(peer, client_id="other")))
        told.append(seen(get(peer, client_id=None)))
        alter(peer, "all", metrics="*", match="client_software_name=unknown,client_software_version=unknown")
        told.append(seen(get_when(peer, {"*"})))
        for name in ("all", "few", "many"):
            forget(peer, name)
        told.append(seen(get_when(peer, set())))
        observed.append(told)
    assert observed[0] == observed[1]
    assert all(row["id is as computed"] for row in observed[0])


def test_errors_come_in_the_same_order(both: list[Peer]) -> None:
    observed = []
    for peer in both:
        alter(peer, "s", metrics="a", interval_ms=LONG_MS)
        told = get_when(peer, {"a"})
        codes = [error_name(get(peer, told.client_instance_id).error_code)]
        codes += [push(peer, told), push(peer, told), push(peer, told, codec=9, id_plus=1, data=bytes(BYTES_MAX + 1))]
        codes += [push(peer, told, last=True), push(peer, told), push(peer, told), push(peer, told, last=True)]
        codes += [push(peer, told, last=True)]
        for reserved in (ZERO, ONE):
            codes.append(error_name(peer.ask(PushTelemetryRequest(reserved), 0).error_code))
        for more in (
            {"id_plus": 1, "codec": 9},
            {"codec": 9, "data": bytes(BYTES_MAX + 1)},
            {"codec": -1},
            {"data": bytes(BYTES_MAX + 1)},
            {"data": bytes(BYTES_MAX)},
            {"data": b"nonsense", "codec": GZIP},
            {"data": gzip.compress(bytes(100_000)), "codec": GZIP},
            {"data": b"x", "codec": GZIP, "last": True},
        ):
            fresh = get(peer)
            codes.append(push(peer, fresh, **more))  # type: ignore[arg-type]
            codes.append(error_name(get(peer, fresh.client_instance_id).error_code))
            codes.append(push(peer, fresh))
        alter(peer, "s", metrics="b")
        get_when(peer, {"b"})
        codes += [push(peer, fresh), error_name(get(peer, fresh.client_instance_id).error_code)]
        stranger = b"stranger" * 2
        request = PushTelemetryRequest(stranger, subscription_id(["b"], int(LONG_MS), stranger))
        codes.append(error_name(peer.ask(request, 0).error_code))
        codes.append(error_name(peer.ask(request, 0).error_code))
        forget(peer, "s")
        get_when(peer, set())
        observed.append(codes)
    assert observed[0] == observed[1]
