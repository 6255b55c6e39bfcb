"""Every API asks for the rights that Kafka asks for, in its order, and refuses with its errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from moldau.api import registry
from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.node.context import ClientContext
from moldau.node.envelope import pack, unpack_context
from moldau.protocol import api_table as api
from moldau.protocol import errors
from moldau.protocol.api_keys import BY_KEY
from moldau.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.headers import ResponseHeader
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.list_transactions_request import ListTransactionsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from moldau.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.primitives import EncodeError, Message, Reader
from moldau.protocol.stored.metadata_records import AccessControlEntryRecord
from moldau.protocol.uuids import ZERO_UUID
from moldau.security.rights import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    mask,
)
from tests.unit.api.rights_table import AUTHORIZATION, T29, Need, Row, batch, rows
from tests.unit.node.cluster import frame_of
from tests.unit.node.world import NodeWorld, produce_request

ANNA = "User:anna"
NOT_IN_THE_TABLE = {
    api.API_VERSIONS: "nothing is checked",
    api.SASL_HANDSHAKE: "nothing is checked",
    api.SASL_AUTHENTICATE: "nothing is checked",
    api.GET_TELEMETRY_SUBSCRIPTIONS: "nothing is checked",
    api.PUSH_TELEMETRY: "nothing is checked",
    api.LIST_GROUPS: "leaves out what may not be seen: see below",
    api.LIST_TRANSACTIONS: "leaves out what may not be seen: see below",
    api.CREATE_DELEGATION_TOKEN: "has errors of its own: see test_delegation_tokens.py",
    api.RENEW_DELEGATION_TOKEN: "owners and renewers may",
    api.EXPIRE_DELEGATION_TOKEN: "owners and renewers may",
    api.DESCRIBE_DELEGATION_TOKEN: "leaves out what may not be seen: see test_delegation_tokens.py",
}


class RightsWorld(NodeWorld):
    """A node with an authorizer. Whoever sets it up is a super user, who asks afterwards is anna."""

    def __init__(self, **settings: str) -> None:
        super().__init__(
            authorizer_class_name=STANDARD_AUTHORIZER,
            super_users="User:admin",
            offsets_topic_replication_factor="1",
            offsets_topic_num_partitions="2",
            transaction_state_log_replication_factor="1",
            transaction_state_log_min_isr="1",
            transaction_state_log_num_partitions="2",
            share_coordinator_state_topic_replication_factor="1",
            share_coordinator_state_topic_min_isr="1",
            share_coordinator_state_topic_num_partitions="2",
            **settings,
        )
        self.ids = 0

    def start(self) -> RightsWorld:
        super().start()
        self.become("User:admin")
        return self

    def become(self, principal: str, on_controller: bool = False, peer: str = "10.1.1.1:99") -> None:
        self.context = ClientContext("CONTROLLER" if on_controller else "PLAINTEXT", peer, on_controller)
        self.context.principal = principal

    def allow(self, *needs: Need, permission: int = ALLOW) -> list[bytes]:
        return [self.add(need.resource_type, need.name, need.operation, permission) for need in needs]

    def add(
        self,
        resource_type: int,
        name: str,
        operation: int,
        permission: int = ALLOW,
        principal: str = ANNA,
        host: str = "*",
        pattern: int = LITERAL,
    ) -> bytes:
        self.ids += 1
        acl_id = self.ids.to_bytes(16, "big")
        record = AccessControlEntryRecord(acl_id, resource_type, name, pattern, principal, host, operation, permission)
        assert self.node.rights is not None
        self.node.rights.authorizer.apply({acl_id: record})
        return acl_id

    def forget(self, *acl_ids: bytes) -> None:
        assert self.node.rights is not None
        self.node.rights.authorizer.apply(dict.fromkeys(acl_ids))


@cache
def shared_world() -> RightsWorld:
    world = RightsWorld().start()
    world.create("t", 1)
    for kind, key in ((0, "g"), (1, "x")):
        world.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)
    world.run(300)
    # Offsets can only be taken away from a share group that is there.
    partition = AlterShareGroupOffsetsRequestPartition(start_offset=0)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[partition])
    world.send(AlterShareGroupOffsetsRequest(group_id="s2", topics=[topic]), 0)
    world.run(600)
    return world


@cache
def table() -> list[Row]:
    return rows(shared_world().node.image.topics_by_name["t"].topic_id)


TITLES = [row.title for row in rows(ZERO_UUID)]
each_row = pytest.mark.parametrize("number", range(len(TITLES)), ids=TITLES)


@pytest.fixture
def world() -> Iterator[RightsWorld]:
    """Shared, with no ACL left over from another test."""
    world = shared_world()
    first = world.ids
    yield world
    if "new" in world.node.image.topics_by_name:
        world.become("User:admin")
        world.delete("new")
    world.forget(*[number.to_bytes(16, "big") for number in range(first + 1, world.ids + 1)])


def codes_of(value: Any) -> set[int]:
    """All error codes in a response, wherever they are."""
    found: set[int] = set()
    if isinstance(value, Message):
        for name in type(value).FIELDS:
            inner = getattr(value, name)
            if name.endswith("error_code"):
                found.add(inner)
            else:
                found |= codes_of(inner)
    elif isinstance(value, list):
        for item in value:
            found |= codes_of(item)
    return found


def codes(world: RightsWorld, row: Row) -> set[int]:
    world.become(ANNA, row.on_controller)
    asked = world.send(row.request, row.version)
    if not asked.reply.done:
        world.run(600)
    if not asked.reply.done:
        asked.reply.abandon()
        return set()
    if asked.reply.parts is None:
        return set()
    return codes_of(asked.response)


def test_every_api_is_in_the_table() -> None:
    served = {(False, key) for key in registry.BROKER_HANDLERS} | {
        (True, key) for key in registry.CONTROLLER_HANDLERS if key not in registry.BROKER_HANDLERS
    }
    covered = {(row.on_controller, row.key) for row in rows(ZERO_UUID)}
    missing = {
        BY_KEY[key].name
        for on_controller, key in served
        if key not in NOT_IN_THE_TABLE and (on_controller, key) not in covered and (True, key) not in covered
    }
    assert not missing, f"add rows for {sorted(missing)}"


@each_row
def test_rights_are_asked_for_in_order(world: RightsWorld, number: int) -> None:
    """Without any, then with one after the other: each time the error of the first that is missing."""
    row = table()[number]
    for count, need in enumerate(row.needs):
        acl_ids = world.allow(*row.needs[:count])
        found = codes(world, row)
        assert found & AUTHORIZATION == {need.code}, f"without right {need}: {found}"
        world.forget(*acl_ids)
    world.allow(*row.needs)
    assert not codes(world, row) & AUTHORIZATION


@each_row
def test_a_deny_refuses_who_may_otherwise(world: RightsWorld, number: int) -> None:
    row = table()[number]
    world.allow(*row.needs)
    world.allow(row.needs[-1], permission=DENY)
    assert codes(world, row) & AUTHORIZATION == {row.needs[-1].code}


@each_row
def test_a_refusal_fits_into_every_version(world: RightsWorld, number: int) -> None:
    """Old responses have fewer fields; who may not is answered all the same, and never by a closed connection."""
    row = table()[number]
    answered = 0
    for version in range(BY_KEY[row.key].lowest_version, BY_KEY[row.key].highest_stable_version + 1):
        world.become(ANNA, row.on_controller)
        try:
            asked = world.send(row.request, version)
        except EncodeError:
            continue  # what the row asks for cannot be asked for in this version
        if not asked.reply.done:
            world.run(600)
        assert asked.reply.done and asked.reply.parts is not None, f"version {version}"
        answered += 1
    assert answered > 0


# What is particular


def topics_seen(world: RightsWorld) -> list[str]:
    return sorted(topic.name for topic in world.ask(MetadataRequest(topics=None), 12).topics)


def test_all_topics_are_those_that_may_be_seen(world: RightsWorld) -> None:
    world.become(ANNA)
    assert topics_seen(world) == []
    world.add(TOPIC, "t", READ)
    world.add(TOPIC, "__consumer", DESCRIBE, pattern=PREFIXED)
    assert topics_seen(world) == ["__consumer_offsets", "t"]
    answer = world.ask(DescribeTopicPartitionsRequest(), 0)
    assert [topic.name for topic in answer.topics] == ["__consumer_offsets", "t"]
    world.become("User:admin")
    assert len(topics_seen(world)) >= 3


def test_hidden_topics_look_like_missing_ones(world: RightsWorld) -> None:
    world.become(ANNA)
    asked = [MetadataRequestTopic(name=name) for name in ("__consumer_offsets", "t", "missing")]
    for topic in world.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=True), 12).topics:
        assert (topic.error_code, topic.topic_id, topic.is_internal, topic.partitions) == (T29, ZERO_UUID, False, [])
    known = world.node.image.topics_by_name["t"].topic_id
    by_id = [MetadataRequestTopic(topic_id=known, name=None), MetadataRequestTopic(topic_id=b"u" * 16, name=None)]
    hidden, unknown = world.ask(MetadataRequest(topics=by_id), 12).topics
    assert (hidden.error_code, hidden.name, hidden.topic_id) == (T29, None, known)
    assert (unknown.error_code, unknown.name) == (errors.UNKNOWN_TOPIC_ID, None)
    assert "missing" not in world.node.image.topics_by_name


def test_unknown_topics_are_not_told_from_hidden_ones_after_the_others(world: RightsWorld) -> None:
    world.become(ANNA)
    world.add(TOPIC, "t", DESCRIBE)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest("a"), TopicRequest("t"), TopicRequest("z")])
    rows = world.ask(request, 0).topics
    assert [(row.name, row.error_code, row.topic_authorized_operations) for row in rows] == [
        ("t", 0, 1 << DESCRIBE),
        ("a", T29, -(1 << 31)),
        ("z", T29, -(1 << 31)),
    ]


@pytest.mark.parametrize("version", [8, 9, 10, 12])
def test_authorized_operations_are_those_of_who_asks(world: RightsWorld, version: int) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="t")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=version <= 10,
    )
    world.become("User:admin")
    full = world.ask(request, version)
    assert full.topics[0].topic_authorized_operations == 3576
    world.become(ANNA)
    world.add(TOPIC, "t", READ)
    world.add(TOPIC, "*", ALTER_CONFIGS)
    world.add(CLUSTER, CLUSTER_NAME, CREATE)
    answer = world.ask(request, version)
    bits = mask(READ, DESCRIBE, ALTER_CONFIGS, DESCRIBE_CONFIGS)
    assert answer.topics[0].topic_authorized_operations == bits
    if version <= 10:
        assert (full.cluster_authorized_operations, answer.cluster_authorized_operations) == (8096, 0)
        world.add(CLUSTER, CLUSTER_NAME, DESCRIBE)
        assert world.ask(request, version).cluster_authorized_operations == mask(CREATE, DESCRIBE)
    answer.topics[0].topic_authorized_operations = full.topics[0].topic_authorized_operations
    assert repr(answer.topics) == repr(full.topics), "nothing else of a topic depends on who asks"


def test_describe_cluster_is_for_everybody_and_its_bits_are_not(world: RightsWorld) -> None:
    world.become(ANNA)
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert (world.ask(request, 1).error_code, world.ask(request, 1).cluster_authorized_operations) == (0, 0)
    world.add(CLUSTER, CLUSTER_NAME, ALTER)
    assert world.ask(request, 1).cluster_authorized_operations == mask(ALTER, DESCRIBE)


def test_group_operations_and_groups_that_may_be_seen(world: RightsWorld) -> None:
    world.become("User:admin")
    for group in ("seen", "unseen"):
        topics = [OffsetCommitRequestTopic("t", ZERO_UUID, [OffsetCommitRequestPartition(0, 1)])]
        world.ask(OffsetCommitRequest(group, topics=topics), 9)
    world.become(ANNA)
    assert world.ask(ListGroupsRequest(), 4).groups == []
    world.add(GROUP, "seen", READ)
    assert [row.group_id for row in world.ask(ListGroupsRequest(), 4).groups] == ["seen"]
    request = DescribeGroupsRequest(["seen", "unseen"], include_authorized_operations=True)
    found = {row.group_id: (row.error_code, row.authorized_operations) for row in world.ask(request, 4).groups}
    assert found == {"seen": (0, mask(READ, DESCRIBE)), "unseen": (errors.GROUP_AUTHORIZATION_FAILED, -(1 << 31))}
    world.add(CLUSTER, CLUSTER_NAME, DESCRIBE)
    assert {"seen", "unseen"} <= {row.group_id for row in world.ask(ListGroupsRequest(), 4).groups}
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("seen", topics=None)])
    assert world.ask(fetch, 8).groups[0].topics == [], "a topic that may not be seen is left out"
    world.add(TOPIC, "t", DESCRIBE)
    assert [topic.name for topic in world.ask(fetch, 8).groups[0].topics] == ["t"]


def test_a_consumer_group_is_described_with_describe_on_it(world: RightsWorld) -> None:
    """CVE-2026-41115: Describe it is, and Read of every topic of it is not asked for but Describe."""
    world.become("User:admin")
    join = ConsumerGroupHeartbeatRequest(
        "k", "m" * 22, 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert world.ask(join, 1).error_code == 0
    world.run(1500)
    world.become(ANNA)
    request = ConsumerGroupDescribeRequest(["k"], include_authorized_operations=True)

    def described() -> tuple[int, int, int]:
        (group,) = world.ask(request, 0).groups
        return group.error_code, len(group.members), group.authorized_operations

    assert described() == (errors.GROUP_AUTHORIZATION_FAILED, 0, -(1 << 31))
    world.add(GROUP, "k", DESCRIBE)
    assert described() == (T29, 0, -(1 << 31))
    world.add(TOPIC, "t", DESCRIBE)
    assert described() == (0, 1, mask(DESCRIBE))


def test_a_regex_finds_only_what_its_member_may_see(world: RightsWorld) -> None:
    world.become(ANNA)
    world.add(GROUP, "regexes", READ)
    world.add(TOPIC, "t", DESCRIBE)
    join = ConsumerGroupHeartbeatRequest(
        "regexes", "n" * 22, 0, rebalance_timeout_ms=1000, subscribed_topic_regex=".*", topic_partitions=[]
    )
    assert world.ask(join, 1).error_code == 0
    world.run(1000)
    shards = world.node.coordinators.groups.runtime.shards.values()
    (group,) = [g for s in shards for g in s.machine.state.groups.values() if g.group_id == "regexes"]
    (resolved,) = group.resolved_regexes.values()
    assert resolved.topics == {"t"}


def test_transactional_ids_that_may_be_seen(world: RightsWorld) -> None:
    world.become("User:admin")
    for name in ("x", "y"):
        world.ask(InitProducerIdRequest(name, 1000), 4)
    world.run(200)
    world.become(ANNA)
    assert world.ask(ListTransactionsRequest(), 0).transaction_states == []
    world.add(TRANSACTIONAL_ID, "x", WRITE)
    assert [row.transactional_id for row in world.ask(ListTransactionsRequest(), 0).transaction_states] == ["x"]


def test_who_may_write_somewhere_may_write_idempotently(world: RightsWorld) -> None:
    world.become(ANNA)
    assert world.ask(InitProducerIdRequest(None, 0), 4).error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    world.add(TOPIC, "some", WRITE, pattern=PREFIXED)
    assert world.ask(InitProducerIdRequest(None, 0), 4).error_code == 0
    world.add(TOPIC, "so", ALL, permission=DENY, pattern=PREFIXED)
    assert world.ask(InitProducerIdRequest(None, 0), 4).error_code == errors.CLUSTER_AUTHORIZATION_FAILED


def test_a_replica_id_is_worth_nothing_without_cluster_action(world: RightsWorld) -> None:
    """CVE-2018-1288: not even for partitions that who asks may read; nothing moves because of it."""
    world.become(ANNA)
    world.add(TOPIC, "t", READ)
    partition = world.node.replicas.find("t", 0)
    assert partition is not None
    before = (partition.high_watermark.offset, list(partition.in_sync_replicas), len(world.node.fetch_sessions))
    wanted = [FetchTopic("t", partitions=[FetchPartition(0, -1, 1000)])]
    for epoch in (-1, 0):
        request = FetchRequest(replica_id=7, max_bytes=100, session_epoch=epoch, topics=wanted)
        answer = world.ask(request, 12)
        assert (answer.error_code, answer.session_id) == (0, 0)
        (row,) = answer.responses[0].partitions
        assert (row.error_code, row.high_watermark) == (T29, -1)
    assert (partition.high_watermark.offset, list(partition.in_sync_replicas), len(world.node.fetch_sessions)) == before


def test_what_batches_say_counts_and_not_the_request(world: RightsWorld) -> None:
    """CVE-2018-17196: a transactional batch behind another one, and without an id in the request."""
    world.become(ANNA)
    world.add(TOPIC, "t", WRITE)
    plain, transactional = batch().to_bytes(), batch(True).to_bytes()
    for transactional_id in (None, "x"):
        for data in (transactional, plain + transactional):
            request = produce_request("t", 0, data)
            request.transactional_id = transactional_id
            answer = world.ask(request, 9).responses[0].partition_responses[0]
            assert answer.error_code == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    silent = produce_request("t", 0, transactional, acks=0)
    assert world.send(silent, 9).reply.close_connection


def test_a_fetch_session_does_not_outlive_its_rights(world: RightsWorld) -> None:
    world.become(ANNA)
    acl_id = world.add(TOPIC, "t", READ)
    wanted = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1000)])]
    opened = world.ask(FetchRequest(max_bytes=100, session_epoch=0, topics=wanted), 12)
    assert opened.session_id > 0
    world.forget(acl_id)
    answer = world.ask(FetchRequest(max_bytes=100, session_id=opened.session_id, session_epoch=1), 12)
    assert answer.responses[0].partitions[0].error_code == T29


def test_rights_on_the_cluster_stand_for_those_on_topics(world: RightsWorld) -> None:
    world.become(ANNA)
    world.add(CLUSTER, CLUSTER_NAME, CREATE)
    request = CreateTopicsRequest([CreatableTopic("n", 1, 1)], 100, True)
    (row,) = world.ask(request, 7).topics
    assert (row.error_code, row.topic_config_error_code, row.num_partitions, row.configs) == (0, T29, -1, [])
    world.add(TOPIC, "n", DESCRIBE_CONFIGS)
    (row,) = world.ask(request, 7).topics
    assert (row.error_code, row.topic_config_error_code, row.num_partitions) == (0, 0, 1) and row.configs
    world.add(CLUSTER, CLUSTER_NAME, CLUSTER_ACTION)
    epochs = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, 0)])])
    assert world.ask(epochs, 4).topics[0].partitions[0].error_code == 0


def test_whoever_may_not_see_a_topic_cannot_find_out_by_deleting_it(world: RightsWorld) -> None:
    topic_id = world.node.image.topics_by_name["t"].topic_id
    world.become(ANNA)

    def delete(name: str | None, topic_id: bytes = ZERO_UUID) -> tuple[str | None, bool, int]:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name, topic_id)], timeout_ms=100)
        (row,) = world.ask(request, 6).responses
        return row.name, row.topic_id != ZERO_UUID, row.error_code

    assert delete("t") == ("t", False, T29) and delete("gone") == ("gone", False, T29)
    assert delete(None, topic_id) == (None, True, T29)
    assert delete(None, b"u" * 16) == (None, True, errors.UNKNOWN_TOPIC_ID)
    world.add(TOPIC, "*", DESCRIBE)
    assert delete("t") == ("t", True, T29)
    assert delete("gone") == ("gone", False, errors.UNKNOWN_TOPIC_OR_PARTITION)
    assert delete(None, topic_id) == ("t", True, T29)
    assert "t" in world.node.image.topics_by_name


def test_one_refused_topic_does_not_refuse_the_others(world: RightsWorld) -> None:
    world.become(ANNA)
    world.add(TOPIC, "t", ALL)
    data = batch()
    request = ProduceRequest(acks=1, timeout_ms=100)
    for name in ("__consumer_offsets", "t"):
        request.topic_data.append(TopicProduceData(name=name, partition_data=[PartitionProduceData(0, data)]))
    assert [row.partition_responses[0].error_code for row in world.ask(request, 9).responses] == [T29, 0]
    configs = [AlterConfigsResource(TOPIC, name) for name in ("t", "u")]
    rows = world.ask(IncrementalAlterConfigsRequest(configs, True), 1).responses
    assert [(row.resource_name, row.error_code) for row in rows] == [("t", 0), ("u", T29)]


def test_markers_may_be_written_by_who_may_alter_the_cluster(world: RightsWorld) -> None:
    (row,) = [row for row in table() if row.key == api.WRITE_TXN_MARKERS]
    world.add(CLUSTER, CLUSTER_NAME, ALTER)
    assert not codes(world, row) & AUTHORIZATION


# Envelopes


def envelope_of(principal: str, request: Message, version: int, peer: str) -> Any:
    client = ClientContext("PLAINTEXT", peer)
    client.principal = principal
    return pack(client, frame_of(request, version))


def test_a_request_in_an_envelope_has_the_rights_of_its_client(world: RightsWorld) -> None:
    request = CreateTopicsRequest([CreatableTopic("n", 1, 1)], 100, True)

    def created(principal: str, peer: str) -> int:
        world.become("User:admin", on_controller=True)
        answer = world.ask(envelope_of(principal, request, 7, peer), 0)
        assert answer.error_code == 0
        reader = Reader(answer.response_data)
        ResponseHeader.decode(reader, 1)
        return int(CreateTopicsResponse.decode(reader, 7).topics[0].error_code)

    assert created(ANNA, "10.0.0.9:1") == T29
    world.add(TOPIC, "n", CREATE, host="10.0.0.9")
    assert created(ANNA, "10.0.0.9:1") == 0
    assert created(ANNA, "10.0.0.8:1") == T29
    assert created("User:bob", "10.0.0.9:1") == T29


def test_nobody_but_a_broker_may_speak_for_others(world: RightsWorld) -> None:
    world.become(ANNA, on_controller=True)
    request = CreateTopicsRequest([CreatableTopic("evil", 1, 1)], 100)
    answer = world.ask(envelope_of("User:admin", request, 7, "10.0.0.9:1"), 0)
    assert (answer.error_code, answer.response_data) == (errors.CLUSTER_AUTHORIZATION_FAILED, None)
    assert "evil" not in world.node.image.topics_by_name


def test_an_envelope_tells_whether_its_client_came_with_a_token() -> None:
    for flag in (True, False):
        client = ClientContext("PLAINTEXT", "10.0.0.9:1")
        client.token_authenticated = flag
        assert unpack_context("CONTROLLER", pack(client, b"")).token_authenticated is flag


# ACLs from the log


def create_acl(world: RightsWorld, *rows: tuple[str, int, int]) -> list[int]:
    """Name, operation and permission, for anna on a topic."""
    creations = [
        AclCreation(TOPIC, name, LITERAL, ANNA, "*", operation, permission) for name, operation, permission in rows
    ]
    return [row.error_code for row in world.ask(CreateAclsRequest(creations), 3).results]


def test_acls_hold_from_the_answer_on_and_after_a_restart() -> None:
    world = RightsWorld().start()
    world.create("t")
    assert create_acl(world, ("t", WRITE, ALLOW), ("t", READ, ALLOW), ("t", READ, DENY)) == [0, 0, 0]
    for _ in range(3):
        world.become(ANNA)
        assert world.produce("t").error_code == 0
        wanted = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1000)])]
        answer = world.ask(FetchRequest(max_bytes=100, topics=wanted), 12)
        assert answer.responses[0].partitions[0].error_code == T29
        if world.lives == 2:
            world.node.metadata.write_snapshot(world.now_ms)
            world.run(1000)
        world.leave()
        world.stop()
        world.start()
    # CVE-2024-27309: one of them goes, the others stay.
    one = DeleteAclsFilter(TOPIC, "t", LITERAL, None, None, READ, ALLOW)
    (row,) = world.ask(DeleteAclsRequest([one]), 3).filter_results
    assert (row.error_code, len(row.matching_acls)) == (0, 1)
    world.become(ANNA)
    assert world.produce("t").error_code == 0
    answer = world.ask(FetchRequest(max_bytes=100, topics=wanted), 12)
    assert answer.responses[0].partitions[0].error_code == T29


def test_a_controller_that_has_no_acls_yet_serves_super_users_only(world: RightsWorld) -> None:
    assert world.node.rights is not None
    authorizer = world.node.rights.authorizer
    vote = next(row for row in table() if row.key == api.VOTE)
    authorizer.is_loaded = False
    try:
        world.add(CLUSTER, CLUSTER_NAME, CLUSTER_ACTION)
        assert codes(world, vote) == {errors.UNKNOWN_SERVER_ERROR}
        world.become("User:admin", on_controller=True)
        assert errors.UNKNOWN_SERVER_ERROR not in codes_of(world.ask(vote.request, vote.version))
    finally:
        authorizer.is_loaded = True


def test_every_decision_is_counted(world: RightsWorld) -> None:
    rights = world.node.rights
    assert rights is not None
    before = (rights.allowed.total, rights.denied.total)
    world.become(ANNA)
    world.produce("t")
    world.add(TOPIC, "t", WRITE)
    world.produce("t")
    after = (rights.allowed.total, rights.denied.total)
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1]


def test_the_id_of_a_hidden_topic_is_not_told_where_no_partition_is_named(world: RightsWorld) -> None:
    world.add(GROUP, "s3", READ)
    world.become(ANNA)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[])
    asked = world.send(AlterShareGroupOffsetsRequest(group_id="s3", topics=[topic]), 0)
    world.run(600)
    assert [row.topic_id for row in asked.response.responses] == [ZERO_UUID]


def test_a_name_and_an_id_of_a_hidden_topic_are_not_told_to_belong_together(world: RightsWorld) -> None:
    topic_id = world.node.image.topics_by_name["t"].topic_id
    world.become(ANNA)
    for name in ("t", "other"):
        asked = [MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(name=name)]
        answer = world.ask(MetadataRequest(topics=asked), 12)
        assert [row.error_code for row in answer.topics] == [T29, T29], name


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_election_that_is_refused_says_so_for_every_partition(world: RightsWorld, version: int) -> None:
    world.become(ANNA)
    wanted = [TopicPartitions(topic="t", partitions=[0, 7])]
    answer = world.ask(ElectLeadersRequest(topic_partitions=wanted), version)
    (row,) = answer.replica_election_results
    refused = [(0, errors.CLUSTER_AUTHORIZATION_FAILED), (7, errors.CLUSTER_AUTHORIZATION_FAILED)]
    assert [(one.partition_id, one.error_code) for one in row.partition_result] == refused


def test_a_refusal_of_very_many_topics_takes_no_longer_for_each(world: RightsWorld) -> None:
    """Whoever has no right must not be able to keep the node busy."""
    world.become(ANNA)
    topics = [CreatableTopic(f"new-{number}", 1, 1) for number in range(20_000)]
    answer = world.ask(CreateTopicsRequest(topics, 1000), 7)
    assert {row.error_code for row in answer.topics} == {T29} and len(answer.topics) == 20_000
    world.add(GROUP, "g", READ)
    rows = [
        OffsetCommitRequestTopic(f"no-{number}", partitions=[OffsetCommitRequestPartition()])
        for number in range(20_000)
    ]
    committed = world.ask(OffsetCommitRequest("g", topics=rows), 9)
    assert {row.partitions[0].error_code for row in committed.topics} == {T29} and len(committed.topics) == 20_000
