"""Copies a topic exactly once with confluent-kafka, until it is killed: `address topic records-in-a-transaction`."""

from __future__ import annotations

import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

SECONDS = 120
# Brokers come back within moments here: there is no reason to be patient with them.
# librdkafka that starts anew from its bootstrap servers when all brokers are away can wait for ever, whatever the
# timeout, for a coordinator that it has dropped: AddOffsetsToTxn is answered, and TxnOffsetCommit is never sent.
QUICK = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 20,
    "metadata.recovery.strategy": "none",
}


def next_offsets(messages: list[Message]) -> list[TopicPartition]:
    """Behind the last message of each partition."""
    ends = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in ends.items()]


def rewind(consumer: Any) -> None:
    """Nothing of the aborted transaction happened."""
    for place in consumer.committed(consumer.assignment(), SECONDS):
        place.offset = max(place.offset, 0)
        consumer.seek(place)


def copy_batch(consumer: Any, producer: Any, messages: list[Message], target: str) -> None:
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce(target, message.value(), partition=message.partition())
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(next_offsets(messages), group, SECONDS)
        producer.commit_transaction(SECONDS)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        print(f"aborted: {error}", flush=True)
        producer.abort_transaction(SECONDS)
        rewind(consumer)


def copy(address: str, topic: str, size: int) -> None:
    """One life: ends with an exception when it cannot go on."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"copier of {topic}",
            # A successor takes the place of one that was killed, instead of waiting for the end of its session.
            "group.instance.id": "the only one",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **QUICK,
        }
    )
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": f"copy {topic}", "transaction.timeout.ms": 10_000, **QUICK}
    )
    try:
        producer.init_transactions(SECONDS)
        consumer.subscribe([topic])
        while True:
            messages = [one for one in consumer.consume(size, 0.2) if one.error() is None]
            if messages:
                copy_batch(consumer, producer, messages, f"{topic}-copy")
    finally:
        consumer.close()


if __name__ == "__main__":
    while True:
        try:
            copy(sys.argv[1], sys.argv[2], int(sys.argv[3]))
        except KafkaException as error:
            print(f"a new life: {error}", flush=True)
