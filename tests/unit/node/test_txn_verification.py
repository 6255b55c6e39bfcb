"""Writes of one producer to one partition are judged in the order in which they came, whoever answers how fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from moldau.coordinator.outcome import Outcome
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import RECOVERED
from moldau.node import txn_verification
from moldau.node.broker_channels import BrokerChannels
from moldau.node.outbox import TIMED_OUT, Channel, NoResponse, OnResponse, Outbox
from moldau.node.transaction_coordinator import TransactionCoordinator
from moldau.node.txn_verification import Question, TxnVerification, Verified
from moldau.protocol import errors
from moldau.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from moldau.protocol.primitives import Message
from moldau.protocol.stored import metadata_records as r
from tests.unit.controller.world import config

pytestmark = pytest.mark.skipif(
    not str(txn_verification.__file__).endswith(".py"), reason="compiled code takes no coordinator of a test's own"
)

PRODUCER = 7


class Asked(Channel):
    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[tuple[AddPartitionsToTxnRequest, OnResponse]] = []

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: OnResponse) -> None:
        assert isinstance(request, AddPartitionsToTxnRequest)
        self.requests.append((request, answered))

    def close(self) -> None:
        pass


class Channels(Outbox):
    def __init__(self) -> None:
        self.by_port: dict[int, Asked] = {}

    def open(self, purpose: str, host: str, port: int) -> Channel:
        return self.by_port.setdefault(port, Asked(port))


class OwnCoordinator:
    """The coordinator on this broker: answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Any], None]] = []
        self.answers_at_once = False

    def partition_for(self, transactional_id: str) -> int:
        return 0

    def run_at(self, index: int, verb: Callable[[Any], Outcome], done: Callable[[Any], None], now_ms: int) -> None:
        self.asked.append(done)
        if self.answers_at_once:
            self.answer(errors.NONE)

    def answer(self, code: int) -> None:
        self.asked.pop(0)(Verified({("t", index): code for index in range(10)}))


class World:
    """This is broker 1; brokers 2 and 3 are there, too."""

    def __init__(self, leader: int) -> None:
        self.now_ms = 1000
        self.coordinator = OwnCoordinator()
        self.outbox = Channels()
        self.verification = TxnVerification(
            config(),
            1,
            cast(TransactionCoordinator, self.coordinator),
            BrokerChannels(self.outbox, "verification", "PLAINTEXT"),
        )
        self.judged: list[tuple[str, int]] = []
        self.image = MetadataImage()
        self.move_coordinator(leader)

    def move_coordinator(self, leader: int) -> None:
        delta = MetadataDelta(self.image)
        if not self.image.brokers:
            for broker_id in (1, 2, 3):
                endpoint = r.BrokerEndpoint("PLAINTEXT", "h", 9090 + broker_id, 0)
                delta.replay(r.RegisterBrokerRecord(broker_id, end_points=[endpoint], fenced=False))
            delta.replay(r.TopicRecord("__transaction_state", bytes(15) + b"t"))
        partition = r.PartitionRecord(0, bytes(15) + b"t", [1, 2, 3], [1, 2, 3])
        partition.leader, partition.leader_recovery_state = leader, RECOVERED
        partition.leader_epoch = partition.partition_epoch = self.image.offset + 1
        delta.replay(partition)
        self.image = delta.apply(self.image.offset + 1, 1, self.now_ms)
        self.verification.on_metadata(self.image, self.now_ms)

    def ask(self, name: str, *partitions: int, adds: bool = False) -> None:
        """A write of the producer to these partitions; `judged` has its name and its first code when it has one."""

        def done(codes: dict[tuple[str, int], int], now_ms: int) -> None:
            self.judged.append((name, codes[("t", partitions[0])]))

        places = frozenset([("t", index) for index in partitions])
        question = Question(
            "x",
            PRODUCER,
            0,
            partitions=places,
            adds=adds,
            take_guards=lambda now_ms: None,
            done=done,
            now_ms=self.now_ms,
        )
        self.verification.ask(question, self.now_ms)

    def sent_to(self, broker_id: int) -> int:
        channel = self.outbox.by_port.get(9090 + broker_id)
        return 0 if channel is None else len(channel.requests)

    def answer(self, broker_id: int, code: int = errors.NONE) -> None:
        request, answered = self.outbox.by_port[9090 + broker_id].requests.pop(0)
        results = [
            AddPartitionsToTxnResult(
                transaction.transactional_id,
                [
                    AddPartitionsToTxnTopicResult(
                        topic.name, [AddPartitionsToTxnPartitionResult(index, code) for index in topic.partitions]
                    )
                    for topic in transaction.topics
                ],
            )
            for transaction in request.transactions
        ]
        answered(AddPartitionsToTxnResponse(results_by_transaction=results), self.now_ms)


@pytest.mark.parametrize("new_leader", [1, 3])
def test_a_coordinator_that_moves_does_not_change_the_order(new_leader: int) -> None:
    """The old one has agreed to the first write, and is slow to say so; the new one would agree to the second at once.
    Then the first is written, the second was refused because it was not: transaction version 1 knows no way out."""
    world = World(leader=2)
    world.coordinator.answers_at_once = True
    world.ask("first", 0)
    world.move_coordinator(new_leader)
    world.ask("second", 0)
    assert world.sent_to(3) == 0 and world.judged == []
    world.answer(2)
    if new_leader == 3:
        world.answer(3)
    assert world.judged == [("first", 0), ("second", 0)]


def test_who_waits_to_ask_again_is_not_overtaken() -> None:
    world = World(leader=1)
    world.ask("first", 0, adds=True)
    world.coordinator.answer(errors.CONCURRENT_TRANSACTIONS)
    world.coordinator.answers_at_once = True
    world.ask("second", 0, adds=True)
    assert world.judged == []
    world.now_ms += 50
    world.verification.poll(world.now_ms)
    assert world.judged == [("first", 0), ("second", 0)]


def test_a_write_to_several_partitions_waits_for_all_before_it_and_others_do_not_wait() -> None:
    world = World(leader=2)
    world.ask("first", 0)
    world.move_coordinator(3)
    world.ask("second", 1)
    world.ask("both", 0, 1)
    world.ask("other", 2)
    assert world.sent_to(2) == 1 and world.sent_to(3) == 1
    world.answer(3)
    world.answer(3)
    assert world.judged == [("second", 0), ("other", 0)], "both still waits for the first"
    world.answer(2)
    world.answer(3)
    assert world.judged[2:] == [("first", 0), ("both", 0)]
    assert not world.verification.is_asking("t", 0, PRODUCER) and not world.verification.is_asking("t", 1, PRODUCER)


def test_when_the_first_is_refused_the_next_is_asked_about() -> None:
    world = World(leader=2)
    world.ask("first", 0)
    world.ask("second", 0)
    _, answered = world.outbox.by_port[9092].requests.pop(0)
    answered(NoResponse(TIMED_OUT), world.now_ms)
    assert world.judged == [("first", errors.NETWORK_EXCEPTION)]
    world.answer(2)
    assert world.judged[1:] == [("second", 0)]


def test_a_long_line_is_worked_off_without_getting_deep() -> None:
    """A client may send hundreds of requests without waiting, and the coordinator on this broker answers at once."""
    world = World(leader=1)
    for number in range(2000):
        world.ask(str(number), 0)
    world.coordinator.answers_at_once = True
    world.coordinator.answer(errors.NONE)
    assert world.judged == [(str(number), 0) for number in range(2000)]
