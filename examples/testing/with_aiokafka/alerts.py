"""An application with aiokafka: passes on the readings that are too high."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def watch(servers: str, readings: str, alerts: str, limit: int) -> None:
    """Runs until it is cancelled."""
    producer = AIOKafkaProducer(bootstrap_servers=servers, client_id="alerts", enable_idempotence=True)
    consumer = AIOKafkaConsumer(
        readings,
        bootstrap_servers=servers,
        client_id="alerts",
        group_id=f"alerts-{readings}",
        auto_offset_reset="earliest",
    )
    await asyncio.gather(producer.start(), consumer.start())
    try:
        async for record in consumer:
            if int(record.value) > limit:
                await producer.send_and_wait(alerts, record.value, key=record.key)
    finally:
        await asyncio.gather(consumer.stop(), producer.stop())
