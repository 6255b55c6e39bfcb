"""StreamsGroupHeartbeat and StreamsGroupDescribe: members of streams groups, and who looks at them (KIP-1071).

Version 0 each. The checks come in this order: the feature, the group, the topics of a topology, what makes no sense in
itself; then the coordinator's. Internal topics that a topology needs are created by the broker that responds, in the
name of the member, if it may create them.
"""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import check_group, denied_topics, may_cluster
from moldau.api.call import Call
from moldau.api.classic_groups import client_host
from moldau.api.consumer_groups import AUTHORIZATION_ERRORS
from moldau.api.coordinators import as_client_sees, run_group
from moldau.api.group_descriptions import describe_groups
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.streams.checks import check_heartbeat
from moldau.coordinator.group.streams.configuration import MISSING_INTERNAL_TOPICS, MissingTopics
from moldau.coordinator.outcome import Outcome
from moldau.node.auto_creation import create_streams_topics
from moldau.node.topic_names import is_internal, is_valid_topic_name
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from moldau.protocol.messages.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse
from moldau.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Topology
from moldau.protocol.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse
from moldau.protocol.primitives import Message
from moldau.security.rights import CREATE, DESCRIBE, READ

STREAMS_VERSION: Final = "streams.version"
FAILURES_SHOWN: Final = 3
HIDDEN_TOPICS: Final = "The described group uses topics that the client is not authorized to describe."


def is_enabled(call: Call) -> bool:
    """The broker offers the protocol, and the cluster's feature level allows it."""
    node = call.node
    return node.coordinators.groups.settings.streams.is_enabled and node.image.features.get(STREAMS_VERSION, 0) >= 1


# StreamsGroupHeartbeat


class HeartbeatCall:
    """One heartbeat on its way through the coordinator."""

    def __init__(self, call: Call, request: StreamsGroupHeartbeatRequest) -> None:
        self._call = call
        self._request = request
        self._missing: MissingTopics = {}

    def decide(self, machine: GroupMachine) -> Outcome:
        call = self._call
        host = client_host(call.context.peer)
        outcome, self._missing = machine.streams.heartbeat(self._request, call.client_id or "", host, call.now_ms)
        return outcome

    def done(self, result: Message | KafkaError) -> None:
        call = self._call
        if call.reply.done:
            return
        if isinstance(result, KafkaError):
            call.respond(heartbeat_error(as_client_sees(result)))
            return
        assert isinstance(result, StreamsGroupHeartbeatResponse)
        if self._missing:
            create_internal_topics(call, self._missing, result)
        call.respond(result)


def handle_streams_group_heartbeat(call: Call, request: StreamsGroupHeartbeatRequest) -> None:
    if not is_enabled(call):
        call.respond(StreamsGroupHeartbeatResponse(error_code=errors.UNSUPPORTED_VERSION))
        return
    beat = HeartbeatCall(call, request)
    try:
        check_group(call, READ, request.group_id)
        if request.topology is not None:
            check_topics(call, request.topology)
        check_heartbeat(request)
    except KafkaError as error:
        beat.done(error)
        return
    run_group(call, request.group_id, beat.decide, beat.done)


def check_topics(call: Call, topology: Topology) -> None:
    """All topics of a topology, also those that do not exist yet."""
    names: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        names.update(dict.fromkeys(subtopology.source_topics))
        names.update(dict.fromkeys(subtopology.repartition_sink_topics))
        for topics in (subtopology.repartition_source_topics, subtopology.state_changelog_topics):
            names.update(dict.fromkeys(topic.name for topic in topics))
    internal = [name for name in names if is_internal(name)]
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        raise KafkaError(errors.STREAMS_INVALID_TOPOLOGY, text)
    invalid = [name for name in names if not is_valid_topic_name(name)]
    if invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
        raise KafkaError(errors.STREAMS_INVALID_TOPOLOGY, text)
    if denied_topics(call, DESCRIBE, names):
        raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)


def create_internal_topics(call: Call, missing: MissingTopics, response: StreamsGroupHeartbeatResponse) -> None:
    """Starts their creation; what keeps them from being created, now or a moment ago, is told in the status."""
    if not may_cluster(call, CREATE, is_filter=True):
        denied = denied_topics(call, CREATE, missing)
        if denied:
            add_detail(response, f"Unauthorized to CREATE on topics {', '.join(sorted(denied))}.")
            return
    keep_ms = 2 * response.heartbeat_interval_ms
    create_streams_topics(call.node, list(missing.values()), call.context, call.client_id, keep_ms, call.now_ms)
    failed = call.node.failed_topics.among(sorted(missing), call.now_ms)
    if failed:
        shown = ", ".join([f"{name} ({reason})" for name, reason in failed.items()][:FAILURES_SHOWN])
        more = f" and {len(failed) - FAILURES_SHOWN} more" if len(failed) > FAILURES_SHOWN else ""
        add_detail(response, f"Creation failed: {shown}{more}.")


def add_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    statuses = response.status or []
    for status in statuses:
        if status.status_code == MISSING_INTERNAL_TOPICS:
            status.status_detail = f"{status.status_detail}; {detail}"
            return
    response.status = [*statuses, Status(MISSING_INTERNAL_TOPICS, detail)]


def heartbeat_error(error: KafkaError) -> Message:
    message = None if error.code in AUTHORIZATION_ERRORS else error.message
    return StreamsGroupHeartbeatResponse(error_code=error.code, error_message=message)


# StreamsGroupDescribe


class StreamsKind:
    """Describes streams groups."""

    def is_enabled(self, call: Call) -> bool:
        return is_enabled(call)

    def describe(self, machine: GroupMachine, group_ids: list[str]) -> list[DescribedGroup]:
        return machine.streams.describe(group_ids)

    def failed(self, code: int, message: str | None, group_id: str) -> DescribedGroup:
        return DescribedGroup(code, message, group_id)

    def topics_of(self, group: DescribedGroup) -> set[str]:
        names: set[str] = set()
        subtopologies = [] if group.topology is None else group.topology.subtopologies or []
        for subtopology in subtopologies:
            names.update(subtopology.source_topics)
            names.update(subtopology.repartition_sink_topics)
            names.update(topic.name for topic in subtopology.repartition_source_topics)
            names.update(topic.name for topic in subtopology.state_changelog_topics)
        return names

    def hidden_topics_message(self) -> str:
        return HIDDEN_TOPICS

    def response(self, groups: list[DescribedGroup]) -> Message:
        return StreamsGroupDescribeResponse(groups=groups)

    def groups_of(self, response: Message) -> list[DescribedGroup]:
        assert isinstance(response, StreamsGroupDescribeResponse)
        return response.groups


def handle_streams_group_describe(call: Call, request: StreamsGroupDescribeRequest) -> None:
    describe_groups(call, StreamsKind(), request.group_ids, request.include_authorized_operations)
