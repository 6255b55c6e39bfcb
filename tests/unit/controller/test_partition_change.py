"""Leadership, ISR and eligible leader replicas (KIP-966) when brokers go, and as requests change them."""

from __future__ import annotations

from typing import Any

from moldau.protocol import errors
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from moldau.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest, DirectoryData
from moldau.protocol.messages.assign_replicas_to_dirs_request import PartitionData as DirPartition
from moldau.protocol.messages.assign_replicas_to_dirs_request import TopicData as DirTopic
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tests.unit.controller.world import World, directory


def world(factor: int = 3, **configs: str) -> World:
    w = World()
    w.add_brokers(1, 2, 3)
    settings: dict[str, str | None] = {key.replace("_", "."): value for key, value in configs.items()}
    w.create("t", assignments=[list(range(1, factor + 1))], configs=settings)
    return w


def silence(w: World, *broker_ids: int) -> None:
    """These brokers miss their session; the others do not."""
    w.now_ms += 10_000
    for broker_id in w.image.brokers:
        if broker_id not in broker_ids and not w.image.brokers[broker_id].fenced:
            w.heartbeat(broker_id)
    for _ in broker_ids:
        w.run(w.controller.fence_stale_brokers(w.now_ms))


def alter(w: World, isr: list[int], **changes: Any) -> Any:
    partition = w.partition("t")
    data = PartitionData(0, partition.leader_epoch, partition_epoch=partition.partition_epoch)
    data.new_isr_with_epochs = [BrokerState(b, w.image.brokers[b].broker_epoch) for b in isr]
    for name, value in changes.items():
        setattr(data, name, value)
    leader = changes.pop("broker_id", partition.leader)
    request = AlterPartitionRequest(leader, w.image.brokers[leader].broker_epoch)
    request.topics = [TopicData(w.image.topics_by_name["t"].topic_id, [data])]
    return w.run(w.controller.alter_partition(request, w.now_ms)).topics[0].partitions[0]


def test_a_leader_shrinks_and_expands_the_isr_without_raising_the_leader_epoch() -> None:
    w = world()
    row = alter(w, [1, 2])
    assert (row.error_code, row.isr, row.leader_epoch, row.partition_epoch) == (0, [1, 2], 0, 1)
    assert alter(w, [1, 2, 3]).partition_epoch == 2
    assert w.partition("t").isr == (1, 2, 3)


def test_alter_partition_with_an_old_epoch_is_fenced() -> None:
    w = world()
    alter(w, [1, 2])
    assert alter(w, [1], partition_epoch=0).error_code == errors.INVALID_UPDATE_VERSION
    assert alter(w, [1], leader_epoch=5).error_code == errors.NOT_CONTROLLER
    assert alter(w, [2]).error_code == errors.INVALID_REQUEST


def test_a_fenced_broker_or_an_earlier_life_of_one_does_not_enter_the_isr() -> None:
    w = world()
    silence(w, 3)
    assert alter(w, [1, 2, 3]).error_code == errors.INELIGIBLE_REPLICA
    states = [BrokerState(1, -1), BrokerState(2, 1)]
    assert alter(w, [1, 2], new_isr_with_epochs=states).error_code == errors.INELIGIBLE_REPLICA


def test_who_leaves_an_isr_below_its_minimum_stays_eligible() -> None:
    w = world(min_insync_replicas="2")
    silence(w, 1, 2)
    partition = w.partition("t")
    assert (partition.leader, partition.isr, sorted(partition.elr)) == (3, (3,), [2])
    silence(w, 3)
    partition = w.partition("t")
    assert (partition.leader, partition.isr, sorted(partition.elr)) == (-1, (), [2, 3])
    w.heartbeat(2)
    partition = w.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), (3,))


def test_without_unclean_election_a_partition_waits_for_its_last_isr() -> None:
    w = world(factor=2)
    silence(w, 2)
    assert w.partition("t").isr == (1,)
    silence(w, 1)
    w.heartbeat(2)
    assert w.partition("t").leader == -1
    w.heartbeat(1)
    assert w.partition("t").leader == 1


