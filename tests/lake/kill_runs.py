"""Loads that are killed again and again while records arrive, and what must be in the table afterwards."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from moldau.client import Consumer, Producer, TopicPartition
from moldau.lake.open_table import detect_format, open_table
from moldau.lake.reading import read_table
from tests.interop.nodes import RECENT_MS
from tests.pace import patience, patience_ms
from tests.spark.jobs import Program

WAIT_SECONDS_MAX = patience(120)
# Between two bursts of the writer: as many records as a load on a busy machine keeps up with.
PAUSE_S = 0.05


class Writer(threading.Thread):
    """Sends records, a few at a time, until it is told to end; waits out brokers that are down."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int, keys: int = 0) -> None:
        """keys: how many there are, for topics of changes; 0: each record has its own."""
        super().__init__(daemon=True)
        self._brokers = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._keys = keys
        self._random = random.Random(seed)
        self._ending = threading.Event()
        self.failed: Exception | None = None
        self.sent = 0

    def run(self) -> None:
        try:
            with Producer(self._brokers, delivery_timeout_ms=patience_ms(300_000)) as producer:
                while not self._ending.is_set():
                    for _ in range(self._random.randint(1, 30)):
                        self._send(producer)
                    producer.flush()
                    time.sleep(PAUSE_S)
        except Exception as error:
            self.failed = error

    def _send(self, producer: Producer) -> None:
        chance = self._random
        number = self.sent
        self.sent += 1
        key = b"key-%d" % (chance.randrange(self._keys) if self._keys else number)
        value: bytes | None = b"%d-" % number + bytes(chance.randrange(40))
        if self._keys and chance.random() < 0.2:
            value = None
        # A key has one partition; the days make several files of each task.
        partition = chance.randrange(self._partitions) if not self._keys else crc32(key) % self._partitions
        when = RECENT_MS - chance.randrange(3) * 86_400_000
        producer.send(self._topic, value, key, partition=partition, timestamp_ms=when)

    def end(self) -> None:
        self._ending.set()
        self.join()
        if self.failed is not None:
            raise self.failed


def read_topic(bootstrap: str, topic: str, partitions: int) -> list[tuple[int, int, bytes, bytes | None]]:
    """(partition, offset, key, value) of every record, in order."""
    found = []
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        assigned = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(assigned)
        ends = consumer.end_offsets(assigned)
        consumer.seek_to_beginning(assigned)
        while any(consumer.position(item) < ends[item] for item in assigned):
            for record in consumer.poll(timeout_ms=500):
                found.append((record.partition, record.offset, record.key, record.value))
    return sorted(found)


def check_every_record_once(lake: str, bootstrap: str, topic: str, partitions: int) -> int:
    """The table has every record of the topic exactly once, with the same key and value; returns how many."""
    rows = read_table(open_table(lake), ["partition", "offset", "key", "value"]).to_pylist()
    found = sorted((row["partition"], row["offset"], row["key"], row["value"]) for row in rows)
    wanted = read_topic(bootstrap, topic, partitions)
    places = Counter((partition, offset) for partition, offset, _, _ in found)
    twice = [place for place, count in places.items() if count > 1]
    assert not twice, f"{len(twice)} records are there more than once, such as {twice[:3]}"
    missing = [row[:2] for row in wanted if row[:2] not in places]
    assert not missing, f"{len(missing)} of {len(wanted)} records are missing, such as {missing[:3]}"
    assert found == wanted
    return len(found)


def check_newest_values(lake: str, bootstrap: str, topic: str, partitions: int) -> int:
    """The table has the newest value of each key, and no key that was deleted; returns how many."""
    wanted: dict[bytes, bytes] = {}
    for _, _, key, value in read_topic(bootstrap, topic, partitions):
        if value is None:
            wanted.pop(key, None)
        else:
            wanted[key] = value
    rows = read_table(open_table(lake), ["key", "value"]).to_pylist()
    assert len(rows) == len({row["key"] for row in rows}), "a key is there twice"
    assert {row["key"]: row["value"] for row in rows} == wanted
    return len(wanted)


def commits(lake: str) -> int:
    """How many commits a table has by its files, without opening it."""
    folder = {"delta": "_delta_log", "iceberg": "metadata", "parquet": "_moldau/commits"}[
        detect_format(lake) or "delta"
    ]
    place = Path(lake) / folder
    return sum(1 for name in os.listdir(place) if name.endswith(".json")) if place.is_dir() else 0


def inline_load(bootstrap: str, topic: str, lake: str, log: Path, **given: Any) -> Callable[[bool], Program]:
    """Makes processes that load with their tasks inside."""
    settings = {
        "options": {"kafka.bootstrap.servers": bootstrap, "subscribe": topic},
        "path": lake,
        "format": "delta",
        "partition_by": ["date"],
        "round_offsets_max": 200,
        "upsert": False,
        **given,
    }

    def make(once: bool) -> Program:
        # To the end in large steps: the small ones were for the kills.
        size = 1_000_000 if once else settings["round_offsets_max"]
        text = json.dumps({**settings, "round_offsets_max": size, "task_offsets_max": size, "once": once})
        return Program([sys.executable, "-m", "tests.lake.load_job", text], log)

    return make


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"{what} takes too long"
        time.sleep(0.01)


def wait_for_commits(lake: str, count: int, program: Program) -> None:
    wait_until(lambda: commits(lake) >= count or not program.alive, "a commit")


def kill_again_and_again(
    make: Callable[[bool], Program], lake: str, kills: int, chance: random.Random, moment_s: float = 0.3
) -> None:
    """Starts a load and kills it, some time after it has committed something; every fourth one before that."""
    for number in range(kills):
        program = make(False)
        before = commits(lake)
        program.start()
        try:
            if number % 4 != 3:
                wait_for_commits(lake, before + 2, program)
            time.sleep(chance.uniform(0, moment_s))
            assert program.alive, f"the load ended by itself:\n{program.output()[-3000:]}"
        finally:
            program.kill()


def finish(make: Callable[[bool], Program]) -> None:
    """Runs the load to its end."""
    program = make(True)
    program.start()
    assert program.process is not None
    try:
        code = program.process.wait(WAIT_SECONDS_MAX)
    finally:
        program.kill()
    assert code == 0, program.output()[-3000:]
