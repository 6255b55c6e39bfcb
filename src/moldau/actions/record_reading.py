"""Reads a bounded number of records: from places in partitions on, or the newest before them.

Everything here blocks and runs in threads of the pool. What is read is bounded by records, bytes and time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition

if TYPE_CHECKING:
    from moldau.client.consumer import Consumer

POLL_MS = 250
RECORDS_AT_ONCE = 500
READ_S_MAX = 10.0
READ_BYTES_MAX = 32 * 1024 * 1024


class Range(NamedTuple):
    """From an offset up to, and without, another one."""

    start: int
    end: int


class Read(NamedTuple):
    """Records, and where reading stopped in each partition; complete: nothing of the ranges is left."""

    records: list[ConsumerRecord]
    positions: dict[TopicPartition, int]
    complete: bool


def read_forward(
    consumer: Consumer, ranges: Mapping[TopicPartition, Range], limit: int, seconds: float = READ_S_MAX
) -> Read:
    """Up to so many records of each range, from its start on."""
    wanted = {each: found for each, found in ranges.items() if found.start < found.end}
    positions = {each: found.start for each, found in ranges.items()}
    records: list[ConsumerRecord] = []
    counts: dict[TopicPartition, int] = dict.fromkeys(wanted, 0)
    consumer.assign(list(wanted))
    # A partition that was read before by this consumer is still paused.
    consumer.resume(list(wanted))
    for each, found in wanted.items():
        consumer.seek(each, found.start)
    deadline, size, open_ranges = time.monotonic() + seconds, 0, set(wanted)
    while open_ranges and time.monotonic() < deadline and size < READ_BYTES_MAX:
        for record in consumer.poll(POLL_MS, RECORDS_AT_ONCE):
            each = TopicPartition(record.topic, record.partition)
            if each not in open_ranges or record.offset >= wanted[each].end or counts[each] >= limit:
                continue
            counts[each] += 1
            records.append(record)
            positions[each] = record.offset + 1
            size += size_of(record)
        done = set()
        for each in open_ranges:
            # Control records and gaps of compaction move the position and give no record.
            if counts[each] >= limit:
                done.add(each)
            elif consumer.position(each) >= wanted[each].end:
                positions[each] = wanted[each].end
                done.add(each)
        if done:
            open_ranges -= done
            consumer.pause(done)
    return Read(records, positions, not open_ranges)


def read_newest(
    consumer: Consumer, ranges: Mapping[TopicPartition, Range], limit: int, seconds: float = READ_S_MAX
) -> tuple[list[ConsumerRecord], dict[TopicPartition, int]]:
    """The newest records before the ends of the ranges, newest first, and the end of each range for the next page.

    Offsets may have gaps, from compaction and transactions: where a stretch has too few records, a longer one before it
    is read too.
    """
    deadline = time.monotonic() + seconds
    found: dict[TopicPartition, list[ConsumerRecord]] = {each: [] for each in ranges}
    lows = {each: ranges[each].end for each in ranges}
    stretch = limit
    while time.monotonic() < deadline:
        stretches = {
            each: Range(max(ranges[each].start, lows[each] - stretch), lows[each])
            for each in ranges
            if len(found[each]) < limit and lows[each] > ranges[each].start
        }
        if not stretches:
            break
        read = read_forward(consumer, stretches, stretch, max(0.1, deadline - time.monotonic()))
        for each, each_range in stretches.items():
            # A stretch that was not read to its end would hide its newest records: better none of it.
            if read.positions[each] >= each_range.end:
                found[each] = [record for record in read.records if record.partition == each.partition] + found[each]
                lows[each] = each_range.start
        if not read.complete:
            break
        stretch *= 4
    return newest_of(found, lows, limit)


def newest_of(
    found: Mapping[TopicPartition, list[ConsumerRecord]], lows: Mapping[TopicPartition, int], limit: int
) -> tuple[list[ConsumerRecord], dict[TopicPartition, int]]:
    """Merges partitions by timestamp without changing the order of any, so that the next page misses nothing."""
    left = {each: list(records) for each, records in found.items() if records}
    before = dict(lows)
    for each, records in left.items():
        before[each] = records[-1].offset + 1
    chosen: list[ConsumerRecord] = []
    while left and len(chosen) < limit:
        each = max(left, key=lambda each: (left[each][-1].timestamp, -each.partition))
        record = left[each].pop()
        chosen.append(record)
        before[each] = record.offset if left[each] else lows[each]
        if not left[each]:
            del left[each]
    return chosen, before


def size_of(record: ConsumerRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")
