"""The quorum as DescribeQuorum shows it: voters and observers as the leader knows them."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.messages import describe_quorum_response as response
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from moldau.raft.replica import Raft
from moldau.raft.roles import Leader, ReplicaProgress
from moldau.raft.state import ReplicaKey
from moldau.raft.wire import METADATA_TOPIC


def describe_quorum(raft: Raft, request: DescribeQuorumRequest, now_ms: int) -> response.DescribeQuorumResponse:
    if [topic.topic_name for topic in request.topics] != [METADATA_TOPIC]:
        return response.DescribeQuorumResponse(errors.UNKNOWN_TOPIC_OR_PARTITION, None)
    data = response.PartitionData(0, errors.NONE, None, raft.leader_id, raft.epoch)
    role = raft.role
    if isinstance(role, Leader):
        data.high_watermark = raft.high_watermark
        for voter_id, progress in sorted(role.voters.items()):
            if voter_id == raft.local.id:
                own = ReplicaProgress(raft.log.end_offset(), now_ms, now_ms)
                data.current_voters.append(_row(raft.local, own))
            else:
                data.current_voters.append(_row(raft.voters.key(voter_id), progress))
        data.observers = [_row(key, progress) for key, progress in role.observers.items()]
    else:
        data.error_code = errors.NOT_LEADER_OR_FOLLOWER
    nodes = [
        response.Node(voter.key.id, [response.Listener(*endpoint) for endpoint in voter.endpoints])
        for voter in raft.voters.voters()
    ]
    return response.DescribeQuorumResponse(errors.NONE, None, [response.TopicData(METADATA_TOPIC, [data])], nodes)


def _row(key: ReplicaKey, progress: ReplicaProgress) -> response.ReplicaState:
    return response.ReplicaState(
        key.id, key.directory_id, progress.end_offset, progress.last_fetch_ms, progress.last_caught_up_ms
    )
