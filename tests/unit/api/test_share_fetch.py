"""Members fetch and acknowledge records of share groups: sessions, locks, limits, and what ends them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.sim.kernel.disk import SimFile
from tests.unit.api.transaction_client import Producer
from tests.unit.node.world import batch, produce_request
from tests.unit.share.member import Member, acquired, codes
from tests.unit.share.node_world import GROUP, Connection, ShareNode, connection_of

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
EPOCH_MAX = 0x7FFFFFFF
QUICK: dict[str, Any] = {"max_wait_ms": 0}


@pytest.fixture
def node() -> ShareNode:
    return ShareNode(2)


# Sessions


def test_a_session_counts(node: ShareNode) -> None:
    member = node.join()
    assert member.fetch(node.place, **QUICK).error_code == 0
    assert member.fetch(epoch=2, **QUICK).error_code == errors.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(epoch=1, **QUICK).error_code == 0
    assert member.acknowledge({}, epoch=2).error_code == 0
    assert member.acknowledge({}, epoch=2).error_code == errors.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge({}, epoch=0).error_code == errors.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(epoch=0, **QUICK).error_code == 0, "a second beginning"
    assert member.fetch(epoch=1, **QUICK).error_code == 0


def test_the_count_begins_anew_after_the_last_number(node: ShareNode) -> None:
    member = node.join()
    member.fetch(node.place, **QUICK)
    node.world.node.shares.sessions.sessions[(GROUP, "m1")].next_epoch = EPOCH_MAX
    assert member.fetch(epoch=EPOCH_MAX, **QUICK).error_code == 0
    assert member.fetch(epoch=1, **QUICK).error_code == 0


@pytest.mark.parametrize("epoch", [1, -1, 9])
def test_without_a_session_there_is_none(node: ShareNode, epoch: int) -> None:
    member = node.join()
    assert member.fetch(node.place, epoch=epoch).error_code == errors.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge({}, epoch=epoch).error_code == errors.SHARE_SESSION_NOT_FOUND


def test_the_first_request_of_a_session_acknowledges_nothing(node: ShareNode) -> None:
    """KAFKA-18198."""
    member = node.join()
    answer = member.fetch(said={node.place: [(0, 0, [ACCEPT])]}, epoch=0)
    assert answer.error_code == errors.INVALID_REQUEST
    assert member.fetch(epoch=1).error_code == errors.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize("member_id", [None, "", "x" * 37])
def test_members_have_ids(node: ShareNode, member_id: str | None) -> None:
    member = Member(Connection(node.world).ask, GROUP, member_id)
    assert member.fetch(node.place, **QUICK).error_code == errors.INVALID_REQUEST


def test_one_session_too_many_is_told_late() -> None:
    """Whoever hears it asks again at once."""
    node = ShareNode(group_share_max_share_sessions="2")
    first, second, third = node.join("m1"), node.member("m2"), node.member("m3")
    assert first.fetch(node.place, **QUICK).error_code == 0
    assert second.fetch(node.place, **QUICK).error_code == 0
    assert first.fetch(node.place, epoch=0, **QUICK).error_code == 0, "it had one already"
    asked = connection_of(third).send(third.fetch_request([node.place], max_wait_ms=1000), 2)
    node.world.run(900)
    assert not asked.reply.done
    node.world.run(200)
    assert asked.response.error_code == errors.SHARE_SESSION_LIMIT_REACHED
    second.fetch(epoch=-1)
    assert third.fetch(node.place, epoch=0, **QUICK).error_code == 0


def test_answers_leave_out_what_there_is_nothing_to_say_of(node: ShareNode) -> None:
    member = node.join()
    first, second = (node.topic_id, 0), (node.topic_id, 1)
    assert codes(member.fetch(first, **QUICK)) == [(0, 0, 0)]
    assert codes(member.fetch(**QUICK)) == []
    unknown = (9, errors.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert sorted(codes(member.fetch(second, (node.topic_id, 9), **QUICK))) == [(1, 0, 0), unknown]
    assert codes(member.fetch(**QUICK)) == [unknown], "errors come each time"
    member.fetch(forget=[(node.topic_id, 9)], **QUICK)
    assert codes(member.fetch(**QUICK)) == []


def test_an_unknown_topic_is_an_error_of_its_partition(node: ShareNode) -> None:
    member = node.join()
    unknown = (b"u" * 16, 0)
    asked = connection_of(member).send(member.fetch_request([unknown], max_wait_ms=5000), 2)
    assert asked.reply.done, "there is nothing to wait for"
    assert codes(asked.response) == [(0, errors.UNKNOWN_TOPIC_ID, 0)]


# Acquiring


def test_records_are_locked_for_one_member(node: ShareNode) -> None:
    first, second = node.join("m1"), node.member("m2")
    node.fill(5, 5)
    answer = first.fetch(node.place, max_records=5)
    assert acquired(answer) == [(0, 0, 4, 1)]
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert acquired(second.fetch(node.place)) == [(0, 5, 9, 1)]
    assert acquired(second.fetch(max_wait_ms=100)) == []


def test_records_mode_never_gives_more_over_all_partitions(node: ShareNode) -> None:
    member = node.join()
    node.fill(10)
    node.fill(10, partition=1)
    places = [(node.topic_id, 0), (node.topic_id, 1)]
    member.fetch(*places, **{**QUICK, "max_records": 0})
    node.world.run(200)
    got: list[tuple[int, int, int, int]] = []
    for _ in range(7):
        found = acquired(member.fetch(share_acquire_mode=1, max_records=3))
        assert sum(last - first + 1 for _, first, last, _ in found) <= 3
        got += found
    assert sum(last - first + 1 for _, first, last, _ in got) == 20


def test_partitions_take_turns(node: ShareNode) -> None:
    """The first one does not get everything."""
    member = node.join()
    for _ in range(4):
        node.fill(10)
        node.fill(10, partition=1)
    member.fetch((node.topic_id, 0), (node.topic_id, 1), max_records=0)
    seen = [acquired(member.fetch(max_records=1))[0][0] for _ in range(8)]
    assert set(seen) == {0, 1}


def test_a_record_larger_than_what_is_asked_for_is_delivered(node: ShareNode) -> None:
    """Larger than the share of its partition, too (KAFKA-18936)."""
    member = node.join()
    for partition in (0, 1):
        node.fill(1, partition=partition, value=b"x" * 5000)
    answer = member.fetch((node.topic_id, 0), (node.topic_id, 1), max_bytes=10)
    assert acquired(answer)


def test_only_log_batches_that_are_needed_are_sent(node: ShareNode) -> None:
    """KAFKA-18522."""
    member = node.join()
    node.fill(5, 5, 5)
    answer = member.fetch(node.place, max_records=5)
    assert acquired(answer) == [(0, 0, 4, 1)]
    one = answer.responses[0].partitions[0].records.size
    rest = member.fetch().responses[0].partitions[0].records.size
    assert rest == 2 * one


def test_a_fetch_waits_for_enough_bytes_or_long_enough(node: ShareNode) -> None:
    member = node.join()
    member.fetch(node.place, **QUICK)
    asked = connection_of(member).send(member.fetch_request([], min_bytes=100, max_wait_ms=2000), 2)
    node.fill(1)
    assert not asked.reply.done
    node.fill(1)
    assert acquired(asked.response) == [(0, 0, 1, 1)]
    member.session += 1
    asked = connection_of(member).send(member.fetch_request([], min_bytes=10_000, max_wait_ms=1000), 2)
    node.fill(1)
    assert not asked.reply.done
    node.world.run(1000)
    assert acquired(asked.response) == [(0, 2, 2, 1)], "what there is by then"


def test_a_thousand_members_wait(node: ShareNode) -> None:
    """Each record goes to one of them, in the order of their coming; who is done waits no longer (KAFKA-19389)."""
    node.join()
    waiting = []
    for number in range(1000):
        member = node.member(f"w{number}")
        member.fetch(node.place, **QUICK)
        request = member.fetch_request([], max_wait_ms=60_000, max_records=1, share_acquire_mode=1)
        waiting.append(connection_of(member).send(request, 2))
    node.fill(10)
    done = [number for number, asked in enumerate(waiting) if asked.reply.done]
    assert done == list(range(10))
    assert [acquired(waiting[number].response)[0][1] for number in done] == list(range(10))
    assert len(node.shared().waiting) == 990
    node.world.run(61_000)
    assert all(asked.reply.done for asked in waiting) and len(node.shared().waiting) == 0


def test_a_member_that_is_gone_is_not_served(node: ShareNode) -> None:
    first, second = node.join("m1"), node.member("m2")
    for member in (first, second):
        member.fetch(node.place, **QUICK)
    lost = connection_of(first).send(first.fetch_request([], max_wait_ms=60_000), 2)
    asked = connection_of(second).send(second.fetch_request([], max_wait_ms=60_000), 2)
    lost.reply.abandon()
    connection_of(first).close()
    node.fill(3)
    assert acquired(asked.response) == [(0, 0, 2, 1)]


# Cold data


def cold_reads_in_turn(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on all of the topic's data is cold; what a turn reads of it nevertheless is gathered."""
    disk = node.world.disk
    disk.memory.cold_chance = 1.0
    seen: list[str] = []
    real = SimFile.read

    def read(file: SimFile, position: int, size: int) -> bytes:
        if not disk.refuses_cold and not disk._on_thread and file.path.startswith("/data/s-"):
            seen.append(file.path)
        return real(file, position, size)

    monkeypatch.setattr(SimFile, "read", read)
    return seen


