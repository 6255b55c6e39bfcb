import asyncio
import contextlib

from alerts import watch

from moldau.testing import AsyncBroker


async def see_alerts(broker, readings, alerts, send):
    """Runs the application while `send` writes readings; returns what it passed on."""
    running = asyncio.create_task(watch(broker.bootstrap_servers, readings, alerts, limit=100))
    await send()
    found = await broker.wait_for_records(alerts, count=1, timeout_ms=30_000)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return [record.value for record in found]


def test_only_high_readings_are_passed_on(kafka_broker, kafka_topic):
    async def run():
        broker = AsyncBroker(kafka_broker)

        async def send():
            for reading in ("20", "99", "101"):
                await broker.produce(kafka_topic, reading)

        return await see_alerts(broker, kafka_topic, await broker.topic(), send)

    assert asyncio.run(run()) == [b"101"]


def test_an_alert_is_sent_although_the_broker_restarts(kafka_broker, kafka_topic):
    async def run():
        broker = AsyncBroker(kafka_broker)

        async def send():
            await broker.wait_for_group(f"alerts-{kafka_topic}", timeout_ms=30_000)
            await broker.restart(hard=True)
            await broker.produce(kafka_topic, "500")

        return await see_alerts(broker, kafka_topic, await broker.topic(), send)

    assert asyncio.run(run()) == [b"500"]
