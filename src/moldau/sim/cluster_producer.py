"""Producers of a simulated cluster: they follow the leader, send again what got no answer, and recall every promise."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.sim.cluster_client import NOBODY, ClusterClient
from moldau.sim.model import PartitionModel, Sent
from moldau.sim.replicated_model import PRESENT, ReplicatedTopic
from moldau.sim.world import Violation

if TYPE_CHECKING:
    from moldau.sim.cluster_world import ClusterWorld

PRODUCE_VERSION = 13
PRODUCE_TIMEOUT_MS = 1000
ATTEMPTS_MAX = 60
RETRIABLE_ERRORS = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.LEADER_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.REQUEST_TIMED_OUT,
    errors.KAFKA_STORAGE_ERROR,
    errors.NOT_ENOUGH_REPLICAS,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    errors.BROKER_NOT_AVAILABLE,
    errors.NETWORK_EXCEPTION,
)
SEQUENCE_ERRORS = (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID, errors.INVALID_PRODUCER_EPOCH)
NO_ID_YET = (
    *RETRIABLE_ERRORS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NOT_COORDINATOR,
)


class SentBatch:
    def __init__(self, values: list[bytes], data: bytes, not_before: int) -> None:
        self.values = values
        self.data = data
        self.not_before = not_before
        self.attempts = 0
        self.refused = 0


class ClusterProducer:
    def __init__(self, setting: ClusterWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.client = ClusterClient(setting, name)
        self.rng = self.client.rng
        self.idempotent = self.rng.random() < 0.6
        self.acks = -1 if self.idempotent else self.rng.choice((0, 1, -1, -1))
        self.retries = self.idempotent or (self.acks != 0 and self.rng.random() < 0.5)
        self.codec = self.rng.choice((0, 0, 0, 0, 2, 3))
        self.in_flight_max = self.rng.choice((1, 1, 3, 5)) if self.idempotent else 1
        self.topic: ReplicatedTopic | None = None
        self.partition = 0
        self.number = 0
        self.unacknowledged: deque[SentBatch] = deque()
        self.waiting_for_id = False
        self.recovering = False
        self.producer_id = -1
        self.producer_epoch = -1
        self.next_sequence = 0
        self.world.note(
            f"{name}: {'idempotent' if self.idempotent else 'plain'} acks={self.acks} codec={self.codec}"
            f" in flight {self.in_flight_max}{' retries' if self.retries else ''}"
        )
        self.world.schedule(self.rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(10, 150), self.tick)
        if self.waiting_for_id or self.recovering:
            return
        if self.topic is None or self.topic.state != PRESENT or (not self.unacknowledged and self.rng.random() < 0.03):
            self._choose_partition()
        if self.topic is None:
            return
        leader = self.client.leader_of(self.topic.topic_id, self.partition)
        if leader == NOBODY:
            self.client.refresh()
        elif self.idempotent and self.producer_id < 0:
            self._ask_for_id()
        elif len(self.unacknowledged) < self.in_flight_max and not self.setting.quiet:
            self._send_new(leader)

    def _choose_partition(self) -> None:
        """Moves on to another partition; what was not acknowledged is given up, and with it the producer id."""
        topics = self.setting.model.present()
        self.unacknowledged.clear()
        self.producer_id = -1
        self.topic = self.rng.choice(topics) if topics else None
        if self.topic is not None:
            self.partition = self.rng.randrange(len(self.topic.partitions))

    # The producer id

    def _ask_for_id(self) -> None:
        self.waiting_for_id = True
        self.client.ask(self.client.any_node(), InitProducerIdRequest(None, 60000), 4, self._on_id, 1500)

    def _on_id(self, answer: Message | None) -> None:
        self.waiting_for_id = False
        if not isinstance(answer, InitProducerIdResponse):
            return
        if answer.error_code == errors.NONE:
            self.setting.check_producer_id_is_new(answer.producer_id, answer.producer_epoch)
            self.producer_id = answer.producer_id
            self.producer_epoch = answer.producer_epoch
            self.next_sequence = 0
        elif answer.error_code not in NO_ID_YET:
            raise Violation(f"a producer id can be had: {self.name} got {errors.error_name(answer.error_code)}")

    # Sending

    def _partition_model(self) -> PartitionModel:
        assert self.topic is not None
        return self.topic.partitions[self.partition]

    def _send_new(self, leader: int) -> None:
        batch = self._build()
        self.unacknowledged.append(batch)
        self._send(batch, leader)

    def _build(self) -> SentBatch:
        model = self._partition_model()
        builder = BatchBuilder(0, self.codec)
        # Without a producer id, a request of a broken connection may arrive after those of the next one.
        order = f"{self.name}/{self.producer_id}" if self.idempotent else None
        values = []
        for _ in range(self.rng.choice((1, 1, 2, 5))):
            value = b"%s/%s/%d/" % (model.name.encode(), self.name.encode(), self.number)
            value += self.rng.randbytes(self.rng.choice((0, 5, 40)))
            builder.append(self.world.now_ms, None, value)
            model.on_sent(value, Sent(order, self.number, self.idempotent or not self.retries))
            values.append(value)
            self.number += 1
        data = builder.build(
            producer_id=self.producer_id if self.idempotent else -1,
            producer_epoch=self.producer_epoch if self.idempotent else -1,
            base_sequence=self.next_sequence if self.idempotent else -1,
        )
        self.next_sequence += len(values)
        return SentBatch(values, data, model.acknowledged_end)

    def _send(self, batch: SentBatch, leader: int) -> None:
        assert self.topic is not None
        target, partition = self.topic, self.partition
        data = PartitionProduceData(partition, MemoryRecords(batch.data, 0, len(batch.data)))
        topic = TopicProduceData(name="", topic_id=target.topic_id, partition_data=[data])
        request = ProduceRequest(None, self.acks, PRODUCE_TIMEOUT_MS, [topic])
        batch.attempts += 1
        if self.acks == 0:
            self.client.pipe(leader).tell(request, PRODUCE_VERSION)
            self.unacknowledged.remove(batch)
            if self.rng.random() < 0.1:
                self.client.refresh()  # nobody tells it that the leader has changed
        else:
            self.client.ask(
                leader, request, PRODUCE_VERSION, lambda answer: self._on_answer(batch, target, leader, answer)
            )

    def _send_again(self) -> None:
        """After a failure: everything that was not acknowledged, in its order, with its sequences."""
        self.recovering = False
        if self.topic is None or self.topic.state != PRESENT or not self.unacknowledged:
            return
        leader = self.client.leader_of(self.topic.topic_id, self.partition)
        if leader == NOBODY:
            self._recover()
            return
        for batch in list(self.unacknowledged):
            self._send(batch, leader)

    def _recover(self) -> None:
        self.recovering = True
        self.client.refresh()
        self.world.schedule(self.rng.randint(20, 300), self._send_again)

    # Answers

    def _on_answer(self, batch: SentBatch, target: ReplicatedTopic, leader: int, answer: Message | None) -> None:
        if self.recovering or not self.unacknowledged or self.unacknowledged[0] is not batch:
            return
        if not isinstance(answer, ProduceResponse):
            self._on_failed(leader, 0)
            return
        result = answer.responses[0].partition_responses[0]
        if result.error_code == errors.NONE:
            self._on_acknowledged(batch, target, result)
        elif result.error_code in SEQUENCE_ERRORS:
            self._on_sequence_error(batch, target, leader, result.error_code)
        elif result.error_code in RETRIABLE_ERRORS:
            self._on_failed(leader, result.error_code)
        else:
            raise Violation(
                f"a good batch is taken: {self.name} got {errors.error_name(result.error_code)}"
                f" ({result.error_message})"
            )

    def _on_failed(self, leader: int, error_code: int) -> None:
        batch = self.unacknowledged[0]
        assert self.topic is not None
        if not self.retries or self.topic.state != PRESENT or batch.attempts > ATTEMPTS_MAX:
            if error_code == errors.NOT_ENOUGH_REPLICAS and batch.attempts == 1:
                for value in batch.values:
                    self._partition_model().on_refused(value)
            self._give_up()
            self.client.refresh()
            return
        self.recovering = True
        self.client.disconnect(leader)
        self._recover()

    def _give_up(self) -> None:
        self.unacknowledged.clear()
        self.producer_id = -1

    def _on_acknowledged(self, batch: SentBatch, target: ReplicatedTopic, result: PartitionProduceResponse) -> None:
        self.unacknowledged.popleft()
        model = self._partition_model()
        if result.base_offset < 0:
            raise Violation(f"an acknowledged batch has an offset: {model.name} {result.base_offset}")
        self.setting.acknowledged_records += len(batch.values)
        if not target.acknowledges_durably(self.acks):
            return
        if result.base_offset < batch.not_before:
            raise Violation(
                f"a later write has a larger offset: {model.name} {result.base_offset}, before it was sent"
                f" {batch.not_before - 1} was acknowledged"
            )
        for index, value in enumerate(batch.values):
            model.on_acknowledged(result.base_offset + index, value, durable=True)

    def _on_sequence_error(self, batch: SentBatch, target: ReplicatedTopic, leader: int, error_code: int) -> None:
        """Allowed only where data was lost, or where a leader knows just the last of several batches of a producer."""
        if target.trusted and not (self.in_flight_max > 1 and batch.attempts > 1):
            raise Violation(
                f"a producer in sequence stays in sequence: {self.name} got {errors.error_name(error_code)}"
                f" on {self._partition_model().name}"
            )
        self.world.note(f"{self.name} starts again with a new producer id after {errors.error_name(error_code)}")
        self._give_up()
        self.client.disconnect(leader)
