"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: the consumer group protocol of KIP-848.

ConsumerGroupHeartbeat versions 0-1: 1 adds regular expressions, and members make their own ids (KIP-1082).
ConsumerGroupDescribe versions 0-1: 1 adds the protocol that each member uses.
"""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import check_group, denied_topics, seen_by_asker
from moldau.api.call import Call
from moldau.api.classic_groups import client_host
from moldau.api.coordinators import responder, run_group
from moldau.api.group_descriptions import describe_groups
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
from moldau.security.rights import DESCRIBE, READ

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


class ConsumerKind:
    """Describes groups with the consumer group protocol."""

    def is_enabled(self, call: Call) -> bool:
        return is_enabled(call)

    def describe(self, machine: GroupMachine, group_ids: list[str]) -> list[DescribedGroup]:
        return machine.consumer.describe(group_ids)

    def failed(self, code: int, message: str | None, group_id: str) -> DescribedGroup:
        return DescribedGroup(code, message, group_id)

    def topics_of(self, group: DescribedGroup) -> set[str]:
        return {
            topic.topic_name
            for member in group.members
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        }

    def hidden_topics_message(self) -> str:
        return HIDDEN_TOPICS

    def response(self, groups: list[DescribedGroup]) -> Message:
        return ConsumerGroupDescribeResponse(groups=groups)

    def groups_of(self, response: Message) -> list[DescribedGroup]:
        assert isinstance(response, ConsumerGroupDescribeResponse)
        return response.groups


def handle_consumer_group_describe(call: Call, request: ConsumerGroupDescribeRequest) -> None:
    describe_groups(call, ConsumerKind(), request.group_ids, request.include_authorized_operations)
