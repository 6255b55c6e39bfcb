"""Copies a topic to another one exactly once, changing each record on the way: consume, transform, produce.

What is read, what is written and the offsets of what was read become one transaction, so that a crash at any moment
repeats or loses nothing: the group goes on behind what the last committed transaction read. Start it as often as you
like with the same --group and different --transactional-id, and kill it whenever you like:

    python examples/consume_transform_produce.py --source orders --target shouted --transactional-id shouter-1

Readers of the target topic need isolation.level=read_committed.
"""

from __future__ import annotations

import argparse
import time

from moldau.client import Consumer, ConsumerRecord, OffsetAndMetadata, Producer, TopicPartition
from moldau.client.errors import Category, ClientError


def transform(value: bytes | None) -> bytes | None:
    return None if value is None else value.upper()


def next_offsets(records: list[ConsumerRecord]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Where the group is to go on: behind the last record of each partition."""
    return {TopicPartition(item.topic, item.partition): OffsetAndMetadata(item.offset + 1) for item in records}


def rewind(consumer: Consumer) -> None:
    """Nothing of the aborted transaction happened: read on from what the group committed last."""
    for partition, committed in consumer.committed(consumer.assignment()).items():
        if committed is None:
            consumer.seek_to_beginning([partition])
        else:
            consumer.seek(partition, committed.offset)


def copy(consumer: Consumer, producer: Producer, target: str, idle_seconds: float) -> int:
    """Copies until nothing came for so long; returns how many records were copied."""
    copied = 0
    last = time.monotonic()
    while time.monotonic() - last < idle_seconds:
        records = consumer.poll(timeout_ms=500)
        if not records:
            continue
        last = time.monotonic()
        try:
            with producer.transaction():
                for record in records:
                    producer.send(target, transform(record.value), record.key, headers=record.headers)
                producer.send_offsets_to_transaction(next_offsets(records), consumer.group_metadata())
        except ClientError as error:
            if error.category is not Category.ABORTABLE:
                raise  # fenced, not allowed, wrongly configured: another producer must take over, or people must act
            rewind(consumer)
        else:
            copied += len(records)
    return copied


def main() -> None:
    parser = argparse.ArgumentParser(description="Copy a topic exactly once, in capitals.")
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--group", default="shouters")
    parser.add_argument("--transactional-id", default="shouter-1")
    parser.add_argument("--idle", type=float, default=10.0, help="End when nothing came for so many seconds.")
    options = parser.parse_args()
    reading = {
        "group.id": options.group,
        "enable.auto.commit": False,  # offsets are committed by the transactions alone
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    with (
        Consumer(options.bootstrap_server, config=reading) as consumer,
        Producer(options.bootstrap_server, transactional_id=options.transactional_id) as producer,
    ):
        producer.init_transactions()
        consumer.subscribe([options.source])
        print(f"copied {copy(consumer, producer, options.target, options.idle)} records")


if __name__ == "__main__":
    main()
