"""The range assignor: each topic's partitions in order, cut into one piece per member; in its own rack where possible.

Topics with the same members and as many partitions are cut alike, so that a member has the same numbers of each
(co-partitioning); where racks matter (KIP-881) that still holds, and comes before the rack of a single topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.client.assignors.base import (
    Assignor,
    GroupMetadata,
    MemberAssignment,
    MemberSubscription,
    PartitionReplicas,
    members_by_topic,
    racks_matter,
)
from moldau.client.results import TopicPartition


class RangeAssignor(Assignor):
    """Kafka's RangeAssignor."""

    name = "range"

    def assign(
        self, metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        members = members_by_topic(subscriptions)
        racks = {member: row.rack for member, row in subscriptions.items() if row.rack}
        topics = [_Topic(name, rows, members.get(name, []), racks) for name, rows in metadata.items() if rows]
        use_racks = any(topic.racks_matter for topic in topics)
        if use_racks:
            _assign_within_racks(topics)
        for topic in topics:
            topic.assign_ranges(within_rack=False)
        result: dict[str, MemberAssignment] = {}
        for member in subscriptions:
            partitions = [item for topic in topics for item in topic.assigned.get(member, ())]
            result[member] = MemberAssignment(sorted(partitions) if use_racks else partitions)
        return result


class _Topic:
    """One topic on its way: what is left of it, and how much each member may still get."""

    def __init__(
        self, name: str, rows: Sequence[PartitionReplicas], members: list[str], racks: Mapping[str, str]
    ) -> None:
        self.name = name
        self.members = members
        self.partition_count = len(rows)
        self.left = {row.partition: row.racks for row in rows}
        self.assigned: dict[str, list[TopicPartition]] = {member: [] for member in members}
        self._racks = {member: racks.get(member) for member in members}
        self._share, self._extra = divmod(len(rows), len(members)) if members else (0, 0)
        self.racks_matter = racks_matter({rack for rack in self._racks.values() if rack is not None}, rows)

    def room(self, member: str) -> int:
        """How many partitions the member may still get; the first ones to exceed the even share get the rest."""
        return max(0, self._share + (self._extra > 0) - len(self.assigned[member]))

    def is_near(self, member: str, partition: TopicPartition) -> bool:
        """A member without a rack is near everywhere."""
        rack = self._racks[member]
        return rack is None or rack in self.left[partition]

    def give(self, member: str, partitions: list[TopicPartition]) -> None:
        own = self.assigned[member]
        own += partitions
        if len(own) > self._share:
            self._extra -= 1
        for partition in partitions:
            del self.left[partition]

    def assign_ranges(self, within_rack: bool) -> None:
        for member in self.members:
            room = self.room(member)
            fitting = [item for item in self.left if not within_rack or self.is_near(member, item)][:room]
            if fitting:
                self.give(member, fitting)


def _assign_within_racks(topics: list[_Topic]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        key = (tuple(topic.members), topic.partition_count)
        alike.setdefault(key, []).append(topic)
    for (members, count), group in alike.items():
        if len(group) > 1:
            _assign_together(list(members), count, group)
        elif group[0].racks_matter:
            group[0].assign_ranges(within_rack=True)


def _assign_together(members: list[str], partition_count: int, topics: list[_Topic]) -> None:
    """A number goes to the first member that is near to the partition of that number in every topic."""
    remaining = dict.fromkeys(members)
    for number in range(partition_count):
        for member in remaining:
            if all(
                topic.room(member) > 0 and topic.is_near(member, TopicPartition(topic.name, number)) for topic in topics
            ):
                for topic in topics:
                    topic.give(member, [TopicPartition(topic.name, number)])
                if all(topic.room(member) == 0 for topic in topics):
                    del remaining[member]
                break
