"""What is kept of all topics: a row for each, what is wrong with some partitions, and what brokers have.

A cluster of ten thousand topics is a few megabytes this way; its metadata as the client has it is many times that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.client.connection.cluster import PartitionMetadata, TopicMetadata
from moldau.client.results import TopicPartition


class TopicFacts(NamedTuple):
    """A topic in numbers; out_of_sync and offline: how many partitions lack a replica, or a leader."""

    name: str
    is_internal: bool
    partitions: int
    replicas: int
    out_of_sync: int
    offline: int


@dataclass
class AllTopics:
    """Every topic that the user may see."""

    topics: dict[str, TopicFacts] = field(default_factory=dict)
    partitions: int = 0
    degraded: list[PartitionMetadata] = field(default_factory=list)
    # By broker: how much it leads, has, and has not in sync.
    leaders: dict[int, int] = field(default_factory=dict)
    replicas: dict[int, int] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)

    @property
    def internal(self) -> int:
        return sum(topic.is_internal for topic in self.topics.values())

    def led_partitions(self, names: Iterable[str]) -> list[TopicPartition]:
        """The partitions of these topics that have a leader to ask."""
        lost = {(item.topic, item.partition) for item in self.degraded if item.leader < 0}
        return [
            TopicPartition(name, number)
            for name in names
            for number in range(self.topics[name].partitions)
            if (name, number) not in lost
        ]


def facts_of(topic: TopicMetadata) -> TopicFacts:
    items = topic.partitions.values()
    return TopicFacts(
        topic.name,
        topic.is_internal,
        len(topic.partitions),
        max((len(item.replicas) for item in items), default=0),
        sum(len(item.in_sync_replicas) < len(item.replicas) for item in items),
        sum(item.leader < 0 for item in items),
    )


def facts_of_all(topics: Iterable[TopicMetadata]) -> AllTopics:
    """Counts everything in one pass."""
    found = AllTopics()
    for topic in topics:
        found.topics[topic.name] = facts_of(topic)
        found.partitions += len(topic.partitions)
        for item in topic.partitions.values():
            found.leaders[item.leader] = found.leaders.get(item.leader, 0) + 1
            for broker_id in item.replicas:
                found.replicas[broker_id] = found.replicas.get(broker_id, 0) + 1
                if broker_id not in item.in_sync_replicas:
                    found.behind[broker_id] = found.behind.get(broker_id, 0) + 1
            if item.leader < 0 or len(item.in_sync_replicas) < len(item.replicas):
                found.degraded.append(item)
    found.degraded.sort(key=lambda item: (item.topic, item.partition))
    return found
