"""Compaction in a running broker: in a process of its own, under a load, through kill -9, and as real tools see it."""

from __future__ import annotations

import re
import time
import urllib.request
from pathlib import Path

import pytest

from moldau.client import Consumer, Producer, TopicPartition
from moldau.client.admin import Admin, NewTopic
from tests.interop.conftest import NodeFactory
from tests.interop.kafka_oracle import run_tool
from tests.interop.nodes import HOST, Node, free_ports
from tests.pace import patience

KEYS = 50
VALUE = b"x" * 1000
SETTINGS = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "1000"}
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "600000",
}


def produce_round(producer: Producer, last: dict[bytes, bytes | None], first: int, count: int) -> None:
    for number in range(first, first + count):
        key = b"key-%d" % (number % KEYS)
        value = None if number % 97 == 0 else b"%d " % number + VALUE
        producer.send("table", value, key=key, partition=0)
        last[key] = value
    producer.flush()


def read_all(node: Node) -> list[tuple[int, bytes | None, bytes | None]]:
    partition = TopicPartition("table", 0)
    found: list[tuple[int, bytes | None, bytes | None]] = []
    with Consumer(bootstrap_servers=node.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        deadline = time.monotonic() + patience(30)
        while consumer.position(partition) < end:
            assert time.monotonic() < deadline, "the log cannot be read to its end"
            found += [(record.offset, record.key, record.value) for record in consumer.poll(500)]
    return found


def log_bytes(node: Node) -> int:
    return sum(path.stat().st_size for path in (node.data / "table-0").glob("*.log"))


def wait_for_compaction(node: Node, below: int) -> None:
    deadline = time.monotonic() + patience(60)
    while log_bytes(node) > below:
        assert time.monotonic() < deadline, f"{log_bytes(node)} bytes are left:\n{node.output()[-2000:]}"
        time.sleep(0.1)


def check_content(node: Node, last: dict[bytes, bytes | None]) -> None:
    records = read_all(node)
    offsets = [offset for offset, _, _ in records]
    assert offsets == sorted(set(offsets))
    seen: dict[bytes, bytes | None] = {}
    for _, key, value in records:
        assert key is not None
        seen[key] = value
    assert seen == last


def check_metrics(port: int) -> None:
    """Runs are counted when they end, a moment after their files are in place."""
    deadline = time.monotonic() + patience(30)
    while True:
        with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=patience(10)) as page:
            lines = page.read().decode().splitlines()
        values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        if int(values["moldau_log_cleaner_removed_records_total"]) > 1000:
            break
        assert time.monotonic() < deadline, values
        time.sleep(0.05)
    (uncleanable,) = (value for name, value in values.items() if "uncleanable_partitions_count" in name)
    assert uncleanable == "0"
    assert 0 <= int(values["kafka_log_logcleaner_cleaner_recopy_percent"]) < 100
    assert int(values["moldau_log_cleaner_runs_total"]) > 0


def test_a_table_stays_small_and_complete(start_moldau: NodeFactory) -> None:
    (metrics_port,) = free_ports(1)
    node = start_moldau({**SETTINGS, "moldau.metrics.listener": f"{HOST}:{metrics_port}"})
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([NewTopic("table", 1, 1, configs=TOPIC_SETTINGS)])
    last: dict[bytes, bytes | None] = {}
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for first in range(0, 12_000, 3_000):
            produce_round(producer, last, first, 3_000)
    wait_for_compaction(node, 2_200_000)
    check_content(node, last)
    check_metrics(metrics_port)

    node.kill()
    node.start()
    check_content(node, last)
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        produce_round(producer, last, 12_000, 3_000)
    wait_for_compaction(node, 2_200_000)
    check_content(node, last)
    assert "uncleanable" not in node.output()
    node.stop()
    leftovers = [path.name for path in (node.data / "table-0").iterdir() if path.suffix in (".cleaned", ".swap")]
    assert not leftovers
    node.start()
    check_content(node, last)


@pytest.mark.usefixtures("kafka_tools")
def test_the_real_dump_log_accepts_what_compaction_wrote(start_moldau: NodeFactory) -> None:
    node = start_moldau(SETTINGS)
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([NewTopic("table", 1, 1, configs=TOPIC_SETTINGS)])
    last: dict[bytes, bytes | None] = {b"deleted and never written again": None}
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        producer.send("table", None, key=b"deleted and never written again", partition=0)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with Producer(bootstrap_servers=node.bootstrap, compression_type=codec, linger_ms=50) as producer:
            produce_round(producer, last, 0, 2_000)
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        produce_round(producer, last, 0, 2_500)
    wait_for_compaction(node, 2_500_000)
    node.stop()
    folder: Path = node.data / "table-0"
    logs = sorted(folder.glob("*.log"))
    done = run_tool("dump-log", "--deep-iteration", "--files", ",".join(map(str, logs)))
    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    assert re.search(r"deleteHorizonMs: OptionalLong\[\d+\]", done.stdout)
    indexes = sorted(path for path in folder.iterdir() if path.suffix in (".index", ".timeindex"))
    done = run_tool("dump-log", "--index-sanity-check", "--files", ",".join(map(str, indexes)))
    assert done.returncode == 0, done.stderr
    assert "mismatch" not in (done.stdout + done.stderr).lower()
    node.start()
    check_content(node, last)


@pytest.mark.usefixtures("kafka_tools")
def test_kafkas_own_tester_of_compaction(start_moldau: NodeFactory) -> None:
    """It writes keys several times over, deletes some, and compares what is left with what it has written."""
    node = start_moldau({**SETTINGS, "log.segment.bytes": "1048576", "log.cleaner.min.cleanable.ratio": "0.01"})
    done = run_tool(
        "compaction-tester",
        *("--bootstrap-server", node.bootstrap, "--messages", "200000", "--duplicates", "10"),
        *("--percent-deletes", "10", "--sleep", "3"),
        seconds=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Data verification is completed" in done.stdout
    compacted = re.search(r"(\d+) rows of data produced, (\d+) rows of data consumed", done.stdout)
    assert compacted is not None
    assert int(compacted[2]) < int(compacted[1])
