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


def end_of_epochs(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, Outcome[tuple[int, int]]]:
    """KIP-320: for a leader epoch per partition, the largest epoch up to it that the leader has, and where it ends."""
    from moldau.protocol.messages.offset_for_leader_epoch_request import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderPartition,
        OffsetForLeaderTopic,
    )
    from moldau.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse

    def ask(broker_id: int, items: list[TopicPartition]) -> dict[TopicPartition, Outcome[tuple[int, int]]]:
        topics: dict[str, OffsetForLeaderTopic] = {}
        for item in items:
            leader = cluster.leader(item)
            row = OffsetForLeaderPartition(
                partition=item.partition,
                current_leader_epoch=-1 if leader is None else leader.leader_epoch,
                leader_epoch=wanted[item],
            )
            topics.setdefault(item.topic, OffsetForLeaderTopic(topic=item.topic, partitions=[])).partitions.append(row)
        request = OffsetForLeaderEpochRequest(replica_id=CONSUMER_REPLICA, topics=list(topics.values()))
        answer = cluster.ask_broker(request, OffsetForLeaderEpochResponse, timeout_ms, broker_id)
        found: dict[TopicPartition, Outcome[tuple[int, int]]] = {}
        for topic in answer.topics:
            for end in topic.partitions:
                error = None if end.error_code == NONE else error_for(end.error_code)
                found[TopicPartition(topic.topic, end.partition)] = Outcome((end.leader_epoch, end.end_offset), error)
        for item in items:
            if item not in found:
                found[item] = Outcome(error=error_for(-1, f"The broker's answer leaves out {item}."))
        return found

    return cluster.ask_leaders(wanted, ask, timeout_ms)
