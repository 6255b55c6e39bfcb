"""Groups through the admin client: what the wire says becomes typed values."""

from __future__ import annotations

import pytest

from moldau.client.admin import Admin, MemberToRemove, OffsetAndMetadata
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages import consumer_group_describe_response as consumer
from moldau.protocol.messages import delete_share_group_offsets_response as forgotten
from moldau.protocol.messages import describe_groups_response as classic
from moldau.protocol.messages import describe_share_group_offsets_response as shared
from moldau.protocol.messages import offset_fetch_response as fetched
from moldau.protocol.messages import share_group_describe_response as share
from moldau.protocol.messages import streams_group_describe_response as streams
from moldau.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from moldau.protocol.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from moldau.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from moldau.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.offset_commit_request import OffsetCommitRequest
from moldau.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.offset_delete_request import OffsetDeleteRequest
from moldau.protocol.messages.offset_delete_response import OffsetDeleteResponse
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequest
from moldau.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from moldau.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata

FIRST = TopicPartition("a", 0)


def find_here(request: Message, version: int) -> object:
    assert isinstance(request, FindCoordinatorRequest)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=1, host=HOME[0], port=HOME[1], error_message=None)
            for key in request.coordinator_keys
        ]
    )


def set_up() -> tuple[Admin, ScriptedBroker]:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"a": [1, 1]}))
    broker.on(FindCoordinatorRequest, find_here)
    return Admin("broker:9092", config=wired(network=FakeNetwork({HOME: broker}))), broker


def classic_group(group_id: str, state: str, protocol_type: str, metadata: bytes, assignment: bytes) -> Message:
    member = classic.DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=metadata, member_assignment=assignment
    )
    return classic.DescribedGroup(
        group_id=group_id, group_state=state, protocol_type=protocol_type, protocol_data="range", members=[member]
    )


SUBSCRIPTION = b"\x00\x01" + b"\0\0\0\1" + b"\0\1a" + b"\xff\xff\xff\xff" + b"\0\0\0\0"
ASSIGNMENT = b"\x00\x00" + b"\0\0\0\1" + b"\0\1a" + b"\0\0\0\2" + b"\0\0\0\1" + b"\0\0\0\0" + b"\xff\xff\xff\xff"


def test_a_group_of_the_newer_protocol_is_described_with_its_epochs() -> None:
    admin, broker = set_up()
    topics = [consumer.TopicPartitions(topic_id=bytes(16), topic_name="a", partitions=[1, 0])]
    member = consumer.Member(
        member_id="m",
        member_epoch=4,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["a"],
        assignment=consumer.Assignment(topic_partitions=[]),
        target_assignment=consumer.Assignment(topic_partitions=topics),
        member_type=1,
    )
    row = consumer.DescribedGroup(
        group_id="g", group_state="Stable", group_epoch=5, assignment_epoch=4, assignor_name="uniform", members=[member]
    )
    broker.on(
        ConsumerGroupDescribeRequest, lambda request, version: consumer.ConsumerGroupDescribeResponse(groups=[row])
    )
    found = admin.describe_consumer_groups(["g"])["g"].get()
    assert (found.type, found.group_epoch, found.assignment_epoch, found.coordinator.address) == (
        "consumer",
        5,
        4,
        HOME,
    )
    assert found.members[0].target_assignment == [FIRST, TopicPartition("a", 1)]
    assert found.members[0].assignment == [] and found.members[0].is_upgraded
    assert found.authorized_operations is None


