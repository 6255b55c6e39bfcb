"""kafka-python against Moldau: producing, fetching by offset and by time, administration."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.nodes import RECENT_MS, Node
from tests.pace import patience

kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
kafka_admin = pytest.importorskip("kafka.admin", reason="kafka-python is not installed")
kafka_errors = pytest.importorskip("kafka.errors", reason="kafka-python is not installed")

SECONDS = patience(20)


@pytest.fixture
def admin(moldau_server: Node) -> Iterator[Any]:
    client = kafka_admin.KafkaAdminClient(bootstrap_servers=moldau_server.bootstrap)
    yield client
    client.close()


@pytest.fixture
def new_topic(admin: Any, topic: str) -> str:
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    return topic


def send_all(node: Node, topic: str, records: list[dict[str, Any]], **settings: Any) -> list[int]:
    client = kafka.KafkaProducer(bootstrap_servers=node.bootstrap, linger_ms=5, **settings)
    try:
        futures = [client.send(topic, partition=0, **record) for record in records]
        return [future.get(SECONDS).offset for future in futures]
    finally:
        client.close()


def read_from(node: Node, topic: str, offset: int, count: int) -> list[Any]:
    client = kafka.KafkaConsumer(bootstrap_servers=node.bootstrap, auto_offset_reset="none")
    try:
        partition = kafka.TopicPartition(topic, 0)
        client.assign([partition])
        client.seek(partition, offset)
        messages: list[Any] = []
        deadline = time.monotonic() + SECONDS
        while len(messages) < count and time.monotonic() < deadline:
            for batch in client.poll(timeout_ms=1000).values():
                messages.extend(batch)
        assert len(messages) == count
        return messages
    finally:
        client.close()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_sent(moldau_server: Node, new_topic: str, codec: str | None) -> None:
    """Keys, values, headers, nulls and timestamps survive every codec."""
    records: list[dict[str, Any]] = [
        {"key": b"key", "value": b"value", "headers": [("a", b"1"), ("b", b"")], "timestamp_ms": RECENT_MS},
        {"key": None, "value": b"no key", "headers": [], "timestamp_ms": RECENT_MS + 1},
        {"key": b"no value", "value": None, "headers": [], "timestamp_ms": RECENT_MS + 2},
    ]
    for i in range(200):
        records.append({"key": b"%d" % i, "value": b"z" * i * 5, "headers": [], "timestamp_ms": RECENT_MS + 1_000 + i})
    assert send_all(moldau_server, new_topic, records, compression_type=codec) == list(range(len(records)))
    got = read_from(moldau_server, new_topic, 0, len(records))
    assert [
        {"key": m.key, "value": m.value, "headers": [tuple(h) for h in m.headers], "timestamp_ms": m.timestamp}
        for m in got
    ] == records


def test_an_idempotent_producer_delivers_in_order(moldau_server: Node, new_topic: str) -> None:
    records = [{"value": b"%d" % i} for i in range(200)]
    assert send_all(moldau_server, new_topic, records, enable_idempotence=True, acks="all") == list(range(200))


def test_fetching_starts_at_an_offset_or_a_timestamp(moldau_server: Node, new_topic: str) -> None:
    records = [{"value": b"%d" % i, "timestamp_ms": RECENT_MS + i * 1000} for i in range(40)]
    send_all(moldau_server, new_topic, records)
    assert read_from(moldau_server, new_topic, 33, 7)[0].value == b"33"
    client = kafka.KafkaConsumer(bootstrap_servers=moldau_server.bootstrap)
    try:
        partition = kafka.TopicPartition(new_topic, 0)
        found = client.offsets_for_times({partition: RECENT_MS + 9_001})
        assert (found[partition].offset, found[partition].timestamp) == (10, RECENT_MS + 10_000)
        assert client.offsets_for_times({partition: RECENT_MS + 7_200_000}) == {partition: None}
        assert client.beginning_offsets([partition]) == {partition: 0}
        assert client.end_offsets([partition]) == {partition: 40}
    finally:
        client.close()


def test_topics_are_created_described_and_deleted(admin: Any, topic: str) -> None:
    wanted = {topic: {"num_partitions": 2, "replication_factor": 1, "configs": {"cleanup.policy": "compact"}}}
    admin.create_topics(wanted, wait_for_metadata=True)
    with pytest.raises(kafka_errors.TopicAlreadyExistsError):
        admin.create_topics(wanted)
    assert topic in admin.list_topics()
    [described] = admin.describe_topics([topic])
    assert len(described["partitions"]) == 2
    admin.create_partitions({topic: 5})
    deadline = time.monotonic() + SECONDS
    while len(admin.describe_topics([topic])[0]["partitions"]) != 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    paged = admin.describe_topic_partitions([topic], response_partition_limit=3)
    assert [partition["partition_index"] for partition in paged["topics"][0]["partitions"]] == [0, 1, 2]
    assert paged["next_cursor"]["partition_index"] == 3
    admin.delete_topics([topic])
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_configs_are_altered_described_and_reset(admin: Any, new_topic: str) -> None:
    def retention() -> str:
        resource = kafka_admin.ConfigResource(kafka_admin.ConfigResourceType.TOPIC, new_topic)
        configs = admin.describe_configs([resource], config_filter="all")
        [by_name] = configs.values()
        return str(by_name[new_topic]["retention.ms"]["value"])

    assert retention() == "604800000"
    change = kafka_admin.ConfigResource(kafka_admin.ConfigResourceType.TOPIC, new_topic, {"retention.ms": "4321"})
    admin.alter_configs([change])
    assert retention() == "4321"
    admin.reset_configs([change])
    assert retention() == "604800000"
    assert new_topic in admin.list_config_resources(["TOPIC"])["topic"]


def test_records_are_deleted_and_offsets_listed(moldau_server: Node, admin: Any, new_topic: str) -> None:
    send_all(moldau_server, new_topic, [{"value": b"%d" % i} for i in range(10)])
    partition = kafka.TopicPartition(new_topic, 0)
    deleted = admin.delete_records({partition: 3})
    assert deleted[partition]["low_watermark"] == 3
    specification = kafka_admin.OffsetSpec
    assert admin.list_partition_offsets({partition: specification.EARLIEST})[partition].offset == 3
    assert admin.list_partition_offsets({partition: specification.LATEST})[partition].offset == 10


def test_the_cluster_is_described(moldau_server: Node, admin: Any) -> None:
    cluster = admin.describe_cluster()
    assert cluster["cluster_id"] == moldau_server.cluster_id
    assert [broker.get("broker_id", broker.get("node_id")) for broker in cluster["brokers"]] == [1]
    features = admin.describe_features()
    assert features["metadata.version"]["finalized"] == (30, 30)
    quorum = admin.describe_metadata_quorum()
    assert quorum["topics"][0]["partitions"][0]["leader_id"] == 1


def test_log_directories_are_described(moldau_server: Node, admin: Any, new_topic: str) -> None:
    send_all(moldau_server, new_topic, [{"value": b"x" * 1000}])
    [broker] = admin.describe_log_dirs([new_topic])
    [directory] = broker["log_dirs"]
    assert directory["log_dir"] == str(moldau_server.data)
    assert directory["topics"][0]["partitions"][0]["partition_size"] > 1000
