"""The share partitions of one partition of __share_group_state: verbs of the five state requests, replay, snapshots.

A leader's epoch and the epoch of the state fence whoever comes from before: a leader that was deposed, a group whose
offsets were reset. Kafka: ShareCoordinatorShard.
"""

from __future__ import annotations

from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.coordinator.share.settings import ShareCoordinatorSettings
from moldau.coordinator.share.share_state import (
    SNAPSHOT_TYPE,
    UNCHANGED,
    SharePartitionKey,
    ShareState,
    apply_update,
    decode_share_key,
    decode_snapshot,
    snapshot_record,
    tombstone,
    update_record,
)
from moldau.coordinator.share.state_batches import StateBatch, combine
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import (
    delete_share_group_state_response,
    initialize_share_group_state_request,
    initialize_share_group_state_response,
    read_share_group_state_response,
    read_share_group_state_summary_response,
    write_share_group_state_request,
    write_share_group_state_response,
)
from moldau.records.clocks import WallClock

COLD_TIMER = "cold snapshots"
DELETED_MAX = 10_000


class ShareMachine(CoordinatorMachine):
    """See the module. Verbs are about one share partition each, and raise KafkaError."""

    def __init__(self, index: int, timers: Timers, settings: ShareCoordinatorSettings, wall: WallClock) -> None:
        self.index = index
        self.states: dict[SharePartitionKey, ShareState] = {}
        # The last ones that were deleted, in their order: a leader may still know of them.
        self._deleted: dict[SharePartitionKey, None] = {}
        self._timers = timers
        self._settings = settings
        self._wall = wall
        self._image = MetadataImage()
        self.writes_total = 0

    # Replay

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int, producer_epoch: int) -> None:
        found = decode_share_key(key)
        if found is None:
            return
        record_type, name = found
        if record_type == SNAPSHOT_TYPE:
            if value is None:
                self.states.pop(name, None)
                self._note_deleted(name)
                return
            state = decode_snapshot(value, offset)
            if name in self._deleted:
                del self._deleted[name]
                state.is_unread = True
            state.note_epochs(self.states.get(name))
            self.states[name] = state
        elif value is not None:
            known = self.states.get(name)
            if known is None:
                # Its snapshot was pruned away by somebody else, or was never written: what is known counts.
                known = self.states[name] = ShareState()
                known.snapshot_offset = offset
            apply_update(known, value)

    def _note_deleted(self, name: SharePartitionKey) -> None:
        self._deleted[name] = None
        if len(self._deleted) > DELETED_MAX:
            del self._deleted[next(iter(self._deleted))]

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nobody writes here in a transaction."""

    def on_loaded(self, image: MetadataImage, now_ms: int) -> list[Outcome]:
        self._image = image
        self._timers.schedule(COLD_TIMER, now_ms + self._settings.cold_interval_ms, self._snapshot_cold)
        gone = [name for name in self.states if name[1] not in image.topics_by_id]
        return [Outcome([tombstone(name) for name in gone], atomic=False)] if gone else []

    def on_unloaded(self, now_ms: int) -> None:
        """Nobody waits in here."""

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> list[Outcome]:
        self._image = image
        if not delta.deleted_topics:
            return []
        records = [tombstone(name) for name in self.states if name[1] in delta.deleted_topics]
        return [Outcome(records, atomic=False)] if records else []

    # Checks

    def _check_name(self, key: SharePartitionKey) -> None:
        if key[2] < 0:
            raise KafkaError(errors.INVALID_REQUEST, "The partition is negative.")

    def _check_exists(self, key: SharePartitionKey) -> None:
        topic = self._image.topics_by_id.get(key[1])
        if topic is None or key[2] not in topic.partitions:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)

    def _known(self, key: SharePartitionKey) -> ShareState:
        state = self.states.get(key)
        if state is None:
            raise KafkaError(errors.INVALID_REQUEST, "The state of this share partition was never initialized.")
        return state

    # Verbs

    def initialize(
        self, key: SharePartitionKey, asked: initialize_share_group_state_request.PartitionData, now_ms: int
    ) -> Outcome:
        self._check_name(key)
        known = self.states.get(key)
        if known is not None and asked.state_epoch != -1 and known.state_epoch_max > asked.state_epoch:
            raise KafkaError(errors.FENCED_STATE_EPOCH)
        self._check_exists(key)
        result = initialize_share_group_state_response.PartitionResult(key[2])
        if known is not None and asked.start_offset == UNCHANGED:
            # A group that heard no response asks again, maybe much later: what came of the first time stays.
            return Outcome([], result)
        if known is not None and known.is_written and known.state_epoch == asked.state_epoch:
            # Nobody alters the offsets of a group in use, and whoever was in use has left in a later epoch: this is a
            # copy of the request that the state began with, and came late.
            raise KafkaError(errors.FENCED_STATE_EPOCH)
        if known is not None and (known.state_epoch, known.start_offset) == (asked.state_epoch, asked.start_offset):
            # It begins there already, and a leader may have read it: nothing is left to do.
            return Outcome([], result)
        state = ShareState()
        state.snapshot_epoch = 0 if known is None else known.snapshot_epoch + 1
        state.state_epoch = asked.state_epoch
        state.start_offset = asked.start_offset
        state.complete_count = UNCHANGED if asked.start_offset == UNCHANGED else 0
        state.created_ms = state.written_ms = self._wall.at(now_ms)
        return Outcome([snapshot_record(key, state)], result)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Outcome:
        self._check_name(key)
        state = self._known(key)
        if leader_epoch != -1 and state.leader_epoch_max > leader_epoch:
            raise KafkaError(errors.FENCED_LEADER_EPOCH)
        self._check_exists(key)
        state.is_unread = False
        rows = [read_share_group_state_response.StateBatch(*batch.values()) for batch in state.batches]
        result = read_share_group_state_response.PartitionResult(
            key[2], state_epoch=state.state_epoch, start_offset=state.start_offset, state_batches=rows
        )
        if leader_epoch <= state.leader_epoch:
            return Outcome([], result)
        # From now on the leader before this one is fenced, also after a failover of this coordinator.
        return Outcome([update_record(key, state, leader_epoch, UNCHANGED, state.complete_count, [])], result)

    def write(
        self, key: SharePartitionKey, asked: write_share_group_state_request.PartitionData, now_ms: int
    ) -> Outcome:
        self._check_name(key)
        state = self._known(key)
        if asked.leader_epoch != -1 and state.leader_epoch_max > asked.leader_epoch:
            raise KafkaError(errors.FENCED_LEADER_EPOCH)
        if asked.state_epoch != -1 and state.state_epoch != asked.state_epoch:
            # Also a larger one is of another time: the group was deleted and made anew since.
            raise KafkaError(errors.FENCED_STATE_EPOCH)
        if state.is_unread:
            # So is the same one: a group that is made anew counts its epochs from the beginning.
            raise KafkaError(errors.FENCED_STATE_EPOCH)
        if UNCHANGED < asked.start_offset < state.start_offset:
            # A leader has one write under way at a time, and its start only grows: this is a copy of a write that was
            # carried out, sent again because no response came, and overtaken by others.
            raise KafkaError(errors.FENCED_STATE_EPOCH)
        self._check_exists(key)
        self.writes_total += 1
        rows = [
            StateBatch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count)
            for row in asked.state_batches
        ]
        result = write_share_group_state_response.PartitionResult(key[2])
        return Outcome([self._written(key, state, asked, rows, now_ms)], result)

    def _written(
        self,
        key: SharePartitionKey,
        state: ShareState,
        asked: write_share_group_state_request.PartitionData,
        rows: list[StateBatch],
        now_ms: int,
    ) -> StoredRecord:
        if state.updates < self._settings.updates_per_snapshot:
            start = asked.start_offset
            merged = combine([], rows, start if start != UNCHANGED else state.start_offset)
            return update_record(key, state, state.leader_epoch, start, asked.delivery_complete_count, merged)
        whole = state.copy()
        whole.snapshot_epoch += 1
        whole.start_offset = asked.start_offset if asked.start_offset != UNCHANGED else state.start_offset
        whole.complete_count = asked.delivery_complete_count
        whole.created_ms = whole.written_ms = self._wall.at(now_ms)
        whole.batches = combine(state.batches, rows, whole.start_offset)
        return snapshot_record(key, whole)

    def read_summary(self, key: SharePartitionKey) -> Outcome:
        self._check_name(key)
        self._check_exists(key)
        result = read_share_group_state_summary_response.PartitionResult(key[2], start_offset=UNCHANGED)
        state = self.states.get(key)
        if state is not None:
            result.state_epoch = state.state_epoch
            result.leader_epoch = state.leader_epoch
            result.start_offset = state.start_offset
            result.delivery_complete_count = state.complete_count
        return Outcome([], result)

    def delete(self, key: SharePartitionKey) -> Outcome:
        self._check_name(key)
        self._check_exists(key)
        result = delete_share_group_state_response.PartitionResult(key[2])
        return Outcome([tombstone(key)] if key in self.states else [], result)

    # Keeping the log short

    def _snapshot_cold(self, now_ms: int) -> Outcome | None:
        """A state that nobody changes gets a new snapshot from time to time, else its old one keeps all the records
        behind it from being pruned. If all of them have got one and nothing came since, there is nothing to prune."""
        self._timers.schedule(COLD_TIMER, now_ms + self._settings.cold_interval_ms, self._snapshot_cold)
        wall_ms = self._wall.at(now_ms)
        old_ms = wall_ms - self._settings.cold_interval_ms
        cold = {name: state for name, state in self.states.items() if state.written_ms <= old_ms}
        if not cold or all(state.is_cold for state in self.states.values()):
            return None
        records = []
        for name, state in cold.items():
            fresh = state.copy()
            fresh.snapshot_epoch += 1
            fresh.written_ms = wall_ms
            records.append(snapshot_record(name, fresh))
        return Outcome(records, atomic=False)

    def first_needed_offset(self) -> int:
        """All that is known follows from the records from this offset on; -1 when nothing is known."""
        return min((state.snapshot_offset for state in self.states.values()), default=-1)
