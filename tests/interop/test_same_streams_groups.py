"""Moldau and Apache Kafka treat the members of streams groups alike: answers, statuses, records, commits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from moldau.protocol.messages.streams_group_heartbeat_request import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tests.interop.conftest import Same
from tests.interop.group_offsets import commit, fetch, find_coordinator, new_group, stored_records
from tests.interop.peers import Peer
from tests.interop.share_groups import configure
from tests.interop.wire import plain
from tests.pace import wait_until
from tests.unit.coordinator.streams_world import StreamsThread, make_topology

HIDDEN = {"topic_id", "metadata_hash", "assignment_timestamp"}
MISSING_INTERNAL_TOPICS = 3


@pytest.fixture
def group() -> str:
    return new_group()


def prepare(peer: Peer, group: str, **topics: int) -> None:
    """Without the delays that make answers depend on time."""
    for name, partitions in topics.items():
        peer.create(name, partitions)
    find_coordinator(peer, group)
    alter(peer, group, streams_initial_rebalance_delay_ms="0", streams_assignment_interval_ms="0")


def alter(peer: Peer, group: str, **values: str) -> None:
    assert configure(peer, group, **values) == [0]
    time.sleep(0.5)  # the coordinator hears of it a moment later


def thread(peer: Peer, group: str, name: str = "a", process: str | None = None) -> StreamsThread:
    return StreamsThread(lambda request: peer.ask(request, 0), name, process, group)


def told(answer: Any) -> Any:
    """Statuses tell why, in the same words; names of topics are in the order of Kafka's hash tables there."""
    for status in answer.status or []:
        before, colon, names = status.status_detail.partition("are missing: ")
        status.status_detail = before + colon + ", ".join(sorted(names.split(", ")))
    return plain(answer, HIDDEN)


def records(peer: Peer, group: str) -> Any:
    found = []
    for key, value, fields in stored_records(peer, group):
        if "Streams" in type(key).__name__:
            shown = None if value is None else plain(value, HIDDEN)
            found.append((plain(key), shown, fields["version"]))
    return found


def test_heartbeats_that_make_no_sense(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 1})
        good: dict[str, Any] = {
            "group_id": group,
            "member_id": "m",
            "rebalance_timeout_ms": 1000,
            "topology": make_topology(f"0:{topic}"),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": "p",
        }
        regex = Topology(0, [Subtopology("0", [topic], ["a.*"])])
        changelog = Topology(0, [Subtopology("0", [topic], [], [TopicInfo("s", 2)])])
        wrong: list[dict[str, Any]] = [
            {"instance_id": "i"},
            {"task_offsets": [TaskOffset("0", 0, 1)]},
            {"task_end_offsets": []},
            {"topology": regex},
            {"member_id": " "},
            {"group_id": ""},
            {"rack_id": ""},
            {"rebalance_timeout_ms": -1},
            {"topology": None},
            {"active_tasks": None},
            {"active_tasks": None, "standby_tasks": None, "warmup_tasks": None},
            {"topology": changelog},
            {"topology": Topology(0, [Subtopology("0", ["__consumer_offsets"])])},
            {"topology": Topology(0, [Subtopology("0", ["no good"])])},
            {"topology": make_topology("0:*r")},
            {"topology": make_topology("0:*r>t;1:*t>r")},
            {"member_epoch": 1},
            {"member_epoch": 1, "topology": None},
            {"member_epoch": -1, "topology": None},
            {"member_epoch": -2, "topology": None},
            {"member_epoch": -3, "topology": None},
        ]
        seen = []
        for fields in wrong:
            answer = peer.ask(StreamsGroupHeartbeatRequest(**{**good, **fields}), 0)
            seen.append((fields.keys(), plain(answer, {"error_message"}), answer.error_message))
        return seen

    same(scenario)


def test_members_join_share_and_leave(same: Same, group: str, topic: str) -> None:
    """Answers and records of two members, one after the other."""

    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 4})
        one, two = thread(peer, group), thread(peer, group, "b")
        topology = f"0:{topic}"
        seen = [told(one.join(topology)), told(one.beat()), told(one.acknowledge()), told(two.join(topology))]
        seen += [told(one.beat()), told(two.beat()), told(one.beat()), told(one.acknowledge()), told(two.beat())]
        seen += [told(two.acknowledge()), described(peer, group)]
        seen += [told(two.leave()), told(one.beat()), told(one.acknowledge()), told(one.leave())]
        return seen, described(peer, group), records(peer, group)

    same(scenario)


def described(peer: Peer, *groups: str) -> Any:
    answer = peer.ask(StreamsGroupDescribeRequest(list(groups)), 0)
    for group in answer.groups:
        group.members.sort(key=lambda member: member.member_id)
    return plain(answer, {"client_host"})


