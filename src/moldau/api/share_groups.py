"""ShareGroupHeartbeat and ShareGroupDescribe: members of share groups, and how administrators see them (KIP-932).

Version 1 each. The checks come in this order: the feature, the member id, what makes no sense in itself; then the
coordinator's.
"""

from __future__ import annotations

from moldau.api.authorize import check_group, denied_topics
from moldau.api.call import Call
from moldau.api.classic_groups import client_host
from moldau.api.consumer_groups import AUTHORIZATION_ERRORS, HIDDEN_TOPICS
from moldau.api.coordinators import responder, run_group
from moldau.api.group_descriptions import describe_groups
from moldau.api.share_checks import MEMBER_ID_LENGTH_MAX, ensure_state_topic
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from moldau.protocol.primitives import Message
from moldau.security.rights import DESCRIBE, READ

# ShareGroupHeartbeat


class HeartbeatCall:
    """One heartbeat on its way through the coordinator."""

    def __init__(self, call: Call, request: ShareGroupHeartbeatRequest) -> None:
        self._call = call
        self._request = request

    def decide(self, machine: GroupMachine) -> Outcome:
        call = self._call
        machine.share.listener = call.node.share_groups
        return machine.share.heartbeat(self._request, call.client_id or "", client_host(call.context.peer), call.now_ms)


def handle_share_group_heartbeat(call: Call, request: ShareGroupHeartbeatRequest) -> None:
    done = responder(call, heartbeat_error)
    try:
        check_heartbeat(call, request)
    except KafkaError as error:
        done(error)
        return
    ensure_state_topic(call)
    run_group(call, request.group_id, HeartbeatCall(call, request).decide, done)


def check_heartbeat(call: Call, request: ShareGroupHeartbeatRequest) -> None:
    if not call.node.shares.is_enabled:
        raise KafkaError(errors.UNSUPPORTED_VERSION)
    check_group(call, READ, request.group_id)
    if not request.member_id or len(request.member_id) > MEMBER_ID_LENGTH_MAX:
        raise KafkaError(errors.INVALID_REQUEST, "MemberId must be set and have at most 36 characters.")
    if request.subscribed_topic_names and denied_topics(call, DESCRIBE, set(request.subscribed_topic_names)):
        raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)
    if not request.group_id.strip():
        raise KafkaError(errors.INVALID_REQUEST, "GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise KafkaError(errors.INVALID_REQUEST, "RackId can't be empty.")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise KafkaError(errors.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < -1:
        raise KafkaError(errors.INVALID_REQUEST, f"MemberEpoch {request.member_epoch} is invalid.")


def heartbeat_error(error: KafkaError) -> Message:
    message = None if error.code in AUTHORIZATION_ERRORS else error.message
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=message)


# ShareGroupDescribe


class ShareKind:
    """Describes share groups."""

    def is_enabled(self, call: Call) -> bool:
        return call.node.shares.is_enabled

    def describe(self, machine: GroupMachine, group_ids: list[str]) -> list[DescribedGroup]:
        return machine.share.describe(group_ids)

    def failed(self, code: int, message: str | None, group_id: str) -> DescribedGroup:
        return DescribedGroup(code, message, group_id)

    def topics_of(self, group: DescribedGroup) -> set[str]:
        return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}

    def hidden_topics_message(self) -> str:
        return HIDDEN_TOPICS

    def response(self, groups: list[DescribedGroup]) -> Message:
        return ShareGroupDescribeResponse(groups=groups)

    def groups_of(self, response: Message) -> list[DescribedGroup]:
        assert isinstance(response, ShareGroupDescribeResponse)
        return response.groups


def handle_share_group_describe(call: Call, request: ShareGroupDescribeRequest) -> None:
    describe_groups(call, ShareKind(), request.group_ids, request.include_authorized_operations)
