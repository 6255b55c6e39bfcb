"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the classic group protocol, in which members share out partitions.

JoinGroup 0-9: 1 adds the rebalance timeout, 4 asks for a member id first (KIP-394), 5 adds static members (KIP-345),
7 the protocol type (KIP-559), 8 a reason (KIP-800), 9 tells a leader that it need not assign (KIP-814). LeaveGroup 3
takes many members at once.
"""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import check_group, seen_by_asker
from moldau.api.call import Call
from moldau.api.coordinators import as_client_sees, check_group_id, responder, run_group
from moldau.coordinator.group.classic_join import Joining
from moldau.coordinator.group.classic_responses import join_error, sync_error
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.shard import Done
from moldau.node.coordinators import GroupVerb
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.join_group_response import JoinGroupResponse
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.primitives import Message
from moldau.security.rights import READ

JOIN_NULL_PROTOCOL_VERSION: Final = 7
SYNC_PROTOCOL_VERSION: Final = 5
LEAVE_MANY_VERSION: Final = 3


def client_host(peer: str) -> str:
    """The address of the client as Java writes it."""
    return "/" + peer.rpartition(":")[0].strip("[]")


def run(call: Call, group_id: str, verb: GroupVerb, done: Done) -> None:
    try:
        check_group(call, READ, group_id)
        check_group_id(group_id)
    except KafkaError as error:
        done(error)
        return
    run_group(call, group_id, verb, done)


# JoinGroup


def handle_join_group(call: Call, request: JoinGroupRequest) -> None:
    def done(result: Message | KafkaError) -> None:
        """Called when the generation begins, which may be minutes from now."""
        if call.reply.done:
            return
        if isinstance(result, KafkaError):
            # A member id of whoever may not read the group is not repeated.
            member_id = "" if result.code == errors.GROUP_AUTHORIZATION_FAILED else request.member_id
            result = join_error(as_client_sees(result).code, member_id)
        if isinstance(result, JoinGroupResponse) and call.version < JOIN_NULL_PROTOCOL_VERSION:
            result.protocol_name = result.protocol_name or ""
        call.respond(result)

    joining = Joining(request, call.version, call.client_id or "", client_host(call.context.peer), done)

    def decide(machine: GroupMachine) -> Outcome:
        return seen_by_asker(call, machine, lambda: machine.classic.join(joining, call.now_ms))

    run(call, request.group_id, decide, done)


# SyncGroup


def handle_sync_group(call: Call, request: SyncGroupRequest) -> None:
    def on_error(error: KafkaError) -> Message:
        # A coordinator that loads has lost the rebalance: the member joins again. Clients do not expect that it loads.
        is_loading = error.code == errors.COORDINATOR_LOAD_IN_PROGRESS
        return sync_error(errors.REBALANCE_IN_PROGRESS if is_loading else error.code)

    if call.version >= SYNC_PROTOCOL_VERSION and (request.protocol_type is None or request.protocol_name is None):
        call.respond(sync_error(errors.INCONSISTENT_GROUP_PROTOCOL))
        return
    done = responder(call, on_error)

    def decide(machine: GroupMachine) -> Outcome:
        return machine.classic.sync(request, done, call.now_ms)

    run(call, request.group_id, decide, done)


# Heartbeat


def handle_heartbeat(call: Call, request: HeartbeatRequest) -> None:
    def on_error(error: KafkaError) -> Message:
        # A coordinator that loads knows nothing that could be wrong with the member.
        code = errors.NONE if error.code == errors.COORDINATOR_LOAD_IN_PROGRESS else error.code
        return HeartbeatResponse(error_code=code)

    def decide(machine: GroupMachine) -> Outcome:
        return machine.classic.heartbeat(request, call.now_ms)

    run(call, request.group_id, decide, responder(call, on_error))


# LeaveGroup


def handle_leave_group(call: Call, request: LeaveGroupRequest) -> None:
    takes_many = call.version >= LEAVE_MANY_VERSION
    if not takes_many:
        request.members = [MemberIdentity(request.member_id)]

    def on_error(error: KafkaError) -> Message:
        if takes_many and error.code == errors.UNKNOWN_MEMBER_ID:
            # There is no such group, so it has none of them.
            rows = [MemberResponse(one.member_id, one.group_instance_id, error.code) for one in request.members]
            return LeaveGroupResponse(members=rows)
        return LeaveGroupResponse(error_code=error.code)

    respond = responder(call, on_error)

    def done(result: Message | KafkaError) -> None:
        if isinstance(result, LeaveGroupResponse) and not takes_many:
            result = LeaveGroupResponse(error_code=result.error_code or result.members[0].error_code)
        respond(result)

    def decide(machine: GroupMachine) -> Outcome:
        return machine.classic.leave(request, call.now_ms)

    run(call, request.group_id, decide, done)
