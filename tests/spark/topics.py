"""What the Spark tests do with topics, through Moldau's own client: create, fill, delete."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.offsets import LATEST
from tests.interop.nodes import RECENT_MS, Node
from tests.pace import patience


def create(node: Node, topic: str, partitions: int = 1, **configs: str) -> None:
    with Admin(node.bootstrap) as admin:
        new = NewTopic(topic, partitions, 1, configs={name.replace("_", "."): value for name, value in configs.items()})
        admin.create_topics([new])[topic].get()


def delete(node: Node, topic: str) -> None:
    """Returns when the topic is gone for everybody who asks."""
    with Admin(node.bootstrap) as admin:
        admin.delete_topics([topic])[topic].get()
        deadline = time.monotonic() + patience(30)
        while any(row.name == topic for row in admin.list_topics()):
            assert time.monotonic() < deadline, f"{topic} is still there"
            time.sleep(0.02)


def fill(
    node: Node, topic: str, values: Iterable[str | bytes | None], partition: int | None = 0, **settings: str
) -> None:
    """One record per value, with the value's place as key and timestamp."""
    with Producer(node.bootstrap, config=settings) as producer:
        futures = [
            producer.send(topic, value, key=str(place), partition=partition, timestamp_ms=RECENT_MS + place)
            for place, value in enumerate(values)
        ]
        for future in futures:
            future.result()


def numbers(first: int, behind: int) -> list[str]:
    return [str(number) for number in range(first, behind)]


def committed_values(node: Node, topic: str) -> list[str]:
    """The values of all committed records, up to the end of the log: open transactions before it are waited for."""
    with Consumer(node.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        partitions = consumer.partitions_for(topic)
        with Admin(node.bootstrap) as admin:
            found = admin.list_offsets(dict.fromkeys(partitions, LATEST))
            ends = {item: outcome.get().offset for item, outcome in found.items()}
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        values: list[str] = []
        deadline = time.monotonic() + patience(60)
        while any(consumer.position(item) < end for item, end in ends.items()):
            values += [(record.value or b"").decode() for record in consumer.poll(100)]
            assert time.monotonic() < deadline, f"{topic} cannot be read to its end: is a transaction still open?"
        return values


def fill_in_transactions(node: Node, topic: str, values: Sequence[str], aborted: Collection[int] = ()) -> None:
    """A transaction for each value; those with these places are aborted."""
    with Producer(node.bootstrap, transactional_id=f"{topic}-writer") as producer:
        producer.init_transactions()
        for place, value in enumerate(values):
            producer.begin_transaction()
            producer.send(topic, value)
            if place in aborted:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
