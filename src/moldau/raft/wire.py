"""The quorum's messages as requests and responses of the protocol, for the one partition there is.

What comes in is checked here (cluster, topic, partition); what is wrong with it is raised as KafkaError.
"""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import add_raft_voter_request as add_request
from moldau.protocol.messages import add_raft_voter_response as add_response
from moldau.protocol.messages import begin_quorum_epoch_request as begin_request
from moldau.protocol.messages import begin_quorum_epoch_response as begin_response
from moldau.protocol.messages import end_quorum_epoch_request as end_request
from moldau.protocol.messages import end_quorum_epoch_response as end_response
from moldau.protocol.messages import fetch_request, fetch_response, vote_request, vote_response
from moldau.protocol.messages import fetch_snapshot_request as snapshot_request
from moldau.protocol.messages import fetch_snapshot_response as snapshot_response
from moldau.protocol.messages import remove_raft_voter_request as remove_request
from moldau.protocol.messages import remove_raft_voter_response as remove_response
from moldau.protocol.messages import update_raft_voter_request as update_request
from moldau.protocol.messages import update_raft_voter_response as update_response
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import METADATA_TOPIC_UUID
from moldau.raft import messages as m
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter

FETCH, VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, FETCH_SNAPSHOT = 1, 52, 53, 54, 59
ADD_RAFT_VOTER, REMOVE_RAFT_VOTER, UPDATE_RAFT_VOTER = 80, 81, 82


def _check_cluster(cluster_id: str, given: str | None) -> None:
    if given is not None and given != cluster_id:
        text = f'The given id "{given}" doesn\'t match the cluster id "{cluster_id}"'
        raise KafkaError(errors.INCONSISTENT_CLUSTER_ID, text)


def _check_topics(topics: list[str], partitions: list[int]) -> None:
    if topics != [METADATA_TOPIC] or partitions != [0]:
        raise KafkaError(errors.INVALID_REQUEST)


def request_from_wire(request: Message, cluster_id: str) -> m.Request:
    """What another replica asks."""
    if isinstance(request, vote_request.VoteRequest):
        return _vote(request, cluster_id)
    if isinstance(request, fetch_request.FetchRequest):
        return _fetch(request, cluster_id)
    if isinstance(request, begin_request.BeginQuorumEpochRequest):
        return _begin(request, cluster_id)
    if isinstance(request, end_request.EndQuorumEpochRequest):
        return _end(request, cluster_id)
    if isinstance(request, snapshot_request.FetchSnapshotRequest):
        return _fetch_snapshot(request, cluster_id)
    if isinstance(request, add_request.AddRaftVoterRequest):
        _check_cluster(cluster_id, request.cluster_id)
        endpoints = tuple((e.name, e.host, e.port) for e in request.listeners)
        added = Voter(ReplicaKey(request.voter_id, request.voter_directory_id), endpoints)
        return m.AddVoterRequest(-1, added, request.ack_when_committed)
    if isinstance(request, remove_request.RemoveRaftVoterRequest):
        _check_cluster(cluster_id, request.cluster_id)
        return m.RemoveVoterRequest(-1, ReplicaKey(request.voter_id, request.voter_directory_id))
    if isinstance(request, update_request.UpdateRaftVoterRequest):
        return _update_voter(request, cluster_id)
    raise KafkaError(errors.UNSUPPORTED_VERSION, f"{type(request).__name__} is not a request of the quorum")


def _vote(request: vote_request.VoteRequest, cluster_id: str) -> m.VoteRequest:
    _check_cluster(cluster_id, request.cluster_id)
    indexes = [p.partition_index for t in request.topics for p in t.partitions]
    _check_topics([t.topic_name for t in request.topics], indexes)
    data = request.topics[0].partitions[0]
    last_epoch_max = data.replica_epoch if data.pre_vote else data.replica_epoch - 1
    if data.last_offset < 0 or not 0 <= data.last_offset_epoch <= last_epoch_max:
        raise KafkaError(errors.INVALID_REQUEST)
    return m.VoteRequest(
        data.replica_epoch,
        ReplicaKey(data.replica_id, data.replica_directory_id),
        ReplicaKey(request.voter_id, data.voter_directory_id),
        OffsetAndEpoch(data.last_offset, data.last_offset_epoch),
        data.pre_vote,
    )