@pytest.mark.parametrize("max_wait_ms", [0, 30, 5000])
def test_cold_records_are_waited_for_and_nobody_else_waits(
    node: ShareNode, max_wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = node.join()
    member.fetch(node.place, **QUICK)
    node.fill(2, 2)
    seen = cold_reads_in_turn(node, monkeypatch)
    node.world.disk.sync_delay_ms = (200, 200)
    asked = connection_of(member).send(member.fetch_request([], max_wait_ms=max_wait_ms), 2)
    assert not asked.reply.done
    produced = node.world.send(produce_request("s", 1, batch(node.world.now_ms)), 9)
    assert produced.reply.done and not asked.reply.done
    node.world.run(2000)
    assert acquired(asked.response) == [(0, 0, 3, 1)] and seen == []


def test_what_is_in_memory_does_not_wait_for_what_is_cold(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    member = node.join()
    member.fetch(node.place, (node.topic_id, 1), **QUICK)
    node.fill(2)
    node.fill(3, partition=1)
    real = SimFile.check_cold

    def check_cold(file: SimFile, position: int, size: int) -> None:
        if file.path.startswith("/data/s-0"):
            real(file, position, size)

    monkeypatch.setattr(SimFile, "check_cold", check_cold)
    seen = cold_reads_in_turn(node, monkeypatch)
    asked = connection_of(member).send(member.fetch_request([], max_wait_ms=5000), 2)
    assert acquired(asked.response) == [(1, 0, 2, 1)]
    member.session += 1
    node.world.run(100)
    asked = connection_of(member).send(member.fetch_request([], max_wait_ms=5000), 2)
    node.world.run(2000)
    assert acquired(asked.response) == [(0, 0, 1, 1)] and seen == []


def test_a_member_that_is_gone_gets_no_cold_records(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = node.join("m1"), node.member("m2")
    for member in (first, second):
        member.fetch(node.place, **QUICK)
    node.fill(3)
    cold_reads_in_turn(node, monkeypatch)
    lost = connection_of(first).send(first.fetch_request([], max_wait_ms=60_000), 2)
    lost.reply.abandon()
    connection_of(first).close()
    node.world.run(1000)
    asked = connection_of(second).send(second.fetch_request([], max_wait_ms=60_000), 2)
    node.world.run(1000)
    assert not lost.reply.done and acquired(asked.response) == [(0, 0, 2, 1)]


# Acknowledging


def test_what_is_accepted_is_stored_and_never_comes_again(node: ShareNode) -> None:
    member = node.join()
    node.fill(10)
    member.fetch(node.place)
    said = {node.place: [(0, 4, [ACCEPT]), (5, 6, [REJECT]), (7, 7, [RELEASE]), (8, 9, [GAP, ACCEPT])]}
    assert codes(member.acknowledge(said)) == [(0, 0)]
    assert acquired(member.fetch()) == [(0, 7, 7, 2)]
    node.restart()
    again = node.member("m2")
    assert acquired(again.fetch(node.place)) == [(0, 7, 7, 2)], "a lock does not outlive its leader"
    assert acquired(again.fetch(max_wait_ms=100)) == []


def test_acknowledgements_come_with_a_fetch(node: ShareNode) -> None:
    member = node.join()
    node.fill(5, 5)
    member.fetch(node.place, max_records=5)
    answer = member.fetch(said={node.place: [(0, 4, [ACCEPT])]})
    assert acquired(answer) == [(0, 5, 9, 1)] and codes(answer) == [(0, 0, 0)]
    answer = member.fetch(said={node.place: [(0, 4, [ACCEPT]), (4, 12, [ACCEPT])]}, max_wait_ms=100)
    assert codes(answer) == [(0, 0, errors.INVALID_REQUEST)]
    assert node.shared().window.acquired == 5, "nothing of it was done"


def test_a_renewed_lock_lasts_from_then_on(node: ShareNode) -> None:
    member, other = node.join("m1"), node.member("m2")
    node.fill(2)
    member.fetch(node.place)
    node.world.run(20_000)
    assert codes(member.acknowledge({node.place: [(0, 0, [RENEW])]}, is_renew_ack=True)) == [(0, 0)]
    node.world.run(20_000)
    assert acquired(other.fetch(node.place)) == [(0, 1, 1, 2)]
    assert codes(member.acknowledge({node.place: [(0, 0, [ACCEPT])]})) == [(0, 0)]
    refused = member.acknowledge({node.place: [(1, 1, [ACCEPT])]})
    assert codes(refused) == [(0, errors.INVALID_RECORD_STATE)]


def test_a_lock_runs_out_and_who_waits_gets_the_record(node: ShareNode) -> None:
    member, other = node.join("m1"), node.member("m2")
    node.fill(2)
    member.fetch(node.place)
    other.fetch(node.place, **QUICK)
    asked = connection_of(other).send(other.fetch_request([], max_wait_ms=60_000), 2)
    node.world.run(29_000)
    assert not asked.reply.done
    node.world.run(2000)
    assert acquired(asked.response) == [(0, 0, 1, 2)]
    assert node.shared().timeouts_total == 2


def test_a_change_of_the_lock_duration_touches_new_locks_only(node: ShareNode) -> None:
    member, other = node.join("m1"), node.member("m2")
    node.fill(1)
    member.fetch(node.place)
    node.configure(share_record_lock_duration_ms="60000")
    node.world.run(30_000)
    answer = other.fetch(node.place)
    assert acquired(answer) == [(0, 0, 0, 2)] and answer.acquisition_lock_timeout_ms == 60_000
    node.world.run(40_000)
    assert acquired(member.fetch(**QUICK)) == []


def test_a_record_is_delivered_so_often(node: ShareNode) -> None:
    member = node.join()
    node.configure(share_delivery_count_limit="3")
    node.fill(1)
    found = [acquired(member.fetch(node.place))]
    for _ in range(3):
        member.acknowledge({node.place: [(0, 0, [RELEASE])]})
        found.append(acquired(member.fetch(max_wait_ms=100)))
    assert found == [[(0, 0, 0, 1)], [(0, 0, 0, 2)], [(0, 0, 0, 3)], []]
    assert node.shared().window.start_offset == 1


def test_one_bad_record_does_not_take_its_neighbours_along(node: ShareNode) -> None:
    """Five hundred in one batch; whoever gets record 123 dies with everything it holds (KAFKA-17541)."""
    member = node.join()
    node.fill(500)
    member.fetch(node.place, **QUICK)
    accepted: set[int] = set()
    for _ in range(600):
        found = acquired(member.fetch(max_wait_ms=40))
        if not found:
            break
        offsets = [offset for _, first, last, _ in found for offset in range(first, last + 1)]
        kind = RELEASE if 123 in offsets else ACCEPT
        member.acknowledge({node.place: [(first, last, [kind]) for _, first, last, _ in found]})
        accepted |= set(offsets) if kind == ACCEPT else set()
    assert accepted == set(range(500)) - {123}


def test_the_window_never_has_more_than_its_limit(node: ShareNode) -> None:
    """Though members release all the time (KAFKA-19555)."""
    node.configure(share_partition_max_record_locks="100")
    members = [node.join("m0"), *(node.member(f"m{number}") for number in range(1, 4))]
    node.fill(*[10] * 30)
    for turn in range(40):
        member = members[turn % 4]
        found = acquired(member.fetch(*([node.place] if turn < 4 else []), max_records=30, max_wait_ms=0))
        assert node.shared().window.size <= 110, "the last log batch comes whole"
        for _, first, last, _ in found[: turn % 2 + 1]:
            member.acknowledge({node.place: [(first, last, [RELEASE])]})


# How sessions end


@pytest.mark.parametrize("by_acknowledge", [False, True])
def test_the_last_request_gives_everything_back_that_it_does_not_acknowledge(
    node: ShareNode, by_acknowledge: bool
) -> None:
    """KAFKA-17396."""
    member, other = node.join("m1"), node.member("m2")
    node.fill(5)
    member.fetch(node.place)
    said = {node.place: [(0, 1, [ACCEPT])]}
    answer = member.acknowledge(said, epoch=-1) if by_acknowledge else member.fetch(said=said, epoch=-1)
    assert answer.error_code == 0 and acquired_or_none(answer) == []
    assert acquired(other.fetch(node.place)) == [(0, 2, 4, 2)]
    assert member.acknowledge({}, epoch=-1).error_code == errors.SHARE_SESSION_NOT_FOUND


def acquired_or_none(answer: Any) -> list[Any]:
    return [row for topic in answer.responses for row in topic.partitions if getattr(row, "acquired_records", None)]


def test_a_lost_connection_gives_everything_back_at_once(node: ShareNode) -> None:
    """KAFKA-19015."""
    member, other = node.join("m1"), node.member("m2")
    node.fill(5)
    member.fetch(node.place)
    other.fetch(node.place, **QUICK)
    asked = connection_of(other).send(other.fetch_request([], max_wait_ms=10_000), 2)
    connection_of(member).close()
    node.world.run(200)
    assert acquired(asked.response) == [(0, 0, 4, 2)]


def test_an_old_connection_does_not_end_a_newer_session(node: ShareNode) -> None:
    """KAFKA-19950."""
    old = node.join("m1")
    node.fill(5)
    old.fetch(node.place)
    new = node.member("m1")
    new.fetch(node.place, **QUICK)
    connection_of(old).close()
    node.world.run(200)
    assert codes(new.acknowledge({node.place: [(0, 4, [ACCEPT])]})) == [(0, 0)]


def test_a_connection_keeps_no_count_of_sessions_that_are_over(node: ShareNode) -> None:
    member = node.join()
    for _ in range(50):
        member.fetch(node.place, epoch=0, **QUICK)
    assert len(connection_of(member).context.on_closed or []) <= 2


def test_idle_sessions_stay(node: ShareNode) -> None:
    """KAFKA-19159."""
    member = node.join()
    member.fetch(node.place, **QUICK)
    node.world.run(120_000)
    assert member.fetch(**QUICK).error_code == 0


@pytest.mark.parametrize("orderly", [True, False])
def test_a_share_partition_is_forgotten_with_the_last_session(node: ShareNode, orderly: bool) -> None:
    """What is stored in the end counts; memory is not kept for groups that are gone."""
    member = node.join()
    node.fill(5)
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 1, [ACCEPT])]})
    if orderly:
        member.fetch(epoch=-1)
    connection_of(member).close()
    node.world.run(500)
    assert node.world.node.shares.found == {}
    other = node.member("m2")
    assert acquired(other.fetch(node.place)) == [(0, 2, 4, 2)]


