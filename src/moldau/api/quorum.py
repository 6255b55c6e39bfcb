"""The metadata quorum: DescribeQuorum 0-2, and on the controller listener what its replicas say to each other."""

from __future__ import annotations

from moldau.api.call import Call
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from moldau.protocol.primitives import Message
from moldau.raft.wire import without_endpoints


def handle_describe_quorum(call: Call, request: DescribeQuorumRequest) -> None:
    call.respond(call.node.metadata.describe_quorum(request, call.version, call.now_ms))


def handle_raft(call: Call, request: Message) -> None:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot of other replicas of the metadata log."""

    def respond(response: Message) -> None:
        call.respond(without_endpoints(response, call.api_key, call.version))

    call.node.metadata.handle_raft_request(call.api_key, request, call.now_ms, respond)
