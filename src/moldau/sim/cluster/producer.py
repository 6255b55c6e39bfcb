"""Producers of a simulated cluster: they follow the leader, repeat what got no response, and recall every promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.sim.cluster.client import NOBODY, ClusterClient
from moldau.sim.models.replicated_topics import PRESENT, ReplicatedTopic
from moldau.sim.node.producing import SEQUENCE_ERRORS, BaseProducer, SentBatch

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

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
NO_ID_YET = (
    *RETRIABLE_ERRORS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NOT_COORDINATOR,
)


class ClusterProducer(BaseProducer[ReplicatedTopic]):
    IDEMPOTENT_SHARE = 0.6
    ACKS = (0, 1, -1, -1)
    CODECS = (0, 0, 0, 0, 2, 3)

    def __init__(self, setting: ClusterWorld, name: str) -> None:
        self.setting = setting
        self.client = ClusterClient(setting, name)
        self.recovering = False
        super().__init__(setting.world, name, self.client.rng)

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(10, 150), self.tick)
        if self.waiting_for_id or self.recovering:
            return
        if self.topic is None or self.topic.state != PRESENT or (not self.unacknowledged and self.rng.random() < 0.03):
            self.choose_among(self.setting.model.present())
        if self.topic is None:
            return
        leader = self.client.leader_of(self.topic.topic_id, self.partition)
        if leader == NOBODY:
            self.client.refresh()
        elif self.idempotent and self.producer_id < 0:
            self._ask_for_id()
        elif len(self.unacknowledged) < self.in_flight_max and not self.setting.quiet:
            self._send_new(leader)

    # The producer id

    def _ask_for_id(self) -> None:
        self.waiting_for_id = True
        self.client.ask(self.client.any_node(), InitProducerIdRequest(None, 60000), 4, self._on_id, 1500)

    def _on_id(self, response: Message | None) -> None:
        self.waiting_for_id = False
        if isinstance(response, InitProducerIdResponse) and self.take_id(response, NO_ID_YET):
            self.setting.check_producer_id_is_new(response.producer_id, response.producer_epoch)

    # Sending

    def _send_new(self, leader: int) -> None:
        batch = self.build()
        self.unacknowledged.append(batch)
        self._send(batch, leader)

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
                leader, request, PRODUCE_VERSION, lambda response: self._on_response(batch, target, leader, response)
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

    # Responses

    def _on_response(self, batch: SentBatch, target: ReplicatedTopic, leader: int, response: Message | None) -> None:
        if self.recovering or batch not in self.unacknowledged:
            return
        if self.unacknowledged[0] is not batch:
            # It went to another leader than those before it, whose responses may still come: from the first on again.
            self._on_failed(leader, 0)
            return
        if not isinstance(response, ProduceResponse):
            self._on_failed(leader, 0)
            return
        result = response.responses[0].partition_responses[0]
        if result.error_code == errors.NONE:
            self._on_acknowledged(batch, target, result)
        elif result.error_code in SEQUENCE_ERRORS:
            self._on_sequence_error(batch, target, leader, result.error_code)
        elif result.error_code in RETRIABLE_ERRORS:
            self._on_failed(leader, result.error_code)
        else:
            raise self.refuse_error(result)

    def _on_failed(self, leader: int, error_code: int) -> None:
        batch = self.unacknowledged[0]
        assert self.topic is not None
        if not self.retries or self.topic.state != PRESENT or batch.attempts > ATTEMPTS_MAX:
            if error_code == errors.NOT_ENOUGH_REPLICAS and batch.attempts == 1:
                for value in batch.values:
                    self.partition_model().on_refused(value)
            self.give_up()
            self.client.refresh()
            return
        self.recovering = True
        self.client.disconnect(leader)
        self._recover()

    def _on_acknowledged(self, batch: SentBatch, target: ReplicatedTopic, result: PartitionProduceResponse) -> None:
        self.unacknowledged.popleft()
        is_promise = target.acknowledges_durably(self.acks)
        self.check_place(batch, result, in_order=is_promise)
        self.setting.acknowledged_records += len(batch.values)
        if is_promise:
            self.take_acknowledgement(batch, result, durable=True)

    def _on_sequence_error(self, batch: SentBatch, target: ReplicatedTopic, leader: int, error_code: int) -> None:
        """Allowed only where data was lost, or where a leader knows just the last of several batches of a producer."""
        allowed = not target.trusted or (self.in_flight_max > 1 and batch.attempts > 1)
        self.on_lost_sequence(error_code, allowed=allowed)
        self.client.disconnect(leader)
