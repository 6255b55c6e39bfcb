"""A setting of the broker that a group may have its own value of, between the broker's bounds."""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import GROUP_RESOURCE


class BoundedSetting:
    """`kind` is the word that keys of this kind of group have: consumer, share."""

    def __init__(self, config: BrokerConfig, kind: str, name: str) -> None:
        self._key = f"{kind}.{name}"
        self._value = config.get_int(f"group.{kind}.{name}")
        self._least = config.get_int(f"group.{kind}.min.{name}")
        self._most = config.get_int(f"group.{kind}.max.{name}")

    def of_group(self, image: MetadataImage, group_id: str) -> int:
        own = image.config(GROUP_RESOURCE, group_id).get(self._key)
        if own is None:
            return self._value
        # The bounds may have been narrowed since the group's value was accepted.
        return min(max(int(own), self._least), self._most)


class MemberTimes:
    """What members of groups of one kind are told, and what they are held to."""

    def __init__(self, config: BrokerConfig, kind: str) -> None:
        self._session_timeout = BoundedSetting(config, kind, "session.timeout.ms")
        self._heartbeat_interval = BoundedSetting(config, kind, "heartbeat.interval.ms")
        self._assignment_interval = BoundedSetting(config, kind, "assignment.interval.ms")

    def session_timeout_ms(self, image: MetadataImage, group_id: str) -> int:
        return self._session_timeout.of_group(image, group_id)

    def heartbeat_interval_ms(self, image: MetadataImage, group_id: str) -> int:
        return self._heartbeat_interval.of_group(image, group_id)

    def assignment_interval_ms(self, image: MetadataImage, group_id: str) -> int:
        return self._assignment_interval.of_group(image, group_id)
