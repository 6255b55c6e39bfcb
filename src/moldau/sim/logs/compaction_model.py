"""What a compacted log must hold: a simple model that is told of every append, and checks what a reader finds.

What must hold: a read is a subsequence of what was appended, unchanged; the last value of every key is there; a
tombstone stays for its time; nothing that is gone comes back; nothing of an open transaction and nothing in the active
segment goes; a reader of committed records sees no aborted one, and every committed one that is there.
"""

from __future__ import annotations

from moldau.records.batch import BatchHeader, has_valid_crc, split_batches
from moldau.records.walk import Record, read_records
from moldau.sim.kernel.world import Violation
from moldau.storage.control_markers import read_marker


class Appended:
    """One record as it went in."""

    __slots__ = ("aborted", "key", "offset", "timestamp", "value")

    def __init__(self, offset: int, key: bytes, value: bytes | None, timestamp: int) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.aborted = False


class CompactionModel:
    """`live` are the records that may still be in the log: those of the last look and those appended since."""

    def __init__(self, delete_retention_ms: int) -> None:
        self.delete_retention_ms = delete_retention_ms
        self.appended_total = 0
        self.live: dict[int, Appended] = {}
        self.last: dict[bytes, Appended] = {}  # of each key, among what was committed
        self.open: dict[int, list[Appended]] = {}  # of each producer with a transaction under way
        # The time of the first run that has seen a tombstone; before that plus the retention it may not go.
        self._seen_ms: dict[int, int] = {}

    # What happened

    def append(self, records: list[Appended], producer_id: int, transactional: bool) -> None:
        """Records that have their offsets by now."""
        self.appended_total += len(records)
        for record in records:
            self.live[record.offset] = record
        if transactional:
            self.open.setdefault(producer_id, []).extend(records)
        else:
            self._commit(records)

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        records = self.open.pop(producer_id)
        if commit:
            self._commit(records)
        else:
            for record in records:
                record.aborted = True

    def _commit(self, records: list[Appended]) -> None:
        for record in records:
            last = self.last.get(record.key)
            if last is None or last.offset < record.offset:
                self.last[record.key] = record

    def compacted(self, end_offset: int, now_ms: int) -> None:
        """A run may have seen everything below `end_offset`."""
        for record in self.live.values():
            if record.offset >= end_offset:
                break
            if record.value is None:
                self._seen_ms.setdefault(record.offset, now_ms)

    # What must hold

    def check(self, found: LogContent, active_base_offset: int, now_ms: int) -> None:
        """Holds what a reader has found against what was appended; what is gone now must never come back."""
        live = self.live
        for offset, record in found.records.items():
            appended = live.get(offset)
            if appended is None:
                raise Violation(f"what was removed does not come back ({offset})")
            if (appended.key, appended.value, appended.timestamp) != (record.key, record.value, record.timestamp):
                raise Violation(f"the record at {offset} is what was appended there")
        self._check_untouched(found, active_base_offset)
        self._check_last_values(found, now_ms)
        self._check_committed(found)
        self.live = {offset: live[offset] for offset in found.records}
        self._seen_ms = {offset: seen for offset, seen in self._seen_ms.items() if offset in self.live}

    def _check_untouched(self, found: LogContent, active_base_offset: int) -> None:
        for records in self.open.values():
            for record in records:
                if record.offset not in found.records:
                    raise Violation(f"nothing of an open transaction goes ({record.offset})")
        for offset in reversed(self.live):
            if offset < active_base_offset:
                break
            if offset not in found.records:
                raise Violation(f"the active segment is not touched ({offset})")

    def _check_last_values(self, found: LogContent, now_ms: int) -> None:
        gone: dict[bytes, int] = {}
        for key, last in self.last.items():
            if last.offset in found.records:
                continue
            if last.value is not None:
                raise Violation(f"the last value of {key!r} at {last.offset} is there")
            if last.offset in self.live:
                seen_ms = self._seen_ms.get(last.offset)
                if seen_ms is None or now_ms < seen_ms + self.delete_retention_ms:
                    raise Violation(f"the tombstone of {key!r} at {last.offset} stays for its time")
            gone[key] = last.offset
        for offset in found.records:
            record = self.live[offset]
            if not record.aborted and offset < gone.get(record.key, -1):
                raise Violation(f"no older value of {record.key!r} comes back ({offset})")

    def _check_committed(self, found: LogContent) -> None:
        undecided = {record.offset for records in self.open.values() for record in records}
        for offset in found.records:
            record = self.live[offset]
            if offset in undecided:
                continue
            if record.aborted and offset not in found.aborted:
                raise Violation(f"a reader of committed records sees no aborted one ({offset})")
            if not record.aborted and offset in found.aborted:
                raise Violation(f"a reader of committed records sees every committed one ({offset})")


class LogContent:
    """The records in a log by offset, and which of them a reader of committed records passes over."""

    def __init__(self, aborted_transactions: list[tuple[int, int]]) -> None:
        """(producer id, first offset) of the aborted transactions, as a fetch response has them."""
        self.records: dict[int, Record] = {}
        self.aborted: set[int] = set()
        self.next_offset = 0
        self._coming = sorted(aborted_transactions, key=lambda entry: entry[1], reverse=True)
        self._open: set[int] = set()

    def add(self, data: bytes, from_offset: int) -> None:
        """Batches as a fetch returned them; records below `from_offset` are not wanted."""
        for header in split_batches(data, 0, len(data)):
            if not has_valid_crc(data, header):
                raise Violation(f"every batch has its checksum (offset {header.base_offset})")
            if header.base_offset < self.next_offset:
                raise Violation(f"offsets rise (offset {header.base_offset})")
            self._add_batch(data, header, from_offset)
            self.next_offset = int(header.last_offset) + 1

    def _add_batch(self, data: bytes, header: BatchHeader, from_offset: int) -> None:
        while self._coming and self._coming[-1][1] <= header.last_offset:
            self._open.add(self._coming.pop()[0])
        producer_id = int(header.producer_id)
        if header.is_control:
            marker = read_marker(data, header)
            if marker is not None and not marker.commit:
                self._open.discard(producer_id)
            return
        is_aborted = header.is_transactional and producer_id in self._open
        previous = self.next_offset - 1
        for record in read_records(data, header):
            if record.timestamp > header.max_timestamp:
                raise Violation(f"no record is younger than its batch says (offset {header.base_offset})")
            if record.offset <= previous or record.offset > header.last_offset:
                raise Violation(f"offsets rise (offset {record.offset})")
            previous = record.offset
            if record.offset >= from_offset:
                self.records[record.offset] = record
                if is_aborted:
                    self.aborted.add(record.offset)
