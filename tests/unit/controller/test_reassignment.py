"""Moving replicas: what is asked, what happens meanwhile, how it ends (KIP-455)."""

from __future__ import annotations

from typing import Any

from moldau.metadata.model import UNASSIGNED_DIRECTORY
from moldau.protocol import errors
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from moldau.protocol.stored.metadata_records import PartitionChangeRecord
from tests.unit.controller.test_partition_change import alter, silence
from tests.unit.controller.world import World, directory


def world(*replicas: int, **configs: str) -> World:
    w = World()
    w.add_brokers(1, 2, 3, 4)
    settings: dict[str, str | None] = {key.replace("_", "."): value for key, value in configs.items()}
    w.create("t", assignments=[list(replicas)], configs=settings)
    return w


def reassign(w: World, target: list[int] | None, may_resize: bool = True, name: str = "t", index: int = 0) -> Any:
    topics = [ReassignableTopic(name, [ReassignablePartition(index, target)])]
    request = AlterPartitionReassignmentsRequest(topics=topics, allow_replication_factor_change=may_resize)
    return w.run(w.controller.alter_partition_reassignments(request, 0)).responses[0].partitions[0]


def state(w: World) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    partition = w.partition("t")
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def test_new_replicas_are_added_first_and_the_old_ones_go_when_all_new_ones_are_in_sync() -> None:
    w = world(1, 2)
    assert reassign(w, [3, 4]).error_code == 0
    assert state(w) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert alter(w, [1, 2, 3]).error_code == 0
    assert w.partition("t").is_reassigning
    assert alter(w, [1, 2, 3, 4]).error_code == errors.NEW_LEADER_ELECTED
    partition = w.partition("t")
    assert state(w) == ((3, 4), (), ())
    assert (partition.isr, partition.leader, partition.leader_epoch) == ((3, 4), 3, 1)
    assert partition.directories == (directory(3), directory(4))


def test_a_change_of_order_alone_is_done_at_once() -> None:
    w = world(1, 2, 3)
    reassign(w, [3, 2, 1])
    assert state(w) == ((3, 2, 1), (), ())
    assert (w.partition("t").leader, w.partition("t").leader_epoch) == (1, 0)


def test_removing_a_replica_is_done_at_once_and_raises_the_leader_epoch() -> None:
    w = world(1, 2, 3)
    reassign(w, [1, 3])
    assert state(w) == ((1, 3), (), ())
    assert (w.partition("t").isr, w.partition("t").leader, w.partition("t").leader_epoch) == ((1, 3), 1, 1)


def test_removing_a_replica_waits_while_too_few_others_are_in_sync() -> None:
    """What two replicas have acknowledged must not be left to one of them."""
    w = world(1, 2, 3, min_insync_replicas="2")
    silence(w, 2)
    assert set(w.partition("t").isr) == {1, 3}
    assert reassign(w, [1, 2]).error_code == 0
    assert state(w) == ((1, 2, 3), (), (3,))
    w.register(2, incarnation=2)
    w.heartbeat(2)
    alter(w, [1, 3, 2])
    assert state(w) == ((1, 2), (), ())
    assert set(w.partition("t").isr) == {1, 2}


def test_removing_a_replica_waits_while_it_is_needed_for_what_was_committed() -> None:
    """It is not in sync but eligible: with the leader it is the only one that has all that was acknowledged."""
    w = world(1, 2, 3, min_insync_replicas="2")
    silence(w, 2)
    silence(w, 3)
    assert (w.partition("t").isr, w.partition("t").elr) == ((1,), (3,))
    reassign(w, [1, 2])
    assert (state(w), w.partition("t").elr) == (((1, 2, 3), (), (3,)), (3,))
    w.register(2, incarnation=2)
    w.heartbeat(2)
    alter(w, [1, 2])
    assert (state(w), w.partition("t").isr) == (((1, 2), (), ()), (1, 2))


def test_the_number_of_replicas_may_be_held_fixed() -> None:
    w = world(1, 2)
    row = reassign(w, [1, 2, 3], may_resize=False)
    assert row.error_code == errors.INVALID_REPLICATION_FACTOR
    assert row.error_message == "The replication factor is changed from 2 to 3"
    reassign(w, [1, 2, 3])
    # From now on three are wanted, whether they are there yet or not.
    assert reassign(w, [2, 3], may_resize=False).error_code == errors.INVALID_REPLICATION_FACTOR
    assert reassign(w, [2, 3, 4], may_resize=False).error_code == 0


def test_a_cancelled_reassignment_leaves_what_was_there_before() -> None:
    w = world(1, 2)
    reassign(w, [3, 4])
    alter(w, [1, 2, 3])
    assert reassign(w, None).error_code == 0
    partition = w.partition("t")
    assert (state(w), partition.isr, partition.leader_epoch) == (((1, 2), (), ()), (1, 2), 1)
    assert reassign(w, None).error_code == errors.NO_REASSIGNMENT_IN_PROGRESS


def test_a_cancel_that_would_need_an_unclean_election_is_refused() -> None:
    w = world(1, 2)
    reassign(w, [3, 4])
    alter(w, [1, 2, 3])
    silence(w, 1, 2)
    assert w.partition("t").isr == (3,)
    row = reassign(w, None)
    assert row.error_code == errors.INVALID_REPLICA_ASSIGNMENT
    assert row.error_message is not None and row.error_message.endswith("would require an unclean leader election.")


