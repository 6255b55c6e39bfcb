"""Groups that this broker coordinates: what they have committed and how far they are behind, in records and in time.

The names are those of kafka_exporter and of kafka-lag-exporter. Groups without members are there too.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.group import Group
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.offset_table import GroupOffsets, TopicOffsets
from moldau.coordinator.group.share_group import ShareGroup
from moldau.coordinator.shard import ACTIVE
from moldau.metadata.model import TopicImage
from moldau.node.node import Node
from moldau.server.metrics.hosted import BLOCK_SIZE
from moldau.server.metrics.limits import GROUP_PARTITIONS, GROUPS, LAG_SECONDS, LeftOut, RowLimits
from moldau.server.metrics.metric import GAUGE, Labels, Metric, escaped

GROUP = "kafka_consumergroup"
NOTHING_COMMITTED = -1


class Rows:
    """The rows of one metric, until there are enough for a block."""

    def __init__(self, name: str, about: str, common: Labels = ()) -> None:
        self.metric = Metric(f"{GROUP}_{name}", GAUGE, about)
        self._common = common
        self._labels: list[str] = []
        self._values: list[float] = []

    def add(self, labels: str, value: float) -> None:
        self._labels.append(labels)
        self._values.append(value)

    def end_block(self) -> None:
        if self._labels:
            self.metric.add_block(self._labels, self._values, self._common)
            self._labels, self._values = [], []


class LagCollector:
    """One scrape."""

    def __init__(self, node: Node, limits: RowLimits, left_out: LeftOut, now_ms: int) -> None:
        self._node = node
        self._watch = node.lag_watch
        self._limits = limits
        self._left_out = left_out
        self._wall_ms = node.wall.at(now_ms)
        self._now_ms = now_ms
        self._topics: dict[str, TopicImage | None] = {}
        self._groups = self._rows = self._in_block = 0
        cluster: Labels = (("cluster_name", node.cluster_id),)
        self.current = Rows("current_offset", "Committed offset; -1 where the group has committed none")
        self.current_sum = Rows("current_offset_sum", "Committed offsets of a topic, added up")
        self.lag = Rows("lag", "Records behind the committed offset; -1 where the group has committed none")
        self.lag_sum = Rows("lag_sum", "Records that a group is behind in a topic")
        self.members = Rows("members", "Members of a group")
        self.offset = Rows("group_offset", "Committed offset", cluster)
        self.group_lag = Rows("group_lag", "Records behind the committed offset", cluster)
        self.seconds = Rows("group_lag_seconds", "Age of the first record that the group has not committed", cluster)
        self.max_lag = Rows("group_max_lag", "The most records that a group is behind in a partition", cluster)
        self.max_seconds = Rows(
            "group_max_lag_seconds", "The most seconds that a group is behind in a partition", cluster
        )
        self.sum_lag = Rows("group_sum_lag", "Records that a group is behind", cluster)
        self.topic_lag = Rows("group_topic_sum_lag", "Records that a group is behind in a topic", cluster)
        self._all = [
            self.current,
            self.current_sum,
            self.lag,
            self.lag_sum,
            self.members,
            self.offset,
            self.group_lag,
            self.seconds,
            self.max_lag,
            self.max_seconds,
            self.sum_lag,
            self.topic_lag,
        ]

    def collect(self) -> Iterator[Metric | None]:
        self._watch.begin_scrape()
        for shard in list(self._node.coordinators.groups.runtime.shards.values()):
            machine = shard.machine
            if shard.state != ACTIVE or not isinstance(machine, GroupMachine):
                continue
            state = machine.state
            for group_id in state.group_ids():
                if not self._limits.has_group(group_id):
                    continue
                if self._groups >= self._limits.groups_max:
                    self._left_out.add(GROUPS, 1)
                    continue
                group = state.groups.get(group_id)
                if isinstance(group, ShareGroup):
                    continue
                self._groups += 1
                self._add_group(group_id, group, state.offsets.of_group(group_id))
                if self._in_block >= BLOCK_SIZE:
                    self._end_block()
                    yield None
            yield None
        self._end_block()
        self._watch.end_scrape(self._now_ms)
        yield None
        for rows in self._all:
            yield rows.metric

    def _end_block(self) -> None:
        self._in_block = 0
        for rows in self._all:
            rows.end_block()

    def _add_group(self, group_id: str, group: Group | None, topics: GroupOffsets) -> None:
        name = escaped(group_id)
        self._in_block += 1
        self.members.add(f'consumergroup="{name}"', members_of(group))
        most = total = 0
        longest: float | None = None
        for topic, committed in topics.items():
            image = self._topic(topic)
            if image is None:
                continue
            if self._rows + len(image.partitions) > self._limits.partitions_max:
                self._left_out.add(GROUP_PARTITIONS, len(committed))
                continue
            behind, seconds, lag = self._add_topic(group_id, name, image, committed)
            most = max(most, behind)
            total += lag
            if seconds is not None:
                longest = seconds if longest is None else max(longest, seconds)
        if topics:
            labels = f'group="{name}"'
            self.max_lag.add(labels, most)
            self.sum_lag.add(labels, total)
            if longest is not None:
                self.max_seconds.add(labels, longest)

    def _topic(self, topic: str) -> TopicImage | None:
        """None for one that is not shown, or is no more."""
        if topic not in self._topics:
            image = self._node.image.topics_by_name.get(topic)
            self._topics[topic] = image if image is not None and self._limits.has_topic(topic) else None
        return self._topics[topic]

    def _add_topic(
        self, group_id: str, name: str, image: TopicImage, committed: TopicOffsets
    ) -> tuple[int, float | None, int]:
        """The most records and seconds behind in a partition, and the records of all."""
        topic = image.name
        watch, node_id, wall_ms = self._watch, self._node.node_id, self._wall_ms
        of_topic = f'"{name}",topic="{topic}"'
        most = total = 0
        offsets = 0
        longest: float | None = None
        self._rows += len(image.partitions)
        self._in_block += len(image.partitions)
        for index, registration in image.partitions.items():
            known = committed.get(index)
            labels = f'{of_topic},partition="{index}"'
            if known is None:
                self.current.add(f"consumergroup={labels}", NOTHING_COMMITTED)
                self.lag.add(f"consumergroup={labels}", NOTHING_COMMITTED)
                offsets += NOTHING_COMMITTED
                continue
            offset = int(known.offset)
            offsets += offset
            self.current.add(f"consumergroup={labels}", offset)
            self.offset.add(f"group={labels}", offset)
            end = watch.find_end(topic, index)
            if registration.leader != node_id:
                watch.note_shown(group_id, topic, index)
            if end is None:
                continue
            lag = end - offset if end > offset else 0
            self.lag.add(f"consumergroup={labels}", lag)
            self.group_lag.add(f"group={labels}", lag)
            total += lag
            most = max(most, lag)
            seconds = watch.find_seconds(group_id, topic, index, offset, wall_ms) if lag else 0.0
            if seconds is None:
                self._left_out.add(LAG_SECONDS, 1)
            else:
                self.seconds.add(f"group={labels}", seconds)
                longest = seconds if longest is None else max(longest, seconds)
        self.current_sum.add(f"consumergroup={of_topic}", offsets)
        self.lag_sum.add(f"consumergroup={of_topic}", total)
        self.topic_lag.add(f"group={of_topic}", total)
        return most, longest, total


def members_of(group: Group | None) -> int:
    return len(group.members) if isinstance(group, ClassicGroup | ConsumerGroup) else 0
