"""Which partitions a broker's coming and going concerns: in whose ISR, led by whom, leaderless; kept up by replay.

A broker that dies must not cost a walk over all partitions. Sets are dicts: their order is the order of the records, so
that the same log gives the same decisions. Kafka keeps the same in BrokersToIsrs.
"""

from __future__ import annotations

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import NO_LEADER, PartitionRegistration

PartitionKey = tuple[bytes, int]
"""Topic id and partition index."""

Keys = dict[PartitionKey, None]


class PartitionIndex:
    def __init__(self, image: MetadataImage) -> None:
        self._in_isr: dict[int, Keys] = {}
        self._in_elr: dict[int, Keys] = {}
        self._led: dict[int, int] = {}
        self.leaderless: Keys = {}
        self.not_preferred: Keys = {}
        """Led by another than their first replica, or by nobody."""
        self.reassigning: Keys = {}
        for topic_id, topic in image.topics_by_id.items():
            for index, partition in topic.partitions.items():
                self._add((topic_id, index), partition)

    # What decisions ask

    def with_isr_member(self, broker_id: int) -> list[PartitionKey]:
        return list(self._in_isr.get(broker_id, ()))

    def with_elr_member(self, broker_id: int) -> list[PartitionKey]:
        return list(self._in_elr.get(broker_id, ()))

    def leads(self, broker_id: int) -> bool:
        return self._led.get(broker_id, 0) > 0

    # Following the records

    def apply(self, delta: MetadataDelta) -> None:
        for topic_id, deleted in delta.deleted_topics.items():
            for index, partition in deleted.partitions.items():
                self._remove((topic_id, index), partition)
        for topic_id, topic in delta.changed_topics.items():
            before = topic.before.partitions if topic.before is not None else {}
            for index, partition in topic.changed_partitions.items():
                old = before.get(index)
                key = (topic_id, index)
                if old is None:
                    self._add(key, partition)
                else:
                    self._change(key, old, partition)

    def _add(self, key: PartitionKey, partition: PartitionRegistration) -> None:
        for broker_id in partition.isr:
            self._in_isr.setdefault(broker_id, {})[key] = None
        for broker_id in partition.elr:
            self._in_elr.setdefault(broker_id, {})[key] = None
        self._add_state(key, partition)

    def _remove(self, key: PartitionKey, partition: PartitionRegistration) -> None:
        for broker_id in partition.isr:
            del self._in_isr[broker_id][key]
        for broker_id in partition.elr:
            del self._in_elr[broker_id][key]
        self._remove_state(key, partition)

    def _change(self, key: PartitionKey, old: PartitionRegistration, new: PartitionRegistration) -> None:
        if old.isr != new.isr:
            _move(self._in_isr, key, old.isr, new.isr)
        if old.elr != new.elr:
            _move(self._in_elr, key, old.elr, new.elr)
        if (
            old.leader != new.leader
            or old.preferred_leader != new.preferred_leader
            or old.is_reassigning != new.is_reassigning
        ):
            self._remove_state(key, old)
            self._add_state(key, new)

    def _add_state(self, key: PartitionKey, partition: PartitionRegistration) -> None:
        if partition.leader == NO_LEADER:
            self.leaderless[key] = None
        else:
            self._led[partition.leader] = self._led.get(partition.leader, 0) + 1
        if partition.leader != partition.preferred_leader:
            self.not_preferred[key] = None
        if partition.is_reassigning:
            self.reassigning[key] = None

    def _remove_state(self, key: PartitionKey, partition: PartitionRegistration) -> None:
        if partition.leader == NO_LEADER:
            del self.leaderless[key]
        else:
            self._led[partition.leader] -= 1
        self.not_preferred.pop(key, None)
        self.reassigning.pop(key, None)


def _move(members: dict[int, Keys], key: PartitionKey, old: tuple[int, ...], new: tuple[int, ...]) -> None:
    for broker_id in old:
        if broker_id not in new:
            del members[broker_id][key]
    for broker_id in new:
        if broker_id not in old:
            members.setdefault(broker_id, {})[key] = None
