"""Topologies and the topics that there are: partitions that are decided, topics that are missing, what never works."""

from __future__ import annotations

import pytest

from moldau.coordinator.group.streams.configuration import (
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    ConfiguredTopology,
    configure,
    summarize,
)
from moldau.coordinator.group.streams.topology import topology_from_request
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_topics_request import CreatableTopicConfig
from moldau.protocol.messages.streams_group_heartbeat_request import (
    CopartitionGroup,
    KeyValue,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.unit.coordinator.streams_world import StreamsWorld, make_topology


def image_with(**topics: int) -> MetadataImage:
    world = StreamsWorld()
    for name, partitions in topics.items():
        world.topic(name, partitions)
    return world.image


def configured(text: str, **topics: int) -> ConfiguredTopology:
    return configure(topology_from_request(make_topology(text)), image_with(**topics), 0)


def test_a_topology_whose_topics_are_all_there_is_ready() -> None:
    found = configured("0:a,b;1:c+s", a=2, b=5, c=3, s=3)
    assert found.is_ready and not found.missing
    assert {name: one.task_count for name, one in found.subtopologies.items()} == {"0": 5, "1": 3}
    assert [name for name, one in found.subtopologies.items() if one.is_stateful] == ["1"]


def test_missing_source_topics_are_named_first() -> None:
    found = configured("0:a,b,c,d,e+s", c=1)
    assert found.problem == (MISSING_SOURCE_TOPICS, "Source topics a, b, d and 1 additional topics are missing.")
    assert not found.missing, "nothing is created for a topology that cannot run"


def test_internal_topics_that_are_missing_are_to_be_created() -> None:
    found = configured("0:in>rep;1:*rep+s", **{"in": 4})
    assert found.problem == (MISSING_INTERNAL_TOPICS, "Internal topics are missing: rep, s")
    assert {name: topic.num_partitions for name, topic in found.missing.items()} == {"rep": 4, "s": 4}
    assert {topic.replication_factor for topic in found.missing.values()} == {-1}


def test_configs_and_replication_factor_are_those_of_the_topology() -> None:
    changelog = TopicInfo("s", 0, 3, [KeyValue("cleanup.policy", "compact"), KeyValue("retention.ms", "-1")])
    topology = Topology(0, [Subtopology("0", ["a"], [], [changelog])])
    missing = configure(topology_from_request(topology), image_with(a=1), 0).missing
    assert missing["s"].replication_factor == 3
    assert missing["s"].configs == [
        CreatableTopicConfig(name="cleanup.policy", value="compact"),
        CreatableTopicConfig(name="retention.ms", value="-1"),
    ]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("0:a>r;1:*r", {"r": 2}),
        ("0:a>r;1:*r/7", {"r": 7}),
        ("0:a,b>r;1:*r>t;2:*t", {"r": 6, "t": 6}),
        ("2:a>r;1:*r>t;0:*t", {"r": 2, "t": 2}),
        ("0:a>r;1:b*r=b,r", {"r": 6}),
        ("0:a>r;1:b>t;2:*r,t=r,t", {"r": 6, "t": 6}),
        ("0:b>r,t;1:*r/3,t=r,t", {"r": 3, "t": 3}),
        ("0:a>p,x,y;1:*p/5=p;2:*x,y=x,y", {"p": 5, "x": 5, "y": 5}),
        ("0:a>p,q,x;1:*p/5=p;2:*q/4=q;3:*x=x", {"p": 5, "q": 4, "x": 2}),
        ("0:a>r;1:b*r+s", {"r": 2, "s": 6}),
        ("0:a>r;1:b>r;2:*r", {"r": 2}),
    ],
)
def test_partitions_of_internal_topics_are_decided(text: str, counts: dict[str, int]) -> None:
    found = configured(text, a=2, b=6)
    assert {name: topic.num_partitions for name, topic in found.missing.items()} == counts


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("0:a,b=a,b", "Following topics do not have the same number of partitions: [{a=2, b=6}]"),
        (
            "0:a>r;1:b*r/3=b,r",
            (
                "Number of partitions [3] of repartition topic [r] doesn't match number of partitions [6] of the "
                "source topic."
            ),
        ),
        ("0:a>r,t;1:*r/3,t/4=r,t", "Following topics do not have the same number of partitions: [{r=3, t=4}]"),
        ("0:a+b", "Existing topic b has different number of partitions: expected 2, found 6"),
        ("0:a>b;1:*b", "Existing topic b has different number of partitions: expected 2, found 6"),
    ],
)
def test_topics_that_do_not_fit_together(text: str, detail: str) -> None:
    found = configured(text, a=2, b=6)
    assert found.problem == (INCORRECTLY_PARTITIONED_TOPICS, detail)
    assert not found.subtopologies and not found.missing


@pytest.mark.parametrize("text", ["0:*r>t;1:*t>r", "0:a;1:*r", "0:*r>r"])
def test_topologies_that_can_never_run(text: str) -> None:
    with pytest.raises(KafkaError) as refused:
        configured(text, a=1)
    assert refused.value.code == errors.STREAMS_INVALID_TOPOLOGY


def test_a_copartition_group_names_topics_that_are_there() -> None:
    topology = Topology(0, [Subtopology("0", ["a"], copartition_groups=[CopartitionGroup([1])])])
    with pytest.raises(KafkaError) as refused:
        topology_from_request(topology)
    assert refused.value.code == errors.STREAMS_INVALID_TOPOLOGY


def test_names_are_summarized() -> None:
    assert summarize(["b", "a"]) == "a, b"
    assert summarize(["d", "c", "b", "a", "e"]) == "a, b, c and 2 additional topics"