def test_epochs(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 2})
        one, two = thread(peer, group), thread(peer, group, "b")
        one.join(f"0:{topic}")
        one.acknowledge()
        two.join(f"0:{topic}")
        one.beat()
        one.acknowledge()
        seen = []
        for epoch, owned in ((9, None), (1, None), (2, None), (2, {"0": [0]}), (2, {"0": [0, 1]}), (3, {"0": [0]})):
            one.tasks["active"] = owned or {}
            fields = {} if owned is None else one.owned()
            answer = peer.ask(StreamsGroupHeartbeatRequest(group, "a", epoch, -1, **fields), 0)
            seen.append((epoch, plain(answer, {"error_message", *HIDDEN}), answer.error_message))
        for request in (
            StreamsGroupHeartbeatRequest(group, "z", 3, -1),
            StreamsGroupHeartbeatRequest(group, "z", -1, -1),
        ):
            answer = peer.ask(request, 0)
            seen.append((0, plain(answer, {"error_message"}), answer.error_message))
        one.tasks["active"] = {}
        seen.append((0, told(one.join(f"0:{topic}")), None))
        return seen

    same(scenario)


def test_topics_that_are_missing_and_created(same: Same, group: str, topic: str) -> None:
    """Internal topics come with the partitions that were decided, and the configs of the topology."""

    def scenario(peer: Peer) -> Any:
        prepare(peer, group)
        store, repartition = f"{topic}-store", f"{topic}-rep"
        configs = [KeyValue("cleanup.policy", "compact"), KeyValue("retention.ms", "1000")]
        topology = Topology(
            0,
            [
                Subtopology("0", [topic], [], [], [repartition]),
                Subtopology("1", [], [], [TopicInfo(store, 0, 1, configs)], [], [TopicInfo(repartition)]),
            ],
        )
        one = thread(peer, group)
        seen = [told(one.join(topology=topology)), told(one.beat()), described(peer, group)]
        peer.create(topic, 3)
        seen.append(wait_until(lambda: status_of(one.beat(), MISSING_INTERNAL_TOPICS)))
        wait_until(lambda: bool(one.beat().status == []))
        counts = [partitions_of(peer, name) for name in (topic, store, repartition)]
        return seen, counts, one.tasks, described(peer, group)["groups"][0]["topology"]

    same(scenario)


def partitions_of(peer: Peer, topic: str) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return len(peer.ask(request, 12).topics[0].partitions)


def status_of(answer: Any, code: int) -> str:
    """The detail of a status; empty if it is not there."""
    found = [one["status_detail"] for one in told(answer)["status"] or [] if one["status_code"] == code]
    return str(found[0]) if found else ""


@pytest.mark.parametrize(
    "text",
    [
        "0:{t}2,{t}3={t}2,{t}3",
        "0:{t}3>{t}r;1:{t}2*{t}r/4={t}2,{t}r",
        "0:{t}2>{t}r;1:{t}3*{t}r={t}3,{t}r",
        "0:{t}2>{t}p;1:{t}3>{t}q;2:*{t}p,{t}q={t}p,{t}q",
        "0:{t}2>{t}p,{t}q;1:*{t}p/5,{t}q={t}p,{t}q",
        "0:{t}2>{t}p,{t}x,{t}y;1:*{t}p/5={t}p;2:*{t}x,{t}y={t}x,{t}y",
        "0:{t}2+{t}3",
        "0:{t}2,{t}3>{t}r;1:*{t}r>{t}s;2:*{t}s+{t}c",
        "0:{t}x,{t}y,{t}z,{t}w,{t}2",
    ],
)
def test_what_is_said_of_topologies(same: Same, group: str, topic: str, text: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{f"{topic}2": 2, f"{topic}3": 3})
        one = thread(peer, group)
        seen = told(one.join(text.format(t=topic)))
        wait_until(lambda: not status_of(one.beat(), MISSING_INTERNAL_TOPICS))
        return seen, described(peer, group)["groups"][0]["topology"]

    same(scenario)


def test_topologies_do_not_change(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 1, f"{topic}2": 1})
        seen = []
        for name, text, epoch in (
            ("a", f"0:{topic}", 2),
            ("b", f"0:{topic}2", 1),
            ("c", f"0:{topic}2", 2),
            ("d", f"0:{topic}", 3),
            ("e", f"0:{topic}", 2),
        ):
            answer = thread(peer, group, name).join(text, topology_epoch=epoch)
            seen.append((told(answer), answer.error_message))
        return seen

    same(scenario)


def test_standby_tasks(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 1, f"{topic}-store": 1})
        alter(peer, group, streams_num_standby_replicas="1")
        topology = f"0:{topic}+{topic}-store"
        one, two = thread(peer, group), thread(peer, group, "b")
        seen = [told(one.join(topology)), told(two.join(topology)), told(one.leave())]
        seen += [told(two.beat()), told(two.acknowledge()), told(two.beat()), told(two.acknowledge())]
        alter(peer, group, streams_num_standby_replicas="0")
        wait_until(lambda: two.beat().member_epoch > 4)
        return seen, records(peer, group)

    same(scenario)


