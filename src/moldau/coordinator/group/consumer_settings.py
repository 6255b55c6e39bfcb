"""What the broker's settings and a group's own say about consumer groups: timeouts, intervals, limits, assignors."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.group.assignors.table import offered_assignors
from moldau.coordinator.group.bounded_setting import MemberTimes


class ConsumerSettings(MemberTimes):
    """Typed views of one configuration; a new one is made when dynamic settings have changed."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config, "consumer")
        self.is_enabled = "consumer" in config.get_list("group.coordinator.rebalance.protocols")
        self.size_max = config.get_int("group.consumer.max.size")
        self.regex_refresh_ms = config.get_int("group.consumer.regex.refresh.interval.ms")
        self.assignors = offered_assignors(config.get_list("group.consumer.assignors"))
        policy = config.get_str("group.consumer.migration.policy").lower()
        self.may_upgrade = policy in ("upgrade", "bidirectional")
        self.may_downgrade = policy in ("downgrade", "bidirectional")
