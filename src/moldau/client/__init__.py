"""Moldau's client: produce, consume, share and administer, with threads or asyncio, at Moldau and Apache Kafka alike.

Produce. send() queues a record and returns a future; the end of `with` waits until everything is delivered:

    from moldau.client import Producer

    with Producer("localhost:9092", compression_type="zstd") as producer:
        future = producer.send("orders", "a value", key="a key", headers={"trace": "1"})
        print(future.result(timeout_ms=10_000))  # where the record went, or its error raised

Consume. The members of a group divide the partitions among themselves and commit how far they came:

    from moldau.client import Consumer

    with Consumer("localhost:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer.poll(timeout_ms=10_000):
            print(record.partition, record.offset, record.key, record.value)
        consumer.commit()

Share. The members of a share group work on records one by one, as on a queue:

    from moldau.client import ShareConsumer

    with ShareConsumer("localhost:9092", group_id="workers", share_acknowledgement_mode="explicit") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer.poll(timeout_ms=1_000):
            with consumer.processing(record):  # accepts it, or releases it for another try if the block fails
                print(record.value, record.delivery_count)

Administer. A method takes many items and returns an outcome for each; get() is its value or raises its error:

    from moldau.client import Admin, NewTopic

    with Admin("localhost:9092") as admin:
        admin.create_topics([NewTopic("refunds", partitions=3)])["refunds"].get()
        print([topic.name for topic in admin.list_topics()])

With asyncio the same methods are awaited:

    import asyncio
    from moldau.client import AsyncConsumer, AsyncProducer

    async def main():
        async with AsyncProducer("localhost:9092") as producer:
            print(await producer.send_and_wait("refunds", b"one"))
        async with AsyncConsumer("localhost:9092", auto_offset_reset="earliest") as consumer:
            await consumer.assign(await consumer.partitions_for("refunds"))
            print(await consumer.poll(timeout_ms=10_000))

    asyncio.run(main())

Settings have Kafka's names: as keywords with `_` for `.`, or as they are in `config={"linger.ms": 20}`. A name that
does not exist is refused; moldau.client.setting_types has all of them, with what they do and their defaults.

Timeouts are `timeout_ms`, in milliseconds, everywhere.

Errors are subclasses of ClientError in moldau.client.errors, with Kafka's names (TopicExistsError) and with `code`,
`message`, `retriable` and `fatal`. What may pass is tried again by the client itself, until a timeout. An argument of a
wrong type is a TypeError.

Threads: a producer may be used by many, a consumer, a share consumer and an admin client by one at a time.

Beside these classes: moldau.client.admin has what Admin takes and gives, moldau.client.errors all errors,
moldau.client.assignors what an assignor of one's own stands on. The names below are imported on first use, so that a
program pays only for the part it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.first_use import on_first_use

if TYPE_CHECKING:
    from moldau.client.admin import Admin, NewTopic
    from moldau.client.admin.aio import AsyncAdmin
    from moldau.client.aio import AsyncConsumer, AsyncDelivery, AsyncProducer
    from moldau.client.arrow import ArrowDelivery
    from moldau.client.consumer import Consumer, ConsumerRecord
    from moldau.client.errors import ClientError
    from moldau.client.group.listener import RebalanceListener
    from moldau.client.metrics.names import MetricName, Metrics
    from moldau.client.produce.delivery import DeliveryFuture
    from moldau.client.producer import Producer
    from moldau.client.results import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        Outcome,
        PreparedTransaction,
        RecordMetadata,
        TopicPartition,
    )
    from moldau.client.share_aio import AsyncShareConsumer
    from moldau.client.share_consumer import AcknowledgeType, ShareConsumer

# Clients first, then what goes into them and comes out of them.
__all__ = [
    "Producer",
    "Consumer",
    "ShareConsumer",
    "Admin",
    "AsyncProducer",
    "AsyncConsumer",
    "AsyncShareConsumer",
    "AsyncAdmin",
    "DeliveryFuture",
    "AsyncDelivery",
    "ArrowDelivery",
    "RecordMetadata",
    "ConsumerRecord",
    "TopicPartition",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RebalanceListener",
    "ConsumerGroupMetadata",
    "PreparedTransaction",
    "AcknowledgeType",
    "NewTopic",
    "Outcome",
    "Metrics",
    "MetricName",
    "ClientError",
]

_HOME = {
    "Producer": "moldau.client.producer",
    "Consumer": "moldau.client.consumer",
    "ShareConsumer": "moldau.client.share_consumer",
    "Admin": "moldau.client.admin",
    "AsyncProducer": "moldau.client.aio",
    "AsyncConsumer": "moldau.client.aio",
    "AsyncShareConsumer": "moldau.client.share_aio",
    "AsyncAdmin": "moldau.client.admin.aio",
    "DeliveryFuture": "moldau.client.produce.delivery",
    "AsyncDelivery": "moldau.client.aio",
    "ArrowDelivery": "moldau.client.arrow",
    "RecordMetadata": "moldau.client.results",
    "ConsumerRecord": "moldau.client.record",
    "TopicPartition": "moldau.client.results",
    "OffsetAndMetadata": "moldau.client.results",
    "OffsetAndTimestamp": "moldau.client.results",
    "RebalanceListener": "moldau.client.group.listener",
    "ConsumerGroupMetadata": "moldau.client.results",
    "PreparedTransaction": "moldau.client.results",
    "AcknowledgeType": "moldau.client.share_consumer",
    "NewTopic": "moldau.client.admin",
    "Outcome": "moldau.client.results",
    "Metrics": "moldau.client.metrics.names",
    "MetricName": "moldau.client.metrics.names",
    "ClientError": "moldau.client.errors",
}

__getattr__ = on_first_use(__name__, _HOME)


def __dir__() -> list[str]:
    """With the names that are not imported yet, for completion."""
    return sorted({*globals(), *__all__})
