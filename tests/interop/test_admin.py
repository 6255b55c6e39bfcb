"""Moldau's admin client against Moldau and against Apache Kafka: the same calls, the same outcomes.

What Moldau does not serve yet must be refused with an error that names the api; once it is served the test demands it.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.api.registry import BROKER_HANDLERS
from moldau.client import Producer
from moldau.client import admin as admins
from moldau.client.admin import BROKER, CLIENT_METRICS, GROUP, TOPIC, Admin, ConfigChange, ConfigResource, NewTopic
from moldau.client.errors import ClientError, UnsupportedVersionError
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import api_keys
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.interop.conftest import require_kafka, stop_cleanly
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import MoldauNode, Node
from tests.interop.peers import Peer
from tests.pace import patience, patience_ms

ID = bytes(range(1, 17))
TOPIC_CONFIG = 1


class Side:
    """One of the two clusters: the client under test, and raw requests to bring about what it shall see."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.is_moldau = isinstance(node, MoldauNode)
        self.admin = Admin(node.bootstrap, default_api_timeout_ms=patience_ms(30_000))
        self.peer = Peer(node)

    def close(self) -> None:
        self.admin.close()
        self.peer.close()


@pytest.fixture(params=["kafka", "moldau"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    found = Side(request.getfixturevalue("oracle" if request.param == "kafka" else "moldau_server"))
    yield found
    found.close()


def unless_unserved(test: Callable[..., None]) -> Callable[..., None]:
    """A test that Moldau may end with an error for an api that it does not serve."""

    @functools.wraps(test)
    def run(side: Side, **fixtures: Any) -> None:
        try:
            test(side=side, **fixtures)
        except UnsupportedVersionError as error:
            named = re.search(r"does not offer (\w+)", error.message)
            if not side.is_moldau or named is None or api_keys.BY_NAME[named[1]].key in BROKER_HANDLERS:
                raise

    return run


def code(outcome: Outcome[Any]) -> str:
    """The name of an outcome's error; an api that is not served ends the test."""
    if isinstance(outcome.error, UnsupportedVersionError):
        raise outcome.error
    return "NONE" if outcome.error is None else outcome.error.name


def made(side: Side, topic: str, partitions: int = 2, records: int = 0) -> TopicPartition:
    """A topic with records in its first partition."""
    side.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].get()
    eventually(lambda: code(side.admin.describe_topics([topic])[topic]), "NONE")
    if records:
        with Producer(side.node.bootstrap) as producer:
            for number in range(records):
                producer.send(topic, b"%d" % number, partition=0)
    return TopicPartition(topic, 0)


def eventually(observe: Callable[[], object], expected: object) -> None:
    """A broker shows a change a moment after the controller has made it."""
    deadline = time.monotonic() + patience(10)
    while (found := observe()) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found == expected


def test_topics_are_created_described_extended_and_deleted(side: Side, topic: str) -> None:
    admin, other = side.admin, f"{topic}-other"
    created = admin.create_topics([NewTopic(topic, 2, 1, {"retention.ms": "5000000"}), NewTopic("a b", 1, 1)])
    assert (created[topic].get().partitions, code(created["a b"])) == (2, "INVALID_TOPIC_EXCEPTION")
    assert (created[topic].get().configs or {})["retention.ms"] == "5000000"
    assert code(admin.create_topics([NewTopic(topic)])[topic]) == "TOPIC_ALREADY_EXISTS"
    assert code(admin.create_topics([NewTopic(other)], validate_only=True)[other]) == "NONE"
    extended = admin.create_partitions({topic: 3, other: 5})
    assert (code(extended[topic]), code(extended[other])) == ("NONE", "UNKNOWN_TOPIC_OR_PARTITION")
    eventually(lambda: [item.partition for item in admin.partitions_of(topic)], [0, 1, 2])
    found = admin.describe_topics([topic, other])
    assert found[topic].get().partitions[0].eligible_leader_replicas == []
    assert code(found[other]) == "UNKNOWN_TOPIC_OR_PARTITION"
    topic_id = found[topic].get().topic_id
    by_id = admin.describe_topics_by_id([topic_id, ID])
    assert (by_id[topic_id].get().name, code(by_id[ID])) == (topic, "UNKNOWN_TOPIC_ID")
    assert topic in [item.name for item in admin.list_topics()]
    deleted = admin.delete_topics_by_id([topic_id, ID])
    assert (code(deleted[topic_id]), code(deleted[ID])) == ("NONE", "UNKNOWN_TOPIC_ID")
    eventually(lambda: code(admin.delete_topics([topic])[topic]), "UNKNOWN_TOPIC_OR_PARTITION")


def test_records_are_deleted_and_offsets_listed(side: Side, topic: str) -> None:
    first = made(side, topic, records=10)
    missing, beyond = TopicPartition(topic, 9), TopicPartition(topic, 1)
    deleted = side.admin.delete_records({first: 4, missing: 1, beyond: 5})
    assert deleted[first].get() == 4
    assert (code(deleted[missing]), code(deleted[beyond])) == ("UNKNOWN_TOPIC_OR_PARTITION", "OFFSET_OUT_OF_RANGE")
    assert side.admin.list_offsets({first: EARLIEST})[first].get().offset == 4
    assert side.admin.list_offsets({first: LATEST})[first].get().offset == 10


def test_configs_are_changed_one_by_one_and_all_at_once(side: Side, topic: str) -> None:
    made(side, topic)
    admin, resource, missing = side.admin, ConfigResource(TOPIC, topic), ConfigResource(TOPIC, f"{topic}-none")
    changes = [ConfigChange("retention.ms", "7000000"), ConfigChange("cleanup.policy", "compact", admins.APPEND)]
    altered = admin.incremental_alter_configs({resource: changes, missing: changes})
    assert (code(altered[resource]), code(altered[missing])) == ("NONE", "UNKNOWN_TOPIC_OR_PARTITION")
    wanted = ["retention.ms", "cleanup.policy"]

    def values() -> dict[str, str | None]:
        found = admin.describe_configs([resource], include_synonyms=True, names=wanted)
        return {entry.name: entry.value for entry in found[resource].get()}

    eventually(values, {"retention.ms": "7000000", "cleanup.policy": "delete,compact"})
    assert code(admin.describe_configs([missing])[missing]) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert code(admin.alter_configs({resource: {"segment.bytes": "2000000"}})[resource]) == "NONE"

    def own() -> list[str]:
        entries = admin.describe_configs([resource])[resource].get()
        return [entry.name for entry in entries if entry.source == TOPIC_CONFIG]

    eventually(own, ["segment.bytes"])


def test_configs_of_brokers_groups_and_client_metrics(side: Side, topic: str) -> None:
    admin = side.admin
    broker, group, metrics = ConfigResource(BROKER, "1"), ConfigResource(GROUP, topic), ConfigResource(16, topic)
    nobody = ConfigResource(BROKER, "77")
    found = admin.describe_configs([broker, nobody])
    assert len(found[broker].get()) > 200 and code(found[nobody]) == "INVALID_REQUEST"
    changes = {
        group: [ConfigChange("consumer.session.timeout.ms", "50000")],
        metrics: [ConfigChange("interval.ms", "1000")],
    }
    assert [code(item) for item in admin.incremental_alter_configs(changes).values()] == ["NONE", "NONE"]
    wanted = {broker, group, metrics}
    eventually(lambda: wanted & set(admin.list_config_resources()), wanted)
    assert metrics in admin.list_config_resources([CLIENT_METRICS])
    assert topic in admin.list_client_metrics_resources()
    undo = {item: [ConfigChange(rows[0].name, None, admins.DELETE)] for item, rows in changes.items()}
    assert [code(item) for item in admin.incremental_alter_configs(undo).values()] == ["NONE", "NONE"]


def test_log_directories_are_described(side: Side, topic: str) -> None:
    first = made(side, topic, records=5)
    found = side.admin.describe_log_dirs([1, 77], [first])
    assert code(found[77]) == "BROKER_NOT_AVAILABLE"
    (directory,) = found[1].get()
    assert [item.partition for item in directory.replicas] == [first] and directory.replicas[0].size > 0
    replica = admins.TopicPartitionReplica(topic, 0, 1)
    located = side.admin.describe_replica_log_dirs([replica])[replica].get()
    assert (located.current_directory, located.future_directory) == (directory.path, None)


@unless_unserved
def test_a_replica_is_moved_only_to_a_directory_that_exists(side: Side, topic: str) -> None:
    first = made(side, topic)
    path = side.admin.describe_log_dirs([1], [first])[1].get()[0].path
    stays, goes = admins.TopicPartitionReplica(topic, 0, 1), admins.TopicPartitionReplica(topic, 1, 1)
    moved = side.admin.alter_replica_log_dirs({stays: path, goes: "/nowhere"})
    assert (code(moved[stays]), code(moved[goes])) == ("NONE", "LOG_DIR_NOT_FOUND")


def test_the_cluster_and_its_features(side: Side) -> None:
    found = side.admin.describe_cluster(include_fenced_brokers=True, include_authorized_operations=True)
    assert (found.cluster_id, found.controller_id, found.fenced) == (side.node.cluster_id, 1, set())
    assert [broker.port for broker in found.brokers] == [side.node.port]
    assert found.authorized_operations and admins.AclOperation.ALTER in found.authorized_operations
    features = side.admin.describe_features()
    assert features.finalized["metadata.version"].highest == 30 and "group.version" in features.supported
    assert side.admin.describe_features(broker_id=1).supported == features.supported
    wrong = side.admin.update_features({"nope": admins.FeatureUpdate(3)}, validate_only=True)
    assert code(wrong["nope"]) == "INVALID_UPDATE_VERSION"
    assert code(side.admin.update_features({"group.version": admins.FeatureUpdate(1)}, True)["group.version"]) == "NONE"


def test_the_metadata_quorum(side: Side) -> None:
    found = side.admin.describe_metadata_quorum()
    assert found.leader_id == 1 and [item.replica_id for item in found.voters] == [1] and not found.observers
    assert found.high_watermark > 0
    with Admin(bootstrap_controllers=f"{side.node.host}:{side.node.controller_port}") as controllers:
        assert controllers.describe_metadata_quorum().leader_id == 1
        described = controllers.describe_cluster()
        assert [broker.port for broker in described.brokers] == [side.node.controller_port]
        with pytest.raises(ClientError, match="do not know topics"):
            controllers.list_topics()


@unless_unserved
def test_a_voter_that_is_none_cannot_be_removed(side: Side) -> None:
    with pytest.raises(ClientError) as caught:
        side.admin.remove_raft_voter(9, ID)
    if isinstance(caught.value, UnsupportedVersionError) and "does not offer" in caught.value.message:
        raise caught.value
    # The voters of these nodes are in their settings.
    assert caught.value.name in ("UNSUPPORTED_VERSION", "VOTER_NOT_FOUND")


@unless_unserved
def test_a_broker_that_is_not_registered_cannot_be_unregistered(side: Side) -> None:
    try:
        side.admin.unregister_broker(77)
    except UnsupportedVersionError:
        raise
    except ClientError as error:
        assert error.name == "BROKER_ID_NOT_REGISTERED"
    else:
        raise AssertionError("broker 77 was unregistered")


def test_leaders_are_elected_where_that_is_needed(side: Side, topic: str) -> None:
    first = made(side, topic)
    missing = TopicPartition(f"{topic}-none", 0)
    found = side.admin.elect_leaders(admins.PREFERRED, [first, missing])
    assert (code(found[first]), code(found[missing])) == ("ELECTION_NOT_NEEDED", "UNKNOWN_TOPIC_OR_PARTITION")
    assert first not in side.admin.elect_leaders()


@unless_unserved
def test_partitions_are_reassigned(side: Side, topic: str) -> None:
    first = made(side, topic, 3)
    second, third = TopicPartition(topic, 1), TopicPartition(topic, 2)
    assert side.admin.list_partition_reassignments() == {}
    found = side.admin.alter_partition_reassignments({first: [1], second: [77], third: None})
    expected = ["NONE", "INVALID_REPLICA_ASSIGNMENT", "NO_REASSIGNMENT_IN_PROGRESS"]
    assert [code(found[item]) for item in (first, second, third)] == expected


def test_producers_are_described(side: Side, topic: str) -> None:
    first = made(side, topic, records=3)
    missing = TopicPartition(topic, 9)
    found = side.admin.describe_producers([first, missing])
    (producer,) = found[first].get()
    assert (producer.producer_epoch, producer.last_sequence, producer.current_transaction_start_offset) == (0, 2, None)
    assert code(found[missing]) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert side.admin.describe_producers([first], broker_id=1)[first].get() == [producer]


def test_transactional_ids_are_fenced_described_and_listed(side: Side, topic: str) -> None:
    if side.is_moldau and api_keys.BY_NAME["EndTxn"].key not in BROKER_HANDLERS:
        return  # There is no coordinator of transactions that could be asked, and the client would wait for one.
    fenced = side.admin.fence_producers([topic])[topic].get()
    found = side.admin.describe_transactions([topic, f"{topic}-none"])
    described = found[topic].get()
    assert (described.producer_id, described.state, described.partitions) == (fenced.producer_id, "Empty", [])
    assert code(found[f"{topic}-none"]) == "TRANSACTIONAL_ID_NOT_FOUND"
    listed = side.admin.list_transactions(producer_ids=[fenced.producer_id]).get()
    assert [(item.transactional_id, item.coordinator_id) for item in listed] == [(topic, 1)]
    assert side.admin.list_transactions(states=["Ongoing"], producer_ids=[fenced.producer_id]).get() == []
    side.admin.force_terminate_transaction(topic)
    assert side.admin.describe_transactions([topic])[topic].get().producer_epoch > fenced.producer_epoch


@unless_unserved
def test_an_abort_marker_is_written_into_a_partition(side: Side, topic: str) -> None:
    first = made(side, topic, records=1)
    side.admin.abort_transaction(admins.AbortTransaction(first, 4_000_000, 0))
    assert side.admin.list_offsets({first: LATEST})[first].get().offset == 2


@unless_unserved
def test_offsets_of_a_group_are_set_listed_and_deleted(side: Side, topic: str) -> None:
    first = made(side, topic)
    second, missing = TopicPartition(topic, 1), TopicPartition(f"{topic}-none", 0)
    admin = side.admin
    offsets: dict[TopicPartition, admins.OffsetAndMetadata | int]
    offsets = {first: 5, second: admins.OffsetAndMetadata(3, 0, "note"), missing: 1}
    set_to = admin.alter_consumer_group_offsets(topic, offsets)
    assert [code(item) for item in set_to.values()] == ["NONE", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    found = admin.list_consumer_group_offsets({topic: None, f"{topic}-none": [first]}, require_stable=True)
    listed = {partition: item.get() for partition, item in found[topic].get().items()}
    assert listed == {first: admins.OffsetAndMetadata(5), second: admins.OffsetAndMetadata(3, 0, "note")}
    assert found[f"{topic}-none"].get()[first].get() is None
    assert topic in [group.group_id for group in admin.list_consumer_groups(states=["Empty"]).get() if group.is_simple]
    described = admin.describe_consumer_groups([topic, f"{topic}-none"])
    assert (described[topic].get().state, described[topic].get().is_simple) == ("Empty", True)
    assert code(described[f"{topic}-none"]) == "GROUP_ID_NOT_FOUND"
    assert code(admin.delete_consumer_group_offsets(topic, [first])[first]) == "NONE"
    assert list(admin.list_consumer_group_offsets({topic: None})[topic].get()) == [second]
    deleted = admin.delete_consumer_groups([topic, f"{topic}-none"])
    assert [code(item) for item in deleted.values()] == ["NONE", "GROUP_ID_NOT_FOUND"]


@unless_unserved
def test_a_consumer_group_with_a_member(side: Side, topic: str) -> None:
    first = made(side, topic)
    admin = side.admin
    assert code(admin.describe_consumer_groups([topic])[topic]) == "GROUP_ID_NOT_FOUND"
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=topic,
        member_id="member-0000000000000001",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[topic],
        server_assignor="uniform",
        topic_partitions=[],
    )

    def beat() -> list[TopicPartition] | None:
        """The coordinator may learn of the topic after the member has joined."""
        answer = side.peer.ask(heartbeat, 1)
        assert answer.error_code == 0
        heartbeat.member_epoch = answer.member_epoch
        return admin.describe_consumer_groups([topic])[topic].get().members[0].target_assignment

    eventually(beat, [first, TopicPartition(topic, 1)])
    found = admin.describe_consumer_groups([topic])[topic].get()
    (member,) = found.members
    assert (found.type, found.assignor, found.coordinator.id) == ("consumer", "uniform", 1)
    assert (member.subscribed_topics, member.is_upgraded) == ([topic], True)
    listed = [item for item in admin.list_groups(types=["consumer"]).get() if item.group_id == topic]
    assert [(item.protocol_type, item.type.lower()) for item in listed] == [("consumer", "consumer")]
    assert code(admin.delete_consumer_groups([topic])[topic]) == "NON_EMPTY_GROUP"
    removed = admin.remove_members_from_consumer_group(topic, None, "test")
    assert [code(item) for item in removed.values()] == ["NONE"]
    assert code(admin.delete_consumer_groups([topic])[topic]) == "NONE"


@unless_unserved
def test_a_classic_group_with_a_member(side: Side, topic: str) -> None:
    admin = side.admin
    assert code(admin.describe_classic_groups([topic])[topic]) == "GROUP_ID_NOT_FOUND"
    join = JoinGroupRequest(
        group_id=topic,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        group_instance_id="one",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=_subscription(topic))],
    )
    joined = side.peer.ask(join, 5)
    assert joined.error_code == 0
    assigned = b"\0\0" + (1).to_bytes(4, "big") + _text(topic) + (1).to_bytes(4, "big") + bytes(4) + b"\xff" * 4
    sync = SyncGroupRequest(
        group_id=topic,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="one",
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assigned)],
    )
    assert side.peer.ask(sync, 3).error_code == 0
    group = admin.describe_classic_groups([topic])[topic].get()
    assert (group.protocol_type, group.protocol, group.state) == ("consumer", "range", "Stable")
    (member,) = admin.describe_consumer_groups([topic])[topic].get().members
    assert (member.group_instance_id, member.assignment) == ("one", [TopicPartition(topic, 0)])
    assert member.subscribed_topics == [topic]
    wanted, nobody = admins.MemberToRemove("one"), admins.MemberToRemove(member_id="nobody")
    removed = admin.remove_members_from_consumer_group(topic, [wanted, nobody])
    assert (code(removed[wanted]), code(removed[nobody])) == ("NONE", "UNKNOWN_MEMBER_ID")


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _subscription(topic: str) -> bytes:
    return b"\0\0" + (1).to_bytes(4, "big") + _text(topic) + b"\xff" * 4


