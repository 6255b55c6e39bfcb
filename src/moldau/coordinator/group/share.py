"""The share group protocol (KIP-932): heartbeats by which members join, learn their partitions, and leave.

One heartbeat does, in this order: find or make the group and the member; take over what the member says about itself;
look whether subscriptions, topics or initialised partitions have changed (then the group's epoch rises); compute a
target if the epoch is ahead of it; give the member its target; have new partitions initialised. Kafka:
GroupMetadataManager.shareGroupHeartbeat.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from moldau.coordinator.group.assignment_pace import AssignmentPace
from moldau.coordinator.group.assignors.share_simple import assign_shared
from moldau.coordinator.group.assignors.spec import Target, Targets
from moldau.coordinator.group.metadata_hash import group_hash
from moldau.coordinator.group.part import GroupPart
from moldau.coordinator.group.share_group import INITIAL_EPOCH, ShareGroup
from moldau.coordinator.group.share_member import PartitionStates, ShareMember, TopicPartitions
from moldau.coordinator.group.share_records import (
    assignment_epoch_record,
    current_record,
    group_epoch_record,
    member_record,
    partitions_record,
    remove_member,
    target_record,
)
from moldau.coordinator.group.share_replay import ShareReplay
from moldau.coordinator.group.share_settings import ShareGroupSettings
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import share_group_describe_response as describe_response
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
)
from moldau.protocol.messages.share_group_heartbeat_response import (
    TopicPartitions as AssignedTopic,
)

JOINING_EPOCH: Final = 0
LEFT_EPOCH: Final = -1
ASSIGNOR: Final = "simple"
NO_OFFSET: Final = -1

log = logging.getLogger("moldau.coordinator")


class ShareStateListener:
    """Who talks to the share coordinators in the name of groups."""

    def initialize(
        self,
        group_id: str,
        topics: TopicPartitions,
        offsets: dict[tuple[bytes, int], int],
        state_epoch: int,
        now_ms: int,
    ) -> None:
        """Has the state of these partitions made, each to begin at its offset, or where the group's settings say (-1);
        `ShareProtocol.on_initialized` is to hear of it."""
        raise NotImplementedError


class NoListener(ShareStateListener):
    def initialize(
        self,
        group_id: str,
        topics: TopicPartitions,
        offsets: dict[tuple[bytes, int], int],
        state_epoch: int,
        now_ms: int,
    ) -> None:
        """Nobody keeps states."""


class StateDeletion:
    """Share coordinators are to forget these partitions of a group. While it is under way none of them is initialised:
    its requests may arrive at any moment."""

    def __init__(self, group_id: str, topics: TopicPartitions) -> None:
        self.group_id = group_id
        self.topics = topics


class ShareProtocol(GroupPart):
    """See the module."""

    def __init__(self, state: GroupShardState) -> None:
        self._state = state
        self._replay = ShareReplay(state)
        self._topic_hashes: dict[str, int] = {}
        # By group, topic id and partition: since when share coordinators are asked to make a state. Not replayed.
        self._initializing_since_ms: dict[tuple[str, bytes, int], int] = {}
        # Those that could not be made the last time.
        self._failed: set[tuple[str, bytes, int]] = set()
        # Each ends by itself: another one of the same topics may have begun meanwhile. Not replayed.
        self._deletions: set[StateDeletion] = set()
        self._pace = AssignmentPace(state)
        self.rebalances_total = 0
        self.listener: ShareStateListener = NoListener()

    @property
    def settings(self) -> ShareGroupSettings:
        return self._state.settings.share

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        self._replay.replay(record_type, key, value)

    # What begins and ends

    def on_loaded(self, now_ms: int) -> Outcome | None:
        for group in self.groups():
            for member_id in group.members:
                self._start_session(group.group_id, member_id, now_ms)
        return self._forget_topics({t for g in self.groups() for t in g.partitions.topic_ids()}, self._state.image)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> Outcome | None:
        names = {topic.name for topic in delta.changed_topics.values()}
        names.update(topic.name for topic in delta.deleted_topics.values())
        if not names:
            return None
        for name in names:
            self._topic_hashes.pop(name, None)
        for group in self.groups():
            if names & group.subscribed_topics():
                group.looks_at_topics = True
        return self._forget_topics(set(delta.deleted_topics), image)

    def _forget_topics(self, topic_ids: set[bytes], image: MetadataImage) -> Outcome | None:
        """Partitions of deleted topics have no state any more."""
        gone = {topic_id for topic_id in topic_ids if topic_id not in image.topics_by_id}
        self._failed = {key for key in self._failed if key[1] not in gone}
        records = []
        for group in self.groups():
            if gone & group.partitions.topic_ids():
                states = group.partitions.copy()
                states.forget(gone)
                records.append(partitions_record(group.group_id, states))
        return Outcome(records, atomic=False) if records else None

    def groups(self) -> list[ShareGroup]:
        return [group for group in self._state.groups.values() if isinstance(group, ShareGroup)]

    def find_group(self, group_id: str, called: str = "Group") -> ShareGroup:
        """called: what Kafka calls a group that is not there, which tools show."""
        group = self._state.find_group(group_id)
        if group is None:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"{called} {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    # Heartbeats

    def heartbeat(self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str, now_ms: int) -> Outcome:
        if request.member_epoch == LEFT_EPOCH:
            return self._leave(request.group_id, request.member_id)
        joins = request.member_epoch == JOINING_EPOCH
        group = ShareGroup(request.group_id) if joins and self._is_new(request.group_id) else None
        group = group or self.find_group(request.group_id, "Share group")
        member = self._find_member(group, request.member_id, request.member_epoch)
        updated = _updated(member, request, client_id, client_host)
        records: list[StoredRecord] = []
        if member.member_id not in group.members or not updated.says_the_same(member):
            records.append(member_record(group.group_id, updated))
        epoch = self._update_epoch(group, member, updated, records)
        target_epoch, target = self._update_target(group, epoch, updated, records, now_ms)
        given = self._give(group, updated, target_epoch, target, records)
        self._start_session(group.group_id, request.member_id, now_ms)
        response = ShareGroupHeartbeatResponse(
            member_id=given.member_id,
            member_epoch=given.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(self._state.image, group.group_id),
        )
        if joins or request.subscribed_topic_names is not None or given.assigned != member.assigned:
            rows = [AssignedTopic(topic_id, sorted(indexes)) for topic_id, indexes in given.assigned.items()]
            response.assignment = Assignment(rows)
        return self._with_initialization(group, updated, epoch, records, response, now_ms)

    def _is_new(self, group_id: str) -> bool:
        return self._state.find_group(group_id) is None

    def _find_member(self, group: ShareGroup, member_id: str, epoch: int) -> ShareMember:
        known = group.members.get(member_id)
        if known is None:
            if len(group.members) >= self.settings.size_max:
                text = f"The share group has reached its maximum capacity of {self.settings.size_max} members."
                raise KafkaError(errors.GROUP_MAX_SIZE_REACHED, text)
            return ShareMember(member_id) if epoch == JOINING_EPOCH else group.member(member_id)
        if epoch > known.member_epoch:
            text = f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
            raise KafkaError(errors.FENCED_MEMBER_EPOCH, f"{text}coordinator ({known.member_epoch}).")
        if epoch not in (JOINING_EPOCH, known.member_epoch, known.previous_member_epoch):
            text = f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
            raise KafkaError(errors.FENCED_MEMBER_EPOCH, f"{text}coordinator ({known.member_epoch}).")
        return known

    # Epoch, target, assignment

    def metadata_hash(self, topics: set[str]) -> int:
        return group_hash(topics, self._topic_hashes, self._state.image)

    def _update_epoch(
        self, group: ShareGroup, member: ShareMember, updated: ShareMember, records: list[StoredRecord]
    ) -> int:
        bump = updated.subscribed_topic_names != member.subscribed_topic_names
        topics = group.subscribed_topics({updated.member_id: updated})
        if not bump and group.group_epoch == group.assignment_epoch:
            bump = self._assignable(group, topics) != _covered(group.targets, topics, self._state.image)
        if not bump and not group.looks_at_topics:
            return group.group_epoch
        metadata_hash = self.metadata_hash(topics)
        group.looks_at_topics = False
        if not bump and metadata_hash == group.metadata_hash:
            return group.group_epoch
        self.rebalances_total += 1
        records.append(group_epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
        return group.group_epoch + 1

    def _assignable(self, group: ShareGroup, topics: set[str]) -> dict[bytes, frozenset[int]]:
        """Partitions of these topics whose state is there."""
        found: dict[bytes, frozenset[int]] = {}
        for topic_id, (_, indexes) in group.partitions.initialized.items():
            topic = self._state.image.topics_by_id.get(topic_id)
            if topic is not None and topic.name in topics and indexes:
                found[topic_id] = indexes
        return found

    def _update_target(
        self, group: ShareGroup, epoch: int, updated: ShareMember, records: list[StoredRecord], now_ms: int
    ) -> tuple[int, Target]:
        interval_ms = self.settings.assignment_interval_ms(self._state.image, group.group_id)
        if epoch <= group.assignment_epoch or not self._pace.may_assign(
            group.group_id, group.assignment_epoch, group.assignment_timestamp_ms, interval_ms, now_ms
        ):
            return group.assignment_epoch, group.target_of(updated.member_id)
        self._pace.note(group.group_id, epoch, now_ms)
        targets = self._compute_targets(group, updated)
        for member_id, target in targets.items():
            if target != group.targets.get(member_id):
                records.append(target_record(group.group_id, member_id, target))
        records.append(assignment_epoch_record(group.group_id, epoch, self._state.wall.at(now_ms)))
        return epoch, targets[updated.member_id]

    def _compute_targets(self, group: ShareGroup, updated: ShareMember) -> Targets:
        image = self._state.image
        members = {**group.members, updated.member_id: updated}
        topics = group.subscribed_topics({updated.member_id: updated})
        places = {topic_id: sorted(indexes) for topic_id, indexes in self._assignable(group, topics).items()}
        wanted: dict[str, frozenset[bytes]] = {}
        for member_id, member in members.items():
            found = [image.topics_by_name.get(name) for name in member.subscribed_topic_names]
            wanted[member_id] = frozenset([topic.topic_id for topic in found if topic is not None])
        return assign_shared(wanted, places, group.targets)

    def _give(
        self,
        group: ShareGroup,
        updated: ShareMember,
        target_epoch: int,
        target: Target,
        records: list[StoredRecord],
    ) -> ShareMember:
        """A member jumps to its target: nobody has to give anything up before."""
        topics = self._state.image.topics_by_id
        assigned = {
            topic_id: indexes
            for topic_id, indexes in target.items()
            if topic_id in topics and topics[topic_id].name in updated.subscribed_topic_names
        }
        if updated.member_epoch == target_epoch and updated.assigned == assigned:
            return updated
        given = updated.copy()
        if updated.member_epoch != target_epoch:
            given.previous_member_epoch = updated.member_epoch
            given.member_epoch = target_epoch
        given.assigned = assigned
        records.append(current_record(group.group_id, given))
        return given

    # Initialising partitions

    def _with_initialization(
        self,
        group: ShareGroup,
        updated: ShareMember,
        epoch: int,
        records: list[StoredRecord],
        response: ShareGroupHeartbeatResponse,
        now_ms: int,
    ) -> Outcome:
        topics = self._missing_partitions(group, group.subscribed_topics({updated.member_id: updated}), now_ms)
        if not topics:
            return Outcome(records, response)
        states = group.partitions.copy()
        states.begin(topics)
        records.append(partitions_record(group.group_id, states))
        self._note_initializing(group.group_id, topics, now_ms)
        offsets = self._first_offsets(group, topics)
        on_written = partial(self._on_initializing_written, group.group_id, topics, offsets, epoch)
        return Outcome(records, response, on_written=on_written)

    def _first_offsets(self, group: ShareGroup, topics: TopicPartitions) -> dict[tuple[bytes, int], int]:
        """A partition that a topic has grown by is read from its beginning: with `latest`, records that were written
        before the group knew of it would be skipped (KAFKA-20742)."""
        found: dict[tuple[bytes, int], int] = {}
        for topic_id, (_, indexes) in topics.items():
            known = topic_id in group.partitions.initialized
            for index in indexes:
                is_grown = known and (group.group_id, topic_id, index) not in self._failed
                found[(topic_id, index)] = 0 if is_grown else NO_OFFSET
        return found

    def _note_initializing(self, group_id: str, topics: TopicPartitions, since_ms: int | None) -> None:
        """At once, not when it is stored: whoever comes meanwhile must not ask too. None takes it back."""
        for topic_id, (_, indexes) in topics.items():
            for index in indexes:
                if since_ms is None:
                    self._initializing_since_ms.pop((group_id, topic_id, index), None)
                else:
                    self._initializing_since_ms[(group_id, topic_id, index)] = since_ms

    def _missing_partitions(self, group: ShareGroup, names: set[str], now_ms: int) -> TopicPartitions:
        """Of subscribed topics: neither initialised, nor asked for lately."""
        retry_ms = self.settings.initialize_retry_ms
        found: TopicPartitions = {}
        for name in sorted(names):
            topic = self._state.image.topics_by_name.get(name)
            if topic is None or self._is_being_deleted(group.group_id, topic.topic_id):
                continue
            topic_id = topic.topic_id
            done = group.partitions.initialized.get(topic_id, ("", frozenset()))[1]
            missing = set()
            for index in topic.partitions:
                since_ms = self._initializing_since_ms.get((group.group_id, topic_id, index))
                if index not in done and (since_ms is None or now_ms - since_ms >= retry_ms):
                    missing.add(index)
            if missing:
                found[topic_id] = (name, frozenset(missing))
        return found

    def _is_being_deleted(self, group_id: str, topic_id: bytes) -> bool:
        return any(one.group_id == group_id and topic_id in one.topics for one in self._deletions)

    def _on_initializing_written(
        self,
        group_id: str,
        topics: TopicPartitions,
        offsets: dict[tuple[bytes, int], int],
        epoch: int,
        error: KafkaError | None,
        now_ms: int,
    ) -> None:
        if error is not None:
            self._note_initializing(group_id, topics, None)
            return
        self.listener.initialize(group_id, topics, offsets, epoch, now_ms)

    def on_initialized(self, group_id: str, done: TopicPartitions, failed: TopicPartitions) -> Outcome:
        """The share coordinators have responded."""
        for topics in (done, failed):
            self._note_initializing(group_id, topics, None)
        self._failed -= _keys(group_id, done)
        group = self._state.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            self._failed -= _keys(group_id, failed)
            return Outcome()
        self._failed |= _keys(group_id, failed)
        states = group.partitions.copy()
        states.take(done, states.initializing)
        states.take(failed, states.initializing)
        for topic_id, row in done.items():
            # A state that is being deleted may be gone already, or go at any moment: it is asked for again then.
            if topic_id in self._state.image.topics_by_id and not self._is_being_deleted(group_id, topic_id):
                states.add({topic_id: row}, states.initialized)
        return Outcome([partitions_record(group_id, states)])

    # Leaving

    def _leave(self, group_id: str, member_id: str) -> Outcome:
        group = self.find_group(group_id)
        group.member(member_id)
        response = ShareGroupHeartbeatResponse(member_id=member_id, member_epoch=LEFT_EPOCH)
        return self._remove(group, member_id, response)

    def _remove(self, group: ShareGroup, member_id: str, response: ShareGroupHeartbeatResponse | None) -> Outcome:
        records = remove_member(group.group_id, member_id)
        left = {
            name for one in group.members.values() if one.member_id != member_id for name in one.subscribed_topic_names
        }
        epoch = group.group_epoch + 1
        records.append(group_epoch_record(group.group_id, epoch, self.metadata_hash(left)))
        if len(group.members) == 1:
            # Nobody is left to compute a target for: both epochs agree at once.
            records.append(assignment_epoch_record(group.group_id, epoch, group.assignment_timestamp_ms))
        # Its session goes on: it finds nobody, or ends once more what could not be written.
        return Outcome(records, response)

    def _start_session(self, group_id: str, member_id: str, now_ms: int) -> None:
        timeout_ms = self.settings.session_timeout_ms(self._state.image, group_id)
        action = partial(self._on_session_expired, group_id, member_id)
        self._state.timers.schedule(session_key(group_id, member_id), now_ms + timeout_ms, action)

    def _on_session_expired(self, group_id: str, member_id: str, now_ms: int) -> Outcome | None:
        group = self._state.groups.get(group_id)
        if not isinstance(group, ShareGroup) or member_id not in group.members:
            return None
        log.info("removing member %s from share group %s: session timed out", member_id, group_id)
        return self._remove(group, member_id, None)

    # Offsets, as an administrator changes them

    def begin_alter(self, group_id: str, topics: TopicPartitions) -> Outcome:
        """The group may have its offsets altered: it is empty, or made now. Its partitions become initializing."""
        group = self._state.find_group(group_id)
        if group is None:
            group = ShareGroup(group_id)
        if not isinstance(group, ShareGroup):
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        group.check_delete()
        states = group.partitions.copy()
        states.begin(topics)
        return Outcome([partitions_record(group_id, states)])

    def epoch_of(self, group_id: str) -> int:
        group = self._state.groups.get(group_id)
        return group.group_epoch if isinstance(group, ShareGroup) else INITIAL_EPOCH

    def begin_delete(self, group_id: str, topic_ids: set[bytes] | None) -> tuple[Outcome, StateDeletion]:
        """Partitions of these topics, or of all, are to be forgotten: they become deleting. When that is stored, share
        coordinators are to be asked, and `on_deleted` is to hear of it."""
        group = self.find_group(group_id)
        group.check_delete()
        states = group.partitions.copy()
        found: TopicPartitions = {}
        for source in (states.initialized, states.initializing):
            for topic_id, row in list(source.items()):
                if topic_ids is None or topic_id in topic_ids:
                    states.add({topic_id: row}, found)
                    states.deleting[topic_id] = row[0]
                    del source[topic_id]
        for topic_id, name in states.deleting.items():
            topic = self._state.image.topics_by_id.get(topic_id)
            if topic is not None and (topic_ids is None or topic_id in topic_ids):
                found[topic_id] = (name, frozenset(topic.partitions))
        deletion = StateDeletion(group_id, found)
        if not found:
            return Outcome(), deletion
        self._deletions.add(deletion)
        on_written = partial(self._on_deleting_written, deletion)
        return Outcome([partitions_record(group_id, states)], on_written=on_written), deletion

    def _on_deleting_written(self, deletion: StateDeletion, error: KafkaError | None, now_ms: int) -> None:
        """What could not be stored, or not in time, is not carried out: nobody asks share coordinators."""
        if error is not None:
            self._deletions.discard(deletion)

    def on_deleted(self, deletion: StateDeletion, gone: set[bytes]) -> Outcome:
        """The share coordinators have responded: they have forgotten all partitions of these of its topics."""
        self._deletions.discard(deletion)
        group = self.find_group(deletion.group_id)
        states = group.partitions.copy()
        found = [topic_id for topic_id in gone if states.deleting.pop(topic_id, None) is not None]
        return Outcome([partitions_record(group.group_id, states)] if found else [])

    # Describing

    def describe(self, group_ids: list[str]) -> list[describe_response.DescribedGroup]:
        described = []
        for group_id in group_ids:
            try:
                described.append(self._describe(self.find_group(group_id)))
            except KafkaError as error:
                described.append(describe_response.DescribedGroup(error.code, error.message, group_id))
        return described

    def _describe(self, group: ShareGroup) -> describe_response.DescribedGroup:
        return describe_response.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name(),
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=ASSIGNOR,
            members=[self._describe_member(member) for member in group.members.values()],
        )

    def _describe_member(self, member: ShareMember) -> describe_response.Member:
        rows = []
        for topic_id, indexes in member.assigned.items():
            topic = self._state.image.topics_by_id.get(topic_id)
            if topic is not None:
                rows.append(describe_response.TopicPartitions(topic_id, topic.name, sorted(indexes)))
        return describe_response.Member(
            member_id=member.member_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            assignment=describe_response.Assignment(rows),
        )

    def initialized_partitions(self, group_id: str) -> PartitionStates:
        """For administrators; of a group that is not there, nothing."""
        group = self._state.groups.get(group_id)
        return group.partitions if isinstance(group, ShareGroup) else PartitionStates()


def _keys(group_id: str, topics: TopicPartitions) -> set[tuple[str, bytes, int]]:
    return {(group_id, topic_id, index) for topic_id, (_, indexes) in topics.items() for index in indexes}


def session_key(group_id: str, member_id: str) -> str:
    # With the length in it no two pairs have the same key.
    return f"share session {len(group_id)} {group_id} {member_id}"


def _updated(member: ShareMember, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str) -> ShareMember:
    """What the member says about itself; fields left out stay as they are."""
    updated = member.copy()
    if request.rack_id is not None:
        updated.rack_id = request.rack_id
    if request.subscribed_topic_names is not None:
        updated.subscribed_topic_names = frozenset(request.subscribed_topic_names)
    updated.client_id = client_id
    updated.client_host = client_host
    return updated


def _covered(targets: Targets, topics: set[str], image: MetadataImage) -> dict[bytes, frozenset[int]]:
    """All partitions of these topics that some member is to have."""
    found: dict[bytes, frozenset[int]] = {}
    for target in targets.values():
        for topic_id, indexes in target.items():
            topic = image.topics_by_id.get(topic_id)
            if topic is not None and topic.name in topics:
                found[topic_id] = found.get(topic_id, frozenset()) | indexes
    return found
