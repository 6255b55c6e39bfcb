"""What the client's metrics say of what it did with a real broker, Moldau and Apache Kafka; and the names of Java's."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Metrics, NewTopic, Producer, TopicPartition
from tests.interop import kafka_oracle
from tests.interop.conftest import require_kafka
from tests.interop.nodes import Node
from tests.pace import patience
from tests.unit.client.test_metric_names import JAVA_NAMES

pytestmark = pytest.mark.interop

RECORDS = 1_000
VALUE = bytes(100)
# In a batch: length, attributes, deltas of time and offset, no key, a value of 100 bytes, no headers.
RECORD_BYTES_MIN, RECORD_BYTES_MAX = 109, 112
HEADER_BYTES = 61
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(params=["moldau_server", "oracle"], ids=["moldau", "kafka"])
def server(request: pytest.FixtureRequest) -> str:
    node: Node = request.getfixturevalue(request.param)
    return node.bootstrap


def nodes_sum(metrics: Metrics, name: str) -> float:
    return sum(float(value) for key, value in metrics.find(name).items() if "node-id" in dict(key.tags))


def test_what_was_sent_and_read_is_what_is_counted(server: str, topic: str) -> None:
    with Admin(server) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
        assert admin.metrics()["request-total"] >= 2
    partition = TopicPartition(topic, 0)
    batches: list[int] = []
    with Producer(server, on_batch=lambda item, count, error: batches.append(count)) as producer:
        for future in producer.send_many(topic, [VALUE] * RECORDS):
            future.result()
        producer.flush()
        sent = producer.metrics()
    assert sum(batches) == RECORDS == sent["record-send-total"] == sent.value("record-send-total", topic=topic)
    total = sent.value("byte-total", topic=topic)
    body = total - HEADER_BYTES * len(batches)
    assert RECORD_BYTES_MIN * RECORDS <= body <= RECORD_BYTES_MAX * RECORDS
    assert sent["batch-size-avg"] == pytest.approx(total / len(batches))
    assert sent["record-size-avg"] == pytest.approx(body / RECORDS) and sent["record-size-max"] <= RECORD_BYTES_MAX
    assert sent["record-error-total"] == sent["record-retry-total"] == 0
    assert sent["outgoing-byte-total"] > total and sent["incoming-byte-total"] > 0
    assert sent["response-total"] <= sent["request-total"] and sent["connection-count"] >= 1
    for name in ("outgoing-byte-total", "incoming-byte-total", "request-total", "response-total"):
        assert nodes_sum(sent, name) == sent[name]
    with Consumer(server) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        first = poll(consumer, 1, max_records=10)
        found = consumer.metrics()
        assert found["records-consumed-total"] == len(first)
        assert found.value("records-lag", topic=topic, partition=0) == RECORDS - len(first)
        assert found.value("records-lead", topic=topic, partition=0) == len(first)
        poll(consumer, RECORDS - len(first))
        found = consumer.metrics()
        assert found["records-consumed-total"] == RECORDS == found.value("records-consumed-total", topic=topic)
        assert found["bytes-consumed-total"] == body
        assert found.value("records-lag", topic=topic, partition=0) == 0
        assert found["records-lag-max"] == RECORDS - len(first)
        assert found["incoming-byte-total"] > total and found["fetch-total"] >= 1


def test_a_group_counts_its_rebalances_and_commits(server: str, topic: str) -> None:
    with Admin(server) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].get()
    with Consumer(server, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + patience(30)
        while not consumer.assignment():
            consumer.poll(100)
            assert time.monotonic() < deadline
        consumer.commit({TopicPartition(topic, 0): 0})
        found = consumer.metrics()
        assert found["assigned-partitions"] == 2 and found["rebalance-total"] >= 1 and found["join-total"] >= 1
        assert found["commit-total"] >= 1 and found["commit-sync-time-ns-total"] > 0
        assert found.find(node_id="node--1") or len(found.find("request-total", "consumer-node-metrics")) >= 2


def poll(consumer: Consumer, count: int, **more: Any) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + patience(30)
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records"
        records += consumer.poll(200, **more)
    return records


def test_the_names_of_java_s_clients_are_those_that_were_noted(oracle: Node) -> None:
    """The list in tests/data is what a real client says."""
    require_kafka()
    probe = Path(__file__).parent / "MetricsProbe.java"
    command = ["java", "-cp", f"{kafka_oracle.LIBS}/*", str(probe), oracle.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(120), check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(JAVA_NAMES.read_text().splitlines())


def test_the_examples_of_the_documentation_run(moldau_server: Node) -> None:
    text = (DOCS / "client-metrics.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 3
    for number, example in enumerate(examples):
        code = compile(
            example.replace("localhost:9092", moldau_server.bootstrap), f"docs/client-metrics.md {number + 1}", "exec"
        )
        exec(code, {"__name__": f"example_{number + 1}"})
