"""Plans a batch read: from the options to the ranges of offsets that tasks read. Asks brokers; needs no Spark."""

from __future__ import annotations

import logging

from moldau.client.results import TopicPartition
from moldau.spark.lookup import Lookup, ReadError
from moldau.spark.offsets import Offsets
from moldau.spark.options import OFFSETS, OptionError, ReadOptions
from moldau.spark.planning import OffsetRange, plan_ranges

logger = logging.getLogger("moldau.spark")


def plan_batch(options: ReadOptions) -> list[OffsetRange]:
    """The tasks of a batch read. Offsets that are not there are told now, before any task starts."""
    written = options.starting.kind == OFFSETS or options.ending.kind == OFFSETS
    with Lookup(options) as lookup:
        found = lookup.find_partitions()
        starts = lookup.starting_offsets(found.partitions)
        ends = lookup.ending_offsets(found.partitions)
        # Only offsets that the user wrote can lie outside of the log.
        first = lookup.earliest(found.partitions if written else ())
        last = lookup.latest(found.partitions if written else ())
    _check_order(options, starts, ends)
    for item in first:
        starts[item], ends[item] = _within(options, item, starts, ends, first[item], last[item])
    return plan_ranges(starts, ends, found.topic_ids, options.min_partitions, options.max_records_per_partition)


def _within(
    options: ReadOptions, item: TopicPartition, starts: Offsets, ends: Offsets, first: int, last: int
) -> tuple[int, int]:
    """The range as far as the log has it; what lies outside is an error, or with failOnDataLoss=false a warning."""
    start, end = starts[item], ends[item]
    # Only offsets that the user wrote can be wrong; an earliest one may be gone by now without anybody's fault.
    written_start = options.starting.kind == OFFSETS and options.starting.by_partition[item] == start
    written_end = options.ending.kind == OFFSETS and options.ending.by_partition[item] == end
    problem = ""
    if written_start and not first <= start <= last:
        problem = f"{options.starting.option} says {start} for {item}, but its log has offsets from {first} to {last}"
    elif written_end and not first <= end <= last:
        problem = f"{options.ending.option} says {end} for {item}, but its log has offsets from {first} to {last}"
    if problem and options.fail_on_data_loss:
        raise ReadError(f"{problem}. Correct the option, or set failOnDataLoss to false to read what is there.")
    if problem:
        logger.warning("%s: what is there is read, because failOnDataLoss is false.", problem)
    return max(start, first), min(end, last)


def _check_order(options: ReadOptions, starts: Offsets, ends: Offsets) -> None:
    """Offsets that the user wrote the wrong way round; times may well have nothing between them."""
    if options.starting.kind != OFFSETS or options.ending.kind != OFFSETS:
        return
    for item, start in sorted(starts.items()):
        if ends[item] < start:
            sentence = f"{options.ending.option} of {item} is {ends[item]}, before {options.starting.option} {start}"
            raise OptionError(f"{sentence}: swap them.")