def test_an_unclean_election_where_allowed_leaves_the_leader_alone_and_recovering() -> None:
    w = world(factor=2, unclean_leader_election_enable="true")
    silence(w, 2)
    silence(w, 1)
    w.heartbeat(2)
    partition = w.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state, partition.elr) == (2, (2,), 1, ())


def test_elect_leaders_gives_a_partition_back_to_its_preferred_replica() -> None:
    w = world()
    silence(w, 1)
    w.heartbeat(1)
    assert alter(w, [2, 3, 1]).error_code == 0
    request = ElectLeadersRequest(0, [TopicPartitions("t", [0]), TopicPartitions("nope", [0])])
    results = w.run(w.controller.elect_leaders(request, 0)).replica_election_results
    codes = [row.error_code for result in results for row in result.partition_result]
    assert codes == [0, errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert w.partition("t").leader == 1
    again = w.run(w.controller.elect_leaders(request, 0)).replica_election_results
    assert again[0].partition_result[0].error_code == errors.ELECTION_NOT_NEEDED


def test_leaders_are_balanced_back() -> None:
    w = world()
    silence(w, 1)
    w.heartbeat(1)
    alter(w, [2, 3, 1])
    w.run(w.controller.balance_leaders())
    assert w.partition("t").leader == 1


def test_a_reassignment_adds_then_removes_and_raises_the_leader_epoch_at_its_end() -> None:
    w = world(factor=2)
    topics = [ReassignableTopic("t", [ReassignablePartition(0, [2, 3])])]
    request = AlterPartitionReassignmentsRequest(topics=topics)
    assert w.run(w.controller.alter_partition_reassignments(request, 0)).responses[0].partitions[0].error_code == 0
    partition = w.partition("t")
    assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == ((2, 3, 1), (3,), (1,))
    listed = w.run(w.controller.list_partition_reassignments(ListPartitionReassignmentsRequest(), 0)).topics
    assert [(t.name, t.partitions[0].replicas) for t in listed] == [("t", [2, 3, 1])]
    assert alter(w, [1, 2, 3]).error_code == errors.NEW_LEADER_ELECTED
    partition = w.partition("t")
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((2, 3), (2, 3), 2, 1)
    assert not partition.is_reassigning


def test_a_reassignment_can_be_cancelled() -> None:
    w = world(factor=2)
    for replicas in ([2, 3], None):
        topics = [ReassignableTopic("t", [ReassignablePartition(0, replicas)])]
        w.run(w.controller.alter_partition_reassignments(AlterPartitionReassignmentsRequest(topics=topics), 0))
    assert sorted(w.partition("t").replicas) == [1, 2]
    assert not w.partition("t").is_reassigning


def test_a_broker_tells_which_directory_holds_a_replica() -> None:
    w = world(factor=1)
    other = b"\xbb" * 16
    topic_id = w.image.topics_by_name["t"].topic_id
    request = AssignReplicasToDirsRequest(1, w.image.brokers[1].broker_epoch)
    request.directories = [DirectoryData(other, [DirTopic(topic_id, [DirPartition(0), DirPartition(7)])])]
    rows = w.run(w.controller.assign_replicas_to_dirs(request, 0)).directories[0].topics[0].partitions
    assert [row.error_code for row in rows] == [0, errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert w.partition("t").directories == (other,)


def test_a_lost_directory_costs_its_partitions_the_leader() -> None:
    w = world(factor=2)
    request = BrokerHeartbeatRequest(1, w.image.brokers[1].broker_epoch, w.image.offset)
    request.offline_log_dirs = [directory(1)]
    w.run(w.controller.broker_heartbeat(request, w.now_ms))
    assert (w.partition("t").leader, w.partition("t").isr) == (2, (2,))
