"""Moldau and Apache Kafka treat the members of share groups alike, and list, describe, change and delete the groups."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.uuids import uuid_to_text
from tests.interop.conftest import Same
from tests.interop.group_offsets import commit, fetch, find_coordinator, new_group, stored_records
from tests.interop.peers import Peer
from tests.interop.share_groups import SHARE_KEY, WAIT_MS, configure, fill, find_share_coordinator, join, ready
from tests.interop.wire import plain
from tests.pace import patience_ms, wait_until
from tests.unit.share.member import Member

ACCEPT = 1
HIDDEN = {"topic_id", "metadata_hash", "assignment_timestamp"}


@pytest.fixture
def group() -> str:
    return new_group()


# Heartbeats


def test_heartbeats_that_make_no_sense(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        find_coordinator(peer, group)
        requests = [
            ShareGroupHeartbeatRequest(group, "", 0, None, [topic]),
            ShareGroupHeartbeatRequest(group, "x" * 37, 0, None, [topic]),
            ShareGroupHeartbeatRequest("", "m", 0, None, [topic]),
            ShareGroupHeartbeatRequest("  ", "m", 0, None, [topic]),
            ShareGroupHeartbeatRequest(group, "m", 0, "", [topic]),
            ShareGroupHeartbeatRequest(group, "m", 0, " ", [topic]),
            ShareGroupHeartbeatRequest(group, "m", 0, None, []),
            ShareGroupHeartbeatRequest(group, "m", 0, None, None),
            ShareGroupHeartbeatRequest(group, "m", -2, None, [topic]),
            ShareGroupHeartbeatRequest(group, "m", 1, None, [topic]),
            ShareGroupHeartbeatRequest(group, "m", -1, None, None),
        ]
        return [plain(peer.ask(request, 1), {"error_message"}) for request in requests]

    same(scenario)


def test_a_member_joins_beats_and_leaves(same: Same, group: str, topic: str) -> None:
    """Epochs that are too small, too large, of a lost answer; assignments are told when they are asked for."""

    def scenario(peer: Peer) -> Any:
        member, _ = ready(peer, group, topic, 2)
        epoch = member.epoch
        seen: list[Any] = [epoch]
        for used in (epoch, epoch - 1, epoch + 1, epoch - 2, epoch):
            seen.append(plain(member.beat(epoch=used), HIDDEN))
        seen.append(plain(member.beat(topic), HIDDEN))
        seen.append(plain(member.beat(topic, epoch=0), HIDDEN))
        seen.append(plain(member.beat("missing", topic), HIDDEN))
        stranger = Member(peer.ask, group, "stranger")
        seen.append(plain(stranger.beat(epoch=epoch)))
        seen.append(plain(stranger.leave()))
        seen.append(plain(member.leave()))
        seen.append(plain(member.leave()))
        seen.append(plain(member.beat(epoch=epoch)))
        return seen

    same(scenario)


def test_who_is_first_gets_nothing_at_first(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        find_coordinator(peer, group)
        find_share_coordinator(peer, group, peer.topic_id(topic))
        member = Member(peer.ask, group)
        seen = [plain(member.beat(topic), HIDDEN)]
        told = plain(join(member, topic, 2), HIDDEN)
        return seen, told

    same(scenario)


def test_partitions_are_shared_evenly(same: Same, group: str, topic: str) -> None:
    """How many partitions each has is the same; which ones is not."""

    def scenario(peer: Peer) -> Any:
        member, _ = ready(peer, group, topic, 3)
        members = [member]
        seen = []
        for number in range(2, 6):
            members.append(Member(peer.ask, group, f"m{number}"))
            members[-1].beat(topic)
            wait_until(lambda: settled(peer, group, members))
            seen.append(counts(peer, group))
        for _ in range(3):
            members.pop(0).leave()
            wait_until(lambda: settled(peer, group, members))
            seen.append(counts(peer, group))
        return seen

    same(scenario)


def settled(peer: Peer, group: str, members: list[Member]) -> bool:
    for member in members:
        member.beat()
    described = peer.ask(ShareGroupDescribeRequest([group]), 1).groups[0]
    epochs = {row.member_epoch for row in described.members}
    return described.group_epoch == described.assignment_epoch and epochs == {described.group_epoch}


def counts(peer: Peer, group: str) -> tuple[int, list[int], list[int]]:
    """The epoch; how many partitions members have; how many members partitions have."""
    described = peer.ask(ShareGroupDescribeRequest([group]), 1).groups[0]
    of_members = [sum(len(t.partitions) for t in row.assignment.topic_partitions) for row in described.members]
    given = [p for row in described.members for t in row.assignment.topic_partitions for p in t.partitions]
    return described.group_epoch, sorted(of_members), sorted(given.count(index) for index in set(given))


def test_the_records_of_a_group_are_the_same(same: Same, group: str, topic: str) -> None:
    """But for topic ids, the hash that depends on them, and times."""

    def scenario(peer: Peer) -> Any:
        member, _ = ready(peer, group, topic, 2)
        member.leave()
        wait_until(lambda: type(stored_records(peer, group)[-1][0]).__name__ != "ShareGroupMemberMetadataKey")
        found = [(plain(key), plain(value, HIDDEN), batch) for key, value, batch in stored_records(peer, group)]
        # Since 4.3.1 an empty group also gets the epoch of its assignment (KAFKA-20442).
        return found[: next(i for i, row in enumerate(found) if row[1] is None) + 3]

    same(scenario)


# Describing, listing, deleting


@pytest.mark.parametrize("operations", [False, True])
def test_groups_are_described(same: Same, group: str, topic: str, operations: bool) -> None:
    simple, empty = new_group(), new_group()

    def scenario(peer: Peer) -> Any:
        ready(peer, group, topic, 2)
        find_coordinator(peer, simple)
        find_coordinator(peer, empty)
        commit(peer, simple, {topic: [(0, 1, -1, "")]})
        other = Member(peer.ask, empty)
        other.beat(topic)
        other.leave()
        request = ShareGroupDescribeRequest([group, "nowhere", simple, "", group, empty], operations)
        answer = plain(peer.ask(request, 1), {"topic_id", "assignment_epoch"})
        return sorted(answer["groups"], key=str)

    same(scenario)


def test_groups_are_listed_by_type_and_state(same: Same, topic: str) -> None:
    group, empty, simple = new_group(), new_group(), new_group()
    names = {group, empty, simple}

    def scenario(peer: Peer) -> Any:
        ready(peer, group, topic)
        for other in (empty, simple):
            find_coordinator(peer, other)
        commit(peer, simple, {topic: [(0, 1, -1, "")]})
        member = Member(peer.ask, empty)
        member.beat(topic)
        member.leave()
        seen = []
        for version in (3, 4, 5):
            filters: list[dict[str, Any]] = [{}]
            if version >= 4:
                filters += [{"states_filter": [state]} for state in ("Stable", "stable", "Empty", "Dead")]
            if version >= 5:
                filters += [{"types_filter": [kind]} for kind in ("share", "Share", "classic", "consumer", "what")]
                filters += [{"types_filter": ["share"], "states_filter": ["Empty"]}]
            for one in filters:
                answer = plain(peer.ask(ListGroupsRequest(**one), version))
                rows = sorted((row for row in answer["groups"] if row["group_id"] in names), key=str)
                seen.append((version, one, answer["error_code"], rows))
        return seen

    same(scenario)


def test_groups_are_deleted(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 2)
        fill(peer, topic, 4)
        member.fetch((topic_id, 0))
        member.acknowledge({(topic_id, 0): [(0, 1, [ACCEPT])]})
        seen = [plain(peer.ask(DeleteGroupsRequest([name]), 2)) for name in (group, "nowhere")]
        member.fetch(epoch=-1)
        member.leave()
        seen.append(plain(peer.ask(DeleteGroupsRequest([group]), 2)))
        seen.append(plain(peer.ask(DeleteGroupsRequest([group]), 2)))
        seen.append(plain(peer.ask(ShareGroupDescribeRequest([group]), 1)))
        return seen

    same(scenario)


# Groups of other kinds


def test_a_group_is_of_one_kind(same: Same, group: str, topic: str) -> None:
    """Consumers do not get into share groups, even empty ones; nor the other way round."""
    simple, modern = new_group(), new_group()

    def scenario(peer: Peer) -> Any:
        member, _ = ready(peer, group, topic)
        find_coordinator(peer, simple)
        find_coordinator(peer, modern)
        seen = []
        for _ in range(2):
            classic = JoinGroupRequest(
                group, 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]
            )
            seen.append(peer.ask(classic, 9).error_code)
            consumer = ConsumerGroupHeartbeatRequest(
                group, "c", 0, rebalance_timeout_ms=10_000, subscribed_topic_names=[topic], topic_partitions=[]
            )
            seen.append(plain(peer.ask(consumer, 1)))
            seen.append(plain(commit(peer, group, {topic: [(0, 1, -1, "")]})))
            seen.append(plain(fetch(peer, group, {topic: [0]})))
            seen.append(plain(peer.ask(DescribeGroupsRequest([group]), 6)))
            if member.epoch:
                member.leave()
        commit(peer, simple, {topic: [(0, 1, -1, "")]})
        modern_join = ConsumerGroupHeartbeatRequest(
            modern, "c", 0, rebalance_timeout_ms=10_000, subscribed_topic_names=[topic], topic_partitions=[]
        )
        peer.ask(modern_join, 1)
        for other in (simple, modern):
            seen.append(plain(Member(peer.ask, other).beat(topic)))
            seen.append(plain(Member(peer.ask, other).leave()))
        return seen

    same(scenario)


# Offsets


def describe_offsets(peer: Peer, group: str, topics: dict[str, list[int]] | None, version: int = 1) -> Any:
    rows = None
    if topics is not None:
        rows = [DescribeShareGroupOffsetsRequestTopic(name, indexes) for name, indexes in topics.items()]
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, rows)])
    answer = plain(peer.ask(request, version))
    for found in answer["groups"]:
        for row in found["topics"]:
            row["partitions"].sort(key=lambda one: one["partition_index"])
        found["topics"].sort(key=lambda one: one["topic_name"])
    return answer


@pytest.mark.parametrize("version", [0, 1])
def test_offsets_are_described(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 2)
        fill(peer, topic, 10)
        seen = [describe_offsets(peer, group, None, version)]
        member.fetch((topic_id, 0))
        seen.append(describe_offsets(peer, group, {topic: [0]}, version))
        member.acknowledge({(topic_id, 0): [(0, 2, [ACCEPT]), (5, 6, [ACCEPT])]})
        seen.append(describe_offsets(peer, group, None, version))
        seen.append(describe_offsets(peer, group, {topic: [1, 0], "missing": [0, 1]}, version))
        seen.append(describe_offsets(peer, group, {}, version))
        seen.append(describe_offsets(peer, f"{group}-unknown", {topic: [0]}, version))
        seen.append(describe_offsets(peer, f"{group}-unknown", None, version))
        return seen

    same(scenario)


def alter(peer: Peer, group: str, topics: dict[str, dict[int, int]]) -> Any:
    rows = [
        AlterShareGroupOffsetsRequestTopic(
            name, [AlterShareGroupOffsetsRequestPartition(index, offset) for index, offset in offsets.items()]
        )
        for name, offsets in topics.items()
    ]
    answer = plain(peer.ask(AlterShareGroupOffsetsRequest(group, rows), 0))
    for row in answer["responses"]:
        row["partitions"].sort(key=lambda one: one["partition_index"])
    answer["responses"].sort(key=lambda one: str(one["topic_name"]))
    return answer


def test_offsets_are_altered(same: Same, group: str, topic: str) -> None:
    """Of an empty group, of one that does not exist; the next member begins there."""
    fresh = new_group()

    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 2)
        find_coordinator(peer, fresh)
        fill(peer, topic, 5, 5)
        place = (topic_id, 0)
        member.fetch(place)
        member.acknowledge({place: [(0, 3, [ACCEPT])]})
        seen = [alter(peer, group, {topic: {0: 7}})]
        member.fetch(epoch=-1)
        member.leave()
        seen.append(alter(peer, group, {topic: {0: 7, 5: 1}, "missing": {0: 1}}))
        seen.append(describe_offsets(peer, group, None))
        seen.append(alter(peer, fresh, {topic: {0: 5, 1: 0}}))
        seen.append(describe_offsets(peer, fresh, None))
        seen.append(alter(peer, fresh, {}))
        seen.append(plain(peer.ask(ShareGroupDescribeRequest([fresh]), 1)))
        return seen

    same(scenario)


def test_a_member_begins_where_offsets_were_altered_to(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        seen = []
        ready(peer, group, topic)[0].leave()
        fill(peer, topic, 5, 5)
        topic_id = peer.topic_id(topic)
        for offset in (2, 8, 0):
            with peer.connect() as wire:
                member = Member(wire.ask, group)
                member.wait_ms = WAIT_MS
                join(member, topic, 1)
                found = plain(member.fetch((topic_id, 0)))
                seen.append(found["responses"][0]["partitions"][0]["acquired_records"])
                member.acknowledge({(topic_id, 0): [(seen[-1][0]["first_offset"], 9, [ACCEPT])]})
                member.fetch(epoch=-1)
                member.leave()
            time.sleep(0.5)
            seen.append(alter(peer, group, {topic: {0: offset}}))
        return seen

    same(scenario)


def test_offsets_are_deleted(same: Same, group: str, topic: str) -> None:
    def delete(peer: Peer, name: str, *topics: str) -> Any:
        rows = [DeleteShareGroupOffsetsRequestTopic(one) for one in topics]
        answer = plain(peer.ask(DeleteShareGroupOffsetsRequest(name, rows), 0))
        answer["responses"].sort(key=lambda row: str(row["topic_name"]))
        return answer

    def scenario(peer: Peer) -> Any:
        member, _ = ready(peer, group, topic, 2)
        peer.create(f"{topic}-other")
        seen = [delete(peer, group, topic)]
        member.leave()
        seen.append(delete(peer, group, topic, f"{topic}-other", "missing"))
        seen.append(describe_offsets(peer, group, None))
        seen.append(delete(peer, group, topic))
        seen.append(delete(peer, f"{group}-unknown", topic))
        seen.append(delete(peer, group))
        return seen

    same(scenario)


def test_a_deleted_topic_leaves_the_group(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        member, topic_id = ready(peer, group, topic, 2)
        fill(peer, topic, 5)
        place = (topic_id, 0)
        member.fetch(place)
        peer.ask(DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=patience_ms(10_000)), 6)
        wait_until(lambda: peer.metadata(topic).error_code != 0)
        time.sleep(0.5)
        seen = [plain(member.acknowledge({place: [(0, 4, [ACCEPT])]}), {"error_message"})]
        seen.append(describe_offsets(peer, group, None))
        wait_until(lambda: member.beat().assignment is not None)
        described = plain(peer.ask(ShareGroupDescribeRequest([group]), 1), {"group_epoch", "assignment_epoch"})
        seen.append([row["assignment"] for row in described["groups"][0]["members"]])
        member.leave()
        seen.append(plain(peer.ask(DeleteGroupsRequest([group]), 2)))
        return seen

    same(scenario)


# Settings


def test_settings_of_a_group(same: Same, group: str) -> None:
    values = [
        ("share_session_timeout_ms", ["45000", "60000", "44999", "60001", "x"]),
        ("share_heartbeat_interval_ms", ["5000", "15000", "4999", "15001"]),
        ("share_record_lock_duration_ms", ["15000", "60000", "14999", "60001", "500"]),
        ("share_delivery_count_limit", ["2", "10", "1", "11"]),
        ("share_partition_max_record_locks", ["100", "4000", "99", "4001"]),
        ("share_assignment_interval_ms", ["0", "15000", "15001", "-1"]),
        ("share_auto_offset_reset", ["earliest", "latest", "by_duration:PT1H", "by_duration:-PT1H", "none", ""]),
        ("share_isolation_level", ["read_committed", "read_uncommitted", "READ_COMMITTED", "x"]),
        ("share_renew_acknowledge_enable", ["true", "false", "x"]),
    ]

    def scenario(peer: Peer) -> Any:
        return [(key, value, configure(peer, group, **{key: value})) for key, found in values for value in found]

    same(scenario)


# FindCoordinator


@pytest.mark.parametrize("version", [5, 6])
def test_share_coordinators_are_found_by_well_formed_keys(same: Same, group: str, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        topic_id = peer.topic_id(topic)
        find_share_coordinator(peer, group, topic_id)
        name = uuid_to_text(topic_id)
        keys = [
            f"{group}:{name}:0",
            f"{group}:with:colons:{name}:3",
            f"{group}:{name}:9999",
            f"{group}:{name}:-1",
            f"{group}:{name}:x",
            f"{group}:{name}:",
            f"{group}:{name}",
            f":{name}:0",
            f" :{name}:0",
            f"{group}:not-an-id:0",
            f"{group}::0",
            f"{name}:0",
            "x",
            "",
            "::",
        ]
        seen = []
        for key in keys:
            row = peer.ask(FindCoordinatorRequest(key_type=SHARE_KEY, coordinator_keys=[key]), version).coordinators[0]
            assert row.port == (peer.node.port if row.error_code == errors.NONE else -1)
            seen.append((row.key.replace(name, "<id>"), row.error_code, row.node_id, row.error_message is None))
        return seen

    same(scenario)
