"""What describing groups of one kind has in common with describing those of another (KIP-848, KIP-932, KIP-1071).

Each kind has a message of its own, with a group of its own in it; the way is one: the feature, rights on the group, the
shards that have the groups, topics that whoever asks may not see.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from moldau.api.authorize import authorized_operations, denied_topics
from moldau.api.call import Call
from moldau.api.coordinators import as_client_sees
from moldau.api.group_admin import Responses, ask_shards, split_allowed
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.security.rights import DESCRIBE, GROUP


class DescribedGroup(Protocol):
    """What every kind of described group has."""

    error_code: int
    group_id: str
    authorized_operations: int


Described = TypeVar("Described", bound=DescribedGroup)


class GroupKind(Protocol[Described]):
    """What is different about a kind of group."""

    def is_enabled(self, call: Call) -> bool:
        """The broker offers the kind, and the cluster's feature level allows it."""

    def describe(self, machine: GroupMachine, group_ids: list[str]) -> list[Described]:
        """Asks a shard's machine."""

    def failed(self, code: int, message: str | None, group_id: str) -> Described:
        """A group of which there is only an error to tell."""

    def topics_of(self, group: Described) -> set[str]:
        """All topics that the description names."""

    def hidden_topics_message(self) -> str:
        """Told to who may not see one of these topics."""

    def response(self, groups: list[Described]) -> Message: ...

    def groups_of(self, response: Message) -> list[Described]: ...


def describe_groups(
    call: Call, kind: GroupKind[Described], group_ids: list[str], include_authorized_operations: bool
) -> None:
    """Responds with a row for each group; those that are refused come first."""
    if not kind.is_enabled(call):
        call.respond(kind.response([kind.failed(errors.UNSUPPORTED_VERSION, None, one) for one in group_ids]))
        return
    allowed, denied = split_allowed(call, DESCRIBE, group_ids)
    named = [group_id for group_id in allowed if group_id]
    refused = [kind.failed(errors.GROUP_AUTHORIZATION_FAILED, None, group_id) for group_id in denied]
    refused += [kind.failed(errors.INVALID_GROUP_ID, None, "")] * (len(allowed) - len(named))

    def finish(responses: Responses) -> None:
        groups = list(refused)
        for of_shard, result in responses:
            groups += _described(kind, of_shard, result)
        if call.node.rights is not None:
            groups = [_without_hidden_topics(call, kind, group) for group in groups]
        for group in groups:
            if include_authorized_operations and group.error_code == errors.NONE:
                group.authorized_operations = authorized_operations(call, GROUP, group.group_id)
        call.respond(kind.response(groups))

    ask_shards(call, named, lambda of_shard: _Verb(kind, of_shard).decide, finish)


class _Verb(Generic[Described]):
    def __init__(self, kind: GroupKind[Described], group_ids: list[str]) -> None:
        self._kind = kind
        self._group_ids = group_ids

    def decide(self, machine: GroupMachine) -> Outcome:
        return Outcome(response=self._kind.response(self._kind.describe(machine, self._group_ids)))


def _described(kind: GroupKind[Described], group_ids: list[str], result: Message | KafkaError) -> list[Described]:
    if isinstance(result, KafkaError):
        code = as_client_sees(result).code
        return [kind.failed(code, None, group_id) for group_id in group_ids]
    return kind.groups_of(result)


def _without_hidden_topics(call: Call, kind: GroupKind[Described], group: Described) -> Described:
    """Who may not see all topics of a group is told nothing but that."""
    if not denied_topics(call, DESCRIBE, kind.topics_of(group)):
        return group
    return kind.failed(errors.TOPIC_AUTHORIZATION_FAILED, kind.hidden_topics_message(), group.group_id)
