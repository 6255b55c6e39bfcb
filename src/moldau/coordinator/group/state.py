"""What the parts of a group machine share: the groups of one shard, its timers, settings and the metadata."""

from __future__ import annotations

from moldau.coordinator.dice import RandomSource
from moldau.coordinator.group.group import Group
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.timers import Timers
from moldau.metadata.image import MetadataImage


class GroupShardState:
    """Plain data; `groups` changes through `replay`, and for classic groups also while members gather."""

    def __init__(self, index: int, timers: Timers, settings: GroupSettings, rng: RandomSource) -> None:
        self.index = index
        self.timers = timers
        self.settings = settings
        self.rng = rng
        self.image = MetadataImage()
        self.groups: dict[str, Group] = {}
