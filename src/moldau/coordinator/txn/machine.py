"""The transactional ids of one partition of __transaction_state: replay, and what begins and ends with leadership."""

from __future__ import annotations

from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.coordinator.txn.aging import Aging
from moldau.coordinator.txn.settings import TransactionSettings
from moldau.coordinator.txn.state import Decision, TransactionListener, TransactionShardState
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.records.clocks import WallClock


class TransactionMachine(CoordinatorMachine):
    """See the module. The verbs are functions on `state`: `init_producer`, `partitions`, `end`, `inspection`."""

    def __init__(
        self,
        index: int,
        timers: Timers,
        settings: TransactionSettings,
        listener: TransactionListener,
        wall: WallClock | None = None,
    ) -> None:
        self.state = TransactionShardState(index, timers, settings, listener, wall if wall is not None else WallClock())
        self._aging = Aging(self.state)

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int, producer_epoch: int) -> None:
        self.state.replay(key, value)

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nobody writes here in a transaction."""

    def on_loaded(self, image: MetadataImage, now_ms: int) -> list[Outcome]:
        self._aging.start(now_ms)
        # Whoever decided these may have written some of the markers; writing them again does no harm.
        return [Decision(self.state, one).outcome() for one in self.state.transactions.values() if one.is_preparing]

    def on_unloaded(self, now_ms: int) -> None:
        self.state.listener.on_unloaded(self.state.index)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> list[Outcome]:
        return []
