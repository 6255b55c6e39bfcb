"""Moldau and Apache Kafka hand out records to share groups alike: sessions, acquisition, acknowledgements, limits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.interop.conftest import Same
from tests.interop.group_offsets import new_group
from tests.interop.peers import Peer
from tests.interop.share_groups import fill, ready
from tests.interop.wire import plain
from tests.pace import moment_ms, patience, patience_ms
from tests.unit.share.member import Member

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
UNKNOWN = b"\x07" * 16
# What a session gives back at its end is stored behind the answer: until then others come first.
RELEASE_SECONDS = 0.4


@pytest.fixture
def group() -> str:
    return new_group()


def shown(answer: Any) -> Any:
    """What a client acts on. Not: ports; texts, of which Moldau has more; partitions that are mentioned though there is
    nothing to say of them, which depends in Apache Kafka on whether their state was loaded in time."""
    found = plain(answer, {"error_message", "acknowledge_error_message"})
    for row in found["node_endpoints"]:
        row["port"] = "<port>"
    for topic in found["responses"]:
        rows = [row for row in topic["partitions"] if says_something(row)]
        topic["partitions"] = sorted(rows, key=lambda row: int(row["partition_index"]))
    found["responses"] = [topic for topic in found["responses"] if topic["partitions"]]
    return found


def says_something(row: dict[str, Any]) -> bool:
    if "acquired_records" not in row:
        return True
    return bool(row["acquired_records"] or row["error_code"] or row["acknowledge_error_code"])


# Checks of the request and of the session


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_wrong_with_a_fetch_as_such(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        _, topic_id = ready(peer, group, topic)
        place = (topic_id, 0)
        seen = []
        for group_id, member_id in ((None, "m"), (group, None), (group, ""), (group, "x" * 37), (group, "x" * 36)):
            seen.append(shown(Member(peer.ask, group_id, member_id).fetch(place, max_wait_ms=0, version=version)))
        member = Member(peer.ask, group, "other")
        for epoch in (1, -1, -5, 7):
            seen.append(shown(member.fetch(place, epoch=epoch, version=version)))
        seen.append(shown(member.fetch(said={place: [(0, 0, [ACCEPT])]}, epoch=0, version=version)))
        return seen

    same(scenario)


def test_a_renewal_fetches_nothing(same: Same, group: str, topic: str) -> None:
    """The numbers must be zero; a request that breaks this does not use up its epoch."""

    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        fill(peer, topic, 5)
        place = (topic_id, 0)
        seen = [shown(member.fetch(place))]
        zero = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
        for name in zero:
            answer = member.fetch(said={place: [(0, 0, [RENEW])]}, is_renew_ack=True, **{**zero, name: 1})
            seen.append(shown(answer))
        seen.append(shown(member.fetch(said={place: [(0, 4, [RENEW])]}, is_renew_ack=True, **zero)))
        seen.append(shown(member.fetch(said={place: [(0, 0, [RENEW])]}, max_wait_ms=0)))
        seen.append(shown(member.acknowledge({place: [(0, 1, [RENEW])]}, is_renew_ack=True)))
        seen.append(shown(member.acknowledge({place: [(0, 1, [RENEW])]})))
        seen.append(shown(member.acknowledge({place: [(0, 1, [RENEW])]}, version=1)))
        seen.append(shown(member.acknowledge({place: [(0, 1, [ACCEPT])]}, is_renew_ack=True)))
        return seen

    same(scenario)


def test_renewals_can_be_forbidden(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, share_renew_acknowledge_enable="false")
        fill(peer, topic, 5)
        place = (topic_id, 0)
        seen = [shown(member.fetch(place))]
        seen.append(shown(member.acknowledge({place: [(0, 1, [RENEW])]}, is_renew_ack=True)))
        seen.append(shown(member.acknowledge({place: [(0, 4, [ACCEPT])]})))
        return seen

    same(scenario)


def test_epochs_of_a_session(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        place = (topic_id, 0)
        quick = {"max_wait_ms": 0}
        seen = [shown(member.fetch(place, **quick))]
        for epoch in (2, 1, 1, 0, 1):
            seen.append(shown(member.fetch(epoch=epoch, **quick)))
        for epoch in (0, 1, 2, 2, 5):
            seen.append(shown(member.acknowledge({place: []}, epoch=epoch)))
        seen.append(shown(member.fetch(epoch=3, **quick)))
        seen.append(shown(member.acknowledge({}, epoch=-1)))
        seen.append(shown(member.acknowledge({}, epoch=-1)))
        seen.append(shown(member.acknowledge({}, epoch=4)))
        return seen

    same(scenario)


def test_what_an_answer_mentions(same: Same, group: str, topic: str) -> None:
    """All partitions at first, then those of which there is something to say, errors each time."""

    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 2)
        first, second = (topic_id, 0), (topic_id, 1)
        quick = {"max_wait_ms": 0}
        seen = [shown(member.fetch(first, **quick)), shown(member.fetch(**quick))]
        seen.append(shown(member.fetch(second, **quick)))
        seen.append(shown(member.fetch(**quick)))
        seen.append(shown(member.fetch((topic_id, 9), **quick)))
        seen.append(shown(member.fetch(**quick)))
        seen.append(shown(member.fetch(forget=[(topic_id, 9)], **quick)))
        seen.append(shown(member.fetch(**quick)))
        fill(peer, topic, 3, partition=1)
        seen.append(shown(member.fetch()))
        seen.append(shown(member.fetch(forget=[second], said={second: [(0, 2, [ACCEPT])]}, **quick)))
        seen.append(shown(member.fetch(first, max_records=0, **quick)))
        seen.append(shown(member.fetch(first, max_bytes=0, **quick)))
        seen.append(shown(member.fetch(epoch=-1, **quick)))
        return seen

    same(scenario)


def test_a_first_fetch_that_wants_nothing(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 2)
        seen = [shown(member.fetch((topic_id, 0), (topic_id, 1), max_records=0, max_wait_ms=0))]
        seen.append(shown(member.fetch(max_wait_ms=0)))
        seen.append(shown(member.fetch(epoch=0, max_wait_ms=0)))
        seen.append(shown(member.fetch(max_wait_ms=0)))
        return seen

    same(scenario)


def test_everything_in_error_is_answered_at_once(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        begin = time.monotonic()
        seen = [shown(member.fetch((topic_id, 5), (topic_id, 6), max_wait_ms=patience_ms(10_000)))]
        assert time.monotonic() - begin < patience(9)
        return seen

    same(scenario)


# Acquisition


def loop(member: Member, count: int, **fields: Any) -> list[Any]:
    return [shown(member.fetch(max_wait_ms=moment_ms(200), **fields)) for _ in range(count)]


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("wanted", [1, 3, 10, 12, 100])
def test_how_many_records_a_member_gets(same: Same, group: str, topic: str, mode: int, wanted: int) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        fill(peer, topic, 10, 1, 5, 20)
        fields = {"share_acquire_mode": mode, "max_records": wanted, "batch_size": wanted}
        seen = [shown(member.fetch((topic_id, 0), **fields)), *loop(member, 3, **fields)]
        rows = [row for answer in seen for one in answer["responses"] for row in one["partitions"]]
        held = [(found["first_offset"], found["last_offset"]) for row in rows for found in row["acquired_records"]]
        member.acknowledge({(topic_id, 0): [(first, last, [RELEASE]) for first, last in held]})
        return [*seen, *loop(member, 3, **fields)]

    same(scenario)


@pytest.mark.parametrize("batch_size", [1, 4, 10, 100])
def test_pieces_have_the_length_that_the_member_wants(same: Same, group: str, topic: str, batch_size: int) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        fill(peer, topic, 1, 2, 3, 10, 1, 1, 1, 4)
        return shown(member.fetch((topic_id, 0), batch_size=batch_size))

    same(scenario)


def test_a_record_larger_than_asked_for_is_delivered(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 2)
        for partition in (0, 1):
            fill(peer, topic, 1, 1, partition=partition, value=b"x" * 5000)
        places = [(topic_id, 0), (topic_id, 1)]
        seen = [shown(member.fetch(places[0], max_bytes=100))]
        seen.append(shown(member.fetch(max_bytes=1)))
        return seen

    same(scenario)


def test_the_limit_of_locks(same: Same, group: str, topic: str) -> None:
    """Nothing new beyond it; what is released inside comes again."""

    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, share_partition_max_record_locks="100")
        fill(peer, topic, 40, 40, 40, 40)
        place = (topic_id, 0)
        seen = [shown(member.fetch(place, max_records=30)), *loop(member, 4, max_records=30)]
        seen.append(shown(member.acknowledge({place: [(10, 19, [RELEASE])]})))
        seen += loop(member, 2)
        seen.append(shown(member.acknowledge({place: [(0, 5, [ACCEPT])]})))
        seen += loop(member, 1)
        seen.append(shown(member.acknowledge({place: [(6, 39, [REJECT])]})))
        return [*seen, *loop(member, 2)]

    same(scenario)


@pytest.mark.parametrize("limit", ["2", "3", "5"])
def test_one_record_that_nobody_can_process(same: Same, group: str, topic: str, limit: str) -> None:
    """Everything is released over and over: with few attempts left, fewer records come at once, in the end one."""

    def rows_of(answer: Any) -> list[tuple[int, int, int]]:
        rows = [row for topic in answer.responses for one in topic.partitions for row in one.acquired_records]
        return [(row.first_offset, row.last_offset, row.delivery_count) for row in rows]

    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, share_delivery_count_limit=limit)
        fill(peer, topic, 8, 4)
        place = (topic_id, 0)
        seen = [rows_of(member.fetch(place))]
        while seen[-1] and len(seen) < 60:
            member.acknowledge({place: [(first, last, [RELEASE]) for first, last, _ in seen[-1]]})
            seen.append(rows_of(member.fetch(max_wait_ms=200)))
        return seen

    same(scenario)


# Acknowledgements

CASES: dict[str, list[tuple[int, int, list[int]]]] = {
    "nothing": [],
    "all": [(0, 19, [ACCEPT])],
    "one type each": [(0, 4, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT])],
    "too few types": [(0, 4, [ACCEPT, RELEASE])],
    "too many types": [(0, 1, [ACCEPT, RELEASE, ACCEPT])],
    "no types": [(0, 4, [])],
    "a type that does not exist": [(0, 4, [5])],
    "a negative type": [(0, 4, [-1])],
    "renewal": [(0, 4, [RENEW])],
    "backwards": [(4, 0, [ACCEPT])],
    "out of order": [(5, 9, [ACCEPT]), (0, 4, [ACCEPT])],
    "overlapping by one": [(0, 4, [ACCEPT]), (4, 9, [ACCEPT])],
    "overlapping by two": [(0, 5, [ACCEPT]), (4, 9, [ACCEPT])],
    "the same twice": [(3, 3, [ACCEPT]), (3, 3, [ACCEPT])],
    "behind the last": [(10, 25, [ACCEPT])],
    "only behind the last": [(30, 35, [ACCEPT])],
    "negative offsets": [(-3, 2, [ACCEPT])],
    "only negative offsets": [(-3, -1, [ACCEPT])],
    "the second is wrong": [(0, 3, [ACCEPT]), (18, 22, [ACCEPT])],
    "across two batches": [(5, 15, [ACCEPT])],
    "across two batches, types": [(8, 11, [ACCEPT, RELEASE, RELEASE, REJECT])],
    "gaps for records that exist": [(0, 9, [GAP])],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("by_fetch", [False, True])
def test_acknowledgements(same: Same, group: str, topic: str, case: str, by_fetch: bool) -> None:
    """And what comes again afterwards."""

    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        fill(peer, topic, 10, 10)
        place = (topic_id, 0)
        seen = [shown(member.fetch(place))]
        if by_fetch:
            seen.append(shown(member.fetch(said={place: CASES[case]}, max_wait_ms=200)))
        else:
            seen.append(shown(member.acknowledge({place: CASES[case]})))
        seen.append(shown(member.acknowledge({}, epoch=-1)))
        time.sleep(RELEASE_SECONDS)
        seen.append(shown(member.fetch(place, epoch=0, max_wait_ms=200)))
        return seen

    same(scenario)


def test_acknowledgements_that_come_too_late(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        other = Member(peer.ask, group, "m2")
        fill(peer, topic, 5, 5)
        place = (topic_id, 0)
        seen = [shown(member.fetch(place, max_records=5)), shown(other.fetch(place, max_records=5))]
        seen.append(shown(other.acknowledge({place: [(0, 4, [ACCEPT])]})))
        seen.append(shown(member.acknowledge({place: [(5, 9, [ACCEPT])]})))
        seen.append(shown(member.acknowledge({place: [(3, 4, [ACCEPT])]})))
        for _ in range(2):
            seen.append(shown(member.acknowledge({place: [(0, 2, [ACCEPT])]})))
        seen.append(shown(member.acknowledge({place: [(4, 4, [ACCEPT])]})))
        seen.append(shown(member.acknowledge({place: [(2, 6, [ACCEPT])]})))
        seen.append(shown(other.acknowledge({place: [(2, 6, [ACCEPT])]})))
        seen.append(shown(other.acknowledge({place: [(7, 9, [RELEASE])]})))
        seen.append(shown(other.acknowledge({place: [(7, 9, [ACCEPT])]})))
        seen.append(shown(member.fetch(max_wait_ms=200)))
        seen.append(shown(member.acknowledge({place: [(7, 9, [ACCEPT])]})))
        seen.append(shown(member.acknowledge({place: [(7, 9, [ACCEPT])]})))
        return seen

    same(scenario)


def test_partitions_are_acknowledged_each_by_itself(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 3)
        fill(peer, topic, 5)
        seen = [shown(member.fetch((topic_id, 0)))]
        said = {
            (topic_id, 0): [(0, 4, [ACCEPT])],
            (topic_id, 1): [(0, 4, [ACCEPT])],
            (topic_id, 7): [(0, 4, [ACCEPT])],
            (UNKNOWN, 0): [(0, 4, [ACCEPT])],
        }
        seen.append(shown(member.acknowledge(said)))
        return seen

    def in_order(peer: Peer) -> Any:
        seen = scenario(peer)
        for answer in seen:
            for row in answer["responses"]:
                row["partitions"].sort(key=lambda found: found["partition_index"])
            answer["responses"].sort(key=str)
        return seen

    same(in_order)


def test_who_begins_anew_keeps_what_it_holds(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        fill(peer, topic, 5)
        place = (topic_id, 0)
        seen = [shown(member.fetch(place)), shown(member.fetch(place, epoch=0, max_wait_ms=200))]
        seen.append(shown(member.acknowledge({place: [(0, 4, [ACCEPT])]})))
        return seen

    same(scenario)


def test_a_lost_connection_gives_records_back(same: Same, group: str, topic: str) -> None:
    """Unless the member has a newer session on another connection."""

    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        fill(peer, topic, 5)
        place = (topic_id, 0)
        seen = []
        with peer.connect() as old:
            first = Member(old.ask, group, "m2")
            seen.append(shown(first.fetch(place)))
            again = Member(peer.ask, group, "m2")
            seen.append(shown(again.fetch(place, max_wait_ms=100)))
        time.sleep(0.5)
        seen.append(shown(again.fetch(max_wait_ms=100)))
        seen.append(shown(again.acknowledge({place: [(0, 1, [ACCEPT])]})))
        seen.append(shown(again.acknowledge({}, epoch=-1)))
        with peer.connect() as lost:
            seen.append(shown(Member(lost.ask, group, "m3").fetch(place)))
        seen.append(shown(member.fetch(place, max_wait_ms=5000)))
        return seen

    same(scenario)


def test_forgotten_partitions_stay_locked(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic)
        other = Member(peer.ask, group, "m2")
        fill(peer, topic, 5)
        place = (topic_id, 0)
        seen = [shown(member.fetch(place)), shown(member.fetch(forget=[place], max_wait_ms=0))]
        seen.append(shown(other.fetch(place, max_wait_ms=200)))
        seen.append(shown(member.acknowledge({place: [(0, 2, [ACCEPT])]})))
        seen.append(shown(member.fetch(epoch=-1)))
        seen.append(shown(other.fetch(max_wait_ms=200)))
        return seen

    same(scenario)
