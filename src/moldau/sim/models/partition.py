"""What a partition's log must look like, from what clients sent and were told; one checker per sentence.

A `PartitionModel` is fed with sends, acknowledgements and reads while the world runs. After a restart, and whenever
somebody wants, a `LogView` (the whole log as read back) is held against it. Kafka's promises for one node:

- A killed process loses nothing that it acknowledged.
- A power loss may take unsynced data, but only from the end: what is left is a prefix of what was appended.
- Where every append is synced before it is acknowledged, a power loss takes nothing acknowledged either.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from moldau.sim.kernel.world import Violation

NEVER_CUT = 1 << 62


class ReadRecord(NamedTuple):
    """One record as a consumer sees it."""

    offset: int
    timestamp: int
    value: bytes
    producer_id: int
    sequence: int


class LogView:
    """A partition's log from its start to its end, as read at one moment."""

    def __init__(self, start: int, end: int, records: list[ReadRecord]) -> None:
        self.start = start
        self.end = end
        self.records = records


class Sent(NamedTuple):
    """One record as it was sent: the order it belongs to, its number in it, and whether it is there at most once."""

    order: str | None
    number: int
    once: bool


class PartitionModel:
    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: dict[bytes, Sent] = {}
        self.refused: set[bytes] = set()
        self.values: dict[int, bytes] = {}
        self.acknowledged_end = 0
        self.durable_end = 0
        self.cut_at = NEVER_CUT
        self.start_low = 0
        self.start_high = 0
        self.retention = False

    def on_sent(self, value: bytes, sent: Sent) -> None:
        self.sent[value] = sent

    def on_refused(self, value: bytes) -> None:
        """The broker said that it did not append it, and it was never sent before."""
        self.refused.add(value)

    def on_acknowledged(self, offset: int, value: bytes, *, durable: bool) -> None:
        self.on_value(offset, value, "acknowledged")
        self.acknowledged_end = max(self.acknowledged_end, offset + 1)
        if durable:
            self.durable_end = max(self.durable_end, offset + 1)

    def on_read(self, offset: int, value: bytes) -> None:
        self.on_value(offset, value, "read")

    def on_value(self, offset: int, value: bytes, how: str) -> None:
        """An offset keeps its value, whoever says it."""
        known = self.values.get(offset)
        if known is not None and known != value:
            raise Violation(
                f"an offset keeps its value: {self.name} offset {offset} was {known[:40]!r},"
                f" now {how} as {value[:40]!r}"
            )
        if value not in self.sent:
            raise Violation(f"nothing is invented: {self.name} offset {offset} {how} as {value[:40]!r}")
        self.values[offset] = value

    def on_start_asked(self, offset: int) -> None:
        """Somebody asks for the records before this offset to be deleted."""
        self.start_high = max(self.start_high, offset)

    def truncate(self, offset: int) -> None:
        """Somebody who may truncate the log does so; it may take effect now or, after a crash, not at all."""
        self._forget_from(offset)
        self.durable_end = min(self.durable_end, offset)
        self.cut_at = min(self.cut_at, offset)

    def _forget_from(self, offset: int) -> None:
        for known in [known for known in self.values if known >= offset]:
            del self.values[known]
        self.acknowledged_end = min(self.acknowledged_end, offset)

    def on_power_loss(self, end: int) -> None:
        """The log came back with this end: what was beyond it is gone, and its offsets are free again."""
        if end < self.durable_end:
            raise Violation(
                f"what was synced is never lost: {self.name} ends at {end}, synced up to {self.durable_end}"
            )
        # A truncation that was not synced may be undone: then what it removed is there again.
        self._forget_from(min(end, max(self.cut_at, self.durable_end)))
        self.cut_at = NEVER_CUT

    def check(self, view: LogView) -> None:
        """Holds the whole log against everything that is known of it, and learns the values it did not know."""
        check_start_and_end_are_sane(self, view)
        check_offsets_have_no_gap(self, view)
        check_what_was_acknowledged_is_there(self, view)
        for record in view.records:
            self.on_value(record.offset, record.value, "found")
        check_what_was_refused_is_not_there(self, view)
        check_nothing_is_there_twice(self, view)
        check_a_producers_records_are_in_its_order(self, view)
        check_sequences_of_a_producer_are_contiguous(self, view)


