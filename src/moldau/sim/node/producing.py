"""What the producers of all simulated worlds have in common: records that say who sent them, sequences, promises kept.

A world says how requests travel and which errors pass by; this says what is sent, and what an acknowledgement binds to.
"""

from __future__ import annotations

import random
from collections import deque
from typing import ClassVar, Generic, TypeVar

from moldau.protocol import errors
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.produce_response import PartitionProduceResponse
from moldau.records.builder import BatchBuilder
from moldau.sim.kernel.world import Violation, World
from moldau.sim.models.partition import PartitionModel, Sent
from moldau.sim.models.replicated_topics import ReplicatedTopic
from moldau.sim.models.topics import TopicModel

SEQUENCE_ERRORS = (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID, errors.INVALID_PRODUCER_EPOCH)
NO_PRODUCER_ID = -1

Topic = TypeVar("Topic", TopicModel, ReplicatedTopic)


class SentBatch:
    """Records that are not acknowledged yet, and what was when they were sent for the first time."""

    def __init__(self, values: list[bytes], data: bytes, not_before: int, losses_seen: int) -> None:
        self.values = values
        self.data = data
        self.not_before = not_before
        self.losses_seen = losses_seen
        self.attempts = 0
        self.deaths_seen = 0


class BaseProducer(Generic[Topic]):
    """Writes to one partition at a time, with or without idempotence."""

    IDEMPOTENT_SHARE: ClassVar = 0.5
    ACKS: ClassVar[tuple[int, ...]] = (0, 1, 1, -1)
    CODECS: ClassVar[tuple[int, ...]] = (0,)
    RECORDS: ClassVar[tuple[int, ...]] = (1, 1, 2, 5)
    EXTRA_BYTES: ClassVar[tuple[int, ...]] = (0, 5, 40)

    def __init__(self, world: World, name: str, rng: random.Random) -> None:
        self.world = world
        self.name = name
        self.rng = rng
        self.idempotent = rng.random() < self.IDEMPOTENT_SHARE
        self.acks = -1 if self.idempotent else rng.choice(self.ACKS)
        self.retries = self.idempotent or (self.acks != 0 and rng.random() < 0.5)
        self.codec = rng.choice(self.CODECS)
        self.in_flight_max = rng.choice((1, 1, 3, 5)) if self.idempotent else 1
        self.topic: Topic | None = None
        self.partition = 0
        self.number = 0
        self.unacknowledged: deque[SentBatch] = deque()
        self.waiting_for_id = False
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.next_sequence = 0
        world.note(
            f"{name}: {'idempotent' if self.idempotent else 'plain'} acks={self.acks} codec={self.codec}"
            f" in flight {self.in_flight_max}{' retries' if self.retries else ''}"
        )
        world.schedule(rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        raise NotImplementedError

    def choose_among(self, topics: list[Topic]) -> None:
        """Moves on to another partition; what was not acknowledged is given up, and with it the producer id."""
        self.give_up()
        self.topic = self.rng.choice(topics) if topics else None
        if self.topic is not None:
            self.partition = self.rng.randrange(len(self.topic.partitions))

    def give_up(self) -> None:
        self.unacknowledged.clear()
        self.producer_id = NO_PRODUCER_ID

    def partition_model(self) -> PartitionModel:
        assert self.topic is not None
        return self.topic.partitions[self.partition]

    # The producer id

    def take_id(self, response: InitProducerIdResponse, not_yet: tuple[int, ...]) -> bool:
        """Whether there is one now; raises for an error that does not pass by."""
        if response.error_code != errors.NONE:
            if response.error_code not in not_yet:
                raise Violation(f"a producer id can be had: {self.name} got {errors.error_name(response.error_code)}")
            return False
        self.producer_id = response.producer_id
        self.producer_epoch = response.producer_epoch
        self.next_sequence = 0
        return True

    # Batches

    def build(self, losses_seen: int = 0) -> SentBatch:
        model = self.partition_model()
        builder = BatchBuilder(0, self.codec)
        # Without a producer id, a request of a broken connection may arrive after those of the next one.
        order = f"{self.name}/{self.producer_id}" if self.idempotent else None
        values = []
        for _ in range(self.rng.choice(self.RECORDS)):
            timestamp = self.timestamp()
            value = b"%s/%s/%d/" % (model.name.encode(), self.name.encode(), self.number)
            value += self.rng.randbytes(self.rng.choice(self.EXTRA_BYTES))
            key, headers = self.key_and_headers()
            builder.append(timestamp, key, value, headers)
            model.on_sent(value, Sent(order, self.number, self.idempotent or not self.retries))
            values.append(value)
            self.number += 1
        data = builder.build(
            producer_id=self.producer_id if self.idempotent else -1,
            producer_epoch=self.producer_epoch if self.idempotent else -1,
            base_sequence=self.next_sequence if self.idempotent else -1,
        )
        self.next_sequence += len(values)
        return SentBatch(values, data, model.acknowledged_end, losses_seen)

    def timestamp(self) -> int:
        return self.world.now_ms

    def key_and_headers(self) -> tuple[bytes | None, list[tuple[str, bytes | None]] | None]:
        return None, None

    # Responses

    def check_place(self, batch: SentBatch, result: PartitionProduceResponse, *, in_order: bool = True) -> None:
        name = self.partition_model().name
        if result.base_offset < 0:
            raise Violation(f"an acknowledged batch has an offset: {name} {result.base_offset}")
        if in_order and result.base_offset < batch.not_before:
            raise Violation(
                f"a later write has a larger offset: {name} {result.base_offset}, before it was sent"
                f" {batch.not_before - 1} was acknowledged"
            )

    def take_acknowledgement(self, batch: SentBatch, result: PartitionProduceResponse, *, durable: bool) -> None:
        for index, value in enumerate(batch.values):
            self.partition_model().on_acknowledged(result.base_offset + index, value, durable=durable)

    def refuse_error(self, result: PartitionProduceResponse) -> Violation:
        code = errors.error_name(result.error_code)
        return Violation(f"a good batch is taken: {self.name} got {code} ({result.error_message})")

    def on_lost_sequence(self, error_code: int, *, allowed: bool) -> None:
        """The broker does not know the sequence any more; only some things excuse that."""
        code = errors.error_name(error_code)
        if not allowed:
            raise Violation(
                f"a producer in sequence stays in sequence: {self.name} got {code} on {self.partition_model().name}"
            )
        self.world.note(f"{self.name} starts again with a new producer id after {code}")
        self.give_up()
