"""The responses to members of classic groups."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.classic_member import ClassicMember
from moldau.protocol import errors
from moldau.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.sync_group_response import SyncGroupResponse

# What a failed write of a group's record means to the members; other errors are passed on as they are.
WRITE_ERRORS: Final = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_COORDINATOR,
    errors.KAFKA_STORAGE_ERROR: errors.NOT_COORDINATOR,
    errors.MESSAGE_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.RECORD_LIST_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.INVALID_FETCH_SIZE: errors.UNKNOWN_SERVER_ERROR,
}


def write_error(code: int) -> int:
    return WRITE_ERRORS.get(code, code)


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    leader: str | None,
    members: list[JoinGroupResponseMember] | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The current generation; the leader also gets all members."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.member_protocol_type,
        protocol_name=group.protocol_name,
        leader=leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def join_error(code: int, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name=None, member_id=member_id)


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.member_protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def sync_error(code: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
