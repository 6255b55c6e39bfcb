"""What handlers ask about rights; without an authorizer everything is allowed and nothing is looked at.

`may` answers, `check_…` raises what the client is told. The order of the checks is each handler's own: what a client
names is checked before it is looked for, so that what may not be seen looks like what does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.api.call import Call
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.security.rights import (
    ALL_OPERATIONS,
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
)


def may(call: Call, operation: int, resource_type: int, name: str, count: int = 1, is_filter: bool = False) -> bool:
    """Whether who asks may do this. A filter leaves something out of a response, or is followed by another try."""
    rights = call.node.rights
    if rights is None:
        return True
    return rights.may(
        call.context,
        operation,
        resource_type,
        name,
        api_key=call.api_key,
        count=count,
        is_filter=is_filter,
        now_ms=call.now_ms,
    )


def may_cluster(call: Call, operation: int, is_filter: bool = False) -> bool:
    return may(call, operation, CLUSTER, CLUSTER_NAME, 1, is_filter)


def may_cluster_now(call: Call, operation: int) -> bool:
    """The same before the controller has its ACLs: who cannot be decided about may not. Nobody is told of it."""
    try:
        return may_cluster(call, operation, is_filter=True)
    except KafkaError:
        return False


def may_any(call: Call, operation: int, resource_type: int) -> bool:
    """Whether there is some resource of a type that who asks may do this to."""
    rights = call.node.rights
    return rights is None or rights.may_any(call.context, operation, resource_type, call.api_key, call.now_ms)


def check_cluster(call: Call, operation: int) -> None:
    if not may(call, operation, CLUSTER, CLUSTER_NAME):
        raise KafkaError(errors.CLUSTER_AUTHORIZATION_FAILED, "The request is not authorized for this cluster.")


def check_topic(call: Call, operation: int, name: str, count: int = 1) -> None:
    if not may(call, operation, TOPIC, name, count):
        raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)


def check_group(call: Call, operation: int, group_id: str) -> None:
    if not may(call, operation, GROUP, group_id):
        raise KafkaError(errors.GROUP_AUTHORIZATION_FAILED)


def check_transactional_id(call: Call, operation: int, transactional_id: str) -> None:
    if not may(call, operation, TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def denied_topics(call: Call, operation: int, names: Iterable[str], is_filter: bool = False) -> set[str]:
    """Those of the names that who asks may not do this to, each looked at once."""
    if call.node.rights is None:
        return set()
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return {name for name, count in counts.items() if not may(call, operation, TOPIC, name, count, is_filter)}


def authorized_operations(call: Call, resource_type: int, name: str) -> int:
    """The bits of all operations on the resource that who asks may do."""
    rights = call.node.rights
    if rights is None:
        return ALL_OPERATIONS[resource_type]
    return rights.operations(call.context, resource_type, name)


def cluster_operations(call: Call) -> int:
    rights = call.node.rights
    return ALL_OPERATIONS[CLUSTER] if rights is None else rights.cluster_operations(call.context)


class Asker:
    """Whoever sent a request, for code that asks later what they may see."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def may_see(self, topic: str) -> bool:
        return may(self._call, DESCRIBE, TOPIC, topic, 1, True)


def seen_by_asker(call: Call, machine: GroupMachine, decide: Callable[[], Outcome]) -> Outcome:
    """Decides; a search for topics by regular expressions that begins with it finds what who asks may describe."""
    if call.node.rights is None:
        return decide()
    regexes = machine.consumer.steps.regexes
    regexes.may_see = Asker(call).may_see
    try:
        return decide()
    finally:
        regexes.may_see = None
