"""The consumer group protocol (KIP-848): heartbeats by which members join, learn their partitions, and leave.

One heartbeat does, in this order: find or make the group and the member; take over what the member says about itself;
look whether subscriptions or topics have changed (then the group's epoch rises); compute a target if the epoch is
ahead of it; lead the member one step towards its target (`consumer_step`). Kafka does this in GroupMetadataManager.
"""

from __future__ import annotations

import logging
from functools import partial

from moldau.coordinator.group.classic_group import STABLE as CLASSIC_STABLE
from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.classic_rebalance import ClassicRebalance
from moldau.coordinator.group.consumer_checks import check_epoch, check_instance
from moldau.coordinator.group.consumer_describe import describe_group
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.consumer_member import (
    JOINING_EPOCH,
    LEFT_EPOCH,
    LEFT_FOR_A_WHILE_EPOCH,
    UNREVOKED_PARTITIONS,
    ConsumerMember,
)
from moldau.coordinator.group.consumer_migration import (
    can_downgrade,
    check_upgrade,
    downgrade_record,
    downgraded,
    upgrade_records,
    upgraded,
)
from moldau.coordinator.group.consumer_records import (
    current_record,
    group_epoch_record,
    member_record,
    regex_tombstone,
    remove_member,
    target_record,
)
from moldau.coordinator.group.consumer_replay import ConsumerReplay
from moldau.coordinator.group.consumer_settings import ConsumerSettings
from moldau.coordinator.group.consumer_step import ConsumerSteps
from moldau.coordinator.group.consumer_timers import REVOCATION, SESSION, MemberTimers
from moldau.coordinator.group.group import CLASSIC
from moldau.coordinator.group.part import GroupPart
from moldau.coordinator.group.reconciliation import Owned
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_group_describe_response import DescribedGroup
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import uuid_to_text

log = logging.getLogger("moldau.coordinator")


