"""What the broker's settings and a group's own say about consumer groups: timeouts, intervals, limits, assignors."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.group.assignors.table import offered_assignors
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import GROUP_RESOURCE


class ConsumerSettings:
    """Typed views of one configuration; a new one is made when dynamic settings have changed."""

    def __init__(self, config: BrokerConfig) -> None:
        self.is_enabled = "consumer" in config.get_list("group.coordinator.rebalance.protocols")
        self.size_max = config.get_int("group.consumer.max.size")
        self.regex_refresh_ms = config.get_int("group.consumer.regex.refresh.interval.ms")
        self.assignors = offered_assignors(config.get_list("group.consumer.assignors"))
        policy = config.get_str("group.consumer.migration.policy").lower()
        self.may_upgrade = policy in ("upgrade", "bidirectional")
        self.may_downgrade = policy in ("downgrade", "bidirectional")
        self._session_timeout = _Bounded(config, "session.timeout.ms")
        self._heartbeat_interval = _Bounded(config, "heartbeat.interval.ms")
        self._assignment_interval = _Bounded(config, "assignment.interval.ms")

    def session_timeout_ms(self, image: MetadataImage, group_id: str) -> int:
        return self._session_timeout.of_group(image, group_id)

    def heartbeat_interval_ms(self, image: MetadataImage, group_id: str) -> int:
        return self._heartbeat_interval.of_group(image, group_id)

    def assignment_interval_ms(self, image: MetadataImage, group_id: str) -> int:
        return self._assignment_interval.of_group(image, group_id)


class _Bounded:
    """A setting of the broker that a group may have its own value of, between the broker's bounds."""

    def __init__(self, config: BrokerConfig, name: str) -> None:
        self._key = f"consumer.{name}"
        self._value = config.get_int(f"group.consumer.{name}")
        self._least = config.get_int(f"group.consumer.min.{name}")
        self._most = config.get_int(f"group.consumer.max.{name}")

    def of_group(self, image: MetadataImage, group_id: str) -> int:
        own = image.config(GROUP_RESOURCE, group_id).get(self._key)
        if own is None:
            return self._value
        # The bounds may have been narrowed since the group's value was accepted.
        return min(max(int(own), self._least), self._most)
