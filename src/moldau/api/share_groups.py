"""ShareGroupHeartbeat and ShareGroupDescribe: members of share groups, and how administrators see them (KIP-932).

Version 1 each. The checks come in this order: the feature, the member id, what makes no sense in itself; then the
coordinator's.
"""

from __future__ import annotations

from moldau.api.authorize import authorized_operations, check_group, denied_topics
from moldau.api.call import Call
from moldau.api.classic_groups import client_host
from moldau.api.consumer_groups import AUTHORIZATION_ERRORS, HIDDEN_TOPICS
from moldau.api.coordinators import as_client_sees, responder, run_group
from moldau.api.group_admin import Responses, ask_shards, split_allowed
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
from moldau.security.rights import DESCRIBE, GROUP, READ

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


class DescribeVerb:
    def __init__(self, group_ids: list[str]) -> None:
        self._group_ids = group_ids

    def decide(self, machine: GroupMachine) -> Outcome:
        return Outcome(response=ShareGroupDescribeResponse(groups=machine.share.describe(self._group_ids)))


def handle_share_group_describe(call: Call, request: ShareGroupDescribeRequest) -> None:
    if not call.node.shares.is_enabled:
        refused = [DescribedGroup(errors.UNSUPPORTED_VERSION, None, group_id) for group_id in request.group_ids]
        call.respond(ShareGroupDescribeResponse(groups=refused))
        return
    allowed, denied = split_allowed(call, DESCRIBE, request.group_ids)
    named = [group_id for group_id in allowed if group_id]
    nameless = len(allowed) - len(named)

    def finish(responses: Responses) -> None:
        response = ShareGroupDescribeResponse()
        response.groups += [DescribedGroup(errors.GROUP_AUTHORIZATION_FAILED, None, group_id) for group_id in denied]
        response.groups += [DescribedGroup(errors.INVALID_GROUP_ID) for _ in range(nameless)]
        for group_ids, result in responses:
            response.groups += described(group_ids, result)
        if call.node.rights is not None:
            response.groups = [without_hidden_topics(call, group) for group in response.groups]
        for group in response.groups:
            if request.include_authorized_operations and group.error_code == 0:
                group.authorized_operations = authorized_operations(call, GROUP, group.group_id)
        call.respond(response)

    ask_shards(call, named, lambda group_ids: DescribeVerb(group_ids).decide, finish)


def without_hidden_topics(call: Call, group: DescribedGroup) -> DescribedGroup:
    """Who may not see all topics of a group is not told anything of its members."""
    names = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    if not denied_topics(call, DESCRIBE, names):
        return group
    return DescribedGroup(errors.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS, group.group_id)


def described(group_ids: list[str], result: Message | KafkaError) -> list[DescribedGroup]:
    if isinstance(result, KafkaError):
        code = as_client_sees(result).code
        return [DescribedGroup(code, None, group_id) for group_id in group_ids]
    assert isinstance(result, ShareGroupDescribeResponse)
    return result.groups
