"""Asks leaders for offsets: the first, the last, or the first at or after a time."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.cluster import Cluster
from moldau.client.errors import error_for
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition
from moldau.protocol.errors import NONE
from moldau.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse

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

    def ask(broker_id: int, items: list[TopicPartition]) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
        request = _request(cluster, wanted, items, isolation, timeout_ms)
        return _outcomes(cluster.ask_broker(request, ListOffsetsResponse, timeout_ms, broker_id), items)

    return cluster.ask_leaders(wanted, ask, timeout_ms)


def _request(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    items: list[TopicPartition],
    isolation: int,
    timeout_ms: int,
) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for item in items:
        leader = cluster.leader(item)
        row = ListOffsetsPartition(
            partition_index=item.partition,
            current_leader_epoch=-1 if leader is None else leader.leader_epoch,
            timestamp=wanted[item],
        )
        topics.setdefault(item.topic, ListOffsetsTopic(name=item.topic, partitions=[])).partitions.append(row)
    return ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA, isolation_level=isolation, topics=list(topics.values()), timeout_ms=timeout_ms
    )


def _outcomes(
    answer: ListOffsetsResponse, items: list[TopicPartition]
) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
    outcomes: dict[TopicPartition, Outcome[OffsetAndTimestamp]] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            item = TopicPartition(topic.name, row.partition_index)
            if row.error_code != NONE:
                outcomes[item] = Outcome(error=error_for(row.error_code))
            else:
                outcomes[item] = Outcome(OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch))
    for item in items:
        if item not in outcomes:
            outcomes[item] = Outcome(error=error_for(-1, f"The broker's answer leaves out {item}."))
    return outcomes
