"""What is to be said of records that were delivered: types, which records are still held, and the ranges of a request.

A record is held from its delivery until what was said of it is on its way. Ranges go out as Kafka's client makes them:
neighbouring offsets are one batch with a type for each, a run of more than ten equal types is a batch of its own with
one type, and offsets that were locked but hold no record are gaps.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from moldau.client.errors import ClientError
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition

# Locked offsets without a record: compacted away, or a transaction's marker.
GAP = 0

# A run of equal types that is longer takes less room as a batch of its own.
SHORT_RUN_MAX = 10


class AcknowledgeType(enum.IntEnum):
    """What becomes of a record that was delivered.

    ACCEPT: it is done. RELEASE: it is to be tried again, by anyone, up to the group's limit of deliveries. REJECT: it
    cannot be processed, and need not be tried again. RENEW: more time is needed, the lock starts anew.
    """

    # Done: it is never delivered again.
    ACCEPT = 1
    # Not done: it is delivered again, to anyone, unless the group's limit of deliveries is reached.
    RELEASE = 2
    # Cannot be done: it is never delivered again.
    REJECT = 3
    # Not done yet: the lock starts anew (KIP-1222).
    RENEW = 4


class SharePartition(NamedTuple):
    """A partition by its topic's id, which is another one when the topic is created again."""

    topic_id: bytes
    topic: str
    partition: int

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Range(NamedTuple):
    """Neighbouring offsets: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: list[int]


def to_ranges(types: Mapping[int, int]) -> list[Range]:
    """The ranges, ascending, that say the same as a type for each offset."""
    runs: list[Range] = []
    first, following, running = 0, -1, -1
    for offset, kind in sorted(types.items()):
        if offset != following or kind != running:
            if running >= 0:
                runs.append(Range(first, following - 1, [running]))
            first, running = offset, kind
        following = offset + 1
    if running >= 0:
        runs.append(Range(first, following - 1, [running]))
    ranges: list[Range] = []
    mixed = False
    for run in runs:
        size = run.last_offset - run.first_offset + 1
        if size > SHORT_RUN_MAX:
            ranges.append(run)
            mixed = False
        elif mixed and ranges[-1].last_offset == run.first_offset - 1:
            before = ranges[-1]
            ranges[-1] = Range(before.first_offset, run.last_offset, _each(before) + run.types * size)
        else:
            ranges.append(run)
            mixed = True
    return ranges


def _each(row: Range) -> list[int]:
    return row.types if len(row.types) > 1 else row.types * (row.last_offset - row.first_offset + 1)


class Acknowledgements:
    """Types for offsets of one partition, on their way to the node that delivered the records."""

    def __init__(
        self,
        partition: SharePartition,
        node_id: int,
        types: dict[int, int],
        deadline_ms: int = 0,
        when_done: Callable[[Acknowledgements], None] | None = None,
    ) -> None:
        """deadline_ms: until then, errors that pass are tried again."""
        self.partition = partition
        self.node_id = node_id
        self.types = types
        self.deadline_ms = deadline_ms
        self.when_done = when_done
        # Records to renew, which are handed out again once that is confirmed.
        self.renewing: dict[int, ConsumerRecord] = {}
        self.done = False
        self.error: ClientError | None = None

    @property
    def renews(self) -> bool:
        return AcknowledgeType.RENEW in self.types.values()

    @property
    def offsets(self) -> set[int]:
        """The offsets that the user knows of."""
        return {offset for offset, kind in self.types.items() if kind != GAP}

    def finish(self, error: ClientError | None) -> None:
        assert not self.done, "acknowledgements have one result"
        self.done = True
        self.error = error
        if self.when_done is not None:
            self.when_done(self)


class Held:
    """Records of one partition that the user works on, and what was said of them so far."""

    def __init__(self, partition: SharePartition, node_id: int, locked_ms: int) -> None:
        self.partition = partition
        self.node_id = node_id
        # When the oldest of the locks began.
        self.locked_ms = locked_ms
        self.records: dict[int, ConsumerRecord] = {}
        self.types: dict[int, int] = {}
        # Offsets without a usable record that the user may decide about all the same.
        self.failed: set[int] = set()
        self.renewable = True

    def add(self, records: Iterable[ConsumerRecord], gaps: Iterable[int]) -> None:
        for record in records:
            self.records[int(record.offset)] = record
        for offset in gaps:
            self.types[offset] = GAP

    def fail(self, offsets: Iterable[int], kind: AcknowledgeType) -> None:
        """These have no usable record; what becomes of them the user may decide otherwise."""
        for offset in offsets:
            self.types[offset] = kind
            self.failed.add(offset)

    @property
    def undecided(self) -> list[int]:
        """The records of which nothing was said yet."""
        return [offset for offset in self.records if offset not in self.types]

    def accept_all(self) -> None:
        self.types = dict.fromkeys(self.records, int(AcknowledgeType.ACCEPT)) | self.types

    def take(self, deadline_ms: int = 0) -> Acknowledgements | None:
        """What was said goes on its way, and its records are not held any more."""
        if not self.types:
            return None
        types, self.types = self.types, {}
        taken = Acknowledgements(self.partition, self.node_id, types, deadline_ms)
        if taken.renews:
            taken.renewing = {
                offset: record for offset, record in self.records.items() if types.get(offset) == AcknowledgeType.RENEW
            }
        if len(types) >= len(self.records) and types.keys() >= self.records.keys():
            self.records = {}
        else:
            for offset in types:
                self.records.pop(offset, None)
        self.failed.difference_update(types)
        return taken
