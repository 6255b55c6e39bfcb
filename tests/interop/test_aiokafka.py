"""aiokafka against Moldau: producing, fetching by offset and by time, administration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.interop.nodes import RECENT_MS, Node
from tests.pace import patience

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
admin_module = pytest.importorskip("aiokafka.admin", reason="aiokafka is not installed")

SECONDS = patience(30)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), SECONDS)

    asyncio.run(bounded())


async def send_all(node: Node, topic: str, records: list[dict[str, Any]], **settings: Any) -> list[Any]:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=node.bootstrap, linger_ms=5, **settings)
    await producer.start()
    try:
        futures = [await producer.send(topic, partition=0, **record) for record in records]
        return list(await asyncio.gather(*futures))
    finally:
        await producer.stop()


async def open_consumer(node: Node, topic: str) -> Any:
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=node.bootstrap, auto_offset_reset="none")
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition(topic, 0)])
    return consumer


async def create(node: Node, topic: str, partitions: int = 1, **configs: str) -> None:
    admin = admin_module.AIOKafkaAdminClient(bootstrap_servers=node.bootstrap)
    await admin.start()
    try:
        new = admin_module.NewTopic(topic, partitions, 1, topic_configs=configs)
        response = await admin.create_topics([new])
        assert [error[1] for error in response.topic_errors] == [0]
    finally:
        await admin.close()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_sent(moldau_server: Node, topic: str, codec: str | None) -> None:
    """Keys, values, headers, nulls and timestamps survive every codec."""

    async def scenario() -> None:
        await create(moldau_server, topic)
        records: list[dict[str, Any]] = [
            {"key": b"key", "value": b"value", "headers": [("a", b"1"), ("b", b"")], "timestamp_ms": RECENT_MS},
            {"key": None, "value": b"no key", "headers": [], "timestamp_ms": RECENT_MS + 1},
            {"key": b"no value", "value": None, "headers": [], "timestamp_ms": RECENT_MS + 2},
        ]
        for i in range(200):
            records.append(
                {"key": b"%d" % i, "value": b"y" * i * 9, "headers": [], "timestamp_ms": RECENT_MS + 1_000 + i}
            )
        sent = await send_all(moldau_server, topic, records, compression_type=codec)
        assert [report.offset for report in sent] == list(range(len(records)))
        consumer = await open_consumer(moldau_server, topic)
        try:
            consumer.seek(aiokafka.TopicPartition(topic, 0), 0)
            for offset, record in enumerate(records):
                got = await consumer.getone()
                assert got.offset == offset
                assert (got.key, got.value, list(got.headers)) == (record["key"], record["value"], record["headers"])
                assert got.timestamp == record["timestamp_ms"]
        finally:
            await consumer.stop()

    run(scenario)


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_setting_delivers(moldau_server: Node, topic: str, acks: int | str) -> None:
    async def scenario() -> None:
        await create(moldau_server, topic)
        await send_all(moldau_server, topic, [{"value": b"%d" % i} for i in range(30)], acks=acks)
        consumer = await open_consumer(moldau_server, topic)
        try:
            consumer.seek(aiokafka.TopicPartition(topic, 0), 0)
            assert [(await consumer.getone()).value for _ in range(30)] == [b"%d" % i for i in range(30)]
        finally:
            await consumer.stop()

    run(scenario)


def test_an_idempotent_producer_delivers_in_order(moldau_server: Node, topic: str) -> None:
    async def scenario() -> None:
        await create(moldau_server, topic)
        sent = await send_all(
            moldau_server,
            topic,
            [{"value": b"%d" % i} for i in range(300)],
            enable_idempotence=True,
            max_batch_size=256,
        )
        assert [report.offset for report in sent] == list(range(300))

    run(scenario)


def test_offsets_are_found_by_time_and_at_both_ends(moldau_server: Node, topic: str) -> None:
    async def scenario() -> None:
        await create(moldau_server, topic)
        records = [{"value": b"%d" % i, "timestamp_ms": RECENT_MS + i * 1000} for i in range(50)]
        await send_all(moldau_server, topic, records)
        partition = aiokafka.TopicPartition(topic, 0)
        consumer = await open_consumer(moldau_server, topic)
        try:
            found = await consumer.offsets_for_times({partition: RECENT_MS + 20_500})
            assert (found[partition].offset, found[partition].timestamp) == (21, RECENT_MS + 21_000)
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 50}
            consumer.seek(partition, found[partition].offset)
            assert (await consumer.getone()).value == b"21"
        finally:
            await consumer.stop()

    run(scenario)


def test_a_reader_that_waits_gets_what_is_written_next(moldau_server: Node, topic: str) -> None:
    """The long poll ends as soon as there is something to read."""

    async def scenario() -> None:
        await create(moldau_server, topic)
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=moldau_server.bootstrap, fetch_max_wait_ms=10_000)
        await consumer.start()
        try:
            consumer.assign([aiokafka.TopicPartition(topic, 0)])
            consumer.seek(aiokafka.TopicPartition(topic, 0), 0)
            waiting = asyncio.ensure_future(consumer.getone())
            await asyncio.sleep(0.5)
            assert not waiting.done()
            await send_all(moldau_server, topic, [{"value": b"now"}])
            assert (await asyncio.wait_for(waiting, patience(3))).value == b"now"
        finally:
            await consumer.stop()

    run(scenario)


def test_administration(moldau_server: Node, topic: str) -> None:
    """Topics, partitions, configs, records and the cluster through aiokafka's admin client."""

    async def scenario() -> None:
        await create(moldau_server, topic, 2, **{"retention.ms": "7777"})
        await send_all(moldau_server, topic, [{"value": b"%d" % i} for i in range(10)])
        admin = admin_module.AIOKafkaAdminClient(bootstrap_servers=moldau_server.bootstrap)
        await admin.start()
        try:
            assert topic in await admin.list_topics()
            [described] = await admin.describe_topics([topic])
            assert (described["error_code"], len(described["partitions"])) == (0, 2)
            resource = admin_module.config_resource.ConfigResource(
                admin_module.config_resource.ConfigResourceType.TOPIC, topic
            )
            [configs] = await admin.describe_configs([resource])
            values = {entry[0]: entry[1] for entry in configs.resources[0][4]}
            assert values["retention.ms"] == "7777"
            response = await admin.create_partitions({topic: admin_module.NewPartitions(3)})
            assert [error[1] for error in response.topic_errors] == [0]
            partition = aiokafka.TopicPartition(topic, 0)
            deleted = await admin.delete_records({partition: admin_module.RecordsToDelete(4)})
            assert deleted == {partition: 4}
            cluster = await admin.describe_cluster()
            assert cluster["cluster_id"] == moldau_server.cluster_id
            assert [broker["node_id"] for broker in cluster["brokers"]] == [1]
            removed = await admin.delete_topics([topic])
            assert [error[1] for error in removed.topic_error_codes] == [0]
        finally:
            await admin.close()

    run(scenario)
