"""A bounded re-run: one hour of a lake table goes back to a topic, with the keys, times and partitions it once had.

    python examples/lake_backfill.py --to lake/readings

The load that fills the table is not disturbed: it does not know of the replay, and its offsets are not touched.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.lake.api import load_topics, replay_table

HOUR_MS = 3_600_000
PARTITIONS = 2


def produce(server: str, topic: str, first_ms: int) -> None:
    """Readings of three hours, one every ten seconds and sensor."""
    with Producer(server) as producer:
        for when in range(first_ms, first_ms + 3 * HOUR_MS, 10_000):
            for sensor in range(4):
                key = b"sensor-%d" % sensor
                producer.send(topic, b"%d" % (when % 977), key, partition=sensor % PARTITIONS, timestamp_ms=when)


def count(server: str, topic: str) -> tuple[int, int, int]:
    """(records, time of the first, time of the last)"""
    times: list[int] = []
    with Consumer(server, isolation_level="read_committed") as consumer:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(item) < ends[item] for item in partitions):
            times += [record.timestamp for record in consumer.poll(timeout_ms=500)]
    return len(times), min(times), max(times)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Send one hour of a lake table to a topic.")
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="readings")
    parser.add_argument("--again", default="readings-again")
    parser.add_argument("--to", default="lake/readings")
    given = parser.parse_args(arguments)
    with Admin(given.bootstrap_server) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS) for name in (given.topic, given.again)])
    first_ms = time.time_ns() // 1_000_000 - 4 * HOUR_MS
    produce(given.bootstrap_server, given.topic, first_ms)
    stats = load_topics(given.topic, given.to, bootstrap_servers=given.bootstrap_server)
    print(f"{stats.rows} readings loaded")
    start, end = (datetime.fromtimestamp((first_ms + hours * HOUR_MS) / 1000, UTC) for hours in (1, 2))
    for attempt in (1, 2):  # the second does nothing: a run id is never sent twice
        rows = replay_table(
            given.to, given.again, bootstrap_servers=given.bootstrap_server, start=start, end=end, run_id="hour-two"
        )
        print(f"attempt {attempt}: {rows} rows of that hour")
    records, oldest, newest = count(given.bootstrap_server, given.again)
    first, last = ((when - first_ms) // 60_000 for when in (oldest, newest))
    print(f"{records} readings in {given.again}, from minute {first} to {last}")


if __name__ == "__main__":
    main()
