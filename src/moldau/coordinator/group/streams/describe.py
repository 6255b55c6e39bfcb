"""A streams group as StreamsGroupDescribe shows it."""

from __future__ import annotations

from moldau.coordinator.group.streams.configuration import ConfiguredSubtopology, ConfiguredTopic, configure
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import StreamsMember
from moldau.coordinator.group.streams.tasks import Tasks, TasksByRole
from moldau.coordinator.group.streams.topology import StreamsTopology
from moldau.metadata.image import MetadataImage
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from moldau.protocol.stored.group_records import StreamsTopicInfo


def describe_group(group: StreamsGroup, image: MetadataImage) -> DescribedGroup:
    topology = group.topology
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=None if topology is None else _describe_topology(group, topology, image),
        members=[_describe_member(group, member) for member in group.members.values()],
    )


def _describe_topology(group: StreamsGroup, topology: StreamsTopology, image: MetadataImage) -> Topology:
    """With the partitions that were decided, if it is ready; else as the member sent it."""
    configured = group.configured
    if configured is None:
        try:
            configured = configure(topology, image, group.metadata_hash)
        except KafkaError:
            # Another release let it in; it is shown as it was sent.
            configured = None
    if configured is not None and configured.is_ready:
        return Topology(topology.epoch, [_configured(one) for one in configured.subtopologies.values()])
    rows = [
        Subtopology(
            name,
            sorted(one.source_topics),
            sorted(one.repartition_sink_topics),
            [_as_sent(topic) for topic in sorted(one.state_changelog_topics, key=_name_of)],
            [_as_sent(topic) for topic in sorted(one.repartition_source_topics, key=_name_of)],
        )
        for name, one in sorted(topology.subtopologies.items())
    ]
    return Topology(topology.epoch, rows)


def _name_of(topic: StreamsTopicInfo) -> str:
    return topic.name


def _as_sent(topic: StreamsTopicInfo) -> TopicInfo:
    configs = [KeyValue(config.key, config.value) for config in topic.topic_configs]
    return TopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)


def _configured(subtopology: ConfiguredSubtopology) -> Subtopology:
    return Subtopology(
        subtopology.subtopology_id,
        subtopology.source_topics,
        subtopology.repartition_sink_topics,
        [_as_decided(topic) for topic in subtopology.state_changelog_topics],
        [_as_decided(topic) for topic in subtopology.repartition_source_topics],
    )


def _as_decided(topic: ConfiguredTopic) -> TopicInfo:
    configs = [KeyValue(key, value) for key, value in topic.configs.items()]
    return TopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)


def _describe_member(group: StreamsGroup, member: StreamsMember) -> Member:
    endpoint = member.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint[0], endpoint[1]),
        client_tags=[KeyValue(key, value) for key, value in sorted(member.client_tags.items())],
        assignment=_assignment(member.assigned.without_epochs()),
        target_assignment=_assignment(group.target_of(member.member_id)),
    )


def _assignment(tasks: TasksByRole) -> Assignment:
    return Assignment(_task_ids(tasks.active), _task_ids(tasks.standby), _task_ids(tasks.warmup))


def _task_ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks)]