@unless_unserved
def test_a_share_group_with_a_member(side: Side, topic: str) -> None:
    first = made(side, topic)
    admin = side.admin
    assert code(admin.describe_share_groups([topic])[topic]) == "GROUP_ID_NOT_FOUND"
    heartbeat = ShareGroupHeartbeatRequest(
        group_id=topic, member_id="AAAAAAAAAAAAAAAAAAAAAg", member_epoch=0, subscribed_topic_names=[topic]
    )
    assert side.peer.ask(heartbeat, 1).error_code == 0
    found = admin.describe_share_groups([topic])[topic].get()
    assert (found.type, len(found.members), found.members[0].subscribed_topics) == ("share", 1, [topic])
    assert code(admin.alter_share_group_offsets(topic, {first: 1})[first]) == "NON_EMPTY_GROUP"
    assert code(admin.delete_share_groups([topic])[topic]) == "NON_EMPTY_GROUP"


@unless_unserved
def test_offsets_of_a_share_group_are_set_listed_and_deleted(side: Side, topic: str) -> None:
    first = made(side, topic, records=5)
    missing = f"{topic}-none"
    admin = side.admin
    assert code(admin.alter_share_group_offsets(topic, {first: 2})[first]) == "NONE"
    found = admin.list_share_group_offsets({topic: None, missing: [first]})
    begin = found[topic].get()[first].get()
    assert begin is not None and (begin.start_offset, begin.lag) == (2, 3)
    assert found[missing].get()[first].get() is None
    deleted = admin.delete_share_group_offsets(topic, [topic, missing])
    assert [code(item) for item in deleted.values()] == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert code(admin.delete_share_groups([topic])[topic]) == "NONE"


