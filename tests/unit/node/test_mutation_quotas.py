"""The quota of changes in a cluster: whoever asks pays, whichever broker is asked, and a new controller starts anew."""

from __future__ import annotations

from typing import Any

from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.unit.node.cluster import Cluster, Member

THROTTLED = errors.THROTTLING_QUOTA_EXCEEDED


def client(user: str) -> ClientContext:
    context = ClientContext("PLAINTEXT", "10.1.1.1:7")
    context.principal = f"User:{user}"
    return context


def limit(cluster: Cluster, rate: float, **entity: str | None) -> None:
    parts = [EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()]
    request = AlterClientQuotasRequest([EntryData(parts, [OpData("controller_mutation_rate", rate, False)])])
    assert cluster[1].ask(request, 1).entries[0].error_code == 0


def create(member: Member, name: str, partitions: int, context: ClientContext, version: int = 7) -> tuple[int, int]:
    request = CreateTopicsRequest([CreatableTopic(name, partitions, 1)], timeout_ms=5000)
    response = member.ask(request, version, context)
    return response.topics[0].error_code, response.throttle_time_ms


def others(cluster: Cluster) -> list[Member]:
    return [member for member in cluster.up() if not member.node.metadata.is_active_controller]


def test_through_any_broker_the_client_pays() -> None:
    """Three brokers are asked in turn; there is one bucket, on the active controller."""
    cluster = Cluster().start()
    limit(cluster, 1.0, user="anna")
    told = []
    for number, member in enumerate([*others(cluster), cluster.active()]):
        told.append(create(member, f"t{number}", 8, client("anna")))
    assert [code for code, _ in told] == [0, 0, THROTTLED]
    assert 4000 < told[2][1] <= 5000
    assert create(others(cluster)[0], "b", 50, client("bert")) == (0, 0)
    code, throttle_ms = create(others(cluster)[0], "t4", 2, client("anna"), version=5)
    assert code == 0 and 6000 < throttle_ms <= 7000, "an older client gets it and is told to wait"


def test_a_new_active_controller_begins_with_full_buckets() -> None:
    cluster = Cluster().start()
    limit(cluster, 1.0, user="anna")
    asked = others(cluster)[0]
    assert create(asked, "t1", 50, client("anna")) == (0, 0)
    assert create(asked, "t2", 1, client("anna"))[0] == THROTTLED
    cluster.active().kill()
    cluster.run_until(cluster.has_active)
    assert create(asked, "t2", 1, client("anna")) == (0, 0)


def auto_create(member: Member, name: str, context: ClientContext) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    assert member.ask(request, 12, context).topics[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    member.cluster.run(300)


def test_a_topic_that_a_client_makes_a_broker_create_is_the_clients() -> None:
    cluster = Cluster(num_partitions="12", default_replication_factor="1").start()
    limit(cluster, 1.0, user="anna", client_id="test")
    for number, member in enumerate((cluster.active(), others(cluster)[0])):
        # Both where it is decided here and where it goes in an envelope.
        first, second = f"a{number}", f"b{number}"
        auto_create(member, first, client("anna"))
        auto_create(member, second, client("anna"))
        assert first in member.node.image.topics_by_name
        assert second not in member.node.image.topics_by_name, "its bucket is empty, the topic is not created"
        auto_create(member, second, client("bert"))
        assert second in member.node.image.topics_by_name
        cluster.run(15_000)


def test_what_a_coordinator_needs_is_created_in_the_brokers_name() -> None:
    cluster = Cluster().start()
    limit(cluster, 1.0, user="anna")
    member = others(cluster)[0]
    assert create(member, "t", 50, client("anna")) == (0, 0)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    member.ask(request, 4, client("anna"))
    cluster.run(500)
    assert "__consumer_offsets" in member.node.image.topics_by_name


def test_the_same_happens_at_the_same_times() -> None:
    """Time is an argument: two runs of one story are told the same, to the millisecond."""

    def story() -> list[Any]:
        cluster = Cluster().start()
        limit(cluster, 3.0, client_id=None)
        told: list[Any] = []
        created = 0
        while created < 50:
            code, throttle_ms = create(cluster[1 + created % 3], f"t{created}", 2, client("anna"))
            told.append((code, throttle_ms, cluster.now_ms))
            if code == THROTTLED:
                assert throttle_ms > 0
                cluster.run(throttle_ms)
            else:
                created += 1
        cluster.run(500)
        assert sum(f"t{number}" in cluster[1].node.image.topics_by_name for number in range(50)) == 50
        return told

    first = story()
    assert first == story()
    refused = [row for row in first if row[0] == THROTTLED]
    assert len(refused) > 20, "33 at once, the rest at three a second"
    assert first[-1][2] - first[0][2] >= (100 - 33) / 3 * 1000 - 1000
