"""Where the offsets of a group go in a reset: earliest, latest, a time, a shift, an offset within what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import OffsetAndMetadata, TopicPartition

NewOffsets = dict[TopicPartition, int]
NO_OFFSET = -1


class NotCommitted(ValueError):
    """A partition without a committed offset, which there is nothing to shift by."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} has no committed offset to shift.")
        self.partition = partition


class Targets:
    """Computes new offsets; whom to ask, and what to say about surprises, is up to the tool."""

    def __init__(
        self,
        offsets_at: Callable[[Iterable[TopicPartition], int], NewOffsets],
        committed: Callable[[], Mapping[TopicPartition, OffsetAndMetadata | None]],
        on_late: Callable[[TopicPartition], None],
        on_moved: Callable[[TopicPartition, int, int], None],
    ) -> None:
        """offsets_at: the offsets at a time or special value, NO_OFFSET where no record is that young.

        on_late is called for a partition without records at or after a time, on_moved with the wanted offset and the
        nearest one there is.
        """
        self._offsets_at = offsets_at
        self._committed = committed
        self._on_late = on_late
        self._on_moved = on_moved

    def earliest(self, partitions: Iterable[TopicPartition]) -> NewOffsets:
        return self._offsets_at(partitions, EARLIEST)

    def latest(self, partitions: Iterable[TopicPartition]) -> NewOffsets:
        return self._offsets_at(partitions, LATEST)

    def at_time(self, partitions: Iterable[TopicPartition], moment_ms: int) -> NewOffsets:
        """The first offset at or after a time; the end where all records are older."""
        found = self._offsets_at(partitions, moment_ms)
        late = [partition for partition, offset in found.items() if offset == NO_OFFSET]
        for partition in late:
            self._on_late(partition)
        return {**found, **self.latest(late)}

    def current(self, partitions: Iterable[TopicPartition]) -> NewOffsets:
        """The committed offset; the end where there is none."""
        committed = self._committed()
        chosen = list(partitions)
        known = {each: found.offset for each in chosen if (found := committed.get(each)) is not None}
        return {**known, **self.latest([each for each in chosen if each not in known])}

    def shifted(self, partitions: Iterable[TopicPartition], by: int) -> NewOffsets:
        committed = self._committed()
        wanted = {}
        for partition in partitions:
            found = committed.get(partition)
            if found is None:
                raise NotCommitted(partition)
            wanted[partition] = found.offset + by
        return self.nearest(wanted)

    def last(self, partitions: Iterable[TopicPartition], count: int) -> NewOffsets:
        """So many before the end, or all there are."""
        chosen = list(partitions)
        starts, ends = self.earliest(chosen), self.latest(chosen)
        return {each: max(starts[each], ends[each] - count) for each in chosen}

    def nearest(self, wanted: Mapping[TopicPartition, int]) -> NewOffsets:
        """The wanted offsets, or the nearest ones there are."""
        starts, ends = self.earliest(wanted), self.latest(wanted)
        found = {}
        for partition, offset in wanted.items():
            found[partition] = min(max(offset, starts[partition]), ends[partition])
            if found[partition] != offset:
                self._on_moved(partition, offset, found[partition])
        return found