@unless_unserved
def test_a_streams_group_that_does_not_exist(side: Side, topic: str) -> None:
    admin, first = side.admin, TopicPartition(topic, 0)
    assert code(admin.describe_streams_groups([topic])[topic]) == "GROUP_ID_NOT_FOUND"
    assert code(admin.delete_streams_groups([topic])[topic]) == "GROUP_ID_NOT_FOUND"
    assert code(admin.delete_streams_group_offsets(topic, [first])[first]) == "GROUP_ID_NOT_FOUND"
    assert admin.list_streams_group_offsets({topic: [first]})[topic].get()[first].get() is None


@unless_unserved
def test_users_get_and_lose_scram_credentials(side: Side, topic: str) -> None:
    admin, other, missing = side.admin, f"{topic}-b", f"{topic}-none"
    strong = admins.ScramMechanism.SCRAM_SHA_512
    set_to = admin.alter_user_scram_credentials(
        [
            admins.ScramUpsertion(topic, "secret"),
            admins.ScramUpsertion(other, b"secret", strong, 8192, b"salt"),
            admins.ScramDeletion(missing),
        ]
    )
    assert [code(item) for item in set_to.values()] == ["NONE", "NONE", "RESOURCE_NOT_FOUND"]
    eventually(lambda: {topic, other} <= set(admin.describe_user_scram_credentials()), True)
    found = admin.describe_user_scram_credentials([topic, other, missing])
    assert found[other].get() == [admins.ScramCredential(strong, 8192)]
    assert code(found[missing]) == "RESOURCE_NOT_FOUND"
    removed = admin.alter_user_scram_credentials([admins.ScramDeletion(topic), admins.ScramDeletion(other, strong)])
    assert [code(item) for item in removed.values()] == ["NONE", "NONE"]


