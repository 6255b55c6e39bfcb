"""Moldau's own client: producer, consumer and admin, for Moldau and Apache Kafka alike.

The names below are imported on first use, so that a program pays only for the part it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "NewTopic",
    "OffsetAndMetadata",
    "PreparedTransaction",
    "Producer",
    "RebalanceListener",
    "RecordMetadata",
    "TopicPartition",
]

_HOME = {
    "Admin": "admin",
    "NewTopic": "admin",
    "AsyncAdmin": "aio",
    "AsyncConsumer": "aio",
    "AsyncProducer": "aio",
    "Consumer": "consumer",
    "ConsumerGroupMetadata": "results",
    "ConsumerRecord": "consumer",
    "OffsetAndMetadata": "results",
    "PreparedTransaction": "results",
    "Producer": "producer",
    "RebalanceListener": "rebalance",
    "RecordMetadata": "results",
    "TopicPartition": "results",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
