"""The sticky assignor: even, and members keep what they had; they remember it themselves, as all is revoked first.

A member's user data is what it had: version 1 of Kafka's StickyAssignor user data, topics with their partitions and
the generation; version 0 lacks the generation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moldau.client.assignors.balance import Claim, spread
from moldau.client.assignors.base import Assignor, GroupMetadata, MemberAssignment, MemberSubscription
from moldau.client.results import ConsumerGroupMetadata, TopicPartition
from moldau.protocol.primitives import DecodeError, Reader, Writer

NO_GENERATION = -1


class StickyAssignor(Assignor):
    """Kafka's StickyAssignor."""

    name = "sticky"

    def __init__(self) -> None:
        self._claim: Claim | None = None

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None if self._claim is None else write_claim(self._claim)

    def on_assignment(self, assignment: MemberAssignment, metadata: ConsumerGroupMetadata) -> None:
        self._claim = Claim(list(assignment.partitions), metadata.generation_id)

    def assign(
        self, metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        claims = {member: read_claim(row.user_data) for member, row in subscriptions.items()}
        return {member: MemberAssignment(items) for member, items in spread(metadata, subscriptions, claims).items()}


def write_claim(claim: Claim) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in claim.partitions:
        by_topic.setdefault(topic, []).append(partition)
    writer = Writer()
    writer.array_length(len(by_topic))
    for topic, partitions in by_topic.items():
        writer.string(topic)
        writer.array_length(len(partitions))
        writer.int32_list(partitions)
    writer.int32(claim.generation_id)
    return writer.to_bytes()


def read_claim(data: bytes | None) -> Claim:
    """What another member sent is not trusted: bytes that are not understood claim nothing."""
    nothing = Claim((), NO_GENERATION)
    if not data:
        return nothing
    reader = Reader(data)
    partitions: list[TopicPartition] = []
    try:
        for _ in range(reader.array_length(6)):
            topic = reader.string()
            partitions += [TopicPartition(topic, number) for number in reader.int32_list(reader.array_length(4))]
        generation_id = reader.int32() if reader.remaining >= 4 else NO_GENERATION
    except DecodeError:
        return nothing
    return Claim(partitions, generation_id)