@unless_unserved
def test_client_quotas_are_set_described_and_removed(side: Side, topic: str) -> None:
    admin = side.admin
    entity = admins.QuotaEntity.of({"user": topic, "client-id": None})
    wrong = admins.QuotaEntity.of({"user": f"{topic}-b"})
    set_to = admin.alter_client_quotas({entity: {"producer_byte_rate": 1000}, wrong: {"nope": 1}})
    assert (code(set_to[entity]), code(set_to[wrong])) == ("NONE", "INVALID_REQUEST")
    exact = [admins.QuotaFilter("user", 0, topic), admins.QuotaFilter("client-id", 1)]
    eventually(lambda: admin.describe_client_quotas(exact, strict=True), {entity: {"producer_byte_rate": 1000.0}})
    assert entity in admin.describe_client_quotas()
    assert code(admin.alter_client_quotas({entity: {"producer_byte_rate": None}})[entity]) == "NONE"
    eventually(lambda: admin.describe_client_quotas(exact), {})


@unless_unserved
def test_without_an_authorizer_there_are_no_acls(side: Side) -> None:
    binding = admins.AclBinding(admins.ResourceType.TOPIC, "x", "User:a", admins.AclOperation.READ)
    assert code(side.admin.create_acls([binding])[binding]) == "SECURITY_DISABLED"
    assert code(side.admin.delete_acls([admins.AclFilter()])[admins.AclFilter()]) == "SECURITY_DISABLED"
    assert _failure(side.admin.describe_acls) == "SECURITY_DISABLED"


