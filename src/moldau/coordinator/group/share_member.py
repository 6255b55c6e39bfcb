"""One member of a share group, and the partitions of a group whose state share coordinators keep."""

from __future__ import annotations

from moldau.coordinator.group.assignors.spec import Target

TopicPartitions = dict[bytes, tuple[str, frozenset[int]]]
"""Name and partitions, by topic id."""


class ShareMember:
    """What a member said about itself, and what it was given."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.member_epoch = 0
        self.previous_member_epoch = 0
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.subscribed_topic_names: frozenset[str] = frozenset()
        self.assigned: Target = {}

    def copy(self) -> ShareMember:
        found = ShareMember(self.member_id)
        found.member_epoch = self.member_epoch
        found.previous_member_epoch = self.previous_member_epoch
        found.rack_id = self.rack_id
        found.client_id = self.client_id
        found.client_host = self.client_host
        found.subscribed_topic_names = self.subscribed_topic_names
        found.assigned = self.assigned
        return found

    def says_the_same(self, other: ShareMember) -> bool:
        return (
            self.rack_id == other.rack_id
            and self.client_id == other.client_id
            and self.client_host == other.client_host
            and self.subscribed_topic_names == other.subscribed_topic_names
        )


class PartitionStates:
    """Which partitions the share coordinators know, and which they are asked about."""

    def __init__(self) -> None:
        self.initializing: TopicPartitions = {}
        self.initialized: TopicPartitions = {}
        self.deleting: dict[bytes, str] = {}

    def copy(self) -> PartitionStates:
        found = PartitionStates()
        found.initializing = dict(self.initializing)
        found.initialized = dict(self.initialized)
        found.deleting = dict(self.deleting)
        return found

    @property
    def is_empty(self) -> bool:
        return not self.initializing and not self.initialized and not self.deleting

    def topic_ids(self) -> set[bytes]:
        return {*self.initializing, *self.initialized, *self.deleting}

    def add(self, topics: TopicPartitions, to: TopicPartitions) -> None:
        for topic_id, (name, indexes) in topics.items():
            known = to.get(topic_id)
            to[topic_id] = (name, indexes if known is None else known[1] | indexes)

    def take(self, topics: TopicPartitions, source: TopicPartitions) -> None:
        for topic_id, (_, indexes) in topics.items():
            known = source.get(topic_id)
            if known is None:
                continue
            left = known[1] - indexes
            if left:
                source[topic_id] = (known[0], left)
            else:
                del source[topic_id]

    def begin(self, topics: TopicPartitions) -> None:
        """States are asked for; what was to be forgotten, and perhaps was, is replaced by them."""
        self.add(topics, self.initializing)
        for topic_id in topics:
            self.deleting.pop(topic_id, None)

    def forget(self, topic_ids: set[bytes]) -> None:
        for topic_id in topic_ids:
            self.initializing.pop(topic_id, None)
            self.initialized.pop(topic_id, None)
            self.deleting.pop(topic_id, None)
