"""Admin methods for the metadata quorum: who leads, who votes, how far each is; adding and removing voters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_int, checked_name, checked_uuid
from moldau.client.admin.routing import check
from moldau.client.errors import error_for
from moldau.protocol.errors import UNKNOWN_SERVER_ERROR
from moldau.protocol.topic_names import METADATA_TOPIC

if TYPE_CHECKING:
    from moldau.protocol.messages.describe_quorum_response import ReplicaState


class QuorumReplica(NamedTuple):
    """A voter or an observer and how far it is; timestamps are None where the leader does not know them."""

    replica_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


class RaftEndpoint(NamedTuple):
    """A listener of a controller."""

    listener: str
    host: str
    port: int


class QuorumInfo(NamedTuple):
    """The metadata quorum; nodes: the endpoints of each voter."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    nodes: dict[int, list[RaftEndpoint]]


class QuorumAdmin(AdminCalls):
    """The metadata quorum."""

    def describe_metadata_quorum(self, timeout_ms: int | None = None) -> QuorumInfo:
        """The state of the metadata quorum as its leader sees it."""
        from moldau.protocol.messages import describe_quorum_request as request_messages
        from moldau.protocol.messages.describe_quorum_response import DescribeQuorumResponse

        deadline = self._start(timeout_ms)
        partitions = [request_messages.PartitionData(partition_index=0)]
        request = request_messages.DescribeQuorumRequest(
            topics=[request_messages.TopicData(topic_name=METADATA_TOPIC, partitions=partitions)]
        )
        response = self._call_any(request, DescribeQuorumResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code, response.error_message)
        rows = [row for topic in response.topics if topic.topic_name == METADATA_TOPIC for row in topic.partitions]
        if len(rows) != 1:
            raise error_for(UNKNOWN_SERVER_ERROR, f"The response has {len(rows)} partitions of {METADATA_TOPIC}.")
        check(rows[0].error_code, rows[0].error_message)
        return QuorumInfo(
            rows[0].leader_id,
            rows[0].leader_epoch,
            rows[0].high_watermark,
            [_replica(item) for item in rows[0].current_voters],
            [_replica(item) for item in rows[0].observers],
            {
                node.node_id: [RaftEndpoint(item.name, item.host, item.port) for item in node.listeners]
                for node in response.nodes
            },
        )

    def add_raft_voter(
        self,
        voter_id: int,
        directory_id: bytes,
        endpoints: Iterable[RaftEndpoint],
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Makes a controller that follows the quorum one of its voters (KIP-853)."""
        from moldau.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
        from moldau.protocol.messages.add_raft_voter_response import AddRaftVoterResponse

        deadline = self._start(timeout_ms)
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self._server_timeout_ms(deadline),
            voter_id=checked_int(voter_id, "a voter's id"),
            voter_directory_id=checked_uuid(directory_id, "a voter's directory"),
            listeners=[Listener(name=item.listener, host=item.host, port=item.port) for item in _checked(endpoints)],
        )
        response = self._call_any(request, AddRaftVoterResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code, response.error_message)

    def remove_raft_voter(
        self, voter_id: int, directory_id: bytes, cluster_id: str | None = None, timeout_ms: int | None = None
    ) -> None:
        """Takes a voter's vote away; its node goes on as an observer."""
        from moldau.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
        from moldau.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse

        deadline = self._start(timeout_ms)
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id,
            voter_id=checked_int(voter_id, "a voter's id"),
            voter_directory_id=checked_uuid(directory_id, "a voter's directory"),
        )
        response = self._call_any(request, RemoveRaftVoterResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code, response.error_message)

    def update_raft_voter(
        self,
        voter_id: int,
        directory_id: bytes,
        endpoints: Iterable[RaftEndpoint],
        leader_epoch: int,
        kraft_versions: tuple[int, int] = (0, 1),
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Tells the quorum's leader a voter's endpoints and kraft versions, as a voter does by itself at its start.

        Only controllers take this request: the client must have been given bootstrap.controllers.
        """
        from moldau.protocol.messages import update_raft_voter_request as request_messages
        from moldau.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse

        deadline = self._start(timeout_ms)
        lowest, highest = kraft_versions
        request = request_messages.UpdateRaftVoterRequest(
            cluster_id=cluster_id,
            current_leader_epoch=checked_int(leader_epoch, "the leader's epoch"),
            voter_id=checked_int(voter_id, "a voter's id"),
            voter_directory_id=checked_uuid(directory_id, "a voter's directory"),
            listeners=[
                request_messages.Listener(name=item.listener, host=item.host, port=item.port)
                for item in _checked(endpoints)
            ],
            kraft_version_feature=request_messages.KRaftVersionFeature(
                min_supported_version=checked_int(lowest, "the lowest kraft version", 0, 0x7FFF),
                max_supported_version=checked_int(highest, "the highest kraft version", lowest, 0x7FFF),
            ),
        )
        response = self._call_any(request, UpdateRaftVoterResponse, deadline, lambda reply: [reply.error_code])
        check(response.error_code)


def _checked(endpoints: Iterable[RaftEndpoint]) -> list[RaftEndpoint]:
    found = list(endpoints)
    if not found:
        raise ValueError("A voter needs at least one endpoint.")
    for item in found:
        checked_name(item.listener, "listeners")
        checked_name(item.host, "hosts")
        checked_int(item.port, "a port", 1, 65535)
    return found


def _replica(row: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        row.replica_id,
        row.replica_directory_id,
        row.log_end_offset,
        None if row.last_fetch_timestamp < 0 else row.last_fetch_timestamp,
        None if row.last_caught_up_timestamp < 0 else row.last_caught_up_timestamp,
    )
