"""Assignors: what they promise, and the bytes they exchange with Java's consumers."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.client.assignors import (
    Assignor,
    GroupMetadata,
    MemberAssignment,
    MemberSubscription,
    PartitionReplicas,
    RebalanceProtocol,
    find_assignors,
)
from moldau.client.assignors.balance import Claim
from moldau.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from moldau.client.assignors.range import RangeAssignor
from moldau.client.assignors.round_robin import RoundRobinAssignor
from moldau.client.assignors.sticky import StickyAssignor, read_claim, write_claim
from moldau.client.assignors.wire import read_assignment, read_subscription, write_assignment, write_subscription
from moldau.client.errors import ClientError, ConfigError
from moldau.client.group.settings import choose_rebalance_protocol
from moldau.client.results import ConsumerGroupMetadata, TopicPartition

P = TopicPartition
SOME = [P("t", 1), P("u", 0), P("t", 0)]


def topics(**counts: int) -> GroupMetadata:
    return {
        name: [PartitionReplicas(P(name, number), frozenset()) for number in range(count)]
        for name, count in counts.items()
    }


def assigned(assignor: Assignor, metadata: GroupMetadata, members: Mapping[str, MemberSubscription]) -> dict[str, str]:
    found = assignor.assign(metadata, members)
    return {name: " ".join(str(item) for item in row.partitions) for name, row in found.items()}


# The bytes were written by Apache Kafka 4.3.1 (ConsumerProtocol, StickyAssignor, CooperativeStickyAssignor).


def test_subscriptions_are_the_bytes_of_java() -> None:
    full = MemberSubscription(["u", "t"], b"\1\2", SOME, 7, "rack")
    assert write_subscription(full).hex() == (
        "00030000000200017400017500000002010200000002000174000000020000000000000001000175000000010000000000000007"
        "00047261636b"
    )
    assert write_subscription(MemberSubscription(["u", "t"])).hex() == (
        "000300000002000174000175ffffffff00000000ffffffffffff"
    )
    again = read_subscription(write_subscription(full), "instance")
    assert again == MemberSubscription(["t", "u"], b"\1\2", sorted(SOME), 7, "rack", "instance")


def test_assignments_are_the_bytes_of_java() -> None:
    written = write_assignment(MemberAssignment(SOME))
    assert written.hex() == "0003000000020001740000000200000001000000000001750000000100000000ffffffff"
    assert write_assignment(MemberAssignment(SOME, b"\x09")).hex().endswith("0000000109")
    assert read_assignment(written) == MemberAssignment([P("t", 1), P("t", 0), P("u", 0)], None)
    assert read_assignment(b"") == MemberAssignment([])


def test_older_and_newer_versions_are_read() -> None:
    oldest = bytes.fromhex("000000000001000174ffffffff")
    assert read_subscription(oldest) == MemberSubscription(["t"], None, [])
    newer = b"\0\x09" + write_subscription(MemberSubscription(["t"]))[2:] + b"more"
    assert read_subscription(newer).topics == ["t"]


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0", b"\0\3\x7f\xff\xff\xff", b"\0\3\0\0\0\1\0\5t"])
def test_subscriptions_that_do_not_parse_are_refused(data: bytes) -> None:
    with pytest.raises(ClientError, match="cannot be read"):
        read_subscription(data)


def test_user_data_of_the_sticky_assignors_are_the_bytes_of_java() -> None:
    metadata = ConsumerGroupMetadata("g", 7, "m")
    sticky, cooperative = StickyAssignor(), CooperativeStickyAssignor()
    assert sticky.subscription_user_data({"t"}) is None
    assert cooperative.subscription_user_data({"t"}) == b"\xff\xff\xff\xff"
    for assignor in (sticky, cooperative):
        assignor.on_assignment(MemberAssignment(SOME), metadata)
    data = sticky.subscription_user_data({"t"})
    assert data is not None
    assert data.hex() == "00000002000174000000020000000100000000000175000000010000000000000007"
    assert cooperative.subscription_user_data({"t"}) == b"\0\0\0\7"
    assert read_claim(data) == Claim([P("t", 1), P("t", 0), P("u", 0)], 7)
    assert read_claim(data[:-4]).generation_id == -1  # version 0 has no generation


@given(st.binary(max_size=60))
def test_user_data_of_others_is_not_trusted(data: bytes) -> None:
    claim = read_claim(data)
    assert len(claim.partitions) * 4 <= len(data)


# Range and round-robin; tests/interop/test_assignors_same.py compares both with Java's in many more cases.


def test_range_cuts_each_topic_into_pieces() -> None:
    members = {"b": MemberSubscription(["t", "u"]), "a": MemberSubscription(["t", "u"])}
    assert assigned(RangeAssignor(), topics(t=3, u=3), members) == {"a": "t-0 t-1 u-0 u-1", "b": "t-2 u-2"}


def test_range_puts_static_members_first() -> None:
    members = {
        "a": MemberSubscription(["t"]),
        "z": MemberSubscription(["t"], group_instance_id="1"),
        "b": MemberSubscription(["t"], group_instance_id="2"),
    }
    assert assigned(RangeAssignor(), topics(t=4), members) == {"z": "t-0 t-1", "b": "t-2", "a": "t-3"}


def test_range_prefers_the_racks_of_members() -> None:
    rows = [PartitionReplicas(P("t", number), frozenset(rack)) for number, rack in enumerate("abab")]
    members = {"m1": MemberSubscription(["t"], rack="b"), "m2": MemberSubscription(["t"], rack="a")}
    assert assigned(RangeAssignor(), {"t": rows}, members) == {"m1": "t-1 t-3", "m2": "t-0 t-2"}


def test_round_robin_passes_over_whoever_does_not_want_a_topic() -> None:
    members = {
        "a": MemberSubscription(["t1"]),
        "b": MemberSubscription(["t1", "t2"]),
        "c": MemberSubscription(["t1", "t2", "t3"]),
    }
    assert assigned(RoundRobinAssignor(), topics(t1=1, t2=2, t3=3), members) == {
        "a": "t1-0",
        "b": "t2-0",
        "c": "t2-1 t3-0 t3-1 t3-2",
    }


# Both sticky assignors


@st.composite
def groups(draw: st.DrawFn) -> tuple[GroupMetadata, dict[str, set[str]]]:
    """Topics, and what each member wants."""
    metadata = topics(**{f"t{number}": draw(st.integers(1, 9)) for number in range(draw(st.integers(1, 4)))})
    alike = draw(st.booleans())
    wanted = {}
    for number in range(draw(st.integers(1, 6))):
        wanted[f"m{number}"] = (
            set(metadata) if alike else set(draw(st.sets(st.sampled_from(sorted(metadata)), min_size=1)))
        )
    return metadata, wanted


def sticky_round(
    metadata: GroupMetadata, wanted: Mapping[str, set[str]], before: Mapping[str, list[TopicPartition]]
) -> dict[str, list[TopicPartition]]:
    members = {
        name: MemberSubscription(sorted(items), write_claim(Claim(before[name], 1)) if name in before else None)
        for name, items in wanted.items()
    }
    return {name: row.partitions for name, row in StickyAssignor().assign(metadata, members).items()}


def check_fair(
    metadata: GroupMetadata, wanted: Mapping[str, set[str]], found: Mapping[str, list[TopicPartition]]
) -> None:
    """Every wanted partition has one owner that wants it, and no single move would make two members more alike."""
    expected = sorted(row.partition for topic in set().union(*wanted.values()) for row in metadata[topic])
    assert sorted(item for items in found.values() for item in items) == expected
    for name, items in found.items():
        assert {item.topic for item in items} <= wanted[name]
        for item in items:
            for other, others in found.items():
                assert item.topic not in wanted[other] or len(others) >= len(items) - 1


@settings(max_examples=60)
@given(groups())
def test_sticky_is_fair_and_stays(group: tuple[GroupMetadata, dict[str, set[str]]]) -> None:
    """With nothing changed, nothing moves."""
    metadata, wanted = group
    first = sticky_round(metadata, wanted, {})
    check_fair(metadata, wanted, first)
    assert sticky_round(metadata, wanted, first) == first


@settings(max_examples=60)
@given(groups(), st.data())
def test_sticky_moves_only_what_has_to_move(
    group: tuple[GroupMetadata, dict[str, set[str]]], data: st.DataObject
) -> None:
    """A member goes: what it had is spread, and where all want the same nobody else loses anything."""
    metadata, wanted = group
    first = sticky_round(metadata, wanted, {})
    gone = data.draw(st.sampled_from(sorted(wanted)))
    rest = {name: items for name, items in wanted.items() if name != gone}
    if not rest:
        return
    second = sticky_round(metadata, rest, first)
    check_fair(metadata, rest, second)
    if len({frozenset(items) for items in rest.values()}) == 1:
        for name, items in second.items():
            assert set(first[name]) & {row.partition for topic in rest[name] for row in metadata[topic]} <= set(items)
    # The member comes back: no more moves than it gets.
    third = sticky_round(metadata, wanted, second)
    check_fair(metadata, wanted, third)
    if len({frozenset(items) for items in wanted.values()}) == 1:
        moved = sum(len(set(third[name]) - set(second[name])) for name in rest)
        assert moved == 0


@settings(max_examples=60)
@given(groups())
def test_sticky_is_as_even_as_can_be(group: tuple[GroupMetadata, dict[str, set[str]]]) -> None:
    """Beside every way there is to deal a few partitions out."""
    metadata, wanted = group
    few = {name: rows[:2] for name, rows in list(metadata.items())[:3]}
    members = dict(list(wanted.items())[:4])
    found = sticky_round(few, members, {})
    takers = [
        [name for name in members if row.partition.topic in members[name]]
        for rows in few.values()
        for row in rows
        if any(row.partition.topic in items for items in members.values())
    ]
    best = min(sum(count * count for count in Counter(owners).values()) for owners in itertools.product(*takers))
    assert sum(len(items) ** 2 for items in found.values()) == best


def test_sticky_believes_the_later_generation() -> None:
    members = {
        "old": MemberSubscription(["t"], write_claim(Claim([P("t", 0), P("t", 1)], 3))),
        "new": MemberSubscription(["t"], write_claim(Claim([P("t", 1)], 4))),
    }
    assert assigned(StickyAssignor(), topics(t=2), members) == {"old": "t-0", "new": "t-1"}


def test_sticky_takes_chains_of_moves() -> None:
    """Nothing of b's can go to c directly, but something of a's can come to c if b helps."""
    wanted = {"a": {"t"}, "b": {"t", "u"}, "c": {"u"}}
    before = {"a": [P("t", n) for n in range(3)], "b": [P("t", 3), P("u", 0)], "c": [P("u", 1)]}
    found = sticky_round(topics(t=4, u=2), wanted, before)
    assert sorted(len(items) for items in found.values()) == [2, 2, 2]


def test_sticky_prefers_the_racks_of_members() -> None:
    rows = [PartitionReplicas(P("t", number), frozenset(rack)) for number, rack in enumerate("aabb")]
    members = {"m1": MemberSubscription(["t"], rack="b"), "m2": MemberSubscription(["t"], rack="a")}
    assert assigned(StickyAssignor(), {"t": rows}, members) == {"m1": "t-2 t-3", "m2": "t-0 t-1"}


def cooperative_round(
    metadata: GroupMetadata, wanted: Mapping[str, set[str]], owned: Mapping[str, list[TopicPartition]], generation: int
) -> dict[str, list[TopicPartition]]:
    members = {
        name: MemberSubscription(
            sorted(items), None, [item for item in owned.get(name, []) if item.topic in items], generation
        )
        for name, items in wanted.items()
    }
    return {name: row.partitions for name, row in CooperativeStickyAssignor().assign(metadata, members).items()}


@settings(max_examples=60)
@given(groups(), groups(), st.data())
def test_cooperative_rebalances_never_hand_on_what_is_still_owned(
    before: tuple[GroupMetadata, dict[str, set[str]]],
    after: tuple[GroupMetadata, dict[str, set[str]]],
    data: st.DataObject,
) -> None:
    """From one group to any other: at no time two owners, and after a few rebalances it is fair and nothing moves."""
    owned = cooperative_round(*before, owned={}, generation=1)
    metadata, wanted = after
    for generation in range(2, 6):
        owners = {
            item: name
            for name, items in owned.items()
            for item in items
            if name in wanted and item.topic in wanted[name]
        }
        found = cooperative_round(metadata, wanted, owned, generation)
        for name, items in found.items():
            assert all(owners.get(item, name) == name for item in items)
        if found == owned:
            break
        owned = found
    check_fair(metadata, wanted, owned)


# The setting


def test_assignors_are_found_by_kafkas_names_and_short_ones() -> None:
    names = "org.apache.kafka.clients.consumer.RangeAssignor, roundrobin,sticky, CooperativeStickyAssignor"
    assert [item.name for item in find_assignors(names)] == ["range", "roundrobin", "sticky", "cooperative-sticky"]


class Everything(Assignor):
    name = "everything"
    protocols = (RebalanceProtocol.COOPERATIVE,)


def test_assignors_of_the_users_own_are_taken_as_they_are() -> None:
    own = Everything()
    assert find_assignors([own, "range"])[0] is own
    assert isinstance(find_assignors([Everything])[0], Everything)


@pytest.mark.parametrize("strategies", ["", "range,range", "org.example.Mine", [7]])
def test_strategies_that_make_no_sense_are_refused(strategies: object) -> None:
    with pytest.raises(ConfigError, match=r"partition\.assignment\.strategy"):
        find_assignors(strategies)  # type: ignore[arg-type]


def test_the_rebalance_protocol_is_one_that_all_assignors_have() -> None:
    assert choose_rebalance_protocol(find_assignors("cooperative-sticky")) is RebalanceProtocol.COOPERATIVE
    assert choose_rebalance_protocol(find_assignors("cooperative-sticky,range")) is RebalanceProtocol.EAGER
    with pytest.raises(ConfigError, match="in common"):
        choose_rebalance_protocol(find_assignors([Everything, "range"]))