@unless_unserved
def test_without_authentication_there_are_no_delegation_tokens(side: Side) -> None:
    refused = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    assert _failure(side.admin.create_delegation_token) == refused
    assert _failure(side.admin.describe_delegation_token) == refused
    assert _failure(lambda: side.admin.renew_delegation_token(b"x")) == refused
    assert _failure(lambda: side.admin.expire_delegation_token(b"x")) == refused


def _failure(call: Callable[[], object]) -> str:
    try:
        call()
    except UnsupportedVersionError:
        raise
    except ClientError as error:
        return error.name
    return "NONE"


@unless_unserved
def test_the_example_of_the_documentation_runs(side: Side, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    side.admin.list_consumer_group_offsets({topic: None})  # the first group of all makes brokers busy for a while
    document = (Path(__file__).parents[2] / "docs" / "admin.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    exec(example.replace("localhost:9092", side.node.bootstrap).replace('"orders"', repr(topic)), {})
    printed = capsys.readouterr().out
    assert "offset=42" in printed and "skip the bad ones" in printed and printed.splitlines()[1] == "audit {}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """An Apache Kafka with an authorizer and two log directories."""
    require_kafka()
    folder = tmp_path_factory.mktemp("guarded")
    overrides = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "log.dirs": f"{folder / 'one'},{folder / 'two'}",
    }
    node = KafkaNode(folder, overrides)
    node.format()
    node.start()
    found = Side(node)
    yield found
    found.close()
    stop_cleanly(node)


def test_acls_are_created_found_and_deleted(guarded: Side, topic: str) -> None:
    admin = guarded.admin
    reads = admins.AclBinding(admins.ResourceType.TOPIC, topic, "User:alice", admins.AclOperation.READ)
    prefix = reads._replace(pattern_type=admins.PatternType.PREFIXED, permission=admins.AclPermission.DENY)
    assert [code(item) for item in admin.create_acls([reads, prefix]).values()] == ["NONE", "NONE"]
    of_topic = admins.AclFilter(admins.ResourceType.TOPIC, topic)
    eventually(lambda: admin.describe_acls(of_topic), [prefix, reads])
    longer = admins.AclFilter(resource_name=f"{topic}-longer", pattern_type=admins.PatternType.MATCH)
    assert admin.describe_acls(longer) == [prefix]
    nobody = admins.AclFilter(principal="User:nobody")
    deleted = admin.delete_acls([of_topic, nobody])
    assert {rule: code(item) for rule, item in deleted[of_topic].get().items()} == {reads: "NONE", prefix: "NONE"}
    assert deleted[nobody].get() == {}
    eventually(lambda: admin.describe_acls(of_topic), [])


def test_a_replica_moves_from_one_directory_to_the_other(guarded: Side, topic: str) -> None:
    made(guarded, topic, partitions=1, records=10)
    admin, replica = guarded.admin, admins.TopicPartitionReplica(topic, 0, 1)
    paths = {item.path for item in admin.describe_log_dirs([1])[1].get()}
    before = admin.describe_replica_log_dirs([replica])[replica].get().current_directory
    (other,) = paths - {before}
    assert code(admin.alter_replica_log_dirs({replica: other})[replica]) == "NONE"
    moved = admins.ReplicaLogDirInfo(other, 0, None, -1)
    eventually(lambda: admin.describe_replica_log_dirs([replica])[replica].get(), moved)
