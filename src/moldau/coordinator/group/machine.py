"""The groups of one partition of __consumer_offsets: which part replays which record, and what begins and ends.

The parts: `offsets` (commits, fetches, expiry), `classic` (JoinGroup and its kin), `consumer` (KIP-848), `admin` (list,
describe, delete). They share one GroupShardState and do not know the log.
"""

from __future__ import annotations

from moldau.coordinator.dice import RandomSource
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage


class GroupMachine(CoordinatorMachine):
    """See the module."""

    def __init__(self, index: int, timers: Timers, settings: GroupSettings, rng: RandomSource) -> None:
        self.state = GroupShardState(index, timers, settings, rng)

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int, producer_epoch: int) -> None:
        pass

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        pass

    def on_loaded(self, image: MetadataImage, now_ms: int) -> Outcome | None:
        self.state.image = image
        return None

    def on_unloaded(self, now_ms: int) -> None:
        pass

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> Outcome | None:
        self.state.image = image
        return None
