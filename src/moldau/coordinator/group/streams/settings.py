"""What the broker's settings and a group's own say about streams groups: timeouts, intervals, standby copies."""

from __future__ import annotations

from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.group.bounded_setting import MemberTimes
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import GROUP_RESOURCE

STANDBY_REPLICAS_KEY: Final = "streams.num.standby.replicas"
INITIAL_DELAY_KEY: Final = "streams.initial.rebalance.delay.ms"


class StreamsSettings(MemberTimes):
    """Typed views of one configuration; a new one is made when dynamic settings have changed."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config, "streams")
        self.is_enabled = "streams" in config.get_list("group.coordinator.rebalance.protocols")
        self.size_max = config.get_int("group.streams.max.size")
        self._standby_replicas = config.get_int("group.streams.num.standby.replicas")
        self._standby_replicas_max = config.get_int("group.streams.max.standby.replicas")
        self._initial_delay_ms = config.get_int("group.streams.initial.rebalance.delay.ms")

    def standby_replicas(self, image: MetadataImage, group_id: str) -> int:
        own = image.config(GROUP_RESOURCE, group_id).get(STANDBY_REPLICAS_KEY)
        # The highest number may have been lowered since the group's value was accepted.
        return self._standby_replicas if own is None else min(int(own), self._standby_replicas_max)

    def initial_delay_ms(self, image: MetadataImage, group_id: str) -> int:
        own = image.config(GROUP_RESOURCE, group_id).get(INITIAL_DELAY_KEY)
        return self._initial_delay_ms if own is None else int(own)
