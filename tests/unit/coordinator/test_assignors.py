"""The server's assignors keep their contracts for any group: complete, balanced, sticky, and the same every time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.coordinator.group.assignors import range as range_assignor
from moldau.coordinator.group.assignors import uniform
from moldau.coordinator.group.assignors.spec import GroupSpec, MemberSpec, Target, Targets
from moldau.coordinator.group.assignors.table import ASSIGNORS, offered_assignors

few = settings(max_examples=60, deadline=None)

TOPICS = [bytes([number]) * 16 for number in range(1, 7)]


def make_spec(
    counts: dict[bytes, int],
    wanted: dict[str, frozenset[bytes]],
    targets: Targets | None = None,
    instances: dict[str, str] | None = None,
) -> GroupSpec:
    members = {
        member_id: MemberSpec((instances or {}).get(member_id), topics, (targets or {}).get(member_id, {}))
        for member_id, topics in wanted.items()
    }
    read = {topic_id: count for topic_id, count in counts.items() if any(topic_id in one for one in wanted.values())}
    return GroupSpec(members, read, homogeneous=len(set(wanted.values())) <= 1)


def flat(target: Target) -> set[tuple[bytes, int]]:
    return {(topic_id, index) for topic_id, indexes in target.items() for index in indexes}


def check_complete(spec: GroupSpec, targets: Targets) -> None:
    """Every partition of every topic that somebody wants is with one member that wants it."""
    assert set(targets) == set(spec.members)
    owners = Counter(pair for target in targets.values() for pair in flat(target))
    expected = {(topic_id, index) for topic_id, count in spec.partition_counts.items() for index in range(count)}
    assert set(owners) == expected
    assert all(count == 1 for count in owners.values())
    for member_id, target in targets.items():
        assert set(target) <= spec.members[member_id].topics
        assert all(target.values()), "topics without partitions are left out"


def sizes(targets: Targets) -> dict[str, int]:
    return {member_id: len(flat(target)) for member_id, target in targets.items()}


@st.composite
def groups(draw: st.DrawFn, alike: bool) -> tuple[dict[bytes, int], dict[str, frozenset[bytes]]]:
    counts = {topic_id: draw(st.integers(0, 12)) for topic_id in TOPICS[: draw(st.integers(1, len(TOPICS)))]}
    names = [f"m{number}" for number in range(draw(st.integers(1, 8)))]
    some = st.frozensets(st.sampled_from(list(counts)), min_size=0 if not alike else 1)
    if alike:
        return counts, dict.fromkeys(names, draw(some))
    return counts, {name: draw(some) for name in names}


ANY_GROUP = st.one_of(groups(alike=True), groups(alike=False))


@pytest.mark.parametrize("name", list(ASSIGNORS))
@few
@given(group=ANY_GROUP, earlier=ANY_GROUP)
def test_every_partition_has_one_owner_that_wants_it(
    name: str,
    group: tuple[dict[bytes, int], dict[str, frozenset[bytes]]],
    earlier: tuple[dict[bytes, int], dict[str, frozenset[bytes]]],
) -> None:
    """Whatever the group was before, also with topics of other sizes."""
    counts, wanted = group
    before = {topic_id: min(count, counts.get(topic_id, 0)) for topic_id, count in earlier[0].items()}
    old = ASSIGNORS[name](make_spec(before, earlier[1]))
    spec = make_spec(counts, wanted, old)
    check_complete(spec, ASSIGNORS[name](spec))


@pytest.mark.parametrize("name", list(ASSIGNORS))
@few
@given(group=ANY_GROUP)
def test_the_same_spec_gives_the_same_targets(
    name: str, group: tuple[dict[bytes, int], dict[str, frozenset[bytes]]]
) -> None:
    assert ASSIGNORS[name](make_spec(*group)) == ASSIGNORS[name](make_spec(*group))


# Uniform


@few
@given(group=groups(alike=True), sequence=st.lists(st.sampled_from(["join", "leave"]), max_size=6))
def test_alike_members_differ_by_one_and_keep_what_they_can(
    group: tuple[dict[bytes, int], dict[str, frozenset[bytes]]], sequence: list[str]
) -> None:
    """Each step moves exactly as many partitions as balance needs."""
    counts, wanted = group
    topics = next(iter(wanted.values()))
    targets = uniform.assign(make_spec(counts, wanted))
    for number, step in enumerate(sequence):
        if step == "join":
            wanted = {**wanted, f"n{number}": topics}
        elif len(wanted) > 1:
            wanted = dict(list(wanted.items())[1:])
        old = {member_id: targets.get(member_id, {}) for member_id in wanted}
        new = uniform.assign(make_spec(counts, wanted, old))
        assert max(sizes(new).values()) - min(sizes(new).values()) <= 1
        kept = sum(len(flat(new[member_id]) & flat(old[member_id])) for member_id in wanted)
        assert kept == most_that_can_stay(sizes(old), sum(sizes(new).values()))
        targets = new


def most_that_can_stay(old_sizes: dict[str, int], partitions: int) -> int:
    """With shares that differ by one at most: the larger shares go to those who have more than the smaller one."""
    least, extra = divmod(partitions, len(old_sizes))
    larger = min(extra, sum(1 for size in old_sizes.values() if size > least))
    return sum(min(size, least) for size in old_sizes.values()) + larger


@few
@given(group=groups(alike=False))
def test_different_members_are_balanced_as_far_as_one_move_can_tell(
    group: tuple[dict[bytes, int], dict[str, frozenset[bytes]]],
) -> None:
    """No partition could go to a member that wants its topic and has at least two less."""
    spec = make_spec(*group)
    targets = uniform.assign(spec)
    check_complete(spec, targets)
    count = sizes(targets)
    for giver, target in targets.items():
        for topic_id in target:
            for taker, member in spec.members.items():
                if topic_id in member.topics:
                    assert count[giver] <= count[taker] + 1


@few
@given(group=groups(alike=False))
def test_a_balanced_group_is_left_alone(group: tuple[dict[bytes, int], dict[str, frozenset[bytes]]]) -> None:
    counts, wanted = group
    targets = uniform.assign(make_spec(counts, wanted))
    assert uniform.assign(make_spec(counts, wanted, targets)) == targets


@few
@given(group=groups(alike=False))
def test_a_leaving_member_moves_little_more_than_what_it_had(
    group: tuple[dict[bytes, int], dict[str, frozenset[bytes]]],
) -> None:
    """For each partition that it leaves behind one other may have to move for balance, rarely two."""
    counts, wanted = group
    targets = uniform.assign(make_spec(counts, wanted))
    staying = dict(list(wanted.items())[1:])
    new = uniform.assign(make_spec(counts, staying, {name: targets[name] for name in staying}))
    moved = sum(
        len({pair for pair in flat(targets[name]) - flat(new[name]) if any(pair in flat(new[one]) for one in staying)})
        for name in staying
    )
    assert moved <= 2 * len(flat(targets[next(iter(wanted))]))


def test_a_new_topic_fills_up_those_who_have_less() -> None:
    first, second = TOPICS[:2]
    wanted = {"a": frozenset([first, second]), "b": frozenset([second])}
    targets = uniform.assign(make_spec({first: 3, second: 3}, wanted))
    assert sizes(targets) == {"a": 3, "b": 3}
    assert set(targets["a"]) == {first}


# Range


def test_range_gives_the_same_partitions_of_each_topic() -> None:
    """Co-partitioned topics stay together; the first members get one more."""
    first, second = TOPICS[:2]
    wanted = dict.fromkeys(["b", "a", "c"], frozenset([first, second]))
    targets = range_assignor.assign(make_spec({first: 4, second: 4}, wanted))
    assert targets == {
        "a": {first: frozenset([0, 1]), second: frozenset([0, 1])},
        "b": {first: frozenset([2]), second: frozenset([2])},
        "c": {first: frozenset([3]), second: frozenset([3])},
    }


def test_range_puts_static_members_first_by_instance() -> None:
    """A static member that comes back under another id has the same partitions."""
    (topic,) = TOPICS[:1]
    wanted = dict.fromkeys(["x", "y", "z"], frozenset([topic]))
    targets = range_assignor.assign(make_spec({topic: 3}, wanted, instances={"z": "i1", "y": "i2"}))
    assert [next(iter(flat(targets[name])))[1] for name in ("z", "y", "x")] == [0, 1, 2]
    again = dict.fromkeys(["x", "y", "new"], frozenset([topic]))
    assert (
        range_assignor.assign(make_spec({topic: 3}, again, instances={"new": "i1", "y": "i2"}))["new"] == targets["z"]
    )


def test_range_with_fewer_partitions_than_members() -> None:
    (topic,) = TOPICS[:1]
    targets = range_assignor.assign(make_spec({topic: 1}, dict.fromkeys("abc", frozenset([topic]))))
    assert targets == {"a": {topic: frozenset([0])}, "b": {}, "c": {}}


# Names


def test_class_names_of_the_setting_stand_for_assignors() -> None:
    java = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    assert offered_assignors([java, "uniform"]) == ["range", "uniform"]
    assert offered_assignors(["com.example.Custom", "range"]) == ["range"]
    assert offered_assignors(["com.example.Custom"]) == ["uniform", "range"]