def test_shutdown_and_endpoints(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 2})
        one, two = thread(peer, group), thread(peer, group, "b")
        seen = [told(one.join(f"0:{topic}", endpoint="host:80")), told(one.beat()), told(one.beat())]
        seen += [told(two.join(f"0:{topic}")), told(one.beat()), told(one.acknowledge()), told(two.beat())]
        seen += [told(two.beat(shutdown_application=True)), told(one.beat()), told(two.leave()), told(one.beat())]
        seen += [told(one.leave()), told(two.join(f"0:{topic}"))]
        return seen

    same(scenario)


def test_commits_and_fetches_of_members(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 2, f"{topic}2": 1})
        one, two = thread(peer, group), thread(peer, group, "b")
        one.join(f"0:{topic}")
        one.acknowledge()
        two.join(f"0:{topic}")
        one.beat()
        one.acknowledge()
        two.beat()
        seen = []
        for version, name, partition, member, epoch in (
            (9, topic, 0, "a", 3),
            (8, topic, 0, "a", 3),
            (9, topic, 0, "a", 4),
            (9, topic, 0, "a", 2),
            (9, topic, 1, "a", 2),
            (9, topic, 1, "b", 2),
            (9, f"{topic}2", 0, "a", 3),
            (9, f"{topic}2", 0, "a", 2),
            (9, topic, 0, "z", 3),
            (9, topic, 0, "", -1),
        ):
            rows = {name: [(partition, 5)]}
            fields = {"member_id": member, "generation_id_or_member_epoch": epoch}
            seen.append(plain(commit(peer, group, rows, version, **fields)))
        for member_id, epoch in (("a", 3), ("a", 2), ("z", 3), (None, -1)):
            seen.append(plain(fetch(peer, group, {topic: [0]}, member_id=member_id, member_epoch=epoch)))
        partition = OffsetDeleteRequestPartition(0)
        request = OffsetDeleteRequest(group, [OffsetDeleteRequestTopic(topic, [partition])])
        seen.append(plain(peer.ask(request, 0)))
        one.leave()
        two.leave()
        seen.append(plain(peer.ask(request, 0)))
        return seen

    same(scenario)


def test_groups_as_others_see_them(same: Same, group: str, topic: str) -> None:
    """Listed, described as what they are not, joined by other protocols, deleted."""

    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 1})
        one = thread(peer, group)
        one.join(f"0:{topic}")
        seen: list[Any] = [listed(peer, group), plain(peer.ask(DescribeGroupsRequest([group]), 6))]
        protocols = [JoinGroupRequestProtocol("range", b"")]
        classic = JoinGroupRequest(group, 10_000, 10_000, "", None, "consumer", protocols)
        seen.append(peer.ask(classic, 3).error_code)
        consumer = ConsumerGroupHeartbeatRequest(group, "c", 0, None, None, 1000, [topic], None, None, [])
        seen.append(plain(peer.ask(consumer, 1)))
        seen.append(plain(peer.ask(ShareGroupHeartbeatRequest(group, "s", 0, None, [topic]), 1)))
        seen.append(plain(peer.ask(DeleteGroupsRequest([group]), 2)))
        one.leave()
        seen.append(listed(peer, group))
        seen.append(plain(peer.ask(consumer, 1)))
        seen.append(plain(peer.ask(DeleteGroupsRequest([group]), 2)))
        seen.append(described(peer, group, ""))
        return seen, records(peer, group)

    same(scenario)


def listed(peer: Peer, group: str) -> list[Any]:
    answer = peer.ask(ListGroupsRequest(types_filter=["streams"]), 5)
    assert answer.error_code == errors.NONE
    return [plain(row) for row in answer.groups if row.group_id == group]


def test_an_empty_classic_group_becomes_a_streams_group(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 1})
        before = plain(commit(peer, group, {topic: [(0, 7)]}))
        one = thread(peer, group)
        seen = [told(one.join(f"0:{topic}")), listed(peer, group)]
        return before, seen, plain(fetch(peer, group, {topic: [0]}))

    same(scenario)


def test_the_initial_delay_ends_with_an_assignment(same: Same, group: str, topic: str) -> None:
    """Of all that have joined by then; the first of them has been heard of twice."""

    def scenario(peer: Peer) -> Any:
        prepare(peer, group, **{topic: 2})
        alter(peer, group, streams_initial_rebalance_delay_ms="2000")
        one, two = thread(peer, group), thread(peer, group, "b")
        seen = [told(one.join(f"0:{topic}")), told(one.beat()), told(two.join(f"0:{topic}")), described(peer, group)]
        wait_until(lambda: peer.ask(StreamsGroupDescribeRequest([group]), 0).groups[0].assignment_epoch > 1)
        seen += [told(one.beat())["member_epoch"], told(two.beat())["member_epoch"]]
        return seen, described(peer, group)["groups"][0]["group_state"]

    same(scenario)
