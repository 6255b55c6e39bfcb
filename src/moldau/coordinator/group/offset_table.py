"""The committed offsets of one shard, and those that wait for the end of a transaction.

Only `replay` of the offsets part changes it. Of a regular commit and one whose transaction ended, the one counts whose
record lies later in the log, whenever its marker came.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.offset_records import (
    PARTITION_SIZE,
    CommittedOffset,
    decode_offset_key,
    partition_of_key,
)
from moldau.protocol.uuids import ZERO_UUID

TopicOffsets = dict[int, CommittedOffset]
GroupOffsets = dict[str, TopicOffsets]

NO_OFFSETS: Final[GroupOffsets] = {}

SHARED_MIN: Final = 64
"""So many names of topics are kept without asking whether they are in use."""


class OffsetTable:
    """By group, topic and partition. A group is in `by_group` from its first commit until its tombstone."""

    def __init__(self) -> None:
        self.by_group: dict[str, GroupOffsets] = {}
        # By producer id, the offsets of its open transaction.
        self.pending: dict[int, dict[str, GroupOffsets]] = {}
        # By group, topic and partition: how many open transactions have offsets for it.
        self._open: dict[str, dict[str, dict[int, int]]] = {}
        # One object for each topic name and id, however many groups have offsets for it.
        self._names: dict[str, str] = {}
        self._ids: dict[bytes, bytes] = {ZERO_UUID: ZERO_UUID}
        self._shared_max = SHARED_MIN
        # The key of the last commit without its partition, and the offsets of its topic: most often those of the next.
        self._last_prefix = b""
        self._last_partitions: TopicOffsets = {}

    # Committed offsets

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def of_group(self, group_id: str) -> GroupOffsets:
        """By topic and partition; not to be changed by the caller."""
        return self.by_group.get(group_id, NO_OFFSETS)

    def has_group(self, group_id: str) -> bool:
        return group_id in self.by_group

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self._store(self._partitions_of(group_id, topic), partition, committed)

    def put_by_key(self, key: bytes, committed: CommittedOffset) -> None:
        """The same with the key as it is stored; quick where the key before was of the same group and topic."""
        prefix = self._last_prefix
        if prefix and len(key) == len(prefix) + PARTITION_SIZE and key.startswith(prefix):
            self._store(self._last_partitions, partition_of_key(key), committed)
            return
        group_id, topic, partition = decode_offset_key(key)
        partitions = self._partitions_of(group_id, topic)
        self._store(partitions, partition, committed)
        self._last_prefix = key[:-PARTITION_SIZE]
        self._last_partitions = partitions

    def _partitions_of(self, group_id: str, topic: str) -> TopicOffsets:
        topics = self.by_group.get(group_id)
        if topics is None:
            topics = self.by_group[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            known = self._names.get(topic)
            if known is None:
                if len(self._names) >= self._shared_max:
                    self._forget_unused()
                known = self._names[topic] = topic
            partitions = topics[known] = {}
        return partitions

    def _forget_unused(self) -> None:
        """Names and ids of topics that no group has offsets for any more, once there may be as many of them as of the
        others."""
        self._names = {}
        self._ids = {ZERO_UUID: ZERO_UUID}
        for topics in self.by_group.values():
            for topic, partitions in topics.items():
                self._names[topic] = topic
                for committed in partitions.values():
                    # The others of the same topic have the same object, or soon will.
                    self._ids[committed.topic_id] = committed.topic_id
                    break
        self._shared_max = 2 * max(len(self._names), len(self._ids)) + SHARED_MIN

    def _store(self, partitions: TopicOffsets, partition: int, committed: CommittedOffset) -> None:
        topic_id = committed.topic_id
        known = self._ids.get(topic_id)
        if known is None:
            if len(self._ids) >= self._shared_max:
                self._forget_unused()
            self._ids[topic_id] = topic_id
        else:
            committed.topic_id = known
        partitions[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """A tombstone: what open transactions have for the partition so far goes too, as it goes from the log."""
        self._last_prefix = b""
        if self.is_pending(group_id, topic, partition):
            self._remove_pending(group_id, topic, partition)
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]

    def forget_group_without_offsets(self, group_id: str) -> None:
        """The group's tombstone was replayed."""
        self._last_prefix = b""
        topics = self.by_group.get(group_id)
        if topics is not None and not topics:
            del self.by_group[group_id]

    def __len__(self) -> int:
        return sum([len(partitions) for topics in self.by_group.values() for partitions in topics.values()])

    # Transactions

    def put_pending(
        self, producer_id: int, group_id: str, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        # The group exists from now on, as after any other commit.
        self.by_group.setdefault(group_id, {})
        groups = self.pending.setdefault(producer_id, {})
        partitions = groups.setdefault(group_id, {}).setdefault(topic, {})
        if partition not in partitions:
            counts = self._open.setdefault(group_id, {}).setdefault(topic, {})
            counts[partition] = counts.get(partition, 0) + 1
        partitions[partition] = committed

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for this partition."""
        topics = self._open.get(group_id)
        counts = None if topics is None else topics.get(topic)
        return counts is not None and partition in counts

    def has_pending(self, group_id: str) -> bool:
        return group_id in self._open

    def pending_of_topic(self, topic: str) -> list[tuple[str, int, int]]:
        """Group, partition and the place in the log of each offset that an open transaction has for the topic."""
        found: list[tuple[str, int, int]] = []
        for groups in self.pending.values():
            for group_id, topics in groups.items():
                for partition, pending in topics.get(topic, {}).items():
                    found.append((group_id, partition, int(pending.record_offset)))
        return found

    def pending_partitions(self, group_id: str) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for topic, counts in self._open.get(group_id, {}).items():
            for partition in counts:
                found.append((topic, partition))
        return found

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """What the producer has pending counts from now on, or never will."""
        groups = self.pending.pop(producer_id, None)
        if groups is None:
            return
        for group_id, topics in groups.items():
            for topic, partitions in topics.items():
                for partition, pending in partitions.items():
                    self._close(group_id, topic, partition)
                    if committed:
                        known = self.find(group_id, topic, partition)
                        if known is None or known.record_offset < pending.record_offset:
                            self.put(group_id, topic, partition, pending)

    def _remove_pending(self, group_id: str, topic: str, partition: int) -> None:
        for groups in self.pending.values():
            topics = groups.get(group_id)
            partitions = None if topics is None else topics.get(topic)
            if partitions is not None and partition in partitions:
                del partitions[partition]
                self._close(group_id, topic, partition)

    def _close(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._open[group_id]
        counts = topics[topic]
        counts[partition] -= 1
        if counts[partition] == 0:
            del counts[partition]
        if not counts:
            del topics[topic]
        if not topics:
            del self._open[group_id]
