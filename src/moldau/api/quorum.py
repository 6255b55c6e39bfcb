"""The metadata quorum: DescribeQuorum 0-2, changes of its voters, and what its replicas say to each other.

AddRaftVoter 0-1, RemoveRaftVoter 0 and, between controllers only, UpdateRaftVoter 0 (KIP-853): decided by the leader.
Vote 0-2, BeginQuorumEpoch 0-1, EndQuorumEpoch 0-1, Fetch and FetchSnapshot 0-1 of the metadata log: controllers only.
A broker that does not lead the quorum itself passes on what its clients ask.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.api.authorize import check_cluster
from moldau.api.call import Call
from moldau.api.forward import note_failure, submit
from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from moldau.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from moldau.protocol.primitives import Message
from moldau.raft.wire import error_to_wire, without_endpoints
from moldau.security.rights import ALTER, CLUSTER_ACTION, DESCRIBE


def handle_describe_quorum(call: Call, request: DescribeQuorumRequest) -> None:
    metadata = call.node.metadata

    def describe(controller: Controller | None = None) -> Result:
        return Result([], metadata.describe_quorum(request, call.version, call.now_ms))

    def failed(error: KafkaError) -> DescribeQuorumResponse:
        return DescribeQuorumResponse(error_code=error.code, error_message=error.message)

    if not _is_allowed(call, DESCRIBE, failed):
        return
    if _is_served_here(call):
        if not metadata.raft.is_leader:
            note_failure(call, _not_leader())
        call.respond(describe().response)
    else:
        submit(call, describe, failed, DESCRIBE)


def handle_change_of_voters(call: Call, request: Message) -> None:
    """AddRaftVoter and RemoveRaftVoter."""

    def failed(error: KafkaError) -> Message:
        return error_to_wire(call.api_key, error.code, error.message)

    def elsewhere(controller: Controller) -> Result:
        # This node began to lead while the request was on its way: the next attempt finds another leader or none.
        raise _not_leader()

    if not _is_allowed(call, ALTER, failed):
        return
    if _is_served_here(call):
        _ask_raft(call, request)
    else:
        submit(call, elsewhere, failed, ALTER)


def handle_raft(call: Call, request: Message) -> None:
    """What a replica of the metadata log asks another one."""

    def failed(error: KafkaError) -> Message:
        return error_to_wire(call.api_key, error.code, error.message)

    if _is_allowed(call, CLUSTER_ACTION, failed):
        _ask_raft(call, request)


def _is_allowed(call: Call, operation: int, failed: Callable[[KafkaError], Message]) -> bool:
    """Asked where the request is answered; a broker that passes it on leaves that to the leader."""
    if call.node.rights is not None and _is_served_here(call):
        try:
            check_cluster(call, operation)
        except KafkaError as error:
            call.respond(failed(error))
            return False
    return True


def _ask_raft(call: Call, request: Message) -> None:
    def respond(response: Message) -> None:
        if getattr(response, "error_code", errors.NONE) == errors.NOT_LEADER_OR_FOLLOWER:
            note_failure(call, _not_leader())
        call.respond(without_endpoints(response, call.api_key, call.version))

    call.node.metadata.handle_raft_request(call.api_key, request, call.context.listener, call.now_ms, respond)


def _is_served_here(call: Call) -> bool:
    return call.context.is_controller_listener or call.node.metadata.raft.is_leader


def _not_leader() -> KafkaError:
    return KafkaError(errors.NOT_CONTROLLER, "This node does not lead the quorum.")
