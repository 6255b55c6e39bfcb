"""Transactional writes: held back until the coordinator has said that they belong to a transaction (KIP-890).

Only the first write of a producer to a partition in a transaction is held; once the log knows the transaction, writes
go straight in. Up to Produce 11 the client has added the partition itself; from 12 on the leader adds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.api.call import Call
from moldau.node.txn_verification import Question
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.messages.produce_response import PartitionProduceResponse
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import read_header
from moldau.replication.partition import Partition
from moldau.storage.log import Log
from moldau.storage.producer_state import VerificationGuard

FIRST_ABORTABLE_VERSION: Final = 11
FIRST_ADDING_VERSION: Final = 12
VERIFICATION_KEY: Final = "transaction.partition.verification.enable"

COORDINATOR_ERRORS: Final = frozenset(
    {
        errors.NETWORK_EXCEPTION,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.NOT_ENOUGH_REPLICAS,
        errors.REQUEST_TIMED_OUT,
        errors.KAFKA_STORAGE_ERROR,
    }
)
"""Between leader and coordinator; the client is told NOT_ENOUGH_REPLICAS, which it asks again for and nothing else."""


class HeldAppend:
    """A batch that waits for the coordinator."""

    def __init__(
        self,
        partition: Partition,
        log: Log,
        records: MemoryRecords,
        row: PartitionProduceResponse,
        producer: tuple[int, int],
        sequence: int,
        adds: bool,
    ) -> None:
        self.partition = partition
        self.log = log
        self.led_since_epoch = partition.led_since_epoch
        self.guard: VerificationGuard | None = None
        self.records = records
        self.row = row
        self.producer = producer
        self.sequence = sequence
        self.adds = adds
        self.code = errors.UNKNOWN_SERVER_ERROR

    def take_guard(self, now_ms: int) -> None:
        self.guard = self.log.producers.guard_for(self.producer[0], self.producer[1], self.sequence, now_ms)

    def check_verified(self) -> None:
        """Raises unless the coordinator agreed and nothing has ended the transaction since it was asked."""
        if self.code != errors.NONE:
            raise KafkaError(self.code)
        partition = self.partition
        is_led = partition.is_leader and partition.led_since_epoch == self.led_since_epoch
        if not is_led or partition.log is not self.log:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        assert self.guard is not None
        self.log.producers.check_guard(self.guard, self.producer[0], self.sequence, self.adds)


def hold_unverified(
    call: Call,
    request: ProduceRequest,
    partition: Partition,
    records: MemoryRecords,
    row: PartitionProduceResponse,
    held: list[HeldAppend],
) -> bool:
    """Whether this transactional batch must wait; it is in `held` then."""
    if request.transactional_id is None:
        raise KafkaError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    log = partition.check_leader(-1)
    header = read_header(records.data, records.start, records.end)
    producer_id, producer_epoch, sequence = (
        int(header.producer_id),
        int(header.producer_epoch),
        int(header.base_sequence),
    )
    if header.is_control or producer_id < 0:
        return False  # refused by the log, with what is wrong about it
    node = call.node
    adds = call.version >= FIRST_ADDING_VERSION
    if not adds and not node.config.get_bool(VERIFICATION_KEY):
        return False
    is_asking = node.txn_verification.is_asking(partition.topic, partition.index, producer_id)
    if not is_asking and log.producers.has_open_transaction(producer_id, producer_epoch):
        return False
    held.append(HeldAppend(partition, log, records, row, (producer_id, producer_epoch), sequence, adds))
    return True


def verify(call: Call, request: ProduceRequest, held: list[HeldAppend], on_verified: Callable[[int], None]) -> None:
    """Asks the coordinator about all of them at once; `on_verified(now_ms)` is called when each has its code."""
    producer = held[0].producer
    if any(one.producer != producer for one in held):
        for one in held:
            one.code = errors.INVALID_PRODUCER_ID_MAPPING
        on_verified(call.now_ms)
        return

    def done(codes: dict[tuple[str, int], int], now_ms: int) -> None:
        for one in held:
            one.code = as_producer_sees(codes[(one.partition.topic, one.partition.index)], call.version)
        on_verified(now_ms)

    def take_guards(now_ms: int) -> None:
        for one in held:
            one.take_guard(now_ms)

    places = frozenset([(one.partition.topic, one.partition.index) for one in held])
    assert request.transactional_id is not None
    question = Question(
        request.transactional_id,
        producer[0],
        producer[1],
        partitions=places,
        adds=held[0].adds,
        take_guards=take_guards,
        done=done,
        now_ms=call.now_ms,
    )
    call.node.txn_verification.ask(question, call.now_ms)


def as_producer_sees(code: int, version: int) -> int:
    """What the coordinator said, in the terms of a Produce of this version."""
    if code == errors.PRODUCER_FENCED:
        return errors.INVALID_PRODUCER_EPOCH
    if code == errors.TRANSACTION_ABORTABLE and version < FIRST_ABORTABLE_VERSION:
        return errors.INVALID_TXN_STATE
    if code in COORDINATOR_ERRORS or (code == errors.CONCURRENT_TRANSACTIONS and version < FIRST_ADDING_VERSION):
        return errors.NOT_ENOUGH_REPLICAS
    return code
