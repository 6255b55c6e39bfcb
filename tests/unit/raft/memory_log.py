"""A RaftLog in memory, for tests: appends are volatile until `sync`, snapshots are bytes."""

from __future__ import annotations

from moldau.raft.log import OffsetAndEpoch, RaftLog
from moldau.records.batch import BatchHeader, read_header, split_batches


class MemoryLog(RaftLog):
    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start = 0
        self.synced_batches = 0
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.parts: dict[OffsetAndEpoch, bytes] = {}
        self.settled = True

    def headers(self) -> list[BatchHeader]:
        return [read_header(batch, 0, len(batch)) for batch in self.batches]

    def start_offset(self) -> int:
        return self.start

    def end_offset(self) -> int:
        headers = self.headers()
        return int(headers[-1].next_offset) if headers else self.start

    def last_epoch(self) -> int:
        headers = self.headers()
        if headers:
            return int(headers[-1].partition_leader_epoch)
        latest = self.latest_snapshot()
        return latest.epoch if latest is not None else 0

    def append(self, batch: bytes) -> None:
        assert int(read_header(batch, 0, len(batch)).base_offset) == self.end_offset()
        self.batches.append(batch)

    def append_fetched(self, batches: bytes) -> None:
        for header in split_batches(batches, 0, len(batches)):
            self.append(batches[int(header.position) : int(header.end)])

    def read(self, offset: int, max_bytes: int) -> bytes:
        result = b""
        for batch, header in zip(self.batches, self.headers(), strict=True):
            if int(header.last_offset) >= offset and (not result or len(result) + len(batch) <= max_bytes):
                result += batch
        return result

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        earliest = self.earliest_snapshot()
        found = OffsetAndEpoch(self.start, min(epoch, self.last_epoch()) if not self.batches else 0)
        if earliest is not None and earliest.epoch <= epoch:
            found = earliest
        for header in self.headers():
            if int(header.partition_leader_epoch) <= epoch:
                found = OffsetAndEpoch(int(header.next_offset), int(header.partition_leader_epoch))
        return found

    def is_settled(self) -> bool:
        return self.settled

    def truncate_to(self, offset: int) -> None:
        kept = sum(1 for header in self.headers() if int(header.last_offset) < offset)
        del self.batches[kept:]
        self.synced_batches = min(self.synced_batches, kept)

    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self.snapshots, default=None)

    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return min(self.snapshots, default=None)

    def snapshot_size(self, snapshot: OffsetAndEpoch) -> int:
        return len(self.snapshots[snapshot]) if snapshot in self.snapshots else -1

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        return self.snapshots[snapshot][position : position + max_bytes]

    def append_fetched_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes) -> None:
        before = self.parts.get(snapshot, b"") if position > 0 else b""
        assert len(before) == position
        self.parts[snapshot] = before + data

    def drop_fetched_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        self.parts.pop(snapshot, None)

    def install_fetched_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        self.snapshots = {snapshot: self.parts.pop(snapshot)}
        self.batches = []
        self.start = snapshot.offset
        self.synced_batches = 0

    # For tests

    def sync(self) -> None:
        self.synced_batches = len(self.batches)

    def crash(self) -> None:
        """Loses what was not synced."""
        del self.batches[self.synced_batches :]

    def take_snapshot(self, offset: int, data: bytes) -> OffsetAndEpoch:
        """A snapshot that ends at `offset`; the log before it goes."""
        epoch = max(int(h.partition_leader_epoch) for h in self.headers() if int(h.last_offset) < offset)
        kept = [b for b, h in zip(self.batches, self.headers(), strict=True) if int(h.last_offset) >= offset]
        self.synced_batches -= len(self.batches) - len(kept)
        self.batches = kept
        self.start = offset
        snapshot = OffsetAndEpoch(offset, epoch)
        self.snapshots[snapshot] = data
        return snapshot
