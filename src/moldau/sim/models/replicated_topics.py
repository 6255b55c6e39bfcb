"""What must be true of replicated topics, from what clients sent, were told and read.

A topic is *trusted* as long as its durability allows for the faults that happened: with `min.insync.replicas` 2 one
broker at a time may lose what it had not synced; with 1 nobody may. What is not trusted any more is only used.
"""

from __future__ import annotations

from moldau.sim.kernel.world import Violation
from moldau.sim.models.partition import (
    LogView,
    PartitionModel,
    check_a_producers_records_are_in_its_order,
    check_nothing_is_there_twice,
    check_sequences_of_a_producer_are_contiguous,
    check_what_was_acknowledged_is_there,
    check_what_was_refused_is_not_there,
)

ASKED = "asked for"
PRESENT = "present"
DELETING = "deleting"
GONE = "gone"


class ReplicatedTopic:
    def __init__(
        self, name: str, partitions: int, replication_factor: int, min_insync: int, *, unclean: bool, transient: bool
    ) -> None:
        self.name = name
        self.topic_id = bytes(16)
        self.state = ASKED
        self.replication_factor = replication_factor
        self.min_insync = min_insync
        self.unclean = unclean
        self.transient = transient
        self.trusted = not unclean
        self.is_moved = False
        self.partitions = [PartitionModel(f"{name}-{index}") for index in range(partitions)]

    def on_created(self, topic_id: bytes) -> None:
        self.topic_id = topic_id
        self.state = PRESENT

    def on_power_loss(self) -> None:
        """A broker lost what it had not synced."""
        if self.min_insync < 2:
            self.trusted = False

    def on_moved(self) -> None:
        """Somebody gives a partition other replicas: while they take over it has followers."""
        self.is_moved = True

    def acknowledges_durably(self, acks: int) -> bool:
        """Whether an acknowledgement is a promise: the leader alone can promise where there are no followers."""
        return self.trusted and (acks == -1 or (self.replication_factor == 1 and not self.is_moved))


class ReplicatedModel:
    def __init__(self) -> None:
        self.topics: list[ReplicatedTopic] = []
        self._by_id: dict[bytes, ReplicatedTopic] = {}

    def add(self, topic: ReplicatedTopic) -> None:
        self.topics.append(topic)

    def on_created(self, topic: ReplicatedTopic, topic_id: bytes) -> None:
        if topic_id in self._by_id:
            raise Violation(f"a topic id is never used again: {topic_id.hex()} for {topic.name}")
        topic.on_created(topic_id)
        self._by_id[topic_id] = topic

    def by_id(self, topic_id: bytes) -> ReplicatedTopic | None:
        return self._by_id.get(topic_id)

    def present(self) -> list[ReplicatedTopic]:
        return [topic for topic in self.topics if topic.state == PRESENT]

    def on_power_loss(self) -> None:
        for topic in self.topics:
            topic.on_power_loss()


def check_log(model: PartitionModel, view: LogView) -> None:
    """Holds everything that is committed against what clients know of it."""
    check_what_was_acknowledged_is_there(model, view)
    for record in view.records:
        model.on_value(record.offset, record.value, "found")
    check_what_was_refused_is_not_there(model, view)
    check_nothing_is_there_twice(model, view)
    check_a_producers_records_are_in_its_order(model, view)
    check_sequences_of_a_producer_are_contiguous(model, view)
