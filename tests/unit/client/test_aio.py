"""The asyncio face against a scripted broker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from moldau.client.aio import AsyncAdmin, AsyncConsumer, AsyncProducer
from moldau.client.errors import ClientError, ClosedError
from moldau.client.results import TopicPartition
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from tests.unit.client import test_consumer, test_producer
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata

P0 = TopicPartition("t", 0)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def new_producer(network: FakeNetwork, **more: Any) -> AsyncProducer:
    return AsyncProducer("broker:9092", network=network, retry_backoff_ms=1, retry_backoff_max_ms=2, **more)


def test_records_are_delivered_and_awaited() -> None:
    async def scenario() -> None:
        network, log = test_producer.set_up({"t": [1]})
        async with new_producer(network) as producer:
            deliveries = [await producer.send("t", b"%d" % number) for number in range(100)]
            assert [(await delivery).offset for delivery in deliveries] == list(range(100))
            assert (await producer.send_and_wait("t", "x", "k")).offset == 100
            many = await producer.send_many("t", [b"a", b"b"])
            assert [(await delivery).offset for delivery in many] == [101, 102]
            assert await producer.partitions_for("t") == [0]
        assert len(log.records[0]) == 103
        with pytest.raises(ClosedError):
            await producer.send("t", b"late")

    run(scenario())


def test_the_error_of_a_record_is_raised_where_it_is_awaited() -> None:
    async def scenario() -> None:
        network, log = test_producer.set_up({"t": [1]})
        log.faults = [29]
        async with new_producer(network) as producer:
            delivery = await producer.send("t", b"x")
            with pytest.raises(ClientError) as caught:
                await delivery
            assert caught.value.name == "TOPIC_AUTHORIZATION_FAILED"

    run(scenario())


def test_the_loop_goes_on_while_a_send_waits_for_a_topic() -> None:
    async def scenario() -> None:
        network, _ = test_producer.set_up({})
        producer = new_producer(network, max_block_ms=300)
        ticks = 0
        waiting = asyncio.create_task(producer.send("missing", b"x"))
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
        with pytest.raises(ClientError):
            await waiting
        assert ticks > 5
        await producer.close()

    run(scenario())


def new_consumer() -> tuple[AsyncConsumer, test_consumer.Log]:
    broker = ScriptedBroker()
    log = test_consumer.Log()
    broker.on(MetadataRequest, metadata({"t": [1]}))
    broker.on(FetchRequest, log.fetch)
    broker.on(ListOffsetsRequest, log.list_offsets)
    return AsyncConsumer("broker:9092", network=FakeNetwork({HOME: broker}, real_time=True)), log


def test_records_are_read_by_async_iteration() -> None:
    async def scenario() -> None:
        consumer, log = new_consumer()
        log.add(0, [b"a", b"b", b"c"])
        async with consumer:
            await consumer.assign([P0])
            await consumer.seek_to_beginning()
            values = []
            async for record in consumer:
                values.append(record.value)
                if len(values) == 3:
                    break
            assert values == [b"a", b"b", b"c"] and await consumer.position(P0) == 3
            assert await consumer.end_offsets([P0]) == {P0: 3}
        with pytest.raises(ClosedError):
            await consumer.poll()

    run(scenario())


def test_a_cancelled_poll_loses_no_record() -> None:
    async def scenario() -> None:
        consumer, log = new_consumer()
        async with consumer:
            await consumer.assign([P0])
            await consumer.seek(P0, 0)
            values: list[bytes] = []
            for number in range(20):
                task = asyncio.create_task(consumer.poll(5000))
                await asyncio.sleep(0.002 * (number % 3))
                log.add(0, [b"%d" % number])
                await asyncio.sleep(0.001 * (number % 5))
                task.cancel()
                try:
                    values += [record.value for record in await task]
                except asyncio.CancelledError:
                    pass
            while len(values) < 20:
                values += [record.value for record in await consumer.poll(500)]
            assert values == [b"%d" % number for number in range(20)]

    run(scenario())


def test_another_call_does_not_wait_for_a_long_poll() -> None:
    async def scenario() -> None:
        consumer, _ = new_consumer()
        async with consumer:
            await consumer.assign([P0])
            await consumer.seek(P0, 0)
            polling = asyncio.create_task(consumer.poll(15_000))
            await asyncio.sleep(0.05)
            await asyncio.wait_for(consumer.pause([P0]), 3)
            assert not polling.done()
            polling.cancel()

    run(scenario())


def test_admin_methods_are_awaited() -> None:
    async def scenario() -> None:
        broker = ScriptedBroker()
        broker.on(MetadataRequest, metadata({"t": [1]}))
        async with AsyncAdmin("broker:9092", network=FakeNetwork({HOME: broker})) as admin:
            assert "t" in str(await admin.list_topics())
            with pytest.raises(AttributeError):
                admin.no_such_method  # noqa: B018

    run(scenario())
