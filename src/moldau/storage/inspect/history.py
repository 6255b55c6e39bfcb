"""What a partition's log tells of its epochs, producers and transactions, to hold the files beside it against.

Compaction and retention take records away, so what the log no longer shows proves nothing; only what it shows counts.
"""

from __future__ import annotations

from itertools import pairwise

from moldau.records.batch import CorruptBatch
from moldau.storage.control_markers import read_marker
from moldau.storage.inspect.batches import Batch
from moldau.storage.producer_state import ProducerEntry
from moldau.storage.txn_index import AbortedTransaction


class EpochRange:
    """Offsets that one leader wrote."""

    def __init__(self, epoch: int, first_offset: int, last_offset: int) -> None:
        self.epoch = epoch
        self.first_offset = first_offset
        self.last_offset = last_offset


class LogHistory:
    """Fed with the valid batches of a log in their order."""

    def __init__(self) -> None:
        self.epochs: list[EpochRange] = []
        self.last_batch_of: dict[int, tuple[int, int]] = {}
        """By producer id: last offset and last sequence of its last batch of data."""
        self._first_offset_of: dict[int, int] = {}
        """Of the open transaction of a producer id."""
        self._aborted: list[tuple[int, int, int]] = []
        self._control_offsets: set[int] = set()
        self._data_ranges: list[tuple[int, int]] = []

    def take(self, batch: Batch) -> None:
        header = batch.header
        first, last = int(header.base_offset), int(header.last_offset)
        epoch = int(header.partition_leader_epoch)
        if epoch >= 0 and (not self.epochs or self.epochs[-1].epoch != epoch):
            self.epochs.append(EpochRange(epoch, first, last))
        elif epoch >= 0:
            self.epochs[-1].last_offset = last
        producer_id = int(header.producer_id)
        if producer_id < 0:
            return
        if header.is_control:
            self._take_marker(batch, producer_id, first)
            return
        self.last_batch_of[producer_id] = (last, int(header.last_sequence))
        if header.is_transactional:
            self._first_offset_of.setdefault(producer_id, first)
            self._data_ranges.append((first, last))

    def _take_marker(self, batch: Batch, producer_id: int, offset: int) -> None:
        try:
            marker = read_marker(batch.data, batch.header)
        except CorruptBatch:
            return  # reported with the records
        self._control_offsets.add(offset)
        first = self._first_offset_of.pop(producer_id, None)
        if marker is not None and not marker.commit and first is not None:
            self._aborted.append((producer_id, first, offset))

    # Comparisons; each is a list of sentences

    def check_transactions(self, entries: list[AbortedTransaction]) -> list[str]:
        """The transaction index of the segment whose batches came last, which is forgotten with this call."""
        said = []
        named = {(entry.producer_id, entry.last_offset) for entry in entries}
        for producer_id, first, marker in self._aborted:
            if (producer_id, marker) not in named:
                what = f"the transaction of producer {producer_id} from {first}, aborted at {marker}"
                said.append(f"does not name {what}")
        for entry in entries:
            data = any(first <= entry.last_offset <= last for first, last in self._data_ranges)
            if data and entry.last_offset not in self._control_offsets:
                said.append(f"names a transaction aborted at {entry.last_offset}, where the log has records of one")
            if entry.last_stable_offset > entry.last_offset + 1 or entry.first_offset < 0:
                said.append(f"has an entry for producer {entry.producer_id} whose offsets make no sense: {entry}")
        self._aborted = []
        self._control_offsets = set()
        self._data_ranges = []
        return said

    def check_epochs(self, rows: list[tuple[int, int]], log_start_offset: int | None) -> list[str]:
        """The epoch file, as epochs and where each starts, in rising order.

        What lies below the start of the log is deleted, whether or not its segment is still there, and the file has
        forgotten it. log_start_offset: None where only the file tells.
        """
        said = []
        start_of_log = log_start_offset if log_start_offset is not None else rows[0][1] if rows else 0
        starts = dict(rows)
        following = {epoch: start for (epoch, _), (_, start) in pairwise(rows)}
        for part in self.epochs:
            if part.last_offset < start_of_log:
                continue
            first = max(part.first_offset, start_of_log)
            start = starts.get(part.epoch)
            span = f"offsets {first} to {part.last_offset} are of epoch {part.epoch}"
            if start is None:
                said.append(f"{span}, which it does not name")
            elif start > first:
                said.append(f"{span}, which it lets start at {start}")
            elif following.get(part.epoch, part.last_offset + 1) <= part.last_offset:
                said.append(f"{span}, which it lets end at {following[part.epoch]}")
        return said

    def check_producers(self, entries: list[ProducerEntry]) -> list[str]:
        """A producer snapshot of the end of the log. Producers that it does not name have expired."""
        said = []
        for entry in entries:
            seen = self.last_batch_of.get(entry.producer_id)
            if seen is None or not entry.batches:
                continue
            wrote = (entry.last_offset, entry.last_sequence)
            if seen[0] > wrote[0] or (seen[0] == wrote[0] and seen != wrote):
                text = f"producer {entry.producer_id} wrote up to offset {wrote[0]} with sequence {wrote[1]}"
                said.append(f"says that {text}; the log has offset {seen[0]} with sequence {seen[1]}")
        return said
