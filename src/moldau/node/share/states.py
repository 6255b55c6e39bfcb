"""Asks share coordinators for the state of share partitions, and has them keep it.

The coordinator on this broker is asked directly. To every other one goes one request of a kind and group at a time,
with all that has gathered; what cannot be answered now is asked again, elsewhere if need be. Kafka:
PersisterStateManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.share.machine import ShareMachine
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.metadata.image import MetadataImage
from moldau.node.broker_channels import BrokerChannels
from moldau.node.outbox import CLOSED, NoResponse
from moldau.node.share.coordinator import ShareCoordinator
from moldau.node.share.state_messages import INITIALIZE, READ, SUMMARY, WRITE, Row, request_for, rows_of
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import initialize_share_group_state_request as initialize_request
from moldau.protocol.messages import write_share_group_state_request as write_request
from moldau.protocol.primitives import Message
from moldau.protocol.topic_names import SHARE_TOPIC
from moldau.records.clocks import NEVER_MS

ATTEMPTS_MAX: Final = 9
BACKOFF_MS: Final = 50
BACKOFF_MAX_MS: Final = 10_000
RETRIED: Final = frozenset(
    {
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.NOT_COORDINATOR,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.NETWORK_EXCEPTION,
        errors.REQUEST_TIMED_OUT,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.NOT_ENOUGH_REPLICAS,
        errors.KAFKA_STORAGE_ERROR,
    }
)

StateDone = Callable[[Message | KafkaError, int], None]
"""Called with the partition's row of the response or an error, and `now_ms`; never inside the call that asks."""


class StateQuestion:
    """One thing to do with the state of one share partition."""

    def __init__(self, kind: int, key: SharePartitionKey, row: Message, done: StateDone) -> None:
        self.kind = kind
        self.key = key
        self.row = row
        self.done = done
        self.attempts = 0
        self.asked_ms = 0
        self.due_ms = 0

    def decide(self, machine: ShareMachine) -> Outcome:
        """On this broker."""
        row = self.row
        if self.kind == INITIALIZE:
            assert isinstance(row, initialize_request.PartitionData)
            return machine.initialize(self.key, row, self.asked_ms)
        if self.kind == WRITE:
            assert isinstance(row, write_request.PartitionData)
            return machine.write(self.key, row, self.asked_ms)
        if self.kind == READ:
            return machine.read(self.key, leader_epoch_of(row))
        return machine.read_summary(self.key) if self.kind == SUMMARY else machine.delete(self.key)


def leader_epoch_of(row: Message) -> int:
    epoch = getattr(row, "leader_epoch", -1)
    assert isinstance(epoch, int)
    return epoch