def _begin(request: begin_request.BeginQuorumEpochRequest, cluster_id: str) -> m.BeginEpochRequest:
    _check_cluster(cluster_id, request.cluster_id)
    indexes = [p.partition_index for t in request.topics for p in t.partitions]
    _check_topics([t.topic_name for t in request.topics], indexes)
    data = request.topics[0].partitions[0]
    endpoints = tuple((e.name, e.host, e.port) for e in request.leader_endpoints)
    voter = ReplicaKey(request.voter_id, data.voter_directory_id)
    return m.BeginEpochRequest(data.leader_epoch, data.leader_id, voter, endpoints)


def _end(request: end_request.EndQuorumEpochRequest, cluster_id: str) -> m.EndEpochRequest:
    _check_cluster(cluster_id, request.cluster_id)
    indexes = [p.partition_index for t in request.topics for p in t.partitions]
    _check_topics([t.topic_name for t in request.topics], indexes)
    data = request.topics[0].partitions[0]
    successors = [ReplicaKey(c.candidate_id, c.candidate_directory_id) for c in data.preferred_candidates]
    successors = successors or [ReplicaKey(node_id, bytes(16)) for node_id in data.preferred_successors]
    return m.EndEpochRequest(data.leader_epoch, data.leader_id, tuple(successors))


def _fetch(request: fetch_request.FetchRequest, cluster_id: str) -> m.FetchRequest:
    _check_cluster(cluster_id, request.cluster_id)
    names = [t.topic or (METADATA_TOPIC if t.topic_id == METADATA_TOPIC_UUID else "") for t in request.topics]
    _check_topics(names, [p.partition for t in request.topics for p in t.partitions])
    data = request.topics[0].partitions[0]
    if request.max_wait_ms < 0 or data.fetch_offset < 0 or data.last_fetched_epoch < 0 or data.current_leader_epoch < 0:
        raise KafkaError(errors.INVALID_REQUEST)
    replica_id = request.replica_state.replica_id if request.replica_state.replica_id != -1 else request.replica_id
    return m.FetchRequest(
        data.current_leader_epoch,
        ReplicaKey(replica_id, data.replica_directory_id),
        data.fetch_offset,
        data.last_fetched_epoch,
        request.max_wait_ms,
        max(0, request.max_bytes),
        data.high_watermark,
    )


def _fetch_snapshot(request: snapshot_request.FetchSnapshotRequest, cluster_id: str) -> m.FetchSnapshotRequest:
    _check_cluster(cluster_id, request.cluster_id)
    _check_topics([t.name for t in request.topics], [p.partition for t in request.topics for p in t.partitions])
    data = request.topics[0].partitions[0]
    return m.FetchSnapshotRequest(
        data.current_leader_epoch,
        ReplicaKey(request.replica_id, data.replica_directory_id),
        OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch),
        data.position,
        max(0, request.max_bytes),
    )


def _update_voter(request: update_request.UpdateRaftVoterRequest, cluster_id: str) -> m.UpdateVoterRequest:
    _check_cluster(cluster_id, request.cluster_id)
    versions = request.kraft_version_feature
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        tuple((e.name, e.host, e.port) for e in request.listeners),
        versions.min_supported_version,
        versions.max_supported_version,
    )
    return m.UpdateVoterRequest(request.current_leader_epoch, voter)


def reply_to_wire(reply: m.Reply) -> Message:
    """With the leader's address, which old versions have no room for: see `without_endpoints`."""
    response = _reply_to_wire(reply)
    if reply.leader_address is not None:
        host, port = reply.leader_address
        if isinstance(response, vote_response.VoteResponse):
            response.node_endpoints = [vote_response.NodeEndpoint(reply.leader_id, host, port)]
        elif isinstance(response, begin_response.BeginQuorumEpochResponse):
            response.node_endpoints = [begin_response.NodeEndpoint(reply.leader_id, host, port)]
        elif isinstance(response, end_response.EndQuorumEpochResponse):
            response.node_endpoints = [end_response.NodeEndpoint(reply.leader_id, host, port)]
        elif isinstance(response, fetch_response.FetchResponse):
            response.node_endpoints = [fetch_response.NodeEndpoint(reply.leader_id, host, port)]
        elif isinstance(response, snapshot_response.FetchSnapshotResponse):
            response.node_endpoints = [snapshot_response.NodeEndpoint(reply.leader_id, host, port)]
    return response


