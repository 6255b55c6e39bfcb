"""Rights in a cluster: brokers need ClusterAction of each other, and a forwarded request has its client's rights."""

from __future__ import annotations

import pytest

from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.produce_response import PartitionProduceResponse
from moldau.security.rights import ALLOW, CREATE, LITERAL, PREFIXED, TOPIC, WRITE
from tests.unit.node.cluster import Cluster, Member
from tests.unit.node.world import batch, produce_request

ANNA = "User:anna"


def client(principal: str, peer: str = "10.9.9.9:1") -> ClientContext:
    context = ClientContext("PLAINTEXT", peer)
    context.principal = principal
    return context


def create(member: Member, name: str, context: ClientContext) -> int:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 3)], 5000)
    return int(member.ask(request, 7, context).topics[0].error_code)


def produce(member: Member, name: str, context: ClientContext) -> int:
    answer = member.ask(produce_request(name, 0, batch(member.cluster.now_ms), acks=-1), 9, context)
    row = answer.responses[0].partition_responses[0]
    assert isinstance(row, PartitionProduceResponse)
    return row.error_code


def leader_of(cluster: Cluster, name: str) -> Member:
    return cluster[cluster[1].node.leader_of(name, 0)[0]]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Nodes trust each other as they come: without logins everybody is ANONYMOUS."""
    return Cluster(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS").start()


def test_every_broker_passes_on_who_asked(cluster: Cluster) -> None:
    """And the controller decides, wherever it is, by principal and by the client's own address."""
    for member in cluster.members.values():
        assert create(member, f"a{member.node_id}", client(ANNA)) == errors.TOPIC_AUTHORIZATION_FAILED
    acls = [AclCreation(TOPIC, "a", PREFIXED, ANNA, "10.9.9.9", CREATE, ALLOW)]
    assert cluster[1].ask(CreateAclsRequest(acls), 3).results[0].error_code == 0
    cluster.run(500)
    for member in cluster.members.values():
        assert create(member, f"a{member.node_id}", client(ANNA, "10.9.9.8:1")) == errors.TOPIC_AUTHORIZATION_FAILED
        assert create(member, f"a{member.node_id}", client(ANNA)) == 0


def test_acls_reach_every_broker_and_replication_goes_on(cluster: Cluster) -> None:
    assert cluster[1].create("r", 1, 3) == 0
    cluster.run(500)
    leader = leader_of(cluster, "r")
    anna = client(ANNA)
    assert produce(leader, "r", anna) == errors.TOPIC_AUTHORIZATION_FAILED
    acls = [AclCreation(TOPIC, "r", LITERAL, ANNA, "*", WRITE, ALLOW)]
    assert cluster[2].ask(CreateAclsRequest(acls), 3).results[0].error_code == 0
    cluster.run(500)
    assert produce(leader, "r", anna) == 0, "the same connection, and all replicas have it"


def test_a_broker_makes_its_own_topics_in_its_own_name(cluster: Cluster) -> None:
    """Whoever asks for a coordinator need not be allowed to create its topic."""
    acls = [AclCreation(3, "g", LITERAL, ANNA, "*", 8, ALLOW)]
    assert cluster[3].ask(CreateAclsRequest(acls), 3).results[0].error_code == 0
    cluster.run(500)
    for member in cluster.members.values():
        member.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4, client(ANNA))
    cluster.run(2000)
    assert "__consumer_offsets" in cluster[1].node.image.topics_by_name
    answer = cluster[2].ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4, client(ANNA))
    assert answer.coordinators[0].error_code == 0


def test_asking_for_a_topic_creates_it_with_the_right_to_create_it(cluster: Cluster) -> None:
    request = MetadataRequest([MetadataRequestTopic(name="made")], allow_auto_topic_creation=True)
    acls = [AclCreation(TOPIC, "made", LITERAL, ANNA, "*", 8, ALLOW)]
    cluster[1].ask(CreateAclsRequest(acls), 3)
    cluster.run(500)
    answer = cluster[2].ask(request, 9, client(ANNA))
    assert answer.topics[0].error_code == errors.TOPIC_AUTHORIZATION_FAILED
    cluster[1].ask(CreateAclsRequest([AclCreation(TOPIC, "made", LITERAL, ANNA, "*", CREATE, ALLOW)]), 3)
    cluster.run(500)
    answer = cluster[2].ask(request, 9, client(ANNA))
    assert answer.topics[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    cluster.run(2000)
    assert "made" in cluster[2].node.image.topics_by_name


def test_nodes_without_rights_do_not_become_a_cluster() -> None:
    """As in Kafka: without super.users=User:ANONYMOUS, or logins, no broker is let in."""
    cluster = Cluster({1: "controller", 2: "broker"}, authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:x")
    for member in cluster.members.values():
        member.start()
    cluster.run(3000)
    assert not cluster[2].node.is_ready
    assert cluster[1].node.image.brokers == {}
