"""The groups of one partition of __consumer_offsets: which part replays which record, and what begins and ends.

The parts: `offsets` (commits, fetches, expiry), `classic` (JoinGroup and its kin), `consumer` (KIP-848), `admin` (list,
describe, delete). They share one GroupShardState and do not know the log.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.dice import RandomSource
from moldau.coordinator.group.part import GroupPart, combine
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage

OFFSET_TYPES: Final = frozenset({0, 1})
CLASSIC_TYPE: Final = 2
CONSUMER_TYPES: Final = frozenset({3, 4, 5, 6, 7, 8, 16})


class GroupMachine(CoordinatorMachine):
    """See the module."""

    def __init__(self, index: int, timers: Timers, settings: GroupSettings, rng: RandomSource) -> None:
        self.state = GroupShardState(index, timers, settings, rng)
        self.offsets = GroupPart()
        self.classic = GroupPart()
        self.consumer = GroupPart()
        self.admin = GroupPart()
        self._parts = [self.classic, self.consumer, self.offsets, self.admin]

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int, producer_epoch: int) -> None:
        if len(key) < 2:
            return
        record_type = (key[0] << 8) | key[1]
        if record_type in OFFSET_TYPES:
            self.offsets.replay(record_type, key, value)
        elif record_type == CLASSIC_TYPE:
            self.classic.replay(record_type, key, value)
        elif record_type in CONSUMER_TYPES:
            self.consumer.replay(record_type, key, value)
        # Share and streams groups, and what a later release may write, are left alone.

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        pass

    def on_loaded(self, image: MetadataImage, now_ms: int) -> Outcome | None:
        self.state.image = image
        outcome: Outcome | None = None
        for part in self._parts:
            outcome = combine(outcome, part.on_loaded(now_ms))
        return outcome

    def on_unloaded(self, now_ms: int) -> None:
        for part in self._parts:
            part.on_unloaded(now_ms)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> Outcome | None:
        self.state.image = image
        outcome: Outcome | None = None
        for part in self._parts:
            outcome = combine(outcome, part.on_metadata(delta, image, now_ms))
        return outcome
