"""The other direction of `raft/wire.py`: requests this replica sends, and the responses it gets."""

from __future__ import annotations

from moldau.protocol.messages import add_raft_voter_request as add_request
from moldau.protocol.messages import (
    api_versions_request,
    api_versions_response,
    fetch_request,
    fetch_response,
    vote_request,
    vote_response,
)
from moldau.protocol.messages import begin_quorum_epoch_request as begin_request
from moldau.protocol.messages import begin_quorum_epoch_response as begin_response
from moldau.protocol.messages import end_quorum_epoch_request as end_request
from moldau.protocol.messages import end_quorum_epoch_response as end_response
from moldau.protocol.messages import fetch_snapshot_request as snapshot_request
from moldau.protocol.messages import fetch_snapshot_response as snapshot_response
from moldau.protocol.messages import remove_raft_voter_request as remove_request
from moldau.protocol.messages import update_raft_voter_request as update_request
from moldau.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from moldau.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords, Records
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import METADATA_TOPIC_UUID
from moldau.raft import messages as m
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.state import NO_NODE
from moldau.raft.wire import (
    ADD_RAFT_VOTER,
    BEGIN_QUORUM_EPOCH,
    END_QUORUM_EPOCH,
    FETCH,
    FETCH_SNAPSHOT,
    REMOVE_RAFT_VOTER,
    UPDATE_RAFT_VOTER,
    VOTE,
)

API_VERSIONS = 18
CHANGE_TIMEOUT_MS = 30_000
SOFTWARE_NAME, SOFTWARE_VERSION = "moldau-raft", "1"
KRAFT_VERSION = "kraft.version"
UNKNOWN_EPOCH = -1

_API_KEYS: dict[type[m.Request], int] = {
    m.VoteRequest: VOTE,
    m.BeginEpochRequest: BEGIN_QUORUM_EPOCH,
    m.EndEpochRequest: END_QUORUM_EPOCH,
    m.FetchRequest: FETCH,
    m.FetchSnapshotRequest: FETCH_SNAPSHOT,
    m.AddVoterRequest: ADD_RAFT_VOTER,
    m.RemoveVoterRequest: REMOVE_RAFT_VOTER,
    m.UpdateVoterRequest: UPDATE_RAFT_VOTER,
    m.ProbeRequest: API_VERSIONS,
}


def api_key_of(request: m.Request) -> int:
    return _API_KEYS[type(request)]


def request_to_wire(request: m.Request, cluster_id: str) -> Message:
    if isinstance(request, m.VoteRequest):
        vote = vote_request.PartitionData(
            0,
            request.epoch,
            request.candidate.id,
            request.candidate.directory_id,
            request.voter.directory_id,
            request.last.epoch,
            request.last.offset,
            request.pre_vote,
        )
        return vote_request.VoteRequest(cluster_id, request.voter.id, [vote_request.TopicData(METADATA_TOPIC, [vote])])
    if isinstance(request, m.BeginEpochRequest):
        begin = begin_request.PartitionData(0, request.voter.directory_id, request.leader_id, request.epoch)
        endpoints = [begin_request.LeaderEndpoint(name, host, port) for name, host, port in request.endpoints]
        topics = [begin_request.TopicData(METADATA_TOPIC, [begin])]
        return begin_request.BeginQuorumEpochRequest(cluster_id, request.voter.id, topics, endpoints)
    if isinstance(request, m.EndEpochRequest):
        end = end_request.PartitionData(0, request.leader_id, request.epoch)
        end.preferred_successors = [key.id for key in request.successors]
        end.preferred_candidates = [end_request.ReplicaInfo(key.id, key.directory_id) for key in request.successors]
        return end_request.EndQuorumEpochRequest(cluster_id, [end_request.TopicData(METADATA_TOPIC, [end])])
    if isinstance(request, m.FetchRequest):
        return _fetch(request, cluster_id)
    if not isinstance(request, m.FetchSnapshotRequest):
        return _change(request, cluster_id)
    snapshot = snapshot_request.PartitionSnapshot(
        0,
        request.epoch,
        snapshot_request.SnapshotId(request.snapshot.offset, request.snapshot.epoch),
        request.position,
        request.replica.directory_id,
    )
    topics_snapshot = [snapshot_request.TopicSnapshot(METADATA_TOPIC, [snapshot])]
    return snapshot_request.FetchSnapshotRequest(cluster_id, request.replica.id, request.max_bytes, topics_snapshot)


