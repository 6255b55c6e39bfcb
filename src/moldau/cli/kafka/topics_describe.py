"""`kafka-topics --describe`: topics, their configs and partitions, or the partitions that need a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ask, get_all
from moldau.cli.kafka.java_order import hash_map_order
from moldau.cli.kafka.options import JavaFailure, Options
from moldau.protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

if TYPE_CHECKING:
    from moldau.client.admin import Admin, ConfigEntry, PartitionReassignment
    from moldau.client.connection.cluster import PartitionMetadata, TopicMetadata
    from moldau.client.results import TopicPartition

REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)


def describe(admin: Admin, options: Options, names: list[str]) -> None:
    from moldau.client.admin import TOPIC, ConfigResource

    topics = _by_id(admin, options) if options.has("topic-id") else _by_name(admin, options, names)
    resources = [ConfigResource(TOPIC, topic.name) for topic in topics]
    configs = get_all("describeConfigs", lambda: admin.describe_configs(resources))
    live = {broker.id for broker in ask("listNodes", admin.describe_cluster).brokers}
    partitions = [(topic.name, index) for topic in topics for index in topic.partitions]
    moving = _reassignments(admin, partitions)
    for topic, resource in zip(topics, resources, strict=True):
        for line in topic_lines(topic, configs[resource], live, moving, options):
            print(line)


def _by_name(admin: Admin, options: Options, names: list[str]) -> list[TopicMetadata]:
    page = options.integer("partition-size-limit-per-response") or 0
    found = get_all("describeTopics", lambda: admin.describe_topics(names, partitions_per_page=page)) if names else {}
    return [found[name] for name in hash_map_order(names, len(names))]


def _by_id(admin: Admin, options: Options) -> list[TopicMetadata]:
    text = options.text("topic-id") or ""
    try:
        topic_id = uuid_from_text(text)
    except ValueError:
        raise JavaFailure("java.lang.IllegalArgumentException", f"Illegal uuid {text}") from None
    if topic_id not in {topic.topic_id for topic in ask("listTopics", admin.list_topics)}:
        if options.has("if-exists"):
            return []
        sentence = f"TopicId '{text}' does not exist as expected"
        raise JavaFailure("java.lang.IllegalArgumentException", sentence)
    return list(get_all("describeTopics", lambda: admin.describe_topics_by_id([topic_id])).values())


def _reassignments(admin: Admin, partitions: list[tuple[str, int]]) -> dict[TopicPartition, PartitionReassignment]:
    """Replicas on the move; who may not see them gets the description all the same."""
    from moldau.client.errors import ClientError
    from moldau.client.results import TopicPartition

    if not partitions:
        return {}
    try:
        return admin.list_partition_reassignments([TopicPartition(*item) for item in partitions])
    except ClientError:
        return {}


def topic_lines(
    topic: TopicMetadata,
    entries: list[ConfigEntry],
    live: set[int],
    moving: dict[TopicPartition, PartitionReassignment],
    options: Options,
) -> list[str]:
    """What is shown of one topic."""
    from moldau.client.results import TopicPartition

    own = [entry for entry in _as_printed(entries) if not entry.is_default]
    overrides = options.has("topics-with-overrides")
    lines = []
    ordered = [topic.partitions[index] for index in sorted(topic.partitions)]
    if not any(options.has(report) for report in REPORTS) and (own or not overrides) and ordered:
        first = ordered[0]
        factor = _replication_factor(first, moving.get(TopicPartition(topic.name, first.partition)))
        identity = f"\tTopicId: {uuid_to_text(topic.topic_id)}" if topic.topic_id != ZERO_UUID else ""
        shown = ",".join(f"{entry.name}={_java_text(entry.value)}" for entry in own)
        lines.append(
            f"Topic: {topic.name}{identity}\tPartitionCount: {len(ordered)}\tReplicationFactor: {factor}"
            f"\tConfigs: {shown}"
        )
    if overrides:
        return lines
    least = next((int(entry.value or 1) for entry in entries if entry.name == "min.insync.replicas"), 1)
    for partition in ordered:
        change = moving.get(TopicPartition(topic.name, partition.partition))
        if _is_wanted(partition, change, least, live, options):
            lines.append(_partition_line(partition, change))
    return lines


def _as_printed(entries: list[ConfigEntry]) -> list[ConfigEntry]:
    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for name in hash_map_order(by_name)]


def _java_text(value: str | None) -> str:
    return "null" if value is None else value


def _replication_factor(partition: PartitionMetadata, change: PartitionReassignment | None) -> int:
    return len(partition.replicas) - (len(change.adding_replicas) if change is not None else 0)


def _is_wanted(
    partition: PartitionMetadata,
    change: PartitionReassignment | None,
    least: int,
    live: set[int],
    options: Options,
) -> bool:
    in_sync = len(partition.in_sync_replicas)
    if options.has("under-replicated-partitions"):
        return in_sync < _replication_factor(partition, change)
    if options.has("unavailable-partitions"):
        return partition.leader not in live
    if options.has("under-min-isr-partitions"):
        return in_sync < least
    if options.has("at-min-isr-partitions"):
        return in_sync == least
    return True


def _partition_line(partition: PartitionMetadata, change: PartitionReassignment | None) -> str:
    cells = [
        f"\tTopic: {partition.topic}",
        f"Partition: {partition.partition}",
        f"Leader: {partition.leader if partition.leader >= 0 else 'none'}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.in_sync_replicas)}",
    ]
    if change is not None:
        cells.append(f"Adding Replicas: {_ids(change.adding_replicas)}")
        cells.append(f"Removing Replicas: {_ids(change.removing_replicas)}")
    eligible, last = partition.eligible_leader_replicas, partition.last_known_eligible_leader_replicas
    cells.append(f"Elr: {'N/A' if eligible is None else _ids(eligible)}")
    cells.append(f"LastKnownElr: {'N/A' if last is None else _ids(last)}")
    return "\t".join(cells)


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))
