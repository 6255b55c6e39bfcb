"""Committers of a simulated cluster: offsets of a group never go back, whichever broker coordinates it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_commit_response import OffsetCommitResponse
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.offset_fetch_response import OffsetFetchResponse
from moldau.protocol.primitives import Message
from moldau.sim.cluster.client import NOBODY, ClusterClient
from moldau.sim.groups.committer import OffsetModel, text_of
from moldau.sim.kernel.world import Violation

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

TRANSIENT_ERRORS = (
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NOT_COORDINATOR,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.REQUEST_TIMED_OUT,
    errors.KAFKA_STORAGE_ERROR,
    errors.NOT_ENOUGH_REPLICAS,
    errors.BROKER_NOT_AVAILABLE,
)


class ClusterCommitter:
    def __init__(self, setting: ClusterWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.group_id = f"group-{name}"
        self.client = ClusterClient(setting, name)
        self.rng = self.client.rng
        self.coordinator = NOBODY
        self.offsets: dict[tuple[str, int], OffsetModel] = {}
        self.asking = False
        self.last_fetch_ms = 0
        self._sent: dict[tuple[str, int], int] = {}
        self.world.schedule(self.rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(20, 150), self.tick)
        # A commit of a connection that was given up may still arrive: one that overtook it would go back then.
        if self.asking or self.client.requests_on_the_way:
            return
        if self.coordinator == NOBODY:
            self._ask(self.client.any_node(), FindCoordinatorRequest(coordinator_keys=[self.group_id]), 4)
        elif self.rng.random() < 0.6 and not self.setting.quiet:
            self._commit()
        elif self.offsets:
            self._ask(self.coordinator, self._fetch_request(), 9)

    def _ask(self, node_id: int, request: Message, version: int) -> None:
        self.asking = True
        self.client.ask(node_id, request, version, self._on_response)

    def _on_response(self, response: Message | None) -> None:
        self.asking = False
        if isinstance(response, FindCoordinatorResponse):
            row = response.coordinators[0]
            if row.error_code == errors.NONE:
                self.coordinator = row.node_id if row.node_id in self.setting.client_ports else NOBODY
            elif row.error_code not in TRANSIENT_ERRORS:
                raise Violation(f"a coordinator can be found: {self.name} got {errors.error_name(row.error_code)}")
        elif isinstance(response, OffsetCommitResponse):
            self._on_committed(response)
        elif isinstance(response, OffsetFetchResponse):
            self._on_fetched(response)
        else:
            self.coordinator = NOBODY

    def _check_code(self, code: int, promise: str) -> bool:
        if code == errors.NONE:
            return True
        if code not in TRANSIENT_ERRORS:
            raise Violation(f"{promise}: {self.name} got {errors.error_name(code)}")
        self.coordinator = NOBODY
        return False

    def _commit(self) -> None:
        topics = [topic for topic in self.setting.model.present() if not topic.transient]
        if not topics:
            return
        topic = self.rng.choice(topics)
        index = self.rng.randrange(len(topic.partitions))
        place = (topic.name, index)
        if place not in self.offsets:
            self.offsets[place] = OffsetModel(f"{self.group_id} {topic.name}-{index}")
        offset = self.offsets[place].next_offset()
        row = OffsetCommitRequestPartition(index, offset, -1, text_of(offset))
        self._sent = {place: offset}
        request = OffsetCommitRequest(self.group_id, topics=[OffsetCommitRequestTopic(topic.name, partitions=[row])])
        self._ask(self.coordinator, request, 9)

    def _on_committed(self, response: OffsetCommitResponse) -> None:
        for topic in response.topics:
            for row in topic.partitions:
                if self._check_code(row.error_code, "a commit is answered"):
                    place = (topic.name, row.partition_index)
                    self.offsets[place].on_told(self._sent[place])
                    self.setting.committed_offsets += 1

    def _fetch_request(self) -> OffsetFetchRequest:
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(self.offsets):
            topics.setdefault(topic, []).append(index)
        rows = [OffsetFetchRequestTopics(name, partition_indexes=indexes) for name, indexes in topics.items()]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(self.group_id, topics=rows)], require_stable=self.rng.random() < 0.3
        )

    def _on_fetched(self, response: OffsetFetchResponse) -> None:
        group = response.groups[0]
        if not self._check_code(group.error_code, "a fetch of offsets is answered"):
            return
        self.last_fetch_ms = self.world.now_ms
        for topic in group.topics:
            for row in topic.partitions:
                if row.error_code != errors.NONE:
                    raise Violation(f"an offset can be read: {self.name} got {errors.error_name(row.error_code)}")
                self.offsets[topic.name, row.partition_index].check(row.committed_offset, row.metadata)
                self.setting.checked_offsets += 1
