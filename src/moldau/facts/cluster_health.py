"""Whether everything in the cluster is as it should be: brokers, voters, leaders and replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moldau.client.admin import TOPIC, Admin, ClusterDescription, ConfigResource, QuorumInfo
from moldau.client.connection.cluster import PartitionMetadata
from moldau.facts.cluster import all_partitions, ask_quorum, describe_brokers

MIN_IN_SYNC = "min.insync.replicas"

# A voter that was not caught up for so long is behind.
VOTER_BEHIND_MS = 10_000


class Health:
    """What is wrong in the cluster; everything empty is what one wants to see."""

    def __init__(self) -> None:
        self.brokers = 0
        self.partitions = 0
        self.controller = -1
        self.fenced: list[int] = []
        self.voters_behind: list[int] = []
        self.offline: list[PartitionMetadata] = []
        self.under_min: list[PartitionMetadata] = []
        self.at_min: list[PartitionMetadata] = []
        self.under_replicated: list[PartitionMetadata] = []

    @property
    def healthy(self) -> bool:
        return self.controller >= 0 and not (
            self.fenced or self.voters_behind or self.offline or self.under_min or self.at_min or self.under_replicated
        )


def check_health(admin: Admin) -> Health:
    """Looks at brokers, quorum and all partitions."""
    found = describe_brokers(admin)
    quorum = ask_quorum(admin)
    partitions = all_partitions(admin.list_topics())
    return health_of(found, quorum, partitions, min_in_sync(admin, degraded_topics(partitions)))


def health_of(
    found: ClusterDescription,
    quorum: QuorumInfo | None,
    partitions: Sequence[PartitionMetadata],
    minimums: Mapping[str, int],
) -> Health:
    """What follows from responses; minimums: min.insync.replicas of the topics that are not whole."""
    health = Health()
    health.brokers = len(found.brokers)
    health.fenced = sorted(found.fenced)
    health.controller = found.controller_id if quorum is None else quorum.leader_id
    if quorum is not None:
        health.voters_behind = _voters_behind(quorum)
    health.partitions = len(partitions)
    for item in partitions:
        if not _is_degraded(item):
            continue
        in_sync, minimum = len(item.in_sync_replicas), minimums.get(item.topic, 1)
        if item.leader < 0:
            health.offline.append(item)
        elif in_sync < minimum:
            health.under_min.append(item)
        elif in_sync == minimum:
            health.at_min.append(item)
        if in_sync < len(item.replicas):
            health.under_replicated.append(item)
    return health


def degraded_topics(partitions: Iterable[PartitionMetadata]) -> set[str]:
    """Topics with a partition that has no leader or lacks replicas."""
    return {item.topic for item in partitions if _is_degraded(item)}


def _is_degraded(item: PartitionMetadata) -> bool:
    return len(item.in_sync_replicas) < len(item.replicas) or item.leader < 0


def _voters_behind(quorum: QuorumInfo) -> list[int]:
    times = [item.last_caught_up_timestamp for item in quorum.voters if item.last_caught_up_timestamp is not None]
    if not times:
        return []
    latest = max(times)
    return sorted(
        item.replica_id
        for item in quorum.voters
        if item.replica_id != quorum.leader_id and latest - (item.last_caught_up_timestamp or 0) > VOTER_BEHIND_MS
    )


def min_in_sync(admin: Admin, topics: set[str]) -> dict[str, int]:
    """How many replicas must be in sync before acks=all is accepted; asked for topics that are not whole."""
    resources = [ConfigResource(TOPIC, topic) for topic in sorted(topics)]
    outcomes = admin.describe_configs(resources, names=[MIN_IN_SYNC]) if resources else {}
    minimums: dict[str, int] = {}
    for resource, outcome in outcomes.items():
        values = (
            [] if outcome.error is not None else [entry.value for entry in outcome.get() if entry.name == MIN_IN_SYNC]
        )
        if values and values[0] is not None and values[0].isdigit():
            minimums[resource.name] = int(values[0])
    return minimums
