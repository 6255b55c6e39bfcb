"""StreamsGroupHeartbeat and StreamsGroupDescribe through a whole node: checks, internal topics, rights, lists."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.protocol import errors
from moldau.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from moldau.protocol.messages.streams_group_heartbeat_request import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from moldau.security.rights import ALLOW, CREATE, DESCRIBE, GROUP, LITERAL, READ, TOPIC
from tests.unit.coordinator.streams_world import make_topology
from tests.unit.node.world import NodeWorld

QUICK = {
    "offsets_topic_replication_factor": "1",
    "offsets_topic_num_partitions": "3",
    "group_streams_initial_rebalance_delay_ms": "0",
    "group_streams_assignment_interval_ms": "0",
}
MISSING_INTERNAL_TOPICS = 3


def started(**settings: str) -> NodeWorld:
    world = NodeWorld(**{**QUICK, **settings}).start()
    world.create("in", 2)
    world.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    world.run(200)
    return world


@pytest.fixture
def world() -> NodeWorld:
    return started()


def join(group_id: str = "g", topology: Topology | None = None, **fields: Any) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        **{
            "group_id": group_id,
            "member_id": "m",
            "endpoint_information_epoch": -1,
            "rebalance_timeout_ms": 1000,
            "topology": topology or make_topology("0:in"),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": "p",
            **fields,
        }
    )


def beat(epoch: int, **fields: Any) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest("g", "m", epoch, **fields)


def test_a_member_joins_and_is_described(world: NodeWorld) -> None:
    answer = world.ask(join(), 0)
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (0, 2, 5000)
    assert [(row.subtopology_id, row.partitions) for row in answer.active_tasks] == [("0", [0, 1])]
    assert answer.status == []
    described = world.ask(StreamsGroupDescribeRequest(["g", "", "nobody"], True), 0).groups
    assert [group.error_code for group in described] == [errors.INVALID_GROUP_ID, 0, errors.GROUP_ID_NOT_FOUND]
    (group,) = [group for group in described if group.group_id == "g"]
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.authorized_operations > 0
    (member,) = group.members
    assert (member.client_id, member.client_host, member.process_id) == ("test", "/127.0.0.1", "p")
    (listed,) = world.ask(ListGroupsRequest(types_filter=["Streams"]), 5).groups
    assert (listed.group_id, listed.group_type, listed.protocol_type, listed.group_state) == (
        "g",
        "streams",
        "streams",
        "Stable",
    )
    assert world.ask(DescribeGroupsRequest(["g"]), 6).groups[0].error_code == errors.GROUP_ID_NOT_FOUND
    assert world.ask(DeleteGroupsRequest(["g"]), 2).results[0].error_code == errors.NON_EMPTY_GROUP
    assert world.ask(beat(-1), 0).member_epoch == -1
    assert world.ask(DeleteGroupsRequest(["g"]), 2).results[0].error_code == 0
    assert world.ask(ListGroupsRequest(), 5).groups == []


def test_internal_topics_are_created_as_the_topology_wants_them(world: NodeWorld) -> None:
    changelog = TopicInfo("store", 0, 1, [KeyValue("cleanup.policy", "compact")])
    topology = Topology(
        0,
        [
            Subtopology("0", ["in"], [], [], ["rep"]),
            Subtopology("1", [], [], [changelog], [], [TopicInfo("rep", 3)]),
        ],
    )
    answer = world.ask(join(topology=topology), 0)
    assert [(one.status_code, one.status_detail) for one in answer.status] == [
        (MISSING_INTERNAL_TOPICS, "Internal topics are missing: rep, store")
    ]
    assert answer.active_tasks == []
    world.run(200)
    assert len(world.describe("rep").partitions) == 3
    assert len(world.describe("store").partitions) == 3
    answer = world.ask(beat(answer.member_epoch), 0)
    assert answer.status == []
    assert [(row.subtopology_id, row.partitions) for row in answer.active_tasks] == [("0", [0, 1]), ("1", [0, 1, 2])]


def test_a_creation_that_fails_is_told_for_a_while_and_tried_again(world: NodeWorld) -> None:
    topology = Topology(0, [Subtopology("0", ["in"], [], [TopicInfo("store", 0, 3)])])
    answer = world.ask(join(topology=topology), 0)
    detail = answer.status[0].status_detail
    assert detail.startswith("Internal topics are missing: store; Creation failed: store (")
    assert detail.endswith(").")
    failed = world.node.failed_topics
    world.run(5000)
    assert world.ask(beat(answer.member_epoch), 0).status[0].status_detail == detail
    world.run(6000)
    assert failed.among(["store"], world.now_ms) == {}
    assert world.ask(beat(answer.member_epoch), 0).status[0].status_detail == detail
    assert set(failed.among(["store"], world.now_ms)) == {"store"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0:__consumer_offsets",
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        (
            "0:in+__transaction_state",
            "Use of Kafka internal topics __transaction_state in a Kafka Streams topology is prohibited.",
        ),
    ],
)
def test_topologies_may_not_use_topics_of_the_system(world: NodeWorld, text: str, message: str) -> None:
    answer = world.ask(join(topology=make_topology(text)), 0)
    assert (answer.error_code, answer.error_message) == (errors.STREAMS_INVALID_TOPOLOGY, message)


def test_topic_names_are_looked_at(world: NodeWorld) -> None:
    topology = Topology(0, [Subtopology("0", ["in", "no good", "a:b"])])
    answer = world.ask(join(topology=topology), 0)
    assert answer.error_code == errors.STREAMS_INVALID_TOPOLOGY
    assert answer.error_message == "Topic names no good,a:b are not valid topic names."


def test_the_protocol_can_be_switched_off() -> None:
    world = started(group_coordinator_rebalance_protocols="classic,consumer")
    assert world.ask(join(), 0).error_code == errors.UNSUPPORTED_VERSION
    (group,) = world.ask(StreamsGroupDescribeRequest(["g"]), 0).groups
    assert (group.group_id, group.error_code) == ("g", errors.UNSUPPORTED_VERSION)


# Rights


def allow(world: NodeWorld, resource_type: int, name: str, operation: int) -> None:
    entry = AclCreation(resource_type, name, LITERAL, "User:app", "*", operation, ALLOW)
    assert world.ask(CreateAclsRequest([entry]), 3).results[0].error_code == 0


@pytest.fixture
def guarded() -> NodeWorld:
    return started(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS")


def as_app(world: NodeWorld, request: Any) -> Any:
    before = world.context.principal
    world.context.principal = "User:app"
    try:
        return world.ask(request, 0)
    finally:
        world.context.principal = before


def test_who_may_join_and_who_may_create_internal_topics(guarded: NodeWorld) -> None:
    topology = make_topology("0:in+store")
    assert as_app(guarded, join(topology=topology)).error_code == errors.GROUP_AUTHORIZATION_FAILED
    allow(guarded, GROUP, "g", READ)
    assert as_app(guarded, join(topology=topology)).error_code == errors.TOPIC_AUTHORIZATION_FAILED
    allow(guarded, TOPIC, "in", DESCRIBE)
    assert as_app(guarded, join(topology=topology)).error_code == errors.TOPIC_AUTHORIZATION_FAILED
    allow(guarded, TOPIC, "store", DESCRIBE)
    answer = as_app(guarded, join(topology=topology))
    assert [one.status_detail for one in answer.status] == [
        "Internal topics are missing: store; Unauthorized to CREATE on topics store."
    ]
    guarded.run(200)
    assert guarded.describe("store").error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    allow(guarded, TOPIC, "store", CREATE)
    answer = as_app(guarded, beat(answer.member_epoch))
    assert [one.status_detail for one in answer.status] == ["Internal topics are missing: store"]
    guarded.run(200)
    assert guarded.describe("store").error_code == 0
    assert as_app(guarded, beat(answer.member_epoch)).active_tasks


def test_a_group_with_topics_that_may_not_be_seen_is_not_described(guarded: NodeWorld) -> None:
    assert guarded.ask(join(), 0).error_code == 0
    (group,) = as_app(guarded, StreamsGroupDescribeRequest(["g"])).groups
    assert group.error_code == errors.GROUP_AUTHORIZATION_FAILED
    allow(guarded, GROUP, "g", DESCRIBE)
    (group,) = as_app(guarded, StreamsGroupDescribeRequest(["g"])).groups
    assert group.error_code == errors.TOPIC_AUTHORIZATION_FAILED
    assert group.members == [] and group.topology is None
    allow(guarded, TOPIC, "in", DESCRIBE)
    (group,) = as_app(guarded, StreamsGroupDescribeRequest(["g"])).groups
    assert group.error_code == 0 and len(group.members) == 1
