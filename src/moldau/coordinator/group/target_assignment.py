"""Computes the target of a consumer group: asks its assignor, and says which records that makes."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.coordinator.group.assignors.spec import GroupSpec, MemberSpec, Targets
from moldau.coordinator.group.assignors.table import Assignor
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.consumer_member import ConsumerMember
from moldau.coordinator.group.consumer_records import target_record
from moldau.coordinator.outcome import StoredRecord
from moldau.metadata.image import MetadataImage


def compute_targets(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    homogeneous: bool,
    assignor: Assignor,
    image: MetadataImage,
) -> Targets:
    """`members` are those of the group as they will be once the records at hand are replayed."""
    topics: dict[frozenset[str], frozenset[bytes]] = {}
    partition_counts: dict[bytes, int] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        names = frozenset(group.topics_of_member(member))
        wanted = topics.get(names)
        if wanted is None:
            wanted = topics[names] = _topic_ids(names, partition_counts, image)
        specs[member_id] = MemberSpec(member.instance_id, wanted, group.target_of(member_id, member.instance_id))
    return assignor(GroupSpec(specs, partition_counts, homogeneous))


def _topic_ids(names: frozenset[str], partition_counts: dict[bytes, int], image: MetadataImage) -> frozenset[bytes]:
    """The ids of those topics that exist; their partitions are counted on the way, in the order of the names."""
    found: list[bytes] = []
    for name in sorted(names):
        topic = image.topic(name)
        if topic is not None:
            found.append(topic.topic_id)
            partition_counts[topic.topic_id] = len(topic.partitions)
    return frozenset(found)


def target_records(group: ConsumerGroup, targets: Targets) -> list[StoredRecord]:
    """A record for each member whose target is new or another one."""
    known = group.targets
    return [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if known.get(member_id) != target
    ]
