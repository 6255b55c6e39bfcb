"""Turns a classic group into a consumer group and back, with its members, while they work (KIP-848, KIP-1113).

A member of the consumer protocol that joins a classic group of consumers takes everybody along: the others stay
members, through the requests they know. When the last member of the consumer protocol goes, the others are a classic
group again. Both are records: tombstones of the one kind, then everything the other kind has, in one batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from moldau.coordinator.group.classic_group import STABLE, ClassicGroup
from moldau.coordinator.group.classic_member import ClassicMember
from moldau.coordinator.group.classic_records import current_assignments, group_record
from moldau.coordinator.group.consumer_group import INITIAL_EPOCH, ConsumerGroup
from moldau.coordinator.group.consumer_member import ConsumerMember, Partitions
from moldau.coordinator.group.consumer_records import (
    assignment_epoch_record,
    current_record,
    group_epoch_record,
    member_record,
    target_record,
)
from moldau.coordinator.group.consumer_settings import ConsumerSettings
from moldau.coordinator.group.group import CONSUMER_PROTOCOL_TYPE
from moldau.coordinator.outcome import StoredRecord
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
)
from moldau.protocol.primitives import DecodeError, Reader, Writer
from moldau.protocol.stored.group_records import ClassicMemberMetadata
from moldau.protocol.stored.group_records import ClassicProtocol as SupportedProtocol

HIGHEST_PROTOCOL_VERSION = ConsumerProtocolSubscription.HIGHEST_VERSION


# The embedded protocol of consumers


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Of any version: newer ones begin like the newest that is known. Raises DecodeError."""
    reader = Reader(metadata)
    return ConsumerProtocolSubscription.decode(reader, _known_version(int(reader.int16())))


def subscription_version(metadata: bytes) -> int:
    return _known_version(int(Reader(metadata).int16()))


def _known_version(version: int) -> int:
    if version < 0:
        raise DecodeError(f"a consumer's protocol cannot have version {version}")
    return min(version, HIGHEST_PROTOCOL_VERSION)


def write_assignment(partitions: Mapping[bytes, Collection[int]], version: int, image: MetadataImage) -> bytes:
    """Topics that were deleted are left out: a classic member knows names only."""
    topics: list[AssignmentTopicPartition] = []
    for topic_id, indexes in partitions.items():
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            topics.append(AssignmentTopicPartition(topic.name, sorted(indexes)))
    writer = Writer()
    writer.int16(version)
    ConsumerProtocolAssignment(topics).encode(writer, version)
    return writer.to_bytes()


def read_assignment(data: bytes, image: MetadataImage) -> tuple[Partitions, bool]:
    """The partitions by topic id, and whether there is something in it that only its writer understands."""
    if not data:
        return {}, False
    reader = Reader(data)
    assignment = ConsumerProtocolAssignment.decode(reader, _known_version(int(reader.int16())))
    return _named(assignment.assigned_partitions, image), bool(assignment.user_data)


# From classic to consumer


def check_upgrade(group: ClassicGroup, settings: ConsumerSettings) -> None:
    """Raises GROUP_ID_NOT_FOUND, as for any group that is not a consumer group, where an upgrade is not possible."""
    reason = ""
    if not settings.may_upgrade:
        reason = "online upgrade is disabled"
    elif group.member_protocol_type != CONSUMER_PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > settings.size_max:
        reason = "the group size exceeds the consumer group maximum size"
    if reason:
        raise _cannot_upgrade(group, reason)