def test_forgotten_partitions_stay_locked(node: ShareNode) -> None:
    """What a member holds there it can still acknowledge."""
    member, other = node.join("m1"), node.member("m2")
    node.fill(5)
    member.fetch(node.place)
    member.fetch(forget=[node.place], **QUICK)
    assert acquired(other.fetch(node.place, max_wait_ms=100)) == []
    assert codes(member.acknowledge({node.place: [(0, 4, [ACCEPT])]})) == [(0, 0)]


# Where a group begins


@pytest.mark.parametrize(
    ("reset", "expected"), [("earliest", 0), ("latest", 6), ("by_duration:PT20S", 3), ("by_duration:PT10M", 0)]
)
def test_where_a_group_begins(node: ShareNode, reset: str, expected: int) -> None:
    node.fill(3)
    node.world.run(30_000)
    node.fill(3)
    member = node.join(reset=reset)
    member.fetch(node.place, **QUICK)
    node.world.run(200)
    assert node.shared().window.start_offset == expected


def test_a_duration_without_records_cannot_be_answered(node: ShareNode) -> None:
    node.fill(3)
    node.world.run(30_000)
    member = node.join(reset="by_duration:PT20S")
    answer = member.fetch(node.place, max_wait_ms=1000)
    assert codes(answer) == [(0, errors.OFFSET_NOT_AVAILABLE, 0)]


