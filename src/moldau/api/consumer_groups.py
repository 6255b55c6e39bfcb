"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: the consumer group protocol of KIP-848.

ConsumerGroupHeartbeat versions 0-1: 1 adds regular expressions, and members make their own ids (KIP-1082).
ConsumerGroupDescribe versions 0-1: 1 adds the protocol that each member uses.
"""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import authorized_operations, check_group, denied_topics, seen_by_asker
from moldau.api.call import Call
from moldau.api.classic_groups import client_host
from moldau.api.coordinators import as_client_sees, responder, run_group
from moldau.api.group_admin import Responses, ask_shards, split_allowed
from moldau.coordinator.group.consumer_checks import check_heartbeat
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from moldau.protocol.primitives import Message
from moldau.security.rights import DESCRIBE, GROUP, READ

GROUP_VERSION: Final = "group.version"
AUTHORIZATION_ERRORS: Final = (errors.GROUP_AUTHORIZATION_FAILED, errors.TOPIC_AUTHORIZATION_FAILED)
HIDDEN_TOPICS: Final = "The group has topics that the client is not authorized to describe."


def is_enabled(call: Call) -> bool:
    """The broker offers the protocol, and the cluster's feature level allows it."""
    node = call.node
    return node.coordinators.groups.settings.consumer.is_enabled and node.image.features.get(GROUP_VERSION, 0) >= 1


# ConsumerGroupHeartbeat


class HeartbeatCall:
    """One heartbeat on its way through the coordinator."""

    def __init__(self, call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
        self._call = call
        self._request = request

    def decide(self, machine: GroupMachine) -> Outcome:
        call = self._call
        host = client_host(call.context.peer)
        beat = machine.consumer.heartbeat
        return seen_by_asker(
            call, machine, lambda: beat(self._request, call.version, call.client_id or "", host, call.now_ms)
        )


def handle_consumer_group_heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
    done = responder(call, heartbeat_error)
    if not is_enabled(call):
        call.respond(ConsumerGroupHeartbeatResponse(error_code=errors.UNSUPPORTED_VERSION))
        return
    try:
        check_group(call, READ, request.group_id)
        if request.subscribed_topic_names and denied_topics(call, DESCRIBE, set(request.subscribed_topic_names)):
            raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)
        check_heartbeat(request, call.version, call.node.coordinators.groups.settings.consumer.assignors)
    except KafkaError as error:
        done(error)
        return
    run_group(call, request.group_id, HeartbeatCall(call, request).decide, done)


def heartbeat_error(error: KafkaError) -> Message:
    message = None if error.code in AUTHORIZATION_ERRORS else error.message
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=message)


# ConsumerGroupDescribe


class DescribeVerb:
    def __init__(self, group_ids: list[str]) -> None:
        self._group_ids = group_ids

    def decide(self, machine: GroupMachine) -> Outcome:
        return Outcome(response=ConsumerGroupDescribeResponse(groups=machine.consumer.describe(self._group_ids)))


def handle_consumer_group_describe(call: Call, request: ConsumerGroupDescribeRequest) -> None:
    if not is_enabled(call):
        refused = [DescribedGroup(errors.UNSUPPORTED_VERSION, None, group_id) for group_id in request.group_ids]
        call.respond(ConsumerGroupDescribeResponse(groups=refused))
        return
    allowed, denied = split_allowed(call, DESCRIBE, request.group_ids)
    named = [group_id for group_id in allowed if group_id]
    nameless = len(allowed) - len(named)

    def finish(responses: Responses) -> None:
        response = ConsumerGroupDescribeResponse()
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
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if not denied_topics(call, DESCRIBE, names):
        return group
    return DescribedGroup(errors.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS, group.group_id)


def described(group_ids: list[str], result: Message | KafkaError) -> list[DescribedGroup]:
    if isinstance(result, KafkaError):
        code = as_client_sees(result).code
        return [DescribedGroup(code, None, group_id) for group_id in group_ids]
    assert isinstance(result, ConsumerGroupDescribeResponse)
    return result.groups
