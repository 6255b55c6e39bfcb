"""Spreads partitions evenly while they stay where they are as far as that allows; both sticky assignors use it.

Even means: no partition could move, alone or along a chain of moves, so that two members' numbers of partitions
come nearer to each other. Where all members want the same topics, numbers differ by one at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.client.assignors.base import GroupMetadata, MemberSubscription, sorted_members
from moldau.client.results import TopicPartition

Assigned = dict[str, list[TopicPartition]]


class Claim(NamedTuple):
    """What a member says it had, and as of which generation."""

    partitions: Sequence[TopicPartition]
    generation_id: int


def spread(
    metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription], claims: Mapping[str, Claim]
) -> Assigned:
    members = sorted_members(subscriptions)
    if not members:
        return {}
    topics = {member: metadata.keys() & set(subscriptions[member].topics) for member in members}
    partitions = [row.partition for topic in sorted(set().union(*topics.values())) for row in metadata[topic]]
    assigned = _honour(claims, members, topics, set(partitions))
    owned = {item for items in assigned.values() for item in items}
    free = [item for item in partitions if item not in owned]
    near = _near(metadata, subscriptions)
    if all(topics[member] == topics[members[0]] for member in members):
        _fill_alike(assigned, members, len(partitions), free, near)
    else:
        _fill_unlike(assigned, members, topics, free)
    return {member: sorted(assigned[member]) for member in subscriptions}


def _honour(
    claims: Mapping[str, Claim], members: list[str], topics: Mapping[str, set[str]], existing: set[TopicPartition]
) -> Assigned:
    """What members had and may keep: of two that claim a partition, the one with the later generation."""
    holders: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        claim = claims.get(member)
        for partition in claim.partitions if claim is not None else ():
            if partition not in existing or partition.topic not in topics[member]:
                continue
            assert claim is not None
            held = holders.get(partition)
            if held is None or claim.generation_id > held[0]:
                holders[partition] = (claim.generation_id, member)
    assigned: Assigned = {member: [] for member in members}
    for partition in sorted(holders):
        assigned[holders[partition][1]].append(partition)
    return assigned


def _near(
    metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription]
) -> dict[TopicPartition, frozenset[str]]:
    """The racks of each partition; empty where no member has a rack, so that nothing is looked up in vain."""
    if not any(row.rack for row in subscriptions.values()):
        return {}
    racks = {member: row.rack for member, row in subscriptions.items() if row.rack}
    return {
        row.partition: frozenset(member for member, rack in racks.items() if rack in row.racks)
        for rows in metadata.values()
        for row in rows
        if row.racks
    }


def _fill_alike(
    assigned: Assigned,
    members: list[str],
    partition_count: int,
    free: list[TopicPartition],
    near: Mapping[TopicPartition, frozenset[str]],
) -> None:
    """All members want the same: each gets the even share, and those that had most get the rest."""
    share, rest = divmod(partition_count, len(members))
    by_holding = sorted(members, key=lambda member: -len(assigned[member]))
    quota = {member: share + (index < rest) for index, member in enumerate(by_holding)}
    surplus: list[TopicPartition] = []
    for member in members:
        # What is given away is what is not near, then what comes last.
        own = sorted(assigned[member], key=lambda item: (bool(near) and member not in near.get(item, ()), item))
        assigned[member] = own[: quota[member]]
        surplus += own[quota[member] :]
    waiting = sorted(surplus + free)
    if near:
        waiting = _give_near(assigned, members, quota, waiting, near)
    turn: deque[str] = deque(member for member in members if len(assigned[member]) < quota[member])
    for partition in waiting:
        member = turn.popleft()
        assigned[member].append(partition)
        if len(assigned[member]) < quota[member]:
            turn.append(member)


def _give_near(
    assigned: Assigned,
    members: list[str],
    quota: Mapping[str, int],
    waiting: list[TopicPartition],
    near: Mapping[TopicPartition, frozenset[str]],
) -> list[TopicPartition]:
    """Partitions to members in the rack of a replica (KIP-881); returns those for which none had room."""
    left: list[TopicPartition] = []
    for partition in waiting:
        fitting = [
            member for member in members if member in near.get(partition, ()) and len(assigned[member]) < quota[member]
        ]
        if fitting:
            assigned[min(fitting, key=lambda member: len(assigned[member]) - quota[member])].append(partition)
        else:
            left.append(partition)
    return left


def _fill_unlike(
    assigned: Assigned, members: list[str], topics: Mapping[str, set[str]], free: list[TopicPartition]
) -> None:
    """Members want different topics: the pickiest partitions first, then moves until none helps."""
    takers = {
        topic: [member for member in members if topic in topics[member]] for topic in set().union(*topics.values())
    }
    for partition in sorted(free, key=lambda item: (len(takers[item.topic]), item)):
        member = min(takers[partition.topic], key=lambda name: len(assigned[name]))
        assigned[member].append(partition)
    _even_out(assigned, members, takers)


def _even_out(assigned: Assigned, members: list[str], takers: Mapping[str, list[str]]) -> None:
    """Relieves the fullest members until none can be. Whom a full member reaches in vain cannot be relieved either."""
    settled: set[str] = set()
    while len(settled) < len(members):
        member = max((name for name in members if name not in settled), key=lambda name: len(assigned[name]))
        reached = _relieve(member, assigned, takers)
        if reached is None:
            settled.clear()
        else:
            settled |= {name for name in reached if len(assigned[name]) <= len(assigned[member])}


def _relieve(member: str, assigned: Assigned, takers: Mapping[str, list[str]]) -> set[str] | None:
    """Moves one partition away from the member, along the shortest chain that ends at one with two fewer.

    None if that was possible; else all members that chains lead to.
    """
    load = len(assigned[member])
    came_from: dict[str, tuple[str, TopicPartition]] = {}
    seen = {member}
    tried: set[str] = set()
    queue: deque[str] = deque([member])
    while queue:
        giver = queue.popleft()
        for partition in assigned[giver]:
            if partition.topic in tried:
                continue
            tried.add(partition.topic)
            for taker in takers[partition.topic]:
                if taker in seen:
                    continue
                seen.add(taker)
                came_from[taker] = (giver, partition)
                if len(assigned[taker]) <= load - 2:
                    _move_along(taker, came_from, assigned)
                    return None
                queue.append(taker)
    return seen


def _move_along(last: str, came_from: Mapping[str, tuple[str, TopicPartition]], assigned: Assigned) -> None:
    taker = last
    while taker in came_from:
        giver, partition = came_from[taker]
        assigned[giver].remove(partition)
        assigned[taker].append(partition)
        taker = giver