def test_a_member_begins_where_offsets_were_altered_to(node: ShareNode) -> None:
    node.fill(10)
    member = node.join()
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 9, [ACCEPT])]})
    member.fetch(epoch=-1)
    for offset in (3, 7):
        member.leave()
        alter(node, offset)
        assert lag_of(node) == 10 - offset, "before anything is consumed (KAFKA-20034)"
        member = node.join(f"m{offset}")
        assert acquired(member.fetch(node.place)) == [(0, offset, 9, 1)]
        member.fetch(epoch=-1)


def alter(node: ShareNode, offset: int) -> None:
    rows = [AlterShareGroupOffsetsRequestTopic("s", [AlterShareGroupOffsetsRequestPartition(0, offset)])]
    answer = node.world.ask(AlterShareGroupOffsetsRequest(GROUP, rows), 0)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0), answer


def lag_of(node: ShareNode, partition: int = 0) -> int:
    topics = [DescribeShareGroupOffsetsRequestTopic("s", [partition])]
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(GROUP, topics)])
    return int(node.world.ask(request, 1).groups[0].topics[0].partitions[0].lag)


def test_the_offset_of_a_partition_that_does_not_exist_is_unknown_at_once(node: ShareNode) -> None:
    node.join()
    assert lag_of(node, 7) == -1


