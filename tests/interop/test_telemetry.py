"""Real clients push their metrics to Moldau: Java's, librdkafka and our own; what they say is on the broker's pages."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.admin import CLIENT_METRICS, ConfigChange, ConfigResource
from moldau.client.errors import ConfigError, UnsupportedVersionError
from moldau.protocol.uuids import uuid_to_text
from moldau.telemetry.otlp_reader import OtlpReader
from tests.interop import kafka_oracle
from tests.interop.cli import Cli
from tests.interop.conftest import require_kafka, running
from tests.interop.nodes import MoldauNode, Node, free_ports
from tests.pace import patience
from tests.unit.server.metrics.pages import Page

pytestmark = pytest.mark.interop

RECORDS = 50
INTERVAL_MS = 500


class Collector(BaseHTTPRequestHandler):
    """What an OTLP collector gets."""

    taken: list[bytes] = []

    def do_POST(self) -> None:
        self.taken.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def collector() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, collector: int) -> Iterator[MoldauNode]:
    (port,) = free_ports(1)
    node = MoldauNode(
        tmp_path_factory.mktemp("moldau"),
        {
            "moldau.client.telemetry.enable": "true",
            "moldau.client.telemetry.otlp.endpoint": f"http://127.0.0.1:{collector}/v1/metrics",
            "moldau.metrics.listener": f"127.0.0.1:{port}",
        },
    )
    node.metrics_port = port  # type: ignore[attr-defined]
    yield from running(node)


@pytest.fixture(scope="module")
def subscribed(broker: MoldauNode) -> MoldauNode:
    with Admin(broker.bootstrap, enable_metrics_push=False) as admin:
        resource = ConfigResource(CLIENT_METRICS, "everything")
        changes = [ConfigChange("metrics", "*"), ConfigChange("interval.ms", str(INTERVAL_MS))]
        admin.incremental_alter_configs({resource: changes})[resource].get()
        admin.create_topics([NewTopic("telemetry", 1, 1)])["telemetry"].get()
    return broker


def page_of(node: Node, path: str = "/metrics") -> str:
    port = node.metrics_port  # type: ignore[attr-defined]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=patience(10)) as answer:
        text: str = answer.read().decode()
        return text


def until(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + patience(30)
    while not (found := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found


def rows_of(node: Node, name: str, client_id: str) -> dict[str, float]:
    """The rows of a client, of all its instances; the page as a whole is checked on the way."""
    rows = Page(page_of(node)).rows(name)
    return {labels: value for labels, value in rows.items() if f'client_id="{client_id}"' in labels}


def collected() -> set[str]:
    names = set()
    for data in list(Collector.taken):
        reader = OtlpReader(data)
        reader.resume(1_000_000)
        names |= {point.name for point in reader.points}
    return names


def test_java_s_producer(subscribed: MoldauNode) -> None:
    require_kafka()
    probe = Path(__file__).parent / "TelemetryProbe.java"
    command = ["java", "-cp", f"{kafka_oracle.LIBS}/*", str(probe), subscribed.bootstrap, "telemetry", str(RECORDS)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        instance_id = process.stdout.readline().decode().strip()
        name = "moldau_client_producer_record_send_total"
        found = until(lambda: rows_of(subscribed, name, "java-probe"))
        assert [f'client_instance_id="{instance_id}"' in labels for labels in found] == [True]
        until(lambda: list(rows_of(subscribed, name, "java-probe").values()) == [RECORDS])
        listed = json.loads(page_of(subscribed, "/clients"))["connections"]
        mine = [row for row in listed if row["client_id"] == "java-probe"]
        assert {row["software_name"] for row in mine} == {"apache-kafka-java"}
        assert [each["instance_id"] for row in mine for each in row["telemetry"]] == [instance_id]
        assert sum(row["bytes_in"] for row in mine) > 100 * RECORDS
    finally:
        process.communicate(b"\n", timeout=patience(20))
    until(lambda: not rows_of(subscribed, name, "java-probe"))
    until(lambda: "org.apache.kafka.producer.record.send.total" in collected())


def test_librdkafka(subscribed: MoldauNode, tmp_path: Path) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    settings = {"bootstrap.servers": subscribed.bootstrap, "client.id": "rd", "enable.metrics.push": True}
    producer = confluent_kafka.Producer(settings)
    for _ in range(RECORDS):
        producer.produce("telemetry", b"x")
    assert producer.flush(patience(20)) == 0
    page = until(
        lambda: (
            (text := page_of(subscribed))
            and any("moldau_client_producer" in line and 'client_id="rd"' in line for line in text.splitlines())
            and text
        )
    )
    Page(page)
    shown = Cli(subscribed, tmp_path).ok("client", "list", "--telemetry").decode()
    line = next(line for line in shown.splitlines() if line.startswith("rd "))
    assert "rdkafka" in line and "User:ANONYMOUS" in line and "127.0.0.1" in line
    del producer


def test_our_own_clients(subscribed: MoldauNode) -> None:
    with Producer(subscribed.bootstrap, client_id="ours") as producer:
        for _ in range(RECORDS):
            producer.send("telemetry", b"x").result()
        instance_id = uuid_to_text(producer.client_instance_id())
        name = "moldau_client_producer_record_send_total"
        until(lambda: list(rows_of(subscribed, name, "ours").values()) == [RECORDS])
        (labels,) = rows_of(subscribed, name, "ours")
        assert f'client_instance_id="{instance_id}"' in labels
    with Consumer(subscribed.bootstrap, client_id="ours-c", group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["telemetry"])
        read = 0
        while read < RECORDS:
            read += len(consumer.poll(200))
        name = "moldau_client_consumer_fetch_manager_records_consumed_total"
        until(lambda: sum(rows_of(subscribed, name, "ours-c").values()) >= RECORDS)
    with Admin(subscribed.bootstrap, client_id="ours-a") as admin:
        assert len(admin.client_instance_id()) == 16
    until(lambda: not rows_of(subscribed, name, "ours-c"))


def test_the_last_push_of_a_client_comes_when_it_is_closed(subscribed: MoldauNode) -> None:
    """However long the interval is; told by what the collector got."""
    with Admin(subscribed.bootstrap, enable_metrics_push=False) as admin:
        resource = ConfigResource(CLIENT_METRICS, "everything")
        change = [ConfigChange("interval.ms", "600000"), ConfigChange("match", "client_id=late")]
        admin.incremental_alter_configs({resource: change})[resource].get()
    Collector.taken.clear()
    with Producer(subscribed.bootstrap, client_id="late") as producer:
        producer.send("telemetry", b"x").result()
        producer.client_instance_id()
        assert not Collector.taken
    until(lambda: "org.apache.kafka.producer.record.send.total" in collected())


def test_a_broker_that_takes_no_metrics_is_told_from_one_that_does(moldau_server: Node, topic: str) -> None:
    with Producer(moldau_server.bootstrap) as producer:
        producer.send(topic, b"x").result()
        with pytest.raises(UnsupportedVersionError):
            producer.client_instance_id()
        assert not [each for each in threading.enumerate() if each.name == "moldau-telemetry"]
    with Producer(moldau_server.bootstrap, enable_metrics_push=False) as producer, pytest.raises(ConfigError):
        producer.client_instance_id()
