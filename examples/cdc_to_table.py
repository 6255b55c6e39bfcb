"""Changes of a database table, as Debezium writes them, into a table of the lake that looks like the database's.

    python examples/cdc_to_table.py --to lake/customers

The topic is compacted and has creates, updates and deletes; the table has one row for each customer who is left.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence

from moldau.client import Admin, NewTopic, Producer
from moldau.lake.api import load_topics, table_frame

SCHEMA = "id BIGINT, name STRING, city STRING"
CITIES = ("Praha", "Wien", "Dresden", "Hamburg")


class Database:
    """A table of customers, and the change events that capture would write for it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.customers: dict[int, dict[str, object]] = {}

    def change(self) -> tuple[bytes, bytes | None]:
        """One more change: (key, value) of its event."""
        number = self._random.randrange(200)
        before = self.customers.get(number)
        key = json.dumps({"id": number}).encode()
        if before is not None and self._random.random() < 0.3:
            del self.customers[number]
            return key, json.dumps({"op": "d", "before": before, "after": None}).encode()
        after: dict[str, object] = {"id": number, "name": f"Customer {number}", "city": self._random.choice(CITIES)}
        self.customers[number] = after
        operation = "c" if before is None else "u"
        return key, json.dumps({"op": operation, "before": before, "after": after}).encode()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Keep a lake table equal to a database table.")
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="customers")
    parser.add_argument("--to", default="lake/customers")
    parser.add_argument("--changes", type=int, default=5_000)
    given = parser.parse_args(arguments)
    with Admin(given.bootstrap_server) as admin:
        admin.create_topics([NewTopic(given.topic, 2, configs={"cleanup.policy": "compact"})])
    database = Database(7)
    for _ in range(2):
        with Producer(given.bootstrap_server) as producer:
            for _ in range(given.changes):
                key, value = database.change()
                producer.send(given.topic, value, key)
        stats = load_topics(
            given.topic,
            given.to,
            bootstrap_servers=given.bootstrap_server,
            mode="upsert",
            envelope="debezium",
            options={"valueFormat": "json", "valueSchema": SCHEMA},
        )
        print(f"{stats.rows} changes merged")
    rows = {row["id"]: row.asDict() for row in table_frame(given.to).select("id", "name", "city").collect()}
    print(f"{len(rows)} customers in the lake, {len(database.customers)} in the database")
    print("they are the same" if rows == database.customers else "they differ")


if __name__ == "__main__":
    main()
