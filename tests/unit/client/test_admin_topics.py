"""Topics, configs, quorum and log directories through the admin client."""

from __future__ import annotations

import pytest

from moldau.client.admin import CLIENT_METRICS, Admin, ConfigResource, FeatureUpdate, TopicPartitionReplica
from moldau.client.errors import ClientError, UnsupportedVersionError
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages import describe_log_dirs_response as dirs
from moldau.protocol.messages import describe_quorum_response as quorum
from moldau.protocol.messages import describe_topic_partitions_response as paged
from moldau.protocol.messages import elect_leaders_response as elected
from moldau.protocol.messages import list_config_resources_response as resources
from moldau.protocol.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from moldau.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from moldau.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from moldau.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest
from moldau.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.update_features_request import UpdateFeaturesRequest
from moldau.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata


def set_up(highest: dict[int, int] | None = None) -> tuple[Admin, ScriptedBroker]:
    broker = ScriptedBroker(highest)
    broker.on(MetadataRequest, metadata({"a": [1, 1]}))
    return Admin("broker:9092", config=wired(network=FakeNetwork({HOME: broker}))), broker


def partition(index: int) -> paged.DescribeTopicPartitionsResponsePartition:
    return paged.DescribeTopicPartitionsResponsePartition(
        partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1], eligible_leader_replicas=[2]
    )


def test_a_topic_is_put_together_from_its_pages() -> None:
    admin, broker = set_up()
    cursors: list[tuple[str, int] | None] = []

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, DescribeTopicPartitionsRequest)
        cursor = request.cursor
        cursors.append(None if cursor is None else (cursor.topic_name, cursor.partition_index))
        if cursor is None:
            first = paged.DescribeTopicPartitionsResponseTopic(name="a", partitions=[partition(0)])
            return paged.DescribeTopicPartitionsResponse(
                topics=[first], next_cursor=paged.Cursor(topic_name="a", partition_index=1)
            )
        rest = paged.DescribeTopicPartitionsResponseTopic(name="a", partitions=[partition(1)])
        gone = paged.DescribeTopicPartitionsResponseTopic(name="b", error_code=29)
        return paged.DescribeTopicPartitionsResponse(topics=[rest, gone])

    broker.on(DescribeTopicPartitionsRequest, handle)
    found = admin.describe_topics(["b", "a"])
    assert list(found) == ["b", "a"] and sorted(found["a"].get().partitions) == [0, 1]
    assert found["a"].get().partitions[1].eligible_leader_replicas == [2]
    assert found["b"].error is not None and found["b"].error.name == "TOPIC_AUTHORIZATION_FAILED"
    assert cursors == [None, ("a", 1)]


def test_a_broker_whose_pages_never_end_is_given_up() -> None:
    admin, broker = set_up()
    page = paged.DescribeTopicPartitionsResponse(
        topics=[paged.DescribeTopicPartitionsResponseTopic(name="a", partitions=[partition(0)])],
        next_cursor=paged.Cursor(topic_name="a", partition_index=0),
    )
    broker.on(DescribeTopicPartitionsRequest, lambda request, version: page)
    with pytest.raises(ClientError, match="again and again"):
        admin.describe_topics(["a"])


def test_a_new_topic_is_asked_for_again_before_its_absence_is_believed() -> None:
    admin, broker = set_up()
    codes = [3, 0]

    def handle(request: Message, version: int) -> object:
        row = paged.DescribeTopicPartitionsResponseTopic(name="a", error_code=codes.pop(0))
        return paged.DescribeTopicPartitionsResponse(topics=[row])

    broker.on(DescribeTopicPartitionsRequest, handle)
    assert admin.describe_topics(["a"])["a"].error is None and codes == []


def test_an_older_broker_lists_client_metrics_alone() -> None:
    admin, broker = set_up({74: 0})
    row = resources.ConfigResource(resource_name="m")
    broker.on(
        ListConfigResourcesRequest,
        lambda request, version: resources.ListConfigResourcesResponse(config_resources=[row]),
    )
    assert admin.list_client_metrics_resources() == ["m"]
    assert admin.list_config_resources([CLIENT_METRICS]) == [ConfigResource(CLIENT_METRICS, "m")]
    with pytest.raises(UnsupportedVersionError):
        admin.list_config_resources([2])