# What happens to the log


def test_the_log_start_moves_on(node: ShareNode) -> None:
    """Who asks then gets what is left, without another request."""
    member = node.join()
    node.fill(5, 5, 5)
    member.fetch(node.place, max_records=5)
    member.acknowledge({node.place: [(0, 4, [RELEASE])]})
    row = DeleteRecordsTopic("s", [DeleteRecordsPartition(0, 10)])
    node.world.ask(DeleteRecordsRequest([row], 1000), 2)
    assert acquired(member.fetch(max_wait_ms=60_000)) == [(0, 10, 14, 1)]
    assert codes(member.acknowledge({node.place: [(10, 14, [ACCEPT])]})) == [(0, 0)]


def test_the_log_start_moves_past_what_is_held(node: ShareNode) -> None:
    member = node.join()
    node.fill(5, 5)
    member.fetch(node.place)
    row = DeleteRecordsTopic("s", [DeleteRecordsPartition(0, 5)])
    node.world.ask(DeleteRecordsRequest([row], 1000), 2)
    node.fill(1)
    assert acquired(member.fetch()) == [(0, 10, 10, 1)]
    assert codes(member.acknowledge({node.place: [(0, 10, [ACCEPT])]})) == [(0, 0)]
    assert node.shared().window.start_offset == 11


