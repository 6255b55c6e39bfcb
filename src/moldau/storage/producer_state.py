"""What a log knows about its producers: sequences of the last batches, epochs, open transactions.

A leader checks a batch before it is written (`check`) and notes it afterwards (`note`), so that a failed write leaves
no trace. Followers and recovery only note. Retried batches are found in a window of the last five batches. Kafka:
ProducerStateManager, ProducerAppendInfo.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from moldau.protocol.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    KafkaError,
)
from moldau.records.batch import BatchHeader

NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
BATCHES_KEPT: Final = 5
SEQUENCE_MAX: Final = 0x7FFFFFFF
POINTS_MAX: Final = 64
POINT_ENTRIES_MAX: Final = 200_000  # in all points of a log


class ProducedBatch:
    """One of the last batches of a producer."""

    def __init__(
        self, first_sequence: int, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int
    ) -> None:
        self.first_sequence = first_sequence
        self.last_sequence = last_sequence
        self.last_offset = last_offset
        self.offset_delta = offset_delta
        self.timestamp = timestamp


class TransactionMarker:
    """The content of a control record that ends a transaction."""

    def __init__(self, commit: bool, coordinator_epoch: int) -> None:
        self.commit = commit
        self.coordinator_epoch = coordinator_epoch


class CompletedTransaction:
    """A transaction whose marker was just written."""

    def __init__(self, producer_id: int, first_offset: int, last_offset: int, aborted: bool) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.aborted = aborted


class ProducerEntry:
    """One producer id in one log."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        # When it was last heard of, by the clock of this node: timestamps are the client's, and may be years old.
        self.seen_ms = 0
        self.transaction_first_offset = NO_OFFSET
        self.batches: list[ProducedBatch] = []
        # What tells a truncation how much of this comes from above it: where the entry begins (-1: before all that is
        # remembered), and the offsets of the last batch or marker and of the last marker that changed it.
        self.first_at: int = NO_OFFSET
        self.changed_at: int = NO_OFFSET
        self.marker_at: int = NO_OFFSET
        self.generation = 0  # that of the state that may change it; a copy is made for a later one

    def copy(self) -> ProducerEntry:
        other = ProducerEntry(self.producer_id)
        other.epoch = self.epoch
        other.coordinator_epoch = self.coordinator_epoch
        other.last_timestamp = self.last_timestamp
        other.seen_ms = self.seen_ms
        other.transaction_first_offset = self.transaction_first_offset
        other.batches = self.batches[:]
        other.first_at = self.first_at
        other.changed_at = self.changed_at
        other.marker_at = self.marker_at
        return other

    def on_restored(self, end_offset: int) -> None:
        """It comes from a snapshot at this offset, which does not say what changed it when. Only markers leave a
        coordinator epoch, so without one the last batch was the last change."""
        self.changed_at = self.marker_at = end_offset - 1
        if self.coordinator_epoch < 0 and self.batches:
            self.changed_at = self.last_offset
            self.marker_at = NO_OFFSET

    def truncated_to(self, end_offset: int) -> ProducerEntry | None:
        """As it was when the log ended there; None if too little is remembered. It existed then."""
        if self.changed_at < end_offset:
            return self
        kept = [batch for batch in self.batches if batch.last_offset < end_offset]
        if self.marker_at >= end_offset or not kept:
            return None
        entry = self.copy()
        entry.batches = kept
        entry.changed_at = max(kept[-1].last_offset, self.marker_at)
        entry.last_timestamp = kept[-1].timestamp
        if entry.transaction_first_offset >= end_offset:
            entry.transaction_first_offset = NO_OFFSET
        return entry

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(self, header: BatchHeader) -> ProducedBatch | None:
        if header.producer_epoch != self.epoch:
            return None
        first_sequence = header.base_sequence
        batches = self.batches
        if not batches or batches[-1].last_sequence + 1 == first_sequence:
            return None  # nearly always: what comes next
        last_sequence = header.last_sequence
        for batch in batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        return None

    def take_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []

    def check_data(self, header: BatchHeader, check_sequence: bool) -> None:
        """Raises when the batch may not follow what this producer wrote so far."""
        if header.producer_epoch < self.epoch:
            raise KafkaError(
                INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {self.producer_id} is {header.producer_epoch}, which is smaller than the last seen "
                f"epoch {self.epoch}",
            )
        if check_sequence:
            self.check_sequence(header)
        if self.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                INVALID_TXN_STATE,
                f"Producer {self.producer_id} wrote outside of its transaction, which is open since offset "
                f"{self.transaction_first_offset}",
            )

    def check_sequence(self, header: BatchHeader) -> None:
        sequence = header.base_sequence
        if self.epoch == NO_EPOCH:
            return  # nothing is known (any more): whatever comes first is the start
        if header.producer_epoch != self.epoch:
            if sequence != 0:
                raise KafkaError(
                    OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {self.producer_id}: "
                    f"{header.producer_epoch} (epoch), {sequence} (sequence)",
                )
            return
        last = self.last_sequence
        if sequence != (0 if last == SEQUENCE_MAX else last + 1):
            raise KafkaError(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {self.producer_id}: {sequence} (incoming sequence), "
                f"{last} (current end sequence)",
            )

    def check_marker(self, header: BatchHeader, marker: TransactionMarker, transaction_version: int) -> None:
        """From transaction version 2 on a marker that ends something has a higher epoch than what it ends;
        one that ends nothing may come again with the same."""
        ends_its_own_epoch = (
            transaction_version >= 2
            and header.producer_epoch == self.epoch
            and self.transaction_first_offset != NO_OFFSET
        )
        if header.producer_epoch < self.epoch or ends_its_own_epoch:
            raise KafkaError(
                INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {self.producer_id} in a marker is {header.producer_epoch}, which may not follow "
                f"the last seen epoch {self.epoch}",
            )
        if marker.coordinator_epoch < self.coordinator_epoch:
            raise KafkaError(
                TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producer {self.producer_id}: {marker.coordinator_epoch} (zombie), "
                f"{self.coordinator_epoch} (current)",
            )

    def note_data(self, header: BatchHeader) -> bool:
        """Takes the batch over; True when it opens a transaction."""
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches = []
        last_offset = header.last_offset
        batches = self.batches
        if len(batches) >= BATCHES_KEPT:
            del batches[0]
        batches.append(
            ProducedBatch(
                header.base_sequence,
                header.last_sequence,
                last_offset,
                last_offset - header.base_offset,
                header.max_timestamp,
            )
        )
        self.last_timestamp = header.max_timestamp
        if header.is_transactional and self.transaction_first_offset == NO_OFFSET:
            self.transaction_first_offset = header.base_offset
            return True
        return False

    def note_marker(self, header: BatchHeader, marker: TransactionMarker) -> CompletedTransaction | None:
        completed: CompletedTransaction | None = None
        if self.transaction_first_offset != NO_OFFSET:
            completed = CompletedTransaction(
                self.producer_id, self.transaction_first_offset, header.last_offset, not marker.commit
            )
        self.take_epoch(header.producer_epoch)
        self.transaction_first_offset = NO_OFFSET
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp = header.max_timestamp
        return completed


