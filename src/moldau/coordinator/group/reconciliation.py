"""Leads one member from what it has to what it shall have: the reconciliation of KIP-848.

    STABLE ──its target changed──> UNREVOKED_PARTITIONS ──it gave up──> UNRELEASED_PARTITIONS ──they are free──> STABLE
       │                            (it must give up some)               (others must give up some)              ^
       └──────────────── nothing to give up, everything is free ─────────────────────────────────────────────────┘

A member first gives up what it shall not keep, and stays in its epoch until then; only afterwards it moves to the epoch
of the target and gets what is free. So a partition is never with two members. In Kafka: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moldau.coordinator.group.consumer_member import (
    STABLE,
    UNKNOWN,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ConsumerMember,
    OwnedPartitions,
    Partitions,
)
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError

Owned = Sequence[tuple[bytes, Sequence[int]]]
"""What a member says it still has: topic ids with partitions."""

Owners = dict[bytes, dict[int, str]]
"""Who has which partition: by topic id and index the member's id."""

NOTHING: Final[frozenset[int]] = frozenset()


class SubscribedTopics:
    """The topics a member wants, asked by their ids: names are looked up only where it matters."""

    def __init__(self, names: frozenset[str], matched: frozenset[str], image: MetadataImage) -> None:
        self._names = names
        self._matched = matched
        self._image = image

    def __contains__(self, topic_id: bytes) -> bool:
        topic = self._image.topic_by_id(topic_id)
        return topic is not None and (topic.name in self._names or topic.name in self._matched)

    @property
    def is_empty(self) -> bool:
        return not self._names and not self._matched


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Partitions,
    subscribed_topics: SubscribedTopics,
    subscription_changed: bool,
    owners: Owners,
    owned: Owned | None,
) -> ConsumerMember:
    """The member after one step, or the same object if it cannot move. `owned` is None if the member did not tell."""
    step = _Step(member, target_epoch, target, subscribed_topics, owners, owned)
    if member.state == STABLE:
        if member.member_epoch != target_epoch:
            return step.next_assignment(member.member_epoch)
        return step.without_unsubscribed() if subscription_changed else member
    if member.state == UNREVOKED_PARTITIONS:
        if step.still_owns(member.pending_revocation):
            return step.without_unsubscribed() if subscription_changed else member
        return step.next_assignment(member.member_epoch)
    if member.state == UNKNOWN:
        # Written by a release that knows more states; from nothing it can start again.
        if owned is None or len(owned) > 0:
            raise KafkaError(
                errors.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return step.next_assignment(target_epoch)
    return step.next_assignment(member.member_epoch)


class _Step:
    """One call of `reconcile`."""

    def __init__(
        self,
        member: ConsumerMember,
        target_epoch: int,
        target: Partitions,
        subscribed_topics: SubscribedTopics,
        owners: Owners,
        owned: Owned | None,
    ) -> None:
        self.member = member
        self.target_epoch = target_epoch
        self.target = target
        self.subscribed_topics = subscribed_topics
        self.owners = owners
        self.owned = owned

    def still_owns(self, given_up: OwnedPartitions) -> bool:
        """Does the member still have one of these? If it did not tell, it may."""
        if self.owned is None:
            return bool(given_up)
        for topic_id, partitions in self.owned:
            epochs = given_up.get(topic_id)
            if epochs is not None and any(index in epochs for index in partitions):
                return True
        return False

    def without_unsubscribed(self) -> ConsumerMember:
        """Takes topics away that the member does not want any more, before there is a target without them."""
        member = self.member
        unwanted = [topic_id for topic_id in member.assigned if topic_id not in self.subscribed_topics]
        if not unwanted and not (self.subscribed_topics.is_empty and not member.pending_revocation):
            return member
        assigned = dict(member.assigned)
        revoked = dict(member.pending_revocation)
        for topic_id in unwanted:
            revoked[topic_id] = {**revoked.get(topic_id, {}), **assigned.pop(topic_id)}
        if self.still_owns(revoked):
            return _moved(member, UNREVOKED_PARTITIONS, member.member_epoch, assigned, revoked)
        return _moved(member, member.state, member.member_epoch, assigned, member.pending_revocation)

    def next_assignment(self, member_epoch: int) -> ConsumerMember:
        member = self.member
        kept: OwnedPartitions = {}
        revoked: OwnedPartitions = {}
        wanted: OwnedPartitions = {}
        has_unreleased = False
        for topic_id, epochs in member.assigned.items():
            target = self._target_of(topic_id)
            keep = {index: epoch for index, epoch in epochs.items() if index in target}
            if keep:
                kept[topic_id] = keep
            if len(keep) < len(epochs):
                revoked[topic_id] = {index: epoch for index, epoch in epochs.items() if index not in target}
        for topic_id in self.target:
            owners = self.owners.get(topic_id, {})
            known = member.assigned.get(topic_id, {})
            new = {}
            for index in self._target_of(topic_id):
                if index in known:
                    continue
                if index in owners:
                    has_unreleased = True
                else:
                    new[index] = self.target_epoch
            if new:
                wanted[topic_id] = new
        if revoked and self.still_owns(revoked):
            return _moved(member, UNREVOKED_PARTITIONS, member_epoch, kept, revoked)
        for topic_id, new in wanted.items():
            kept[topic_id] = {**kept.get(topic_id, {}), **new}
        state = UNRELEASED_PARTITIONS if has_unreleased else STABLE
        return _moved(member, state, self.target_epoch, kept, {})

    def _target_of(self, topic_id: bytes) -> frozenset[int]:
        """A target that was computed for an older subscription may have topics that the member does not want."""
        return self.target.get(topic_id, NOTHING) if topic_id in self.subscribed_topics else NOTHING


def _moved(
    member: ConsumerMember, state: int, epoch: int, assigned: OwnedPartitions, revoked: OwnedPartitions
) -> ConsumerMember:
    assert (state == UNREVOKED_PARTITIONS) == bool(revoked), f"{member.member_id} in {state} is to give up {revoked}"
    assert epoch >= member.member_epoch, f"the epoch of {member.member_id} falls from {member.member_epoch} to {epoch}"
    moved = member.copy()
    moved.state = state
    moved.previous_member_epoch = member.member_epoch
    moved.member_epoch = epoch
    moved.assigned = assigned
    moved.pending_revocation = revoked
    return moved