def test_what_is_no_newer_group_is_asked_for_as_a_classic_one() -> None:
    admin, broker = set_up()

    def newer(request: Message, version: int) -> object:
        assert isinstance(request, ConsumerGroupDescribeRequest)
        rows = [
            consumer.DescribedGroup(group_id=group_id, error_code=69, error_message="Group not found.")
            for group_id in request.group_ids
        ]
        return consumer.ConsumerGroupDescribeResponse(groups=rows)

    def older(request: Message, version: int) -> object:
        rows = [
            classic_group("g", "Stable", "consumer", SUBSCRIPTION, ASSIGNMENT),
            classic_group("garbage", "Stable", "consumer", b"\x00\x00\xff", b"\x00\x00\xff\xff"),
            classic_group("connect", "Stable", "connect", b"", b""),
            classic_group("dead", "Dead", "", b"", b""),
        ]
        return classic.DescribeGroupsResponse(groups=rows)  # type: ignore[arg-type]

    broker.on(ConsumerGroupDescribeRequest, newer)
    broker.on(DescribeGroupsRequest, older)
    found = admin.describe_consumer_groups(["g", "garbage", "connect", "dead"])
    (member,) = found["g"].get().members
    assert (member.assignment, member.subscribed_topics) == ([FIRST, TopicPartition("a", 1)], ["a"])
    (odd,) = found["garbage"].get().members
    assert (odd.assignment, odd.subscribed_topics) == ([], None)
    assert [found[name].error is not None for name in ("connect", "dead")] == [True, True]
    assert "protocol connect" in str(found["connect"].error) and "does not exist" in str(found["dead"].error)


def test_a_broker_that_knows_no_newer_groups_is_asked_for_classic_ones() -> None:
    admin, broker = set_up()
    rows = [row for row in broker.versions().api_keys if row.api_key != 69]
    offered = broker.versions()
    offered.api_keys = rows
    broker.versions = lambda: offered  # type: ignore[method-assign]
    row = classic_group("g", "Empty", "", b"", b"")
    broker.on(
        DescribeGroupsRequest,
        lambda request, version: classic.DescribeGroupsResponse(groups=[row]),  # type: ignore[list-item]
    )
    assert admin.describe_consumer_groups(["g"])["g"].get().is_simple


def test_a_streams_group_is_described_with_topology_and_tasks() -> None:
    admin, broker = set_up()
    tasks = streams.Assignment(
        active_tasks=[streams.TaskIds(subtopology_id="0", partitions=[0, 1])], standby_tasks=[], warmup_tasks=[]
    )
    member = streams.Member(
        member_id="m",
        client_tags=[streams.KeyValue(key="zone", value="x")],
        task_offsets=[streams.TaskOffset(subtopology_id="0", partition=1, offset=9)],
        user_endpoint=streams.Endpoint(host="h", port=1),
        assignment=tasks,
        target_assignment=tasks,
    )
    log = streams.TopicInfo(name="log", topic_configs=[streams.KeyValue(key="a", value="b")])
    part = streams.Subtopology(subtopology_id="0", source_topics=["a"], state_changelog_topics=[log])
    rows = [
        streams.DescribedGroup(
            group_id="g", topology=streams.Topology(epoch=2, subtopologies=[part]), members=[member]
        ),
        streams.DescribedGroup(group_id="h", topology=None),
    ]
    broker.on(StreamsGroupDescribeRequest, lambda request, version: streams.StreamsGroupDescribeResponse(groups=rows))
    found = admin.describe_streams_groups(["g", "h"])
    group = found["g"].get()
    assert (group.topology_epoch, group.subtopologies[0].state_changelog_topics[0].configs) == (2, {"a": "b"})
    assert group.members[0].assignment.active == {"0": [0, 1]}
    assert (group.members[0].task_offsets, group.members[0].user_endpoint) == ({("0", 1): 9}, ("h", 1))
    assert found["h"].get().topology_epoch is None


def test_offsets_that_a_transaction_may_change_are_waited_for() -> None:
    admin, broker = set_up()
    codes = [88, 0]

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, OffsetFetchRequest) and version == 9 and request.require_stable
        rows = [
            fetched.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, error_code=codes.pop(0)),
            fetched.OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
            fetched.OffsetFetchResponsePartitions(partition_index=7, committed_offset=-1, error_code=3),
        ]
        topic = fetched.OffsetFetchResponseTopics(name="a", partitions=rows)
        return fetched.OffsetFetchResponse(groups=[fetched.OffsetFetchResponseGroup(group_id="g", topics=[topic])])

    broker.on(OffsetFetchRequest, handle)
    found = admin.list_consumer_group_offsets({"g": None}, require_stable=True)["g"].get()
    assert found[FIRST].get() == OffsetAndMetadata(5) and codes == []
    assert found[TopicPartition("a", 1)].get() is None
    assert found[TopicPartition("a", 7)].error is not None


