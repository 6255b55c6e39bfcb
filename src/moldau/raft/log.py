"""The metadata log and its snapshots as the quorum sees them: an abstract interface.

`node/metadata_log.py` implements it on a Disk, tests implement it in memory. Calls return at once: `append` may leave
bytes unsynced; the state machine counts an append only after `Raft.on_synced` told it so.
"""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndEpoch(NamedTuple):
    """An offset and the epoch of the record before it; the id of a snapshot is one."""

    offset: int
    epoch: int


class RaftLog:
    """What the quorum asks of its log. Offsets are those of records; batches are never cut."""

    def start_offset(self) -> int:
        """The first offset that is still there; everything before it is in a snapshot."""
        raise NotImplementedError

    def end_offset(self) -> int:
        """One past the last appended record, synced or not."""
        raise NotImplementedError

    def last_epoch(self) -> int:
        """The epoch of the last record (or of the snapshot that stands in for it); 0 when there is none."""
        raise NotImplementedError

    def append(self, batch: bytes) -> None:
        """Appends one finished batch that starts at `end_offset()`."""
        raise NotImplementedError

    def append_fetched(self, batches: bytes) -> None:
        """Appends the whole batches a leader sent; a partial batch at the end is left out."""
        raise NotImplementedError

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset` on, at least one if there is any; empty at the end."""
        raise NotImplementedError

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Where the largest epoch that is not above `epoch` ends in this log."""
        raise NotImplementedError

    def truncate_to(self, offset: int) -> None:
        """Removes everything from `offset` on. Nothing may be appended before `is_settled`."""
        raise NotImplementedError

    def is_settled(self) -> bool:
        """Whether the log takes records: not while a truncation is on its way to the medium."""
        raise NotImplementedError

    def latest_snapshot(self) -> OffsetAndEpoch | None:
        raise NotImplementedError

    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        raise NotImplementedError

    def snapshot_size(self, snapshot: OffsetAndEpoch) -> int:
        """Its bytes, or -1 when there is no such snapshot."""
        raise NotImplementedError

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        raise NotImplementedError

    def append_fetched_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes) -> None:
        """Writes a part of a snapshot that is being fetched; position 0 starts it anew."""
        raise NotImplementedError

    def install_fetched_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Makes a fetched snapshot, which was found to be whole and is on the medium, the latest one, and empties the
        log so that it starts where the snapshot ends. That counts after a sync, as an append does."""
        raise NotImplementedError

    def drop_fetched_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Nobody wants a fetched snapshot any more; nothing happens when there is none."""
        raise NotImplementedError
