"""The round-robin assignor: all partitions of all topics in order, dealt to the members in turn."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.assignors.base import (
    Assignor,
    GroupMetadata,
    MemberAssignment,
    MemberSubscription,
    sorted_members,
)
from moldau.client.results import TopicPartition


class RoundRobinAssignor(Assignor):
    """Kafka's RoundRobinAssignor: whoever does not want a topic is passed over."""

    name = "roundrobin"

    def assign(
        self, metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        result: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        members = sorted_members(subscriptions)
        topics = {member: set(subscriptions[member].topics) for member in members}
        wanted = set().union(*topics.values()) if topics else set()
        turn = 0
        for topic in sorted(wanted & metadata.keys()):
            for row in metadata[topic]:
                while topic not in topics[members[turn]]:
                    turn = (turn + 1) % len(members)
                result[members[turn]].append(row.partition)
                turn = (turn + 1) % len(members)
        return {member: MemberAssignment(partitions) for member, partitions in result.items()}
