"""Who serves which partitions: what members with an endpoint of their own tell each other through the coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.coordinator.group.streams.configuration import ConfiguredTopology
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import StreamsMember
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.streams_group_heartbeat_response import Endpoint, EndpointToPartitions, TopicPartition


def partitions_by_endpoint(
    group: StreamsGroup, updated: StreamsMember, image: MetadataImage
) -> list[EndpointToPartitions]:
    """Of all members that have an endpoint; `updated` is one of them as it will be."""
    found: list[EndpointToPartitions] = []
    members = [member for member in group.members.values() if member.member_id != updated.member_id]
    for member in (*members, updated):
        if member.user_endpoint is None:
            continue
        host, port = member.user_endpoint
        found.append(
            EndpointToPartitions(
                Endpoint(host, port),
                _partitions(member.assigned.active, group.configured, image),
                _partitions(member.assigned.standby, group.configured, image),
            )
        )
    return found


def _partitions(
    tasks: Mapping[str, Iterable[int]], configured: ConfiguredTopology | None, image: MetadataImage
) -> list[TopicPartition]:
    """A task reads the partition of its number of each input topic, as far as the topic has so many."""
    rows: list[TopicPartition] = []
    for name in sorted(tasks):
        subtopology = None if configured is None else configured.subtopologies.get(name)
        for topic_name in () if subtopology is None else subtopology.input_topics:
            topic = image.topic(topic_name)
            indexes = [] if topic is None else [index for index in sorted(tasks[name]) if index in topic.partitions]
            if indexes:
                rows.append(TopicPartition(topic_name, indexes))
    return rows