class ShareStates:
    """See the module."""

    def __init__(
        self, broker_id: int, coordinator: ShareCoordinator, channels: BrokerChannels, timeout_ms: int
    ) -> None:
        self._broker_id = broker_id
        self._coordinator = coordinator
        self._channels = channels
        self._timeout_ms = timeout_ms
        self._image = MetadataImage()
        # By broker, kind and group: what waits for the request that is under way.
        self._queues: dict[tuple[int, int, str], list[StateQuestion]] = {}
        self._in_flight: dict[tuple[int, int, str], list[StateQuestion]] = {}
        self._later: list[StateQuestion] = []
        self._results: list[tuple[StateQuestion, Message | KafkaError]] = []
        self.on_deadline: Callable[[int], None] | None = None

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        self._image = image
        for broker_id in self._channels.drop_lost(image):
            for place in [place for place in self._in_flight if place[0] == broker_id]:
                self._on_remote(place, self._in_flight[place], NoResponse(CLOSED), now_ms)

    def ask(self, question: StateQuestion, now_ms: int) -> None:
        question.attempts += 1
        question.asked_ms = now_ms
        index = self._coordinator.partition_for(question.key)
        topic = self._image.topics_by_name.get(SHARE_TOPIC)
        registration = None if topic is None else topic.partitions.get(index)
        if registration is None or registration.leader < 0:
            self._take(question, KafkaError(errors.COORDINATOR_NOT_AVAILABLE), now_ms)
        elif registration.leader == self._broker_id:
            self._coordinator.run(question.key, question.decide, LocalResponse(self, question).done, now_ms)
        elif self._channels.find(registration.leader, self._image) is None:
            self._take(question, KafkaError(errors.COORDINATOR_NOT_AVAILABLE), now_ms)
        else:
            place = (registration.leader, question.kind, question.key[0])
            self._queues.setdefault(place, []).append(question)
            self._send(place, now_ms)

    # Another broker

    def _send(self, place: tuple[int, int, str], now_ms: int) -> None:
        if place in self._in_flight or not self._queues.get(place):
            return
        broker_id, kind, group_id = place
        channel = self._channels.find(broker_id, self._image)
        questions = self._take_distinct(place)
        if channel is None:
            for question in questions:
                self._take(question, KafkaError(errors.COORDINATOR_NOT_AVAILABLE), now_ms)
            return
        self._in_flight[place] = questions
        request = request_for(kind, group_id, [(question.key, question.row) for question in questions])
        response = RemoteResponse(self, place, questions)
        channel.send(kind, 0 if kind not in (SUMMARY, WRITE) else 1, request, self._timeout_ms, response.on_response)

    def _take_distinct(self, place: tuple[int, int, str]) -> list[StateQuestion]:
        """One request names a partition once; a second write to it waits for the response to the first."""
        taken: dict[SharePartitionKey, StateQuestion] = {}
        left = []
        for question in self._queues.pop(place):
            if question.key in taken:
                left.append(question)
            else:
                taken[question.key] = question
        if left:
            self._queues[place] = left
        return list(taken.values())

    def _on_remote(
        self, place: tuple[int, int, str], questions: list[StateQuestion], response: Message | NoResponse, now_ms: int
    ) -> None:
        if self._in_flight.get(place) is not questions:
            return
        del self._in_flight[place]
        rows: dict[tuple[bytes, int], Row] = {} if isinstance(response, NoResponse) else rows_of(place[1], response)
        for question in questions:
            row = rows.get(question.key[1:])
            if row is None:
                self._take(question, KafkaError(errors.NETWORK_EXCEPTION), now_ms)
            elif row.error_code != errors.NONE:
                self._take(question, KafkaError(row.error_code, row.error_message or ""), now_ms)
            else:
                self._take(question, row.message, now_ms)
        self._send(place, now_ms)

    # Responses

    def _take(self, question: StateQuestion, result: Message | KafkaError, now_ms: int) -> None:
        if isinstance(result, KafkaError) and result.code in RETRIED and question.attempts < ATTEMPTS_MAX:
            question.due_ms = now_ms + min(BACKOFF_MAX_MS, BACKOFF_MS << question.attempts)
            self._later.append(question)
            self._wake(question.due_ms)
            return
        # In a turn of its own: who asks must not be called back before it knows what it has asked.
        self._results.append((question, result))
        self._wake(now_ms)

    def _wake(self, due_ms: int) -> None:
        if self.on_deadline is not None:
            self.on_deadline(due_ms)

    def poll(self, now_ms: int) -> int:
        while self._results:
            results, self._results = self._results, []
            for question, result in results:
                question.done(result, now_ms)
        due = [question for question in self._later if question.due_ms <= now_ms]
        if due:
            self._later = [question for question in self._later if question.due_ms > now_ms]
            for question in due:
                self.ask(question, now_ms)
        if self._results:
            return now_ms
        return min([question.due_ms for question in self._later], default=NEVER_MS)

    def close(self) -> None:
        self._channels.close()


class LocalResponse:
    def __init__(self, owner: ShareStates, question: StateQuestion) -> None:
        self._owner = owner
        self._question = question

    def done(self, result: Message | KafkaError) -> None:
        self._owner._take(self._question, result, self._question.asked_ms)


class RemoteResponse:
    def __init__(self, owner: ShareStates, place: tuple[int, int, str], questions: list[StateQuestion]) -> None:
        self._owner = owner
        self._place = place
        self._questions = questions

    def on_response(self, response: Message | NoResponse, now_ms: int) -> None:
        self._owner._on_remote(self._place, self._questions, response, now_ms)
