"""The share.coordinator.* settings that the machines read."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig


class ShareCoordinatorSettings:
    def __init__(self, config: BrokerConfig) -> None:
        self.updates_per_snapshot = config.get_int("share.coordinator.snapshot.update.records.per.snapshot")
        self.cold_interval_ms = config.get_int("share.coordinator.cold.partition.snapshot.interval.ms")
        self.prune_interval_ms = config.get_int("share.coordinator.state.topic.prune.interval.ms")
        self.write_timeout_ms = config.get_int("share.coordinator.write.timeout.ms")
