"""What coordinators tell of groups and transactions is what clients did."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.unit.api.test_classic_groups import join
from tests.unit.api.transaction_client import Producer, transactional_world
from tests.unit.node.test_coordinators import commit, ready_world
from tests.unit.server.metrics.pages import page_of

MANAGER = "kafka_coordinator_group_groupmetadatamanager"
GROUPS = "kafka_server_group_coordinator_metrics"


def test_groups_are_counted_by_protocol_and_state() -> None:
    world = ready_world(group_initial_rebalance_delay_ms="0")
    for index in range(3):
        assert commit(world, "simple", index, 5) == errors.NONE
    assert join(world, group="classic").error_code == errors.NONE
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="new",
        member_id="m" * 22,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert world.ask(heartbeat, 1).error_code == errors.NONE
    page = page_of(world.node, world.now_ms)
    assert page[f"{MANAGER}_numoffsets"] == 3
    assert page[f"{MANAGER}_numgroups"] == 2
    assert page[f"{MANAGER}_numgroupsempty"] == 1
    assert page[f"{MANAGER}_numgroupscompletingrebalance"] == 1
    counts = {
        protocol: page[f"{GROUPS}_group_count", f"protocol={protocol}"]
        for protocol in ("classic", "consumer", "share", "streams")
    }
    assert counts == {"classic": 2, "consumer": 1, "share": 0, "streams": 0}
    states = page.rows(f"{GROUPS}_consumer_group_count")
    assert sum(states.values()) == 1 and states['state="Empty"'] == 0
    assert page[f"{GROUPS}_offset_commit_count"] == 3
    assert page[f"{GROUPS}_group_completed_rebalance_count"] == 1
    assert page[f"{GROUPS}_consumer_group_rebalance_count"] == 1
    assert page[f"{GROUPS}_num_partitions", "state=active"] == 5
    assert page[f"{GROUPS}_partition_load_time_max"] >= 0
    assert page["kafka_consumergroup_members", "consumergroup=new"] == 1
    assert page["kafka_consumergroup_members", "consumergroup=classic"] == 1
    assert page["kafka_consumergroup_members", "consumergroup=simple"] == 0


def test_offsets_that_go_are_counted_by_why() -> None:
    world = ready_world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    for index in range(3):
        assert commit(world, "g", index, 5) == errors.NONE
    row = OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])
    assert world.ask(OffsetDeleteRequest("g", [row]), 0).error_code == errors.NONE
    page = page_of(world.node, world.now_ms)
    assert (page[f"{GROUPS}_offset_deletion_count"], page[f"{GROUPS}_offset_expiration_count"]) == (1, 0)
    world.run(70_000)
    page = page_of(world.node, world.now_ms)
    assert (page[f"{GROUPS}_offset_deletion_count"], page[f"{GROUPS}_offset_expiration_count"]) == (1, 2)
    assert page[f"{MANAGER}_numoffsets"] == page[f"{MANAGER}_numgroups"] == 0


def test_verified_writes_are_timed() -> None:
    world = transactional_world()
    producer = Producer(world, "id")
    assert producer.init() == errors.NONE
    assert producer.produce(0, b"a") == errors.NONE
    page = page_of(world.node, world.now_ms)
    prefix = "kafka_server_addpartitionstotxnmanager"
    assert page[f"{prefix}_verificationtimems_count"] >= 1
    assert page[f"{prefix}_verificationfailurerate_count"] == 0
    assert page["kafka_server_replicamanager_produceridcount"] >= 1
    assert page["kafka_cluster_partition_laststableoffsetlag", "topic=t", "partition=0"] == 1
    markers = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
    assert page[f"{markers}_unknowndestinationqueuesize"] == page[f"{markers}_logappendretryqueuesize"] == 0
    assert page["kafka_server_transaction_coordinator_metrics_partition_load_time_max"] >= 0
