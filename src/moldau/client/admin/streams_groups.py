"""Admin method that describes streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.acls import AclOperation, authorized
from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_groups
from moldau.client.admin.routing import GROUP_COORDINATOR, RETRY_COORDINATOR, Question, Target, outcome
from moldau.client.connection.cluster import Broker
from moldau.client.results import Outcome

if TYPE_CHECKING:
    from moldau.protocol.messages import streams_group_describe_response as wire


class StreamsTasks(NamedTuple):
    """Tasks by subtopology: the partitions of each."""

    active: dict[str, list[int]]
    standby: dict[str, list[int]]
    warmup: dict[str, list[int]]


class StreamsTopic(NamedTuple):
    """An internal topic as the topology wants it; 0: left to the coordinator."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class StreamsSubtopology(NamedTuple):
    """One part of a topology."""

    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    state_changelog_topics: list[StreamsTopic]
    repartition_source_topics: list[StreamsTopic]


class StreamsMember(NamedTuple):
    """A member of a streams group; offsets by (subtopology, partition)."""

    member_id: str
    member_epoch: int
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    host: str
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: dict[str, str]
    task_offsets: dict[tuple[str, int], int]
    task_end_offsets: dict[tuple[str, int], int]
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    is_classic: bool


class StreamsGroupDescription(NamedTuple):
    """A streams group; topology_epoch is None while it has no topology."""

    group_id: str
    state: str
    coordinator: Broker
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    subtopologies: list[StreamsSubtopology]
    members: list[StreamsMember]
    authorized_operations: set[AclOperation] | None = None


class StreamsGroupAdmin(AdminCalls):
    """Streams groups."""

    def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[StreamsGroupDescription]]:
        """Streams groups with their topology, members and tasks."""
        from moldau.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
        from moldau.protocol.messages.streams_group_describe_response import StreamsGroupDescribeResponse

        deadline = self._start(timeout_ms)
        wanted = checked_groups(group_ids)

        def request(items: list[str]) -> StreamsGroupDescribeRequest:
            return StreamsGroupDescribeRequest(
                group_ids=items, include_authorized_operations=include_authorized_operations
            )

        question = Question(request, StreamsGroupDescribeResponse, _read, RETRY_COORDINATOR)
        return self._ask_each(wanted, self._route_to_coordinators(GROUP_COORDINATOR), question, deadline)


def _read(
    response: wire.StreamsGroupDescribeResponse, target: Target[str]
) -> dict[str, Outcome[StreamsGroupDescription]]:
    outcomes: dict[str, Outcome[StreamsGroupDescription]] = {}
    for row in response.groups:
        topology = row.topology
        description = StreamsGroupDescription(
            row.group_id,
            row.group_state,
            target.broker,
            row.group_epoch,
            row.assignment_epoch,
            None if topology is None else topology.epoch,
            [] if topology is None else [_subtopology(item) for item in topology.subtopologies or []],
            [_member(item) for item in row.members],
            authorized(row.authorized_operations),
        )
        outcomes[row.group_id] = outcome(row.error_code, row.error_message, description)
    return outcomes


def _subtopology(row: wire.Subtopology) -> StreamsSubtopology:
    return StreamsSubtopology(
        row.subtopology_id,
        list(row.source_topics),
        list(row.repartition_sink_topics),
        [_topic(item) for item in row.state_changelog_topics],
        [_topic(item) for item in row.repartition_source_topics],
    )


def _topic(row: wire.TopicInfo) -> StreamsTopic:
    configs = {item.key: item.value for item in row.topic_configs}
    return StreamsTopic(row.name, row.partitions, row.replication_factor, configs)


def _member(row: wire.Member) -> StreamsMember:
    return StreamsMember(
        row.member_id,
        row.member_epoch,
        row.instance_id,
        row.rack_id,
        row.client_id,
        row.client_host,
        row.topology_epoch,
        row.process_id,
        None if row.user_endpoint is None else (row.user_endpoint.host, row.user_endpoint.port),
        {item.key: item.value for item in row.client_tags},
        {(item.subtopology_id, item.partition): item.offset for item in row.task_offsets},
        {(item.subtopology_id, item.partition): item.offset for item in row.task_end_offsets},
        _tasks(row.assignment),
        _tasks(row.target_assignment),
        row.is_classic,
    )


def _tasks(row: wire.Assignment) -> StreamsTasks:
    return StreamsTasks(
        {item.subtopology_id: list(item.partitions) for item in row.active_tasks},
        {item.subtopology_id: list(item.partitions) for item in row.standby_tasks},
        {item.subtopology_id: list(item.partitions) for item in row.warmup_tasks},
    )
