"""Whom the admin client asks, and when it asks again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.client.admin import AbortTransaction, Admin, FeatureUpdate, NewTopic, RaftEndpoint
from moldau.client.errors import ClientError, ConfigError, RequestTimeoutError, UnsupportedVersionError
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages import delete_records_response as deleted
from moldau.protocol.messages import describe_cluster_response as described
from moldau.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from moldau.protocol.messages.delete_records_request import DeleteRecordsRequest
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from moldau.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from moldau.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from moldau.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from moldau.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from moldau.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import DISCONNECT, HOME, SILENCE, FakeNetwork, Handler, ScriptedBroker, metadata

AWAY = ("away", 9093)
GROUP_KEY = 0


def set_up(timeout_ms: int = 60_000) -> tuple[Admin, ScriptedBroker, ScriptedBroker]:
    home, away = ScriptedBroker(), ScriptedBroker()
    for broker in (home, away):
        broker.on(MetadataRequest, metadata({"a": [1, 2], "b": [1]}, {1: HOME, 2: AWAY}))
    network = FakeNetwork({HOME: home, AWAY: away})
    return Admin("broker:9092", config=wired(network=network), default_api_timeout_ms=timeout_ms), home, away


def asked(broker: ScriptedBroker, kind: type[Message]) -> int:
    return sum(isinstance(request, kind) for _, request in broker.seen)


def creation(codes: list[dict[str, int]]) -> Handler:
    """Answers with the next of these: topic -> error code."""

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, CreateTopicsRequest)
        now = codes.pop(0)
        assert [row.name for row in request.topics] == list(now)
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=name, error_code=code, error_message=None) for name, code in now.items()]
        )

    return handle


def finding(places: dict[str, list[int]]) -> Handler:
    """A FindCoordinator handler: key -> the coordinators to name, one after the other; 0: none at the moment."""

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, FindCoordinatorRequest)
        rows = []
        for key in request.coordinator_keys if version >= 4 else [request.key]:
            where = places[key].pop(0) if len(places[key]) > 1 else places[key][0]
            host, port = {1: HOME, 2: AWAY}.get(where, ("", -1))
            rows.append(
                Coordinator(
                    key=key,
                    node_id=where or -1,
                    host=host,
                    port=port,
                    error_code=0 if where else 15,
                    error_message=None,
                )
            )
        if version >= 4:
            return FindCoordinatorResponse(coordinators=rows)
        row = rows[0]
        return FindCoordinatorResponse(
            error_code=row.error_code, error_message=None, node_id=row.node_id, host=row.host, port=row.port
        )

    return handle


def deletion(codes: list[int], groups: list[list[str]]) -> Handler:
    def handle(request: Message, version: int) -> object:
        assert isinstance(request, DeleteGroupsRequest)
        groups.append(list(request.groups_names))
        code = codes.pop(0) if codes else 0
        rows = [DeletableGroupResult(group_id=group_id, error_code=code) for group_id in request.groups_names]
        return DeleteGroupsResponse(results=rows)

    return handle


def test_only_the_topic_that_was_put_off_is_asked_for_again() -> None:
    """KIP-599: the controller's quota puts off single topics."""
    admin, home, away = set_up()
    home.on(CreateTopicsRequest, creation([{"x": 0, "y": 89, "z": 37}, {"y": 89}, {"y": 0}]))
    found = admin.create_topics([NewTopic("x"), NewTopic("y"), NewTopic("z")])
    assert list(found) == ["x", "y", "z"]
    assert [None if item.error is None else item.error.code for item in found.values()] == [None, None, 37]
    assert asked(away, CreateTopicsRequest) == 0


def test_a_quota_violation_is_handed_out_where_that_is_wanted() -> None:
    admin, home, _ = set_up()
    home.on(CreateTopicsRequest, creation([{"x": 89}]))
    error = admin.create_topics([NewTopic("x")], retry_on_quota_violation=False)["x"].error
    assert error is not None and error.name == "THROTTLING_QUOTA_EXCEEDED"


def test_a_controller_that_moved_is_looked_up_again() -> None:
    admin, home, away = set_up()
    where = [1, 2]

    def moving(request: Message, version: int) -> object:
        brokers = [MetadataResponseBroker(node_id=key, host=at[0], port=at[1]) for key, at in ((1, HOME), (2, AWAY))]
        return MetadataResponse(brokers=brokers, controller_id=where.pop(0) if len(where) > 1 else where[0])

    for broker in (home, away):
        broker.on(MetadataRequest, moving)
    home.on(CreateTopicsRequest, creation([{"x": 41}]))
    away.on(CreateTopicsRequest, creation([{"x": 0}]))
    assert admin.create_topics([NewTopic("x")])["x"].error is None


