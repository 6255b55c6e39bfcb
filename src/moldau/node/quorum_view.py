"""The quorum as DescribeQuorum shows it: voters and observers as the leader knows them."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.messages import describe_quorum_response as response
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import ZERO_UUID
from moldau.raft.replica import Raft
from moldau.raft.roles import Leader, ReplicaProgress
from moldau.raft.state import ReplicaKey

FIRST_NODES_VERSION = 2


def describe_quorum(
    raft: Raft, request: DescribeQuorumRequest, version: int, now_ms: int
) -> response.DescribeQuorumResponse:
    """Any partition but the one of the metadata log is unknown. Directory ids and endpoints came with version 2."""
    described = response.DescribeQuorumResponse()
    for topic in request.topics:
        rows = response.TopicData(topic.topic_name)
        described.topics.append(rows)
        for partition in topic.partitions:
            if topic.topic_name == METADATA_TOPIC and partition.partition_index == 0:
                rows.partitions.append(_describe_log(raft, version, now_ms))
                if version >= FIRST_NODES_VERSION:
                    described.nodes = _nodes(raft)
            else:
                code = errors.UNKNOWN_TOPIC_OR_PARTITION
                text = errors.default_text(code)
                rows.partitions.append(response.PartitionData(partition.partition_index, code, text))
    return described


def _describe_log(raft: Raft, version: int, now_ms: int) -> response.PartitionData:
    data = response.PartitionData(0, errors.NONE, leader_id=raft.leader_id, leader_epoch=raft.epoch)
    role = raft.role
    if not isinstance(role, Leader):
        data.error_code = errors.NOT_LEADER_OR_FOLLOWER
        return data
    data.high_watermark = raft.high_watermark
    for voter_id, progress in sorted(role.voters.items()):
        if voter_id == raft.local.id:
            own = ReplicaProgress(raft.log.end_offset(), last_fetch_ms=now_ms, last_caught_up_ms=now_ms)
            data.current_voters.append(_row(raft, raft.voters.key(voter_id), own, version))
        else:
            data.current_voters.append(_row(raft, raft.voters.key(voter_id), progress, version))
    data.observers = [_row(raft, key, progress, version) for key, progress in role.observers.items()]
    return data


def _nodes(raft: Raft) -> list[response.Node]:
    return [
        response.Node(voter.key.id, [response.Listener(*endpoint) for endpoint in voter.endpoints])
        for voter in raft.voters.voters()
    ]


def _row(raft: Raft, key: ReplicaKey, progress: ReplicaProgress, version: int) -> response.ReplicaState:
    directory_id = key.directory_id if version >= FIRST_NODES_VERSION else ZERO_UUID
    return response.ReplicaState(
        key.id,
        directory_id,
        progress.end_offset,
        _wall_time(raft, progress.last_fetch_ms),
        _wall_time(raft, progress.last_caught_up_ms),
    )


def _wall_time(raft: Raft, time_ms: int) -> int:
    """-1 stays: it never happened."""
    return time_ms if time_ms < 0 else raft.wall.at(time_ms)