def test_offsets_are_committed_in_a_groups_place() -> None:
    admin, broker = set_up()
    rounds: list[list[int]] = []

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, OffsetCommitRequest) and version == 9
        assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)
        rows = request.topics[0].partitions
        rounds.append([row.committed_offset for row in rows])
        code = 27 if len(rounds) == 1 else 25
        answers = [
            OffsetCommitResponsePartition(
                partition_index=row.partition_index, error_code=code if row.partition_index else 0
            )
            for row in rows
        ]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="a", partitions=answers)])

    broker.on(OffsetCommitRequest, handle)
    found = admin.alter_consumer_group_offsets("g", {FIRST: 3, TopicPartition("a", 1): OffsetAndMetadata(4, 1, "x")})
    assert rounds == [[3, 4], [4]] and found[FIRST].error is None
    assert "stop them" in str(found[TopicPartition("a", 1)].error)


def test_an_error_of_the_whole_group_is_that_of_each_partition() -> None:
    admin, broker = set_up()
    broker.on(OffsetDeleteRequest, lambda request, version: OffsetDeleteResponse(error_code=69))
    found = admin.delete_consumer_group_offsets("g", [FIRST, TopicPartition("a", 1)])
    assert [str(item.error) for item in found.values()] == ["Group g does not exist."] * 2


def test_members_are_removed_by_either_name() -> None:
    admin, broker = set_up()

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, LeaveGroupRequest) and request.members[0].reason == "maintenance"
        return LeaveGroupResponse(
            members=[
                MemberResponse(member_id="filled-in", group_instance_id="static"),
                MemberResponse(member_id="m", group_instance_id=None, error_code=25),
            ]
        )

    broker.on(LeaveGroupRequest, handle)
    static, dynamic = MemberToRemove("static"), MemberToRemove(member_id="m")
    found = admin.remove_members_from_consumer_group("g", [static, dynamic], "maintenance")
    assert found[static].error is None
    error = found[dynamic].error
    assert error is not None and error.name == "UNKNOWN_MEMBER_ID"
    with pytest.raises(ValueError, match="group_instance_id or a member_id"):
        admin.remove_members_from_consumer_group("g", [MemberToRemove()])


def test_a_share_group_that_has_not_begun_has_no_start_offset() -> None:
    admin, broker = set_up()
    rows = [
        shared.DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=4, leader_epoch=1, lag=2),
        shared.DescribeShareGroupOffsetsResponsePartition(partition_index=1, start_offset=-1, leader_epoch=-1),
    ]
    topic = shared.DescribeShareGroupOffsetsResponseTopic(topic_name="a", partitions=rows)
    groups = [
        shared.DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic]),
        shared.DescribeShareGroupOffsetsResponseGroup(group_id="h", error_code=30),
    ]
    broker.on(
        DescribeShareGroupOffsetsRequest,
        lambda request, version: shared.DescribeShareGroupOffsetsResponse(groups=groups),
    )
    found = admin.list_share_group_offsets({"g": None, "h": [FIRST]})
    assert [item.get() for item in found["g"].get().values()] == [(4, 1, 2), None]
    assert found["h"].error is not None and found["h"].error.name == "GROUP_AUTHORIZATION_FAILED"


