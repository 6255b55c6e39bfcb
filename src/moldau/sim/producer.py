"""Simulated producers: acks 0, 1 and all, with and without idempotence, every codec, retries after lost connections."""

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
from moldau.records.codecs import ZSTD
from moldau.sim.client import SimClient
from moldau.sim.cluster_model import PRESENT, TopicModel
from moldau.sim.model import PartitionModel, Sent
from moldau.sim.world import Violation

if TYPE_CHECKING:
    from moldau.sim.node_world import NodeWorld

CODECS = (0, 0, 1, 2, 3, 4)
TRANSIENT_ERRORS = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.LEADER_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.REQUEST_TIMED_OUT,
    errors.KAFKA_STORAGE_ERROR,
)
SEQUENCE_ERRORS = (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID, errors.INVALID_PRODUCER_EPOCH)
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_ZSTD = 7


class SentBatch:
    def __init__(self, values: list[bytes], data: bytes, not_before: int, losses_seen: int) -> None:
        self.values = values
        self.data = data
        self.not_before = not_before
        self.losses_seen = losses_seen
        self.attempts = 0
        self.deaths_seen = 0


class SimProducer:
    def __init__(self, setting: NodeWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.rng = setting.world.derived_rng(f"producer {name}")
        self.client = SimClient(setting.world, setting.host, name)
        self.idempotent = self.rng.random() < 0.5
        self.acks = -1 if self.idempotent else self.rng.choice((0, 1, 1, -1))
        self.retries = self.idempotent or (self.acks != 0 and self.rng.random() < 0.5)
        self.codec = self.rng.choice(CODECS)
        self.in_flight_max = self.rng.choice((1, 1, 3, 5)) if self.idempotent else 1
        self.topic: TopicModel | None = None
        self.partition = 0
        self.number = 0
        self.unacknowledged: deque[SentBatch] = deque()
        self.waiting_for_id = False
        self.producer_id = -1
        self.producer_epoch = -1
        self.next_sequence = 0
        self.losses_at_start = 0
        self.world.note(
            f"{name}: {'idempotent' if self.idempotent else 'plain'} acks={self.acks} codec={self.codec}"
            f" in flight {self.in_flight_max}{' retries' if self.retries else ''}"
        )
        self.world.schedule(self.rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        self.world.schedule(self.rng.randint(5, 120), self.tick)
        if self.setting.paused or self.waiting_for_id:
            return
        if self.topic is None or self.topic.state != PRESENT or (not self.unacknowledged and self.rng.random() < 0.02):
            self._choose_partition()
        if self.topic is None:
            return
        if self.idempotent and self.producer_id < 0:
            self._ask_for_id()
        elif len(self.unacknowledged) < self.in_flight_max and self.client.in_flight == len(self.unacknowledged):
            self._send_new()

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
        self.client.call(InitProducerIdRequest(None, 60000), 4, self._on_id)

    def _on_id(self, answer: Message | None) -> None:
        self.waiting_for_id = False
        if answer is None:
            return
        assert isinstance(answer, InitProducerIdResponse)
        if answer.error_code in (errors.COORDINATOR_NOT_AVAILABLE, errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NONE):
            if answer.error_code == errors.NONE:
                self.setting.check_producer_id_is_new(answer.producer_id, answer.producer_epoch)
                self.producer_id = answer.producer_id
                self.producer_epoch = answer.producer_epoch
                self.next_sequence = 0
                self.losses_at_start = self.setting.data_losses
        elif answer.error_code not in TRANSIENT_ERRORS:
            raise Violation(f"a producer id can be had: {self.name} got {errors.error_name(answer.error_code)}")

    # Sending

    def _partition_model(self) -> PartitionModel:
        assert self.topic is not None
        return self.topic.partitions[self.partition]

    def _send_new(self) -> None:
        batch = self._build()
        self.unacknowledged.append(batch)
        self._send(batch)

    def _build(self) -> SentBatch:
        model = self._partition_model()
        builder = BatchBuilder(0, self.codec)
        # Without a producer id, a request of a broken connection may arrive after those of the next one.
        order = f"{self.name}/{self.producer_id}" if self.idempotent else None
        values = []
        for _ in range(self.rng.choice((1, 1, 2, 5, 12))):
            timestamp = self.world.now_ms + self.rng.randint(-2000, 2000)
            value = b"%s/%s/%d/" % (model.name.encode(), self.name.encode(), self.number)
            value += self.rng.randbytes(self.rng.choice((0, 5, 40, 150)))
            key = None if self.rng.random() < 0.5 else b"key%d" % self.rng.randint(0, 9)
            headers: list[tuple[str, bytes | None]] | None = (
                [("h", b"1"), ("", None)] if self.rng.random() < 0.1 else None
            )
            builder.append(timestamp, key, value, headers)
            model.on_sent(value, Sent(order, self.number, self.idempotent or not self.retries))
            values.append(value)
            self.number += 1
        sequence = self.next_sequence if self.idempotent else -1
        data = builder.build(
            producer_id=self.producer_id if self.idempotent else -1,
            producer_epoch=self.producer_epoch if self.idempotent else -1,
            base_sequence=sequence,
        )
        self.next_sequence += len(values)
        return SentBatch(values, data, model.acknowledged_end, self.setting.data_losses)

    def _send(self, batch: SentBatch) -> None:
        assert self.topic is not None
        version = FIRST_VERSION_WITH_TOPIC_IDS if self.topic.transient else self.rng.choice((3, 7, 8, 9, 12, 13))
        if self.codec == ZSTD:
            version = max(version, FIRST_VERSION_WITH_ZSTD)
        topic = TopicProduceData(
            name=self.topic.name if version < FIRST_VERSION_WITH_TOPIC_IDS else "",
            topic_id=self.topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else bytes(16),
            partition_data=[PartitionProduceData(self.partition, MemoryRecords(batch.data, 0, len(batch.data)))],
        )
        request = ProduceRequest(None, self.acks, 1000, [topic])
        batch.attempts += 1
        batch.deaths_seen = self.setting.deaths
        if self.acks == 0:
            self.client.tell(request, version)
            self.unacknowledged.remove(batch)
        else:
            target = self.topic
            self.client.call(request, version, lambda answer: self._on_answer(batch, target, answer))

    def _send_again(self) -> None:
        """After a break: everything that was not acknowledged, in its order, with its sequences."""
        if self.setting.paused or not self.setting.host.running:
            self.world.schedule(50, self._send_again)
            return
        if self.client.in_flight == 0:
            for batch in list(self.unacknowledged):
                self._send(batch)

    # Answers

    def _on_answer(self, batch: SentBatch, target: TopicModel, answer: Message | None) -> None:
        if not self.unacknowledged or self.unacknowledged[0] is not batch or self.topic is not target:
            return
        if answer is None:
            self._on_break()
            return
        assert isinstance(answer, ProduceResponse)
        result = answer.responses[0].partition_responses[0]
        if result.error_code == errors.NONE:
            self._on_acknowledged(batch, result)
        elif result.error_code in SEQUENCE_ERRORS:
            self._on_sequence_error(batch, result.error_code)
        elif result.error_code in TRANSIENT_ERRORS:
            self.client.disconnect(f"{self.name} retries after {errors.error_name(result.error_code)}")
            self._on_break()
        else:
            raise Violation(
                f"a good batch is taken: {self.name} got {errors.error_name(result.error_code)}"
                f" ({result.error_message})"
            )

    def _on_break(self) -> None:
        if (
            not self.retries
            or self.topic is None
            or self.topic.state != PRESENT
            or self.unacknowledged[0].attempts > 20
        ):
            self.unacknowledged.clear()
            self.producer_id = -1
            return
        self.world.schedule(self.rng.randint(10, 200), self._send_again)

    def _on_acknowledged(self, batch: SentBatch, result: PartitionProduceResponse) -> None:
        self.unacknowledged.popleft()
        model = self._partition_model()
        assert self.topic is not None
        if result.base_offset < 0:
            raise Violation(f"an acknowledged batch has an offset: {model.name} {result.base_offset}")
        if result.base_offset < batch.not_before and self.setting.data_losses == batch.losses_seen:
            raise Violation(
                f"a later write has a larger offset: {model.name} {result.base_offset}, before it was sent"
                f" {batch.not_before - 1} was acknowledged"
            )
        for index, value in enumerate(batch.values):
            model.on_acknowledged(result.base_offset + index, value, durable=self.topic.synced)
        self.setting.acknowledged_records += len(batch.values)

    def _on_sequence_error(self, batch: SentBatch, error_code: int) -> None:
        """Allowed only where the broker lost data, or forgot all but the last batch of the producer at a restart."""
        restarted = self.setting.deaths > batch.deaths_seen or batch.attempts > 1
        excused = self.setting.data_losses > self.losses_at_start or (self.in_flight_max > 1 and restarted)
        if not excused:
            raise Violation(
                f"a producer in sequence stays in sequence: {self.name} got {errors.error_name(error_code)}"
                f" on {self._partition_model().name}"
            )
        self.world.note(f"{self.name} starts again with a new producer id after {errors.error_name(error_code)}")
        self.client.disconnect(f"{self.name} gives up its batches")
        self.unacknowledged.clear()
        self.producer_id = -1
