"""The settings of the group coordinator: the broker's group.* and offsets.* keys, and what a group has of its own."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.group.consumer_settings import ConsumerSettings
from moldau.coordinator.group.share_settings import ShareGroupSettings
from moldau.coordinator.group.streams.settings import StreamsSettings
from moldau.metrics.group_counts import GroupCounts


class GroupSettings:
    """Typed views of the configuration in force; `update` is called when dynamic settings change. All shards have the
    same one, and so what they count together is here too."""

    def __init__(self, config: BrokerConfig) -> None:
        self.counts = GroupCounts()
        self.update(config)

    def update(self, config: BrokerConfig) -> None:
        self.config = config
        self.offset_metadata_bytes_max = config.get_int("offset.metadata.max.bytes")
        self.offsets_retention_ms = config.get_int("offsets.retention.minutes") * 60_000
        self.offsets_retention_check_ms = config.get_int("offsets.retention.check.interval.ms")
        self.classic_size_max = config.get_int("group.max.size")
        self.classic_initial_delay_ms = config.get_int("group.initial.rebalance.delay.ms")
        self.classic_session_min_ms = config.get_int("group.min.session.timeout.ms")
        self.classic_session_max_ms = config.get_int("group.max.session.timeout.ms")
        self.consumer = ConsumerSettings(config)
        self.share = ShareGroupSettings(config)
        self.streams = StreamsSettings(config)
