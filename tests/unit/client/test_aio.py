"""The asyncio face against a scripted broker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from moldau.client import aio, aio_worker
from moldau.client.admin.aio import AsyncAdmin
from moldau.client.aio import AsyncConsumer, AsyncProducer
from moldau.client.errors import ClientError, ClosedError
from moldau.client.group.listener import RebalanceListener
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from tests.pace import patience, patience_ms
from tests.unit.client import test_consumer, test_producer
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata
from tests.unit.client.group_world import GroupWorld, WorldNetwork

P0 = TopicPartition("t", 0)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, patience(20)))


def new_producer(network: FakeNetwork, **more: Any) -> AsyncProducer:
    return AsyncProducer(
        "broker:9092", config=wired(network=network), retry_backoff_ms=1, retry_backoff_max_ms=2, **more
    )


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
        assert ticks >= 3
        await producer.close()

    run(scenario())


def new_consumer() -> tuple[AsyncConsumer, test_consumer.Log]:
    broker = ScriptedBroker()
    log = test_consumer.Log()
    broker.on(MetadataRequest, metadata({"t": [1]}))
    broker.on(FetchRequest, log.fetch)
    broker.on(ListOffsetsRequest, log.list_offsets)
    return AsyncConsumer("broker:9092", config=wired(network=FakeNetwork({HOME: broker}, real_time=True))), log


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
            polling = asyncio.create_task(consumer.poll(patience_ms(15_000)))
            await asyncio.sleep(0.05)
            await asyncio.wait_for(consumer.pause([P0]), patience(3))
            assert not polling.done()
            polling.cancel()

    run(scenario())


def test_admin_methods_are_awaited() -> None:
    async def scenario() -> None:
        broker = ScriptedBroker()
        broker.on(MetadataRequest, metadata({"t": [1]}))
        async with AsyncAdmin("broker:9092", config=wired(network=FakeNetwork({HOME: broker}))) as admin:
            assert "t" in str(await admin.list_topics())
            with pytest.raises(AttributeError):
                admin.no_such_method  # noqa: B018

    run(scenario())


class AsyncListener(RebalanceListener):
    """Its methods are coroutines, and use the consumer."""

    def __init__(self) -> None:
        self.consumer: AsyncConsumer | None = None
        self.events: list[str] = []

    async def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:  # type: ignore[override]
        assert self.consumer is not None
        await self.consumer.seek(P0, 2)
        await asyncio.sleep(0)
        self.events.append("assigned")

    async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:  # type: ignore[override]
        assert self.consumer is not None
        await self.consumer.commit()
        self.events.append("revoked")


def test_a_member_of_a_group_whose_listener_is_asynchronous() -> None:
    async def scenario() -> None:
        world = GroupWorld(1, partitions=1)
        world.cluster.counts = [5]
        listener = AsyncListener()
        consumer = AsyncConsumer(
            "broker-1:9092", config=wired(network=WorldNetwork(world)), group_id="g", enable_auto_commit=False
        )
        listener.consumer = consumer
        async with consumer:
            await consumer.subscribe(["t"], listener=listener)
            seen: list[int] = []
            while len(seen) < 3:
                seen += [record.offset for record in await consumer.poll(200)]
            assert seen == [2, 3, 4] and consumer.subscription() == {"t"}
            assert consumer.group_metadata().generation_id == 1
            assert (await consumer.committed([P0])) == {P0: None}
        assert listener.events == ["assigned", "revoked"] and world.cluster.committed == {0: 5}

    run(scenario())


def test_what_a_cancelled_poll_read_is_not_committed_before_it_was_handed_out() -> None:
    async def scenario() -> None:
        world = GroupWorld(1, partitions=1)
        consumer = AsyncConsumer(
            "broker-1:9092",
            config=wired(network=WorldNetwork(world)),
            group_id="g",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=0,
        )
        async with consumer:
            await consumer.subscribe(["t"])
            while not consumer.assignment():
                await consumer.poll(50)
            await consumer.poll(500)
            world.cluster.counts = [5]
            # The thread reads for a task that is gone already.
            future = consumer._worker.start(partial(consumer._consumer.poll, patience_ms(5_000)))
            consumer._cancelled = future
            future.add_done_callback(consumer._keep)
            records = await consumer.poll(patience_ms(5_000))
            assert [record.offset for record in records] == [0, 1, 2, 3, 4]
            assert world.cluster.committed.get(0, 0) == 0
            while world.cluster.committed.get(0) != 5:
                await consumer.poll(50)

    run(scenario())


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_listener_whose_loop_has_stopped_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio_worker, "LOOP_CHECK_SECONDS", 0.01)
    loop = asyncio.new_event_loop()
    listener = aio._ListenerOnLoop(
        AsyncListener(), loop, AsyncConsumer("broker-1:9092", config=wired(network=FakeNetwork({})))
    )
    with pytest.raises(ClosedError, match="stopped"):
        listener.on_partitions_assigned([P0])
    loop.close()
