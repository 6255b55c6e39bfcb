"""Who is in the cluster: its brokers, those that are fenced too, its quorum, and what each broker has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.client.errors import ClientError, UnsupportedVersionError

if TYPE_CHECKING:
    from moldau.client.admin import Admin, ClusterDescription, QuorumInfo
    from moldau.client.connection.cluster import Broker, PartitionMetadata, TopicMetadata


def describe_brokers(admin: Admin) -> ClusterDescription:
    """The cluster with its fenced brokers, where the broker asked is new enough to tell them."""
    try:
        return admin.describe_cluster(include_fenced_brokers=True)
    except UnsupportedVersionError:
        return admin.describe_cluster()


def all_partitions(topics: Iterable[TopicMetadata]) -> list[PartitionMetadata]:
    return [topic.partitions[number] for topic in topics for number in sorted(topic.partitions)]


def broker_row(found: ClusterDescription, broker: Broker, partitions: list[PartitionMetadata]) -> dict[str, object]:
    return {
        "id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "fenced": broker.id in found.fenced,
        "leaders": sum(item.leader == broker.id for item in partitions),
        "replicas": sum(broker.id in item.replicas for item in partitions),
    }


def ask_quorum(admin: Admin) -> QuorumInfo | None:
    """None where the user may not ask, or the broker does not know."""
    try:
        return admin.describe_metadata_quorum()
    except ClientError:
        return None
