"""Configures a topology by the topics that there are: partitions of internal topics, tasks, and what is missing.

In this order: all source topics must exist; repartition topics have the count their subtopology was given, or the
largest of those that write to them read; copartitioned topics must agree; changelog topics have as many partitions as
there are tasks; internal topics that exist must have the count that was decided. Depends on nothing but the topology
and the metadata. In Kafka: InternalTopicManager and its helpers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from moldau.coordinator.group.streams.topology import StreamsTopology, input_topics, invalid_topology
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from moldau.protocol.stored.group_records import CopartitionGroup, StreamsTopicInfo, Subtopology

STALE_TOPOLOGY: Final = 0
MISSING_SOURCE_TOPICS: Final = 1
INCORRECTLY_PARTITIONED_TOPICS: Final = 2
MISSING_INTERNAL_TOPICS: Final = 3
SHUTDOWN_APPLICATION: Final = 4
ASSIGNMENT_DELAYED: Final = 5
"""What the status list of a response tells; none of them is an error."""

NAMES_SHOWN: Final = 3
DEFAULT_REPLICATION_FACTOR: Final = -1

MissingTopics = dict[str, CreatableTopic]
"""Internal topics that are still to be created, by name."""


class Problem(NamedTuple):
    """Why a topology is not ready, as the status list tells it."""

    status_code: int
    detail: str


class TopologyProblem(Exception):
    """Raised while a topology is configured, and caught there."""

    def __init__(self, status_code: int, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(status_code, detail)


class ConfiguredTopic(NamedTuple):
    """An internal topic with its decided number of partitions; a replication factor of 0 is the broker's."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class ConfiguredSubtopology(NamedTuple):
    """Its tasks are numbered from 0."""

    subtopology_id: str
    task_count: int
    source_topics: list[str]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[ConfiguredTopic]
    state_changelog_topics: list[ConfiguredTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)

    @property
    def input_topics(self) -> list[str]:
        return [*self.source_topics, *(topic.name for topic in self.repartition_source_topics)]


