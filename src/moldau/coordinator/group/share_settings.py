"""What the broker's settings and a group's own say about the members of share groups."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.group.bounded_setting import MemberTimes


class ShareGroupSettings(MemberTimes):
    """Typed views of one configuration; a new one is made when dynamic settings have changed."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config, "share")
        self.size_max = config.get_int("group.share.max.size")
        self.initialize_retry_ms = config.get_int("group.share.initialize.retry.interval.ms")
