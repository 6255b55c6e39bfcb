"""One step of a consumer group and of one of its members: subscription, epoch, target, assignment.

Each part that changes something adds its record, so the order of the records is that of the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.coordinator.group.assignment_pace import AssignmentPace
from moldau.coordinator.group.assignors.spec import Targets
from moldau.coordinator.group.assignors.table import ASSIGNORS
from moldau.coordinator.group.consumer_group import ConsumerGroup, is_homogeneous
from moldau.coordinator.group.consumer_member import UNREVOKED_PARTITIONS, ConsumerMember, Partitions
from moldau.coordinator.group.consumer_records import (
    assignment_epoch_record,
    current_record,
    group_epoch_record,
    member_record,
    partition_metadata_tombstone,
)
from moldau.coordinator.group.consumer_settings import ConsumerSettings
from moldau.coordinator.group.consumer_timers import REVOCATION, MemberTimers
from moldau.coordinator.group.metadata_hash import group_hash
from moldau.coordinator.group.reconciliation import Owned, SubscribedTopics, reconcile
from moldau.coordinator.group.regex_refresh import NO_CHANGE, RESOLVED, RegexRefresh
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.group.target_assignment import compute_targets, target_records
from moldau.coordinator.outcome import StoredRecord
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage

METADATA_REFRESH_MS: Final = 0x7FFFFFFF

ScheduleRevocation = Callable[[str, ConsumerMember, int], None]
"""Called with group id, member and time when a member must give partitions up."""


class ConsumerSteps:
    """See the module. Reads the state of the shard; what it decides is in the records."""

    def __init__(self, state: GroupShardState, timers: MemberTimers, schedule_revocation: ScheduleRevocation) -> None:
        self._state = state
        self._timers = timers
        self._schedule_revocation = schedule_revocation
        self._topic_hashes: dict[str, int] = {}
        self._pace = AssignmentPace(state)
        self.regexes = RegexRefresh(state, self.metadata_hash)

    @property
    def settings(self) -> ConsumerSettings:
        return self._state.settings.consumer

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Groups whose topics may have changed look at them again when one of their members is heard of."""
        names = {topic.name for topic in delta.changed_topics.values()}
        names.update(topic.name for topic in delta.deleted_topics.values())
        if not names:
            return
        if any(topic.before is None for topic in delta.changed_topics.values()):
            self.regexes.on_new_topics(image.offset)
        for name in names:
            self._topic_hashes.pop(name, None)
        for group in self._state.groups.values():
            if isinstance(group, ConsumerGroup) and _reads_any(group, names):
                group.expire_metadata()

    def advance(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        owned: Owned | None,
        records: list[StoredRecord],
        now_ms: int,
    ) -> ConsumerMember:
        """From what the member was to what it says it is, and one step on; adds the records."""
        epoch, changed = self._take_over(group, member, updated, records, now_ms)
        target_epoch, target = self._update_target(group, epoch, member, updated, records, now_ms)
        return self._reconcile(
            group,
            updated,
            target_epoch=target_epoch,
            target=target,
            subscription_changed=changed,
            owned=owned,
            records=records,
            now_ms=now_ms,
        )

    def advance_to_known_target(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        owned: Owned | None,
        records: list[StoredRecord],
        now_ms: int,
    ) -> tuple[ConsumerMember, bool]:
        """The same without a new target; False if one would be due, and then the member has not moved."""
        epoch, changed = self._take_over(group, member, updated, records, now_ms)
        if group.assignment_epoch < epoch:
            return updated, False
        target = group.target_of(updated.member_id, updated.instance_id)
        epoch = group.assignment_epoch
        return self._reconcile(
            group,
            updated,
            target_epoch=epoch,
            target=target,
            subscription_changed=changed,
            owned=owned,
            records=records,
            now_ms=now_ms,
        ), True

    def _take_over(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        records: list[StoredRecord],
        now_ms: int,
    ) -> tuple[int, bool]:
        """What the member says about itself; returns the group's epoch, and whether the subscription changed."""
        names_changed = False
        if updated is not member:
            records.append(member_record(group.group_id, updated))
            names_changed = updated.subscribed_topic_names != member.subscribed_topic_names
        regex_status = self.regexes.update(group, member, updated, records, now_ms)
        bump = names_changed or regex_status == RESOLVED
        epoch = group.group_epoch
        if bump or group.is_metadata_expired(now_ms):
            epoch = self._update_epoch(group, bump, member, updated, records, now_ms)
        return epoch, names_changed or regex_status != NO_CHANGE

    def metadata_hash(self, topics: set[str]) -> int:
        return group_hash(topics, self._topic_hashes, self._state.image)

    def _update_epoch(
        self,
        group: ConsumerGroup,
        bump: bool,
        member: ConsumerMember,
        updated: ConsumerMember,
        records: list[StoredRecord],
        now_ms: int,
    ) -> int:
        topics = group.topics_of(group.names_with(member, updated), group.regexes_with(member, updated))
        metadata_hash = self.metadata_hash(topics)
        epoch = group.group_epoch
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            self._state.settings.counts.consumer_rebalances += 1
            records.append(group_epoch_record(group.group_id, epoch, metadata_hash))
        group.metadata_expires_ms = now_ms + METADATA_REFRESH_MS
        group.metadata_looked_at_epoch = epoch
        if group.has_partition_metadata_record:
            records.append(partition_metadata_tombstone(group.group_id))
        return epoch

    def _update_target(
        self,
        group: ConsumerGroup,
        epoch: int,
        member: ConsumerMember,
        updated: ConsumerMember,
        records: list[StoredRecord],
        now_ms: int,
    ) -> tuple[int, Partitions]:
        """The epoch and the target that the member is led to: new ones, if they are due."""
        group_id = group.group_id
        if group.assignment_epoch >= epoch or not self._may_assign(group, now_ms):
            return group.assignment_epoch, group.target_of(updated.member_id, updated.instance_id)
        members = _members_with(group, updated)
        homogeneous = is_homogeneous(
            group.names_with(member, updated), group.regexes_with(member, updated), len(members)
        )
        name = group.preferred_assignor(member, updated) or self.settings.assignors[0]
        self._pace.note(group_id, epoch, now_ms)
        targets: Targets = compute_targets(group, members, homogeneous, ASSIGNORS[name], self._state.image)
        records += target_records(group, targets)
        records.append(assignment_epoch_record(group_id, epoch, self._state.wall.at(now_ms)))
        return epoch, targets[updated.member_id]

    def _may_assign(self, group: ConsumerGroup, now_ms: int) -> bool:
        """Many members that come at once are assigned together (group.consumer.assignment.interval.ms)."""
        interval_ms = self.settings.assignment_interval_ms(self._state.image, group.group_id)
        return self._pace.may_assign(
            group.group_id, group.assignment_epoch, group.assignment_timestamp_ms, interval_ms, now_ms
        )

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        *,
        target_epoch: int,
        target: Partitions,
        subscription_changed: bool,
        owned: Owned | None,
        records: list[StoredRecord],
        now_ms: int,
    ) -> ConsumerMember:
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        resolved = group.resolved_regexes.get(member.subscribed_topic_regex)
        matched: frozenset[str] = frozenset() if resolved is None else resolved.topics
        subscribed = SubscribedTopics(member.subscribed_topic_names, matched, self._state.image)
        moved = reconcile(member, target_epoch, target, subscribed, subscription_changed, group.owners, owned)
        if moved is member or moved.same_assignment(member):
            return member
        records.append(current_record(group.group_id, moved))
        if not moved.uses_classic_protocol:
            if moved.state == UNREVOKED_PARTITIONS:
                self._schedule_revocation(group.group_id, moved, now_ms)
            else:
                self._timers.cancel(REVOCATION, group.group_id, moved.member_id)
        return moved


def _members_with(group: ConsumerGroup, updated: ConsumerMember) -> dict[str, ConsumerMember]:
    """All members with the updated one; a static member takes the place of the one it was before."""
    replaced = None if updated.instance_id is None else group.static_members.get(updated.instance_id)
    members: dict[str, ConsumerMember] = {}
    for member_id, member in group.members.items():
        if member_id == updated.member_id or member_id == replaced:
            members[updated.member_id] = updated
        else:
            members[member_id] = member
    members[updated.member_id] = updated
    return members


def _reads_any(group: ConsumerGroup, names: set[str]) -> bool:
    if not names.isdisjoint(group.name_counts):
        return True
    return any(not names.isdisjoint(resolved.topics) for resolved in group.resolved_regexes.values())
