"""Which partitions a fetch is about: those of the request, or those of its session with the request's changes.

Four cases, as in Kafka's FetchManager: a full fetch that opens a session (epoch 0), one that wants none (epoch -1), an
incremental fetch of an open session, and an incremental fetch whose session or epoch is not known (an error).
"""

from __future__ import annotations

from typing import Final

from moldau.node.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchedPartition,
    FetchSession,
    SessionKey,
    session_key,
)
from moldau.node.node import Node
from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest
from moldau.protocol.uuids import ZERO_UUID
from moldau.replication.partition import PartitionRead

FIRST_SESSION_VERSION: Final = 7
FIRST_TOPIC_ID_VERSION: Final = 13


class FetchContext:
    """The partitions of one fetch, in reading order."""

    def __init__(self) -> None:
        self.error = 0
        self.session_id = NO_SESSION
        self.session: FetchSession | None = None
        self.wants_session = False  # and gets one with its response
        self.epoch = FINAL_EPOCH
        self.incremental = False
        self.targets: list[FetchedPartition] = []

    def should_tell(self, target: FetchedPartition, read: PartitionRead) -> bool:
        """Whether the partition is in the response; an incremental one leaves out what did not change."""
        if not self.incremental:
            return True
        records = read.records
        return (
            (records is not None and records.size > 0)
            or read.error != 0
            or read.error != target.sent_error
            or read.high_watermark != target.sent_high_watermark
            or read.log_start_offset != target.sent_log_start_offset
            or read.diverging_end_offset >= 0
            or read.preferred_read_replica >= 0
        )

    def finish(self, node: Node, reads: list[PartitionRead], version: int, now_ms: int) -> None:
        """The client is told: notes what, and partitions that had their turn go to the end of the line."""
        if self.wants_session:
            open_session(node, self, version, now_ms)
        session = self.session
        if session is None:
            return
        returned: list[FetchedPartition] = []
        for index in range(len(self.targets)):
            target = self.targets[index]
            read = reads[index]
            target.sent_high_watermark = read.high_watermark
            target.sent_log_start_offset = read.log_start_offset
            # An error is told again in every response until it is gone.
            target.sent_error = read.error
            if self.incremental:
                records = read.records
                if read.error != 0 or (records is not None and records.size > 0):
                    returned.append(target)
        for target in returned:
            session.move_to_end(target)
        session.last_used_ms = now_ms

    def error_when_throttled(self) -> int:
        """Another fetch of the session may have come before this one could be answered."""
        session = self.session
        return errors.INVALID_FETCH_SESSION_EPOCH if session is not None and session.epoch != self.epoch else 0


def open_context(node: Node, request: FetchRequest, version: int, now_ms: int) -> FetchContext:
    context = FetchContext()
    cache = node.fetch_sessions
    epoch = request.session_epoch if version >= FIRST_SESSION_VERSION else FINAL_EPOCH
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != NO_SESSION:
            cache.remove(request.session_id)
        context.targets = list_targets(node, request, version)
        context.wants_session = epoch == INITIAL_EPOCH
        return context
    session = cache.get(request.session_id)
    if session is None:
        context.error = errors.FETCH_SESSION_ID_NOT_FOUND
    elif session.epoch != epoch:
        context.error = errors.INVALID_FETCH_SESSION_EPOCH
    elif session.uses_topic_ids != (version >= FIRST_TOPIC_ID_VERSION):
        context.error = errors.FETCH_SESSION_TOPIC_ID_ERROR
    else:
        continue_session(node, context, session, request, version, now_ms)
    return context


def open_session(node: Node, context: FetchContext, version: int, now_ms: int) -> None:
    uses_ids = version >= FIRST_TOPIC_ID_VERSION
    session = node.fetch_sessions.maybe_create(node.new_session_id(), uses_ids, False, now_ms)
    if session is None:
        return
    for target in context.targets:
        session.partitions[session_key(target)] = target
    context.session = session
    context.session_id = session.session_id


def continue_session(
    node: Node, context: FetchContext, session: FetchSession, request: FetchRequest, version: int, now_ms: int
) -> None:
    for target in list_targets(node, request, version):
        known = session.partitions.get(session_key(target))
        if known is None:
            session.partitions[session_key(target)] = target
        else:
            known.fetch_offset = target.fetch_offset
            known.max_bytes = target.max_bytes
            known.current_leader_epoch = target.current_leader_epoch
            known.last_fetched_epoch = target.last_fetched_epoch
    for forgotten in request.forgotten_topics_data:
        name = topic_name(node, forgotten.topic, forgotten.topic_id, version)
        for index in forgotten.partitions:
            topic_id = forgotten.topic_id if version >= FIRST_TOPIC_ID_VERSION else ZERO_UUID
            session.partitions.pop(session_key(FetchedPartition(name, topic_id, index)), None)
    if not session.partitions:
        # Nothing left to fetch: Kafka drops the session and responds without one.
        node.fetch_sessions.remove(session.session_id)
        return
    session.bump_epoch()
    node.fetch_sessions.touch(session, now_ms)
    context.session = session
    context.session_id = session.session_id
    context.epoch = session.epoch
    context.incremental = True
    context.targets = list(session.partitions.values())
    for target in context.targets:
        if not target.topic:
            # The topic may have become known since the client named it.
            target.topic = node.replicas.topic_name(target.topic_id) or ""


def list_targets(node: Node, request: FetchRequest, version: int) -> list[FetchedPartition]:
    """The partitions of the request; one that is named twice counts once, with what was said last, as in Kafka."""
    targets: dict[SessionKey, FetchedPartition] = {}
    for topic in request.topics:
        name = topic_name(node, topic.topic, topic.topic_id, version)
        topic_id = topic.topic_id if version >= FIRST_TOPIC_ID_VERSION else ZERO_UUID
        for partition in topic.partitions:
            target = target_of(name, topic_id, partition)
            targets[session_key(target)] = target
    return list(targets.values())


def target_of(name: str, topic_id: bytes, partition: FetchPartition) -> FetchedPartition:
    target = FetchedPartition(name, topic_id, partition.partition)
    target.fetch_offset = partition.fetch_offset
    target.max_bytes = partition.partition_max_bytes
    target.current_leader_epoch = partition.current_leader_epoch
    target.last_fetched_epoch = partition.last_fetched_epoch
    return target


def topic_name(node: Node, name: str, topic_id: bytes, version: int) -> str:
    """The topic's name; empty when an id is unknown."""
    if version < FIRST_TOPIC_ID_VERSION:
        return name
    return node.replicas.topic_name(topic_id) or ""