def test_a_cancel_that_would_leave_too_few_in_sync_is_refused_until_there_are_more() -> None:
    w = world(1, 2, min_insync_replicas="2")
    reassign(w, [3, 4])
    alter(w, [1, 2, 3])
    silence(w, 2)
    before = state(w)
    row = reassign(w, None)
    assert row.error_code == errors.INVALID_REPLICA_ASSIGNMENT
    assert row.error_message is not None and "only [1] are in sync" in row.error_message
    assert state(w) == before and set(w.partition("t").isr) == {1, 3}
    w.register(2, incarnation=2)
    w.heartbeat(2)
    alter(w, [1, 2, 3])
    assert reassign(w, None).error_code == 0
    assert (state(w), w.partition("t").isr) == (((1, 2), (), ()), (1, 2))


def test_a_cancel_that_leaves_too_few_in_sync_is_done_where_unclean_elections_are_allowed() -> None:
    w = world(1, 2, min_insync_replicas="2", unclean_leader_election_enable="true")
    reassign(w, [3, 4])
    alter(w, [1, 2, 3])
    silence(w, 2)
    assert reassign(w, None).error_code == 0
    assert (state(w), w.partition("t").isr) == (((1, 2), (), ()), (1,))


def test_an_unclean_cancel_where_allowed_never_names_a_broker_that_is_down() -> None:
    w = world(1, 2, unclean_leader_election_enable="true")
    reassign(w, [3, 4])
    alter(w, [1, 2, 3])
    silence(w, 1, 2)
    assert reassign(w, None).error_code == 0
    partition = w.partition("t")
    assert (partition.replicas, partition.isr, partition.leader, partition.elr) == ((1, 2), (), -1, ())
    assert partition.last_known_elr == ()
    w.heartbeat(2)
    partition = w.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)


def test_a_second_reassignment_keeps_what_is_in_sync_until_it_ends() -> None:
    """The replicas the first one added may be the only ones in sync: they go at the end, not at the beginning."""
    w = world(1, 2)
    reassign(w, [2, 3])
    alter(w, [1, 2])
    reassign(w, [1, 4])
    assert state(w) == ((1, 4, 2, 3), (4,), (2, 3))
    assert w.partition("t").isr == (1, 2)
    alter(w, [1, 2, 4])
    assert (state(w), w.partition("t").isr) == (((1, 4), (), ()), (1, 4))


def test_what_does_not_exist_is_said_in_kafkas_words() -> None:
    w = world(1, 2)
    assert reassign(w, [1], name="nope").error_message == "Unable to find a topic named nope."
    assert reassign(w, [1], index=7).error_message == "Unable to find partition t:7."
    row = reassign(w, [9])
    assert row.error_code == errors.INVALID_REPLICA_ASSIGNMENT
    assert row.error_message == "The manual partition assignment includes broker 9, but no such broker is registered."
    assert reassign(w, []).error_code == errors.INVALID_REPLICA_ASSIGNMENT
    assert reassign(w, [1, 1]).error_code == errors.INVALID_REPLICA_ASSIGNMENT


def test_reassignments_are_listed_while_they_last() -> None:
    w = world(1, 2)
    w.create("u", assignments=[[1, 2]])
    reassign(w, [3, 4])

    def listed(topics: list[ListPartitionReassignmentsTopics] | None) -> list[tuple[str, list[int], list[int]]]:
        request = ListPartitionReassignmentsRequest(topics=topics)
        answer = w.run(w.controller.list_partition_reassignments(request, 0))
        return [
            (t.name, t.partitions[0].adding_replicas, t.partitions[0].removing_replicas)
            for t in answer.topics
            if t.partitions[0].replicas == [3, 4, 1, 2]
        ]

    assert listed(None) == [("t", [3, 4], [1, 2])]
    assert listed([ListPartitionReassignmentsTopics("t", [0, 5])]) == [("t", [3, 4], [1, 2])]
    assert listed([ListPartitionReassignmentsTopics("u", [0])]) == []
    reassign(w, None)
    assert listed(None) == []


def test_a_broker_with_several_directories_decides_itself_where_a_new_replica_goes() -> None:
    w = world(1, 2)
    w.image.brokers[3].log_dirs = (directory(3), b"\xcc" * 16)
    reassign(w, [1, 2, 3])
    assert w.partition("t").directories == (directory(1), directory(2), UNASSIGNED_DIRECTORY)


def test_the_records_are_those_of_a_real_log() -> None:
    """From 1 2 to 3 1: what Apache Kafka wrote at the beginning and when 3 had caught up."""
    w = world(1, 2)
    topic_id = w.image.topics_by_name["t"].topic_id
    reassign(w, [3, 1])
    begun = PartitionChangeRecord(0, topic_id, replicas=[3, 1, 2], removing_replicas=[2], adding_replicas=[3])
    begun.directories = [directory(3), directory(1), directory(2)]
    assert w.records == [(begun, 2)]
    assert alter(w, [1, 2, 3]).error_code == 0
    ended = PartitionChangeRecord(0, topic_id, [1, 3], 1, replicas=[3, 1], removing_replicas=[], adding_replicas=[])
    ended.directories = [directory(3), directory(1)]
    assert w.records == [(ended, 2)]
