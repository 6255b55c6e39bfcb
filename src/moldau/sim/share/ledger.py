"""What share groups promised in a simulated cluster: what is stored of each share partition, and why records are done.

The ledger reads every committed record of __share_group_state and of the topics, offset by offset and with no code of
the coordinator's. From members it hears what they sent and what they were told. Every record that is done with must
have a cause: somebody said so, it was delivered as often as allowed, its transaction was aborted, or it is gone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from moldau.coordinator.share.share_state import SNAPSHOT_TYPE, SharePartitionKey, decode_share_key
from moldau.node.share.record_states import ACCEPT, ACKNOWLEDGED, ARCHIVED, ARCHIVING, GAP, REJECT, is_final
from moldau.protocol.primitives import Reader
from moldau.protocol.stored.share_records import ShareSnapshotValue, ShareUpdateValue
from moldau.protocol.topic_names import SHARE_TOPIC
from moldau.records.batch import read_header
from moldau.records.walk import read_records
from moldau.sim.cluster.committed_log import CommittedListener
from moldau.sim.kernel.world import Violation
from moldau.sim.share.letters import PREFIX, LetterLedger
from moldau.storage.control_markers import read_marker

if TYPE_CHECKING:
    from moldau.sim.share.world import ShareWorld

NO_OFFSET = -1


class DataLog:
    """The committed records of one partition, as far as they matter here."""

    def __init__(self) -> None:
        self.end = 0
        self.data: set[int] = set()
        self.contents: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.keys: dict[int, bytes | None] = {}
        self.newest: dict[bytes, int] = {}
        self.undecided: dict[int, list[int]] = {}
        self.aborted: set[int] = set()

    def on_batch(self, batch: bytes) -> None:
        header = read_header(batch, 0, len(batch))
        self.end = int(header.last_offset) + 1
        producer_id = int(header.producer_id)
        marker = read_marker(batch, header)
        if marker is not None:
            ended = self.undecided.pop(producer_id, [])
            if not marker.commit:
                self.aborted.update(ended)
        if header.is_control:
            return
        for record in read_records(batch, header):
            self.data.add(record.offset)
            self.keys[record.offset] = record.key
            self.contents[record.offset] = (record.key, record.value)
            if record.key is not None:
                self.newest[record.key] = record.offset
            if header.is_transactional:
                self.undecided.setdefault(producer_id, []).append(record.offset)

    def is_undecided(self, offset: int) -> bool:
        return any(offset in offsets for offsets in self.undecided.values())

    def is_superseded(self, offset: int) -> bool:
        """Whether compaction may take it."""
        key = self.keys.get(offset)
        return key is not None and self.newest[key] > offset


class StoredShare:
    """One share partition as the committed records tell it. `generation` counts its beginnings."""

    def __init__(self, key: SharePartitionKey) -> None:
        self.key = key
        self.generation = 0
        self.exists = False
        self.snapshot_epoch = -1
        self.state_epoch = 0
        self.leader_epoch = 0
        self.start = NO_OFFSET
        self.is_used = False
        """Something was stored since it began."""
        self.states: dict[int, tuple[int, int]] = {}
        """Delivery count and state of offsets above the start."""
        self.base: int | None = None
        """Records below it do not belong to the group; None as long as that is not decided."""
        self.checked_to = 0
        self.final_epochs: dict[int, int] = {}
        """Offsets that are done with, and the epoch of the leader that said so."""
        self.told: dict[int, int] = {}
        """Offsets whose acceptance or rejection was answered with success, and that epoch."""

    def is_done(self, offset: int) -> bool:
        return offset < self.start or is_final(self.states.get(offset, (0, 0))[1])

    def begin_anew(self, start: int) -> None:
        self.generation += 1
        self.is_used = False
        self.states = {}
        self.final_epochs = {}
        self.told = {}
        self.start = start
        self.base = None if start == NO_OFFSET else start
        self.checked_to = max(0, start)


class Sent(NamedTuple):
    """When a member sent an acknowledgement, and which of the groups of its name it meant."""

    generation: int
    now_ms: int


class ShareLedger(CommittedListener):
    """See the module."""

    def __init__(self, setting: ShareWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.logs: dict[tuple[str, int], DataLog] = {}
        self.shares: dict[SharePartitionKey, StoredShare] = {}
        self.causes: dict[SharePartitionKey, dict[int, str]] = {}
        self.sent: Counter[tuple[SharePartitionKey, int, str]] = Counter()
        """How often a member has asked to be done with a record."""
        self.letters = LetterLedger(setting)
        self.told_accepted = 0
        self.told_rejected = 0
        self.resets = 0

    def log_of(self, topic: str, index: int) -> DataLog:
        found = self.logs.get((topic, index))
        if found is None:
            found = self.logs[topic, index] = DataLog()
        return found

    def share(self, key: SharePartitionKey) -> StoredShare:
        found = self.shares.get(key)
        if found is None:
            found = self.shares[key] = StoredShare(key)
        return found

    def name_of(self, key: SharePartitionKey) -> str:
        topic = self.setting.model.by_id(key[1])
        return f"{key[0]}:{topic.name if topic is not None else key[1].hex()}-{key[2]}"

    # What is committed

    def on_committed(self, topic: str, index: int, batch: bytes) -> None:
        if topic == SHARE_TOPIC:
            header = read_header(batch, 0, len(batch))
            for record in [] if header.is_control else read_records(batch, header):
                if record.key is not None:
                    self._on_state(record.key, record.value)
        elif topic.startswith(PREFIX):
            self.letters.on_committed(batch)
        elif not topic.startswith("__"):
            self.log_of(topic, index).on_batch(batch)

    def _on_state(self, key: bytes, value: bytes | None) -> None:
        found = decode_share_key(key)
        assert found is not None, "a record of a kind that nobody writes"
        kind, name = found
        share = self.share(name)
        if value is None:
            share.begin_anew(NO_OFFSET)
            share.exists = False
            share.snapshot_epoch = -1
            return
        reader = Reader(value)
        if kind == SNAPSHOT_TYPE:
            self._on_snapshot(share, ShareSnapshotValue.decode(reader, reader.int16()))
        else:
            self._on_update(share, ShareUpdateValue.decode(reader, reader.int16()))

    def _on_snapshot(self, share: StoredShare, value: ShareSnapshotValue) -> None:
        rows = [
            (row.first_offset, row.last_offset, row.delivery_state, row.delivery_count) for row in value.state_batches
        ]
        is_reset = self.setting.is_reset(share.key, value.start_offset)
        begins = value.leader_epoch == 0 and not rows and is_reset
        if share.start != NO_OFFSET and value.start_offset == NO_OFFSET:
            raise Violation(f"a state that is in use is not forgotten: {self.name_of(share.key)}")
        is_other = bool(share.states) or (value.start_offset, 0) != (share.start, share.leader_epoch)
        is_forgotten = value.start_offset < share.start or any(is_final(state) for _, state in share.states.values())
        if share.exists and begins and value.state_epoch == share.state_epoch and share.is_used:
            if value.start_offset <= share.start and is_forgotten:
                raise Violation(f"a request that comes late does not reset a state: {self.name_of(share.key)}")
        if not share.exists or (begins and is_other and value.state_epoch >= share.state_epoch):
            self.setting.send_late_copy(share.key, value.state_epoch, value.start_offset)
            self.causes.pop(share.key, None)
            if share.exists:
                self.resets += 1
                self.world.note(f"{self.name_of(share.key)} begins anew at {value.start_offset}")
            share.begin_anew(value.start_offset)
            self._base_of(share)
            share.exists = True
            share.leader_epoch = 0
        elif value.state_epoch < share.state_epoch:
            raise Violation(f"the epoch of a state never goes back: {self.name_of(share.key)} {value.state_epoch}")
        share.snapshot_epoch = value.snapshot_epoch
        share.state_epoch = value.state_epoch
        self._move(share, value.leader_epoch, value.start_offset)
        whole: dict[int, tuple[int, int]] = {}
        for first, last, state, count in rows:
            for offset in range(max(first, share.start), last + 1):
                if offset in whole:
                    raise Violation(f"a snapshot says one thing of a record: {self.name_of(share.key)} {offset}")
                whole[offset] = (count, state)
        for offset, (_, state) in share.states.items():
            if is_final(state) and not is_final(whole.get(offset, (0, 0))[1]):
                raise Violation(f"what is done with stays so: {self.name_of(share.key)} offset {offset} in a snapshot")
        self._set(share, whole)

    def _on_update(self, share: StoredShare, value: ShareUpdateValue) -> None:
        if value.snapshot_epoch < share.snapshot_epoch or not share.exists:
            return
        share.is_used = share.is_used or bool(value.state_batches) or value.start_offset != NO_OFFSET
        self._move(share, value.leader_epoch, value.start_offset)
        changed: dict[int, tuple[int, int]] = {}
        for row in value.state_batches:
            for offset in range(max(row.first_offset, share.start), row.last_offset + 1):
                said = (row.delivery_count, row.delivery_state)
                changed[offset] = max(changed.get(offset, said), said, share.states.get(offset, said))
        self._set(share, changed)

    def _move(self, share: StoredShare, leader_epoch: int, start: int) -> None:
        name = self.name_of(share.key)
        if 0 <= leader_epoch < share.leader_epoch:
            raise Violation(f"the leader's epoch of a state never goes back: {name} {leader_epoch}")
        share.leader_epoch = max(share.leader_epoch, leader_epoch)
        if start == NO_OFFSET or start == share.start:
            return
        if start < share.start:
            raise Violation(f"a stored start offset never goes back: {name} {start} after {share.start}")
        share.start = start
        if share.base is None:
            share.base = self._first_base(share, start)
            share.checked_to = share.base
        for offset in [offset for offset in share.states if offset < start]:
            self.letters.on_passed(share.key, offset, share.states.pop(offset)[1])

    def _base_of(self, share: StoredShare) -> None:
        """A group that begins with the earliest record has to do with all of them."""
        if share.base is None and self.setting.begins_with_earliest(share.key[0]):
            share.base = share.checked_to = 0

    def _first_base(self, share: StoredShare, start: int) -> int:
        return 0 if self.setting.begins_with_earliest(share.key[0]) else start

    def _set(self, share: StoredShare, changed: dict[int, tuple[int, int]]) -> None:
        for offset, (count, state) in changed.items():
            before = share.states.get(offset)
            if before is not None and is_final(before[1]) and not is_final(state):
                raise Violation(f"what is done with stays so: {self.name_of(share.key)} offset {offset}")
            share.states[offset] = (count, state)
            self.letters.on_state(share.key, offset, -1 if before is None else before[1], state)
            if is_final(state):
                share.final_epochs.setdefault(offset, share.leader_epoch)

    # What members say and hear

    def on_sent(self, key: SharePartitionKey, offset: int, kind: int, member_id: str) -> None:
        """A member is about to acknowledge: whatever becomes of the request, it may be carried out."""
        if kind in (ACCEPT, REJECT):
            self.causes.setdefault(key, {}).setdefault(offset, "accepted" if kind == ACCEPT else "rejected")
        if kind == GAP:
            self.letters.on_gap(key, offset)
        elif kind == REJECT:
            self.letters.on_cause(key, offset)
        self.sent[key, offset, member_id] += 1

    def on_limit(self, key: SharePartitionKey, offset: int) -> None:
        self.causes.setdefault(key, {}).setdefault(offset, "delivered for the last time")
        self.letters.on_cause(key, offset)

    def on_told(self, key: SharePartitionKey, offset: int, kind: int, sent: Sent) -> None:
        """A member was told that its acknowledgement is stored."""
        if kind not in (ACCEPT, REJECT):
            return
        share, generation = self.share(key), sent.generation
        if share.generation != generation:
            return
        if not share.is_done(offset) and share.states.get(offset, (0, 0))[1] != ARCHIVING:
            self.setting.checks.look_at_all()
        if share.generation != generation:
            return
        count, state = share.states.get(offset, (0, -1))
        wanted = ACKNOWLEDGED if kind == ACCEPT else ARCHIVED
        waits = kind == REJECT and state == ARCHIVING and self.setting.has_dead_letters
        if kind == REJECT:
            self.letters.on_told_rejected(key, offset, state, generation)
        if offset >= share.start and state != wanted and not waits:
            if self.setting.share_checks.is_below_a_start(key, offset, sent.now_ms):
                return  # it came too late, and nobody minds
            raise Violation(
                f"what is told to be done is stored: {self.name_of(key)} offset {offset} is"
                f" {'unknown' if state < 0 else f'in state {state}, count {count}'}, told was {wanted}"
            )
        share.told.setdefault(offset, share.final_epochs.get(offset, share.leader_epoch))
        if kind == ACCEPT:
            self.told_accepted += 1
        else:
            self.told_rejected += 1

    # Whether records may be done with

    def missing_cause(self, key: SharePartitionKey, first: int, end: int) -> int:
        """The first record between the two offsets that nobody is done with; -1 if there is none."""
        topic = self.setting.model.by_id(key[1])
        if topic is None:
            return -1
        log = self.log_of(topic.name, key[2])
        causes = self.causes.get(key, {})
        committed_only = self.setting.is_read_committed(key[0])
        low = max(first, topic.partitions[key[2]].start_high)
        for offset in range(low, end):
            if offset not in log.data or offset in causes:
                continue
            if committed_only and offset in log.aborted:
                continue
            if self.setting.is_compacted(topic.name) and log.is_superseded(offset):
                continue
            return offset
        return -1

    def check_start(self, key: SharePartitionKey, start: int, whose: str) -> None:
        """A start offset has passed everything below it."""
        share = self.share(key)
        if share.base is None or not share.exists or start <= share.checked_to:
            return
        offset = self.missing_cause(key, share.checked_to, start)
        if offset >= 0:
            self.setting.checks.look_at_all()
            offset = self.missing_cause(key, share.checked_to, start)
        if offset >= 0:
            raise Violation(
                f"a start offset passes no unfinished record: {self.name_of(key)} offset {offset},"
                f" {whose} is at {start}"
            )
        share.checked_to = start
