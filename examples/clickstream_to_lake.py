"""A clickstream into a Delta table, partitioned by day, in two runs; the second loads only what is new.

    moldau server &
    python examples/clickstream_to_lake.py --to lake/clicks

Kill it whenever you like and start it again: each click is in the table once. Needs pip install 'moldau[spark]' and
Java.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence

from moldau.client import Admin, NewTopic, Producer
from moldau.lake.api import load_topics, table_frame

PAGES = ("/", "/search", "/cart", "/checkout")
SCHEMA = "user BIGINT, page STRING, milliseconds INT"
DAY_MS = 86_400_000


def produce(server: str, topic: str, count: int, seed: int) -> None:
    """Clicks of the last three days."""
    chance = random.Random(seed)
    now_ms = time.time_ns() // 1_000_000
    with Producer(server) as producer:
        for _ in range(count):
            click = {
                "user": chance.randrange(500),
                "page": chance.choice(PAGES),
                "milliseconds": int(chance.expovariate(1 / 80)),
            }
            when = now_ms - chance.randrange(3 * DAY_MS)
            producer.send(topic, json.dumps(click).encode(), str(click["user"]).encode(), timestamp_ms=when)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Load clicks into a lake, exactly once.")
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="clicks")
    parser.add_argument("--to", default="lake/clicks")
    parser.add_argument("--count", type=int, default=20_000)
    given = parser.parse_args(arguments)
    with Admin(given.bootstrap_server) as admin:
        admin.create_topics([NewTopic(given.topic, 3)])
    for run in (1, 2):
        produce(given.bootstrap_server, given.topic, given.count, run)
        stats = load_topics(
            given.topic,
            given.to,
            bootstrap_servers=given.bootstrap_server,
            partition_by=["date"],
            options={"valueFormat": "json", "valueSchema": SCHEMA},
        )
        print(f"run {run}: {stats.rows} clicks loaded into {stats.files} files")
    clicks = table_frame(given.to)
    print(f"{clicks.count()} clicks in the lake")
    clicks.groupBy("page").count().orderBy("page").show()


if __name__ == "__main__":
    main()
