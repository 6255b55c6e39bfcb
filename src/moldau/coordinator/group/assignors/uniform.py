"""The assignor `uniform`: everybody gets as many partitions as everybody else, and keeps what it had if that allows.

Balance comes first: where all members want the same topics, no two of them differ by more than one partition. Otherwise
no partition could be moved to a member that has at least two less. Then stickiness: as few partitions move as balance
allows. Kafka does this in UniformHomogeneousAssignmentBuilder and UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heapreplace
from typing import Final

from moldau.coordinator.group.assignors.spec import GroupSpec, Targets

NAME: Final = "uniform"


def assign(spec: GroupSpec) -> Targets:
    if not spec.members:
        return {}
    return _assign_alike(spec) if spec.homogeneous else _Balancer(spec).run()


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


# Members want different topics


class _Balancer:
    """Members are numbers here, in the order of the spec."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._members = list(spec.members)
        self._sizes = [0] * len(self._members)
        self._owners: dict[bytes, list[int]] = {}
        self._before: dict[bytes, dict[int, int]] = {}
        self._subscribers: dict[bytes, list[int]] = {topic_id: [] for topic_id in spec.partition_counts}
        for number, member in enumerate(spec.members.values()):
            for topic_id in member.topics:
                self._subscribers[topic_id].append(number)
        # First the topics whose partitions have the fewest places to go to.
        self._topics = sorted(
            (topic_id for topic_id, members in self._subscribers.items() if members),
            key=lambda topic_id: (
                -spec.partition_counts[topic_id] / len(self._subscribers[topic_id]),
                len(self._subscribers[topic_id]),
            ),
        )

    def run(self) -> Targets:
        self._keep()
        for topic_id in self._topics:
            self._assign_free(topic_id)
        self._balance()
        return self._targets()

    def _keep(self) -> None:
        for topic_id in self._topics:
            self._owners[topic_id] = [-1] * self._spec.partition_counts[topic_id]
            self._before[topic_id] = {}
        for number, member in enumerate(self._spec.members.values()):
            for topic_id, partitions in member.target.items():
                if topic_id not in member.topics:
                    continue
                owners = self._owners[topic_id]
                for index in partitions:
                    if index < len(owners) and owners[index] < 0:
                        owners[index] = number
                        self._before[topic_id][index] = number
                        self._sizes[number] += 1

    def _assign_free(self, topic_id: bytes) -> None:
        """Each partition without an owner to the subscriber that has the least."""
        owners = self._owners[topic_id]
        free = [index for index, owner in enumerate(owners) if owner < 0]
        if not free:
            return
        sizes = self._sizes
        heap = [(sizes[number], number) for number in self._subscribers[topic_id]]
        heapify(heap)
        for index in free:
            size, number = heap[0]
            owners[index] = number
            sizes[number] = size + 1
            heapreplace(heap, (size + 1, number))

    def _balance(self) -> None:
        """Moves partitions until no move helps. Every move makes the sum of squares smaller, so this ends."""
        movable = [topic_id for topic_id in self._topics if len(self._subscribers[topic_id]) > 1]
        moved = True
        while moved:
            moved = False
            for topic_id in movable:
                if self._balance_topic(topic_id):
                    moved = True

    def _balance_topic(self, topic_id: bytes) -> bool:
        sizes = self._sizes
        subscribers = self._subscribers[topic_id]
        moved = False
        owned = self._by_owner(topic_id)
        while owned:
            giver = max(owned, key=lambda number: (sizes[number], -number))
            taker = min(subscribers, key=lambda number: (sizes[number], number))
            if sizes[giver] <= sizes[taker] + 1:
                break
            index = owned[giver].pop()
            if not owned[giver]:
                del owned[giver]
            owned.setdefault(taker, []).append(index)
            self._owners[topic_id][index] = taker
            sizes[giver] -= 1
            sizes[taker] += 1
            moved = True
        return moved

    def _by_owner(self, topic_id: bytes) -> dict[int, list[int]]:
        """The partitions of each owner; those it had before come first and are moved last."""
        before = self._before[topic_id]
        owned: dict[int, list[int]] = {}
        for index, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(index)
        for owner, indexes in owned.items():
            indexes.sort(key=lambda index, owner=owner: (before.get(index) != owner, index))  # type: ignore[misc]
        return owned

    def _targets(self) -> Targets:
        sets: list[dict[bytes, set[int]]] = [{} for _ in self._members]
        for topic_id, owners in self._owners.items():
            for index, owner in enumerate(owners):
                sets[owner].setdefault(topic_id, set()).add(index)
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in sets[number].items()}
            for number, member_id in enumerate(self._members)
        }
