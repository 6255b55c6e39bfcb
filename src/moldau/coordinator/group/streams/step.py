"""One step of a streams group and of one of its members: metadata, topology, epoch, target, assignment.

Each part that changes something adds its record, so the order of the records is that of the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from moldau.coordinator.group.assignment_pace import AssignmentPace
from moldau.coordinator.group.consumer_timers import REVOCATION, MemberTimers
from moldau.coordinator.group.metadata_hash import group_hash
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.group.streams.checks import check_tasks
from moldau.coordinator.group.streams.configuration import (
    ASSIGNMENT_DELAYED,
    STALE_TOPOLOGY,
    ConfiguredTopology,
    Problem,
    configure,
)
from moldau.coordinator.group.streams.group import INITIAL_EPOCH, NOT_VALIDATED, StreamsGroup
from moldau.coordinator.group.streams.member import UNREVOKED_TASKS, StreamsMember
from moldau.coordinator.group.streams.reconciliation import reconcile
from moldau.coordinator.group.streams.records import (
    assignment_epoch_record,
    current_record,
    group_record,
    member_record,
    target_record,
    topology_record,
)
from moldau.coordinator.group.streams.replay import initial_delay_key
from moldau.coordinator.group.streams.settings import StreamsSettings
from moldau.coordinator.group.streams.sticky_assignor import TaskMember, TaskSource, assign_tasks
from moldau.coordinator.group.streams.tasks import NO_TASKS, TasksByRole
from moldau.coordinator.group.streams.topology import StreamsTopology, topology_from_request
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.metadata.delta import MetadataDelta
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import streams_group_heartbeat_request as wire

STANDBY_REPLICAS: Final = "num.standby.replicas"
INITIAL_DELAY_TEXT: Final = "Assignment delayed due to the configured initial rebalance delay."
INTERVAL_TEXT: Final = "Assignment delayed due to the configured assignment interval."

ScheduleRevocation = Callable[[str, StreamsMember, int], None]
"""Called with group id, member and time when a member must give tasks up."""


class Step:
    """What one heartbeat has come to: its records, and what its response tells."""

    def __init__(self, group: StreamsGroup, member: StreamsMember, owned: TasksByRole | None) -> None:
        self.group = group
        self.member = member
        self.owned = owned
        self.records: list[StoredRecord] = []
        self.statuses: list[Problem] = []
        self.epoch = group.group_epoch


class StreamsSteps:
    """See the module. Reads the state of the shard; what it decides is in the records."""

    def __init__(self, state: GroupShardState, timers: MemberTimers, schedule_revocation: ScheduleRevocation) -> None:
        self._state = state
        self._timers = timers
        self._schedule_revocation = schedule_revocation
        self._pace = AssignmentPace(state)
        self._topic_hashes: dict[str, int] = {}

    @property
    def settings(self) -> StreamsSettings:
        return self._state.settings.streams

    def on_metadata(self, delta: MetadataDelta) -> None:
        """Groups whose topics may have changed look at them again when one of their members is heard of."""
        names = {topic.name for topic in delta.changed_topics.values()}
        names.update(topic.name for topic in delta.deleted_topics.values())
        if not names:
            return
        for name in names:
            self._topic_hashes.pop(name, None)
        for group in self._state.groups.values():
            if isinstance(group, StreamsGroup) and group.topology is not None:
                if not names.isdisjoint(group.topology.required_topics):
                    group.looks_at_topics = True

    def advance(
        self, step: Step, before: StreamsMember, topology: wire.Topology | None, now_ms: int
    ) -> ConfiguredTopology:
        """From what the member was to what it says it is (`step.member`), and one step on."""
        group, member = step.group, step.member
        is_changed = not member.says_the_same(before) or member.member_id not in group.members
        if is_changed:
            step.records.append(member_record(group.group_id, member))
        known = self._take_over_topology(step, topology)
        if group.topology is not None and member.topology_epoch < group.topology.epoch:
            detail = f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch"
            step.statuses.append(Problem(STALE_TOPOLOGY, f"{detail} {group.topology.epoch}."))
        configured = self._update_epoch(step, known, is_changed)
        self._begin_initial_delay(group, now_ms)
        target_epoch, target = self._update_target(step, configured, now_ms)
        self._reconcile(step, target_epoch, target, now_ms)
        return configured

    # Topology and epoch

    def _take_over_topology(self, step: Step, sent: wire.Topology | None) -> StreamsTopology:
        """The group's topology; the first member brings it, and it stays until the group is deleted."""
        group = step.group
        if sent is None:
            if group.topology is None:
                # Its record is missing in the log; whoever joins anew brings it again.
                raise KafkaError(errors.FENCED_MEMBER_EPOCH, f"Group {group.group_id} has no topology.")
            return group.topology
        if group.topology is not None and group.topology.epoch > sent.epoch:
            return group.topology
        topology = topology_from_request(sent)
        if group.topology is None:
            step.records.append(topology_record(group.group_id, topology))
            return topology
        if not topology.is_same_as(group.topology):
            raise KafkaError(errors.INVALID_REQUEST, "Topology updates are not supported yet.")
        return group.topology

    def _update_epoch(self, step: Step, topology: StreamsTopology, is_changed: bool) -> ConfiguredTopology:
        group = step.group
        metadata_hash = group.metadata_hash
        configured = group.configured
        bump = is_changed
        looked = group.must_look_at_topics()
        if configured is None or looked:
            metadata_hash = group_hash(topology.required_topics, self._topic_hashes, self._state.image)
            if configured is None or metadata_hash != configured.metadata_hash:
                configured = configure(topology, self._state.image, metadata_hash)
            bump = bump or metadata_hash != group.metadata_hash
        check_tasks(configured, step.owned)
        validated = topology.epoch if configured.is_ready else NOT_VALIDATED
        configs = self._assignment_configs(group.group_id)
        if bump or validated != group.validated_topology_epoch or configs != group.assignment_configs:
            step.epoch = group.group_epoch + 1
            step.records.append(group_record(group.group_id, step.epoch, metadata_hash, validated, configs))
            self._state.settings.counts.streams_rebalances += 1
        if looked:
            group.looks_at_topics = False
            group.looked_at_epoch = step.epoch
        group.configured = configured
        return configured

    def _assignment_configs(self, group_id: str) -> dict[str, str]:
        """What the assignor is told besides members and tasks; another value means another assignment."""
        return {STANDBY_REPLICAS: str(self.settings.standby_replicas(self._state.image, group_id))}

    # The target

    def _begin_initial_delay(self, group: StreamsGroup, now_ms: int) -> None:
        """An empty group waits a moment for more members, so that they are assigned together."""
        key = initial_delay_key(group.group_id)
        delay_ms = self.settings.initial_delay_ms(self._state.image, group.group_id)
        if group.members or delay_ms == 0 or self._state.timers.is_scheduled(key):
            return
        self._state.timers.schedule(key, now_ms + delay_ms, partial(self._on_initial_delay_over, group.group_id))

    def _on_initial_delay_over(self, group_id: str, now_ms: int) -> Outcome | None:
        group = self._state.groups.get(group_id)
        if not isinstance(group, StreamsGroup) or not group.members or group.topology is None:
            return None
        if group.group_epoch <= group.assignment_epoch:
            return None
        if group.configured is None or group.must_look_at_topics():
            # The topics have changed: the next heartbeat raises the epoch, and computes the target for that.
            metadata_hash = group_hash(group.topology.required_topics, self._topic_hashes, self._state.image)
            if metadata_hash != group.metadata_hash:
                return None
            group.configured = configure(group.topology, self._state.image, metadata_hash)
        records: list[StoredRecord] = []
        self._compute_targets(group, group.members, group.group_epoch, group.configured, records, now_ms)
        return Outcome(records)

    def _update_target(self, step: Step, configured: ConfiguredTopology, now_ms: int) -> tuple[int, TasksByRole]:
        """The epoch and the target that the member is led to: new ones, if they are due."""
        group, member = step.group, step.member
        if group.assignment_epoch >= step.epoch:
            return group.assignment_epoch, group.target_of(member.member_id)
        if self._state.timers.is_scheduled(initial_delay_key(group.group_id)):
            step.statuses.append(Problem(ASSIGNMENT_DELAYED, INITIAL_DELAY_TEXT))
            return max(INITIAL_EPOCH, group.assignment_epoch), NO_TASKS
        interval_ms = self.settings.assignment_interval_ms(self._state.image, group.group_id)
        assigned = (group.assignment_epoch, group.assignment_timestamp_ms)
        if not self._pace.may_assign(group.group_id, *assigned, interval_ms, now_ms):
            step.statuses.append(Problem(ASSIGNMENT_DELAYED, INTERVAL_TEXT))
            return group.assignment_epoch, group.target_of(member.member_id)
        members = {**group.members, member.member_id: member}
        targets = self._compute_targets(group, members, step.epoch, configured, step.records, now_ms)
        return step.epoch, targets[member.member_id]

    def _compute_targets(
        self,
        group: StreamsGroup,
        members: dict[str, StreamsMember],
        epoch: int,
        configured: ConfiguredTopology,
        records: list[StoredRecord],
        now_ms: int,
    ) -> dict[str, TasksByRole]:
        """A topology that is not ready has no tasks: everybody gets none, and that counts as an assignment."""
        self._pace.note(group.group_id, epoch, now_ms)
        targets = dict.fromkeys(members, NO_TASKS)
        if configured.is_ready:
            specs = {one: TaskMember(member.process_id, group.target_of(one)) for one, member in members.items()}
            sources = [
                TaskSource(name, one.task_count, one.is_stateful) for name, one in configured.subtopologies.items()
            ]
            targets = assign_tasks(specs, sources, self.settings.standby_replicas(self._state.image, group.group_id))
        for member_id, target in targets.items():
            if group.targets.get(member_id) != target:
                records.append(target_record(group.group_id, member_id, target))
        records.append(assignment_epoch_record(group.group_id, epoch, self._state.wall.at(now_ms)))
        return targets

    # The assignment

    def _reconcile(self, step: Step, target_epoch: int, target: TasksByRole, now_ms: int) -> None:
        group, member = step.group, step.member
        if member.is_reconciled_to(target_epoch):
            return
        moved = reconcile(group, member, target_epoch, target, step.owned)
        if moved is member or moved.same_assignment(member):
            return
        step.records.append(current_record(group.group_id, moved))
        step.member = moved
        if moved.state == UNREVOKED_TASKS:
            self._schedule_revocation(group.group_id, moved, now_ms)
        else:
            self._timers.cancel(REVOCATION, group.group_id, moved.member_id)
