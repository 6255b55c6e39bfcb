"""ListGroups, DescribeGroups, DeleteGroups: the groups that this broker coordinates, for administrators.

ListGroups versions 0-5: 4 filters by state (KIP-518), 5 by type (KIP-848). DescribeGroups versions 0-6 knows classic
groups: 3 adds the authorized operations, 4 static members, 6 says that a group does not exist. DeleteGroups versions
0-2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moldau.api.authorize import authorized_operations, may, may_cluster
from moldau.api.call import Call
from moldau.api.coordinators import Gathering, as_client_sees, run_group
from moldau.coordinator.group.group import SHARE
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.share import StateDeletion
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.shard import FAILED, Done
from moldau.node.coordinators import GroupVerb
from moldau.node.share.groups import StateResults
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.list_groups_response import ListGroupsResponse
from moldau.protocol.primitives import Message
from moldau.security.rights import DELETE, DESCRIBE, GROUP

Responses = list[tuple[list[str], Message | KafkaError]]
"""What each shard said about the groups that it was asked for."""


def split_allowed(call: Call, operation: int, group_ids: list[str]) -> tuple[list[str], list[str]]:
    """Those that who asks may do this to, and the others."""
    if call.node.rights is None:
        return group_ids, []
    denied = {group_id for group_id in dict.fromkeys(group_ids) if not may(call, operation, GROUP, group_id)}
    return [one for one in group_ids if one not in denied], [one for one in group_ids if one in denied]


def ask_shards(
    call: Call, group_ids: list[str], verb_of: Callable[[list[str]], GroupVerb], finish: Callable[[Responses], None]
) -> None:
    """Runs a verb on every shard that has one of these groups; `finish` gets all responses, in the order of the
    names."""
    groups = call.node.coordinators.groups
    shards: dict[int, list[str]] = {}
    for group_id in group_ids:
        shards.setdefault(groups.partition_for(group_id), []).append(group_id)

    def on_all(results: list[Message | KafkaError]) -> None:
        if not call.reply.done:
            finish(list(zip(shards.values(), results, strict=True)))

    gathering = Gathering(len(shards), on_all)
    for number, (index, named) in enumerate(shards.items()):
        groups.run_at(index, verb_of(named), gathering.slot(number), call.now_ms)
    gathering.begin()


# ListGroups


def handle_list_groups(call: Call, request: ListGroupsRequest) -> None:
    runtime = call.node.coordinators.groups.runtime
    indexes = [index for index, shard in runtime.shards.items() if shard.state != FAILED]

    def decide(machine: GroupMachine) -> Outcome:
        return machine.admin.list_groups(request.states_filter, request.types_filter)

    def finish(results: list[Message | KafkaError]) -> None:
        if not call.reply.done:
            response = joined_list(results)
            if call.node.rights is not None and not may_cluster(call, DESCRIBE, is_filter=True):
                response.groups = [
                    one for one in response.groups if may(call, DESCRIBE, GROUP, one.group_id, is_filter=True)
                ]
            call.respond(response)

    gathering = Gathering(len(indexes), finish)
    for number, index in enumerate(indexes):
        call.node.coordinators.groups.run_at(index, decide, gathering.slot(number), call.now_ms)
    gathering.begin()


def joined_list(results: list[Message | KafkaError]) -> ListGroupsResponse:
    """All groups, or the first error: half a list would look like a whole one."""
    response = ListGroupsResponse()
    for result in results:
        if isinstance(result, KafkaError):
            code = as_client_sees(result).code
            if code != errors.NOT_COORDINATOR:
                return ListGroupsResponse(error_code=code)
        else:
            assert isinstance(result, ListGroupsResponse)
            response.groups += result.groups
    return response


# DescribeGroups


def handle_describe_groups(call: Call, request: DescribeGroupsRequest) -> None:
    allowed, denied = split_allowed(call, DESCRIBE, request.groups)

    def finish(responses: Responses) -> None:
        response = DescribeGroupsResponse()
        response.groups += [DescribedGroup(errors.GROUP_AUTHORIZATION_FAILED, None, group_id) for group_id in denied]
        for group_ids, result in responses:
            response.groups += described(group_ids, result)
        for group in response.groups:
            if request.include_authorized_operations and group.error_code == 0:
                group.authorized_operations = authorized_operations(call, GROUP, group.group_id)
        call.respond(response)

    ask_shards(call, allowed, lambda group_ids: DescribeVerb(group_ids, call.version).decide, finish)


class DescribeVerb:
    def __init__(self, group_ids: list[str], version: int) -> None:
        self._group_ids = group_ids
        self._version = version

    def decide(self, machine: GroupMachine) -> Outcome:
        return machine.admin.describe(self._group_ids, self._version)


def described(group_ids: list[str], result: Message | KafkaError) -> list[DescribedGroup]:
    if isinstance(result, KafkaError):
        code = as_client_sees(result).code
        return [DescribedGroup(code, None, group_id) for group_id in group_ids]
    assert isinstance(result, DescribeGroupsResponse)
    return result.groups


# DeleteGroups


def handle_delete_groups(call: Call, request: DeleteGroupsRequest) -> None:
    group_ids, denied = split_allowed(call, DELETE, list(dict.fromkeys(request.groups_names)))

    def delete(results: list[Message | KafkaError]) -> None:
        """What share coordinators could not forget keeps its group."""
        failed = dict.fromkeys(denied, errors.GROUP_AUTHORIZATION_FAILED)
        for group_id, result in zip(group_ids, results, strict=True):
            if isinstance(result, KafkaError):
                failed[group_id] = as_client_sees(result).code

        def finish(responses: Responses) -> None:
            response = DeleteGroupsResponse(results=[DeletableGroupResult(*one) for one in failed.items()])
            for named, result in responses:
                response.results += deleted(named, result)
            call.respond(response)

        left = [group_id for group_id in group_ids if group_id not in failed]
        ask_shards(call, left, lambda named: DeleteVerb(named).decide, finish)

    gathering = Gathering(len(group_ids), delete)
    for number, group_id in enumerate(group_ids):
        ShareStateDeletion(call, group_id, gathering.slot(number)).begin()
    gathering.begin()


class ShareStateDeletion:
    """Before a share group goes, the state of its partitions does; other groups have none."""

    def __init__(self, call: Call, group_id: str, done: Done) -> None:
        self._call = call
        self._group_id = group_id
        self._done = done
        self._deletion: StateDeletion | None = None

    def begin(self) -> None:
        run_group(self._call, self._group_id, self._decide, self._on_marked)

    def _decide(self, machine: GroupMachine) -> Outcome:
        group = machine.state.find_group(self._group_id)
        if group is None or group.kind != SHARE or not group.is_empty():
            return Outcome(response=DeleteGroupsResponse())
        outcome, self._deletion = machine.share.begin_delete(self._group_id, None)
        outcome.response = DeleteGroupsResponse()
        return outcome

    def _on_marked(self, result: Message | KafkaError) -> None:
        deletion = self._deletion
        if isinstance(result, KafkaError) or deletion is None or not deletion.topics:
            self._done(result)
            return
        on_deleted = partial(self._on_deleted, deletion)
        self._call.node.share_groups.delete(self._group_id, deletion.topics, on_deleted, self._call.now_ms)

    def _on_deleted(self, deletion: StateDeletion, results: StateResults, now_ms: int) -> None:
        failures = [result for result in results.values() if isinstance(result, KafkaError)]

        def decide(machine: GroupMachine) -> Outcome:
            # The group goes next; if somebody has joined it meanwhile, its topics may be initialised again.
            outcome = machine.share.on_deleted(deletion, set())
            outcome.response = DeleteGroupsResponse()
            return outcome

        def on_result(result: Message | KafkaError) -> None:
            self._done(failures[0] if failures else result)

        run_group(self._call, self._group_id, decide, on_result)


class DeleteVerb:
    def __init__(self, group_ids: list[str]) -> None:
        self._group_ids = group_ids

    def decide(self, machine: GroupMachine) -> Outcome:
        return machine.admin.delete(self._group_ids)


def deleted(group_ids: list[str], result: Message | KafkaError) -> list[DeletableGroupResult]:
    if isinstance(result, KafkaError):
        code = as_client_sees(result).code
        return [DeletableGroupResult(group_id, code) for group_id in group_ids]
    assert isinstance(result, DeleteGroupsResponse)
    return result.results
