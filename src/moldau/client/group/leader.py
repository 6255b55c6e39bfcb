"""The classic protocol's part that members do themselves: what they tell the leader, and what the leader assigns.

The leader keeps an eye on the topics of all members: when their partitions are not those it assigned by, the group is
joined again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moldau.client.assignors import Assignor, MemberAssignment, MemberSubscription, RebalanceProtocol
from moldau.client.assignors.wire import read_subscription, write_assignment, write_subscription
from moldau.client.errors import ClientError, error_for
from moldau.client.group.classic import ClassicMembership, State
from moldau.client.group.settings import GroupSettings
from moldau.client.group.subscription import Subscription
from moldau.client.group.topics import GroupTopics, Snapshot
from moldau.client.results import TopicPartition
from moldau.protocol.errors import INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_SERVER_ERROR


class ClassicLeader:
    """What one member says when it joins, and what it does when it leads."""

    def __init__(
        self,
        settings: GroupSettings,
        topics: GroupTopics,
        subscription: Subscription,
        owned: Callable[[], list[TopicPartition]],
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._subscription = subscription
        self._owned = owned
        # What the current generation was joined with, and the metadata that the leader assigned by.
        self._joined_with: frozenset[str] | None = None
        self._assigned_by: tuple[set[str], Snapshot] | None = None
        self._checked_version = -1
        self._refreshed_for = -1
        # The topics of all members, as the last leader's duty told.
        self.group_names: set[str] = set()

    def forget(self) -> None:
        """The group was left."""
        self._joined_with = None
        self._assigned_by = None
        self.group_names = set()

    def protocols(self, generation_id: int) -> list[tuple[str, bytes]]:
        """What each assignor tells the leader, as of now."""
        names = sorted(self._subscription.names or ())
        self._joined_with = frozenset(names)
        owned = self._owned()
        return [
            (
                assignor.name,
                write_subscription(
                    MemberSubscription(
                        names, assignor.subscription_user_data(names), owned, generation_id, self._settings.rack
                    )
                ),
            )
            for assignor in self._settings.assignors
        ]

    def step(self, membership: ClassicMembership, metadata_version: int, now_ms: int) -> None:
        """Joins again where that is called for, and assigns as soon as everything is known that is needed for it."""
        if membership.state is State.STABLE:
            self._check_subscription(membership)
            self._check_assigned(membership, metadata_version)
        elif membership.state is State.ASSIGNING:
            try:
                self._assign(membership)
            except ClientError as error:
                membership.assign_failed(error, now_ms)

    def _check_subscription(self, membership: ClassicMembership) -> None:
        if self._joined_with not in (None, frozenset(self._subscription.names or ())):
            membership.request_rejoin("the subscription changed")

    def _check_assigned(self, membership: ClassicMembership, metadata_version: int) -> None:
        if self._assigned_by is None or not membership.is_leader or metadata_version == self._checked_version:
            return
        self._checked_version = metadata_version
        names, before = self._assigned_by
        if self._topics.is_known(names) and self._snapshot(names) != before:
            membership.request_rejoin("topics or their partitions changed")

    def _snapshot(self, names: set[str]) -> Snapshot:
        return self._topics.snapshot(names, self._settings.rack is not None)

    def _assign(self, membership: ClassicMembership) -> None:
        subscriptions = {
            row.member_id: read_subscription(row.metadata, row.group_instance_id) for row in membership.members
        }
        self.group_names = {topic for row in subscriptions.values() for topic in row.topics}
        if not self._are_topics_known(membership.generation_id):
            return
        self._assigned_by = (set(self.group_names), self._snapshot(self.group_names))
        if membership.skip_assignment:
            membership.assigned({})
            return
        name = membership.protocol_name
        found = next((item for item in self._settings.assignors if item.name == name), None)
        if found is None:
            raise error_for(INCONSISTENT_GROUP_PROTOCOL, f"The group chose the assignor {name}, which is not set here.")
        assigned = _run(found, self._topics, subscriptions)
        if self._settings.rebalance_protocol is RebalanceProtocol.COOPERATIVE:
            _check_cooperative(name, assigned, subscriptions)
        membership.assigned({member: write_assignment(row) for member, row in assigned.items()})

    def _are_topics_known(self, generation_id: int) -> bool:
        """Others may want topics that are too young for what is known of all topics: those are asked for once more."""
        if self._subscription.pattern is None:
            return self._topics.is_known(self.group_names)
        if self._refreshed_for != generation_id and not self._topics.exist(self.group_names):
            self._refreshed_for = generation_id
            self._topics.forget_all()
        return self._topics.all_known()


def _run(
    assignor: Assignor, topics: GroupTopics, subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, MemberAssignment]:
    names = {topic for row in subscriptions.values() for topic in row.topics}
    try:
        assigned = assignor.assign(topics.group_metadata(names), subscriptions)
    except ClientError:
        raise
    except Exception as error:
        raise error_for(UNKNOWN_SERVER_ERROR, f"The assignor {assignor.name} failed: {error!r}") from error
    if assigned.keys() - subscriptions.keys():
        sentence = f"The assignor {assignor.name} assigned to members that are not in the group."
        raise error_for(UNKNOWN_SERVER_ERROR, sentence)
    return {member: assigned.get(member, MemberAssignment([])) for member in subscriptions}


def _check_cooperative(
    name: str, assigned: Mapping[str, MemberAssignment], subscriptions: Mapping[str, MemberSubscription]
) -> None:
    """An assignor must not hand on what its owner has not given up: for a while there would be two owners."""
    owners: dict[TopicPartition, set[str]] = {}
    for member, row in subscriptions.items():
        for item in row.owned_partitions:
            owners.setdefault(item, set()).add(member)
    for member, given in assigned.items():
        taken = [item for item in given.partitions if member not in owners.get(item, {member})]
        if taken:
            names = ", ".join(str(item) for item in sorted(taken))
            sentence = f"The assignor {name} is not cooperative: it hands on what others still own: {names}."
            raise error_for(UNKNOWN_SERVER_ERROR, sentence)
