import asyncio
import json

from shop import make_application

from moldau.testing import AsyncBroker


def test_a_paid_order_is_shipped(kafka_broker, kafka_topic):
    async def run():
        broker = AsyncBroker(kafka_broker)
        shipped = await broker.topic()
        application = make_application(broker.bootstrap_servers, kafka_topic, shipped)
        await application.broker.start()
        try:
            await broker.produce(kafka_topic, json.dumps({"id": 4}))
            (record,) = await broker.wait_for_records(shipped, timeout_ms=30_000)
        finally:
            await application.broker.stop()
        return json.loads(record.value)

    assert asyncio.run(run()) == {"shipped": 4}
