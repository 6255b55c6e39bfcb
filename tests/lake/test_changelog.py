"""Compacted topics and change data as tables: the table equals the newest value of each key."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from moldau.client import Admin, Producer
from moldau.lake.changelog import CHANGES, ChangelogLoad
from moldau.lake.errors import LakeError
from moldau.lake.load import LoadSettings
from moldau.lake.maintenance import optimize
from moldau.lake.newest import newest
from moldau.lake.open_table import open_table
from moldau.lake.reading import read_table
from moldau.lake.tasks import LoadTask, TaskResult, run_here
from tests.interop.nodes import RECENT_MS, MoldauNode
from tests.lake.conftest import MakeTopic, Topic

SCHEMA = "id BIGINT, name STRING, score DOUBLE"


def settings_of(topic: Topic, lake: str, **options: str) -> LoadSettings:
    return LoadSettings({"kafka.bootstrap.servers": topic.bootstrap, "subscribe": topic.name, **options}, lake)


def load(settings: LoadSettings) -> None:
    with ChangelogLoad(settings, run_here) as running:
        list(running.run_once())


def table_of(lake: str) -> dict[bytes, bytes]:
    rows = read_table(open_table(lake), ["key", "value"]).to_pylist()
    found = {row["key"]: row["value"] for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


class Changes:
    """Writes random changes to a topic and knows what must be left of them."""

    def __init__(self, topic: Topic, seed: int) -> None:
        self.topic = topic
        self.random = random.Random(seed)
        self.newest: dict[bytes, bytes] = {}

    def send(self, count: int) -> None:
        with Producer(self.topic.bootstrap) as producer:
            for _ in range(count):
                key = b"key-%d" % self.random.randrange(40)
                value = None if self.random.random() < 0.25 else b"%d" % self.random.randrange(1 << 40)
                # Clocks of writers go wrong; within a partition only offsets count.
                when = RECENT_MS + self.random.randrange(1_000_000)
                producer.send(self.topic.name, value, key, timestamp_ms=when)
                if value is None:
                    self.newest.pop(key, None)
                else:
                    self.newest[key] = value


def test_the_table_equals_the_newest_values(make_topic: MakeTopic, lake: str) -> None:
    """Many rounds of random changes, split at random places, with an optimize in between."""
    changes = Changes(make_topic(3, cleanup_policy="compact"), seed=7)
    for round_number in range(6):
        changes.send(150)
        size = changes.random.choice([20, 70, 10_000])
        load(replace(settings_of(changes.topic, lake), round_offsets_max=size, task_offsets_max=15))
        assert table_of(lake) == changes.newest
        if round_number == 3:
            optimize(open_table(lake))
    assert os.listdir(os.path.join(lake, CHANGES)) == []


def test_a_round_that_was_not_committed_is_repeated_without_harm(make_topic: MakeTopic, lake: str) -> None:
    changes = Changes(make_topic(2), seed=11)
    changes.send(100)
    settings = settings_of(changes.topic, lake)

    def stopped(tasks: Sequence[LoadTask]) -> list[TaskResult]:
        run_here(tasks)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ChangelogLoad(settings, stopped) as running:
        list(running.run_once())
    assert table_of(lake) == {} and os.listdir(os.path.join(lake, CHANGES))
    changes.send(100)
    load(settings)
    assert table_of(lake) == changes.newest
    assert os.listdir(os.path.join(lake, CHANGES)) == []


def test_a_table_that_was_optimized_meanwhile_is_merged_into_again(make_topic: MakeTopic, lake: str) -> None:
    """The commit conflicts with the other's, and is made once more on top of it."""
    changes = Changes(make_topic(2), seed=13)
    settings = settings_of(changes.topic, lake)
    for _ in range(3):
        changes.send(60)
        load(settings)
    changes.send(60)

    def overtaken(tasks: Sequence[LoadTask]) -> list[TaskResult]:
        done = run_here(tasks)
        optimize(open_table(lake))
        return done

    with ChangelogLoad(settings, overtaken) as running:
        list(running.run_once())
    assert table_of(lake) == changes.newest


