"""The groups of one partition of __consumer_offsets: which part replays which record, and what begins and ends.

The parts: `offsets` (commits, fetches, expiry), `classic` (JoinGroup and its kin), `consumer` (KIP-848), `share`
(KIP-932), `streams` (KIP-1071), `admin` (list, describe, delete). They share one GroupShardState and do not know the
log.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.admin import GroupAdmin
from moldau.coordinator.group.classic import ClassicProtocol
from moldau.coordinator.group.consumer import ConsumerProtocol
from moldau.coordinator.group.consumer_classic import ClassicMembers
from moldau.coordinator.group.offset_records import group_of_key
from moldau.coordinator.group.offsets import Offsets
from moldau.coordinator.group.part import GroupPart
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.group.share import ShareProtocol
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.group.streams.protocol import StreamsProtocol
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.records.clocks import WallClock
from moldau.records.random_source import RandomSource

# Record types, the first two bytes of a key. Those that are not here, which a later release may write, are left alone.
LAST_OFFSET_TYPE: Final = 1
CLASSIC_TYPE: Final = 2
CONSUMER_TYPES: Final = frozenset({3, 4, 5, 6, 7, 8, 16})
CONSUMER_GROUP_TYPE: Final = 3
SHARE_TYPES: Final = frozenset({10, 11, 12, 13, 14, 15})
STREAMS_TYPES: Final = frozenset({17, 19, 20, 21, 22, 23})
STREAMS_GROUP_TYPE: Final = 17


class GroupMachine(CoordinatorMachine):
    """See the module."""

    def __init__(
        self, index: int, timers: Timers, settings: GroupSettings, rng: RandomSource, wall: WallClock | None = None
    ) -> None:
        self.state = GroupShardState(index, timers, settings, rng, wall if wall is not None else WallClock())
        self.offsets = Offsets(self.state)
        self.classic = ClassicProtocol(self.state)
        self.consumer = ConsumerProtocol(self.state, self.classic.rebalance)
        self.classic.elsewhere = ClassicMembers(self.state, self.consumer)
        self.share = ShareProtocol(self.state)
        self.streams = StreamsProtocol(self.state)
        self.admin = GroupAdmin(self.state, self.offsets)
        self._parts: list[GroupPart] = [
            self.classic,
            self.consumer,
            self.share,
            self.streams,
            self.offsets,
            self.admin,
        ]

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int, producer_epoch: int) -> None:
        if len(key) < 2:
            return
        record_type = (key[0] << 8) | key[1]
        if record_type <= LAST_OFFSET_TYPE:
            self.offsets.replay_commit(key, value, offset, producer_id)
            return
        if record_type == CLASSIC_TYPE:
            self.classic.replay(record_type, key, value)
        elif record_type in CONSUMER_TYPES:
            self.consumer.replay(record_type, key, value)
        elif record_type in SHARE_TYPES:
            self.share.replay(record_type, key, value)
        elif record_type in STREAMS_TYPES:
            self.streams.replay(record_type, key, value)
        if value is None and record_type in (CLASSIC_TYPE, CONSUMER_GROUP_TYPE, STREAMS_GROUP_TYPE):
            self.state.offsets.forget_group_without_offsets(group_of_key(key))

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self.state.offsets.end_transaction(producer_id, committed)

    def on_loaded(self, image: MetadataImage, now_ms: int) -> list[Outcome]:
        self.state.image = image
        outcomes = [part.on_loaded(now_ms) for part in self._parts]
        return [outcome for outcome in outcomes if outcome is not None]

    def on_unloaded(self, now_ms: int) -> None:
        for part in self._parts:
            part.on_unloaded(now_ms)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> list[Outcome]:
        self.state.image = image
        outcomes = [part.on_metadata(delta, image, now_ms) for part in self._parts]
        return [outcome for outcome in outcomes if outcome is not None]
