"""What the parts of a group machine share: the groups of one shard, its timers, settings and the metadata."""

from __future__ import annotations

from moldau.coordinator.group.group import Group
from moldau.coordinator.group.offset_table import OffsetTable
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.group.simple import SimpleGroup
from moldau.coordinator.timers import Timers
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.records.clocks import WallClock
from moldau.records.random_source import RandomSource


class GroupShardState:
    """Plain data; `groups` changes through `replay`, and for classic groups also while members gather."""

    def __init__(self, index: int, timers: Timers, settings: GroupSettings, rng: RandomSource, wall: WallClock) -> None:
        self.index = index
        self.timers = timers
        self.settings = settings
        self.rng = rng
        self.wall = wall
        self.image = MetadataImage()
        # Groups that have or had members; those that only have offsets are in `offsets`.
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetTable()

    def find_group(self, group_id: str) -> Group | None:
        """The group, also one that nobody ever joined and that has offsets only."""
        group = self.groups.get(group_id)
        if group is None and self.offsets.has_group(group_id):
            return SimpleGroup(group_id)
        return group

    def get_group(self, group_id: str) -> Group:
        """The same; raises GROUP_ID_NOT_FOUND."""
        group = self.find_group(group_id)
        if group is None:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def group_ids(self) -> list[str]:
        """Of all groups, those without members included."""
        simple = [group_id for group_id in self.offsets.by_group if group_id not in self.groups]
        return [*self.groups, *simple]
