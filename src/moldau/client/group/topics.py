"""What a group must know of topics: which exist, how many partitions they have, what their ids mean; never waits."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.client.assignors import GroupMetadata, PartitionReplicas
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ClientError, error_for
from moldau.client.group.membership import FOREVER_MS
from moldau.client.results import TopicPartition
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.primitives import Message

# topic -> its number of partitions, and their racks where the member has one
Snapshot = dict[str, tuple[int, tuple[frozenset[str], ...]]]


class GroupTopics:
    """Keeps the metadata of a group's topics young; one question at a time."""

    def __init__(self, cluster: Cluster, request_timeout_ms: int, age_max_ms: int, exclude_internal: bool) -> None:
        self._cluster = cluster
        self._request_timeout_ms = request_timeout_ms
        self._age_max_ms = age_max_ms
        self._exclude_internal = exclude_internal
        # What is to be known: topics by name and by id, and whether all topics are (what a pattern matches is there).
        self.names: set[str] = set()
        self.ids: set[bytes] = set()
        self.everything = False
        # Topics of which what is known turned out to be old, whatever its age.
        self.stale: set[str] = set()
        self._asking = False
        self._missing = False
        self._not_before_ms = 0
        self._failures = 0
        self._all_asked_ms: int | None = None
        self.problem: ClientError | None = None

    def next_deadline_ms(self) -> int:
        """When step() may ask for what is missing; what only grows old is asked for whenever it is called."""
        return self._not_before_ms if self._missing and not self._asking else FOREVER_MS

    def step(self, now_ms: int) -> None:
        """Asks for what is not known or was not asked for lately."""
        if self._asking:
            return
        if self.everything:
            asked_ms = self._all_asked_ms
            self._missing = asked_ms is None or now_ms - asked_ms >= self._age_max_ms
            rows, names = None, None
        else:
            names = sorted(name for name in self.names if name in self.stale or self._cluster.is_old(name))
            rows = [MetadataRequestTopic(name=name) for name in names]
            self._missing = bool(rows)
        if not self._missing:
            unknown = [topic_id for topic_id in self.ids if self._cluster.topic_name(topic_id) is None]
            rows, names = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in unknown], []
            self._missing = bool(unknown)
        if self._missing and now_ms >= self._not_before_ms:
            self._ask(rows, names)

    def is_known(self, names: Iterable[str]) -> bool:
        """Whether all of them were asked for lately, found or not."""
        return not any(self._cluster.is_old(name) and self._cluster.topic_error(name) is None for name in names)

    def exist(self, names: Iterable[str]) -> bool:
        """Whether all of them are among the topics that are known."""
        return all(name in self._cluster.topics for name in names)

    def all_known(self) -> bool:
        return self._all_asked_ms is not None

    def forget_all(self) -> None:
        """All topics are asked for once more before a pattern is matched."""
        self._all_asked_ms = None

    def resolve(self, topic_ids: Iterable[bytes]) -> dict[bytes, str]:
        """The names of topic ids as far as known."""
        found = {topic_id: self._cluster.topic_name(topic_id) for topic_id in topic_ids}
        return {topic_id: name for topic_id, name in found.items() if name is not None}

    def _ask(self, rows: list[MetadataRequestTopic] | None, names: list[str] | None) -> None:
        self._asking = True
        request: Message = MetadataRequest(
            topics=rows, allow_auto_topic_creation=bool(names) and self._cluster.auto_create_topics
        )

        def on_done(response: MetadataResponse | None, error: ClientError | None) -> None:
            self._asking = False
            if response is not None:
                self._cluster.replay_metadata(response, names)
                self.stale.difference_update(names or ())
                error = self._error_of(response)
                if names is None:
                    self._all_asked_ms = self._cluster.network.now_ms()
            self._failures = 0 if error is None else self._failures + 1
            pause_ms = 0 if error is None else self._cluster.backoff.delay_ms(self._failures)
            self._not_before_ms = self._cluster.network.now_ms() + pause_ms

        self._cluster.start_call(request, MetadataResponse, self._request_timeout_ms, on_done)

    def _error_of(self, response: MetadataResponse) -> ClientError | None:
        """What may pass makes for a pause, the rest is the user's to know."""
        found: ClientError | None = None
        for row in response.topics:
            error = self._cluster.topic_error(row.name) if row.name is not None else None
            if error is not None and not error.retriable:
                self.problem = error
            found = error or found
            if row.name is None and row.error_code != 0:
                found = error_for(row.error_code)
        return found

    def matching(self, pattern: re.Pattern[str]) -> set[str]:
        """The topics that the whole of the pattern matches."""
        return {
            name
            for name, topic in self._cluster.topics.items()
            if pattern.fullmatch(name) and not (topic.is_internal and self._exclude_internal)
        }

    def group_metadata(self, names: Iterable[str]) -> GroupMetadata:
        """What an assignor needs: the topics that exist, with the racks of their replicas."""
        racks = {broker.id: broker.rack for broker in self._cluster.brokers.values() if broker.rack}
        found: dict[str, list[PartitionReplicas]] = {}
        for name in sorted(names):
            topic = self._cluster.topics.get(name)
            if topic is None:
                continue
            found[name] = [
                PartitionReplicas(
                    TopicPartition(name, number),
                    frozenset(racks[node] for node in topic.partitions[number].replicas if node in racks),
                )
                for number in sorted(topic.partitions)
            ]
        return found

    def snapshot(self, names: Iterable[str], with_racks: bool) -> Snapshot:
        """What a new assignment would be different for."""
        return {
            name: (len(rows), tuple(row.racks for row in rows) if with_racks else ())
            for name, rows in self.group_metadata(names).items()
        }
