"""The real kafka-dump-log reads every file of a Moldau data directory without complaint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NodeFactory
from tests.interop.kafka_oracle import run_tool
from tests.interop.nodes import Node
from tests.pace import patience

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin_module = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")
pytestmark = pytest.mark.usefixtures("kafka_tools")

COMPLAINTS = (
    "mismatch",
    "isvalid: false",
    "non-consecutive",
    "out of order",
    "exception",
    "corrupt",
    "error",
    "invalid",
)
READABLE = {".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".checkpoint"}


def write_everything(node: Node) -> None:
    """Several topics, codecs and segments, deleted records, idempotent producers, configs."""
    admin = admin_module.AdminClient({"bootstrap.servers": node.bootstrap})
    topics = [
        admin_module.NewTopic(f"codec-{codec}", 2, 1, config={"segment.bytes": "1048576"})
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    ]
    topics.append(admin_module.NewTopic("empty", 1, 1, config={"message.timestamp.type": "LogAppendTime"}))
    for future in admin.create_topics(topics).values():
        future.result(patience(20))
    for name in topics:
        codec = name.topic.removeprefix("codec-")
        if codec == name.topic:
            continue
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": node.bootstrap, "compression.type": codec, "enable.idempotence": codec != "gzip"}
        )
        for i in range(3000):
            value = b"%d " % i * 200
            producer.produce(name.topic, key=b"%d" % i, value=value, headers=[("n", b"%d" % i)], partition=i % 2)
        assert producer.flush(patience(30)) == 0
    partition = confluent_kafka.TopicPartition("codec-none", 0, 100)
    for future in admin.delete_records([partition]).values():
        future.result(patience(20))


def dump(files: list[Path], *options: str) -> str:
    done = run_tool("dump-log", *options, "--files", ",".join(map(str, files)))
    assert done.returncode == 0, done.stderr
    # The tool says of every log that does not begin at 0 that its first offset follows -1.
    said = re.sub(
        r"Non-consecutive offsets in \S*/0*(\d+)\.log\n  -1 is followed by \1\n", "", done.stdout + done.stderr
    )
    complaints = [line for line in said.splitlines() if any(word in line.lower() for word in COMPLAINTS)]
    assert not complaints, "\n".join(complaints[:20])
    for file in files:
        assert f"Dumping {file}" in done.stdout
    return done.stdout


def check_directory(data: Path) -> None:
    files = sorted(path for path in data.rglob("*") if path.suffix in READABLE and path.stat().st_size > 0)
    metadata = [path for path in files if "__cluster_metadata-0" in path.parts or path.name == "bootstrap.checkpoint"]
    partitions = [path for path in files if path not in metadata]
    logs = [path for path in partitions if path.suffix == ".log"]
    assert len([path for path in logs if path.parent.name == "codec-none-0"]) > 1, "nothing was rolled"
    text = dump(logs, "--deep-iteration")
    assert "compresscodec: zstd" in text
    assert "producerId: " in text
    indexes = [path for path in partitions if path.suffix in (".index", ".timeindex")]
    dump(indexes)
    dump(indexes, "--index-sanity-check")
    dump(indexes, "--verify-index-only")
    dump([path for path in partitions if path.suffix == ".snapshot"])
    records = [path for path in metadata if path.suffix in (".log", ".checkpoint")]
    decoded = dump(records, "--cluster-metadata-decoder")
    assert '"type":"TOPIC_RECORD"' in decoded
    assert '"type":"REGISTER_BROKER_RECORD"' in decoded
    assert '"type":"FEATURE_LEVEL_RECORD"' in decoded


def check_names(data: Path) -> None:
    """The small files have the names and the shape that Kafka gives them."""
    assert (data / "meta.properties").read_text().count("version=1") == 1
    names = {path.name for path in data.iterdir() if path.is_file()}
    wanted = {"recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"}
    assert wanted <= names
    assert ".kafka_cleanshutdown" in names
    for checkpoint in wanted:
        version, count, *rows = (data / checkpoint).read_text().splitlines()
        assert (version, int(count)) == ("0", len(rows))
    assert (data / "codec-none-0" / "partition.metadata").read_text().startswith("version: 0\ntopic_id: ")
    assert (data / "codec-none-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 100\n"


def test_dump_log_reads_a_directory_after_a_clean_stop(start_moldau: NodeFactory) -> None:
    node = start_moldau()
    write_everything(node)
    node.stop()
    check_names(node.data)
    check_directory(node.data)


def test_dump_log_reads_a_directory_after_a_crash_and_a_clean_stop(start_moldau: NodeFactory) -> None:
    node = start_moldau()
    write_everything(node)
    node.kill()
    node.start()
    client: Any = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
    client.produce("codec-none", value=b"after the crash", partition=0)
    assert client.flush(patience(20)) == 0
    node.stop()
    check_directory(node.data)
