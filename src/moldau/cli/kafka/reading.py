"""Which partitions a reading tool reads: those of a topic, of topics that match a pattern, or those that a group gives.

The one place where the tools join a group. Without a group of the user's own they read all partitions themselves:
nothing is left behind on the brokers, and reading starts at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.admin_tools import check_servers
from moldau.cli.kafka.java_client import checked_settings, client_failure
from moldau.cli.kafka.java_network import JavaNetwork
from moldau.cli.kafka.java_regex import compile_pattern
from moldau.cli.kafka.options import JavaFailure
from moldau.client.config import CONSUMER
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition
from moldau.client.text_consumer import TextConsumer
from moldau.client.wiring import wired

if TYPE_CHECKING:
    from moldau.client.record import ConsumerRecord
    from moldau.records.text_writer import TextWriter

T = TypeVar("T")

ASK_AGAIN_MS = 100
ASK_AGAIN_MAX_MS = 1_000


class Reading:
    """A consumer, and what keeps its partitions up to date."""

    def __init__(self, config: Mapping[str, str], topic: str | None, include: str | None, in_group: bool) -> None:
        # A group that is a name in the log and nothing else must not be asked for offsets.
        wanted = {name: value for name, value in config.items() if in_group or name != "group.id"}
        known, checked = checked_settings(CONSUMER, wanted)
        context = f"Consumer clientId={config.get('client.id', '')}, groupId={config.get('group.id', '')}"
        check_servers(config["bootstrap.servers"], "bootstrap.servers", "Failed to construct kafka consumer")
        network = JavaNetwork(checked, context)
        self.consumer = TextConsumer(config=wired(known, network=network))
        self._network = network
        self._topic = topic
        self._include_text = include
        self._include: re.Pattern[str] | None = None
        # Asks for topics on the same connections.
        self._cluster = Cluster(checked, network, auto_create_topics=checked.get_bool("allow.auto.create.topics"))
        self._age_max_ms = checked.get_int("metadata.max.age.ms")
        self._in_group = in_group
        self._alone = False
        self._ask_at_ms = 0
        self._failures = 0
        self._assigned_ms = 0

    def start(self) -> None:
        """Joins the group, if there is one; partitions are looked for when they are needed."""
        if self._include_text is not None:
            self._include = compile_pattern(self._include_text)
        if self._in_group:
            self._join()

    def _join(self) -> None:
        """Leaves the choice of partitions to the group."""
        if self._include is not None:
            self.consumer.subscribe(pattern=self._include)
        else:
            self.consumer.subscribe([self._topic or ""])

    def assign(self, partition: int) -> TopicPartition:
        """Reads one partition and no other."""
        assert self._topic is not None
        wanted = TopicPartition(self._topic, partition)
        self.read_only([wanted])
        return wanted

    def read_only(self, partitions: list[TopicPartition]) -> None:
        """Reads these partitions; what else appears is left alone."""
        self._in_group = self._alone = True  # nothing is to be looked up
        self.consumer.assign(partitions)

    def assigned_ms(self, otherwise_ms: int) -> int:
        """When the first partitions were there to be read, by the wall clock; in a group only poll() tells."""
        return self._assigned_ms or otherwise_ms

    @property
    def can_write(self) -> bool:
        """Whether records are better had as text at once: not in a group, and not where that is interpreted."""
        from moldau.build_info import is_compiled

        return (not self._in_group or self._alone) and is_compiled()

    def poll(self, timeout_ms: int, limit: int) -> list[ConsumerRecord]:
        """Records, none where the timeout passes first; partitions that appear are read as well."""
        return self._poll(timeout_ms, lambda wait_ms: self.consumer.poll(wait_ms, limit)) or []

    def poll_text(self, writer: TextWriter, timeout_ms: int) -> int:
        """Writes records, and says how many."""
        return self._poll(timeout_ms, lambda wait_ms: self.consumer.poll_text(writer, wait_ms)) or 0

    def _poll(self, timeout_ms: int, take: Callable[[int], T]) -> T | None:
        deadline_ms = self._network.now_ms() + timeout_ms
        while True:
            now_ms = self._network.now_ms()
            if not self._in_group and now_ms >= self._ask_at_ms:
                self._find_partitions(max(1, deadline_ms - now_ms))
                now_ms = self._network.now_ms()
            wait_ms = max(0, deadline_ms - now_ms)
            if not self._in_group:
                wait_ms = min(wait_ms, max(0, self._ask_at_ms - now_ms))
            found: T | None = None
            if self._in_group or self.consumer.assignment():
                found = take(wait_ms)
            else:
                self._network.poll(wait_ms)
            if found or self._network.now_ms() >= deadline_ms:
                return found

    def _find_partitions(self, timeout_ms: int) -> None:
        try:
            self._cluster.refresh(None if self._topic is None else [self._topic], timeout_ms, tries=1)
        except ClientError as error:
            if not error.retriable:
                raise
        found = [
            TopicPartition(name, index)
            for name, topic in sorted(self._cluster.topics.items())
            if self._wants(name, topic.is_internal)
            for index in sorted(topic.partitions)
        ]
        if found and set(found) != set(self.consumer.assignment()):
            self.consumer.assign(found)
            self._assigned_ms = self._assigned_ms or time.time_ns() // 1_000_000
        problem = None if self._topic is None else self._cluster.topic_error(self._topic)
        if problem is not None and not problem.retriable:
            raise problem
        self._failures = 0 if found else self._failures + 1
        pause_ms = self._age_max_ms if found else min(ASK_AGAIN_MS << min(self._failures - 1, 8), ASK_AGAIN_MAX_MS)
        self._ask_at_ms = self._network.now_ms() + pause_ms

    def _wants(self, name: str, is_internal: bool) -> bool:
        if self._include is None:
            return name == self._topic
        return not is_internal and self._include.fullmatch(name) is not None

    def failure(self, error: ClientError) -> JavaFailure:
        """The error as Java's consumer has it."""
        out_of_range = re.fullmatch(r"Offset (\d+) of (.*)-(\d+) is out of range\.", error.message)
        if out_of_range is None:
            return client_failure(error, self._topic or "")
        offset, topic, index = out_of_range.groups()
        self._cluster.refresh([topic], ASK_AGAIN_MAX_MS, tries=1)
        found = self._cluster.leader(TopicPartition(topic, int(index)))
        leader = "leader=Optional.empty, epoch=-1"
        if found is not None:
            broker = self._cluster.brokers[found.leader]
            node = f"{broker.host}:{broker.port} (id: {broker.id} rack: {broker.rack or 'null'} isFenced: false)"
            leader = f"leader=Optional[{node}], epoch={found.leader_epoch}"
        position = (
            f"FetchPosition{{offset={offset}, offsetEpoch=Optional.empty, currentLeader=LeaderAndEpoch{{{leader}}}}}"
        )
        sentence = f"Fetch position {position} is out of range for partition {topic}-{index}"
        return JavaFailure("org.apache.kafka.clients.consumer.OffsetOutOfRangeException", sentence)

    def close(self) -> None:
        self.consumer.close()
