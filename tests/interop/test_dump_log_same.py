"""`moldau kafka-dump-log` prints what the real kafka-dump-log prints, for every file of both kinds of node."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NodeFactory
from tests.interop.kafka_oracle import TOOL_CLASSES, KafkaNode, java_command
from tests.interop.nodes import MoldauNode, Node
from tests.pace import patience

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin_module = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")
pytestmark = pytest.mark.usefixtures("kafka_tools")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# What a terminal makes of UTF-8 must not depend on the machine.
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}


def write_records(node: Node) -> None:
    """All codecs, headers, nulls, text that is not ASCII or not UTF-8, several segments, a deleted topic, configs."""
    admin = admin_module.AdminClient({"bootstrap.servers": node.bootstrap})
    small = {"segment.bytes": "1048576", "index.interval.bytes": "512"}
    topics = [admin_module.NewTopic(f"codec-{codec}", 2, 1, config=small) for codec in CODECS]
    topics += [
        admin_module.NewTopic("append-time", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
        admin_module.NewTopic("gone", 1, 1),
        admin_module.NewTopic("empty", 1, 1, config={"cleanup.policy": "compact", "min.compaction.lag.ms": "5"}),
    ]
    for future in admin.create_topics(topics).values():
        future.result(patience(20))
    for codec in CODECS:
        idempotent = codec != "gzip"
        settings = {"compression.type": codec, "enable.idempotence": idempotent, "batch.size": 20_000, "linger.ms": 2}
        producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, **settings})
        _send_odd_records(producer, f"codec-{codec}")
        for i in range(800 if codec == "none" else 200):
            producer.produce(f"codec-{codec}", key=b"%d" % i, value=b"%d " % i * 600, partition=0)
            producer.poll(0)
        assert producer.flush(patience(30)) == 0
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
    _send_odd_records(producer, "append-time", partition=0)
    producer.produce("gone", value=b"soon")
    assert producer.flush(patience(30)) == 0
    for future in admin.delete_topics(["gone"]).values():
        future.result(patience(20))
    for future in admin.delete_records([confluent_kafka.TopicPartition("codec-none", 0, 700)]).values():
        future.result(patience(20))


def _send_odd_records(producer: Any, topic: str, partition: int = 1) -> None:
    producer.produce(topic, key=b"k", value=None, partition=partition)
    producer.produce(topic, key=None, value=b"v", partition=partition)
    producer.produce(topic, key=None, value=None, partition=partition)
    producer.produce(topic, key=b"", value=b"", partition=partition)
    producer.produce(topic, key="Vltava ř".encode(), value='řeka 🌊 \t\n"x"'.encode(), partition=partition)
    producer.produce(topic, key=b"\xff\x00\x01", value=b"\xed\xa0\x80|\xc3|\xe2\x82|\xf0\x9f\x8c", partition=partition)
    headers = [("a", b"1"), ("b", None), ("ř", b""), ("a", b"\xff")]
    producer.produce(
        topic, key=b"h", value=b"headers", headers=headers, partition=partition, timestamp=1_700_000_000_000
    )
    assert producer.flush(patience(30)) == 0


def write_transactions(node: Node) -> None:
    """A committed, an aborted and an open transaction, with offsets of a group, and groups of both protocols."""
    servers = {"bootstrap.servers": node.bootstrap}
    producer = confluent_kafka.Producer({**servers, "transactional.id": "writer"})
    producer.init_transactions(30)
    for number, decision in enumerate((producer.commit_transaction, producer.abort_transaction, None)):
        producer.begin_transaction()
        for i in range(3):
            producer.produce("codec-zstd", key=b"t%d" % i, value=b"transaction %d" % number, partition=1)
        producer.flush(patience(20))
        if decision is not None:
            decision(30)
    for protocol in ("classic", "consumer"):
        settings = {"group.id": f"group-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**servers, **settings})
        consumer.subscribe(["codec-none", "codec-lz4"])
        assert consumer.consume(10, 20)
        consumer.commit(asynchronous=False)
        consumer.close()


def real_dump(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = java_command(TOOL_CLASSES["dump-log"], *arguments)
    command[1:1] = ["-Dstdout.encoding=UTF-8", "-Dstderr.encoding=UTF-8"]
    return subprocess.run(command, capture_output=True, env=UTF8, timeout=patience(120))


def run_moldau(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [*MoldauNode.command(), *arguments]
    environment = {**UTF8}
    if "MOLDAU_COMMAND" not in environment:
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.run(command, capture_output=True, env=environment, timeout=patience(120))


def our_dump(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return run_moldau("kafka-dump-log", *arguments)


def without_stack(text: bytes) -> list[bytes]:
    """Frames of a Java stack trace and warnings of the JVM's own are not the tool's words."""
    return [line for line in text.splitlines() if not line.startswith((b"\tat ", b"\t... ", b"Caused by: "))]


def check_same(*arguments: str) -> bytes:
    kafka, moldau = real_dump(*arguments), our_dump(*arguments)
    theirs, ours = kafka.stdout.split(b"\n"), moldau.stdout.split(b"\n")
    for line, (left, right) in enumerate(zip(ours, theirs, strict=False)):
        assert left == right, f"line {line + 1} with {arguments[:-1]}"
    assert len(ours) == len(theirs), (moldau.stderr[-500:], kafka.stderr[-500:])
    # Damaged files are named in the order of a Java hash map, which depends on where the temporary folder is.
    assert sorted(without_stack(moldau.stderr)) == sorted(without_stack(kafka.stderr)), arguments
    assert moldau.returncode == kafka.returncode
    return kafka.stdout


def joined(files: list[Path]) -> str:
    return ",".join(str(path) for path in files)


def check_directory(data: Path) -> None:
    files = sorted(path for path in data.rglob("*") if path.is_file())
    metadata = [
        path for path in files if path.parent.name == "__cluster_metadata-0" or path.name == "bootstrap.checkpoint"
    ]
    partitions = [path for path in files if path not in metadata and path.parent != data]
    logs = [path for path in partitions if path.suffix == ".log"]
    indexes = [path for path in files if path.suffix in (".index", ".timeindex")]
    others = [path for path in files if path.suffix in (".snapshot", ".txnindex", ".metadata")]
    # Segments of deleted records go after a while.
    rolled = [path for path in logs if path.parent.name == "codec-none-0" and int(path.stem) > 0]
    assert rolled, "nothing was rolled"
    check_same("--files", joined(logs))
    check_same("--files", joined(logs + others), "--print-data-log")
    check_same("--files", joined(logs), "--print-data-log", "--skip-record-metadata", "--max-bytes", "30000")
    check_same("--files", joined(indexes))
    check_same("--files", joined(indexes), "--index-sanity-check")
    check_same("--files", joined(indexes), "--verify-index-only")
    records = [path for path in metadata if path.suffix in (".log", ".checkpoint")]
    text = check_same("--files", joined(records), "--cluster-metadata-decoder")
    for name in (b"TOPIC_RECORD", b"REMOVE_TOPIC_RECORD", b"CONFIG_RECORD", b"REGISTER_BROKER_RECORD"):
        assert b'"type":"' + name in text
    check_same("--files", joined(records), "--deep-iteration")


def check_internal_topics(data: Path) -> None:
    for topic, option in (
        ("__consumer_offsets", "--offsets-decoder"),
        ("__transaction_state", "--transaction-log-decoder"),
    ):
        logs = sorted(path for path in data.glob(f"{topic}-*/*.log") if path.stat().st_size)
        assert logs, topic
        check_same("--files", joined(logs), option)
    # The decoder of another topic says for each record what it does not like.
    logs = sorted(path for path in data.glob("__transaction_state-*/*.log") if path.stat().st_size)
    check_same("--files", joined(logs), "--share-group-state-decoder")


def check_verified(data: Path) -> None:
    """`moldau log verify` finds nothing wrong in a directory that a clean stop left."""
    done = run_moldau("log", "verify", str(data), "--format", "json")
    found = json.loads(done.stdout)
    assert [item for item in found["findings"] if not item["path"].endswith("-delete")] == []
    assert (done.returncode, found["ok"]) == (0, True)
    assert found["records"] > 1000


def test_every_file_of_a_moldau_directory_is_dumped_alike(start_moldau: NodeFactory) -> None:
    node = start_moldau()
    write_records(node)
    node.stop()
    check_directory(node.data)
    check_verified(node.data)
    check_damaged(node.data / "codec-none-0", node.folder)


def test_every_file_of_a_kafka_directory_is_dumped_alike(tmp_path: Path) -> None:
    few = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    node = KafkaNode(tmp_path / "kafka", few)
    node.format()
    node.start()
    try:
        write_records(node)
        write_transactions(node)
        # While it runs, its indexes are larger than what is in them.
        check_same("--files", joined(sorted(node.data.glob("codec-*/*index"))))
    finally:
        node.stop()
    check_directory(node.data)
    check_internal_topics(node.data)
    check_verified(node.data)


def flip(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 0xFF
    return bytes(changed)


def damaged(log: bytes, index: bytes, times: bytes) -> dict[str, dict[str, bytes]]:
    """Files of one segment that do not make sense, by what is wrong."""
    whole = {"log": log, "index": index, "timeindex": times}
    snapshot = struct.pack(">hIi", 1, 0, 0)
    return {
        "last byte": {"log": flip(log, -1)},
        "record inside": {"log": flip(log, 70)},
        "more bytes": {"log": log + b"abc" * 4},
        "zeros": {"log": log + bytes(100)},
        "cut": {"log": log[:-10]},
        "more records": {"log": log[:57] + struct.pack(">i", 9999) + log[61:]},
        "fewer records": {"log": log[:57] + struct.pack(">i", 3) + log[61:]},
        "codec": {"log": log[:22] + b"\7" + log[23:]},
        "index beyond": whole | {"index": index + struct.pack(">ii", 2**20, 2**30)},
        "index at the end": whole | {"index": index + struct.pack(">ii", 2**20, len(log))},
        "index moved": whole | {"index": index[:8] + struct.pack(">ii", 2**20, 1) + index[16:]},
        "index off": whole
        | {"index": index[:3] + flip(index[3:4], 0) + index[4:11] + flip(index[11:12], 0) + index[12:]},
        "index odd": whole | {"index": index + b"odd", "timeindex": times + b"odd"},
        "index zeros": whole | {"index": bytes(80), "timeindex": bytes(120)},
        "index empty": whole | {"index": b"", "timeindex": b""},
        "times back": whole | {"timeindex": times + struct.pack(">qi", 5, 3)},
        "times nowhere": whole | {"timeindex": times + struct.pack(">qi", 2**60, 10**6)},
        "no log": {"index": index},
        "snapshot checksum": {"snapshot": snapshot},
        "snapshot version": {"snapshot": b"\0\5" + snapshot[2:]},
        "snapshot short": {"snapshot": snapshot[:5]},
    }


def check_damaged(source: Path, folder: Path) -> None:
    """Of damage, ours says what the real tool says."""
    log = max(source.glob("*.log"), key=lambda path: len(path.with_suffix(".index").read_bytes()))
    whole = [log.with_suffix(f".{suffix}").read_bytes() for suffix in ("log", "index", "timeindex")]
    for what, files in damaged(*whole).items():
        place = folder / what.replace(" ", "-")
        place.mkdir()
        for suffix, data in files.items():
            (place / f"{log.stem}.{suffix}").write_bytes(data)
        shown = [path for path in sorted(place.iterdir()) if len(files) == 1 or path.suffix != ".log"]
        check_same("--files", joined(shown), "--deep-iteration")
        if what in ("index odd", "times back"):
            for path in shown:
                check_same("--files", str(path), "--index-sanity-check")
