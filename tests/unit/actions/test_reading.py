"""Records by places: newest first without missing any, forward from a place, and what a live tail shows."""

from __future__ import annotations

import random

from moldau.actions.messages import oldest_of
from moldau.actions.record_reading import Range, Read, newest_of, read_forward, read_newest
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.console.tail_limit import TailLimit


def record(partition: int, offset: int, timestamp: int) -> ConsumerRecord:
    return ConsumerRecord(
        "t", partition, offset, timestamp=timestamp, timestamp_type=0, key=None, value=b"", headers=None, leader_epoch=0
    )


class FakeConsumer:
    """Logs with gaps, read a few records at a time."""

    def __init__(self, logs: dict[int, list[ConsumerRecord]], ends: dict[int, int]) -> None:
        self.logs = logs
        self.ends = ends
        self.positions: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()

    def assign(self, partitions: list[TopicPartition]) -> None:
        # As in the client: what was assigned before keeps its position, and stays paused.
        self.positions = {each: self.positions.get(each, 0) for each in partitions}
        self.paused &= set(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset

    def pause(self, partitions: set[TopicPartition]) -> None:
        self.paused |= partitions

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused -= set(partitions)

    def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

    def poll(self, timeout_ms: int, limit: int) -> list[ConsumerRecord]:
        for each, position in self.positions.items():
            if each in self.paused or position >= self.ends[each.partition]:
                continue
            found = [item for item in self.logs[each.partition] if item.offset >= position][: min(limit, 7)]
            # Behind the last record there may be control records, which only move the position.
            self.positions[each] = found[-1].offset + 1 if found else self.ends[each.partition]
            return found
        return []


def make_logs(seed: int) -> tuple[FakeConsumer, dict[TopicPartition, Range]]:
    rng = random.Random(seed)
    logs, ends, ranges = {}, {}, {}
    for partition in range(rng.randint(1, 4)):
        offset, items = rng.randint(0, 5), []
        start = offset
        for _ in range(rng.randint(0, 40)):
            offset += rng.choice([1, 1, 1, 2, 9])
            items.append(record(partition, offset, rng.randint(0, 100)))
        ends[partition] = offset + 1 + rng.choice([0, 0, 3])
        logs[partition] = items
        ranges[TopicPartition("t", partition)] = Range(start, ends[partition])
    return FakeConsumer(logs, ends), ranges


def test_newest_first_page_by_page_gives_every_record_once() -> None:
    for seed in range(60):
        consumer, bounds = make_logs(seed)
        every = sorted((item.partition, item.offset) for log in consumer.logs.values() for item in log)
        seen, ranges = [], dict(bounds)
        for _ in range(200):
            records, before = read_newest(consumer, ranges, 5)  # type: ignore[arg-type]
            seen += [(item.partition, item.offset) for item in records]
            assert len(records) <= 5
            if all(before[each] <= bounds[each].start for each in before) and not records:
                break
            ranges = {each: Range(bounds[each].start, before[each]) for each in bounds}
        assert sorted(seen) == every, f"seed {seed}"


def test_forward_page_by_page_gives_every_record_once() -> None:
    for seed in range(60):
        consumer, bounds = make_logs(seed)
        every = sorted((item.partition, item.offset) for log in consumer.logs.values() for item in log)
        seen, ranges = [], dict(bounds)
        while True:
            records, cursor = oldest_of(read_forward(consumer, ranges, 4), 4)  # type: ignore[arg-type]
            seen += [(item.partition, item.offset) for item in records]
            ranges = {each: Range(cursor[each], bounds[each].end) for each in bounds}
            if all(found.start >= found.end for found in ranges.values()):
                break
        assert sorted(seen) == every, f"seed {seed}"
        for partition in consumer.logs:
            mine = [offset for number, offset in seen if number == partition]
            assert mine == sorted(mine)


def test_the_order_of_a_partition_is_kept_whatever_its_timestamps_say() -> None:
    first, second = record(0, 1, 900), record(0, 2, 100)
    where = TopicPartition("t", 0)
    chosen, before = newest_of({where: [first, second]}, {where: 0}, 1)
    assert chosen == [second] and before == {where: 2}


def test_an_answer_without_records_moves_the_cursor() -> None:
    where = TopicPartition("t", 0)
    assert oldest_of(Read([], {where: 9}, True), 5) == ([], {where: 9})


def test_a_tail_shows_a_steady_number_of_the_newest() -> None:
    limit = TailLimit(10, 0.0)
    assert limit.take(list(range(100)), 0.0) == list(range(90, 100))
    assert limit.take([1, 2, 3], 0.0) == []
    assert limit.take([1, 2, 3], 0.25) == [2, 3]
    shown = sum(len(limit.take(list(range(1000)), 1 + tick / 4)) for tick in range(40))
    assert shown <= 10 * 11