def test_a_share_group_is_described_with_its_members() -> None:
    admin, broker = set_up()
    assigned = share.Assignment([share.TopicPartitions(topic_name="a", partitions=[1, 0])])
    member = share.Member(
        member_id="m",
        rack_id="r",
        member_epoch=4,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["a"],
        assignment=assigned,
    )
    described = share.DescribedGroup(
        group_id="g", group_state="Stable", group_epoch=5, assignment_epoch=5, assignor_name="simple", members=[member]
    )
    missing = share.DescribedGroup(group_id="h", error_code=69, error_message="Group h not found.")
    broker.on(
        ShareGroupDescribeRequest,
        lambda request, version: share.ShareGroupDescribeResponse(groups=[described, missing]),
    )
    found = admin.describe_share_groups(["g", "h"])
    group = found["g"].get()
    assert (group.type, group.state, group.assignor, group.group_epoch, group.assignment_epoch) == (
        ("share", "Stable", "simple", 5, 5)
    )
    only = group.members[0]
    assert (only.member_id, only.rack_id, only.member_epoch, only.subscribed_topics) == ("m", "r", 4, ["a"])
    assert only.assignment == [FIRST, TopicPartition("a", 1)]
    error = found["h"].error
    assert error is not None and (error.name, error.message) == ("GROUP_ID_NOT_FOUND", "Group h not found.")


def test_start_offsets_are_altered_by_partition_or_refused_for_the_whole_group() -> None:
    admin, broker = set_up()
    second = TopicPartition("a", 1)
    asked: list[tuple[str, int, int]] = []
    refusal = AlterShareGroupOffsetsResponse(error_code=68, error_message="The group is not empty.")

    def answer(request: Message, version: int) -> object:
        assert isinstance(request, AlterShareGroupOffsetsRequest)
        if request.group_id == "busy":
            return refusal
        asked.extend(
            (topic.topic_name, row.partition_index, row.start_offset)
            for topic in request.topics
            for row in topic.partitions
        )
        rows = [
            AlterShareGroupOffsetsResponsePartition(partition_index=0),
            AlterShareGroupOffsetsResponsePartition(partition_index=1, error_code=29),
        ]
        return AlterShareGroupOffsetsResponse(responses=[AlterShareGroupOffsetsResponseTopic("a", partitions=rows)])

    broker.on(AlterShareGroupOffsetsRequest, answer)
    found = admin.alter_share_group_offsets("g", {FIRST: 7, second: 9})
    assert asked == [("a", 0, 7), ("a", 1, 9)]
    assert found[FIRST].error is None
    assert found[second].error is not None and found[second].error.name == "TOPIC_AUTHORIZATION_FAILED"
    refused = admin.alter_share_group_offsets("busy", {FIRST: 7, second: 9})
    errors = [outcome.error for outcome in refused.values()]
    assert [error.name for error in errors if error is not None] == ["NON_EMPTY_GROUP", "NON_EMPTY_GROUP"]
    with pytest.raises(ValueError):
        admin.alter_share_group_offsets("g", {FIRST: -1})


def test_offsets_of_topics_are_deleted_topic_by_topic() -> None:
    admin, broker = set_up()
    rows = [
        forgotten.DeleteShareGroupOffsetsResponseTopic(topic_name="a"),
        forgotten.DeleteShareGroupOffsetsResponseTopic(topic_name="b", error_code=29, error_message="no"),
    ]
    broker.on(
        DeleteShareGroupOffsetsRequest,
        lambda request, version: forgotten.DeleteShareGroupOffsetsResponse(responses=rows),
    )
    found = admin.delete_share_group_offsets("g", ["a", "b"])
    assert found["a"].error is None
    error = found["b"].error
    assert error is not None and (error.name, error.message) == ("TOPIC_AUTHORIZATION_FAILED", "no")


def test_share_groups_are_listed_by_type_and_deleted() -> None:
    admin, broker = set_up()
    asked: list[list[str]] = []

    def groups(request: Message, version: int) -> object:
        assert isinstance(request, ListGroupsRequest)
        asked.append(request.types_filter)
        row = ListedGroup(group_id="g", protocol_type="share", group_state="Empty", group_type="share")
        return ListGroupsResponse(groups=[row])

    broker.on(ListGroupsRequest, groups)
    assert admin.list_groups(types=["share"]).get() == [("g", "share", "Empty", "share")]
    assert asked == [["share"]]
    results = [DeletableGroupResult("g"), DeletableGroupResult("h", 68)]
    broker.on(DeleteGroupsRequest, lambda request, version: DeleteGroupsResponse(results=results))
    found = admin.delete_share_groups(["g", "h"])
    assert found["g"].error is None
    assert found["h"].error is not None and found["h"].error.message == "Group h has members."
