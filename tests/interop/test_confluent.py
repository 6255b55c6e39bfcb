"""confluent-kafka (librdkafka) against Moldau: producing, fetching by offset and by time, administration."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.nodes import RECENT_MS, Node
from tests.pace import patience

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin_module = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SECONDS = patience(20)


def producer(node: Node, **settings: Any) -> Any:
    return confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5, **settings})


def flush(client: Any) -> None:
    assert client.flush(SECONDS) == 0, "messages are still waiting to be delivered"


def consumer(node: Node, **settings: Any) -> Any:
    base = {"bootstrap.servers": node.bootstrap, "group.id": "unused", "enable.auto.commit": False}
    return confluent_kafka.Consumer({**base, "auto.offset.reset": "error", **settings})


def read(client: Any, count: int) -> list[Any]:
    messages: list[Any] = []
    deadline = time.monotonic() + SECONDS
    while len(messages) < count and time.monotonic() < deadline:
        for message in client.consume(count - len(messages), 1.0):
            assert message.error() is None, message.error()
            messages.append(message)
    assert len(messages) == count
    return messages


def read_from(node: Node, topic: str, offset: int, count: int) -> list[Any]:
    client = consumer(node)
    try:
        client.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
        return read(client, count)
    finally:
        client.close()


@pytest.fixture
def admin(moldau_server: Node) -> Any:
    return admin_module.AdminClient({"bootstrap.servers": moldau_server.bootstrap})


def finish(futures: dict[Any, Any]) -> dict[Any, Any]:
    return {key: future.result(SECONDS) for key, future in futures.items()}


@pytest.fixture
def new_topic(admin: Any, topic: str) -> Iterator[str]:
    finish(admin.create_topics([admin_module.NewTopic(topic, 1, 1)]))
    yield topic
    admin.delete_topics([topic])


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent(moldau_server: Node, new_topic: str, codec: str) -> None:
    """Keys, values, headers, nulls and timestamps survive every codec."""
    sent = [
        (b"key", b"value", [("name", b"header"), ("null", None), ("name", b"again")], RECENT_MS),
        (None, b"no key", [], RECENT_MS + 1),
        (b"no value", None, [], RECENT_MS + 2),
        (None, None, [("only", b"")], RECENT_MS + 3),
        (b"", b"", [], RECENT_MS + 4),
        *((b"%d" % i, b"x" * i * 7, [], RECENT_MS + 5 + i) for i in range(300)),
    ]
    client = producer(moldau_server, **{"compression.type": codec})
    reports: list[tuple[Any, int]] = []
    for key, value, headers, timestamp in sent:
        client.produce(
            new_topic,
            key=key,
            value=value,
            headers=headers,
            timestamp=timestamp,
            on_delivery=lambda error, message: reports.append((error, message.offset())),
        )
    flush(client)
    assert [error for error, _ in reports if error] == []
    assert [offset for _, offset in reports] == list(range(len(sent)))
    got = read_from(moldau_server, new_topic, 0, len(sent))
    assert [(m.key(), m.value(), m.headers() or [], m.timestamp()[1]) for m in got] == sent
    assert [m.offset() for m in got] == list(range(len(sent)))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_delivers(moldau_server: Node, new_topic: str, acks: str) -> None:
    client = producer(moldau_server, acks=acks)
    for i in range(50):
        client.produce(new_topic, value=b"%d" % i)
    flush(client)
    assert [m.value() for m in read_from(moldau_server, new_topic, 0, 50)] == [b"%d" % i for i in range(50)]


def test_an_idempotent_producer_delivers_in_order(moldau_server: Node, new_topic: str) -> None:
    client = producer(moldau_server, **{"enable.idempotence": True, "batch.num.messages": 10})
    for i in range(500):
        client.produce(new_topic, value=b"%d" % i)
    flush(client)
    assert [m.value() for m in read_from(moldau_server, new_topic, 0, 500)] == [b"%d" % i for i in range(500)]


def test_fetching_starts_at_any_offset(moldau_server: Node, new_topic: str) -> None:
    """An offset in the middle of a batch gives that record first."""
    client = producer(moldau_server, **{"linger.ms": 100})
    for i in range(100):
        client.produce(new_topic, value=b"%d" % i)
    flush(client)
    assert [m.offset() for m in read_from(moldau_server, new_topic, 73, 27)] == list(range(73, 100))


def test_fetching_starts_at_a_timestamp(moldau_server: Node, new_topic: str) -> None:
    client = producer(moldau_server)
    for i in range(100):
        client.produce(new_topic, value=b"%d" % i, timestamp=RECENT_MS + i * 1000)
    flush(client)
    reader = consumer(moldau_server)
    try:
        partition = confluent_kafka.TopicPartition(new_topic, 0, RECENT_MS + 41_500)
        [found] = reader.offsets_for_times([partition], timeout=SECONDS)
        assert found.offset == 42
        reader.assign([found])
        assert read(reader, 1)[0].value() == b"42"
        late = confluent_kafka.TopicPartition(new_topic, 0, RECENT_MS + 7_200_000)
        assert reader.offsets_for_times([late], timeout=SECONDS)[0].offset == confluent_kafka.OFFSET_END
        assert reader.get_watermark_offsets(confluent_kafka.TopicPartition(new_topic, 0), SECONDS) == (0, 100)
    finally:
        reader.close()


def test_an_offset_out_of_range_is_an_error(moldau_server: Node, new_topic: str) -> None:
    reader = consumer(moldau_server)
    try:
        reader.assign([confluent_kafka.TopicPartition(new_topic, 0, 1000)])
        message = reader.poll(SECONDS)
        assert message is not None
        assert message.error().code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
    finally:
        reader.close()


def test_a_message_that_is_too_large_is_refused(moldau_server: Node, topic: str, admin: Any) -> None:
    small = admin_module.NewTopic(topic, 1, 1, config={"max.message.bytes": "1000"})
    finish(admin.create_topics([small]))
    errors = []
    client = producer(moldau_server, **{"compression.type": "none"})
    client.produce(topic, value=b"x" * 5000, on_delivery=lambda error, _: errors.append(error.code()))
    flush(client)
    assert errors == [confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE]


def test_topics_are_created_described_and_deleted(admin: Any, topic: str) -> None:
    new = admin_module.NewTopic(topic, 3, 1, config={"retention.ms": "12345"})
    finish(admin.create_topics([new]))
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        finish(admin.create_topics([new]))
    assert failure.value.args[0].code() == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS

    names = confluent_kafka.TopicCollection([topic])
    described = finish(admin.describe_topics(names))[topic]
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    assert all(partition.leader is not None for partition in described.partitions)
    assert not described.is_internal
    assert topic in admin.list_topics(timeout=SECONDS).topics

    finish(admin.delete_topics([topic]))
    deadline = time.monotonic() + SECONDS
    while topic in admin.list_topics(timeout=SECONDS).topics and time.monotonic() < deadline:
        time.sleep(0.05)
    assert topic not in admin.list_topics(timeout=SECONDS).topics
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        finish(admin.delete_topics([topic]))
    assert failure.value.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_configs_are_altered_and_described(admin: Any, new_topic: str) -> None:
    resource = admin_module.ConfigResource(admin_module.ResourceType.TOPIC, new_topic)
    before = finish(admin.describe_configs([resource]))[resource]
    assert before["retention.ms"].value == "604800000"
    assert before["retention.ms"].is_default

    entry = admin_module.ConfigEntry("retention.ms", "98765", incremental_operation=admin_module.AlterConfigOpType.SET)
    change = admin_module.ConfigResource(admin_module.ResourceType.TOPIC, new_topic, incremental_configs=[entry])
    finish(admin.incremental_alter_configs([change]))
    after = finish(admin.describe_configs([resource]))[resource]
    assert after["retention.ms"].value == "98765"
    assert not after["retention.ms"].is_default

    bad = admin_module.ConfigEntry("retention.ms", "soon", incremental_operation=admin_module.AlterConfigOpType.SET)
    wrong = admin_module.ConfigResource(admin_module.ResourceType.TOPIC, new_topic, incremental_configs=[bad])
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        finish(admin.incremental_alter_configs([wrong]))
    assert failure.value.args[0].code() == confluent_kafka.KafkaError.INVALID_CONFIG


def test_broker_configs_are_described(admin: Any) -> None:
    resource = admin_module.ConfigResource(admin_module.ResourceType.BROKER, "1")
    configs = finish(admin.describe_configs([resource]))[resource]
    assert configs["node.id"].value == "1"
    assert configs["node.id"].is_read_only
    assert configs["log.retention.hours"].value == "168"


def test_partitions_are_added(admin: Any, new_topic: str) -> None:
    finish(admin.create_partitions([admin_module.NewPartitions(new_topic, 4)]))
    deadline = time.monotonic() + SECONDS
    count = 0
    while count != 4 and time.monotonic() < deadline:
        count = len(admin.list_topics(new_topic, timeout=SECONDS).topics[new_topic].partitions)
    assert count == 4
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        finish(admin.create_partitions([admin_module.NewPartitions(new_topic, 2)]))
    assert failure.value.args[0].code() == confluent_kafka.KafkaError.INVALID_PARTITIONS


def test_records_are_deleted_and_offsets_listed(moldau_server: Node, admin: Any, new_topic: str) -> None:
    client = producer(moldau_server)
    for i in range(20):
        client.produce(new_topic, value=b"%d" % i, timestamp=RECENT_MS + i)
    flush(client)
    partition = confluent_kafka.TopicPartition(new_topic, 0, 5)
    deleted = finish(admin.delete_records([partition]))
    assert [result.low_watermark for result in deleted.values()] == [5]

    def offset(specification: Any) -> int:
        asked = {confluent_kafka.TopicPartition(new_topic, 0): specification}
        [result] = finish(admin.list_offsets(asked)).values()
        return int(result.offset)

    assert offset(admin_module.OffsetSpec.earliest()) == 5
    assert offset(admin_module.OffsetSpec.latest()) == 20
    assert offset(admin_module.OffsetSpec.max_timestamp()) == 19
    assert offset(admin_module.OffsetSpec.for_timestamp(RECENT_MS + 10)) == 10


def test_the_cluster_is_described(moldau_server: Node, admin: Any) -> None:
    cluster = admin.describe_cluster().result(SECONDS)
    assert cluster.cluster_id == moldau_server.cluster_id
    assert [(node.id, node.host, node.port) for node in cluster.nodes] == [(1, "127.0.0.1", moldau_server.port)]
    assert cluster.controller.id == 1


def test_a_topic_is_created_by_writing_to_it(moldau_server: Node, topic: str) -> None:
    client = producer(moldau_server)
    client.produce(topic, value=b"first")
    flush(client)
    assert read_from(moldau_server, topic, 0, 1)[0].value() == b"first"