def _change(request: m.Request, cluster_id: str) -> Message:
    if isinstance(request, m.AddVoterRequest):
        key = request.voter.key
        added = [add_request.Listener(*endpoint) for endpoint in request.voter.endpoints]
        wait = request.ack_when_committed
        return add_request.AddRaftVoterRequest(
            cluster_id, CHANGE_TIMEOUT_MS, key.id, key.directory_id, added, ack_when_committed=wait
        )
    if isinstance(request, m.RemoveVoterRequest):
        return remove_request.RemoveRaftVoterRequest(cluster_id, request.voter.id, request.voter.directory_id)
    if isinstance(request, m.UpdateVoterRequest):
        voter = request.voter
        updated = [update_request.Listener(*endpoint) for endpoint in voter.endpoints]
        versions = update_request.KRaftVersionFeature(voter.min_kraft_version, voter.max_kraft_version)
        return update_request.UpdateRaftVoterRequest(
            cluster_id, request.epoch, voter.key.id, voter.key.directory_id, updated, versions
        )
    assert isinstance(request, m.ProbeRequest)
    return api_versions_request.ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION)


def _fetch(request: m.FetchRequest, cluster_id: str) -> fetch_request.FetchRequest:
    partition = fetch_request.FetchPartition(
        partition=0,
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_fetched_epoch,
        log_start_offset=-1,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    return fetch_request.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch_request.ReplicaState(request.replica.id, -1),
        max_wait_ms=request.max_wait_ms,
        min_bytes=0,
        max_bytes=request.max_bytes,
        topics=[fetch_request.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_UUID, [partition])],
    )


def reply_from_wire(response: Message) -> m.Reply | None:
    """The response for the metadata partition; None when there is none in it, which counts as a failed request."""
    reply = _change_reply(response) or _partition_reply(response)
    if reply is not None and reply.leader_address is None:
        endpoints = getattr(response, "node_endpoints", [])
        reply.leader_address = next(((e.host, e.port) for e in endpoints if e.node_id == reply.leader_id), None)
    return reply


def _change_reply(response: Message) -> m.Reply | None:
    if isinstance(response, AddRaftVoterResponse):
        return m.AddVoterReply(response.error_code, NO_NODE, UNKNOWN_EPOCH, response.error_message)
    if isinstance(response, RemoveRaftVoterResponse):
        return m.RemoveVoterReply(response.error_code, NO_NODE, UNKNOWN_EPOCH, response.error_message)
    if isinstance(response, UpdateRaftVoterResponse):
        leader = response.current_leader
        update = m.UpdateVoterReply(response.error_code, leader.leader_id, leader.leader_epoch)
        update.leader_address = (leader.host, leader.port) if leader.host else None
        return update
    if isinstance(response, api_versions_response.ApiVersionsResponse):
        probe = m.ProbeReply(response.error_code, NO_NODE, UNKNOWN_EPOCH)
        for feature in response.supported_features:
            if feature.name == KRAFT_VERSION:
                probe.min_kraft_version, probe.max_kraft_version = feature.min_version, feature.max_version
        return probe
    return None


def _partition_reply(response: Message) -> m.Reply | None:
    if isinstance(response, vote_response.VoteResponse):
        for vote in (p for t in response.topics for p in t.partitions):
            return m.VoteReply(vote.error_code, vote.leader_id, vote.leader_epoch, vote.vote_granted)
    elif isinstance(response, begin_response.BeginQuorumEpochResponse):
        for begin in (p for t in response.topics for p in t.partitions):
            return m.BeginEpochReply(begin.error_code, begin.leader_id, begin.leader_epoch)
    elif isinstance(response, end_response.EndQuorumEpochResponse):
        for end in (p for t in response.topics for p in t.partitions):
            return m.EndEpochReply(end.error_code, end.leader_id, end.leader_epoch)
    elif isinstance(response, fetch_response.FetchResponse):
        for data in (p for t in response.responses for p in t.partitions):
            return _fetch_reply(data)
    elif isinstance(response, snapshot_response.FetchSnapshotResponse):
        for part in (p for t in response.topics for p in t.partitions):
            return m.FetchSnapshotReply(
                part.error_code,
                part.current_leader.leader_id,
                part.current_leader.leader_epoch,
                OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch),
                part.size,
                part.position,
                _bytes_of(part.unaligned_records),
            )
    return None


def _fetch_reply(data: fetch_response.PartitionData) -> m.FetchReply:
    reply = m.FetchReply(data.error_code, data.current_leader.leader_id, data.current_leader.leader_epoch)
    reply.high_watermark, reply.log_start_offset = data.high_watermark, data.log_start_offset
    if data.diverging_epoch.epoch >= 0 and data.diverging_epoch.end_offset >= 0:
        reply.diverging = OffsetAndEpoch(data.diverging_epoch.end_offset, data.diverging_epoch.epoch)
    if data.snapshot_id.epoch >= 0 and data.snapshot_id.end_offset >= 0:
        reply.snapshot = OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    reply.records = _bytes_of(data.records)
    return reply


def _bytes_of(records: Records | None) -> bytes:
    return records.to_bytes() if isinstance(records, MemoryRecords) else b""
