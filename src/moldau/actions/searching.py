"""Looks through ranges of partitions for records that match, a batch at a time, and knows how far it is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.actions.calls import Call
from moldau.actions.decoding import AUTO, Schema, read_schema, show_record
from moldau.actions.matching import Matcher
from moldau.actions.messages import bounds_of, isolation_of, partitions_of, starts_at
from moldau.actions.record_reading import Range, size_of
from moldau.actions.refusals import Refused
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition

if TYPE_CHECKING:
    from moldau.client.consumer import Consumer

TICK_MS = 250
SEARCH_BATCH = 500
MATCHES_MAX = 500
PROGRESS_S = 0.25
# Formats whose bytes contain the text that people see.
PLAIN_FORMATS = (AUTO, "json", "text")


def matcher_of(call: Call) -> Matcher:
    """The conditions of a question; one without any takes everything."""
    key = call.body.get("key_is")
    if key is not None and not isinstance(key, str):
        raise Refused("key_is is not a text.")
    return Matcher(
        call.text("text", ""),
        call.text("place", "anywhere"),
        None if not key else key.encode(),
        call.text("field", ""),
        not call.flag("exact_case"),
    )


def decoded(record: ConsumerRecord, key: Schema, value: Schema) -> str:
    """The value's text where its bytes do not show it."""
    if value.format in PLAIN_FORMATS and not record.topic.startswith("__"):
        return ""
    return show_record(record, key, value)[1].text


class Search:
    """One search, from the beginning of its ranges to where these ended when it began."""

    def __init__(self, call: Call, ranges: Mapping[TopicPartition, Range]) -> None:
        self.key, self.value = read_schema(call.body.get("key")), read_schema(call.body.get("value"))
        self.progress = Progress(ranges)
        self._ranges = ranges
        self._matcher = matcher_of(call)

    def begin(self, consumer: Consumer) -> None:
        """Blocks."""
        chosen = {each: found for each, found in self._ranges.items() if found.start < found.end}
        consumer.assign(list(chosen))
        for each, found in chosen.items():
            consumer.seek(each, found.start)

    def look(self, consumer: Consumer) -> list[ConsumerRecord]:
        """Records of the next batch that match. Blocks."""
        records = consumer.poll(TICK_MS, SEARCH_BATCH)
        self.progress.note(consumer, records)
        return [record for record in records if self._wants(record)]

    def _wants(self, record: ConsumerRecord) -> bool:
        if record.offset >= self._ranges[TopicPartition(record.topic, record.partition)].end:
            return False
        return self._matcher.matches(record, decoded(record, self.key, self.value))


async def search_of(call: Call) -> Search:
    """The search that a question asks for."""
    partitions = await partitions_of(call.viewer, call.text("topic"), call.body.get("partitions"))
    bounds = await bounds_of(call.viewer, partitions, isolation_of(call))
    return Search(call, await _ended(call, await starts_at(call, bounds)))


async def _ended(call: Call, ranges: dict[TopicPartition, Range]) -> dict[TopicPartition, Range]:
    """With the end that a question may set: a time up to which it looks."""
    until = call.optional_number("until")
    if until is None:
        return ranges
    at = await call.viewer.offsets_at(ranges, until)
    return {
        each: Range(found.start, max(found.start, at[each]) if at.get(each, -1) >= 0 else found.end)
        for each, found in ranges.items()
    }


class Progress:
    """How much of the ranges has been looked through."""

    def __init__(self, ranges: Mapping[TopicPartition, Range]) -> None:
        self._ranges = ranges
        self._positions = {each: found.start for each, found in ranges.items()}
        self._total = sum(found.end - found.start for found in ranges.values())
        self._began = time.monotonic()
        self._said_at = 0.0
        self._records = 0
        self._bytes = 0

    @property
    def done(self) -> bool:
        return all(self._positions[each] >= found.end for each, found in self._ranges.items())

    @property
    def bytes_read(self) -> int:
        return self._bytes

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Where looking goes on in each partition."""
        return dict(self._positions)

    def note(self, consumer: Consumer, records: list[ConsumerRecord]) -> None:
        self._records += len(records)
        self._bytes += sum(size_of(record) for record in records)
        finished = []
        for each, found in self._ranges.items():
            if self._positions[each] < found.end:
                self._positions[each] = min(consumer.position(each), found.end)
                if self._positions[each] >= found.end:
                    finished.append(each)
        if finished:
            consumer.pause(finished)

    def due(self, now_s: float) -> bool:
        return now_s - self._said_at >= PROGRESS_S

    def event(self) -> dict[str, object]:
        self._said_at = time.monotonic()
        passed = sum(self._positions[each] - found.start for each, found in self._ranges.items())
        return {
            "offsets": passed,
            "of_offsets": self._total,
            "scanned": self._records,
            "bytes": self._bytes,
            "seconds": round(time.monotonic() - self._began, 2),
        }
