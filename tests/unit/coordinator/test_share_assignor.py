"""The `simple` assignor: even load, nobody idle, and nothing moves that need not."""

from __future__ import annotations

import random

import pytest

from moldau.coordinator.group.assignors.share_simple import assign_shared, wishes
from moldau.coordinator.group.assignors.spec import Targets

T, U = b"t" * 16, b"u" * 16


def loads(targets: Targets) -> list[int]:
    return [sum(len(indexes) for indexes in target.values()) for target in targets.values()]


def holders(targets: Targets, topic_id: bytes, partitions: int) -> list[int]:
    return [
        sum(1 for target in targets.values() if index in target.get(topic_id, frozenset()))
        for index in range(partitions)
    ]


@pytest.mark.parametrize(
    ("members", "partitions", "expected"),
    [(2, 3, [2, 1]), (3, 2, [2, 1, 1]), (4, 1, [1, 1, 1, 1]), (5, 2, [2, 1, 1, 1, 1]), (3, 0, [0, 0, 0])],
)
def test_how_many_partitions_a_member_is_to_have(members: int, partitions: int, expected: list[int]) -> None:
    assert wishes(members, partitions) == expected


@pytest.mark.parametrize("partitions", range(1, 6))
@pytest.mark.parametrize("seed", range(6))
def test_members_come_and_go(partitions: int, seed: int) -> None:
    """One to ten members and back again (KAFKA-18757, KAFKA-18901, KAFKA-19362, KAFKA-19363)."""
    dice = random.Random(seed)
    members: list[str] = []
    targets: Targets = {}
    for step in range(40):
        if not members or (len(members) < 10 and dice.random() < (0.7 if step < 20 else 0.3)):
            members.append(f"m{step}")
        else:
            members.remove(dice.choice(members))
        wanted = {member: frozenset({T}) for member in members}
        targets = assign_shared(wanted, {T: list(range(partitions))}, targets)
        if not members:
            continue
        found = loads(targets)
        assert min(found) >= 1, "nobody is idle"
        assert max(found) - min(found) <= 1, "the load is even"
        shared = holders(targets, T, partitions)
        assert min(shared) >= 1, "every partition is with somebody"
        assert max(shared) <= -(-len(members) // partitions)


@pytest.mark.parametrize("members", range(1, 11))
@pytest.mark.parametrize("partitions", range(1, 6))
def test_nothing_moves_when_nothing_changes(members: int, partitions: int) -> None:
    wanted = {f"m{number}": frozenset({T}) for number in range(members)}
    places = {T: list(range(partitions))}
    first = assign_shared(wanted, places, {})
    assert assign_shared(wanted, places, first) == first


@pytest.mark.parametrize("partitions", range(2, 6))
def test_who_comes_takes_no_more_than_its_share(partitions: int) -> None:
    """As long as there are not more members than partitions, the others lose what it gets and nothing else."""
    wanted = {"m0": frozenset({T})}
    targets = assign_shared(wanted, {T: list(range(partitions))}, {})
    for number in range(1, partitions):
        wanted[f"m{number}"] = frozenset({T})
        after = assign_shared(wanted, {T: list(range(partitions))}, targets)
        for member, before in targets.items():
            assert after[member].get(T, frozenset()) <= before[T], f"{member} was given something new"
        targets = after


@pytest.mark.parametrize("seed", range(10))
def test_members_with_different_topics(seed: int) -> None:
    """Topic by topic, and nobody gets what it did not ask for."""
    dice = random.Random(seed)
    targets: Targets = {}
    for _ in range(20):
        wanted = {
            f"m{number}": frozenset(dice.sample([T, U], dice.randint(1, 2))) for number in range(dice.randint(1, 8))
        }
        targets = assign_shared(wanted, {T: [0, 1, 2], U: [0]}, targets)
        for member, target in targets.items():
            assert set(target) <= wanted[member]
        for topic_id, count in ((T, 3), (U, 1)):
            readers = sum(1 for topics in wanted.values() if topic_id in topics)
            assert min(holders(targets, topic_id, count)) >= min(1, readers)


def test_without_partitions_nobody_has_anything() -> None:
    assert assign_shared({"a": frozenset({T})}, {}, {"a": {T: frozenset({0})}}) == {"a": {}}
    assert assign_shared({}, {T: [0]}, {}) == {}
