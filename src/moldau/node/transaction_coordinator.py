"""Transactions that this broker coordinates: the runtime over __transaction_state; verbs that need producer ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.routing import partition_for
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import Done
from moldau.coordinator.timers import Timers
from moldau.coordinator.txn.machine import TransactionMachine
from moldau.coordinator.txn.settings import TransactionSettings
from moldau.coordinator.txn.state import ProducerIdNeeded, TransactionListener, TransactionShardState
from moldau.coordinator.txn.transaction import NO_PRODUCER_ID, Transaction
from moldau.metadata.features import TRANSACTION_VERSION
from moldau.metadata.image import MetadataImage
from moldau.node.txn_markers import TxnMarkers
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.protocol.topic_names import TRANSACTION_TOPIC
from moldau.records.clocks import WallClock

# A step of loading holds up everyone else, so it is kept short whatever transaction.state.log.load.buffer.size says.
LOAD_STEP_BYTES_MAX: Final = 512 * 1024
NO_COMPRESSION: Final = 0
NO_SEQUENCE: Final = -1

TransactionVerb = Callable[[TransactionMachine], Outcome]
ProducerIdSource = Callable[[int, Callable[[int, int], None]], None]
"""`ProducerIds.next`: calls back with a producer id and 0, or with -1 and an error."""


class TransactionCoordinator(TransactionListener):
    """See the module. `markers` and `producer_ids` are set by the node."""

    def __init__(self, config: BrokerConfig, wall: WallClock) -> None:
        self.settings = TransactionSettings(config)
        load_bytes = min(config.get_int("transaction.state.log.load.buffer.size"), LOAD_STEP_BYTES_MAX)
        self.runtime = CoordinatorRuntime(TRANSACTION_TOPIC, self._make_machine, load_bytes, NO_COMPRESSION, wall)
        self.runtime.base_sequence = NO_SEQUENCE
        self._partitions_default = config.get_int("transaction.state.log.num.partitions")
        self.partitions = self._partitions_default
        self.markers: TxnMarkers | None = None
        self.producer_ids: ProducerIdSource | None = None

    def _make_machine(self, index: int, timers: Timers) -> TransactionMachine:
        return TransactionMachine(index, timers, self.settings, self, self.runtime.wall)

    def follow(self, image: MetadataImage) -> None:
        topic = image.topics_by_name.get(TRANSACTION_TOPIC)
        self.partitions = self._partitions_default if topic is None else len(topic.partitions)
        self.settings.transaction_version = image.features.get(TRANSACTION_VERSION, 0)

    def partition_for(self, transactional_id: str) -> int:
        """The partition of __transaction_state that holds what is known about this id."""
        return partition_for(transactional_id, self.partitions)

    def run(self, transactional_id: str, verb: TransactionVerb, done: Done, now_ms: int) -> None:
        """Runs a verb on the machine that has this id; `done` gets the response or a KafkaError as it was raised."""
        self.run_at(self.partition_for(transactional_id), verb, done, now_ms)

    def run_at(self, index: int, verb: TransactionVerb, done: Done, now_ms: int) -> None:
        self.runtime.run(index, cast(Callable[[CoordinatorMachine], Outcome], verb), done, now_ms)

    def run_with_producer_id(
        self,
        transactional_id: str,
        verb: Callable[[TransactionShardState, int], Outcome],
        done: Done,
        now_ms: int,
    ) -> None:
        """Runs a verb that may need a producer id: then one is fetched, and the verb decides anew."""
        WithProducerId(self, transactional_id, verb, done, now_ms).run()

    # What the machines tell

    def on_prepared(self, index: int, transaction: Transaction, now_ms: int) -> None:
        if self.markers is not None:
            self.markers.begin(index, transaction, now_ms)

    def on_unloaded(self, index: int) -> None:
        if self.markers is not None:
            self.markers.forget(index)


class WithProducerId:
    def __init__(
        self,
        coordinator: TransactionCoordinator,
        transactional_id: str,
        verb: Callable[[TransactionShardState, int], Outcome],
        done: Done,
        asked_ms: int,
    ) -> None:
        self._coordinator = coordinator
        self._transactional_id = transactional_id
        self._verb = verb
        self._done = done
        self._asked_ms = asked_ms
        self._producer_id = NO_PRODUCER_ID

    def run(self) -> None:
        self._coordinator.run(self._transactional_id, self._decide, self._finish, self._asked_ms)

    def _decide(self, machine: TransactionMachine) -> Outcome:
        return self._verb(machine.state, self._producer_id)

    def _finish(self, result: Message | KafkaError) -> None:
        source = self._coordinator.producer_ids
        if isinstance(result, ProducerIdNeeded) and self._producer_id == NO_PRODUCER_ID and source is not None:
            source(self._asked_ms, self._on_producer_id)
        else:
            self._done(result)

    def _on_producer_id(self, producer_id: int, error: int) -> None:
        if error != 0:
            self._done(KafkaError(error))
            return
        self._producer_id = producer_id
        self.run()
