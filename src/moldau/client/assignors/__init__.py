"""Assignors of the classic protocol: which member of a group reads which partitions.

`find_assignors` turns partition.assignment.strategy into assignors: Kafka's class names, their short names, or the
user's own classes and objects.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client.assignors.base import (
    Assignor,
    GroupMetadata,
    MemberAssignment,
    MemberSubscription,
    PartitionReplicas,
    RebalanceProtocol,
)
from moldau.client.errors import ConfigError

__all__ = [
    "Assignor",
    "GroupMetadata",
    "MemberAssignment",
    "MemberSubscription",
    "PartitionReplicas",
    "RebalanceProtocol",
    "find_assignors",
]

_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."

# Kafka's class -> the module and class here.
_KNOWN = {
    "RangeAssignor": ("range", "RangeAssignor"),
    "RoundRobinAssignor": ("round_robin", "RoundRobinAssignor"),
    "StickyAssignor": ("sticky", "StickyAssignor"),
    "CooperativeStickyAssignor": ("cooperative_sticky", "CooperativeStickyAssignor"),
}
_SHORT = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def find_assignors(strategies: str | Iterable[object]) -> list[Assignor]:
    """The assignors of partition.assignment.strategy, in its order: the first that all members have is used."""
    items: list[object] = []
    for item in strategies.split(",") if isinstance(strategies, str) else strategies:
        items.append(item.strip() if isinstance(item, str) else item)
    found = [_find(item) for item in items if item != ""]
    if not found:
        raise ConfigError("partition.assignment.strategy is empty: name at least one assignor.")
    names = [assignor.name for assignor in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"partition.assignment.strategy has the assignor {name} more than once.")
    return found


def _find(item: object) -> Assignor:
    if isinstance(item, Assignor):
        return item
    if isinstance(item, type) and issubclass(item, Assignor):
        return item()
    text = str(item)
    known = _KNOWN.get(_SHORT.get(text, text.removeprefix(_JAVA_PACKAGE)))
    if not isinstance(item, str) or known is None:
        raise ConfigError(
            f"Invalid value {text} for partition.assignment.strategy: it is not one of {', '.join(_SHORT)}, and no"
            " subclass of moldau.client.assignors.Assignor."
        )
    import importlib

    made = getattr(importlib.import_module(f"{__name__}.{known[0]}"), known[1])()
    assert isinstance(made, Assignor)
    return made
