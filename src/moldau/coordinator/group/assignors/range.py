"""The assignor `range`: for each topic, consecutive partitions to its subscribers in a fixed order.

Topics with the same number of partitions and the same subscribers are assigned alike, so that joins between them work.
Static members come first, by instance id: a restart of one moves nothing.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.assignors.spec import GroupSpec, MemberSpec, Target, Targets

NAME: Final = "range"


def assign(spec: GroupSpec) -> Targets:
    ordered = sorted(spec.members.items(), key=_order)
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in ordered:
        for topic_id in member.topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    targets: dict[str, Target] = {member_id: {} for member_id in spec.members}
    for topic_id, count in spec.partition_counts.items():
        members = subscribers.get(topic_id)
        if not members:
            continue
        least, extra = divmod(count, len(members))
        start = 0
        for position, member_id in enumerate(members):
            end = start + least + (1 if position < extra else 0)
            if end > start:
                targets[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return targets


def _order(entry: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = entry
    return member.instance_id is None, member.instance_id or member_id
