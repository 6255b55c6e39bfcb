"""Plans reads: how far a micro-batch goes, and which ranges of offsets its tasks read.

No network and no Spark: numbers in, numbers out. A range is half open: `start` is read, `end` is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from moldau.client.results import TopicPartition


@dataclass(frozen=True, order=True)
class OffsetRange:
    """What one task reads: offsets start … end-1 of one partition. Plain data, so that it travels to executors."""

    topic: str
    partition: int
    start: int
    end: int
    # The topic's id as 22 characters, so that a topic of the same name is not taken for this one; empty: any.
    topic_id: str = ""

    @property
    def size(self) -> int:
        """How many offsets; there may be fewer records, after compaction and between transactions."""
        return self.end - self.start

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} from offset {self.start} to {self.end}"


def whole_ranges(
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, str] | None = None,
) -> list[OffsetRange]:
    """One range for each partition that has something between its start and its end, by topic and partition."""
    ids = topic_ids or {}
    return [
        OffsetRange(item.topic, item.partition, starts[item], end, ids.get(item.topic, ""))
        for item, end in sorted(ends.items())
        if item in starts and starts[item] < end
    ]


def split_ranges(
    ranges: Sequence[OffsetRange], min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """Cuts ranges into tasks: none of more than max_records offsets, and at least min_partitions of them.

    As in Spark's Kafka connector, larger ranges are cut into more pieces. Nothing is ever joined, and no piece is
    empty, so that there may be fewer tasks than min_partitions where there are fewer offsets.
    """
    counts = [1 if max_records is None else -(-item.size // max_records) for item in ranges]
    if min_partitions is not None and sum(counts) < min_partitions:
        _spread([item.size for item in ranges], counts, min_partitions)
    return [piece for item, count in zip(ranges, counts, strict=True) for piece in _cut(item, count)]


def plan_ranges(
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, str] | None = None,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """The tasks of one read: whole_ranges(), then split_ranges()."""
    return split_ranges(whole_ranges(starts, ends, topic_ids), min_partitions, max_records)


def _spread(sizes: Sequence[int], counts: list[int], wanted: int) -> None:
    """Raises the counts until there are so many pieces, always where the pieces are the largest."""
    import heapq

    heap = [(-size / count, place) for place, (size, count) in enumerate(zip(sizes, counts, strict=True))]
    heapq.heapify(heap)
    missing = wanted - sum(counts)
    while missing > 0 and heap:
        _, place = heapq.heappop(heap)
        if counts[place] < sizes[place]:
            counts[place] += 1
            missing -= 1
            heapq.heappush(heap, (-sizes[place] / counts[place], place))


def _cut(item: OffsetRange, count: int) -> list[OffsetRange]:
    """So many pieces whose sizes differ by one at most."""
    edges = [item.start + item.size * number // count for number in range(count + 1)]
    return [OffsetRange(item.topic, item.partition, first, behind, item.topic_id) for first, behind in pairwise(edges)]


def limit_offsets(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """Ends of a micro-batch of at most `limit` offsets: each partition gets its share of what is left to read.

    A partition with something to read gets one offset at least, as far as the limit goes: beside a partition that is
    far behind, a small one is read too.
    """
    sizes = {item: end - starts[item] for item, end in ends.items() if starts.get(item, end) < end}
    if sum(sizes.values()) <= limit:
        return dict(ends)
    largest_first = sorted(sizes, key=lambda item: (-sizes[item], item))
    shares = dict.fromkeys(largest_first[:limit], 1)
    left = limit - len(shares)
    rest = sum(sizes[item] - 1 for item in shares)
    for item in shares:
        shares[item] += left * (sizes[item] - 1) // rest
    for item in largest_first[: limit - sum(shares.values())]:
        shares[item] += 1
    return {item: starts[item] + shares.get(item, 0) if item in sizes else end for item, end in ends.items()}


def count_offsets(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    """How many offsets lie between."""
    return sum(max(0, end - starts[item]) for item, end in ends.items() if item in starts)
