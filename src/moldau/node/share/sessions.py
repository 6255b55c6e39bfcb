"""Share sessions: which partitions a member fetches from this broker, and the number its next request must have.

A session ends with the epoch -1, with a new one of the same member, or with its connection; time does not end it, nor
do other sessions. Kafka: ShareSessionCache, ShareSession.
"""

from __future__ import annotations

from typing import Final

from moldau.protocol.errors import (
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
    KafkaError,
)

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 0x7FFFFFFF

SessionKey = tuple[str, str]
"""Group and member."""
PlaceKey = tuple[bytes, int]
"""Topic id and partition."""


class SessionPartition:
    """One partition of a session; `is_due` if the next response must mention it whatever there is to say."""

    __slots__ = ("index", "is_due", "topic_id")

    def __init__(self, topic_id: bytes, index: int) -> None:
        self.topic_id = topic_id
        self.index = index
        self.is_due = True


class ShareSession:
    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.next_epoch = 1
        self.partitions: dict[PlaceKey, SessionPartition] = {}

    def add(self, places: list[PlaceKey]) -> None:
        for place in places:
            if place not in self.partitions:
                self.partitions[place] = SessionPartition(place[0], place[1])

    def remove(self, places: list[PlaceKey]) -> None:
        """What the member holds there stays acquired; it can still acknowledge it."""
        for place in places:
            self.partitions.pop(place, None)

    def move_to_end(self, place: PlaceKey) -> None:
        found = self.partitions.pop(place, None)
        if found is not None:
            self.partitions[place] = found

    def in_order(self, epoch: int) -> list[SessionPartition]:
        """Another one comes first each time, so that the first does not get everything."""
        found = list(self.partitions.values())
        if epoch <= 0 or len(found) < 2:
            return found
        at = epoch % len(found)
        return found[at:] + found[:at]

    def take_epoch(self, epoch: int) -> None:
        if epoch != self.next_epoch:
            raise KafkaError(INVALID_SHARE_SESSION_EPOCH)
        self.next_epoch = 1 if epoch == EPOCH_MAX else epoch + 1


class ShareSessions:
    """All sessions of a broker."""

    def __init__(self, sessions_max: int) -> None:
        self.sessions_max = sessions_max
        self.sessions: dict[SessionKey, ShareSession] = {}

    def for_fetch(
        self, key: SessionKey, epoch: int, added: list[PlaceKey], removed: list[PlaceKey], acknowledges: bool
    ) -> ShareSession:
        """The session of a ShareFetch, as it is from now on; one with the epoch -1 is still there."""
        if epoch == INITIAL_EPOCH:
            return self._begin(key, added, removed, acknowledges)
        session = self._find(key)
        if epoch != FINAL_EPOCH:
            session.take_epoch(epoch)
            session.add(added)
            session.remove(removed)
        return session

    def for_acknowledge(self, key: SessionKey, epoch: int) -> ShareSession:
        if epoch == INITIAL_EPOCH:
            raise KafkaError(INVALID_SHARE_SESSION_EPOCH)
        session = self._find(key)
        if epoch != FINAL_EPOCH:
            session.take_epoch(epoch)
        return session

    def _begin(
        self, key: SessionKey, added: list[PlaceKey], removed: list[PlaceKey], acknowledges: bool
    ) -> ShareSession:
        if acknowledges:
            raise KafkaError(INVALID_REQUEST)
        if key not in self.sessions and len(self.sessions) >= self.sessions_max:
            raise KafkaError(SHARE_SESSION_LIMIT_REACHED)
        session = self.sessions[key] = ShareSession(key)
        session.add(added)
        session.remove(removed)
        return session

    def _find(self, key: SessionKey) -> ShareSession:
        session = self.sessions.get(key)
        if session is None:
            raise KafkaError(SHARE_SESSION_NOT_FOUND)
        return session

    def end(self, session: ShareSession) -> bool:
        """False if it is over already, or another one has taken its place."""
        if self.sessions.get(session.key) is not session:
            return False
        del self.sessions[session.key]
        return True

    def has_group(self, group_id: str) -> bool:
        return any(key[0] == group_id for key in self.sessions)
