"""The asyncio face of the share consumer: nothing is lost by cancelling, callbacks run on the loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moldau.client import AsyncShareConsumer
from moldau.client.errors import ClientError, ClosedError, InvalidRequestError
from moldau.client.results import TopicPartition
from moldau.client.share.acknowledgements import AcknowledgeType
from moldau.client.wiring import wired
from tests.pace import patience_ms
from tests.unit.client.share_world import World, values_of

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
P0 = TopicPartition("t", 0)


def member(world: World, **more: Any) -> AsyncShareConsumer:
    return AsyncShareConsumer(
        "broker-1:9092",
        group_id="g",
        config=wired(network=world.network),
        share_acknowledgement_mode="explicit",
        **more,
    )


def test_records_are_worked_on_by_many_tasks() -> None:
    world = World(real_time=True)
    world.leader.deliver(values_of(0, 3), (0, 3, 1))

    async def work(consumer: AsyncShareConsumer, record: Any) -> None:
        async with consumer.processing(record, reject=ValueError, release=OSError):
            await asyncio.sleep(0)
            if record.offset == 1:
                raise ValueError("poison")
            if record.offset == 2:
                raise OSError("away")

    async def main() -> None:
        async with member(world) as consumer:
            await consumer.subscribe(["t"])
            records = await consumer.poll(patience_ms(10_000))
            await asyncio.gather(*(work(consumer, record) for record in records))
            assert await consumer.commit() in ({P0: None}, {})

    asyncio.run(main())
    said = {offset: kind for _, types in world.leader.acknowledged for offset, kind in types.items()}
    assert said == {0: ACCEPT, 1: REJECT, 2: RELEASE, 3: ACCEPT}


def test_a_cancelled_task_releases_its_record() -> None:
    world = World(real_time=True)
    world.leader.deliver(values_of(0, 0), (0, 0, 1))

    async def main() -> None:
        async with member(world) as consumer:
            await consumer.subscribe("t")
            (record,) = await consumer.poll(patience_ms(10_000))
            started = asyncio.Event()

            async def work() -> None:
                async with consumer.processing(record):
                    started.set()
                    await asyncio.sleep(3600)

            task = asyncio.create_task(work())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await consumer.commit()

    asyncio.run(main())
    assert world.leader.acknowledged == [(0, {0: RELEASE})]


def test_a_cancelled_poll_loses_no_record() -> None:
    world = World(real_time=True)

    async def main() -> None:
        async with member(world, fetch_max_wait_ms=0) as consumer:
            await consumer.subscribe(["t"])
            task = asyncio.create_task(consumer.poll(60_000))
            await asyncio.sleep(0.1)
            world.leader.deliver(values_of(0, 0), (0, 0, 1))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            (record,) = await consumer.poll(patience_ms(10_000))
            await consumer.accept(record)
            assert await consumer.commit() == {P0: None}

    asyncio.run(main())
    assert world.leader.acknowledged == [(0, {0: ACCEPT})]


def test_a_callback_runs_on_the_loop_and_may_use_the_consumer() -> None:
    world = World(real_time=True)
    world.leader.deliver(values_of(0, 1), (0, 1, 1))
    told: list[object] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def on_acknowledged(offsets: dict[TopicPartition, set[int]], error: ClientError | None) -> None:
            assert asyncio.get_running_loop() is loop
            told.append((offsets, error))
            if held:
                await consumer.accept(held.pop())

        async with member(world) as consumer:
            await consumer.set_acknowledgement_callback(on_acknowledged)
            await consumer.subscribe(["t"])
            first, second = await consumer.poll(patience_ms(10_000))
            held = [second]
            await consumer.accept(first)
            await consumer.commit()
            await consumer.commit()

    asyncio.run(main())
    assert told == [({P0: {0}}, None), ({P0: {1}}, None)]
    assert world.leader.acknowledged == [(0, {0: ACCEPT}), (0, {1: ACCEPT})]


def test_iteration_and_the_end() -> None:
    world = World(real_time=True)
    world.leader.deliver(values_of(0, 1), (0, 1, 1))

    async def main() -> None:
        consumer = member(world)
        await consumer.subscribe(["t"])
        async for record in consumer:
            await consumer.reject(record)
            if record.offset == 1:
                break
        assert consumer.assignment() == [P0] and consumer.subscription() == {"t"}
        assert consumer.acquisition_lock_timeout_ms == 30_000
        await consumer.close()
        await consumer.close()
        with pytest.raises(ClosedError):
            await consumer.poll()

    asyncio.run(main())
    assert world.leader.acknowledged == [(0, {0: REJECT, 1: REJECT})] and world.leader.epoch is None


def test_errors_come_out_of_the_call() -> None:
    world = World(real_time=True)

    async def main() -> None:
        async with member(world) as consumer:
            with pytest.raises(InvalidRequestError):
                await consumer.poll(100)
            with pytest.raises(InvalidRequestError):
                await consumer.acknowledge_offset("t", 0, 5)

    asyncio.run(main())
