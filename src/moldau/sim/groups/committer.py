"""Simulated committers: each moves the offsets of its own group forward, reads them back, and recalls what it was told.

Kafka's promise for one node: a committed offset that was acknowledged or read never goes back, whoever dies. Only a
power loss may take commits, and only where they are not synced first; then the offset is one that was sent before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
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
from moldau.sim.kernel.world import Violation
from moldau.sim.node.audit import Auditor, NotReady
from moldau.sim.node.client import SimClient

if TYPE_CHECKING:
    from moldau.sim.groups.world import GroupWorld

NOTHING = -1
LONGEST_DELAY_MS = 400
TRANSIENT_ERRORS = (
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NOT_COORDINATOR,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
)

Place = tuple[str, int]
"""Topic and partition."""


class OffsetModel:
    """What one group's offset in one partition may be: between what was told and what was sent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told = NOTHING
        self.sent = NOTHING

    def next_offset(self) -> int:
        self.sent += 1
        return self.sent

    def on_told(self, offset: int) -> None:
        self.told = max(self.told, offset)

    def check(self, offset: int, metadata: str | None, told_before: int | None = None) -> None:
        """`told_before` is what was told when the question was asked, if something may have been told since."""
        told = self.told if told_before is None else min(self.told, told_before)
        if offset < told:
            raise Violation(f"no committed offset goes back: {self.name} is at {offset} after {told}")
        if offset > self.sent:
            raise Violation(f"no offset is invented: {self.name} is at {offset}, sent was {self.sent}")
        if offset != NOTHING and metadata != text_of(offset):
            raise Violation(f"an offset keeps its metadata: {self.name} has {metadata!r} at {offset}")
        self.told = max(self.told, offset)

    def on_power_loss(self) -> None:
        """What was not synced may be gone."""
        self.told = NOTHING


def text_of(offset: int) -> str:
    return f"offset {offset}"


class SimCommitter:
    def __init__(self, setting: GroupWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.group_id = f"group-{name}"
        self.name = name
        self.rng = setting.world.derived_rng(f"committer {name}")
        self.client = SimClient(setting.world, setting.host, name)
        self.offsets: dict[Place, OffsetModel] = {}
        self.asking = False
        self.must_look = True
        self.quiet_until_ms = 0
        self.world.schedule(self.rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        self.world.schedule(self.rng.randint(5, 80), self.tick)
        if self.setting.paused or self.asking or self.world.now_ms < self.quiet_until_ms:
            return
        if self.must_look:
            self._find_coordinator()
        elif self.rng.random() < 0.7:
            self._commit()
        elif self.offsets:
            self._fetch()

    def _ask(self, request: Message, version: int, life: int) -> None:
        self.asking = True
        self.client.call(request, version, lambda response: self._on_response(response, life))

    def _on_response(self, response: Message | None, losses: int) -> None:
        self.asking = False
        if response is None:
            # The commit may be on its way still: one that overtook it would go back when it arrives.
            self.quiet_until_ms = self.world.now_ms + LONGEST_DELAY_MS
        if response is None or losses != self.setting.data_losses:
            self.must_look = True
        elif isinstance(response, OffsetCommitResponse):
            self._on_committed(response)
        elif isinstance(response, OffsetFetchResponse):
            self._on_fetched(response)
        else:
            self.must_look = False

    def _find_coordinator(self) -> None:
        self._ask(FindCoordinatorRequest(coordinator_keys=[self.group_id]), 4, self.setting.data_losses)

    # Commit

    def _commit(self) -> None:
        topics = [topic for topic in self.setting.model.present() if not topic.transient]
        if not topics:
            return
        topic = self.rng.choice(topics)
        count = len(topic.partitions)
        rows = []
        for index in sorted(self.rng.sample(range(count), self.rng.randint(1, count))):
            offset = self._model(topic.name, index).next_offset()
            rows.append(OffsetCommitRequestPartition(index, offset, -1, text_of(offset)))
        request = OffsetCommitRequest(self.group_id, topics=[OffsetCommitRequestTopic(topic.name, partitions=rows)])
        self._sent = {(topic.name, row.partition_index): row.committed_offset for row in rows}
        self._ask(request, self.rng.choice((5, 8, 9)), self.setting.data_losses)

    def _model(self, topic: str, index: int) -> OffsetModel:
        place = (topic, index)
        if place not in self.offsets:
            self.offsets[place] = OffsetModel(f"{self.group_id} {topic}-{index}")
        return self.offsets[place]

    def _on_committed(self, response: OffsetCommitResponse) -> None:
        for topic in response.topics:
            for row in topic.partitions:
                self._check_code(row.error_code, "a commit is answered")
                if row.error_code == errors.NONE:
                    place = (topic.name, row.partition_index)
                    self.offsets[place].on_told(self._sent[place])
                    self.setting.committed_offsets += 1

    def _check_code(self, code: int, promise: str) -> None:
        if code != errors.NONE:
            if code not in TRANSIENT_ERRORS:
                raise Violation(f"{promise}: {self.name} got {errors.error_name(code)}")
            self.must_look = True

    # Fetch

    def _request(self) -> OffsetFetchRequest:
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(self.offsets):
            topics.setdefault(topic, []).append(index)
        rows = [OffsetFetchRequestTopics(name, partition_indexes=indexes) for name, indexes in topics.items()]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group_id, topics=rows)])

    def _fetch(self) -> None:
        self._ask(self._request(), self.rng.choice((8, 9)), self.setting.data_losses)

    def _on_fetched(self, response: OffsetFetchResponse) -> None:
        group = response.groups[0]
        self._check_code(group.error_code, "a fetch of offsets is answered")
        if group.error_code == errors.NONE:
            self._check(response)

    def _check(self, response: OffsetFetchResponse) -> None:
        for topic in response.groups[0].topics:
            for row in topic.partitions:
                if row.error_code != errors.NONE:
                    raise Violation(f"an offset can be read: {self.name} got {errors.error_name(row.error_code)}")
                self.offsets[topic.name, row.partition_index].check(row.committed_offset, row.metadata)
                self.setting.checked_offsets += 1

    # Audit

    def audit(self, auditor: Auditor, *, power_lost: bool) -> None:
        """Asks for all offsets after a restart."""
        if power_lost:
            for model in self.offsets.values():
                model.on_power_loss()
        if not self.offsets:
            return
        auditor.ask(FindCoordinatorRequest(coordinator_keys=[self.group_id]), 4)
        response = auditor.ask(self._request(), 9)
        assert isinstance(response, OffsetFetchResponse)
        code = response.groups[0].error_code
        if code in TRANSIENT_ERRORS:
            raise NotReady(f"offsets of {self.group_id}: {errors.error_name(code)}")
        if code != errors.NONE:
            raise Violation(f"a fetch of offsets is answered: {self.group_id} got {errors.error_name(code)}")
        self._check(response)
