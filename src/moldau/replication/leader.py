"""What the leader of a partition knows of its followers, and what follows from it: who is in sync, what is committed.

A follower's fetch offset is its log end: everything below it is in its log. Kafka: Replica.java, ReplicaState, and the
parts of Partition.scala that use them.
"""

from __future__ import annotations

from typing import Final

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.replication.in_sync import InSyncReplicas

UNKNOWN: Final = -1
ANY_BROKER_EPOCH: Final = -1


class OtherBrokers:
    """The brokers of the cluster as far as leaders need to know them, and how far a follower may lag.

    `active_epochs` has the epochs of those that may be in an ISR: neither fenced nor about to stop. `alive` are all
    that are not fenced, `racks` says where they are.
    """

    def __init__(self) -> None:
        self.active_epochs: dict[int, int] = {}
        self.alive: set[int] = set()
        self.racks: dict[int, str] = {}
        self.lag_max_ms = 30_000

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the process that fetches as this broker may join an ISR (KIP-841, KIP-903)."""
        current = self.active_epochs.get(broker_id, UNKNOWN)
        if current == UNKNOWN:
            return False
        return broker_epoch in (ANY_BROKER_EPOCH, current)


class FetchClock:
    """When a follower last fetched, for all partitions of a session: a fetch does not name those that did not move."""

    def __init__(self, now_ms: int) -> None:
        self.last_fetch_ms = now_ms


class FollowerPosition:
    """How far one follower is, by its own fetches."""

    def __init__(self, replica_id: int, last_caught_up_ms: int) -> None:
        self.replica_id = replica_id
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        # When it last had everything the leader had.
        self.last_caught_up_ms = last_caught_up_ms
        self.last_fetch_ms = 0
        self.leader_end_at_last_fetch = UNKNOWN
        self.broker_epoch = ANY_BROKER_EPOCH
        self.clock: FetchClock | None = None
        # The controller took it out of the ISR then: what it fetched before says nothing about why.
        self.dropped_ms = 0

    def on_dropped(self, now_ms: int) -> None:
        """The controller took it out of the ISR: whether it keeps up has to show anew."""
        self.dropped_ms = now_ms
        self.last_caught_up_ms = 0

    def has_fetched_since(self, at_ms: int) -> bool:
        clock = self.clock
        if at_ms <= self.dropped_ms:
            at_ms = self.dropped_ms + 1
        return self.last_fetch_ms >= at_ms or (clock is not None and clock.last_fetch_ms >= at_ms)

    def on_left(self, clock: FetchClock) -> None:
        """It does not fetch this partition in that session any more: where it was says nothing about where it is."""
        if self.clock is clock:
            self.clock = None
            self.last_fetch_ms = 0

    def check_broker_epoch(self, broker_epoch: int) -> None:
        """An earlier life of the same broker has nothing to say any more."""
        if broker_epoch != ANY_BROKER_EPOCH and broker_epoch < self.broker_epoch:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)

    def update(self, fetch_offset: int, log_start: int, leader_end: int, broker_epoch: int, now_ms: int) -> None:
        if fetch_offset >= leader_end:
            self.caught_up_at(now_ms)
        elif fetch_offset >= self.leader_end_at_last_fetch:
            # It has what there was when it fetched last: it was that far then.
            self.caught_up_at(self.last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start
        self.leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def caught_up_at(self, at_ms: int) -> None:
        if at_ms > self.last_caught_up_ms and at_ms > self.dropped_ms:
            self.last_caught_up_ms = at_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_max_ms

    def begin_epoch(self, leader_end: int, is_in_sync: bool, now_ms: int) -> None:
        """The same broker leads on in a new epoch: what it knows stays, the time a follower has begins again."""
        self.leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = now_ms if is_in_sync else 0
        self.last_caught_up_ms = now_ms if is_in_sync else 0


class LeaderState:
    """The followers of a partition that this broker leads, and its ISR. There is none where there are no followers."""

    def __init__(self, own_id: int, in_sync: InSyncReplicas) -> None:
        self.own_id = own_id
        self.in_sync = in_sync
        self.followers: list[FollowerPosition] = []
        self.proposed_epochs: dict[int, int] = {}

    def find(self, replica_id: int) -> FollowerPosition | None:
        for follower in self.followers:
            if follower.replica_id == replica_id:
                return follower
        return None

    def assign(self, replicas: list[int], now_ms: int) -> None:
        """The replicas are these now; what is known about those that stay is kept."""
        followers: list[FollowerPosition] = []
        for replica in replicas:
            if replica != self.own_id:
                known = self.find(replica)
                if known is None:
                    known = FollowerPosition(replica, now_ms if replica in self.in_sync.committed else 0)
                followers.append(known)
        self.followers = followers

    def drop(self, before: list[int], now_ms: int) -> None:
        """Those who were in the ISR and are not any more have to fetch once more before they are asked for again, or
        waited for: one whose log directory failed was in sync a moment ago, and does not come back."""
        for replica in before:
            if replica not in self.in_sync.committed:
                follower = self.find(replica)
                if follower is not None:
                    follower.on_dropped(now_ms)

    def begin_epoch(self, leader_end: int, now_ms: int) -> None:
        for follower in self.followers:
            follower.begin_epoch(leader_end, follower.replica_id in self.in_sync.committed, now_ms)

    def committed_end(self, leader_end: int, own_durable_end: int, now_ms: int, brokers: OtherBrokers) -> int:
        """The least log end of all that count: the in-sync replicas, with those being added or removed, and those that
        keep up and may join: else the high watermark could run away from a replica that is about to (KAFKA-9307).

        Waiting for the latter is for their sake, not for safety: who joins has all that is committed (`may_join`). So
        nobody waits for one that stopped fetching, or has not fetched since the controller took it out of the ISR.
        """
        end = own_durable_end
        for follower in self.followers:
            if follower.log_end_offset < end and (
                follower.replica_id in self.in_sync.maximal
                or (
                    follower.is_caught_up(leader_end, now_ms, brokers.lag_max_ms)
                    and brokers.is_eligible(follower.replica_id, follower.broker_epoch)
                    and follower.has_fetched_since(now_ms - brokers.lag_max_ms)
                )
            ):
                end = follower.log_end_offset
        return end

    def may_join(
        self, follower: FollowerPosition, high_watermark: int, epoch_start: int, brokers: OtherBrokers
    ) -> bool:
        """Whether to ask for it to be added: it has all that is committed, and the start of this leader's epoch."""
        if self.in_sync.is_changing or follower.replica_id in self.in_sync.committed:
            return False
        if follower.log_end_offset < high_watermark or follower.log_end_offset < epoch_start:
            return False
        return brokers.is_eligible(follower.replica_id, follower.broker_epoch)

    def find_joinable(
        self, high_watermark: int, epoch_start: int, now_ms: int, brokers: OtherBrokers
    ) -> FollowerPosition | None:
        """A follower that may join although no fetch of it says so just now: it could not when it reached its place."""
        if self.in_sync.is_changing or len(self.in_sync.committed) > len(self.followers):
            return None
        for follower in self.followers:
            if follower.has_fetched_since(now_ms - brokers.lag_max_ms) and self.may_join(
                follower, high_watermark, epoch_start, brokers
            ):
                return follower
        return None

    def lagging(self, leader_end: int, now_ms: int, lag_max_ms: int) -> list[int]:
        """In-sync replicas that have not had everything for too long."""
        found: list[int] = []
        for replica in self.in_sync.committed:
            if replica != self.own_id:
                follower = self.find(replica)
                if follower is None or not follower.is_caught_up(leader_end, now_ms, lag_max_ms):
                    found.append(replica)
        return found

    def low_watermark(self, own_log_start: int, alive: set[int]) -> int:
        """The least log start among the replicas of brokers that live."""
        low = own_log_start
        for follower in self.followers:
            if follower.log_start_offset < low and follower.replica_id in alive:
                low = follower.log_start_offset
        return low

    def note_epochs(self) -> None:
        """The epochs with which the replicas are named to the controller (KIP-903) in what is proposed now. A broker
        that comes back with less must not get into the ISR by what was seen of its life before."""
        self.proposed_epochs = {follower.replica_id: follower.broker_epoch for follower in self.followers}
