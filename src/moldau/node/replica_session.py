"""The fetch session of one follower: which of its partitions have something to tell, without asking all of them.

A follower of thousands of partitions fetches many times a second, and hardly any of them has moved. So partitions say
when they move: `ready` are those to read, `behind` those whose high watermark or log start the follower has not heard
of yet. A fetch looks at the partitions it names and at these two lists, at nothing else. A partition whose records are
cold stays among the ready ones, and nobody else's records wait for them.
"""

from __future__ import annotations

from typing import Final

from moldau.node.cold_requests import ColdWait
from moldau.node.context import ClientContext
from moldau.node.fetch_session import FetchedPartition, FetchSession, FetchSessionCache, SessionKey
from moldau.node.waiting import ParkedRequest, TimedWaiter, WaitingRoom
from moldau.replication.leader import FetchClock, FollowerPosition
from moldau.replication.partition import Partition, ReplicationContext
from moldau.storage.disk import ColdRead, Disk, File

HIGH_WATERMARK_DELAY_MS: Final = 5
"""A new high watermark travels with the next records. When none come within this time it is told without."""

SILENT_PART_OF_LAG: Final = 3
"""A later session that was silent for this part of `replica.lag.time.max.ms` gives way, before the ISR shrinks."""


class FollowedPartition(FetchedPartition):
    """One partition of a follower's session. `partition` is None until it is found, and after its leader changed."""

    def __init__(self, session: ReplicaSession, topic: str, topic_id: bytes, index: int) -> None:
        super().__init__(topic, topic_id, index)
        self.session = session
        self.partition: Partition | None = None
        self.position: FollowerPosition | None = None
        self.is_ready = False
        self.is_behind = False
        self.is_forgotten = False
        self.cold_wait: ColdWait | None = None
        self.is_warming = False
        self.warmings = 0  # how often a thread brought the same records into memory

    # Cold data

    def is_waiting_for_disk(self) -> bool:
        wait = self.cold_wait
        return self.is_warming or (wait is not None and wait.is_reading)

    def bring(self, disk: Disk, cold: ColdRead) -> None:
        """What has to be looked at to find the records is cold."""
        wait = self.cold_wait
        if wait is None:
            wait = self.cold_wait = ColdWait(disk, self.on_brought)
        wait.bring(cold)

    def warm(self, file: File, position: int, size: int) -> None:
        """The records are cold."""
        self.is_warming = True
        self.warmings += 1
        file.warm_later(position, size, self.on_warm)

    def on_warm(self, failure: OSError | None) -> None:
        self.is_warming = False
        self.on_brought()

    def on_brought(self) -> None:
        if not self.is_forgotten:
            self.session.read_soon()

    # The partition's news

    def attach(self, partition: Partition) -> None:
        """Hears of the partition from now on, in the place of an earlier session of the same follower.

        A request of the earlier session may come late, or time out while it is parked: that takes nothing from the
        later one.
        """
        for listener in partition.listeners:
            if isinstance(listener, FollowedPartition) and listener.session.outranks(self.session):
                return
        kept = [listener for listener in partition.listeners if not self._replaces(listener)]
        kept.append(self)
        partition.listeners = kept
        self.partition = partition

    def _replaces(self, listener: object) -> bool:
        if listener is self:
            return True
        if isinstance(listener, FollowedPartition) and listener.session.replica_id == self.session.replica_id:
            listener.partition = None
            # The new session may be that of a request which was on its way for long, and end at once. If the follower
            # goes on in this one, its next fetch asks for the place again.
            listener.mark_ready()
            return True
        return False

    def detach(self) -> None:
        partition, position = self.partition, self.position
        if partition is not None and position is not None and not self.is_ready:
            position.caught_up_at(self.session.clock.last_fetch_ms)  # it had everything until now
        self._leave()
        if partition is not None:
            partition.listeners = [listener for listener in partition.listeners if listener is not self]

    def _leave(self) -> None:
        """The follower has to name the partition again before it counts as one that fetches it."""
        position = self.position
        self.partition = None
        self.position = None
        if position is not None:
            position.on_left(self.session.clock)

    def mark_ready(self) -> None:
        if not self.is_ready:
            self.is_ready = True
            self.session.ready.append(self)

    def mark_behind(self, now_ms: int) -> None:
        if not self.is_behind:
            self.is_behind = True
            self.session.add_behind(self, now_ms)

    def on_appended(self, now_ms: int) -> None:
        session = self.session
        if not self.is_ready:
            if self.position is not None:
                # Until this append the follower had everything, and said so with every fetch.
                self.position.caught_up_at(session.clock.last_fetch_ms)
            self.is_ready = True
            session.ready.append(self)
        session.wake()

    def on_high_watermark(self, now_ms: int) -> None:
        if not self.is_behind:
            self.is_behind = True
            self.session.add_behind(self, now_ms)

    def on_log_start(self, now_ms: int) -> None:
        self.mark_ready()
        self.session.wake()

    def on_detached(self, now_ms: int) -> None:
        self._leave()
        self.mark_ready()
        self.session.wake()


