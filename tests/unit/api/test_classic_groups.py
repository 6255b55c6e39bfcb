"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup over the wire: every version, and errors before a group is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.coordinator.shard import ACTIVE, LOADING
from moldau.protocol import errors
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.unit.node.world import Asked, NodeWorld

DELAY_MS = 100


@pytest.fixture
def world() -> Iterator[NodeWorld]:
    settings = {"group.initial.rebalance.delay.ms": str(DELAY_MS), "offsets.topic.replication.factor": "1"}
    found = NodeWorld(**settings).start()
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    found.ask(request, 4)
    found.run(500)
    assert found.ask(request, 4).coordinators[0].error_code == 0
    yield found
    found.stop()


def join_request(version: int, member_id: str = "", group: str = "g", **fields: Any) -> JoinGroupRequest:
    rows = [JoinGroupRequestProtocol("range", b"metadata")]
    rebalance_ms = 60_000 if version >= 1 else -1
    return JoinGroupRequest(group, 10_000, rebalance_ms, member_id, protocol_type="consumer", protocols=rows, **fields)


def join(world: NodeWorld, version: int = 9, **fields: Any) -> Any:
    """Joins, with the round trip for the id where there is one."""
    asked = world.send(join_request(version, **fields), version)
    if asked.reply.done and asked.response.error_code == errors.MEMBER_ID_REQUIRED:
        asked = world.send(join_request(version, asked.response.member_id, **fields), version)
    world.run(3 * DELAY_MS)
    return asked.response


def leave_request(version: int, member_id: str) -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest("g", member_id)
    return LeaveGroupRequest("g", members=[MemberIdentity(member_id)])


@pytest.mark.parametrize("version", range(10))
def test_a_member_lives_through_every_version(world: NodeWorld, version: int) -> None:
    joined = join(world, version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    assert [(row.member_id, row.metadata) for row in joined.members] == [(joined.member_id, b"metadata")]
    assert joined.leader == joined.member_id and joined.member_id.startswith("test-")
    sync_version = min(version, 5)
    request = SyncGroupRequest(
        "g", 1, joined.member_id, assignments=[SyncGroupRequestAssignment(joined.member_id, b"all")]
    )
    if sync_version >= 5:
        request.protocol_type, request.protocol_name = "consumer", "range"
    assert world.ask(request, sync_version).assignment == b"all"
    heartbeat_version = min(version, 4)
    assert world.ask(HeartbeatRequest("g", 1, joined.member_id), heartbeat_version).error_code == 0
    described = world.ask(DescribeGroupsRequest(["g"]), 5).groups[0]
    assert (described.group_state, described.members[0].client_host) == ("Stable", "/127.0.0.1")
    leave_version = min(version, 5)
    left = world.ask(leave_request(leave_version, joined.member_id), leave_version)
    assert left.error_code == 0
    assert [row.error_code for row in left.members] == ([0] if leave_version >= 3 else [])
    assert world.ask(DescribeGroupsRequest(["g"]), 5).groups[0].group_state == "Empty"


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_has_an_answer_in_every_version(world: NodeWorld, version: int) -> None:
    answer = world.ask(join_request(version, "made up"), version)
    assert (answer.error_code, answer.member_id) == (errors.UNKNOWN_MEMBER_ID, "made up")
    assert answer.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", range(6))
def test_leaving_a_group_that_is_not_there(world: NodeWorld, version: int) -> None:
    """The error is that of each member where there are many, and the answer's own where there is one."""
    answer = world.ask(leave_request(version, "nobody"), version)
    if version >= 3:
        assert answer.error_code == 0
        assert [(row.member_id, row.error_code) for row in answer.members] == [("nobody", errors.UNKNOWN_MEMBER_ID)]
    else:
        assert answer.error_code == errors.UNKNOWN_MEMBER_ID


def test_the_group_needs_a_name(world: NodeWorld) -> None:
    asked = [
        world.ask(join_request(9, "m", ""), 9),
        world.ask(SyncGroupRequest("", 1, "m", protocol_type="consumer", protocol_name="range"), 5),
        world.ask(HeartbeatRequest("", 1, "m"), 4),
        world.ask(LeaveGroupRequest("", members=[MemberIdentity("m")]), 5),
    ]
    assert [answer.error_code for answer in asked] == [errors.INVALID_GROUP_ID] * 4
    assert asked[0].member_id == "m"


@pytest.mark.parametrize(("kind", "name"), [(None, None), ("consumer", None), (None, "range")])
def test_a_sync_of_version_5_names_the_protocol(world: NodeWorld, kind: str | None, name: str | None) -> None:
    """KIP-559."""
    joined = join(world)
    request = SyncGroupRequest("g", 1, joined.member_id, protocol_type=kind, protocol_name=name)
    assert world.ask(request, 5).error_code == errors.INCONSISTENT_GROUP_PROTOCOL


def test_a_coordinator_that_loads_disturbs_nobody(world: NodeWorld) -> None:
    """Heartbeats are fine, a SyncGroup has to join again, a JoinGroup waits and tries again."""
    joined = join(world)
    groups = world.node.coordinators.groups
    shard = groups.runtime.shards[groups.partition_for("g")]
    shard.state = LOADING
    request = SyncGroupRequest("g", 1, joined.member_id, protocol_type="consumer", protocol_name="range")
    assert world.ask(HeartbeatRequest("g", 1, joined.member_id), 4).error_code == 0
    assert world.ask(request, 5).error_code == errors.REBALANCE_IN_PROGRESS
    assert world.ask(join_request(9), 9).error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert world.ask(leave_request(5, joined.member_id), 5).error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    shard.state = ACTIVE


def test_who_waits_is_told_when_the_broker_stops(world: NodeWorld) -> None:
    """A client whose JoinGroup is parked looks for the next coordinator at once."""
    first = world.send(join_request(3), 3)
    assert not first.reply.done
    world.node.coordinators.stop(world.now_ms)
    assert first.response.error_code == errors.NOT_COORDINATOR


def test_a_client_that_goes_while_it_waits_does_no_harm(world: NodeWorld) -> None:
    """Its answer goes nowhere; the member is removed when it does not ask for its assignment, or its session ends."""
    gone = world.send(join_request(3), 3)
    gone.reply.abandon()
    stays: Asked = world.send(join_request(3), 3)
    world.run(3 * DELAY_MS)
    assert stays.response.error_code == 0
    member = stays.response.member_id
    for _ in range(12):
        world.run(1000)
        world.ask(HeartbeatRequest("g", 1, member), 4)
    described = world.ask(DescribeGroupsRequest(["g"]), 5).groups[0]
    assert [row.member_id for row in described.members] == [member]


def test_a_client_without_a_name_gets_an_id(world: NodeWorld) -> None:
    answer = world.send(join_request(9), 9, client_id=None).response
    assert answer.error_code == errors.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("-")
