"""The last look at a simulated cluster that is whole again: every replica leads in turn and has everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.sim.cluster.checks import node_of
from moldau.sim.cluster.client import ClusterClient
from moldau.sim.kernel.world import Violation
from moldau.sim.models.partition import LogView, ReadRecord
from moldau.sim.models.replicated_topics import GONE, PRESENT, ReplicatedTopic, check_log
from moldau.sim.node.consumer import read_batches

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

EARLIEST, LATEST = -2, -1
SETTLE_MS_MAX = 20_000
RESPONSE_MS_MAX = 10_000
PREFERRED = 0
TRIES_MAX = 100


class NotNow(Exception):
    """Somebody else leads by now, or the leader does not know yet where its log ends."""


class ClusterAudit:
    def __init__(self, setting: ClusterWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.client = ClusterClient(setting, "audit")
        self.views: dict[tuple[bytes, int], LogView] = {}

    def run(self) -> None:
        self.check_topics()
        rotations = max((topic.replication_factor for topic in self.setting.model.present()), default=0)
        for number in range(rotations):
            if number > 0:
                self.rotate()
            for topic in self.setting.model.present():
                for index in range(len(topic.partitions)):
                    self.check_partition(topic, index)
            self.setting.checks.look_at_all()
            self.setting.checks.check_what_is_committed_is_on_every_replica_that_can_be_elected()
        self.check_replicas_are_equal()
        self.check_images_are_equal()
        self.check_committed_offsets()

    # Topics

    def check_topics(self) -> None:
        image = self.setting.newest_image()
        for topic in self.setting.model.topics:
            there = topic.topic_id in image.topics_by_id
            if topic.state == PRESENT and not there:
                raise Violation(f"a topic whose creation was acknowledged exists: {topic.name} does not")
            if topic.state == GONE and there:
                raise Violation(f"a topic whose deletion was acknowledged does not exist: {topic.name} does")

    # Leaders in turn

    def rotate(self) -> None:
        """The second replica of every partition becomes the first, and the leader."""
        image = self.setting.newest_image()
        topics = []
        for topic in image.topics_by_id.values():
            rows = [
                ReassignablePartition(index, [*partition.replicas[1:], partition.replicas[0]])
                for index, partition in topic.partitions.items()
            ]
            topics.append(ReassignableTopic(topic.name, rows))
        self.ask_any(AlterPartitionReassignmentsRequest(5000, True, topics), 1)
        self.wait_until(self.setting.all_is_well, "replicas can be put into another order")
        self.ask_any(ElectLeadersRequest(PREFERRED, None, 5000), 2)
        self.wait_until(self._preferred_lead, "every replica can lead")

    def _preferred_lead(self) -> bool:
        image = self.setting.newest_image()
        return self.setting.all_is_well() and all(
            partition.leader == partition.replicas[0]
            for topic in image.topics_by_id.values()
            for partition in topic.partitions.values()
        )

    def wait_until(self, condition: Callable[[], bool], promise: str) -> None:
        if not self.world.run_until(condition, SETTLE_MS_MAX):
            raise Violation(f"{promise}: {self.setting.what_is_wrong()}")

    # Requests

    def ask(self, node_id: int, request: Message, version: int) -> Message:
        responses: list[Message | None] = []
        self.client.ask(node_id, request, version, responses.append, RESPONSE_MS_MAX)
        self.world.run_until(lambda: bool(responses), RESPONSE_MS_MAX + 1)
        response = responses[0] if responses else None
        if response is None:
            raise Violation(f"every request is answered: {request!r} by {node_id}")
        return response

    def ask_any(self, request: Message, version: int) -> Message:
        return self.ask(self.client.any_node(), request, version)

    def leader_of(self, topic: ReplicatedTopic, index: int) -> int:
        partition = self.setting.newest_image().partition(topic.topic_id, index)
        assert partition is not None
        return partition.leader

    # Reading

    def check_partition(self, topic: ReplicatedTopic, index: int) -> None:
        problem = ""
        for _ in range(TRIES_MAX):
            try:
                self.check_partition_at(topic, index, self.leader_of(topic, index))
                return
            except NotNow as reason:
                # The preferred leader may come into its own at any time.
                problem = str(reason)
                self.world.run_for(100)
        raise Violation(f"a partition of a whole cluster can be read: {problem}")

    def check_partition_at(self, topic: ReplicatedTopic, index: int, leader: int) -> None:
        model = topic.partitions[index]
        start = self.list_offset(topic, index, leader, EARLIEST)
        end = self.list_offset(topic, index, leader, LATEST)
        view = LogView(start, end, self.read_all(topic, index, leader, start, end))
        if not topic.trusted:
            return
        if start > model.start_high:
            raise Violation(f"a log start moves only when asked: {model.name} at {start}, asked {model.start_high}")
        check_log(model, view)
        before = self.views.setdefault((topic.topic_id, index), view)
        offset = max(before.start, view.start)
        if before.end != view.end or before.records[offset - before.start :] != view.records[offset - view.start :]:
            raise Violation(
                f"every replica has the same records: {model.name} at {leader}, {before.end} and {view.end}"
            )

    def list_offset(self, topic: ReplicatedTopic, index: int, leader: int, timestamp: int) -> int:
        wanted = ListOffsetsTopic(topic.name, [ListOffsetsPartition(index, -1, timestamp)])
        response = self.ask(leader, ListOffsetsRequest(-1, 0, [wanted]), 8)
        assert isinstance(response, ListOffsetsResponse)
        result = response.topics[0].partitions[0]
        if result.error_code != errors.NONE:
            raise NotNow(f"offsets of {topic.name}-{index} at {leader}: {errors.error_name(result.error_code)}")
        return result.offset

    def read_all(self, topic: ReplicatedTopic, index: int, leader: int, start: int, end: int) -> list[ReadRecord]:
        name = topic.partitions[index].name
        records: list[ReadRecord] = []
        offset = start
        while offset < end:
            new = [record for record in self.fetch(topic, index, leader, offset) if record.offset >= offset]
            if not new:
                raise Violation(f"what lies below the high watermark can be read: {name} offset {offset} of {end}")
            records.extend(new)
            offset = new[-1].offset + 1
        return records

    def fetch(self, topic: ReplicatedTopic, index: int, leader: int, offset: int) -> list[ReadRecord]:
        partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        wanted = FetchTopic(topic_id=topic.topic_id, partitions=[partition])
        request = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=[wanted])
        response = self.ask(leader, request, 13)
        assert isinstance(response, FetchResponse)
        result = response.responses[0].partitions[0]
        name = topic.partitions[index].name
        if result.error_code == errors.NOT_LEADER_OR_FOLLOWER:
            raise NotNow(f"{name} at {leader}: it does not lead any more")
        if result.error_code != errors.NONE:
            code = errors.error_name(result.error_code)
            raise Violation(f"what is there can be fetched: {name} offset {offset} at {leader}: {code}")
        data = result.records.to_bytes() if isinstance(result.records, MemoryRecords) else b""
        return read_batches(name, data)

    # Looking inside

    def check_replicas_are_equal(self) -> None:
        ends: dict[tuple[str, int], tuple[int, int, int]] = {}
        for host in self.setting.hosts.values():
            node = node_of(host)
            assert node is not None
            for partition in node.replicas.all():
                if partition.log is None:
                    raise Violation(f"every replica is online: {partition.topic}-{partition.index} at {host.host_id}")
                end = int(partition.log.log_end_offset)
                first = ends.setdefault((partition.topic, partition.index), (end, host.host_id, 0))
                if first[0] != end:
                    raise Violation(
                        f"every replica has the same records: {partition.topic}-{partition.index} ends at {first[0]}"
                        f" at {first[1]}, at {end} at {host.host_id}"
                    )

    def check_images_are_equal(self) -> None:
        images = [node.metadata.image for host in self.setting.hosts.values() if (node := node_of(host)) is not None]
        first = images[0]
        for image in images[1:]:
            for name in ("brokers", "configs", "features", "next_producer_id", "controllers"):
                if image.offset == first.offset and getattr(image, name) != getattr(first, name):
                    raise Violation(f"the same offset is the same image: {name} differ at {image.offset}")
            for topic_id, topic in image.topics_by_id.items():
                if image.offset == first.offset and first.topics_by_id[topic_id].partitions != topic.partitions:
                    raise Violation(f"the same offset is the same image: {topic.name} differs at {image.offset}")

    def check_committed_offsets(self) -> None:
        """Every group's offsets are looked at once more, now that everything is quiet."""
        start_ms = self.world.now_ms
        committers = [committer for committer in self.setting.committers if committer.offsets]
        if not self.world.run_until(lambda: all(one.last_fetch_ms > start_ms for one in committers), SETTLE_MS_MAX):
            waiting = [one.name for one in committers if one.last_fetch_ms <= start_ms]
            raise Violation(f"offsets can be read in a whole cluster: {waiting} wait")
