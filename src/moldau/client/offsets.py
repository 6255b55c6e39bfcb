"""Asks leaders for offsets: the first, the last, or the first at or after a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from moldau.client.connection.cluster import Cluster
from moldau.client.errors import error_for
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition
from moldau.protocol.errors import NONE
from moldau.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse

T = TypeVar("T")

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

CONSUMER_REPLICA = -1


def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    timeout_ms: int,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
    """wanted: a timestamp or one of the special values per partition. Offset -1: no record is that young."""

    def ask(
        broker_id: int, items: list[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
        request = offsets_request(cluster, {item: wanted[item] for item in items}, isolation, timeout_ms)
        return offsets_outcomes(cluster.ask_broker(request, ListOffsetsResponse, timeout_ms, broker_id), items)

    return cluster.ask_leaders(wanted, ask, timeout_ms)


def offsets_request(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], isolation: int, timeout_ms: int
) -> ListOffsetsRequest:
    """What to ask the broker that leads these partitions."""
    topics: dict[str, ListOffsetsTopic] = {}
    for item, timestamp in wanted.items():
        leader = cluster.leader(item)
        row = ListOffsetsPartition(
            partition_index=item.partition,
            current_leader_epoch=-1 if leader is None else leader.leader_epoch,
            timestamp=timestamp,
        )
        topics.setdefault(item.topic, ListOffsetsTopic(name=item.topic, partitions=[])).partitions.append(row)
    return ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA, isolation_level=isolation, topics=list(topics.values()), timeout_ms=timeout_ms
    )


def offsets_outcomes(
    response: ListOffsetsResponse, items: Iterable[TopicPartition]
) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
    outcomes: dict[TopicPartition, Outcome[OffsetAndTimestamp]] = {}
    for topic in response.topics:
        for row in topic.partitions:
            item = TopicPartition(topic.name, row.partition_index)
            if row.error_code != NONE:
                outcomes[item] = Outcome(error=error_for(row.error_code))
            else:
                outcomes[item] = Outcome(OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch))
    return _with_left_out(outcomes, items)


def epochs_request(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> OffsetForLeaderEpochRequest:
    """KIP-320: for a leader epoch per partition, the largest epoch up to it that the leader has, and where it ends."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for item, epoch in wanted.items():
        leader = cluster.leader(item)
        row = OffsetForLeaderPartition(
            partition=item.partition,
            current_leader_epoch=-1 if leader is None else leader.leader_epoch,
            leader_epoch=epoch,
        )
        topics.setdefault(item.topic, OffsetForLeaderTopic(topic=item.topic, partitions=[])).partitions.append(row)
    return OffsetForLeaderEpochRequest(replica_id=CONSUMER_REPLICA, topics=list(topics.values()))


def epochs_outcomes(
    response: OffsetForLeaderEpochResponse, items: Iterable[TopicPartition]
) -> dict[TopicPartition, Outcome[tuple[int, int]]]:
    """The epoch and its end offset, by partition."""
    found: dict[TopicPartition, Outcome[tuple[int, int]]] = {}
    for topic in response.topics:
        for end in topic.partitions:
            error = None if end.error_code == NONE else error_for(end.error_code)
            found[TopicPartition(topic.topic, end.partition)] = Outcome((end.leader_epoch, end.end_offset), error)
    return _with_left_out(found, items)


def _with_left_out(
    outcomes: dict[TopicPartition, Outcome[T]], items: Iterable[TopicPartition]
) -> dict[TopicPartition, Outcome[T]]:
    for item in items:
        if item not in outcomes:
            outcomes[item] = Outcome(error=error_for(-1, f"The broker's response leaves out {item}."))
    return outcomes
