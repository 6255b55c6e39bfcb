"""kill -9 during a write load: every acknowledged record is there after the restart, and the indexes agree.

MOLDAU_KILLS says how often (the full run: 50); MOLDAU_KILL_SEED repeats the choices of a run.
"""

from __future__ import annotations

import os
import random
import select
import socket
import threading
import time
from bisect import bisect_left
from collections import deque
from pathlib import Path

from tests.crash.index_files import check_partition_directory
from tests.crash.raw import (
    EARLIEST,
    LATEST,
    RawConnection,
    build_batch,
    parse_batches,
    parse_produce_answer,
)
from tests.interop.nodes import MoldauNode

TOPIC = "kills"
PARTITIONS = 3
IN_FLIGHT_MAX = 40
PADDING = bytes(random.Random(1).randbytes(4000))
KILLS = int(os.environ.get("MOLDAU_KILLS", "4"))
SEED = int(os.environ.get("MOLDAU_KILL_SEED", str(random.SystemRandom().randrange(1 << 30))))
TOPIC_CONFIGS = {
    # Small segments and dense indexes: a kill then often falls into a roll.
    "segment.bytes": str(1 << 20),
    "index.interval.bytes": "700",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "-1",
}


def value_of(partition: int, number: int) -> bytes:
    """The value of the n-th record that is sent to a partition; it can be made again to compare."""
    start = number * 131 % 3000
    return b"%d/%d/" % (partition, number) + PADDING[start : start + number * 17 % 900]


class PartitionLoad:
    """What was sent to one partition, what was acknowledged, and what was found in its log."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.sent = 0
        self.acknowledged: dict[int, int] = {}
        self.found: list[int] = []
        self.highest_timestamps: list[int] = []

    def next_batch(self, rng: random.Random, base_ms: int) -> tuple[int, int, bytes]:
        """(first number, count, bytes)"""
        first, count = self.sent, rng.randint(1, 12)
        self.sent += count
        records = [
            (base_ms + number * 3 + rng.randint(0, 200), value_of(self.partition, number))
            for number in range(first, first + count)
        ]
        return first, count, build_batch(records)

    def acknowledge(self, base_offset: int, first: int, count: int) -> None:
        for index in range(count):
            offset = base_offset + index
            assert offset not in self.acknowledged, f"offset {offset} was acknowledged twice"
            self.acknowledged[offset] = first + index


def is_readable(sock: socket.socket) -> bool:
    """Not by `select`, which refuses descriptors above 1023: the process may have many files open."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def write_until_killed(node: MoldauNode, loads: list[PartitionLoad], rng: random.Random, base_ms: int) -> int:
    """Pipelines produce requests with acks=1 until the connection breaks; returns the acknowledged requests."""
    waiting: deque[tuple[int, int, int, int]] = deque()
    acknowledged = 0
    try:
        with RawConnection(node.port) as connection:
            while True:
                while len(waiting) < IN_FLIGHT_MAX:
                    load = rng.choice(loads)
                    first, count, batch = load.next_batch(rng, base_ms)
                    correlation = connection.send_produce(TOPIC, load.partition, batch)
                    waiting.append((correlation, load.partition, first, count))
                    if is_readable(connection.socket):
                        break
                correlation, answer = connection.receive()
                wanted, partition, first, count = waiting.popleft()
                answered, error, base_offset = parse_produce_answer(answer, TOPIC)
                assert (correlation, answered, error) == (wanted, partition, 0)
                loads[partition].acknowledge(base_offset, first, count)
                acknowledged += 1
    except OSError:
        return acknowledged


def check_everything_acknowledged_is_there(connection: RawConnection, load: PartitionLoad) -> None:
    """Reads what is new in the log; every offset follows the one before, every value was sent, none is missing."""
    seen = set(load.found)
    end, _ = connection.list_offset(TOPIC, load.partition, LATEST)
    while len(load.found) < end:
        high_watermark, data = connection.fetch(TOPIC, load.partition, len(load.found))
        batches = parse_batches(data)
        assert high_watermark >= end
        assert batches, f"nothing at offset {len(load.found)} of {end}"
        for record in (record for batch in batches for record in batch.records):
            if record.offset < len(load.found):
                continue
            assert record.offset == len(load.found), f"offset {record.offset} where {len(load.found)} was due"
            number = int(record.value.split(b"/", 2)[1])
            assert record.value == value_of(load.partition, number), f"offset {record.offset} has a foreign value"
            assert number < load.sent and number not in seen, f"record {number} was not sent, or is there twice"
            seen.add(number)
            load.found.append(number)
            highest = load.highest_timestamps[-1] if load.highest_timestamps else -1
            load.highest_timestamps.append(max(highest, record.timestamp))
    for offset, number in load.acknowledged.items():
        assert offset < end, f"offset {offset} was acknowledged; the log ends at {end}"
        assert load.found[offset] == number, f"offset {offset} holds record {load.found[offset]}, not {number}"


def check_lookups_agree_with_the_log(connection: RawConnection, load: PartitionLoad, rng: random.Random) -> None:
    """A fetch starts with the batch of its offset; a timestamp finds the first record that is not older."""
    assert connection.list_offset(TOPIC, load.partition, EARLIEST)[0] == 0
    end = len(load.found)
    for _ in range(15 if end else 0):
        offset = rng.randrange(end)
        _, data = connection.fetch(TOPIC, load.partition, offset, 1)
        batch = parse_batches(data)[0]
        assert batch.base_offset <= offset <= batch.last_offset, f"fetch at {offset} gave {batch.base_offset}"
    for _ in range(15 if end else 0):
        timestamp = load.highest_timestamps[rng.randrange(end)] + rng.randint(-1, 1)
        expected = bisect_left(load.highest_timestamps, timestamp)
        found, _ = connection.list_offset(TOPIC, load.partition, timestamp)
        assert found == (expected if expected < end else -1), f"timestamp {timestamp}: {found}, not {expected}"


def test_every_acknowledged_record_survives_kill_nine(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print(f"MOLDAU_KILL_SEED={SEED}")
    node = MoldauNode(tmp_path / "node", {"log.flush.offset.checkpoint.interval.ms": "300"})
    node.format()
    node.start()
    loads = [PartitionLoad(partition) for partition in range(PARTITIONS)]
    base_ms = int(time.time() * 1000) - 1_000_000
    try:
        with RawConnection(node.port) as connection:
            connection.create_topic(TOPIC, PARTITIONS, TOPIC_CONFIGS)
            connection.await_topic(TOPIC, PARTITIONS)
        acknowledged = 0
        for _ in range(KILLS):
            process = node.process
            assert process is not None
            timer = threading.Timer(rng.uniform(0.1, 1.0), process.kill)
            timer.start()
            acknowledged += write_until_killed(node, loads, rng, base_ms)
            timer.join()
            node.kill()
            node.start()
            with RawConnection(node.port) as connection:
                connection.await_topic(TOPIC, PARTITIONS)
                for load in loads:
                    check_everything_acknowledged_is_there(connection, load)
                    check_lookups_agree_with_the_log(connection, load, rng)
        assert acknowledged > KILLS, "the load wrote next to nothing"
        assert node.stop() == 0
        entries = sum(check_partition_directory(node.data / f"{TOPIC}-{load.partition}") for load in loads)
        assert entries > 0, "no index entry was ever written"
    finally:
        node.kill()