class ConfiguredTopology:
    """A topology at one state of its topics, which the hash stands for. Ready when nothing is in the way; only then it
    has tasks."""

    def __init__(
        self,
        epoch: int,
        metadata_hash: int,
        subtopologies: dict[str, ConfiguredSubtopology],
        missing: MissingTopics,
        problem: Problem | None,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.subtopologies = subtopologies
        self.missing = missing
        self.problem = problem

    @property
    def is_ready(self) -> bool:
        return self.problem is None


def configure(topology: StreamsTopology, image: MetadataImage, metadata_hash: int) -> ConfiguredTopology:
    """Raises STREAMS_INVALID_TOPOLOGY if no set of topics would do."""
    try:
        _check_source_topics(topology, image)
        counts = _PartitionCounts(topology, image)
        counts.decide()
        subtopologies = {
            name: _configured(topology.subtopologies[name], counts) for name in sorted(topology.subtopologies)
        }
        missing = _missing_topics(subtopologies, image)
    except TopologyProblem as found:
        return ConfiguredTopology(topology.epoch, metadata_hash, {}, {}, found.problem)
    problem = None
    if missing:
        problem = Problem(MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {summarize(missing)}")
    return ConfiguredTopology(topology.epoch, metadata_hash, subtopologies, missing, problem)


def summarize(names: Iterable[str]) -> str:
    """The first names, and how many there are besides."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:NAMES_SHOWN])
    left = len(ordered) - NAMES_SHOWN
    return f"{shown} and {left} additional topics" if left > 0 else shown


def _check_source_topics(topology: StreamsTopology, image: MetadataImage) -> None:
    names = {name for one in topology.subtopologies.values() for name in one.source_topics}
    missing = [name for name in names if image.topic(name) is None]
    if missing:
        raise TopologyProblem(MISSING_SOURCE_TOPICS, f"Source topics {summarize(missing)} are missing.")


class _PartitionCounts:
    """How many partitions each topic has, or shall have once it is created."""

    def __init__(self, topology: StreamsTopology, image: MetadataImage) -> None:
        self._subtopologies = [topology.subtopologies[name] for name in sorted(topology.subtopologies)]
        self._image = image
        self.decided: dict[str, int] = {}
        self._repartition_topics: dict[str, int] = {
            topic.name: topic.partitions for one in self._subtopologies for topic in one.repartition_source_topics
        }

    def of_topic(self, name: str) -> int:
        topic = self._image.topic(name)
        return self.decided[name] if topic is None else len(topic.partitions)

    def largest_input(self, subtopology: Subtopology) -> int:
        return max(self.of_topic(name) for name in input_topics(subtopology))

    def decide(self) -> None:
        self._decide_repartition_topics()
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                self._agree(_copartitioned(subtopology, group))
        for subtopology in self._subtopologies:
            for topic in subtopology.state_changelog_topics:
                self.decided[topic.name] = self.largest_input(subtopology)

    # Repartition topics

    def _decide_repartition_topics(self) -> None:
        """From the sources downwards, until nothing is open or nothing moves any more."""
        self.decided = {name: count for name, count in self._repartition_topics.items() if count != 0}
        while True:
            is_open, moved = False, False
            for subtopology in self._subtopologies:
                for sink in subtopology.repartition_sink_topics:
                    if sink in self.decided:
                        continue
                    count = self._largest_known_input(subtopology)
                    if count is None:
                        is_open = True
                    else:
                        self.decided[sink] = count
                        moved = True
            if not is_open:
                break
            if not moved:
                raise invalid_topology(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                    "topology that cannot be resolved."
                )
        if not self._repartition_topics.keys() <= self.decided.keys():
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics, because a repartition source "
                "topic is never used as a sink topic."
            )

    def _largest_known_input(self, subtopology: Subtopology) -> int | None:
        """None while no input of it is known: it may have repartition topics only, which come from others."""
        names = [topic.name for topic in subtopology.repartition_source_topics if topic.name in self.decided]
        counts = [self.decided[name] for name in names]
        counts += [self.of_topic(name) for name in subtopology.source_topics]
        return max(counts, default=None)

    # Copartition groups

    def _agree(self, topics: set[str]) -> None:
        """All topics of the group get one count; those that are not the group's to decide must have it already."""
        if not topics:
            return
        internal = {name: self.of_topic(name) for name in sorted(topics) if name in self._repartition_topics}
        external = {name: self.of_topic(name) for name in sorted(topics) if name not in internal}
        fixed = {name: count for name, count in internal.items() if self._repartition_topics[name] != 0}
        deciding = external or fixed
        if len(set(deciding.values())) > 1:
            raise TopologyProblem(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Following topics do not have the same number of partitions: [{_shown(external or internal)}]",
            )
        count = next(iter(deciding.values()), 0) or self._count_given_elsewhere() or max(internal.values())
        for name, before in internal.items():
            if name in fixed and before != count:
                raise TopologyProblem(
                    INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{before}] of repartition topic [{name}] doesn't match number of "
                    f"partitions [{count}] of the source topic.",
                )
            self.decided[name] = count

    def _count_given_elsewhere(self) -> int:
        """Kafka looks at all repartition topics of the topology whose count was given: those of other groups decide
        for a group in which none was. 0 if there are none or they disagree, which Kafka refuses."""
        given = {self.of_topic(name) for name, count in self._repartition_topics.items() if count != 0}
        return given.pop() if len(given) == 1 else 0


def _copartitioned(subtopology: Subtopology, group: CopartitionGroup) -> set[str]:
    topics = {subtopology.source_topics[index] for index in group.source_topics}
    topics.update(subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics)
    return topics


def _shown(counts: dict[str, int]) -> str:
    """As Java shows a sorted map."""
    return "{" + ", ".join(f"{name}={count}" for name, count in sorted(counts.items())) + "}"


def _configured(subtopology: Subtopology, counts: _PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        subtopology.subtopology_id,
        counts.largest_input(subtopology),
        sorted(set(subtopology.source_topics)),
        sorted(set(subtopology.repartition_sink_topics)),
        _internal_topics(subtopology.repartition_source_topics, counts),
        _internal_topics(subtopology.state_changelog_topics, counts),
    )


def _internal_topics(topics: list[StreamsTopicInfo], counts: _PartitionCounts) -> list[ConfiguredTopic]:
    found = [
        ConfiguredTopic(
            topic.name,
            counts.decided[topic.name],
            topic.replication_factor,
            {config.key: config.value for config in topic.topic_configs},
        )
        for topic in topics
    ]
    return sorted(found, key=_name_of)


def _name_of(topic: ConfiguredTopic) -> str:
    return topic.name


def _missing_topics(subtopologies: dict[str, ConfiguredSubtopology], image: MetadataImage) -> MissingTopics:
    """Internal topics that do not exist; one that exists must have the partitions that were decided."""
    missing: MissingTopics = {}
    for subtopology in subtopologies.values():
        for wanted in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            topic = image.topic(wanted.name)
            if topic is None:
                missing[wanted.name] = _creatable(wanted)
            elif len(topic.partitions) != wanted.partitions:
                raise TopologyProblem(
                    INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {wanted.name} has different number of partitions: expected {wanted.partitions}, "
                    f"found {len(topic.partitions)}",
                )
    return missing


def _creatable(topic: ConfiguredTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or DEFAULT_REPLICATION_FACTOR,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
    )