def check_start_and_end_are_sane(model: PartitionModel, view: LogView) -> None:
    if view.start < 0 or view.end < view.start:
        raise Violation(f"a log starts before it ends: {model.name} from {view.start} to {view.end}")
    if view.start > model.start_high and not model.retention:
        raise Violation(f"a log start moves only when asked: {model.name} at {view.start}, asked {model.start_high}")


def check_offsets_have_no_gap(model: PartitionModel, view: LogView) -> None:
    if len(view.records) != view.end - view.start:
        raise Violation(
            f"offsets have no gap: {model.name} has {len(view.records)} records from {view.start} to {view.end}"
        )
    for index, record in enumerate(view.records):
        if record.offset != view.start + index:
            raise Violation(f"offsets have no gap: {model.name} has {record.offset} at place {view.start + index}")


def check_what_was_acknowledged_is_there(model: PartitionModel, view: LogView) -> None:
    if view.end < model.acknowledged_end:
        raise Violation(
            f"what was acknowledged is there: {model.name} ends at {view.end},"
            f" acknowledged up to {model.acknowledged_end}"
        )


def check_what_was_refused_is_not_there(model: PartitionModel, view: LogView) -> None:
    for record in view.records:
        if record.value in model.refused:
            raise Violation(f"what was refused is not there: {model.name} offset {record.offset} {record.value[:40]!r}")


def check_nothing_is_there_twice(model: PartitionModel, view: LogView) -> None:
    seen: dict[bytes, int] = {}
    for record in view.records:
        if not model.sent[record.value].once:
            continue
        first = seen.setdefault(record.value, record.offset)
        if first != record.offset:
            raise Violation(
                f"a record sent once is there once: {model.name} {record.value[:40]!r} at {first} and {record.offset}"
            )


def check_a_producers_records_are_in_its_order(model: PartitionModel, view: LogView) -> None:
    last: dict[str, int] = {}
    for record in view.records:
        sent = model.sent[record.value]
        if sent.order is None:
            continue
        if sent.number <= last.get(sent.order, -1):
            raise Violation(
                f"a producer's records are in its order: {model.name} offset {record.offset} of {sent.order}"
            )
        last[sent.order] = sent.number


def check_sequences_of_a_producer_are_contiguous(model: PartitionModel, view: LogView) -> None:
    last: dict[int, int] = {}
    for record in view.records:
        if record.producer_id < 0:
            continue
        previous = last.get(record.producer_id)
        if previous is not None and record.sequence != previous + 1:
            raise Violation(
                f"sequences of a producer are contiguous: {model.name} offset {record.offset} has"
                f" {record.sequence} after {previous}"
            )
        last[record.producer_id] = record.sequence


def first_at_or_after(view: LogView, timestamp: int) -> tuple[int, int] | None:
    """The right response to a lookup by timestamp: (offset, timestamp) of the first record that is not older."""
    highest: list[int] = []
    for record in view.records:
        highest.append(max(record.timestamp, highest[-1] if highest else record.timestamp))
    index = bisect_left(highest, timestamp)
    if index == len(highest):
        return None
    return view.records[index].offset, view.records[index].timestamp


def first_of_largest_timestamp(view: LogView) -> tuple[int, int] | None:
    """The right response to a lookup of the largest timestamp: the first record that has it."""
    best: ReadRecord | None = None
    for record in view.records:
        if best is None or record.timestamp > best.timestamp:
            best = record
    return None if best is None else (best.offset, best.timestamp)


def check_timestamp_lookup_finds_the_first_record_not_older(
    model: PartitionModel, view: LogView, timestamp: int, found: tuple[int, int] | None
) -> None:
    expected = first_at_or_after(view, timestamp)
    if found != expected:
        raise Violation(
            f"a timestamp finds the first record that is not older: {model.name} at {timestamp}:"
            f" {found}, not {expected}"
        )