def test_records_of_aborted_transactions_are_for_nobody() -> None:
    """Several producers at once, one of them first aborts and then commits (KAFKA-16729)."""
    node = ShareNode()
    node.configure(share_isolation_level="read_committed")
    member = node.join()
    first, second = Producer(node.world, "a"), Producer(node.world, "b")
    for producer in (first, second):
        producer.init_until_done()
    first.produce(0, b"a0", topic="s")
    second.produce(0, b"b0", topic="s")
    first.produce(0, b"a1", topic="s")
    assert acquired(member.fetch(node.place, max_wait_ms=100)) == [], "nothing is stable yet"
    assert first.end(False) == 0
    node.world.run(100)
    assert second.end(True) == 0
    node.world.run(100)
    first.init_until_done()
    first.produce(0, b"a2", topic="s")
    first.end(True)
    node.world.run(200)
    offsets: set[int] = set()
    for _ in range(6):
        found = acquired(member.fetch(max_wait_ms=100))
        offsets |= {offset for _, low, high, _ in found for offset in range(low, high + 1)}
    assert 0 not in offsets and 2 not in offsets, "aborted"
    assert {1, 5} <= offsets
    member.acknowledge({node.place: [(low, low, [ACCEPT]) for low in sorted(offsets)]})
    assert node.shared().window.start_offset == 7