class ProducerPoint:
    """The state at an offset, kept in memory. Its entries are shared with later states until those change them."""

    def __init__(
        self, offset: int, entries: dict[int, ProducerEntry], ongoing: dict[int, int], unreplicated: dict[int, int]
    ) -> None:
        self.offset = offset
        self.entries = entries
        self.ongoing = ongoing
        self.unreplicated = unreplicated


class VerificationGuard:
    """Held while a leader asks whether a write belongs to a transaction (KIP-890). Whoever asked before a marker
    finds another one after it."""

    def __init__(self, epoch: int, lowest_sequence: int, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        self.created_ms = now_ms


class ProducerState:
    """All producers of one log, and which of their transactions hold back readers of committed records."""

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = 0  # the state is that of the log up to here
        # First offsets of open transactions in rising order, and of finished ones (-> marker offset) that replication
        # has not passed yet.
        self.ongoing: dict[int, int] = {}
        self.unreplicated: dict[int, int] = {}
        # By producer id, while a first write of a transaction is verified.
        self.guards: dict[int, VerificationGuard] = {}
        self.points: list[ProducerPoint] = []
        self.generation = 0

    def clear(self, end_offset: int) -> None:
        self.entries = {}
        self.points = []
        self.ongoing = {}
        self.unreplicated = {}
        self.guards = {}
        self.end_offset = end_offset

    def restore(self, entries: list[ProducerEntry], end_offset: int) -> None:
        self.clear(end_offset)
        opened: list[tuple[int, int]] = []
        for entry in entries:
            entry.on_restored(end_offset)
            entry.generation = self.generation
            self.entries[entry.producer_id] = entry
            if entry.transaction_first_offset != NO_OFFSET:
                opened.append((entry.transaction_first_offset, entry.producer_id))
        opened.sort()
        for first_offset, producer_id in opened:
            self.ongoing[first_offset] = producer_id

    # Going back

    def mark(self) -> None:
        """Remembers the state as it is now, so that a truncation need not read the log from its last roll on."""
        if not self.entries and not self.points:
            return
        if self.points and self.points[-1].offset >= self.end_offset:
            return
        self.points.append(ProducerPoint(self.end_offset, self.entries, dict(self.ongoing), dict(self.unreplicated)))
        self._share_entries(self.entries)
        if len(self.points) > POINTS_MAX:
            del self.points[: POINTS_MAX // 2 : 2]  # far back, a coarser row will do
        while len(self.points) > 2 and len(self.points) * len(self.entries) > POINT_ENTRIES_MAX:
            del self.points[0]

    def _share_entries(self, entries: dict[int, ProducerEntry]) -> None:
        """Entries that are in a point too: whoever changes one makes a copy first."""
        self.entries = dict(entries)
        self.generation += 1

    def go_back(self, offset: int) -> bool:
        """The log ends at `offset` from now on. False if what is remembered of each producer does not say what it was
        then; nothing has changed in that case."""
        entries: dict[int, ProducerEntry] = {}
        for entry in self.entries.values():
            if entry.first_at >= offset:
                continue
            before = entry.truncated_to(offset)
            if before is None:
                return False
            entries[before.producer_id] = before
        # A transaction that was ended by a marker at or above the offset has an entry that could not be truncated.
        self._set(ProducerPoint(offset, entries, self.ongoing, self.unreplicated), offset)
        return True

    def nearest_point(self, offset: int) -> ProducerPoint | None:
        """The last one that is not above the offset."""
        found: ProducerPoint | None = None
        for point in self.points:
            if point.offset <= offset:
                found = point
        return found

    def go_back_to(self, point: ProducerPoint) -> None:
        self._set(point, point.offset)

    def _set(self, point: ProducerPoint, offset: int) -> None:
        self._share_entries(point.entries)
        self.ongoing = {first: producer_id for first, producer_id in point.ongoing.items() if first < offset}
        self.unreplicated = {first: last for first, last in point.unreplicated.items() if last < offset}
        self.guards = {}
        self.end_offset = offset
        self.points = [known for known in self.points if known.offset <= offset]

    def keep_known(self, before: dict[int, ProducerEntry], unreplicated: dict[int, int], end_offset: int) -> None:
        """The log was truncated at `end_offset`: of what was known before, batches and markers below it are still in
        the log, and a snapshot has told of each producer's last batch only."""
        for first_offset, last_offset in unreplicated.items():
            if last_offset < end_offset:
                self.unreplicated[first_offset] = last_offset
        for shared in list(self.entries.values()):
            known = before.get(shared.producer_id)
            if known is None or known is shared:
                continue
            entry = shared.copy()
            entry.generation = self.generation
            self.entries[entry.producer_id] = entry
            entry.seen_ms = known.seen_ms
            kept = [batch for batch in known.batches if batch.last_offset < end_offset]
            if known.epoch == entry.epoch and len(kept) > len(entry.batches):
                entry.batches = kept

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_first_offset != NO_OFFSET and entry.epoch == producer_epoch

    def guard_for(self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int) -> VerificationGuard:
        """The guard under which a write with this sequence is verified."""
        guard = self.guards.get(producer_id)
        if guard is None or guard.epoch < producer_epoch:
            guard = VerificationGuard(producer_epoch, sequence, now_ms)
            self.guards[producer_id] = guard
        elif guard.epoch == producer_epoch and sequence < guard.lowest_sequence:
            guard.lowest_sequence = sequence
        return guard

    def check_guard(self, guard: VerificationGuard, producer_id: int, sequence: int, starts_at_zero: bool) -> None:
        """Raises when a write that was verified under this guard came too late, or before another that it follows."""
        if self.guards.get(producer_id) is not guard:
            raise KafkaError(INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        if producer_id in self.entries:
            # What it wrote so far says what comes next. The lowest sequence that ever waited under this guard may be
            # that of a request which came again, long after it was answered: nobody waits for that one.
            return
        if sequence > guard.lowest_sequence or (starts_at_zero and sequence != 0):
            raise KafkaError(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id}: {sequence} (incoming sequence), "
                f"{guard.lowest_sequence} (lowest sequence that waits)",
            )

    def find_duplicate(self, header: BatchHeader) -> ProducedBatch | None:
        entry = self.entries.get(header.producer_id)
        return entry.find_duplicate(header) if entry is not None else None

    def check(
        self, header: BatchHeader, marker: TransactionMarker | None, check_sequence: bool, transaction_version: int
    ) -> None:
        """Raises KafkaError when a leader must refuse this batch."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return
        if marker is not None:
            entry.check_marker(header, marker, transaction_version)
        elif not header.is_control:
            entry.check_data(header, check_sequence)

    def check_several(
        self, headers: list[BatchHeader], markers: list[TransactionMarker | None], check_sequence: bool
    ) -> None:
        """The same for an append of several batches, where each one is checked on top of those before it."""
        copies: dict[int, ProducerEntry] = {}
        for index in range(len(headers)):
            header = headers[index]
            if header.producer_id < 0:
                continue
            copy = copies.get(header.producer_id)
            if copy is None:
                known = self.entries.get(header.producer_id)
                copy = known.copy() if known is not None else ProducerEntry(header.producer_id)
                copies[header.producer_id] = copy
            marker = markers[index]
            if marker is not None:
                copy.check_marker(header, marker, 0)
                copy.note_marker(header, marker)
            elif not header.is_control:
                copy.check_data(header, check_sequence)
                copy.note_data(header)

    def note(self, header: BatchHeader, marker: TransactionMarker | None, now_ms: int) -> CompletedTransaction | None:
        """The batch is in the log: the only place where producer state grows."""
        entry = self.entries.get(header.producer_id)
        if marker is not None and self.guards:
            self.guards.pop(header.producer_id, None)
        if entry is None:
            if header.is_control and marker is None:
                return None
            entry = ProducerEntry(header.producer_id)
            entry.generation = self.generation
            entry.first_at = header.base_offset
            self.entries[header.producer_id] = entry
        elif entry.generation != self.generation:
            entry = entry.copy()
            entry.generation = self.generation
            self.entries[header.producer_id] = entry
        entry.seen_ms = now_ms
        if marker is None:
            if header.is_control:
                return None
            entry.changed_at = header.last_offset
            if entry.note_data(header):
                self.ongoing[header.base_offset] = header.producer_id
            return None
        entry.changed_at = entry.marker_at = header.last_offset
        return entry.note_marker(header, marker)

    def complete(self, completed: CompletedTransaction) -> None:
        """Its marker is written; readers of committed records may pass once it is replicated."""
        self.ongoing.pop(completed.first_offset, None)
        self.unreplicated[completed.first_offset] = completed.last_offset

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Up to where everything is decided once `completed` counts as finished."""
        for first_offset, producer_id in self.ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    @property
    def has_unstable(self) -> bool:
        return len(self.ongoing) > 0 or len(self.unreplicated) > 0

    def first_unstable_offset(self) -> int:
        """First offset of the earliest transaction that is not finished and replicated, -1 without one."""
        found: int = NO_OFFSET
        for first_offset in self.ongoing:
            found = first_offset
            break
        for first_offset in self.unreplicated:
            if found == NO_OFFSET or first_offset < found:
                found = first_offset
        return found

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forgets finished transactions whose marker is below the high watermark."""
        if not self.unreplicated:
            return
        passed = [first for first, last in self.unreplicated.items() if last < high_watermark]
        for first_offset in passed:
            del self.unreplicated[first_offset]

    def on_log_start(self, log_start_offset: int) -> None:
        self.on_high_watermark(log_start_offset)
        if self.end_offset < log_start_offset:
            self.end_offset = log_start_offset

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forgets producers that were silent for too long and have no open transaction; says how many."""
        expired: list[int] = []
        for entry in self.entries.values():
            if entry.transaction_first_offset == NO_OFFSET and now_ms - entry.seen_ms >= expiration_ms:
                expired.append(entry.producer_id)
        for producer_id in expired:
            del self.entries[producer_id]
        for producer_id in [known for known, one in self.guards.items() if now_ms - one.created_ms >= expiration_ms]:
            del self.guards[producer_id]
        return len(expired)


def first_sequence_of(last_sequence: int, offset_delta: int) -> int:
    """Sequences count from 0 to the largest int32 and start again at 0."""
    if last_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    first: i64 = last_sequence - offset_delta
    if first < 0:
        first += SEQUENCE_MAX + 1
    return first
