"""A simulated administrator: creates, alters, grows and deletes topics, deletes records, and knows what it was told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.delete_records_response import DeleteRecordsResponse
from moldau.protocol.messages.delete_topics_response import DeleteTopicsResponse
from moldau.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from moldau.protocol.primitives import Message
from moldau.sim.kernel.world import Violation
from moldau.sim.models.partition import PartitionModel
from moldau.sim.models.topics import DELETING, GONE, PRESENT, TRANSIENT_PREFIX, TopicModel
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
from moldau.sim.node.client import SimClient

if TYPE_CHECKING:
    from moldau.sim.node.world import NodeWorld

STABLE_NAMES = ("steady-a", "steady-b")
TRANSIENT_NAMES = (f"{TRANSIENT_PREFIX}-a", f"{TRANSIENT_PREFIX}-b")
PARTITIONS_MAX = 4
NOT_READY_ERRORS = (
    errors.NOT_CONTROLLER,
    errors.REQUEST_TIMED_OUT,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.KAFKA_STORAGE_ERROR,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.LEADER_NOT_AVAILABLE,
)
# A partition gets small segments and dense indexes, so that rolls and lookups are where the crashes are.
CONFIG_CHOICES: dict[str, tuple[str, ...]] = {
    "index.interval.bytes": ("0", "100", "1000"),
    "segment.ms": ("1500", "604800000"),
    "flush.messages": ("1", "5", "9223372036854775807"),
    "flush.ms": ("300", "9223372036854775807"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "compression.type": ("producer", "producer", "lz4", "uncompressed", "zstd"),
    "file.delete.delay.ms": ("0", "1000"),
    "segment.index.bytes": ("60", "10485760"),
}


class SimAdmin(BusyAdmin):
    def __init__(self, setting: NodeWorld) -> None:
        super().__init__()
        self.setting = setting
        self.world = setting.world
        self.model = setting.model
        self.rng = setting.world.derived_rng("admin")
        self.client = SimClient(setting.world, setting.host, "admin")
        self.world.schedule(0, self.tick)

    def tick(self) -> None:
        self.world.schedule(self.rng.randint(50, 600), self.tick)
        if self.setting.paused or self.busy or self.model.uncertain_names:
            return
        for name in STABLE_NAMES[: self.setting.stable_topics]:
            if self.model.current(name) is None:
                self._create(name)
                return
        self.rng.choice(
            (self._delete_records, self._delete_records, self._alter, self._alter, self._grow, self._create_or_delete)
        )()

    def _call(self, request: Message, version: int, on_response: Callable[[Message | None], None]) -> None:
        self.client.call(request, version, self.when_done(on_response))

    def _check(self, what: str, error_code: int, message: str | None) -> bool:
        return self.check_done(what, error_code, message, NOT_READY_ERRORS)

    # Topics

    def _create_or_delete(self) -> None:
        name = self.rng.choice(TRANSIENT_NAMES)
        topic = self.model.current(name)
        if topic is None:
            self._create(name)
        elif topic.state == PRESENT:
            self._delete(topic)

    def _create(self, name: str) -> None:
        count = self.rng.randint(1, 2)
        configs = {"internal.segment.bytes": self.rng.choice(("3000", "9000", "1048576"))}
        for key in self.rng.sample(sorted(CONFIG_CHOICES), 3):
            configs[key] = self.rng.choice(CONFIG_CHOICES[key])
        self.world.note(f"admin creates {name} with {count} partitions and {configs}")
        request = create_topic(name, count, 1, configs, 5000)
        self._call(request, CREATE_VERSION, lambda response: self._on_created(name, count, configs, response))

    def _on_created(self, name: str, count: int, configs: dict[str, str], response: Message | None) -> None:
        if response is None:
            self._be_uncertain(name, count, configs)
            return
        assert isinstance(response, CreateTopicsResponse)
        result = response.topics[0]
        if result.error_code == errors.REQUEST_TIMED_OUT:
            self._be_uncertain(name, count, configs)
        elif self._check(f"creating {name}", result.error_code, result.error_message):
            self.model.on_created(name, result.topic_id, count, configs)

    def _be_uncertain(self, name: str, count: int, configs: dict[str, str]) -> None:
        self.model.uncertain_names[name] = (count, configs)
        self.setting.audit_soon()

    def _delete(self, topic: TopicModel) -> None:
        self.world.note(f"admin deletes {topic.name}")
        topic.state = DELETING
        self._call(
            delete_topic(topic.topic_id, 5000), DELETE_VERSION, lambda response: self._on_deleted(topic, response)
        )

    def _on_deleted(self, topic: TopicModel, response: Message | None) -> None:
        if topic.state != DELETING:
            return
        if response is None:
            self.setting.audit_soon()
            return
        assert isinstance(response, DeleteTopicsResponse)
        result = response.responses[0]
        if result.error_code == errors.NONE:
            topic.state = GONE
        elif result.error_code == errors.REQUEST_TIMED_OUT:
            self.setting.audit_soon()
        else:
            self._check(f"deleting {topic.name}", result.error_code, result.error_message)
            topic.state = PRESENT

    def _grow(self) -> None:
        topics = [topic for topic in self.model.present() if len(topic.partitions) < PARTITIONS_MAX]
        if not topics or self.rng.random() < 0.7:
            return
        topic = self.rng.choice(topics)
        count = len(topic.partitions) + 1
        request = CreatePartitionsRequest([CreatePartitionsTopic(topic.name, count, None)], 5000)
        self._call(request, 3, lambda response: self._on_grown(topic, count, response))

    def _on_grown(self, topic: TopicModel, count: int, response: Message | None) -> None:
        if not isinstance(response, CreatePartitionsResponse) or topic.state != PRESENT:
            return
        result = response.results[0]
        if result.error_code == errors.INVALID_PARTITIONS:
            return
        if self._check(f"growing {topic.name}", result.error_code, result.error_message):
            while len(topic.partitions) < count:
                topic.partitions.append(PartitionModel(f"{topic.name}-{len(topic.partitions)}"))

    def _alter(self) -> None:
        topics = self.model.present()
        if not topics:
            return
        topic = self.rng.choice(topics)
        key = self.rng.choice(sorted(CONFIG_CHOICES))
        value = self.rng.choice(CONFIG_CHOICES[key])
        self.world.note(f"admin sets {key}={value} of {topic.name}")
        topic.configs.setdefault(key, {None}).add(value)
        request = alter_config(topic.name, key, value)
        self._call(request, ALTER_VERSION, lambda response: self._on_altered(topic, key, value, response))

    def _on_altered(self, topic: TopicModel, key: str, value: str, response: Message | None) -> None:
        if not isinstance(response, IncrementalAlterConfigsResponse):
            return
        result = response.responses[0]
        if self._check(f"setting {key}={value} of {topic.name}", result.error_code, result.error_message):
            topic.configs[key] = {value}

    # Records

    def _delete_records(self) -> None:
        topics = self.model.present()
        if not topics:
            return
        topic = self.rng.choice(topics)
        index = self.rng.randrange(len(topic.partitions))
        model = topic.partitions[index]
        if model.acknowledged_end == 0:
            return
        offset = self.rng.randint(min(model.start_high, model.acknowledged_end), model.acknowledged_end)
        model.on_start_asked(offset)
        self.world.note(f"admin deletes the records of {model.name} below {offset}")
        losses = self.setting.data_losses
        self._call(
            delete_records(topic.name, index, offset, 5000),
            DELETE_RECORDS_VERSION,
            lambda response: self._on_records_deleted(model, offset, losses, response),
        )

    def _on_records_deleted(self, model: PartitionModel, offset: int, losses: int, response: Message | None) -> None:
        if not isinstance(response, DeleteRecordsResponse):
            return
        result = response.topics[0].partitions[0]
        if result.error_code == errors.OFFSET_OUT_OF_RANGE and losses != self.setting.data_losses:
            return
        if self._check(f"deleting records of {model.name}", result.error_code, None) and result.low_watermark < offset:
            raise Violation(f"deleted records are gone: {model.name} starts at {result.low_watermark}, asked {offset}")