def test_without_isolation_aborted_records_are_delivered() -> None:
    node = ShareNode()
    member = node.join()
    producer = Producer(node.world, "a")
    producer.init_until_done()
    producer.produce(0, b"a0", topic="s")
    assert acquired(member.fetch(node.place)) == [(0, 0, 0, 1)]


def test_a_state_without_anything_to_deliver_does_not_block(node: ShareNode) -> None:
    """Everything that is stored is done with, and the window is full (KAFKA-17210)."""
    node.configure(share_partition_max_record_locks="100")
    member = node.join()
    node.fill(100, 5)
    member.fetch(node.place)
    member.acknowledge({node.place: [(1, 99, [ACCEPT])]})
    member.acknowledge({node.place: [(0, 0, [ACCEPT])]})
    node.restart()
    assert acquired(node.member("m2").fetch(node.place)) == [(0, 100, 104, 1)]


def test_what_a_stored_state_does_not_mention_is_delivered(node: ShareNode) -> None:
    """KAFKA-18494."""
    member = node.join()
    node.fill(10, 10)
    member.fetch(node.place)
    member.acknowledge({node.place: [(5, 9, [ACCEPT]), (12, 14, [ACCEPT])]})
    node.restart()
    again = node.member("m2")
    found = [*acquired(again.fetch(node.place)), *acquired(again.fetch(max_wait_ms=100))]
    assert sorted((first, last) for _, first, last, _ in found) == [(0, 4), (10, 11), (15, 19)]
    again.acknowledge({node.place: [(first, last, [ACCEPT]) for first, last in [(0, 4), (10, 11), (15, 19)]]})
    assert node.shared().window.start_offset == 20


# What happens to topic, group and feature


def test_a_deleted_topic_ends_fetches_and_acknowledgements(node: ShareNode) -> None:
    """KAFKA-19084."""
    member = node.join()
    node.fill(5)
    member.fetch(node.place)
    asked = connection_of(member).send(member.fetch_request([], max_wait_ms=60_000), 2)
    assert node.world.delete("s") == 0
    node.world.run(200)
    assert codes(asked.response)[0][1] != 0
    member.session += 1
    answer = member.acknowledge({node.place: [(0, 4, [ACCEPT])]})
    assert codes(answer) == [(0, errors.UNKNOWN_TOPIC_ID)]
    assert member.acknowledge({}, epoch=-1).error_code == 0
    assert member.leave().error_code == 0
    assert [row.error_code for row in node.world.ask(DeleteGroupsRequest([GROUP]), 2).results] == [0]


def test_a_deleted_group_leaves_nothing_behind(node: ShareNode) -> None:
    member = node.join()
    node.fill(5)
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 2, [ACCEPT])]})
    codes_of = lambda: [row.error_code for row in node.world.ask(DeleteGroupsRequest([GROUP]), 2).results]  # noqa: E731
    assert codes_of() == [errors.NON_EMPTY_GROUP]
    member.fetch(epoch=-1)
    member.leave()
    assert codes_of() == [0]
    assert codes_of() == [errors.GROUP_ID_NOT_FOUND]
    again = node.join("m2")
    assert acquired(again.fetch(node.place)) == [(0, 0, 4, 1)]


def test_a_group_id_may_have_colons(node: ShareNode) -> None:
    member = node.join(group="a:b:c")
    node.fill(2)
    assert acquired(member.fetch(node.place)) == [(0, 0, 1, 1)]
    assert codes(member.acknowledge({node.place: [(0, 1, [ACCEPT])]})) == [(0, 0)]


def test_the_feature_can_be_switched_off_and_on(node: ShareNode) -> None:
    """Sessions and locks go; what was stored stays."""
    member = node.join()
    node.fill(5)
    member.fetch(node.place)
    member.acknowledge({node.place: [(0, 1, [ACCEPT])]})
    set_level(node, 0)
    assert member.fetch().error_code == errors.UNSUPPORTED_VERSION
    assert member.acknowledge({}).error_code == errors.UNSUPPORTED_VERSION
    assert member.beat().error_code == errors.UNSUPPORTED_VERSION
    described = node.world.ask(ShareGroupDescribeRequest([GROUP]), 1).groups[0]
    assert described.error_code == errors.UNSUPPORTED_VERSION
    assert node.world.node.shares.found == {} and node.world.node.shares.sessions.sessions == {}
    set_level(node, 1)
    assert acquired(member.fetch(node.place, epoch=0)) == [(0, 2, 4, 1)]