def _cannot_upgrade(group: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        errors.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


def upgraded(group: ClassicGroup, image: MetadataImage) -> ConsumerGroup:
    """The same group and members as a consumer group: everybody has what it has, in the epoch of its generation."""
    result = ConsumerGroup(group.group_id)
    epoch = max(group.generation, INITIAL_EPOCH)
    result.group_epoch = epoch
    result.assignment_epoch = epoch
    subscriptions, owned = _read_members(group, image)
    for classic in group.members.values():
        partitions = owned[classic.member_id]
        result.update_member(_upgraded_member(classic, subscriptions[classic.member_id], partitions, epoch))
        result.update_target(classic.member_id, partitions)
    return result


def _read_members(
    group: ClassicGroup, image: MetadataImage
) -> tuple[dict[str, ConsumerProtocolSubscription], dict[str, Partitions]]:
    """What each member wants, and what it has: a partition that two claim is with the first of them."""
    protocol_name = group.protocol_name or group.select_protocol()
    subscriptions: dict[str, ConsumerProtocolSubscription] = {}
    assigned: dict[str, Partitions] = {}
    for member_id, member in group.members.items():
        try:
            subscriptions[member_id] = read_subscription(member.metadata(protocol_name))
            assigned[member_id], has_user_data = read_assignment(member.assignment, image)
        except (DecodeError, KeyError) as error:
            raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from error
        if has_user_data:
            raise _cannot_upgrade(
                group,
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
                "assignor before re-attempting the upgrade",
            )
    taken: set[tuple[bytes, int]] = set()
    owned = {member_id: _claim(partitions, taken) for member_id, partitions in assigned.items()}
    if group.state != STABLE:
        # In a rebalance the assignment is not known; cooperative members go on with what they said they have.
        for member_id, subscription in subscriptions.items():
            more = _claim(_named(subscription.owned_partitions, image), taken)
            for topic_id, indexes in more.items():
                owned[member_id][topic_id] = owned[member_id].get(topic_id, frozenset()) | indexes
    return subscriptions, owned


def _claim(partitions: Partitions, taken: set[tuple[bytes, int]]) -> Partitions:
    claimed: Partitions = {}
    for topic_id, indexes in partitions.items():
        free = frozenset(index for index in indexes if (topic_id, index) not in taken)
        if free:
            claimed[topic_id] = free
            taken.update((topic_id, index) for index in free)
    return claimed


def _named(rows: Iterable[AssignmentTopicPartition | SubscriptionTopicPartition], image: MetadataImage) -> Partitions:
    """By the ids of topics; those that do not exist are left out."""
    found: Partitions = {}
    for row in rows:
        topic = image.topic(row.topic)
        if topic is not None and row.partitions:
            found[topic.topic_id] = frozenset(row.partitions)
    return found


def _upgraded_member(
    classic: ClassicMember, subscription: ConsumerProtocolSubscription, partitions: Partitions, epoch: int
) -> ConsumerMember:
    member = ConsumerMember(classic.member_id)
    member.member_epoch = epoch
    member.previous_member_epoch = epoch
    member.instance_id = classic.instance_id
    member.rack_id = subscription.rack_id or None
    member.rebalance_timeout_ms = classic.rebalance_timeout_ms
    member.client_id = classic.client_id
    member.client_host = classic.client_host
    member.subscribed_topic_names = frozenset(subscription.topics)
    member.assigned = {topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in partitions.items()}
    member.classic = classic_metadata(classic.session_timeout_ms, classic.protocols)
    return member


def classic_metadata(session_timeout_ms: int, protocols: list[tuple[str, bytes]]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(session_timeout_ms, [SupportedProtocol(name, data) for name, data in protocols])


def upgrade_records(group: ConsumerGroup) -> list[StoredRecord]:
    """Everything a consumer group is made of."""
    group_id = group.group_id
    members = group.members.values()
    records = [member_record(group_id, member) for member in members]
    records.append(group_epoch_record(group_id, group.group_epoch, group.metadata_hash))
    records += [target_record(group_id, member_id, group.target_of(member_id)) for member_id in group.members]
    records.append(assignment_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms))
    records += [current_record(group_id, member) for member in members]
    return records


# From consumer to classic


def can_downgrade(
    group: ConsumerGroup, leaving: Collection[ConsumerMember], settings: ConsumerSettings, classic_size_max: int
) -> bool:
    """Would only classic members be left, and at least one?"""
    size = len(group.members) - len(leaving)
    if size <= 0 or not group.all_others_are_classic(leaving):
        return False
    return settings.may_downgrade and size <= classic_size_max


def downgraded(
    group_id: str, generation: int, members: Collection[ConsumerMember], image: MetadataImage, wall_ms: int
) -> ClassicGroup:
    """The same members as a stable classic group; each is assigned what it has, what it was to give up included.

    Kafka writes down what each was to have. If the group becomes a consumer group again before its members have joined
    again, that would be taken for what they have, and a partition could be read by two.
    """
    result = ClassicGroup(group_id, wall_ms)
    for member in members:
        assert member.classic is not None
        protocols = [(protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols]
        classic = ClassicMember(
            member.member_id,
            member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.classic.session_timeout_ms,
            protocols=protocols,
        )
        result.add(classic, None)
    protocol_name = result.select_protocol()
    result.load(generation, CONSUMER_PROTOCOL_TYPE, protocol_name, result.leader)
    for member in members:
        classic = result.members[member.member_id]
        version = subscription_version(classic.metadata(protocol_name))
        classic.assignment = write_assignment(member.all_partitions(), version, image)
    return result


def downgrade_record(group: ClassicGroup) -> StoredRecord:
    return group_record(group, current_assignments(group))