class ReplicaSession(FetchSession):
    """See the module. `parked` is the follower's fetch while it waits."""

    def __init__(
        self,
        session_id: int,
        uses_topic_ids: bool,
        replica_id: int,
        now_ms: int,
        waiting: WaitingRoom,
        context: ReplicationContext,
    ) -> None:
        super().__init__(session_id, uses_topic_ids, True, now_ms)
        context.sessions_opened += 1
        self.number = context.sessions_opened
        self.replica_id = replica_id
        self.connection: ClientContext | None = None  # the one its last request came over
        self.broker_epoch = -1
        self.clock = FetchClock(now_ms)
        self.followed: dict[SessionKey, FollowedPartition] = {}
        self.ready: list[FollowedPartition] = []
        self.behind: list[FollowedPartition] = []
        self._behind_since_ms = 0
        self.parked: ParkedRequest | None = None
        self.is_woken = False
        self._waiting = waiting
        self._context = context
        self._nudge: Nudge | None = None

    def outranks(self, other: ReplicaSession) -> bool:
        """Whether a partition stays with this session when the other one of the same follower asks for it."""
        if self.replica_id != other.replica_id or self.number <= other.number:
            return False
        # A follower that lives fetches several times a second: a session without a fetch for so long is nobody's.
        silent_ms = other.clock.last_fetch_ms - self.clock.last_fetch_ms
        return silent_ms <= self._context.brokers.lag_max_ms // SILENT_PART_OF_LAG

    def wake(self) -> None:
        """Whoever moved the partition has the parked fetch looked at when its request is done."""
        parked = self.parked
        if parked is not None and not self.is_woken:
            self.is_woken = True
            self._context.woken.append(parked)

    def read_soon(self) -> None:
        """In the node's next turn, which knows what time it is: the parked fetch reads again."""
        if self.parked is not None:
            self._waiting.call_at(0, Rereading(self))

    def on_reread(self, now_ms: int) -> None:
        parked = self.parked
        if parked is not None and not parked.finished:
            parked.on_partition_moved(now_ms)

    def add_behind(self, followed: FollowedPartition, now_ms: int) -> None:
        if not self.behind:
            self._behind_since_ms = now_ms
        self.behind.append(followed)
        if self.parked is not None and self._nudge is None:
            self._nudge_at(now_ms + HIGH_WATERMARK_DELAY_MS)

    def _nudge_at(self, at_ms: int) -> None:
        """Sees to it that the follower hears of the high watermark even if no records come."""
        self._nudge = Nudge(self)
        self._waiting.call_at(at_ms, self._nudge)

    def on_nudge(self, now_ms: int) -> None:
        """While records flow, what it was set for is told long ago, and what is behind now is younger."""
        self._nudge = None
        parked = self.parked
        if parked is None or not self.behind:
            return
        due_ms = self._behind_since_ms + HIGH_WATERMARK_DELAY_MS
        if now_ms >= due_ms:
            parked.on_deadline(now_ms)
        else:
            self._nudge_at(due_ms)

    def park(self, request: ParkedRequest, now_ms: int) -> None:
        self.parked = request
        self.is_woken = False
        self._waiting.park(request)
        if self.behind and self._nudge is None:
            self._nudge_at(now_ms + HIGH_WATERMARK_DELAY_MS)

    def forget(self, key: SessionKey) -> None:
        followed = self.followed.pop(key, None)
        if followed is not None:
            followed.detach()
            followed.is_forgotten = True  # it leaves the lists when they are looked at

    def close(self) -> None:
        for followed in self.followed.values():
            followed.detach()
        self.ready = []
        self.behind = []
        if self._nudge is not None:
            self._nudge.finished = True
            self._nudge = None


class Nudge(TimedWaiter):
    """Fires once for a session, whichever fetch is parked then."""

    def __init__(self, session: ReplicaSession) -> None:
        super().__init__()
        self._session = session

    def on_deadline(self, now_ms: int) -> None:
        self.finished = True
        self._session.on_nudge(now_ms)


class Rereading(TimedWaiter):
    """Has the parked fetch of a session read again."""

    def __init__(self, session: ReplicaSession) -> None:
        super().__init__()
        self._session = session

    def on_deadline(self, now_ms: int) -> None:
        self.finished = True
        self._session.on_reread(now_ms)


class FollowerConnection:
    """Ends the sessions of a connection together with it: nobody else will ever continue them."""

    def __init__(self, sessions: FetchSessionCache, context: ClientContext) -> None:
        self._sessions = sessions
        self._context = context

    def on_closed(self, now_ms: int) -> None:
        for session in self._sessions.all():
            if isinstance(session, ReplicaSession) and session.connection is self._context:
                self._sessions.remove(session.session_id)


def note_connection(sessions: FetchSessionCache, session: ReplicaSession, context: ClientContext) -> None:
    """The session's request came over this connection."""
    session.connection = context
    if not context.is_follower:
        context.is_follower = True
        context.when_closed(FollowerConnection(sessions, context).on_closed)
