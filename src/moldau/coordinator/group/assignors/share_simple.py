"""The `simple` assignor of share groups: every member has work as soon as there is a partition, and the load is even.

A partition goes to as many members as are needed for that; members with the same topics are treated over all of their
partitions, others topic by topic. What a member has it keeps as far as that is fair. Kafka: SimpleAssignor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from moldau.coordinator.group.assignors.spec import Target, Targets

Place = tuple[bytes, int]
"""Topic id and partition."""


def assign_shared(
    members: Mapping[str, frozenset[bytes]], places: Mapping[bytes, Sequence[int]], before: Mapping[str, Target]
) -> Targets:
    """`members` are the topics that each wants, `places` the partitions to be given, `before` the last targets."""
    found: dict[str, list[Place]] = {member_id: [] for member_id in members}
    if len(set(members.values())) == 1:
        wanted = next(iter(members.values()))
        all_places = [(topic_id, index) for topic_id in places if topic_id in wanted for index in places[topic_id]]
        _share_out(list(members), all_places, before, found)
    else:
        for topic_id, indexes in places.items():
            readers = [member_id for member_id, wanted in members.items() if topic_id in wanted]
            _share_out(readers, [(topic_id, index) for index in indexes], before, found)
    targets: Targets = {}
    for member_id, given in found.items():
        topics: dict[bytes, set[int]] = {}
        for topic_id, index in given:
            topics.setdefault(topic_id, set()).add(index)
        targets[member_id] = {topic_id: frozenset(indexes) for topic_id, indexes in topics.items()}
    return targets


def wishes(members: int, partitions: int) -> list[int]:
    """How many partitions each member is to have: they differ by one at most."""
    if members == 0 or partitions == 0:
        return [0] * members
    total = sharing_of(members, partitions) * partitions

    def up_to(number: int) -> int:
        return -(-total * number // members)

    return [up_to(number + 1) - up_to(number) for number in range(members)]


def sharing_of(members: int, partitions: int) -> int:
    """How many members have the same partition."""
    return -(-members // partitions) if partitions else 0


def _share_out(
    members: list[str], places: list[Place], before: Mapping[str, Target], found: dict[str, list[Place]]
) -> None:
    sharing = sharing_of(len(members), len(places))
    wish = dict(zip(members, wishes(len(members), len(places)), strict=True))
    available = set(places)
    given: dict[str, list[Place]] = {}
    holders: dict[Place, int] = dict.fromkeys(places, 0)
    for member_id in members:
        kept = [
            (topic_id, index)
            for topic_id, indexes in before.get(member_id, {}).items()
            for index in sorted(indexes)
            if (topic_id, index) in available
        ]
        given[member_id] = []
        # What is shared by fewer is kept first: it would have to be given to somebody else.
        for place in sorted(kept, key=holders.__getitem__)[: wish[member_id]]:
            if holders[place] < sharing:
                given[member_id].append(place)
                holders[place] += 1
    ring = deque(member_id for member_id in members if len(given[member_id]) < wish[member_id])
    for place in places:
        _offer(place, sharing, ring, given, wish, holders)
    for member_id in members:
        found[member_id] += given[member_id]


def _offer(
    place: Place,
    sharing: int,
    ring: deque[str],
    given: dict[str, list[Place]],
    wish: dict[str, int],
    holders: dict[Place, int],
) -> None:
    """To one after the other of those who want more; who has it already lets it pass."""
    refused = 0
    while holders[place] < sharing and ring and refused < len(ring):
        member_id = ring.popleft()
        if place in given[member_id]:
            ring.append(member_id)
            refused += 1
            continue
        refused = 0
        given[member_id].append(place)
        holders[place] += 1
        if len(given[member_id]) < wish[member_id]:
            ring.append(member_id)
