"""Topics: the list, what a page of it wants to know besides, and one topic with its partitions."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Container, Mapping
from typing import Any

from moldau.actions.calls import Call, reading
from moldau.actions.paging import page_of
from moldau.actions.scope import unknown_topic
from moldau.actions.topic_facts import TopicFacts, facts_of
from moldau.actions.viewer import Viewer
from moldau.client.connection.cluster import PartitionMetadata, TopicMetadata
from moldau.client.errors import ClientError
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import TopicPartition
from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION

Sizes = Mapping[tuple[str, int, int], int]
NAMES_MAX = 500


async def list_topics(call: Call) -> object:
    """One page; what takes longer to find out comes with details_of_topics()."""
    viewer = call.viewer
    viewer.rates.watch()
    known = await viewer.topics.get()
    internal = call.flag("internal")
    sort = call.text("sort", "name")
    sizes = size_by_topic(known.topics, await viewer.sizes.get()) if sort == "size" else {}
    page = call.page_of(
        [topic for topic in known.topics.values() if internal or not topic.is_internal],
        name=lambda topic: topic.name,
        key=_sort_key(sort, viewer, sizes),
    )
    return page.around([topic_row(topic) for topic in page.rows]) | {"internal": known.internal}


def _sort_key(sort: str, viewer: Viewer, sizes: Mapping[str, int]) -> Callable[[TopicFacts], Any] | None:
    keys: dict[str, Callable[[TopicFacts], Any]] = {
        "partitions": lambda topic: topic.partitions,
        "replicas": lambda topic: topic.replicas,
        "out_of_sync": lambda topic: (topic.offline, topic.out_of_sync),
        "rate": lambda topic: viewer.rates.by_topic.get(topic.name, 0.0),
        "size": lambda topic: sizes.get(topic.name, 0),
    }
    return keys.get(sort)


def topic_row(topic: TopicFacts) -> dict[str, object]:
    return {
        "name": topic.name,
        "internal": topic.is_internal,
        "partitions": topic.partitions,
        "replicas": topic.replicas,
        "out_of_sync": topic.out_of_sync,
        "offline": topic.offline,
    }


def size_by_topic(topics: Container[str], sizes: Sizes) -> dict[str, int]:
    """Bytes of all replicas together."""
    found: dict[str, int] = {}
    for (topic, _, _), size in sizes.items():
        if topic in topics:
            found[topic] = found.get(topic, 0) + size
    return found


async def details_of_topics(call: Call) -> object:
    """Records, bytes and rates of the topics that a page shows."""
    viewer = call.viewer
    known = await viewer.topics.get()
    chosen = [name for name in call.texts("name")[:NAMES_MAX] if name in known.topics]
    partitions = known.led_partitions(chosen)
    starts, ends, sizes = await asyncio.gather(
        viewer.offsets_at(partitions, EARLIEST),
        viewer.offsets_at(partitions, LATEST),
        sizes_or_none(viewer, partitions),
    )
    records: dict[str, int] = dict.fromkeys(chosen, 0)
    for partition, end in ends.items():
        records[partition.topic] += end - starts.get(partition, end)
    by_topic = None if sizes is None else size_by_topic(chosen, sizes)
    return {
        name: {
            "records": records[name],
            "size": None if by_topic is None else by_topic.get(name, 0),
            "rate": viewer.rates.by_topic.get(name),
        }
        for name in chosen
    }


async def sizes_or_none(viewer: Viewer, partitions: list[TopicPartition]) -> Sizes | None:
    """None where the user may not know, or the brokers do not tell."""
    if not partitions:
        return {}
    try:
        return await viewer.sizes_of(partitions)
    except ClientError:
        return None


def led_partitions(topic: TopicMetadata) -> list[TopicPartition]:
    """Those that have a leader to ask."""
    return [TopicPartition(topic.name, number) for number, item in topic.partitions.items() if item.leader >= 0]


async def topic_of(viewer: Viewer, name: str) -> TopicMetadata:
    """One topic, asked for by its name; raises where there is none."""
    viewer.scope.check_topic(name)
    outcome = (await viewer.clients.ask(lambda admin: admin.describe_topics([name])))[name]
    if outcome.error is not None and outcome.error.code == UNKNOWN_TOPIC_OR_PARTITION:
        raise unknown_topic(name)
    return outcome.get()


async def show_topic(call: Call) -> object:
    """Partitions with leaders, replicas, offsets and bytes."""
    viewer = call.viewer
    topic = await topic_of(viewer, call.text("name"))
    led = led_partitions(topic)
    every = [TopicPartition(topic.name, number) for number in topic.partitions]
    starts, ends, sizes, described = await asyncio.gather(
        viewer.offsets_at(led, EARLIEST),
        viewer.offsets_at(led, LATEST),
        sizes_or_none(viewer, every),
        viewer.cluster.get(),
    )
    rows = [
        _partition_row(item, starts, ends, sizes)
        for _, item in sorted(topic.partitions.items(), key=lambda row: row[0])
    ]
    return {
        **topic_row(facts_of(topic)),
        "id": base64.urlsafe_b64encode(topic.topic_id).decode().rstrip("="),
        "brokers": sorted({broker.id for broker in described.cluster.brokers}),
        "fenced": sorted(described.cluster.fenced),
        "rows": rows,
    }


def _partition_row(
    item: PartitionMetadata,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    sizes: Sizes | None,
) -> dict[str, object]:
    partition = TopicPartition(item.topic, item.partition)
    return {
        "partition": item.partition,
        "leader": item.leader,
        "leader_epoch": item.leader_epoch,
        "replicas": list(item.replicas),
        "in_sync": list(item.in_sync_replicas),
        "offline": list(item.offline_replicas),
        "start": starts.get(partition),
        "end": ends.get(partition),
        "sizes": None
        if sizes is None
        else {
            str(broker_id): sizes[item.topic, item.partition, broker_id]
            for broker_id in item.replicas
            if (item.topic, item.partition, broker_id) in sizes
        },
    }


async def suggest_topics(call: Call) -> object:
    """Names that a field for a topic offers."""
    known = await call.viewer.topics.get()
    page = page_of(known.topics.values(), name=lambda topic: topic.name, search=call.text("search", ""), size=20)
    return [topic.name for topic in page.rows]


async def groups_of_topic(call: Call) -> object:
    """Which groups have offsets of the topic. Brokers know it by group alone, so all groups are asked."""
    from moldau.actions.group_lag import groups_with_offsets_of

    call.viewer.scope.check_topic(call.text("name"))
    return await groups_with_offsets_of(call.viewer, call.text("name"))


ROUTES = [
    reading("/api/topics", list_topics),
    reading("/api/topics/details", details_of_topics),
    reading("/api/topics/suggest", suggest_topics),
    reading("/api/topic", show_topic),
    reading("/api/topic/groups", groups_of_topic),
]
