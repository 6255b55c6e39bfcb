"""The assignor `uniform`: everybody gets as many partitions as everybody else, and keeps what it had if that allows.

Balance comes first: where all members want the same topics, no two of them differ by more than one partition. Otherwise
no partition could be moved to a member that has at least two less. Then stickiness: as few partitions move as balance
allows. Kafka does this in UniformHomogeneousAssignmentBuilder and UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.coordinator.group.assignors.balancer import Balancer
from moldau.coordinator.group.assignors.spec import GroupSpec, Targets

NAME: Final = "uniform"


def assign(spec: GroupSpec) -> Targets:
    if not spec.members:
        return {}
    return _assign_alike(spec) if spec.homogeneous else Balancer(spec).run()


# All members want the same topics


def _assign_alike(spec: GroupSpec) -> Targets:
    topics = next(iter(spec.members.values())).topics
    kept = {member_id: _still_wanted(member.target, topics) for member_id, member in spec.members.items()}
    sizes = {member_id: _size(target) for member_id, target in kept.items()}
    quotas = _quotas(sizes, sum(spec.partition_counts[topic_id] for topic_id in topics))
    for member_id, quota in quotas.items():
        if sizes[member_id] > quota:
            kept[member_id] = _first_of(kept[member_id], quota)
            sizes[member_id] = quota
    free = _free_partitions(spec.partition_counts, topics, kept)
    position = 0
    for member_id, quota in quotas.items():
        missing = quota - sizes[member_id]
        if missing > 0:
            kept[member_id] = _added(kept[member_id], free[position : position + missing])
            position += missing
    return kept


def _quotas(sizes: dict[str, int], partitions: int) -> dict[str, int]:
    """An equal share for each member; what cannot be shared goes to those who have more already, then to the first."""
    least, extra = divmod(partitions, len(sizes))
    quotas = dict.fromkeys(sizes, least)
    for has_more in (True, False):
        for member_id, size in sizes.items():
            if extra == 0:
                return quotas
            if (size > least) == has_more:
                quotas[member_id] = least + 1
                extra -= 1
    return quotas


def _still_wanted(target: Mapping[bytes, frozenset[int]], topics: frozenset[bytes]) -> dict[bytes, frozenset[int]]:
    return {topic_id: partitions for topic_id, partitions in target.items() if topic_id in topics}


def _size(target: Mapping[bytes, frozenset[int]]) -> int:
    return sum(map(len, target.values()))


def _first_of(target: dict[bytes, frozenset[int]], quota: int) -> dict[bytes, frozenset[int]]:
    result: dict[bytes, frozenset[int]] = {}
    for topic_id, partitions in target.items():
        if quota <= 0:
            break
        if len(partitions) > quota:
            partitions = frozenset(sorted(partitions)[:quota])
        result[topic_id] = partitions
        quota -= len(partitions)
    return result


def _free_partitions(
    counts: Mapping[bytes, int], topics: frozenset[bytes], kept: Mapping[str, Mapping[bytes, frozenset[int]]]
) -> list[tuple[bytes, int]]:
    taken: dict[bytes, set[int]] = {}
    for target in kept.values():
        for topic_id, partitions in target.items():
            taken.setdefault(topic_id, set()).update(partitions)
    nothing: set[int] = set()
    free: list[tuple[bytes, int]] = []
    # In the order of the spec: a set of ids has an order of its own in every process.
    for topic_id, count in counts.items():
        if topic_id in topics:
            used = taken.get(topic_id, nothing)
            free += [(topic_id, index) for index in range(count) if index not in used]
    return free


def _added(target: dict[bytes, frozenset[int]], more: list[tuple[bytes, int]]) -> dict[bytes, frozenset[int]]:
    grown: dict[bytes, set[int]] = {}
    for topic_id, index in more:
        grown.setdefault(topic_id, set()).add(index)
    result = dict(target)
    for topic_id, indexes in grown.items():
        result[topic_id] = result.get(topic_id, frozenset()) | indexes
    return result
