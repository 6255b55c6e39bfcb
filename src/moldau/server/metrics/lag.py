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
    """Rows of one or more metrics with the same values, until there are enough for a block. Labels are without the name
    of the first of them: for one exporter a group is `consumergroup`, for the other `group`."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.values: list[float] = []
        self._metrics: list[tuple[Metric, Labels, str]] = []

    def show(self, metric: Metric, common: Labels = ()) -> None:
        self._metrics.append((metric, common, "group=" if common else "consumergroup="))

    def end_block(self) -> None:
        for metric, common, lead in self._metrics:
            metric.add_block(self.labels, self.values, common, lead)
        self.labels, self.values = [], []


def of_group(name: str, about: str) -> Metric:
    return Metric(f"{GROUP}_{name}", GAUGE, about)


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
        self._offsets, self._uncommitted, self._lags, self._seconds = Rows(), Rows(), Rows(), Rows()
        self._sums, self._members, self._most, self._longest = Rows(), Rows(), Rows(), Rows()
        self._totals, self._topic_lags = Rows(), Rows()
        self._all_rows = [
            self._offsets,
            self._uncommitted,
            self._lags,
            self._seconds,
            self._sums,
            self._members,
            self._most,
            self._longest,
            self._totals,
            self._topic_lags,
        ]
        self._metrics = self._make_metrics((("cluster_name", node.cluster_id),))

    def _make_metrics(self, cluster: Labels) -> list[Metric]:
        current = of_group("current_offset", "Committed offset; -1 where the group has committed none")
        current_sum = of_group("current_offset_sum", "Committed offsets of a topic, added up")
        lag = of_group("lag", "Records behind the committed offset; -1 where the group has committed none")
        lag_sum = of_group("lag_sum", "Records that a group is behind in a topic")
        members = of_group("members", "Members of a group")
        self._offsets.show(current)
        self._uncommitted.show(current)
        self._uncommitted.show(lag)
        self._lags.show(lag)
        self._sums.show(current_sum)
        self._topic_lags.show(lag_sum)
        self._members.show(members)
        metrics = [current, current_sum, lag, lag_sum, members]
        for rows, name, about in (
            (self._offsets, "group_offset", "Committed offset"),
            (self._lags, "group_lag", "Records behind the committed offset"),
            (self._seconds, "group_lag_seconds", "Age of the first record that the group has not committed"),
            (self._most, "group_max_lag", "The most records that a group is behind in a partition"),
            (self._longest, "group_max_lag_seconds", "The most seconds that a group is behind in a partition"),
            (self._totals, "group_sum_lag", "Records that a group is behind"),
            (self._topic_lags, "group_topic_sum_lag", "Records that a group is behind in a topic"),
        ):
            metrics.append(of_group(name, about))
            rows.show(metrics[-1], cluster)
        return metrics

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
                yield from self._add_group(group_id, group, state.offsets.of_group(group_id))
            yield None
        self._end_block()
        self._watch.end_scrape(self._now_ms)
        yield None
        yield from self._metrics

    def _end_block(self) -> None:
        self._in_block = 0
        for rows in self._all_rows:
            rows.end_block()

    def _add_group(self, group_id: str, group: Group | None, topics: GroupOffsets) -> Iterator[None]:
        """Others may have their turn anywhere in it, and commit meanwhile."""
        labels = f'"{escaped(group_id)}"'
        self._in_block += 1
        add(self._members, labels, members_of(group))
        behind = Behind()
        for topic, committed in list(topics.items()):
            image = self._topic(topic)
            if image is None:
                continue
            if self._rows + len(image.partitions) > self._limits.partitions_max:
                self._left_out.add(GROUP_PARTITIONS, len(committed))
                continue
            yield from self._add_topic(group_id, f'{labels},topic="{topic}"', image, committed, behind)
        if topics:
            add(self._most, labels, behind.most)
            add(self._totals, labels, behind.total)
            if behind.longest is not None:
                add(self._longest, labels, behind.longest)

    def _topic(self, topic: str) -> TopicImage | None:
        """None for one that is not shown, or is no more."""
        if topic not in self._topics:
            image = self._node.image.topics_by_name.get(topic)
            self._topics[topic] = image if image is not None and self._limits.has_topic(topic) else None
        return self._topics[topic]

    def _add_topic(
        self, group_id: str, of_topic: str, image: TopicImage, committed: TopicOffsets, behind: Behind
    ) -> Iterator[None]:
        topic, node_id, wall_ms = image.name, self._node.node_id, self._wall_ms
        watch, own = self._watch, self._node.replicas.of_topic(image.name)
        times = watch.times_of(group_id, topic)
        offsets, lags, in_time = self._offsets, self._lags, self._seconds
        offset_sum = lag_sum = 0
        self._rows += len(image.partitions)
        for index in image.partitions:
            self._in_block += 1
            if self._in_block > BLOCK_SIZE:
                self._end_block()
                yield
            labels = f'{of_topic},partition="{index}"'
            known = committed.get(index)
            if known is None:
                offset_sum += NOTHING_COMMITTED
                add(self._uncommitted, labels, NOTHING_COMMITTED)
                continue
            offset = int(known.offset)
            offset_sum += offset
            offsets.labels.append(labels)
            offsets.values.append(offset)
            partition = own.get(index)
            if partition is not None and partition.leader == node_id:
                end = partition.high_watermark.offset
            else:
                watch.note_shown(group_id, topic, index)
                told = watch.ends.get((topic, index))
                if told is None:
                    continue
                end = told
            lag = end - offset if end > offset else 0
            lags.labels.append(labels)
            lags.values.append(lag)
            seconds: float | None = 0
            if lag:
                lag_sum += lag
                known_time = times.get(index)
                if known_time is not None and known_time.committed == offset:
                    seconds = max(0, wall_ms - known_time.timestamp_ms) / 1000
                else:
                    seconds = watch.find_seconds(times, (group_id, topic, index), offset, wall_ms)
                if lag > behind.most:
                    behind.most = lag
            if seconds is None:
                self._left_out.add(LAG_SECONDS, 1)
            else:
                in_time.labels.append(labels)
                in_time.values.append(seconds)
                if behind.longest is None or seconds > behind.longest:
                    behind.longest = seconds
        behind.total += lag_sum
        add(self._sums, of_topic, offset_sum)
        add(self._topic_lags, of_topic, lag_sum)


class Behind:
    """How far one group is behind: the most records and seconds in a partition, and the records of all."""

    def __init__(self) -> None:
        self.most = 0
        self.total = 0
        self.longest: float | None = None


def add(rows: Rows, labels: str, value: float) -> None:
    rows.labels.append(labels)
    rows.values.append(value)


def members_of(group: Group | None) -> int:
    return len(group.members) if isinstance(group, ClassicGroup | ConsumerGroup) else 0