def test_debezium_envelopes_are_unwrapped(make_topic: MakeTopic, lake: str) -> None:
    """Creates, updates, snapshots and deletes, with the schema in the envelope or without it."""
    topic = make_topic(1)
    events = [
        (1, {"op": "r", "before": None, "after": {"id": 1, "name": "Ada", "score": 1.5}}),
        (2, {"op": "c", "before": None, "after": {"id": 2, "name": "Bo", "score": None}}),
        (3, {"schema": {"type": "struct"}, "payload": {"op": "c", "after": {"id": 3, "name": "Cy", "score": 3.0}}}),
        (1, {"op": "u", "before": {"id": 1}, "after": {"id": 1, "name": "Ada L.", "score": 2.5}}),
        (2, {"op": "d", "before": {"id": 2}, "after": None}),
        (3, {"schema": {"type": "struct"}, "payload": {"op": "d", "before": {"id": 3}, "after": None}}),
        (3, None),
    ]
    with Producer(topic.bootstrap) as producer:
        for number, event in events:
            producer.send(topic.name, None if event is None else json.dumps(event).encode(), b"%d" % number)
    settings = replace(settings_of(topic, lake, valueFormat="json", valueSchema=SCHEMA), envelope="debezium")
    load(replace(settings, round_offsets_max=3))
    rows = read_table(open_table(lake), ["id", "name", "score", "offset"]).to_pylist()
    assert rows == [{"id": 1, "name": "Ada L.", "score": 2.5, "offset": 3}]


def test_an_envelope_without_a_row_is_refused(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    with Producer(topic.bootstrap) as producer:
        producer.send(topic.name, b'{"op": "t"}', b"1")
    settings = replace(settings_of(topic, lake, valueFormat="json", valueSchema=SCHEMA), envelope="debezium")
    with pytest.raises(LakeError, match=r"offset 0 has no row and is no delete \(op t\)"):
        load(settings)


def test_columns_of_changes_can_be_added(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    with Producer(topic.bootstrap) as producer:
        producer.send(topic.name, b'{"id": 1, "name": "Ada"}', b"1")
    load(settings_of(topic, lake, valueFormat="json", valueSchema="id BIGINT"))
    with Producer(topic.bootstrap) as producer:
        producer.send(topic.name, b'{"id": 2, "name": "Bo"}', b"2")
    load(settings_of(topic, lake, valueFormat="json", valueSchema="id BIGINT, name STRING"))
    rows = read_table(open_table(lake), ["id", "name"]).to_pylist()
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, None), (2, "Bo")]


def test_records_without_keys_and_other_formats_are_refused(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    with Producer(topic.bootstrap) as producer:
        producer.send(topic.name, b"value")
    with pytest.raises(LakeError, match=r"offset 0 of .* has no key"):
        load(settings_of(topic, lake))
    with pytest.raises(LakeError, match="need a Delta table"):
        load(replace(settings_of(topic, lake), format="parquet"))


def test_a_key_that_moved_to_another_partition_is_told_apart_by_time(
    make_topic: MakeTopic, lake: str, node: MoldauNode
) -> None:
    """Where partitions were added, the newer record may have the smaller offset."""
    topic = make_topic(1)
    with Producer(topic.bootstrap) as producer:
        for number in range(5):
            producer.send(topic.name, b"old%d" % number, b"k", partition=0, timestamp_ms=RECENT_MS)
    load(settings_of(topic, lake))
    with Admin(node.bootstrap) as admin:
        for outcome in admin.create_partitions({topic.name: 2}).values():
            outcome.get()
    with Producer(topic.bootstrap) as producer:
        producer.send(topic.name, b"new", b"k", partition=1, timestamp_ms=RECENT_MS + 5)
    load(settings_of(topic, lake))
    assert table_of(lake) == {b"k": b"new"}


def test_the_newest_row_of_each_key() -> None:
    """By offset within a partition whatever the time, by time between partitions."""
    rows = pa.table(
        {
            "topic": ["t"] * 5,
            "key": [b"a", b"a", b"b", b"b", b"a"],
            "partition": pa.array([0, 0, 0, 1, 0], pa.int32()),
            "offset": [1, 9, 7, 2, 5],
            "timestamp": pa.array([50, 10, 20, 30, 99], pa.timestamp("us", "UTC")),
        }
    )
    assert [(row["key"], row["offset"]) for row in newest(rows).to_pylist()] == [(b"a", 9), (b"b", 2)]