def set_level(node: ShareNode, level: int) -> None:
    kind = 1 if level else 3
    request = UpdateFeaturesRequest(1000, [FeatureUpdateKey("share.version", level, upgrade_type=kind)])
    answer = node.world.ask(request, 1)
    assert answer.error_code == 0, answer
    node.world.run(200)


def test_settings_of_the_group_hold_from_the_next_use_on(node: ShareNode) -> None:
    member = node.join()
    node.fill(40, 40, 40, 40)
    node.configure(share_partition_max_record_locks="100")
    member.fetch(node.place, max_records=500)
    before = node.shared().window.size
    assert before < 160
    assert acquired(member.fetch(**QUICK)) == []
    node.configure(share_partition_max_record_locks=None)
    assert acquired(member.fetch())[0][1] == before


def test_partitions_that_come_later_are_read_from_their_beginning(node: ShareNode) -> None:
    """KAFKA-20742."""
    member = node.join(reset="latest")
    request = CreatePartitionsRequest([CreatePartitionsTopic("s", 3, None)], 1000)
    assert node.world.ask(request, 3).results[0].error_code == 0
    node.fill(4, partition=2)
    for _ in range(5):
        member.beat()
        node.world.run(1100)
    assert acquired(member.fetch((node.topic_id, 2))) == [(2, 0, 3, 1)]


# The topic of the states


def test_the_state_topic_stays_short_and_a_restart_knows_everything() -> None:
    """Also with a group that does nothing any more (KAFKA-18058, KAFKA-18170)."""
    node = ShareNode(
        share_coordinator_state_topic_prune_interval_ms="5000",
        share_coordinator_cold_partition_snapshot_interval_ms="10000",
        share_coordinator_snapshot_update_records_per_snapshot="10",
    )
    node.fill(*[1] * 60)
    idle, busy = node.join("m1", "idle"), node.join("m2", "busy")
    idle.fetch(node.place, max_records=1)
    idle.acknowledge({node.place: [(0, 0, [ACCEPT])]})
    busy.fetch(node.place)
    for offset in range(50):
        assert codes(busy.acknowledge({node.place: [(offset, offset, [ACCEPT])]})) == [(0, 0)]
        node.world.run(400)
    begins = node.world.node.coordinators.shares.pruned_to
    assert sum(begins.values()) > 20, begins
    node.restart()
    assert acquired(node.member("m3", "busy").fetch(node.place, max_records=1)) == [(0, 50, 50, 1)]
    assert acquired(node.member("m4", "idle").fetch(node.place, max_records=1))[0][1] == 1


def test_a_deleted_state_ends_the_share_partition(node: ShareNode) -> None:
    """The member has left the group but not the leader, and the group is deleted."""
    member = node.join()
    node.fill(5)
    member.fetch(node.place)
    member.leave()
    assert [row.error_code for row in node.world.ask(DeleteGroupsRequest([GROUP]), 2).results] == [0]
    answer = member.acknowledge({node.place: [(0, 1, [ACCEPT])]})
    assert codes(answer)[0][1] != 0
    assert node.world.node.shares.found == {}


def test_what_a_member_cannot_have_is_not_read(node: ShareNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much waits behind it: the whole log for each fetch makes every record cost more than the one before."""
    batches, size = 40, 20
    node.fill(*([size] * batches), value=bytes(5000))
    member = node.join()
    read: list[int] = []
    plain = SimFile.read

    def counted(file: SimFile, position: int, wanted: int) -> bytes:
        data = plain(file, position, wanted)
        if file.path.endswith(".log") and "/s-0/" in file.path:
            read.append(len(data))
        return data

    monkeypatch.setattr(SimFile, "read", counted)
    taken = []
    answer = member.fetch(node.place, max_records=size, max_bytes=50 << 20, **QUICK)
    for _ in range(batches // 2):
        held = acquired(answer)
        taken += held
        said = {node.place: [(first, last, [ACCEPT]) for _, first, last, _ in held]}
        answer = member.fetch(said=said, max_records=size, max_bytes=50 << 20, **QUICK)
    assert len(taken) >= batches // 2 - 1, "each fetch but the one that had the state loaded brought a batch"
    assert sum(read) < 3 * batches * size * 5000, "about what was taken, not all that is behind it each time"