def test_a_controller_that_hangs_up_is_asked_again() -> None:
    admin, home, _ = set_up()
    answers: list[object] = [DISCONNECT, DISCONNECT]
    good = creation([{"x": 0}])
    home.on(CreateTopicsRequest, lambda request, version: answers.pop(0) if answers else good(request, version))
    assert admin.create_topics([NewTopic("x")])["x"].error is None
    assert asked(home, CreateTopicsRequest) == 3


def test_groups_are_asked_of_their_coordinators_and_followed_when_they_move() -> None:
    admin, home, away = set_up()
    for broker in (home, away):
        broker.on(FindCoordinatorRequest, finding({"g": [1, 2], "h": [2], "i": [0, 2]}))
    at_home: list[list[str]] = []
    at_away: list[list[str]] = []
    home.on(DeleteGroupsRequest, deletion([16], at_home))
    away.on(DeleteGroupsRequest, deletion([], at_away))
    found = admin.delete_consumer_groups(["g", "h", "i"])
    assert list(found) == ["g", "h", "i"] and all(item.error is None for item in found.values())
    assert (
        at_home == [["g"]]
        and at_away[0] == ["h"]
        and sorted(name for names in at_away for name in names) == ["g", "h", "i"]
    )


def test_a_coordinator_that_loads_is_waited_for_and_other_errors_are_not() -> None:
    admin, home, away = set_up()
    for broker in (home, away):
        broker.on(FindCoordinatorRequest, finding({"g": [1]}))
    groups: list[list[str]] = []
    home.on(DeleteGroupsRequest, deletion([14, 14, 68], groups))
    error = admin.delete_consumer_groups(["g"])["g"].error
    assert error is not None and error.message == "Group g has members." and len(groups) == 3


def test_an_older_broker_is_asked_for_one_coordinator_at_a_time() -> None:
    admin, home, away = set_up()
    for broker in (home, away):
        broker.highest = {10: 3}
        broker.on(FindCoordinatorRequest, finding({"g": [1], "h": [2]}))
        broker.on(DeleteGroupsRequest, deletion([], []))
    assert all(item.error is None for item in admin.delete_consumer_groups(["g", "h"]).values())


def test_transactional_ids_are_fenced_one_request_each() -> None:
    admin, home, away = set_up()
    kinds: list[int] = []
    find = finding({"t": [1], "u": [1]})

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, FindCoordinatorRequest)
        kinds.append(request.key_type)
        return find(request, version)

    codes = [51, 0, 0]
    for broker in (home, away):
        broker.on(FindCoordinatorRequest, handle)
    home.on(
        InitProducerIdRequest,
        lambda request, version: InitProducerIdResponse(error_code=codes.pop(0), producer_id=7, producer_epoch=3),
    )
    found = admin.fence_producers(["t", "u"])
    assert [item.get() for item in found.values()] == [(7, 3), (7, 3)]
    assert set(kinds) == {1} and asked(home, InitProducerIdRequest) == 3


def records_handler(codes: list[int]) -> Handler:
    def handle(request: Message, version: int) -> object:
        assert isinstance(request, DeleteRecordsRequest)
        code = codes.pop(0) if codes else 0
        return deleted.DeleteRecordsResponse(
            topics=[
                deleted.DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        deleted.DeleteRecordsPartitionResult(
                            partition_index=row.partition_index, low_watermark=row.offset, error_code=code
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return handle


def test_a_leader_that_moved_is_looked_up_again_and_a_dead_one_hides_nothing() -> None:
    admin, home, away = set_up(timeout_ms=2_000)
    home.on(DeleteRecordsRequest, records_handler([6]))
    away.up = False
    first, second = TopicPartition("a", 0), TopicPartition("a", 1)
    found = admin.delete_records({first: 5, second: 6})
    assert found[first].get() == 5
    error = found[second].error
    assert error is not None and error.name == "NETWORK_EXCEPTION"
    assert asked(home, DeleteRecordsRequest) == 2


def log_dirs(request: Message, version: int) -> object:
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="data")])


def test_brokers_are_asked_at_the_same_time() -> None:
    """A broker that does not answer costs the others nothing, and the call no more than its timeout."""
    admin, home, away = set_up(timeout_ms=500)
    home.on(DescribeLogDirsRequest, log_dirs)
    away.on(DescribeLogDirsRequest, lambda request, version: SILENCE)
    before_ms = admin._cluster.network.now_ms()
    found = admin.describe_log_dirs([2, 1, 9])
    assert found[1].get()[0].path == "data"
    assert isinstance(found[2].error, RequestTimeoutError)
    assert found[9].error is not None and found[9].error.name == "BROKER_NOT_AVAILABLE"
    assert admin._cluster.network.now_ms() - before_ms < 600


def test_timeout_ms_ends_a_call_that_finds_no_controller() -> None:
    admin, home, _ = set_up()
    home.on(CreateTopicsRequest, creation([{"x": 41}] * 200))
    before_ms = admin._cluster.network.now_ms()
    error = admin.create_topics([NewTopic("x")], timeout_ms=3_000)["x"].error
    assert error is not None and error.name == "NOT_CONTROLLER"
    assert 1_500 < admin._cluster.network.now_ms() - before_ms <= 3_100


