"""The durable state of one share partition, and the records it is made of: snapshots, and updates between them."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.outcome import StoredRecord
from moldau.coordinator.share.state_batches import StateBatch, combine
from moldau.protocol.primitives import Reader
from moldau.protocol.stored.framing import encode_key, encode_value
from moldau.protocol.stored.share_records import (
    ShareSnapshotKey,
    ShareSnapshotStateBatch,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateStateBatch,
    ShareUpdateValue,
)

SNAPSHOT_TYPE: Final = 0
UPDATE_TYPE: Final = 1
UNCHANGED: Final = -1

SharePartitionKey = tuple[str, bytes, int]
"""Group, topic id, partition."""


class ShareState:
    """See the module. `snapshot_offset` says where the newest snapshot lies in the log, `updates` how many follow."""

    def __init__(self) -> None:
        self.snapshot_epoch = 0
        self.state_epoch = 0
        self.leader_epoch = 0
        self.start_offset = UNCHANGED
        self.complete_count = UNCHANGED
        self.created_ms = 0
        self.written_ms = 0
        self.batches: list[StateBatch] = []
        self.updates = 0
        self.snapshot_offset = -1
        # The highest epochs that were ever seen: a state that begins anew does not let older leaders back in.
        self.state_epoch_max = 0
        self.leader_epoch_max = 0
        # Something was stored since the state began in this epoch: it does not begin in this epoch again.
        self.is_written = False
        # It was deleted and began anew, and no leader has read it since: whoever writes knows the one before.
        self.is_unread = False

    @property
    def is_cold(self) -> bool:
        """The newest snapshot was written because the state had not changed for long, and it has not changed since."""
        return self.updates == 0 and self.created_ms != self.written_ms

    def copy(self) -> ShareState:
        found = ShareState()
        found.snapshot_epoch = self.snapshot_epoch
        found.state_epoch = self.state_epoch
        found.leader_epoch = self.leader_epoch
        found.start_offset = self.start_offset
        found.complete_count = self.complete_count
        found.created_ms = self.created_ms
        found.written_ms = self.written_ms
        found.batches = list(self.batches)
        found.is_written = self.is_written
        found.is_unread = self.is_unread
        return found

    def note_epochs(self, before: ShareState | None = None) -> None:
        """Those of the state itself, and those that were known before it."""
        for known in (self, before):
            if known is not None:
                self.state_epoch_max = max(self.state_epoch_max, known.state_epoch, known.state_epoch_max)
                self.leader_epoch_max = max(self.leader_epoch_max, known.leader_epoch, known.leader_epoch_max)
        if before is not None:
            self.is_unread = before.is_unread
        if before is not None and before.state_epoch == self.state_epoch:
            # Only a leader's write takes the leader's epoch over.
            moved = self.start_offset != before.start_offset and self.leader_epoch > 0
            self.is_written = self.is_written or before.is_written or moved


def snapshot_record(key: SharePartitionKey, state: ShareState) -> StoredRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=[ShareSnapshotStateBatch(*batch.values()) for batch in state.batches],
    )
    return encode_key(ShareSnapshotKey(*key)), encode_value(value, 0)


def update_record(
    key: SharePartitionKey,
    known: ShareState,
    leader_epoch: int,
    start_offset: int,
    complete_count: int,
    batches: list[StateBatch],
) -> StoredRecord:
    """What has changed since the snapshot: -1 for a start offset that did not. The count is always what it is now."""
    value = ShareUpdateValue(
        snapshot_epoch=known.snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=complete_count,
        state_batches=[ShareUpdateStateBatch(*batch.values()) for batch in batches],
    )
    return encode_key(ShareUpdateKey(*key)), encode_value(value, 0)


def tombstone(key: SharePartitionKey) -> StoredRecord:
    return encode_key(ShareSnapshotKey(*key)), None


def decode_share_key(data: bytes) -> tuple[int, SharePartitionKey] | None:
    """Type and share partition; None for a record that a later release has written."""
    reader = Reader(data)
    record_type = reader.int16()
    if record_type == SNAPSHOT_TYPE:
        snapshot = ShareSnapshotKey.decode(reader, 0)
        return record_type, (snapshot.group_id, snapshot.topic_id, snapshot.partition)
    if record_type == UPDATE_TYPE:
        update = ShareUpdateKey.decode(reader, 0)
        return record_type, (update.group_id, update.topic_id, update.partition)
    return None


def decode_snapshot(data: bytes, offset: int) -> ShareState:
    reader = Reader(data)
    value = ShareSnapshotValue.decode(reader, reader.int16())
    state = ShareState()
    state.snapshot_epoch = value.snapshot_epoch
    state.state_epoch = value.state_epoch
    state.leader_epoch = value.leader_epoch
    state.start_offset = value.start_offset
    state.complete_count = value.delivery_complete_count
    state.created_ms = value.create_timestamp
    state.written_ms = value.write_timestamp
    state.batches = [
        StateBatch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count)
        for row in value.state_batches
    ]
    state.snapshot_offset = offset
    state.is_written = bool(state.batches)
    return state


def apply_update(state: ShareState, data: bytes) -> None:
    """An update of an older snapshot than the one that is known says nothing any more."""
    reader = Reader(data)
    value = ShareUpdateValue.decode(reader, reader.int16())
    if value.snapshot_epoch < state.snapshot_epoch:
        return
    rows = [
        StateBatch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count)
        for row in value.state_batches
    ]
    if value.leader_epoch >= 0:
        state.leader_epoch = value.leader_epoch
    if value.start_offset != UNCHANGED:
        state.start_offset = value.start_offset
    state.complete_count = value.delivery_complete_count
    state.note_epochs()
    state.batches = combine(state.batches, rows, state.start_offset)
    state.is_written = state.is_written or bool(rows) or value.start_offset != UNCHANGED
    state.is_unread = False
    state.updates += 1
