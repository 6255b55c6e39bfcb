"""An administrator of a simulated cluster: topics come and go, replicas move, leaders are elected, settings change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.delete_records_response import DeleteRecordsResponse
from moldau.protocol.messages.delete_topics_response import DeleteTopicsResponse
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.elect_leaders_response import ElectLeadersResponse
from moldau.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from moldau.protocol.primitives import Message
from moldau.sim.cluster.client import NOBODY, ClusterClient
from moldau.sim.kernel.world import Violation
from moldau.sim.models.replicated_topics import ASKED, DELETING, GONE, PRESENT, ReplicatedTopic
from moldau.sim.node.admin_requests import (
    ALTER_VERSION,
    CREATE_VERSION,
    DELETE_RECORDS_VERSION,
    DELETE_VERSION,
    BusyAdmin,
    alter_config,
    create_topic,
    delete_records,
    delete_topic,
)

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

PREFERRED, UNCLEAN = 0, 1
TRANSIENT_TOPICS_MAX = 2
TRY_AGAIN = (
    errors.NOT_CONTROLLER,
    errors.REQUEST_TIMED_OUT,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.KAFKA_STORAGE_ERROR,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.LEADER_NOT_AVAILABLE,
    errors.BROKER_NOT_AVAILABLE,
    errors.NETWORK_EXCEPTION,
    errors.INVALID_REPLICATION_FACTOR,  # while too few brokers take part
    errors.OFFSET_OUT_OF_RANGE,  # a leader that is none any more has a shorter log
)
ELECTION_REFUSALS = (
    *TRY_AGAIN,
    errors.ELECTION_NOT_NEEDED,
    errors.PREFERRED_LEADER_NOT_AVAILABLE,
    errors.ELIGIBLE_LEADERS_NOT_AVAILABLE,
)
CONFIG_CHOICES: dict[str, tuple[str, ...]] = {
    "index.interval.bytes": ("0", "100", "1000"),
    "segment.ms": ("1500", "604800000"),
    "flush.messages": ("1", "5", "9223372036854775807"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "compression.type": ("producer", "producer", "lz4", "uncompressed"),
}


class ClusterAdmin(BusyAdmin):
    def __init__(
        self, setting: ClusterWorld, *, deletes: bool = True, internal: list[ReplicatedTopic] | None = None
    ) -> None:
        """`internal` are topics of the cluster's own that it moves about as well."""
        super().__init__()
        self.setting = setting
        self.world = setting.world
        self.model = setting.model
        self.client = ClusterClient(setting, "admin")
        self.rng = self.client.rng
        self.transient_topics = 0
        self._internal = internal or []
        self._kinds: tuple[Callable[[], None], ...] = (
            self._reassign,
            self._reassign,
            self._elect,
            self._elect,
            self._alter,
        )
        if deletes:
            self._kinds += (self._delete_records, self._create_or_delete)
        self.world.schedule(0, self.tick)

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(50, 500), self.tick)
        if self.busy:
            return
        unfinished = [topic for topic in self.model.topics if topic.state in (ASKED, DELETING)]
        if unfinished:
            topic = self.rng.choice(unfinished)
            (self._create if topic.state == ASKED else self._delete)(topic)
        elif not self.setting.quiet:
            self.rng.choice(self._kinds)()

    @property
    def is_busy(self) -> bool:
        """Something it began is not done."""
        return self.busy or any(topic.state in (ASKED, DELETING) for topic in self.model.topics)

    def _ask(self, what: str, request: Message, version: int, on_response: Callable[[Message | None], None]) -> None:
        self.world.note(f"admin: {what}")
        self.client.ask(self.client.any_node(), request, version, self.when_done(on_response), 6000)

    def _check(self, what: str, error_code: int, message: str | None, allowed: tuple[int, ...] = TRY_AGAIN) -> bool:
        return self.check_done(what, error_code, message, allowed)

    # Topics

    def _create_or_delete(self) -> None:
        transient = [topic for topic in self.model.present() if topic.transient]
        if len(transient) < TRANSIENT_TOPICS_MAX and self.rng.random() < 0.6:
            self.transient_topics += 1
            topic = ReplicatedTopic(f"transient-{self.transient_topics}", 1, 3, 2, unclean=False, transient=True)
            self.model.add(topic)
            self._create(topic)
        elif transient:
            topic = self.rng.choice(transient)
            topic.state = DELETING
            self._delete(topic)

    def _create(self, topic: ReplicatedTopic) -> None:
        configs = {
            "min.insync.replicas": str(topic.min_insync),
            "unclean.leader.election.enable": "true" if topic.unclean else "false",
            "internal.segment.bytes": self.rng.choice(("2000", "9000", "1048576")),
            "file.delete.delay.ms": "500",
        }
        request = create_topic(topic.name, len(topic.partitions), topic.replication_factor, configs, 3000)
        self._ask(f"create {topic.name}", request, CREATE_VERSION, lambda response: self._on_created(topic, response))

    def _on_created(self, topic: ReplicatedTopic, response: Message | None) -> None:
        if not isinstance(response, CreateTopicsResponse) or topic.state != ASKED:
            return
        result = response.topics[0]
        if result.error_code == errors.TOPIC_ALREADY_EXISTS:
            # An earlier request was carried out and its response lost.
            found = self.client.topic_ids.get(topic.name)
            if found is not None:
                self.model.on_created(topic, found)
            else:
                self.client.refresh()
        elif self._check(f"create {topic.name}", result.error_code, result.error_message):
            self.model.on_created(topic, result.topic_id)

    def _delete(self, topic: ReplicatedTopic) -> None:
        request = delete_topic(topic.topic_id, 3000)
        self._ask(f"delete {topic.name}", request, DELETE_VERSION, lambda response: self._on_deleted(topic, response))

    def _on_deleted(self, topic: ReplicatedTopic, response: Message | None) -> None:
        if not isinstance(response, DeleteTopicsResponse):
            return
        result = response.responses[0]
        if result.error_code == errors.UNKNOWN_TOPIC_ID or self._check(
            f"delete {topic.name}", result.error_code, result.error_message
        ):
            topic.state = GONE

    def _alter(self) -> None:
        topics = self.model.present()
        if not topics:
            return
        topic = self.rng.choice(topics)
        key = self.rng.choice(sorted(CONFIG_CHOICES))
        value = self.rng.choice(CONFIG_CHOICES[key])
        if topic.min_insync == 2 and topic.replication_factor == 3 and self.rng.random() < 0.3:
            # Stricter and back: what was acknowledged meanwhile is on two replicas at least.
            key, value = "min.insync.replicas", self.rng.choice(("2", "2", "3"))
        what = f"alter {topic.name} {key}={value}"
        request = alter_config(topic.name, key, value)
        self._ask(what, request, ALTER_VERSION, lambda response: self._on_altered(what, topic, response))

    def _on_altered(self, what: str, topic: ReplicatedTopic, response: Message | None) -> None:
        if isinstance(response, IncrementalAlterConfigsResponse) and topic.state == PRESENT:
            result = response.responses[0]
            self._check(what, result.error_code, result.error_message)

    # Replicas and leaders

    def _some_partition(self) -> tuple[ReplicatedTopic, int] | None:
        topics = self.model.present() + self._internal
        if not topics:
            return None
        topic = self.rng.choice(topics)
        return topic, self.rng.randrange(len(topic.partitions))

    def _reassign(self) -> None:
        chosen = self._some_partition()
        if chosen is None:
            return
        topic, index = chosen
        if topic.replication_factor == 1 and not self.setting.may_move_single_replicas:
            return
        replicas = self.rng.sample(self.setting.broker_ids, topic.replication_factor)
        self.reassign(topic, index, None if self.rng.random() < 0.15 else replicas)

    def reassign(self, topic: ReplicatedTopic, index: int, replicas: list[int] | None) -> None:
        """Moves a partition to these brokers; None calls a move off."""
        wanted = ReassignableTopic(topic.name, [ReassignablePartition(index, replicas)])
        what = f"reassign {topic.name}-{index} to {replicas}"
        topic.on_moved()
        request = AlterPartitionReassignmentsRequest(3000, True, [wanted])
        self._ask(what, request, 1, lambda response: self._on_reassigned(what, topic, response))

    def _on_reassigned(self, what: str, topic: ReplicatedTopic, response: Message | None) -> None:
        if not isinstance(response, AlterPartitionReassignmentsResponse) or topic.state != PRESENT:
            return
        allowed = (*TRY_AGAIN, errors.NO_REASSIGNMENT_IN_PROGRESS, errors.INVALID_REPLICA_ASSIGNMENT)
        if self._check(what, response.error_code, response.error_message, allowed):
            result = response.responses[0].partitions[0]
            self._check(what, result.error_code, result.error_message, allowed)

    def _elect(self) -> None:
        chosen = self._some_partition()
        if chosen is None:
            return
        topic, index = chosen
        kind = UNCLEAN if topic.unclean and self.rng.random() < 0.5 else PREFERRED
        self.elect(topic, index, kind)

    def elect(self, topic: ReplicatedTopic, index: int, kind: int = PREFERRED) -> None:
        request = ElectLeadersRequest(kind, [TopicPartitions(topic.name, [index])], 3000)
        what = f"elect {topic.name}-{index} ({'unclean' if kind else 'preferred'})"
        self._ask(what, request, 2, lambda response: self._on_elected(what, topic, response))

    def _on_elected(self, what: str, topic: ReplicatedTopic, response: Message | None) -> None:
        if not isinstance(response, ElectLeadersResponse) or topic.state != PRESENT:
            return
        if self._check(what, response.error_code, None, ELECTION_REFUSALS) and response.replica_election_results:
            result = response.replica_election_results[0].partition_result[0]
            self._check(what, result.error_code, result.error_message, ELECTION_REFUSALS)

    # Records

    def _delete_records(self) -> None:
        chosen = self._some_partition()
        if chosen is None or self.rng.random() < 0.5:
            return
        topic, index = chosen
        model = topic.partitions[index]
        leader = self.client.leader_of(topic.topic_id, index)
        if leader == NOBODY:
            self.client.refresh()
            return
        if model.acknowledged_end <= model.start_high:
            return
        offset = self.rng.randint(model.start_high, model.acknowledged_end)
        model.on_start_asked(offset)
        self.world.note(f"admin: delete records of {model.name} below {offset}")
        on_response = self.when_done(lambda response: self._on_records_deleted(topic, index, offset, response))
        request = delete_records(topic.name, index, offset, 3000)
        self.client.ask(leader, request, DELETE_RECORDS_VERSION, on_response, 6000)

    def _on_records_deleted(self, topic: ReplicatedTopic, index: int, offset: int, response: Message | None) -> None:
        self.client.refresh()
        if not isinstance(response, DeleteRecordsResponse) or topic.state != PRESENT:
            return
        result = response.topics[0].partitions[0]
        what = f"delete records of {topic.name}-{index}"
        if self._check(what, result.error_code, None) and result.low_watermark < offset and topic.trusted:
            raise Violation(f"deleted records are gone: {what}: starts at {result.low_watermark}, asked {offset}")
