"""The client's side of a fetch session (KIP-227): only what changed since the last request is sent.

The broker keeps the partitions of the session. A request names those that are new or are to be read from another
place, and those to forget; the response leaves out partitions that have nothing to tell. When the broker does not know
the session any more, the next request names everything and starts a new one.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.client.results import TopicPartition
from moldau.protocol.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INCONSISTENT_TOPIC_ID,
    INVALID_FETCH_SESSION_EPOCH,
    NONE,
    UNKNOWN_TOPIC_ID,
)
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

NO_SESSION = 0
FIRST_EPOCH = 0
EPOCH_MAX = 0x7FFFFFFF

SESSION_ERRORS = {
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INCONSISTENT_TOPIC_ID,
    UNKNOWN_TOPIC_ID,
}


class Wanted(NamedTuple):
    """One partition as it is to be fetched."""

    topic_id: bytes
    fetch_offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    """The session with one broker."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._held: dict[TopicPartition, Wanted] = {}

    def fill(self, request: FetchRequest, wanted: dict[TopicPartition, Wanted]) -> None:
        """Puts into the request what the broker does not know yet."""
        full = self.epoch == FIRST_EPOCH
        if any(item in self._held and self._held[item].topic_id != row.topic_id for item, row in wanted.items()):
            full = True  # a topic was deleted and created again
        if full:
            self.epoch = FIRST_EPOCH
            self._held = {}
        request.session_id = self.session_id
        request.session_epoch = self.epoch
        request.topics = _topics({item: row for item, row in wanted.items() if self._held.get(item) != row})
        request.forgotten_topics_data = _forgotten({i: row for i, row in self._held.items() if i not in wanted})
        self._held = dict(wanted)

    def on_response(self, session_id: int, error_code: int) -> None:
        if error_code in SESSION_ERRORS:
            self.reset()
            if error_code == FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
        elif error_code != NONE or session_id == NO_SESSION:
            # Without a session the broker has forgotten everything: say everything again.
            self.session_id = session_id
            self.reset()
        else:
            self.session_id = session_id
            self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def reset(self) -> None:
        """The next request names everything and starts a new session in place of this one."""
        self.epoch = FIRST_EPOCH
        self._held = {}


def _topics(rows: dict[TopicPartition, Wanted]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (name, index), row in rows.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic=name, topic_id=row.topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=row.leader_epoch,
                fetch_offset=row.fetch_offset,
                partition_max_bytes=row.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(rows: dict[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    topics: dict[str, ForgottenTopic] = {}
    for (name, index), row in rows.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = ForgottenTopic(topic=name, topic_id=row.topic_id, partitions=[])
        topic.partitions.append(index)
    return list(topics.values())
