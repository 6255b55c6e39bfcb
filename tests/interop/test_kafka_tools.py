"""The command line tools of Apache Kafka 4.3.1 against Moldau."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.interop.kafka_oracle import run_tool
from tests.interop.nodes import Node

pytestmark = pytest.mark.usefixtures("kafka_tools")


def tool(node: Node, name: str, *arguments: str, text: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_tool(name, "--bootstrap-server", node.bootstrap, *arguments, text=text)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def test_kafka_topics_creates_lists_describes_alters_and_deletes(moldau_server: Node, topic: str) -> None:
    create = ["--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1"]
    created = tool(moldau_server, "topics", *create, "--config", "retention.ms=60000")
    assert created.stdout == f"Created topic {topic}.\n"
    again = tool(moldau_server, "topics", "--create", "--topic", topic, code=1)
    assert f"Topic '{topic}' already exists." in again.stdout
    assert topic in tool(moldau_server, "topics", "--list").stdout.split()
    head, *partitions = tool(moldau_server, "topics", "--describe", "--topic", topic).stdout.splitlines()
    expected = (
        rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: min.insync.replicas=1,retention.ms=60000"
    )
    assert re.fullmatch(expected, head)
    assert partitions == [
        f"\tTopic: {topic}\tPartition: {i}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: " for i in range(2)
    ]
    tool(moldau_server, "topics", "--alter", "--topic", topic, "--partitions", "3")
    shrunk = tool(moldau_server, "topics", "--alter", "--topic", topic, "--partitions", "1", code=1)
    assert f"The topic {topic} currently has 3 partition(s); 1 would not be an increase." in shrunk.stdout
    tool(moldau_server, "topics", "--delete", "--topic", topic)
    assert topic not in tool(moldau_server, "topics", "--list").stdout.split()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "bad name!"], "Topic name is invalid"),
        (["--topic", "bad-rf", "--replication-factor", "2"], "The target replication factor of 2 cannot be reached"),
        (["--topic", "bad-config", "--config", "no.such.config=1"], "Unknown topic config name: no.such.config"),
        (["--topic", "bad-value", "--config", "retention.ms=abc"], "Not a number of type LONG"),
        (["--topic", "bad-broker", "--replica-assignment", "9"], "includes broker 9, but no such broker is registered"),
    ],
)
def test_kafka_topics_shows_what_is_wrong(moldau_server: Node, arguments: list[str], message: str) -> None:
    done = tool(moldau_server, "topics", "--create", *arguments, code=1)
    assert message in done.stdout


def test_kafka_configs_alters_and_describes_topics(moldau_server: Node, topic: str) -> None:
    tool(moldau_server, "topics", "--create", "--topic", topic)
    entity = ["--entity-type", "topics", "--entity-name", topic]
    change = tool(
        moldau_server, "configs", *entity, "--alter", "--add-config", "retention.ms=1234,segment.bytes=1048576"
    )
    assert f"Completed updating config for topic {topic}." in change.stdout
    described = tool(moldau_server, "configs", *entity, "--describe").stdout
    assert "retention.ms=1234 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1234}" in described
    assert "segment.bytes=1048576" in described
    tool(moldau_server, "configs", *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in tool(moldau_server, "configs", *entity, "--describe").stdout
    wrong = tool(moldau_server, "configs", *entity, "--alter", "--add-config", "cleanup.policy=shred", code=1)
    assert "cleanup.policy" in wrong.stderr


def test_kafka_configs_alters_and_describes_brokers(moldau_server: Node) -> None:
    entity = ["--entity-type", "brokers", "--entity-name", "1"]
    tool(moldau_server, "configs", *entity, "--alter", "--add-config", "log.cleaner.backoff.ms=20000")
    described = tool(moldau_server, "configs", *entity, "--describe").stdout
    assert "log.cleaner.backoff.ms=20000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG" in described
    tool(moldau_server, "configs", *entity, "--alter", "--delete-config", "log.cleaner.backoff.ms")
    everything = tool(moldau_server, "configs", *entity, "--describe", "--all").stdout
    assert "  node.id=1 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=1}" in everything
    refused = tool(moldau_server, "configs", *entity, "--alter", "--add-config", "node.id=2", code=1)
    assert "node.id" in refused.stderr


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_the_console_producer_writes_the_console_consumer_reads(
    moldau_server: Node, topic: str, codec: str
) -> None:
    lines = [f"{i}:line {i}" for i in range(20)]
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    text = "\n".join(lines) + "\n"
    tool(moldau_server, "console-producer", "--topic", topic, "--compression-codec", codec, *keyed, text=text)
    shown = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"]
    where = ["--topic", topic, "--partition", "0", "--offset", "5", "--max-messages", "15"]
    read = tool(moldau_server, "console-consumer", *where, *shown)
    assert read.stdout.splitlines() == lines[5:]
    assert "Processed a total of 15 messages" in read.stderr


def test_the_console_consumer_reads_from_the_earliest_offset(moldau_server: Node, topic: str) -> None:
    tool(moldau_server, "console-producer", "--topic", topic, text="a\nb\nc\n")
    where = ["--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "3"]
    assert tool(moldau_server, "console-consumer", *where).stdout.splitlines() == ["a", "b", "c"]


def test_the_producer_performance_test_runs(moldau_server: Node, topic: str) -> None:
    tool(moldau_server, "topics", "--create", "--topic", topic, "--partitions", "2")
    load = ["--num-records", "20000", "--record-size", "500", "--throughput", "-1"]
    done = run_tool("producer-perf-test", "--topic", topic, *load, "--bootstrap-server", moldau_server.bootstrap)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^20000 records sent, ", done.stdout, re.MULTILINE), done.stdout
    rows = tool(moldau_server, "get-offsets", "--topic", topic).stdout.split()
    assert sum(int(row.rsplit(":", 1)[1]) for row in rows) == 20_000


def test_kafka_get_offsets_knows_every_special_time(moldau_server: Node, topic: str) -> None:
    tool(moldau_server, "console-producer", "--topic", topic, text="a\nb\nc\n")
    for when, offset in (("-1", 3), ("-2", 0), ("earliest", 0), ("latest", 3), ("earliest-local", 0), ("0", 0)):
        rows = tool(moldau_server, "get-offsets", "--topic", topic, "--time", when).stdout
        assert rows == f"{topic}:0:{offset}\n", when


def test_kafka_delete_records_moves_the_start(moldau_server: Node, topic: str, tmp_path: Path) -> None:
    tool(moldau_server, "console-producer", "--topic", topic, text="a\nb\nc\n")
    wanted = tmp_path / "delete.json"
    wanted.write_text(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 2}}], "version": 1}}')
    done = tool(moldau_server, "delete-records", "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 2" in done.stdout
    assert tool(moldau_server, "get-offsets", "--topic", topic, "--time", "earliest").stdout == f"{topic}:0:2\n"


def test_kafka_log_dirs_features_quorum_and_api_versions_answer(moldau_server: Node, topic: str) -> None:
    tool(moldau_server, "topics", "--create", "--topic", topic)
    assert topic in tool(moldau_server, "log-dirs", "--describe", "--topic-list", topic).stdout
    features = tool(moldau_server, "features", "describe").stdout
    assert re.search(r"Feature: metadata.version\s.*FinalizedVersionLevel: 4.3-IV", features)
    quorum = tool(moldau_server, "metadata-quorum", "describe", "--status").stdout
    assert re.search(r"LeaderId:\s+1\b", quorum)
    versions = tool(moldau_server, "broker-api-versions").stdout
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", versions)
