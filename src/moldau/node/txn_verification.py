"""Asks the coordinator whether a write belongs to an open transaction, or adds its partition to it (KIP-890).

The coordinator on this broker is asked directly; to every other one AddPartitionsToTxn is on its way at a time, with
all that has gathered. Kafka: AddPartitionsToTxnManager.

Requests of one connection do not wait for each other here, in Kafka they do. So writes of one producer to one partition
stand in line: the next is asked about when the one before is written, or refused. Judged earlier it would miss its
predecessor and be told OUT_OF_ORDER_SEQUENCE_NUMBER, after a response that says the predecessor is written: a client
has to take that for lost records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.txn.machine import TransactionMachine
from moldau.coordinator.txn.partitions import add_partitions, find_missing
from moldau.coordinator.txn.transaction import TopicPartition
from moldau.metadata.image import MetadataImage
from moldau.metrics.recent_values import RecentValues
from moldau.node.broker_channels import BrokerChannels
from moldau.node.outbox import CLOSED, NoResponse
from moldau.node.transaction_coordinator import TransactionCoordinator
from moldau.protocol import errors
from moldau.protocol.api_table import ADD_PARTITIONS_TO_TXN
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from moldau.protocol.primitives import Message
from moldau.protocol.topic_names import TRANSACTION_TOPIC
from moldau.records.clocks import NEVER_MS

REQUEST_VERSION: Final = 5
CLIENT_VERSION: Final = 2

Codes = dict[TopicPartition, int]
Done = Callable[[Codes, int], None]
"""Called with an error code for each partition, and `now_ms`."""


class Question:
    """The partitions of one request of one producer. `adds` is False where the client must have added them itself."""

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        partitions: frozenset[TopicPartition],
        adds: bool,
        take_guards: Callable[[int], None],
        done: Done,
        now_ms: int,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.partitions = partitions
        self.adds = adds
        # Called each time before the coordinator is asked: markers of the transaction before may come in between.
        self.take_guards = take_guards
        self.done = done
        self.began_ms = now_ms
        self.asked_ms = now_ms
        self.response_ms = now_ms
        self.give_up_ms = now_ms
        self.due_ms = now_ms
        # How many questions about earlier writes to the same partitions are open, and who waits for this one.
        self.behind = 0
        self.followers: list[Question] = []

    def for_all(self, code: int) -> Codes:
        return dict.fromkeys(self.partitions, code)

    # On this broker

    def decide(self, machine: TransactionMachine) -> Outcome:
        outcome = self._decide(machine)
        outcome.on_written = self._on_written
        return outcome

    def _on_written(self, error: KafkaError | None, now_ms: int) -> None:
        """Until the decision is committed seconds may pass, and what was asked about is written now and not then."""
        self.response_ms = now_ms

    def _decide(self, machine: TransactionMachine) -> Outcome:
        if self.adds:
            return add_partitions(
                machine.state,
                self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                partitions=self.partitions,
                client_version=CLIENT_VERSION,
                response=Verified(self.for_all(errors.NONE)),
                now_ms=self.asked_ms,
            )
        missing = find_missing(
            machine.state, self.transactional_id, self.producer_id, self.producer_epoch, self.partitions
        )
        codes = self.for_all(errors.NONE)
        for place in missing:
            codes[place] = errors.TRANSACTION_ABORTABLE
        return Outcome(response=Verified(codes))

    # On another

    def as_message(self) -> AddPartitionsToTxnTransaction:
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(self.partitions):
            topics.setdefault(topic, []).append(index)
        rows = [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in topics.items()]
        return AddPartitionsToTxnTransaction(
            self.transactional_id, self.producer_id, self.producer_epoch, not self.adds, rows
        )


class Verified(Message):
    """The response of the coordinator on this broker; never sent."""

    FIELDS: ClassVar[tuple[str, ...]] = ("codes",)

    def __init__(self, codes: Codes) -> None:
        super().__init__()
        self.codes = codes


class TxnVerification:
    """See the module."""

    def __init__(
        self, config: BrokerConfig, broker_id: int, coordinator: TransactionCoordinator, channels: BrokerChannels
    ) -> None:
        self._broker_id = broker_id
        self._coordinator = coordinator
        self._channels = channels
        self._timeout_ms = config.get_int("request.timeout.ms")
        self._backoff_ms = config.get_int("add.partitions.to.txn.retry.backoff.ms")
        self._backoff_max_ms = config.get_int("add.partitions.to.txn.retry.backoff.max.ms")
        self._image = MetadataImage()
        self._queues: dict[int, list[Question]] = {}
        self._in_flight: dict[int, list[Question]] = {}
        self._later: list[Question] = []
        # The last question about writes of a producer to a partition: those after them must wait, too.
        self._last: dict[tuple[str, int, int], Question] = {}
        # Questions whose turn has come; asked one after the other and not within each other.
        self._turns: deque[Question] = deque()
        self._is_asking = False
        self.times_ms = RecentValues()
        self.failures_total = 0
        self.on_deadline: Callable[[int], None] | None = None

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        self._image = image
        for broker_id in self._channels.drop_lost(image):
            in_flight = self._in_flight.get(broker_id)
            if in_flight is not None:
                self.on_remote(broker_id, in_flight, NoResponse(CLOSED), now_ms)

    def is_asking(self, topic: str, index: int, producer_id: int) -> bool:
        return len(self._last) > 0 and (topic, index, producer_id) in self._last

    def ask(self, question: Question, now_ms: int) -> None:
        """`question.done` may be called inside this call."""
        question.give_up_ms = now_ms + self._backoff_max_ms
        before: list[Question] = []
        for topic, index in question.partitions:
            key = (topic, index, question.producer_id)
            last = self._last.get(key)
            if last is not None and last not in before:
                before.append(last)
            self._last[key] = question
        for one in before:
            one.followers.append(question)
        question.behind = len(before)
        if not before:
            self._turns.append(question)
            self._ask_in_turn(now_ms)

    def _ask_in_turn(self, now_ms: int) -> None:
        if self._is_asking:
            return
        self._is_asking = True
        try:
            while self._turns:
                self._ask(self._turns.popleft(), now_ms)
        finally:
            self._is_asking = False

    def _ask(self, question: Question, now_ms: int) -> None:
        question.take_guards(now_ms)
        index = self._coordinator.partition_for(question.transactional_id)
        topic = self._image.topics_by_name.get(TRANSACTION_TOPIC)
        registration = None if topic is None else topic.partitions.get(index)
        if registration is None:
            self._finish(question, question.for_all(errors.COORDINATOR_NOT_AVAILABLE), now_ms)
        elif registration.leader == self._broker_id:
            question.asked_ms = question.response_ms = now_ms
            self._coordinator.run_at(index, question.decide, LocalResponse(self, question).done, now_ms)
        elif self._channels.find(registration.leader, self._image) is None:
            self._finish(question, question.for_all(errors.COORDINATOR_NOT_AVAILABLE), now_ms)
        else:
            self._queues.setdefault(registration.leader, []).append(question)
            self._send(registration.leader, now_ms)

    def _send(self, broker_id: int, now_ms: int) -> None:
        if broker_id in self._in_flight or not self._queues.get(broker_id):
            return
        channel = self._channels.find(broker_id, self._image)
        questions = self._take_distinct(broker_id)
        if channel is None:
            for question in questions:
                self._finish(question, question.for_all(errors.COORDINATOR_NOT_AVAILABLE), now_ms)
            return
        self._in_flight[broker_id] = questions
        request = AddPartitionsToTxnRequest([question.as_message() for question in questions])
        response = RemoteResponse(self, broker_id, questions)
        channel.send(ADD_PARTITIONS_TO_TXN, REQUEST_VERSION, request, self._timeout_ms, response.on_response)

    def _take_distinct(self, broker_id: int) -> list[Question]:
        """The response names transactional ids, so one request has each only once; the rest waits for the next."""
        taken: dict[str, Question] = {}
        left: list[Question] = []
        for question in self._queues[broker_id]:
            if question.transactional_id in taken:
                left.append(question)
            else:
                taken[question.transactional_id] = question
        self._queues[broker_id] = left
        return list(taken.values())

    def on_remote(self, broker_id: int, questions: list[Question], response: Message | NoResponse, now_ms: int) -> None:
        self._in_flight.pop(broker_id, None)
        responses: dict[str, Codes] = {}
        failure = errors.NETWORK_EXCEPTION
        if isinstance(response, AddPartitionsToTxnResponse):
            failure = response.error_code or errors.UNKNOWN_SERVER_ERROR
            for result in response.results_by_transaction:
                responses[result.transactional_id] = {
                    (topic.name, row.partition_index): row.partition_error_code
                    for topic in result.topic_results
                    for row in topic.results_by_partition
                }
        for question in questions:
            codes = responses.get(question.transactional_id, {})
            self.take(question, {place: codes.get(place, failure) for place in question.partitions}, now_ms)
        self._send(broker_id, now_ms)

    # Responses

    def take(self, question: Question, codes: Codes, now_ms: int) -> None:
        if question.adds and errors.CONCURRENT_TRANSACTIONS in codes.values() and now_ms < question.give_up_ms:
            # The markers of the transaction before are on their way: most often it is a matter of milliseconds.
            question.due_ms = now_ms + self._backoff_ms
            self._later.append(question)
            if self.on_deadline is not None:
                self.on_deadline(question.due_ms)
            return
        self._finish(question, codes, now_ms)

    def _finish(self, question: Question, codes: Codes, now_ms: int) -> None:
        self.times_ms.record(now_ms - question.began_ms, now_ms / 1000)
        for code in codes.values():
            if code != errors.NONE:
                self.failures_total += 1
        question.done(codes, now_ms)
        for topic, index in question.partitions:
            key = (topic, index, question.producer_id)
            if self._last[key] is question:
                del self._last[key]
        for follower in question.followers:
            follower.behind -= 1
            if not follower.behind:
                self._turns.append(follower)
        self._ask_in_turn(now_ms)

    def on_completed(self, transactional_id: str, now_ms: int) -> None:
        """The markers are written: whoever waits for them need not wait any longer."""
        for question in self._later:
            if question.transactional_id == transactional_id:
                question.due_ms = now_ms
                if self.on_deadline is not None:
                    self.on_deadline(now_ms)

    def poll(self, now_ms: int) -> int:
        if not self._later:
            return NEVER_MS
        due = [question for question in self._later if question.due_ms <= now_ms]
        if due:
            self._later = [question for question in self._later if question.due_ms > now_ms]
            self._turns.extend(due)
            self._ask_in_turn(now_ms)
        return min([question.due_ms for question in self._later], default=NEVER_MS)

    def close(self) -> None:
        self._channels.close()


class LocalResponse:
    def __init__(self, owner: TxnVerification, question: Question) -> None:
        self._owner = owner
        self._question = question

    def done(self, result: Message | KafkaError) -> None:
        if isinstance(result, KafkaError):
            codes = self._question.for_all(result.code)
        else:
            assert isinstance(result, Verified)
            codes = result.codes
        self._owner.take(self._question, codes, self._question.response_ms)


class RemoteResponse:
    def __init__(self, owner: TxnVerification, broker_id: int, questions: list[Question]) -> None:
        self._owner = owner
        self._broker_id = broker_id
        self._questions = questions

    def on_response(self, response: Message | NoResponse, now_ms: int) -> None:
        self._owner.on_remote(self._broker_id, self._questions, response, now_ms)