class ConsumerProtocol(GroupPart):
    """See the module. Verbs raise KafkaError for what the member is told."""

    def __init__(self, state: GroupShardState, rebalance: ClassicRebalance) -> None:
        self._state = state
        self._rebalance = rebalance
        self.timers = MemberTimers(state.timers)
        self.steps = ConsumerSteps(state, self.timers, self._schedule_revocation)
        self._replay = ConsumerReplay(state)

    @property
    def settings(self) -> ConsumerSettings:
        return self._state.settings.consumer

    @property
    def classic_size_max(self) -> int:
        return self._state.settings.classic_size_max

    # What begins, changes and ends

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        self._replay.replay(record_type, key, value)

    def on_loaded(self, now_ms: int) -> Outcome | None:
        # Topics may have come while somebody else was the coordinator.
        self.steps.regexes.on_new_topics(self._state.image.offset)
        for group in self._state.groups.values():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self.schedule_session(group.group_id, member.member_id, now_ms)
                    if member.state == UNREVOKED_PARTITIONS:
                        self._schedule_revocation(group.group_id, member, now_ms)
        return None

    def on_unloaded(self, now_ms: int) -> None:
        self.steps.regexes.stop_all()

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> Outcome | None:
        self.steps.on_metadata(delta, image)
        return None

    # Verbs

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, version: int, client_id: str, client_host: str, now_ms: int
    ) -> Outcome:
        """The request has passed `check_heartbeat`."""
        if request.member_epoch in (LEFT_EPOCH, LEFT_FOR_A_WHILE_EPOCH):
            return self._leave(request, now_ms)
        records: list[StoredRecord] = []
        joins = request.member_epoch == JOINING_EPOCH
        group = self._get_or_create_group(request.group_id, joins, records, now_ms)
        self.check_capacity(group, request.member_id)
        owned = _owned(request)
        member_id = request.member_id or uuid_to_text(self._state.rng.randbytes(16))
        if request.instance_id is None:
            member = self._dynamic_member(group, member_id, request.member_epoch, owned)
        else:
            member = self._static_member(group, member_id, request.member_epoch, request.instance_id, owned, records)
        updated = _updated_member(member, request, client_id, client_host)
        updated = self.steps.advance(group, member, updated, owned, records, now_ms)
        self.schedule_session(group.group_id, member_id, now_ms)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(self._state.image, group.group_id),
        )
        if joins or _is_full(request) or updated.assigned != member.assigned:
            response.assignment = Assignment(
                [TopicPartitions(topic_id, sorted(epochs)) for topic_id, epochs in updated.assigned.items()]
            )
        return Outcome(records, response)

    def describe(self, group_ids: list[str]) -> list[DescribedGroup]:
        described: list[DescribedGroup] = []
        for group_id in group_ids:
            try:
                group = self.find_group(group_id)
            except KafkaError as error:
                described.append(DescribedGroup(error.code, error.message, group_id))
                continue
            described.append(describe_group(group, self.settings.assignors[0], self._state.image))
        return described

    # Groups and members

    def find_group(self, group_id: str) -> ConsumerGroup:
        group = self._state.get_group(group_id)
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def _get_or_create_group(
        self, group_id: str, joins: bool, records: list[StoredRecord], now_ms: int
    ) -> ConsumerGroup:
        """The group; one that is not there yet, or only as an empty classic one, is made by the records that follow."""
        group = self._state.find_group(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not joins:
            if group is None:
                raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if group is not None and group.kind == CLASSIC and group.is_empty():
            records += group.tombstones()
            group = None
        if group is None:
            return ConsumerGroup(group_id)
        if isinstance(group, ClassicGroup):
            return self._upgrade(group, records, now_ms)
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def _upgrade(self, group: ClassicGroup, records: list[StoredRecord], now_ms: int) -> ConsumerGroup:
        """Classic members wait for each other no longer: they join again, and find a consumer group."""
        check_upgrade(group, self.settings)
        result = upgraded(group, self._state.image)
        result.metadata_hash = self.steps.metadata_hash(set(result.name_counts))
        self._rebalance.respond_to_everybody(group, errors.REBALANCE_IN_PROGRESS)
        records += group.tombstones()
        records += upgrade_records(result)
        for member in result.members.values():
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
                self.schedule_session_of(group.group_id, member.member_id, timeout_ms, now_ms)
        log.info("converting classic group %s with %d members to a consumer group", group.group_id, len(result.members))
        return result

    def check_capacity(self, group: ConsumerGroup, member_id: str) -> None:
        size_max = self.settings.size_max
        if len(group.members) >= size_max and member_id not in group.members:
            raise KafkaError(
                errors.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {size_max} members.",
            )

    def _dynamic_member(self, group: ConsumerGroup, member_id: str, epoch: int, owned: Owned | None) -> ConsumerMember:
        member = group.members.get(member_id)
        if member is None:
            if epoch != JOINING_EPOCH:
                return group.member(member_id)
            return ConsumerMember(member_id)
        check_epoch(member, epoch, owned)
        return member

    def _static_member(
        self,
        group: ConsumerGroup,
        member_id: str,
        epoch: int,
        instance_id: str,
        owned: Owned | None,
        records: list[StoredRecord],
    ) -> ConsumerMember:
        known = group.static_member(instance_id)
        if epoch != JOINING_EPOCH:
            check_instance(known, member_id, instance_id)
            assert known is not None
            check_epoch(known, epoch, owned)
            return known
        if known is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not known.uses_classic_protocol and known.member_epoch != LEFT_FOR_A_WHILE_EPOCH:
            raise KafkaError(
                errors.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {known.member_id} member.",
            )
        return self.replace_static(group, known, member_id, records)

    def replace_static(
        self, group: ConsumerGroup, known: ConsumerMember, member_id: str, records: list[StoredRecord]
    ) -> ConsumerMember:
        """The instance is back under another member id: it takes over what it had."""
        member = known.copy(member_id)
        member.member_epoch = JOINING_EPOCH
        member.previous_member_epoch = JOINING_EPOCH
        group_id = group.group_id
        if member_id != known.member_id:
            records += remove_member(group_id, known.member_id)
        records.append(member_record(group_id, member))
        records.append(target_record(group_id, member_id, group.target_of(known.member_id)))
        records.append(current_record(group_id, member))
        return member

    # Leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Outcome:
        group = self.find_group(request.group_id)
        member_id, epoch = request.member_id, request.member_epoch
        response = ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=epoch)
        if request.instance_id is None:
            return self.fence([group.member(member_id)], group, response, now_ms)
        member = group.static_member(request.instance_id)
        check_instance(member, member_id, request.instance_id)
        assert member is not None
        if epoch == LEFT_FOR_A_WHILE_EPOCH:
            return Outcome([current_record(group.group_id, _left_for_a_while(member))], response)
        return self.fence([member], group, response, now_ms)

    def fence(
        self, members: list[ConsumerMember], group: ConsumerGroup, response: Message | None, now_ms: int
    ) -> Outcome:
        """Takes members out of the group; the others get their partitions when they are heard of next."""
        if not members:
            return Outcome([], response)
        group_id = group.group_id
        records: list[StoredRecord] = []
        if can_downgrade(group, members, self.settings, self.classic_size_max):
            reason = f"group {group_id} is classic again, its last member of the consumer protocol has gone"
            outcome = self.downgrade(group, members, None, reason, records, now_ms)
            outcome.response = response
            return outcome
        for member in members:
            records += remove_member(group_id, member.member_id)
        names = dict(group.name_counts)
        regexes = dict(group.regex_counts)
        for member in members:
            _discount(names, member.subscribed_topic_names)
            if member.subscribed_topic_regex:
                _discount(regexes, (member.subscribed_topic_regex,))
        records += [regex_tombstone(group_id, regex) for regex in group.regex_counts if regex not in regexes]
        metadata_hash = self.steps.metadata_hash(group.topics_of(names, regexes))
        records.append(group_epoch_record(group_id, group.group_epoch + 1, metadata_hash))
        self._state.settings.counts.consumer_rebalances += 1
        return Outcome(records, response)

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: list[ConsumerMember],
        joining: ConsumerMember | None,
        rebalance_reason: str,
        records: list[StoredRecord],
        now_ms: int,
    ) -> Outcome:
        """The members that stay become a classic group, and rebalance at once if there is a reason. `joining` is a
        static member in the place of its old self, which `records` have replaced already."""
        replaced = None if joining is None else group.static_member(joining.instance_id)
        left = {member.member_id for member in leaving}
        staying = [
            joining if joining is not None and member is replaced else member
            for member in group.members.values()
            if member.member_id not in left
        ]
        classic = downgraded(group.group_id, group.group_epoch, staying, self._state.image, self._state.wall.at(now_ms))
        if joining is None or replaced is None:
            records += group.tombstones()
        else:
            records += group.tombstones_of(
                [joining.member_id if known == replaced.member_id else known for known in group.members]
            )
        records.append(downgrade_record(classic))
        log.info("converting consumer group %s with %d members to a classic group", group.group_id, len(staying))
        return Outcome(records, on_written=partial(self._on_downgraded, classic, rebalance_reason))

    def _on_downgraded(self, classic: ClassicGroup, reason: str, error: KafkaError | None, now_ms: int) -> None:
        """Sessions begin, members have all their protocols back, and a rebalance begins if one is due."""
        group = self._state.groups.get(classic.group_id)
        if not isinstance(group, ClassicGroup):
            # It could not be written: the group is what it was.
            return
        for member in group.members.values():
            self._rebalance.start_session(group, member, member.session_timeout_ms, now_ms)
            known = classic.members.get(member.member_id)
            if known is not None and group.state == CLASSIC_STABLE:
                group.update(member, known.protocols, known.rebalance_timeout_ms, known.session_timeout_ms)
        if reason and group.state == CLASSIC_STABLE:
            self._rebalance.prepare(group, reason, now_ms)

    # Time

    def schedule_session(self, group_id: str, member_id: str, now_ms: int) -> None:
        timeout_ms = self.settings.session_timeout_ms(self._state.image, group_id)
        self.schedule_session_of(group_id, member_id, timeout_ms, now_ms)

    def schedule_session_of(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        action = partial(self._on_session_expired, group_id, member_id)
        self.timers.schedule(SESSION, group_id, member_id, now_ms + timeout_ms, action)

    def _on_session_expired(self, group_id: str, member_id: str, now_ms: int) -> Outcome | None:
        return self.fence_if_there(group_id, member_id, "its session expired", now_ms)

    def fence_if_there(self, group_id: str, member_id: str, reason: str, now_ms: int) -> Outcome | None:
        group = self._state.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None:
            return None
        log.info("fencing member %s of group %s: %s", member_id, group_id, reason)
        return self.fence([member], group, None, now_ms)

    def _schedule_revocation(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """The member has this long to give up what it must, then it is taken out."""
        action = partial(self._on_revocation_expired, group_id, member.member_id, member.member_epoch)
        due_ms = now_ms + max(0, member.rebalance_timeout_ms)
        self.timers.schedule(REVOCATION, group_id, member.member_id, due_ms, action)

    def _on_revocation_expired(self, group_id: str, member_id: str, epoch: int, now_ms: int) -> Outcome | None:
        group = self._state.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or member.member_epoch != epoch or member.state != UNREVOKED_PARTITIONS:
            return None
        return self.fence_if_there(group_id, member_id, f"it did not give its partitions up in epoch {epoch}", now_ms)


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    topics = request.topic_partitions
    return None if topics is None else [(topic.topic_id, topic.partitions) for topic in topics]


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member that tells everything about itself is told everything."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _updated_member(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str
) -> ConsumerMember:
    """What the member says about itself; the same object if that is nothing new. Fields left out stay as they are."""
    if _says_nothing(request, member) and member.client_id == client_id and member.client_host == client_host:
        return member
    updated = member.copy()
    if request.instance_id is not None:
        updated.instance_id = request.instance_id
    if request.rack_id is not None:
        updated.rack_id = request.rack_id
    if request.rebalance_timeout_ms != -1:
        updated.rebalance_timeout_ms = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        updated.server_assignor = request.server_assignor
    if request.subscribed_topic_names is not None:
        updated.subscribed_topic_names = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        updated.subscribed_topic_regex = request.subscribed_topic_regex
    updated.client_id = client_id
    updated.client_host = client_host
    updated.classic = None
    return member if updated.same_subscription(member) else updated


def _says_nothing(request: ConsumerGroupHeartbeatRequest, member: ConsumerMember) -> bool:
    """Most heartbeats only say that the member is there."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == -1
        and request.server_assignor is None
        and request.rack_id is None
        and request.instance_id == member.instance_id
        and member.classic is None
    )


def _left_for_a_while(member: ConsumerMember) -> ConsumerMember:
    """Its partitions stay with it, but commits of an earlier life do not count any more."""
    left = member.copy()
    left.member_epoch = LEFT_FOR_A_WHILE_EPOCH
    left.pending_revocation = {}
    left.assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    return left


def _discount(counts: dict[str, int], names: frozenset[str] | tuple[str, ...]) -> None:
    for name in names:
        if counts[name] == 1:
            del counts[name]
        else:
            counts[name] -= 1
