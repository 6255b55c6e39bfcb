"""Commits offsets for a group: what is to be committed, in order, tried again where that may help; nothing waits here.

A commit is made under the membership of the moment it is sent. One that the user waits for is tried again until its
deadline; one that nobody waits for is tried once, because a later commit is worth more than an old one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping

from moldau.client.connection.cluster import Cluster
from moldau.client.errors import (
    ClientError,
    CommitFailedError,
    RequestTimeoutError,
    RetriableCommitFailedError,
    error_for,
)
from moldau.client.group.coordinator import Coordinator
from moldau.client.group.membership import FOREVER_MS, Membership
from moldau.client.metrics.membership import GroupMeter
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from moldau.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    REQUEST_TIMED_OUT,
    STALE_MEMBER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_ID,
)
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_commit_response import OffsetCommitResponse
from moldau.protocol.uuids import ZERO_UUID

logger = logging.getLogger("moldau.client")

# From this version on, OffsetCommit names topics by id.
TOPIC_ID_VERSION = 10

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Callback = Callable[[Offsets, ClientError | None], None]

_MEMBERSHIP_REFUSED = (
    UNKNOWN_MEMBER_ID,
    ILLEGAL_GENERATION,
    FENCED_INSTANCE_ID,
    REBALANCE_IN_PROGRESS,
    STALE_MEMBER_EPOCH,
)
_COORDINATOR_ELSEWHERE = (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, REQUEST_TIMED_OUT)


class Commit:
    """One commit until it is done."""

    def __init__(
        self,
        offsets: Offsets,
        deadline_ms: int,
        patient: bool,
        callback: Callback | None = None,
        last: bool = False,
    ) -> None:
        self.offsets = offsets
        # Before the member leaves: not to wait behind a JoinGroup that has no response yet.
        self.last = last
        self.deadline_ms = deadline_ms
        # Tried again until the deadline.
        self.patient = patient
        self.callback = callback
        self.not_before_ms = 0
        self.failures = 0
        self.in_flight = False
        self.done = False
        self.error: ClientError | None = None


class Commits:
    """The commits of one consumer that are not done yet, oldest first."""

    def __init__(
        self,
        cluster: Cluster,
        coordinator: Coordinator,
        membership: Callable[[], Membership | None],
        identity: ConsumerGroupMetadata,
        request_timeout_ms: int,
        on_stale_topic: Callable[[str], None],
    ) -> None:
        """membership: None while partitions are assigned by the user; then identity is who commits.

        on_stale_topic: told the topics whose id the coordinator does not know.
        """
        self._on_stale_topic = on_stale_topic
        self._cluster = cluster
        self._coordinator = coordinator
        self._membership = membership
        self._identity = identity
        self._request_timeout_ms = request_timeout_ms
        self._open: deque[Commit] = deque()
        # Done, and the user has not been told yet.
        self.to_tell: deque[Commit] = deque()
        # Where responses are counted.
        self.meter: GroupMeter | None = None

    @property
    def pending(self) -> bool:
        return bool(self._open)

    def start(self, commit: Commit) -> Commit:
        if commit.offsets:
            self._open.append(commit)
        else:
            self._finish(commit, None)
        return commit

    def next_deadline_ms(self) -> int:
        if not self._open:
            return FOREVER_MS
        head = next((item for item in self._open if not item.in_flight), None)
        return min(
            [item.deadline_ms for item in self._open]
            + ([head.not_before_ms] if head is not None and self._coordinator.known else [])
        )

    def step(self, now_ms: int) -> None:
        """Sends what may be sent; gives up what is too late."""
        for commit in list(self._open):
            if commit.done:
                continue
            if now_ms >= commit.deadline_ms:
                self._finish(commit, _too_late(commit))
            elif commit.in_flight:
                continue
            elif now_ms < commit.not_before_ms or not self._coordinator.known:
                break  # the ones behind it must not overtake it
            else:
                self._send(commit, now_ms)

    def _send(self, commit: Commit, now_ms: int) -> None:
        membership = self._membership()
        identity = self._identity
        if membership is not None:
            try:
                membership.check_commit(commit.last)
            except ClientError as error:
                self._finish(commit, error)
                return
            identity = membership.metadata()
        request = _request(identity, commit.offsets, self._topic_id)
        named = any(row.topic_id == ZERO_UUID for row in request.topics)
        commit.in_flight = True

        def when_done(response: OffsetCommitResponse | None, error: ClientError | None) -> None:
            commit.in_flight = False
            if response is not None and self.meter is not None:
                self.meter.commits_ms.record(max(0, self._cluster.network.now_ms() - now_ms))
            if not commit.done:
                self._on_done(commit, identity.generation_id, response, error)

        timeout_ms = max(1, min(self._request_timeout_ms, commit.deadline_ms - now_ms))
        highest = TOPIC_ID_VERSION - 1 if named else None
        aside = commit.last and not _may_commit(membership)
        self._coordinator.send(request, OffsetCommitResponse, timeout_ms, when_done, highest, aside)

    def _topic_id(self, topic: str) -> bytes:
        found = self._cluster.topics.get(topic)
        return ZERO_UUID if found is None else found.topic_id

    def _on_done(
        self, commit: Commit, generation_id: int, response: OffsetCommitResponse | None, error: ClientError | None
    ) -> None:
        if response is not None:
            error = self._error_of(commit, generation_id, response)
        # The next heartbeat brings the epoch that the coordinator knows.
        may_pass = error is not None and (error.retriable or error.code == STALE_MEMBER_EPOCH)
        if error is None or not may_pass or not commit.patient:
            self._finish(commit, error)
            return
        commit.error = error
        commit.failures += 1
        commit.not_before_ms = self._cluster.network.now_ms() + self._cluster.backoff.delay_ms(commit.failures)

    def _error_of(self, commit: Commit, generation_id: int, response: OffsetCommitResponse) -> ClientError | None:
        """The first error that is not a topic's own; unauthorized topics are named together."""
        unauthorized: list[str] = []
        for topic in response.topics:
            name = topic.name or self._cluster.topic_name(topic.topic_id) or ""
            for row in topic.partitions:
                if row.error_code == NONE:
                    continue
                if row.error_code == TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.append(name)
                    continue
                return self._error_for(row.error_code, TopicPartition(name, row.partition_index), generation_id)
        if unauthorized:
            topics = ", ".join(dict.fromkeys(unauthorized))
            return error_for(TOPIC_AUTHORIZATION_FAILED, f"Offsets of these topics may not be committed: {topics}.")
        return None

    def _error_for(self, code: int, partition: TopicPartition, generation_id: int) -> ClientError:
        membership = self._membership()
        if code in _MEMBERSHIP_REFUSED and membership is not None:
            return membership.on_commit_refused(code, generation_id)
        if code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
            return CommitFailedError(_HAS_MEMBERS, code)
        if code in _COORDINATOR_ELSEWHERE:
            self._coordinator.forget(error_for(code).message)
        if code == UNKNOWN_TOPIC_ID:
            self._on_stale_topic(partition.topic)
        found = error_for(code)
        return error_for(code, f"The offset of {partition} was not committed: {found.message}")

    def _finish(self, commit: Commit, error: ClientError | None) -> None:
        commit.done = True
        commit.error = error
        if commit in self._open:
            self._open.remove(commit)
        if error is not None and not commit.patient:
            logger.warning("A commit failed: %s", error)
            if error.retriable:
                commit.error = RetriableCommitFailedError(error)
        if commit.callback is not None:
            self.to_tell.append(commit)


_HAS_MEMBERS = (
    "The offsets were not committed: the group has members, and only they may commit. A consumer with assigned"
    " partitions needs a group.id of its own."
)


def _may_commit(membership: Membership | None) -> bool:
    """Whether a commit needs no special treatment."""
    try:
        if membership is not None:
            membership.check_commit()
    except ClientError:
        return False
    return True


def _too_late(commit: Commit) -> ClientError:
    reason = f" {commit.error.message}" if commit.error is not None else ""
    return RequestTimeoutError(f"The offsets were not committed in time.{reason}")


def _request(
    identity: ConsumerGroupMetadata, offsets: Offsets, topic_id: Callable[[str], bytes]
) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for partition, row in offsets.items():
        topic = topics.get(partition.topic)
        if topic is None:
            topic = OffsetCommitRequestTopic(name=partition.topic, topic_id=topic_id(partition.topic))
            topics[partition.topic] = topic
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=row.offset,
                committed_leader_epoch=row.leader_epoch,
                committed_metadata=row.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=list(topics.values()),
    )
