"""The cooperative sticky assignor (KIP-429): members go on with what they keep, only what moves is revoked.

A partition that moves is left out of this assignment: its owner sees that it lost it, gives it up and joins again, and
only the assignment after that hands it on. So no partition has two owners.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moldau.client.assignors.balance import Claim, spread
from moldau.client.assignors.base import (
    Assignor,
    GroupMetadata,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
)
from moldau.client.results import ConsumerGroupMetadata, TopicPartition

NO_GENERATION = -1


class CooperativeStickyAssignor(Assignor):
    """Kafka's CooperativeStickyAssignor."""

    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation_id = NO_GENERATION

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """The generation alone, for leaders that do not read it from the subscription itself (before KIP-792)."""
        return self._generation_id.to_bytes(4, "big", signed=True)

    def on_assignment(self, assignment: MemberAssignment, metadata: ConsumerGroupMetadata) -> None:
        self._generation_id = metadata.generation_id

    def assign(
        self, metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        claims = {member: _claim(row) for member, row in subscriptions.items()}
        assigned = spread(metadata, subscriptions, claims)
        owners: dict[TopicPartition, set[str]] = {}
        for member, row in subscriptions.items():
            for partition in row.owned_partitions:
                owners.setdefault(partition, set()).add(member)
        return {
            member: MemberAssignment([item for item in items if owners.get(item) is None or member in owners[item]])
            for member, items in assigned.items()
        }


def _claim(row: MemberSubscription) -> Claim:
    generation_id = row.generation_id
    if generation_id == NO_GENERATION and row.user_data is not None and len(row.user_data) >= 4:
        generation_id = int.from_bytes(row.user_data[:4], "big", signed=True)
    return Claim(row.owned_partitions, generation_id)
