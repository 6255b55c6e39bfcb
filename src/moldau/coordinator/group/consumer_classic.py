"""Classic members of a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup mean steps of the newer protocol.

A member's generation is its epoch. Joining takes over its subscription and leads it one step on; what it has then comes
with SyncGroup. It leads nobody and assigns nothing. Heartbeats tell it to join again when there is another step.
"""

from __future__ import annotations

from functools import partial

from moldau.coordinator.group.classic import ClassicMembersOfOtherGroups
from moldau.coordinator.group.classic_join import Joining
from moldau.coordinator.group.classic_member import SyncCallback
from moldau.coordinator.group.classic_responses import join_error
from moldau.coordinator.group.consumer import ConsumerProtocol
from moldau.coordinator.group.consumer_checks import check_instance
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.consumer_member import UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, ConsumerMember
from moldau.coordinator.group.consumer_migration import (
    classic_metadata,
    read_subscription,
    subscription_version,
    write_assignment,
)
from moldau.coordinator.group.consumer_timers import CLASSIC_JOIN, CLASSIC_SYNC
from moldau.coordinator.group.group import CONSUMER_PROTOCOL_TYPE, Group
from moldau.coordinator.group.reconciliation import Owned
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.coordinator.timers import TimerAction
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_response import JoinGroupResponse
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.messages.sync_group_response import SyncGroupResponse
from moldau.protocol.primitives import DecodeError
from moldau.protocol.uuids import uuid_to_text


