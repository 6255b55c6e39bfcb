"""Classic groups as records: GroupMetadataKey and GroupMetadataValue, as Kafka 4.3 writes them (version 3)."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.classic_member import ClassicMember
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol.primitives import Reader
from moldau.protocol.stored.framing import encode_key, encode_value
from moldau.protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

VALUE_VERSION: Final = 3


def group_record(group: ClassicGroup, assignments: dict[str, bytes]) -> StoredRecord:
    """The group as it is, with these assignments."""
    value = GroupMetadataValue(
        group.protocol_type(),
        group.generation,
        group.protocol_name,
        group.leader,
        group.state_timestamp_ms,
        [_member(member, group.protocol_name, assignments[member.member_id]) for member in group.members.values()],
    )
    return encode_key(GroupMetadataKey(group.group_id)), encode_value(value, VALUE_VERSION)


def new_group_record(group: ClassicGroup) -> StoredRecord:
    """A group that nobody has joined yet: written when it is first heard of."""
    value = GroupMetadataValue("", 0, None, None, group.state_timestamp_ms, [])
    return encode_key(GroupMetadataKey(group.group_id)), encode_value(value, VALUE_VERSION)


def current_assignments(group: ClassicGroup) -> dict[str, bytes]:
    return {member.member_id: member.assignment for member in group.members.values()}


def _member(member: ClassicMember, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
    assert protocol_name is not None, "a group with members has a protocol when it is written"
    return MemberMetadata(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(protocol_name),
        assignment,
    )


def group_id_of(key: bytes) -> str:
    return GroupMetadataKey.decode(Reader(key, 2, len(key)), 0).group


def load_group(group_id: str, value: bytes) -> ClassicGroup:
    """The group a record describes: at rest, every member known by the one protocol that was chosen."""
    reader = Reader(value)
    data = GroupMetadataValue.decode(reader, reader.int16())
    group = ClassicGroup(group_id, data.current_state_timestamp)
    protocol_name = data.protocol
    for row in data.members:
        # Records of version 0 have no rebalance timeout.
        rebalance_timeout_ms = row.session_timeout if row.rebalance_timeout < 0 else row.rebalance_timeout
        member = ClassicMember(
            row.member_id,
            row.group_instance_id,
            client_id=row.client_id,
            client_host=row.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms,
            session_timeout_ms=row.session_timeout,
            protocols=[(protocol_name or "", row.subscription)],
            assignment=row.assignment,
        )
        group.add(member, None)
    group.load(data.generation, data.protocol_type, protocol_name, data.leader)
    return group
