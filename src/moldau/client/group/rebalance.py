"""What the user's thread does in a rebalance: commit, give partitions up, take them over, and tell the listener.

Everything here happens within poll(). A step that has to wait, for a commit, is taken again by the next turn; between
two steps the membership may have changed, so each step looks at it anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from moldau.client.assignors import Assignor, MemberAssignment, RebalanceProtocol
from moldau.client.assignors.wire import read_assignment
from moldau.client.errors import ClientError
from moldau.client.fetch.fetcher import Fetcher
from moldau.client.group.classic import ClassicMembership
from moldau.client.group.commits import Commit
from moldau.client.group.consumer import ConsumerMembership, Target
from moldau.client.group.listener import RebalanceListener
from moldau.client.group.membership import Duty
from moldau.client.group.settings import GroupSettings
from moldau.client.metrics.membership import GroupMeter
from moldau.client.results import TopicPartition

logger = logging.getLogger("moldau.client")


class Rebalance:
    """What both protocols have in common: holding partitions, committing before they go, calling the listener."""

    def __init__(
        self,
        settings: GroupSettings,
        fetcher: Fetcher,
        commit: Callable[[Iterable[TopicPartition], int], Commit],
        call: Callable[[Callable[[], object]], None],
    ) -> None:
        """commit(partitions, now_ms) commits what was consumed of them; call() runs the user's code, unlocked."""
        self.settings = settings
        self.fetcher = fetcher
        self.listener: RebalanceListener | None = None
        self._commit_consumed = commit
        self._call = call
        # The commit before partitions go, and which those are.
        self._commit: Commit | None = None
        self._going: set[TopicPartition] = set()
        # The first thing that the user's code raised since the last step; raised when the step is over.
        self.raised: Exception | None = None
        # Where the listener's time is counted.
        self.meter: GroupMeter | None = None

    def owned(self) -> list[TopicPartition]:
        return list(self.fetcher.partitions)

    def committed(self, partitions: Iterable[TopicPartition], going: Collection[TopicPartition], now_ms: int) -> bool:
        """Holds what is going, and nothing else, and commits; True once the offsets are committed, or cannot be."""
        self.fetcher.hold(self.fetcher.partitions, False)
        self.fetcher.hold(going)
        if not self.settings.auto_commit:
            return True
        if self._commit is None or self._going != set(going):
            self._commit = self._commit_consumed(partitions, now_ms)
            self._going = set(going)
        if not self._commit.done:
            return False
        error, self._commit = self._commit.error, None
        if error is not None:
            logger.warning("Offsets could not be committed before a rebalance: %s", error)
        return True

    def forget_commit(self) -> None:
        self._commit = None

    def tell_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._tell("on_partitions_revoked", partitions)

    def tell_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._tell("on_partitions_assigned", partitions)

    def tell_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._tell("on_partitions_lost", partitions)

    def _tell(self, name: str, partitions: Collection[TopicPartition]) -> None:
        if self.listener is None:
            return
        method: Callable[[list[TopicPartition]], Any] = getattr(self.listener, name)
        told = sorted(partitions)
        began_ms = 0 if self.meter is None else self.meter.now_ms()
        try:
            self._call(lambda: method(told))
        except Exception as error:
            self.raised = self.raised or error
            logger.warning("The rebalance listener's %s raised %r; the rebalance goes on.", name, error)
        if self.meter is not None:
            self.meter.on_listener(name.rpartition("_")[2], began_ms)

    def drop_all(self, lost: bool) -> None:
        """Gives up everything: to leave the group, or because it is lost."""
        owned = self.owned()
        self.fetcher.hold(owned)
        self.forget_commit()
        if owned:
            (self.tell_lost if lost else self.tell_revoked)(owned)
        self.fetcher.assign([])