def test_a_listing_names_the_broker_that_is_missing() -> None:
    admin, home, away = set_up(timeout_ms=1_000)
    group = ListedGroup(group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic")
    home.on(ListGroupsRequest, lambda request, version: ListGroupsResponse(groups=[group]))
    away.on(ListGroupsRequest, lambda request, version: ListGroupsResponse(error_code=30))
    listing = admin.list_groups()
    assert [item.group_id for item in listing.found] == ["g"] and list(listing.errors) == [2]
    with pytest.raises(ClientError, match="group"):
        listing.get()


def test_a_broker_that_left_is_no_longer_asked_and_the_others_are_asked_anew() -> None:
    """Its groups may have gone over to a broker that had answered before."""
    admin, home, away = set_up()
    away.up = False
    known = [{1: HOME, 2: AWAY}, {1: HOME}]
    home.on(
        MetadataRequest,
        lambda request, version: metadata({}, known.pop(0) if len(known) > 1 else known[0])(request, version),
    )
    groups: list[list[ListedGroup]] = [[], [ListedGroup(group_id="moved")]]
    home.on(ListGroupsRequest, lambda request, version: ListGroupsResponse(groups=groups.pop(0)))
    assert [item.group_id for item in admin.list_groups().get()] == ["moved"]


def test_an_item_that_the_answer_leaves_out_is_an_error_of_its_own() -> None:
    admin, home, _ = set_up()
    home.on(CreateTopicsRequest, lambda request, version: CreateTopicsResponse(topics=[]))
    error = admin.create_topics([NewTopic("x")])["x"].error
    assert error is not None and "leaves out x" in error.message


def without(broker: ScriptedBroker, key: int) -> Callable[[], ApiVersionsResponse]:
    rows: list[ApiVersion] = [row for row in broker.versions().api_keys if row.api_key != key]
    return lambda: ApiVersionsResponse(api_keys=rows)


def test_an_api_that_is_not_offered_is_named() -> None:
    admin, home, _ = set_up()
    home.versions = without(home, 57)  # type: ignore[method-assign]
    with pytest.raises(UnsupportedVersionError, match="does not offer UpdateFeatures"):
        admin.update_features({"group.version": FeatureUpdate(1)})


def test_a_marker_goes_to_the_leader_of_the_partition() -> None:
    admin, _, away = set_up()
    seen: list[WriteTxnMarkersRequest] = []

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, WriteTxnMarkersRequest)
        seen.append(request)
        row = WritableTxnMarkerPartitionResult(partition_index=1, error_code=0 if len(seen) > 1 else 6)
        topic = WritableTxnMarkerTopicResult(name="a", partitions=[row])
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=5, topics=[topic])])

    away.on(WriteTxnMarkersRequest, handle)
    admin.abort_transaction(AbortTransaction(TopicPartition("a", 1), 5, 2, 3))
    marker = seen[1].markers[0]
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (5, 2, 3)
    assert not marker.transaction_result and len(seen) == 2


def test_controllers_are_asked_through_the_active_one() -> None:
    home, away = ScriptedBroker(), ScriptedBroker()

    def describe(request: Message, version: int) -> object:
        assert isinstance(request, DescribeClusterRequest) and request.endpoint_type == 2
        rows = [
            described.DescribeClusterBroker(broker_id=key, host=at[0], port=at[1]) for key, at in ((1, HOME), (2, AWAY))
        ]
        return described.DescribeClusterResponse(endpoint_type=2, cluster_id="c", controller_id=2, brokers=rows)

    for broker in (home, away):
        broker.on(DescribeClusterRequest, describe)
    offered = away.versions()
    offered.api_keys.append(ApiVersion(api_key=82, min_version=0, max_version=0))
    away.versions = lambda: offered  # type: ignore[method-assign]
    away.on(UpdateRaftVoterRequest, lambda request, version: UpdateRaftVoterResponse(error_code=0))
    admin = Admin(bootstrap_controllers="broker:9092", config=wired(network=FakeNetwork({HOME: home, AWAY: away})))
    admin.update_raft_voter(1, bytes(range(16)), [RaftEndpoint("CONTROLLER", "away", 9093)], leader_epoch=3)
    (sent,) = [request for _, request in away.seen if isinstance(request, UpdateRaftVoterRequest)]
    assert (sent.voter_id, sent.current_leader_epoch, sent.listeners[0].port) == (1, 3, 9093)
    with pytest.raises(ClientError, match="do not know topics"):
        admin.describe_producers([TopicPartition("a", 0)])


def test_brokers_and_controllers_cannot_both_be_given() -> None:
    with pytest.raises(ConfigError, match="not both"):
        Admin("broker:9092", bootstrap_controllers="broker:9093")
