"""A topology as a member has sent it and as it is stored: what subtopologies read, write and keep."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import streams_group_heartbeat_request as wire
from moldau.protocol.stored.group_records import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    StreamsTopicInfo,
    Subtopology,
    TopicConfig,
)


class StreamsTopology:
    """The stored value, and what is asked of it all the time. Never changed."""

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        self.subtopologies = {one.subtopology_id: one for one in value.subtopologies}
        # The subtopology that reads a topic: commits of the topic's offsets belong to its tasks.
        self.readers: dict[str, str] = {}
        required: set[str] = set()
        for subtopology in value.subtopologies:
            for name in input_topics(subtopology):
                self.readers[name] = subtopology.subtopology_id
                required.add(name)
            required.update(topic.name for topic in subtopology.state_changelog_topics)
        self.required_topics = frozenset(required)

    def is_same_as(self, other: StreamsTopology) -> bool:
        """The order of subtopologies means nothing; that of their topics does, copartition groups count on it."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def input_topics(subtopology: Subtopology) -> list[str]:
    """What the tasks of a subtopology read."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def topology_from_request(topology: wire.Topology) -> StreamsTopology:
    """Raises STREAMS_INVALID_TOPOLOGY for what could not even be looked at."""
    found = StreamsTopology(
        StreamsGroupTopologyValue(topology.epoch, [_subtopology(one) for one in topology.subtopologies])
    )
    if topology.epoch < 0:
        raise invalid_topology("Topology epoch must be non-negative.")
    if len(found.subtopologies) < len(topology.subtopologies):
        raise invalid_topology("A subtopology id is used more than once.")
    for subtopology in found.value.subtopologies:
        _check(subtopology)
    return found


def _check(subtopology: Subtopology) -> None:
    name = subtopology.subtopology_id
    if not input_topics(subtopology):
        raise invalid_topology(f"Subtopology {name} does not contain any source topics.")
    for group in subtopology.copartition_groups:
        for indexes, topics in (
            (group.source_topics, len(subtopology.source_topics)),
            (group.repartition_source_topics, len(subtopology.repartition_source_topics)),
        ):
            if any(not 0 <= index < topics for index in indexes):
                raise invalid_topology(f"A copartition group of subtopology {name} names a topic that is not there.")


def invalid_topology(message: str) -> KafkaError:
    return KafkaError(errors.STREAMS_INVALID_TOPOLOGY, message)


def _subtopology(row: wire.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=row.subtopology_id,
        source_topics=list(row.source_topics),
        source_topic_regex=list(row.source_topic_regex),
        state_changelog_topics=[_topic(topic) for topic in row.state_changelog_topics],
        repartition_sink_topics=list(row.repartition_sink_topics),
        repartition_source_topics=[_topic(topic) for topic in row.repartition_source_topics],
        copartition_groups=[
            CopartitionGroup(
                list(group.source_topics), list(group.source_topic_regex), list(group.repartition_source_topics)
            )
            for group in row.copartition_groups
        ],
    )


def _topic(row: wire.TopicInfo) -> StreamsTopicInfo:
    configs = [TopicConfig(config.key, config.value) for config in row.topic_configs]
    return StreamsTopicInfo(row.name, row.partitions, row.replication_factor, configs)
