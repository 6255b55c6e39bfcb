"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only tells what changed.

A session is a dict of partitions in the order they will be read. Partitions that returned data move to the end, so that
every partition gets its turn under a size limit. Kafka keeps the same in FetchSession.scala.
"""

from __future__ import annotations

from typing import Final

from moldau.protocol.uuids import ZERO_UUID
from moldau.replication.waiter import LogListener

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
EVICTION_MS_MIN: Final = 120_000
EPOCH_MAX: Final = 2147483647

SessionKey = tuple[str, bytes, int]


class FetchedPartition(LogListener):
    """One partition as a client wants it read, and what it was told about it last."""

    def __init__(self, topic: str, topic_id: bytes, index: int) -> None:
        super().__init__()
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.fetch_offset = 0
        self.max_bytes = 0
        self.current_leader_epoch = -1
        self.last_fetched_epoch = -1
        self.log_start_offset = -1
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.sent_error = -1


def session_key(partition: FetchedPartition) -> SessionKey:
    # By id where the client uses ids: the name may become known only later.
    if partition.topic_id != ZERO_UUID:
        return ("", partition.topic_id, partition.index)
    return (partition.topic, partition.topic_id, partition.index)


class FetchSession:
    """The partitions of one client, kept between its requests."""

    def __init__(self, session_id: int, uses_topic_ids: bool, privileged: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.privileged = privileged
        self.epoch = INITIAL_EPOCH + 1
        self.last_used_ms = now_ms
        self.partitions: dict[SessionKey, FetchedPartition] = {}

    def close(self) -> None:
        """Nobody fetches with it any more."""

    def bump_epoch(self) -> None:
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def move_to_end(self, partition: FetchedPartition) -> None:
        key = session_key(partition)
        if self.partitions.get(key) is partition:
            del self.partitions[key]
            self.partitions[key] = partition


class FetchSessionCache:
    """All sessions of a broker, at most `max.incremental.fetch.session.cache.slots`."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.evictions_total = 0
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def all(self) -> list[FetchSession]:
        return list(self._sessions.values())

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """Marks it as used; the dict is ordered by last use."""
        session.last_used_ms = now_ms
        del self._sessions[session.session_id]
        self._sessions[session.session_id] = session

    def maybe_create(self, session_id: int, uses_topic_ids: bool, privileged: bool, now_ms: int) -> FetchSession | None:
        """A new session, or None when there is no room: the client then simply sends full requests."""
        session = FetchSession(session_id, uses_topic_ids, privileged, now_ms)
        return session if self.maybe_add(session, now_ms) else None

    def maybe_add(self, session: FetchSession, now_ms: int) -> bool:
        """Takes the session in, if there is room for it or somebody else's place can be had."""
        if session.session_id in self._sessions:
            return False
        if len(self._sessions) >= self.slots and not self._maybe_evict(session.privileged, now_ms):
            return False
        self._sessions[session.session_id] = session
        return True

    def _maybe_evict(self, privileged: bool, now_ms: int) -> bool:
        """Makes room by dropping the session unused for longest, if it is stale or a follower needs its place."""
        for session_id, session in self._sessions.items():
            stale = now_ms - session.last_used_ms > EVICTION_MS_MIN
            if stale or (privileged and not session.privileged):
                self.remove(session_id)
                self.evictions_total += 1
                return True
        return False