class ClassicRebalance:
    """The duties of the classic protocol."""

    def __init__(
        self,
        rebalance: Rebalance,
        membership: ClassicMembership,
        is_subscribed: Callable[[str], bool],
        on_assigned: Callable[[int], None],
    ) -> None:
        self._rebalance = rebalance
        self._membership = membership
        self._is_subscribed = is_subscribed
        self._on_assigned = on_assigned
        self._assignors: Mapping[str, Assignor] = {item.name: item for item in rebalance.settings.assignors}
        self._cooperative = rebalance.settings.rebalance_protocol is RebalanceProtocol.COOPERATIVE

    def step(self, now_ms: int) -> bool:
        """Does the duty of the moment; False if there is none, or it has to wait."""
        duty = self._membership.duty()
        if duty is Duty.PREPARE:
            return self._prepare(now_ms)
        return self._complete(now_ms) if duty is Duty.COMPLETE else False

    def _prepare(self, now_ms: int) -> bool:
        rebalance, membership = self._rebalance, self._membership
        owned = rebalance.owned()
        if membership.is_lost:
            rebalance.drop_all(lost=True)
        else:
            going = [item for item in owned if not self._cooperative or not self._is_subscribed(item.topic)]
            if not rebalance.committed(owned, going, now_ms):
                return False
            if membership.is_lost:
                return True
            if going or not self._cooperative:
                rebalance.tell_revoked(going)
            rebalance.fetcher.assign([item for item in owned if item not in set(going)])
        if membership.duty() is Duty.PREPARE:
            membership.prepared(now_ms)
        return True

    def _complete(self, now_ms: int) -> bool:
        rebalance, membership = self._rebalance, self._membership
        try:
            assignment = read_assignment(membership.assignment)
        except ClientError as error:
            membership.completed(now_ms)
            membership.request_rejoin("the assignment cannot be read")
            rebalance.raised = rebalance.raised or error
            return True
        foreign = sorted({item.topic for item in assignment.partitions if not self._is_subscribed(item.topic)})
        if foreign:
            membership.completed(now_ms)
            membership.request_rejoin(f"topics were assigned that are not subscribed to: {', '.join(foreign)}")
            return True
        owned = rebalance.owned()
        going = [item for item in owned if item not in set(assignment.partitions)]
        if going:
            if not rebalance.committed(going, going, now_ms):
                return False
            rebalance.tell_revoked(going)
            rebalance.fetcher.assign([item for item in owned if item not in set(going)])
        if membership.duty() is not Duty.COMPLETE:
            return True  # the generation was lost meanwhile
        self._take_over(assignment, set(owned), now_ms)
        if going:
            membership.request_rejoin("partitions were given up for others")
        return True

    def _take_over(self, assignment: MemberAssignment, owned: set[TopicPartition], now_ms: int) -> None:
        rebalance, membership = self._rebalance, self._membership
        assignor = self._assignors.get(membership.protocol_name)
        if assignor is not None:
            try:
                assignor.on_assignment(assignment, membership.metadata())
            except Exception as error:
                rebalance.raised = rebalance.raised or error
        rebalance.fetcher.assign(assignment.partitions, from_committed=True)
        membership.completed(now_ms)
        self._on_assigned(now_ms)
        logger.info("Group %s assigned %s.", rebalance.settings.group_id, _text(assignment.partitions))
        rebalance.tell_assigned([item for item in assignment.partitions if item not in owned])


class ConsumerRebalance:
    """The duties of the protocol of KIP-848."""

    def __init__(
        self,
        rebalance: Rebalance,
        membership: ConsumerMembership,
        resolve: Callable[[Iterable[bytes]], Mapping[bytes, str]],
        on_assigned: Callable[[int], None],
    ) -> None:
        self._rebalance = rebalance
        self._membership = membership
        self._resolve = resolve
        self._on_assigned = on_assigned

    def step(self, now_ms: int) -> bool:
        duty = self._membership.duty()
        if duty is Duty.LOST:
            self._rebalance.drop_all(lost=True)
            self._membership.lost(now_ms)
            return True
        return self._reconcile(now_ms) if duty is Duty.RECONCILE else False

    def _reconcile(self, now_ms: int) -> bool:
        rebalance, membership = self._rebalance, self._membership
        target = membership.target
        names = self._resolve(target)
        known: Target = {topic_id: items for topic_id, items in target.items() if topic_id in names}
        wanted = [
            TopicPartition(names[topic_id], number) for topic_id, items in known.items() for number in sorted(items)
        ]
        owned = rebalance.owned()
        going = [item for item in owned if item not in set(wanted)]
        coming = [item for item in wanted if item not in set(owned)]
        if not going and not coming and len(known) < len(target):
            return False  # names are on their way
        if not rebalance.committed(owned if going else [], going, now_ms):
            return False
        if going:
            rebalance.tell_revoked(going)
            rebalance.fetcher.assign([item for item in owned if item not in set(going)])
        if membership.duty() is not Duty.RECONCILE:
            return True  # fenced meanwhile
        rebalance.fetcher.assign(wanted, from_committed=True)
        self._on_assigned(now_ms)
        logger.info("Group %s assigned %s.", rebalance.settings.group_id, _text(wanted))
        rebalance.tell_assigned(coming)
        if membership.duty() is Duty.RECONCILE:
            membership.reconciled(known, now_ms)
        return True


def _text(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(str(item) for item in sorted(partitions)) or "nothing"