def test_the_quorum_is_described_and_its_errors_are_raised() -> None:
    admin, broker = set_up()
    voter = quorum.ReplicaState(replica_id=1, log_end_offset=9, last_fetch_timestamp=-1, last_caught_up_timestamp=5)
    row = quorum.PartitionData(
        leader_id=1, leader_epoch=4, high_watermark=8, current_voters=[voter], error_message=None
    )
    answer = quorum.DescribeQuorumResponse(
        error_message=None, topics=[quorum.TopicData(topic_name="__cluster_metadata", partitions=[row])]
    )
    broker.on(DescribeQuorumRequest, lambda request, version: answer)
    found = admin.describe_metadata_quorum()
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 4, 8)
    assert found.voters[0].last_fetch_timestamp is None and found.voters[0].last_caught_up_timestamp == 5
    row.error_code = 3
    with pytest.raises(ClientError):
        admin.describe_metadata_quorum()
    answer.topics.clear()
    with pytest.raises(ClientError, match="0 partitions"):
        admin.describe_metadata_quorum()


def test_an_error_of_all_features_is_that_of_each() -> None:
    admin, broker = set_up({57: 1})
    answers = [
        UpdateFeaturesResponse(error_code=95, error_message="no"),
        UpdateFeaturesResponse(
            error_message=None,
            results=[
                UpdatableFeatureResult(feature="x", error_message=None),
                UpdatableFeatureResult(feature="y", error_code=95, error_message="no"),
            ],
        ),
    ]
    broker.on(UpdateFeaturesRequest, lambda request, version: answers.pop(0))
    updates = {"x": FeatureUpdate(1), "y": FeatureUpdate(2)}
    assert [item.error is None for item in admin.update_features(updates).values()] == [False, False]
    assert [item.error is None for item in admin.update_features(updates).values()] == [True, False]


def test_a_replica_that_moves_has_two_directories() -> None:
    admin, broker = set_up()

    def directory(path: str, future: bool) -> dirs.DescribeLogDirsResult:
        row = dirs.DescribeLogDirsPartition(partition_index=0, offset_lag=3 if future else 0, is_future_key=future)
        return dirs.DescribeLogDirsResult(log_dir=path, topics=[dirs.DescribeLogDirsTopic(name="a", partitions=[row])])

    broken = dirs.DescribeLogDirsResult(log_dir="/c", error_code=56)
    answer = dirs.DescribeLogDirsResponse(results=[directory("/a", False), directory("/b", True), broken])
    broker.on(DescribeLogDirsRequest, lambda request, version: answer)
    replica, other = TopicPartitionReplica("a", 0, 1), TopicPartitionReplica("a", 1, 1)
    found = admin.describe_replica_log_dirs([replica, other])
    assert found[replica].get() == ("/a", 0, "/b", 3)
    assert found[other].get() == (None, -1, None, -1)
    last = admin.describe_log_dirs([1])[1].get()[2]
    assert last.error is not None and last.error.name == "KAFKA_STORAGE_ERROR"


def test_an_election_of_all_partitions_names_those_that_had_one() -> None:
    admin, broker = set_up()

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, ElectLeadersRequest) and request.topic_partitions is None
        rows = [elected.PartitionResult(partition_id=1, error_code=80, error_message="not available")]
        return elected.ElectLeadersResponse(
            replica_election_results=[elected.ReplicaElectionResult(topic="a", partition_result=rows)]
        )

    broker.on(ElectLeadersRequest, handle)
    found = admin.elect_leaders()
    assert list(found) == [TopicPartition("a", 1)]
    assert str(found[TopicPartition("a", 1)].error) == "not available"


def test_a_reassignment_that_is_refused_as_a_whole() -> None:
    admin, broker = set_up()
    sent: list[AlterPartitionReassignmentsRequest] = []

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, AlterPartitionReassignmentsRequest)
        sent.append(request)
        return AlterPartitionReassignmentsResponse(error_code=31, error_message="no")

    broker.on(AlterPartitionReassignmentsRequest, handle)
    moves = {TopicPartition("a", 0): [2, 3], TopicPartition("a", 1): None}
    found = admin.alter_partition_reassignments(moves)
    assert [str(item.error) for item in found.values()] == ["no", "no"]
    assert [row.replicas for row in sent[0].topics[0].partitions] == [[2, 3], None]
