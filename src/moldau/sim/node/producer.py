"""Simulated producers: acks 0, 1 and all, with and without idempotence, every codec, retries after lost connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.codecs import ZSTD
from moldau.sim.models.topics import PRESENT, TopicModel
from moldau.sim.node.client import SimClient
from moldau.sim.node.producing import SEQUENCE_ERRORS, BaseProducer, SentBatch

if TYPE_CHECKING:
    from moldau.sim.node.world import NodeWorld

TRANSIENT_ERRORS = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.LEADER_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.REQUEST_TIMED_OUT,
    errors.KAFKA_STORAGE_ERROR,
)
NO_ID_YET = (*TRANSIENT_ERRORS, errors.COORDINATOR_NOT_AVAILABLE, errors.COORDINATOR_LOAD_IN_PROGRESS)
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_ZSTD = 7


class SimProducer(BaseProducer[TopicModel]):
    CODECS = (0, 0, 1, 2, 3, 4)
    RECORDS = (1, 1, 2, 5, 12)
    EXTRA_BYTES = (0, 5, 40, 150)

    def __init__(self, setting: NodeWorld, name: str) -> None:
        self.setting = setting
        self.client = SimClient(setting.world, setting.host, name)
        self.losses_at_start = 0
        super().__init__(setting.world, name, setting.world.derived_rng(f"producer {name}"))

    def tick(self) -> None:
        self.world.schedule(self.rng.randint(5, 120), self.tick)
        if self.setting.paused or self.waiting_for_id:
            return
        if self.topic is None or self.topic.state != PRESENT or (not self.unacknowledged and self.rng.random() < 0.02):
            self.choose_among(self.setting.model.present())
        if self.topic is None:
            return
        if self.idempotent and self.producer_id < 0:
            self._ask_for_id()
        elif len(self.unacknowledged) < self.in_flight_max and self.client.in_flight == len(self.unacknowledged):
            self._send_new()

    # The producer id

    def _ask_for_id(self) -> None:
        self.waiting_for_id = True
        self.client.call(InitProducerIdRequest(None, 60000), 4, self._on_id)

    def _on_id(self, response: Message | None) -> None:
        self.waiting_for_id = False
        if response is None:
            return
        assert isinstance(response, InitProducerIdResponse)
        if self.take_id(response, NO_ID_YET):
            self.setting.check_producer_id_is_new(response.producer_id, response.producer_epoch)
            self.losses_at_start = self.setting.data_losses

    # Sending

    def _send_new(self) -> None:
        batch = self.build(self.setting.data_losses)
        self.unacknowledged.append(batch)
        self._send(batch)

    def timestamp(self) -> int:
        return self.world.now_ms + self.rng.randint(-2000, 2000)

    def key_and_headers(self) -> tuple[bytes | None, list[tuple[str, bytes | None]] | None]:
        key = None if self.rng.random() < 0.5 else b"key%d" % self.rng.randint(0, 9)
        return key, [("h", b"1"), ("", None)] if self.rng.random() < 0.1 else None

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
            self.client.call(request, version, lambda response: self._on_response(batch, target, response))

    def _send_again(self) -> None:
        """After a break: everything that was not acknowledged, in its order, with its sequences."""
        if self.setting.paused or not self.setting.host.running:
            self.world.schedule(50, self._send_again)
            return
        if self.client.in_flight == 0:
            for batch in list(self.unacknowledged):
                self._send(batch)

    # Responses

    def _on_response(self, batch: SentBatch, target: TopicModel, response: Message | None) -> None:
        if not self.unacknowledged or self.unacknowledged[0] is not batch or self.topic is not target:
            return
        if response is None:
            self._on_break()
            return
        assert isinstance(response, ProduceResponse)
        result = response.responses[0].partition_responses[0]
        if result.error_code == errors.NONE:
            self._on_acknowledged(batch, result)
        elif result.error_code in SEQUENCE_ERRORS:
            self._on_sequence_error(batch, result.error_code)
        elif result.error_code in TRANSIENT_ERRORS:
            self.client.disconnect(f"{self.name} retries after {errors.error_name(result.error_code)}")
            self._on_break()
        else:
            raise self.refuse_error(result)

    def _on_break(self) -> None:
        if (
            not self.retries
            or self.topic is None
            or self.topic.state != PRESENT
            or self.unacknowledged[0].attempts > 20
        ):
            self.give_up()
            return
        self.world.schedule(self.rng.randint(10, 200), self._send_again)

    def _on_acknowledged(self, batch: SentBatch, result: PartitionProduceResponse) -> None:
        self.unacknowledged.popleft()
        assert self.topic is not None
        self.check_place(batch, result, in_order=self.setting.data_losses == batch.losses_seen)
        self.take_acknowledgement(batch, result, durable=self.topic.synced)
        self.setting.acknowledged_records += len(batch.values)

    def _on_sequence_error(self, batch: SentBatch, error_code: int) -> None:
        """Allowed only where the broker lost data, or forgot all but the last batch of the producer at a restart."""
        restarted = self.setting.deaths > batch.deaths_seen or batch.attempts > 1
        allowed = self.setting.data_losses > self.losses_at_start or (self.in_flight_max > 1 and restarted)
        self.on_lost_sequence(error_code, allowed=allowed)
        self.client.disconnect(f"{self.name} gives up its batches")