class ClassicMembers(ClassicMembersOfOtherGroups):
    """See the module."""

    def __init__(self, state: GroupShardState, protocol: ConsumerProtocol) -> None:
        self._state = state
        self._protocol = protocol
        self._timers = protocol.timers

    # JoinGroup

    def join(self, group: Group, joining: Joining, now_ms: int) -> Outcome:
        assert isinstance(group, ConsumerGroup)
        request = joining.request
        settings = self._protocol.settings
        if not settings.may_upgrade and not settings.may_downgrade:
            raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
        is_new = request.member_id == ""
        member_id = request.member_id or uuid_to_text(self._state.rng.randbytes(16))
        self._protocol.check_capacity(group, request.member_id)
        if not _supports(group, request.protocol_type, [name for name, _ in joining.protocols]):
            raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
        if is_new and joining.needs_known_id and request.group_instance_id is None:
            return Outcome(response=join_error(errors.MEMBER_ID_REQUIRED, member_id))
        records: list[StoredRecord] = []
        known = group.static_member(request.group_instance_id)
        member = self._member(group, known, member_id, request.group_instance_id, is_new, records)
        subscription = _subscription(joining)
        updated = _updated_member(member, joining, subscription)
        owned = _owned(subscription, self._state.image)
        if known is not None and can_downgrade_by_replacing(group, known, self._protocol):
            return self._join_and_downgrade(group, member, updated, owned, records, now_ms)
        updated = self._protocol.steps.advance(group, member, updated, owned, records, now_ms)
        on_written = partial(self._on_joined, group.group_id, updated)
        return Outcome(records, _joined(updated), on_written=on_written)

    def _member(
        self,
        group: ConsumerGroup,
        known: ConsumerMember | None,
        member_id: str,
        instance_id: str | None,
        is_new: bool,
        records: list[StoredRecord],
    ) -> ConsumerMember:
        if instance_id is None or (known is None and is_new):
            return group.members.get(member_id) or ConsumerMember(member_id)
        if is_new:
            assert known is not None
            return self._protocol.replace_static(group, known, member_id, records)
        check_instance(known, member_id, instance_id)
        assert known is not None
        return known

    def _on_joined(self, group_id: str, member: ConsumerMember, error: KafkaError | None, now_ms: int) -> None:
        if error is not None or member.classic is None:
            return
        member_id = member.member_id
        self._timers.cancel(CLASSIC_JOIN, group_id, member_id)
        self._protocol.schedule_session_of(group_id, member_id, member.classic.session_timeout_ms, now_ms)
        due_ms = now_ms + max(0, member.rebalance_timeout_ms)
        action = self._fence_later(group_id, member_id, "it did not ask for its assignment in time")
        self._timers.schedule(CLASSIC_SYNC, group_id, member_id, due_ms, action)

    def _join_and_downgrade(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        owned: Owned,
        records: list[StoredRecord],
        now_ms: int,
    ) -> Outcome:
        """A static member comes back as a classic one, and was the last that was none."""
        advance = self._protocol.steps.advance_to_known_target
        updated, is_current = advance(group, member, updated, owned, records, now_ms)
        staying = [one for one in group.members.values() if one.instance_id != updated.instance_id]
        if is_current and all(one.is_reconciled_to(group.assignment_epoch) for one in [*staying, updated]):
            reason = ""
        else:
            reason = f"group {group.group_id} is classic again, and not everybody has what it was to have"
        outcome = self._protocol.downgrade(group, [], updated, reason, records, now_ms)
        outcome.response = _joined(updated)
        return outcome

    # SyncGroup

    def sync(self, group: Group, request: SyncGroupRequest, respond: SyncCallback, now_ms: int) -> Outcome:
        assert isinstance(group, ConsumerGroup)
        member = self._check(group, request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None
        protocol = member.classic.supported_protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol.name,
        ):
            raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.member_epoch and member.state != UNREVOKED_PARTITIONS:
            self._expect_join(group.group_id, member, now_ms)
            raise KafkaError(errors.REBALANCE_IN_PROGRESS)
        partitions = {topic_id: list(epochs) for topic_id, epochs in member.assigned.items()}
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(partitions, subscription_version(protocol.metadata), self._state.image),
        )
        return Outcome(response=response, on_written=partial(self._on_synced, group.group_id, member))

    def _on_synced(self, group_id: str, member: ConsumerMember, error: KafkaError | None, now_ms: int) -> None:
        if error is None and member.classic is not None:
            self._timers.cancel(CLASSIC_SYNC, group_id, member.member_id)
            timeout_ms = member.classic.session_timeout_ms
            self._protocol.schedule_session_of(group_id, member.member_id, timeout_ms, now_ms)

    # Heartbeat

    def heartbeat(self, group: Group, request: HeartbeatRequest, now_ms: int) -> Outcome:
        assert isinstance(group, ConsumerGroup)
        member = self._check(group, request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None
        timeout_ms = member.classic.session_timeout_ms
        self._protocol.schedule_session_of(group.group_id, member.member_id, timeout_ms, now_ms)
        if not _has_a_step_to_make(group, member):
            return Outcome(response=HeartbeatResponse())
        self._expect_join(group.group_id, member, now_ms)
        return Outcome(response=HeartbeatResponse(error_code=errors.REBALANCE_IN_PROGRESS))

    def _expect_join(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """From the first time it is told, the member has its rebalance timeout to join again."""
        due_ms = now_ms + max(0, member.rebalance_timeout_ms)
        action = self._fence_later(group_id, member.member_id, "it did not join again in time")
        self._timers.schedule_if_absent(CLASSIC_JOIN, group_id, member.member_id, due_ms, action)

    def _fence_later(self, group_id: str, member_id: str, reason: str) -> TimerAction:
        return partial(self._protocol.fence_if_there, group_id, member_id, reason)

    # LeaveGroup

    def leave(self, group: Group, request: LeaveGroupRequest, now_ms: int) -> Outcome:
        """Administrators remove members of both protocols this way."""
        assert isinstance(group, ConsumerGroup)
        rows: list[MemberResponse] = []
        leaving: dict[str, ConsumerMember] = {}
        for identity in request.members:
            row = MemberResponse(identity.member_id, identity.group_instance_id)
            try:
                member = _leaving_member(group, identity)
                leaving[member.member_id] = member
            except KafkaError as error:
                row.error_code = error.code
            rows.append(row)
        return self._protocol.fence(list(leaving.values()), group, LeaveGroupResponse(members=rows), now_ms)

    # Who asks

    def _check(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
        if instance_id is None:
            member = group.member(member_id)
        else:
            known = group.static_member(instance_id)
            check_instance(known, member_id, instance_id)
            assert known is not None
            member = known
        if not member.uses_classic_protocol:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        if generation != member.member_epoch:
            raise KafkaError(errors.ILLEGAL_GENERATION)
        return member


def can_downgrade_by_replacing(group: ConsumerGroup, known: ConsumerMember, protocol: ConsumerProtocol) -> bool:
    """The known member is replaced by a classic one: would the group have classic members only?"""
    if known.uses_classic_protocol or not group.all_others_are_classic([known]):
        return False
    return protocol.settings.may_downgrade and len(group.members) <= protocol.classic_size_max


def _supports(group: ConsumerGroup, protocol_type: str, names: list[str]) -> bool:
    """All classic members must have a protocol in common, as if they were a classic group."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return False
    return any(group.classic_protocol_counts.get(name, 0) == group.classic_member_count for name in names)


def _has_a_step_to_make(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch or member.state == UNREVOKED_PARTITIONS:
        return True
    return member.state == UNRELEASED_PARTITIONS and not group.waits_for_partitions(member)


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    known = group.static_member(identity.group_instance_id)
    if known is None:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID)
    if identity.member_id:
        check_instance(known, identity.member_id, identity.group_instance_id)
    return known


def _subscription(joining: Joining) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(joining.protocols[0][1])
    except DecodeError as error:
        # As in Kafka, which does not expect this either.
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR) from error


def _owned(subscription: ConsumerProtocolSubscription, image: MetadataImage) -> Owned:
    owned: list[tuple[bytes, list[int]]] = []
    for row in subscription.owned_partitions:
        topic = image.topic(row.topic)
        if topic is not None:
            owned.append((topic.topic_id, row.partitions))
    return owned


def _updated_member(
    member: ConsumerMember, joining: Joining, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    request = joining.request
    updated = member.copy()
    updated.instance_id = request.group_instance_id or member.instance_id
    updated.rack_id = subscription.rack_id or member.rack_id
    if joining.rebalance_timeout_ms != -1:
        updated.rebalance_timeout_ms = joining.rebalance_timeout_ms
    updated.subscribed_topic_names = frozenset(subscription.topics)
    updated.subscribed_topic_regex = ""
    updated.client_id = joining.client_id
    updated.client_host = joining.client_host
    updated.classic = classic_metadata(request.session_timeout_ms, joining.protocols)
    return member if updated.same_subscription(member) else updated


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
        member_id=member.member_id,
    )
