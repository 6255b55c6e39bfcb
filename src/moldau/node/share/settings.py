"""What the broker's settings and a group's own say about delivery in share groups."""

from __future__ import annotations

from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.config.group_keys import DEAD_LETTER_COPY_KEY, DEAD_LETTER_TOPIC_KEY
from moldau.metadata.features import DEAD_LETTERS_SHARE_VERSION, SHARE_VERSION
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import GROUP_RESOURCE
from moldau.node.share.window import Limits

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
BOUNDED: Final = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")


class ShareSettings:
    """Typed views of one configuration; a new one is made when dynamic settings have changed."""

    def __init__(self, config: BrokerConfig) -> None:
        self.dead_letter_prefix = config.get_str("errors.deadletterqueue.topic.name.prefix")
        self.creates_dead_letter_topics = config.get_bool("errors.deadletterqueue.auto.create.topics.enable")
        self.sessions_max = config.get_int("group.share.max.share.sessions")
        self._values: dict[str, tuple[int, int, int]] = {
            name: (
                config.get_int(f"group.share.{name}"),
                config.get_int(f"group.share.min.{name}"),
                config.get_int(f"group.share.max.{name}"),
            )
            for name in BOUNDED
        }

    def limits_of(self, image: MetadataImage, group_id: str) -> Limits:
        own = image.config(GROUP_RESOURCE, group_id)
        return Limits(
            lock_ms=self._bounded(own, "record.lock.duration.ms"),
            delivery_count_max=self._bounded(own, "delivery.count.limit"),
            locks_max=self._bounded(own, "partition.max.record.locks"),
            may_renew=own.get("share.renew.acknowledge.enable", "true") == "true",
            with_dead_letters=self._has_dead_letters(image, group_id),
        )

    def _has_dead_letters(self, image: MetadataImage, group_id: str) -> bool:
        level = image.features.get(SHARE_VERSION, 0)
        return level >= DEAD_LETTERS_SHARE_VERSION and bool(self.dead_letter_topic_of(image, group_id))

    def dead_letter_topic_of(self, image: MetadataImage, group_id: str) -> str:
        """Empty if the group has none. What is ARCHIVING gets its dead letters whatever the feature's level is now."""
        return image.config(GROUP_RESOURCE, group_id).get(DEAD_LETTER_TOPIC_KEY, "").strip()

    def copies_records_of(self, image: MetadataImage, group_id: str) -> bool:
        own = image.config(GROUP_RESOURCE, group_id).get(DEAD_LETTER_COPY_KEY, "false")
        return own.strip().lower() == "true"

    def _bounded(self, own: dict[str, str], name: str) -> int:
        value, least, most = self._values[name]
        text = own.get(f"share.{name}")
        # The bounds may have been narrowed since the group's value was accepted.
        return value if text is None else min(max(int(text), least), most)

    def isolation_of(self, image: MetadataImage, group_id: str) -> int:
        own = image.config(GROUP_RESOURCE, group_id).get("share.isolation.level")
        return READ_COMMITTED if own == "read_committed" else READ_UNCOMMITTED

    def offset_reset_of(self, image: MetadataImage, group_id: str) -> str:
        return image.config(GROUP_RESOURCE, group_id).get("share.auto.offset.reset", "latest")
