"""A process that copies a topic exactly once with confluent-kafka, until it is killed: `address topic`."""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaException, Producer

SECONDS = 20


def copy(address: str, topic: str) -> None:
    """One life: ends with an exception when it cannot go on."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"copier of {topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": f"copy {topic}", "transaction.timeout.ms": 10_000}
    )
    try:
        producer.init_transactions(SECONDS)
        consumer.subscribe([topic])
        while True:
            messages = [one for one in consumer.consume(20, 1.0) if one.error() is None]
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                producer.produce(f"{topic}-copy", message.value(), partition=message.partition())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SECONDS)
            producer.commit_transaction(SECONDS)
    finally:
        consumer.close()


if __name__ == "__main__":
    while True:
        try:
            copy(sys.argv[1], sys.argv[2])
        except KafkaException as error:
            print(error, flush=True)
