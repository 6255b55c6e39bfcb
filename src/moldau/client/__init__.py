"""Moldau's own client: producer, consumer and admin, for Moldau and Apache Kafka alike.

The names below are imported on first use, so that a program pays only for the part it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.first_use import on_first_use

if TYPE_CHECKING:
    from moldau.client.admin import Admin, NewTopic
    from moldau.client.aio import AsyncAdmin, AsyncConsumer, AsyncProducer
    from moldau.client.consumer import Consumer, ConsumerRecord
    from moldau.client.producer import Producer
    from moldau.client.rebalance import RebalanceListener
    from moldau.client.results import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
        PreparedTransaction,
        RecordMetadata,
        TopicPartition,
    )
    from moldau.client.share_aio import AsyncShareConsumer
    from moldau.client.share_consumer import AcknowledgeType, ShareConsumer

__all__ = [
    "AcknowledgeType",
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncShareConsumer",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "NewTopic",
    "OffsetAndMetadata",
    "PreparedTransaction",
    "Producer",
    "RebalanceListener",
    "RecordMetadata",
    "ShareConsumer",
    "TopicPartition",
]

_HOME = {
    "Admin": "moldau.client.admin",
    "NewTopic": "moldau.client.admin",
    "AsyncAdmin": "moldau.client.aio",
    "AsyncConsumer": "moldau.client.aio",
    "AsyncProducer": "moldau.client.aio",
    "Consumer": "moldau.client.consumer",
    "ConsumerGroupMetadata": "moldau.client.results",
    "ConsumerRecord": "moldau.client.consumer",
    "OffsetAndMetadata": "moldau.client.results",
    "PreparedTransaction": "moldau.client.results",
    "Producer": "moldau.client.producer",
    "RebalanceListener": "moldau.client.rebalance",
    "RecordMetadata": "moldau.client.results",
    "AcknowledgeType": "moldau.client.share_consumer",
    "AsyncShareConsumer": "moldau.client.share_aio",
    "ShareConsumer": "moldau.client.share_consumer",
    "TopicPartition": "moldau.client.results",
}

__getattr__ = on_first_use(__name__, _HOME)


def __dir__() -> list[str]:
    """With the names that are not imported yet, for completion."""
    return sorted({*globals(), *__all__})
