"""The assignor `uniform` where members want different topics: partitions move until no move helps.

In Kafka: UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from heapq import heapify, heapreplace

from moldau.coordinator.group.assignors.spec import GroupSpec, Targets


class Balancer:
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