def without_endpoints(response: Message, api_key: int, version: int) -> Message:
    """The response as an older version can say it (KIP-853 brought the endpoints)."""
    if version < (16 if api_key == FETCH else 1) and hasattr(response, "node_endpoints"):
        response.node_endpoints = []
    return response


def _reply_to_wire(reply: m.Reply) -> Message:
    if isinstance(reply, m.VoteReply):
        vote = vote_response.PartitionData(0, reply.error, reply.leader_id, reply.epoch, reply.granted)
        return vote_response.VoteResponse(0, [vote_response.TopicData(METADATA_TOPIC, [vote])])
    if isinstance(reply, m.BeginEpochReply):
        begin = begin_response.PartitionData(0, reply.error, reply.leader_id, reply.epoch)
        return begin_response.BeginQuorumEpochResponse(0, [begin_response.TopicData(METADATA_TOPIC, [begin])])
    if isinstance(reply, m.EndEpochReply):
        end = end_response.PartitionData(0, reply.error, reply.leader_id, reply.epoch)
        return end_response.EndQuorumEpochResponse(0, [end_response.TopicData(METADATA_TOPIC, [end])])
    if isinstance(reply, m.FetchReply):
        return _fetch_reply(reply)
    if isinstance(reply, m.AddVoterReply):
        return add_response.AddRaftVoterResponse(0, reply.error, reply.message)
    if isinstance(reply, m.RemoveVoterReply):
        return remove_response.RemoveRaftVoterResponse(0, reply.error, reply.message)
    if isinstance(reply, m.UpdateVoterReply):
        host, port = reply.leader_address if reply.leader_address is not None else ("", 0)
        leader = update_response.CurrentLeader(reply.leader_id, reply.epoch, host, port)
        return update_response.UpdateRaftVoterResponse(0, reply.error, leader)
    assert isinstance(reply, m.FetchSnapshotReply)
    snapshot = snapshot_response.PartitionSnapshot(
        0,
        reply.error,
        snapshot_response.SnapshotId(reply.snapshot.offset, reply.snapshot.epoch),
        snapshot_response.LeaderIdAndEpoch(reply.leader_id, reply.epoch),
        reply.size,
        reply.position,
        MemoryRecords(reply.data, 0, len(reply.data)),
    )
    return snapshot_response.FetchSnapshotResponse(topics=[snapshot_response.TopicSnapshot(METADATA_TOPIC, [snapshot])])


def _fetch_reply(reply: m.FetchReply) -> fetch_response.FetchResponse:
    data = fetch_response.PartitionData(
        partition_index=0,
        error_code=reply.error,
        high_watermark=reply.high_watermark,
        log_start_offset=reply.log_start_offset,
        current_leader=fetch_response.LeaderIdAndEpoch(reply.leader_id, reply.epoch),
        records=MemoryRecords(reply.records, 0, len(reply.records)),
    )
    if reply.diverging is not None:
        data.diverging_epoch = fetch_response.EpochEndOffset(reply.diverging.epoch, reply.diverging.offset)
    if reply.snapshot is not None:
        data.snapshot_id = fetch_response.SnapshotId(reply.snapshot.offset, reply.snapshot.epoch)
    topic = fetch_response.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_UUID, [data])
    return fetch_response.FetchResponse(responses=[topic])


def error_to_wire(api_key: int, code: int, message: str = "") -> Message:
    """A response that is an error as a whole."""
    if api_key == ADD_RAFT_VOTER:
        return add_response.AddRaftVoterResponse(0, code, message or errors.default_text(code))
    if api_key == REMOVE_RAFT_VOTER:
        return remove_response.RemoveRaftVoterResponse(0, code, message or errors.default_text(code))
    if api_key == UPDATE_RAFT_VOTER:
        return update_response.UpdateRaftVoterResponse(0, code)
    if api_key == VOTE:
        return vote_response.VoteResponse(code)
    if api_key == BEGIN_QUORUM_EPOCH:
        return begin_response.BeginQuorumEpochResponse(code)
    if api_key == END_QUORUM_EPOCH:
        return end_response.EndQuorumEpochResponse(code)
    if api_key == FETCH_SNAPSHOT:
        return snapshot_response.FetchSnapshotResponse(error_code=code)
    return fetch_response.FetchResponse(error_code=code)
