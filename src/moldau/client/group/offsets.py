"""Asks a group's coordinator which offsets are committed; nothing here waits."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ClientError, UnsupportedVersionError, error_for
from moldau.client.group.coordinator import Coordinator
from moldau.client.group.membership import FOREVER_MS
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, Outcome, TopicPartition
from moldau.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.offset_fetch_response import OffsetFetchResponse
from moldau.protocol.uuids import ZERO_UUID

# From these versions on, OffsetFetch asks for many groups, and names topics by id.
MANY_GROUPS_VERSION = 8
TOPIC_ID_VERSION = 10

Committed = dict[TopicPartition, Outcome[OffsetAndMetadata | None]]


class CommittedOffsets:
    """The questions of one consumer about what its group committed; one at a time."""

    def __init__(
        self,
        cluster: Cluster,
        coordinator: Coordinator,
        identity: Callable[[], ConsumerGroupMetadata],
        require_stable: bool,
        request_timeout_ms: int,
        on_stale_topic: Callable[[str], None],
    ) -> None:
        """identity: with a member epoch where the group has the protocol of KIP-848, so that a stale one is noticed.

        on_stale_topic: told the topics whose id the coordinator does not know.
        """
        self._on_stale_topic = on_stale_topic
        self._cluster = cluster
        self._coordinator = coordinator
        self._identity = identity
        self._require_stable = require_stable
        self._request_timeout_ms = request_timeout_ms
        self._many_groups = True
        self.asking = False
        self._not_before_ms = 0
        self._failures = 0

    def next_deadline_ms(self) -> int:
        return self._not_before_ms if self._not_before_ms > 0 and not self.asking else FOREVER_MS

    def ask(self, partitions: Collection[TopicPartition], now_ms: int, when_done: Callable[[Committed], None]) -> bool:
        """when_done gets an outcome for each partition, None without a committed offset; False if not possible now."""
        if self.asking or not partitions or not self._coordinator.known or now_ms < self._not_before_ms:
            return False
        self.asking = True
        request, highest = self._request(partitions)
        asked = list(partitions)

        def on_done(response: OffsetFetchResponse | None, error: ClientError | None) -> None:
            self.asking = False
            if isinstance(error, UnsupportedVersionError) and self._many_groups:
                self._many_groups = False
                error = error_for(COORDINATOR_NOT_AVAILABLE, "The coordinator is asked in an older version.")
            if response is not None:
                found, error = self._read(response, asked)
            if error is not None:
                found = {item: Outcome(error=error) for item in asked}
            self._pause(any(row.error is not None and row.error.retriable for row in found.values()))
            when_done(found)

        self._coordinator.send(request, OffsetFetchResponse, self._request_timeout_ms, on_done, highest)
        return True

    def _pause(self, failed: bool) -> None:
        self._failures = self._failures + 1 if failed else 0
        delay_ms = self._cluster.backoff.delay_ms(self._failures) if failed else 0
        self._not_before_ms = self._cluster.network.now_ms() + delay_ms if failed else 0

    def _request(self, partitions: Collection[TopicPartition]) -> tuple[OffsetFetchRequest, int | None]:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        identity = self._identity()
        if not self._many_groups:
            old = [OffsetFetchRequestTopic(name=name, partition_indexes=items) for name, items in by_topic.items()]
            request = OffsetFetchRequest(group_id=identity.group_id, topics=old, require_stable=self._require_stable)
            return request, MANY_GROUPS_VERSION - 1
        rows = []
        for name, items in by_topic.items():
            known = self._cluster.topics.get(name)
            topic_id = ZERO_UUID if known is None else known.topic_id
            rows.append(OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=items))
        group = OffsetFetchRequestGroup(
            group_id=identity.group_id,
            member_id=identity.member_id or None,
            member_epoch=identity.generation_id,
            topics=rows,
        )
        named = any(row.topic_id == ZERO_UUID for row in rows)
        request = OffsetFetchRequest(groups=[group], require_stable=self._require_stable)
        return request, TOPIC_ID_VERSION - 1 if named else None

    def _read(self, response: OffsetFetchResponse, asked: list[TopicPartition]) -> tuple[Committed, ClientError | None]:
        code = response.groups[0].error_code if response.groups else response.error_code
        if code != NONE:
            if code in (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR):
                self._coordinator.forget(error_for(code).message)
            return {}, error_for(code)
        found: Committed = {}
        for topic in response.groups[0].topics if response.groups else ():
            name = topic.name or self._cluster.topic_name(topic.topic_id) or ""
            for row in topic.partitions:
                partition = TopicPartition(name, row.partition_index)
                committed = OffsetAndMetadata(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
                found[partition] = self._outcome(partition, row.error_code, committed)
        for old in response.topics:
            for item in old.partitions:
                partition = TopicPartition(old.name, item.partition_index)
                committed = OffsetAndMetadata(item.committed_offset, item.committed_leader_epoch, item.metadata or "")
                found[partition] = self._outcome(partition, item.error_code, committed)
        for partition in asked:
            found.setdefault(partition, Outcome(None))
        return found, None

    def _outcome(
        self, partition: TopicPartition, code: int, committed: OffsetAndMetadata
    ) -> Outcome[OffsetAndMetadata | None]:
        if code == UNKNOWN_TOPIC_ID:
            self._on_stale_topic(partition.topic)
        if code == UNKNOWN_TOPIC_OR_PARTITION:
            return Outcome(error=error_for(code, f"Partition {partition} does not exist."))
        if code != NONE:
            return Outcome(error=error_for(code))
        return Outcome(committed if committed.offset >= 0 else None)
