"""The streams group protocol (KIP-1071): heartbeats by which members join, bring their topology, get tasks, and leave.

One heartbeat does, in this order: find or make the group and the member; take over what the member says about itself;
take over its topology, if the group has none; look whether the topics have changed, and whether all that are needed are
there (then the group's epoch rises); compute a target if the epoch is ahead of it; lead the member one step towards its
target (`step`). Internal topics that are missing are told to who responds, who has them created. Kafka does this in
GroupMetadataManager.
"""

from __future__ import annotations

import logging
from functools import partial

from moldau.coordinator.group.consumer_timers import REVOCATION, SESSION, MemberTimers
from moldau.coordinator.group.group import CLASSIC
from moldau.coordinator.group.part import GroupPart
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.group.streams.checks import check_epoch
from moldau.coordinator.group.streams.configuration import SHUTDOWN_APPLICATION, MissingTopics, Problem
from moldau.coordinator.group.streams.describe import describe_group
from moldau.coordinator.group.streams.endpoints import partitions_by_endpoint
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import (
    JOINING_EPOCH,
    LEFT_EPOCH,
    NO_TIMEOUT,
    UNREVOKED_TASKS,
    StreamsMember,
)
from moldau.coordinator.group.streams.records import group_record, remove_member
from moldau.coordinator.group.streams.replay import StreamsReplay
from moldau.coordinator.group.streams.settings import StreamsSettings
from moldau.coordinator.group.streams.step import Step, StreamsSteps
from moldau.coordinator.group.streams.tasks import Tasks, TasksByRole, make_tasks
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import streams_group_heartbeat_request as wire
from moldau.protocol.messages.streams_group_describe_response import DescribedGroup
from moldau.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from moldau.protocol.messages.streams_group_heartbeat_response import (
    Status,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from moldau.protocol.primitives import Message

log = logging.getLogger("moldau.coordinator")


class StreamsProtocol(GroupPart):
    """See the module. Verbs raise KafkaError for what the member is told."""

    def __init__(self, state: GroupShardState) -> None:
        self._state = state
        self.timers = MemberTimers(state.timers)
        self.steps = StreamsSteps(state, self.timers, self._schedule_revocation)
        self._replay = StreamsReplay(state)

    @property
    def settings(self) -> StreamsSettings:
        return self._state.settings.streams

    # What begins and changes

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        self._replay.replay(record_type, key, value)

    def on_loaded(self, now_ms: int) -> Outcome | None:
        for group in self._state.groups.values():
            if isinstance(group, StreamsGroup):
                for member in group.members.values():
                    self._schedule_session(group.group_id, member.member_id, now_ms)
                    if member.state == UNREVOKED_TASKS:
                        self._schedule_revocation(group.group_id, member, now_ms)
        return None

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> Outcome | None:
        self.steps.on_metadata(delta)
        return None

    # Verbs

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str, now_ms: int
    ) -> tuple[Outcome, MissingTopics]:
        """The request has passed `check_heartbeat`. Besides the outcome: internal topics that must be created."""
        if request.member_epoch == LEFT_EPOCH:
            return self._leave(request), {}
        joins = request.member_epoch == JOINING_EPOCH
        tombstones: list[StoredRecord] = []
        group = self._get_or_create_group(request.group_id, joins, tombstones)
        if joins:
            self._check_capacity(group)
        owned = _owned(request)
        member = group.members.get(request.member_id)
        if member is None:
            member = StreamsMember(request.member_id) if joins else group.member(request.member_id)
        else:
            check_epoch(member, request.member_epoch, owned)
        step = Step(group, _updated(member, request, client_id, client_host), owned)
        step.records += tombstones
        configured = self.steps.advance(step, member, request.topology, now_ms)
        self._schedule_session(group.group_id, request.member_id, now_ms)
        if request.shutdown_application:
            self._ask_for_shutdown(group, request.member_id)
        response = self._response(step, member, request)
        if configured.problem is not None:
            step.statuses.append(configured.problem)
        if group.shutdown_member_id is not None:
            step.statuses.append(_shutdown(group.shutdown_member_id))
        response.status = [Status(one.status_code, one.detail) for one in step.statuses]
        return Outcome(step.records, response), configured.missing

    def _response(
        self, step: Step, before: StreamsMember, request: StreamsGroupHeartbeatRequest
    ) -> StreamsGroupHeartbeatResponse:
        group, member = step.group, step.member
        response = StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(self._state.image, group.group_id),
        )
        tasks = member.assigned.without_epochs()
        # Who tells other tasks than it has may have missed a response: it is told again, and not only when it is
        # fenced.
        has_missed = step.owned is not None and step.owned != tasks
        is_new = request.member_epoch == JOINING_EPOCH or member.assigned != before.assigned
        if is_new or has_missed:
            response.active_tasks = _task_ids(tasks.active)
            response.standby_tasks = _task_ids(tasks.standby)
            response.warmup_tasks = _task_ids(tasks.warmup)
            if member.user_endpoint is not None and is_new:
                group.endpoint_epoch += 1
        if group.endpoint_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = partitions_by_endpoint(group, member, self._state.image)
        if group.group_id in self._state.groups:
            # A group that is new begins to count when it is stored.
            response.endpoint_information_epoch = group.endpoint_epoch
        return response

    def describe(self, group_ids: list[str]) -> list[DescribedGroup]:
        described: list[DescribedGroup] = []
        for group_id in group_ids:
            try:
                described.append(describe_group(self.find_group(group_id), self._state.image))
            except KafkaError as error:
                described.append(DescribedGroup(error.code, error.message, group_id))
        return described

    # Groups and members

    def find_group(self, group_id: str) -> StreamsGroup:
        group = self._state.get_group(group_id)
        if not isinstance(group, StreamsGroup):
            raise _other_kind(group_id)
        return group

    def _get_or_create_group(self, group_id: str, joins: bool, tombstones: list[StoredRecord]) -> StreamsGroup:
        """The group; one that is not there yet, or only as an empty classic one, is made by the records that follow."""
        group = self._state.find_group(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if group is None and not joins:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        if group is None:
            return StreamsGroup(group_id)
        if not joins or group.kind != CLASSIC or not group.is_empty():
            raise _other_kind(group_id)
        log.info("converting empty classic group %s to a streams group", group_id)
        tombstones += group.tombstones()
        return StreamsGroup(group_id)

    def _check_capacity(self, group: StreamsGroup) -> None:
        """Counts also a member that is known and joins again, as Kafka does."""
        size_max = self.settings.size_max
        if len(group.members) >= size_max:
            raise KafkaError(
                errors.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {size_max} members.",
            )

    # Leaving

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> Outcome:
        group = self.find_group(request.group_id)
        member = group.member(request.member_id)
        if request.shutdown_application:
            self._ask_for_shutdown(group, member.member_id)
        log.info("member %s leaves streams group %s", member.member_id, group.group_id)
        response = StreamsGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEFT_EPOCH, status=[])
        return self._fence(group, member, response)

    def _fence(self, group: StreamsGroup, member: StreamsMember, response: Message | None) -> Outcome:
        """Takes a member out of the group; the others get its tasks when they are heard of next."""
        records = remove_member(group.group_id, member.member_id)
        records.append(
            group_record(
                group.group_id,
                group.group_epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
        self._state.settings.counts.streams_rebalances += 1
        return Outcome(records, response)

    def _ask_for_shutdown(self, group: StreamsGroup, member_id: str) -> None:
        """All members are told to end, until the group is empty; nobody writes it down."""
        if group.shutdown_member_id is None:
            log.info("member %s of streams group %s asks for a shutdown of the application", member_id, group.group_id)
            group.shutdown_member_id = member_id

    # Time

    def _schedule_session(self, group_id: str, member_id: str, now_ms: int) -> None:
        timeout_ms = self.settings.session_timeout_ms(self._state.image, group_id)
        action = partial(self._on_session_expired, group_id, member_id)
        self.timers.schedule(SESSION, group_id, member_id, now_ms + timeout_ms, action)

    def _on_session_expired(self, group_id: str, member_id: str, now_ms: int) -> Outcome | None:
        return self._fence_if_there(group_id, member_id, "its session expired")

    def _fence_if_there(self, group_id: str, member_id: str, reason: str) -> Outcome | None:
        group = self._state.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
        if not isinstance(group, StreamsGroup) or member is None:
            return None
        log.info("fencing member %s of streams group %s: %s", member_id, group_id, reason)
        return self._fence(group, member, None)

    def _schedule_revocation(self, group_id: str, member: StreamsMember, now_ms: int) -> None:
        """The member has this long to give up what it must, then it is taken out."""
        action = partial(self._on_revocation_expired, group_id, member.member_id, member.member_epoch)
        due_ms = now_ms + max(0, member.rebalance_timeout_ms)
        self.timers.schedule(REVOCATION, group_id, member.member_id, due_ms, action)

    def _on_revocation_expired(self, group_id: str, member_id: str, epoch: int, now_ms: int) -> Outcome | None:
        group = self._state.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
        if member is None or member.member_epoch != epoch or member.state != UNREVOKED_TASKS:
            return None
        return self._fence_if_there(group_id, member_id, f"it did not give its tasks up in epoch {epoch}")


def _other_kind(group_id: str) -> KafkaError:
    return KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")


def _shutdown(member_id: str) -> Problem:
    return Problem(
        SHUTDOWN_APPLICATION,
        f"Streams group member {member_id} encountered a fatal error and requested a shutdown for the entire "
        "application.",
    )


def _owned(request: StreamsGroupHeartbeatRequest) -> TasksByRole | None:
    """What the member says it has; None if it says that nothing has changed."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return TasksByRole(_tasks(request.active_tasks), _tasks(request.standby_tasks), _tasks(request.warmup_tasks))


def _tasks(rows: list[wire.TaskIds]) -> Tasks:
    return make_tasks((row.subtopology_id, row.partitions) for row in rows)


def _task_ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks)]


def _updated(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str
) -> StreamsMember:
    """What the member says about itself. Fields left out stay as they are."""
    updated = member.copy()
    if request.rack_id is not None:
        updated.rack_id = request.rack_id
    if request.rebalance_timeout_ms != NO_TIMEOUT:
        updated.rebalance_timeout_ms = request.rebalance_timeout_ms
    if request.topology is not None:
        updated.topology_epoch = request.topology.epoch
    if request.process_id is not None:
        updated.process_id = request.process_id
    if request.client_tags is not None:
        updated.client_tags = {tag.key: tag.value for tag in request.client_tags}
    if request.user_endpoint is not None:
        updated.user_endpoint = (request.user_endpoint.host, request.user_endpoint.port)
    updated.client_id = client_id
    updated.client_host = client_host
    return updated
