"""Who leads: the ISR, then who is eligible, then the last known leader, then an unclean choice where allowed."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.controller.partition_change import PREFERRED, PartitionChange
from moldau.metadata.model import BROKER_RESOURCE, RECOVERED, RECOVERING, TOPIC_RESOURCE, PartitionRegistration
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import incremental_alter_configs_request as configs
from moldau.protocol.messages.alter_partition_request import AlterPartitionRequest, BrokerState
from moldau.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
)
from moldau.protocol.messages.assign_replicas_to_dirs_request import PartitionData as DirPartition
from moldau.protocol.messages.assign_replicas_to_dirs_request import TopicData as DirTopic
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tests.unit.controller.test_partition_change import alter, silence, world
from tests.unit.controller.world import World, directory

OLD_METADATA_VERSION = 11
NEW_METADATA_VERSION = 30


def change(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int,
    alive: set[int],
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    min_isr: int = 2,
    version: int = NEW_METADATA_VERSION,
) -> PartitionChange:
    partition = PartitionRegistration(
        replicas, (bytes(16),) * len(replicas), isr, leader=leader, elr=elr, last_known_elr=last_known
    )
    return PartitionChange(partition, b"t" * 16, 0, lambda replica: replica in alive, version, min_isr, version > 22)


def elected(c: PartitionChange) -> PartitionRegistration:
    built = c.build()
    return c.partition if built is None else c.partition.merge(built[0])


# The rules


def test_an_eligible_replica_does_not_lead_while_the_isr_has_somebody() -> None:
    """Not even by preference: it may lack what the leader has taken since."""
    c = change((1, 2, 3), (3,), 3, {1, 2, 3}, elr=(1,), min_isr=2)
    c.election = PREFERRED
    assert c.build() is None


def test_among_the_isr_the_order_of_the_replicas_decides() -> None:
    c = change((3, 1, 2), (2, 1, 3), 3, {1, 2})
    c.target_isr = [2, 1]
    after = elected(c)
    assert (after.leader, after.isr) == (1, (2, 1))


def test_a_leader_that_can_go_on_goes_on() -> None:
    c = change((1, 2, 3), (2, 3), 2, {1, 2, 3})
    c.target_isr = [2, 3, 1]
    assert elected(c).leader == 2


def test_one_that_comes_back_eligible_leads_alone_and_the_other_stays_eligible() -> None:
    c = change((1, 2, 3), (), -1, {2}, elr=(2, 3), last_known=(3,))
    after = elected(c)
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (2, (2,), (3,), ())
    assert after.leader_recovery_state == RECOVERED


def test_the_last_known_leader_leads_only_if_nobody_is_eligible() -> None:
    assert elected(change((1, 2, 3), (), -1, {3}, elr=(2,), last_known=(3,))).leader == -1
    after = elected(change((1, 2, 3), (), -1, {3}, last_known=(3,)))
    assert (after.leader, after.isr, after.leader_recovery_state) == (3, (3,), RECOVERING)
    assert elected(change((1, 2, 3), (), -1, {1, 2}, last_known=(3,))).leader == -1, "it is not alive"
    assert elected(change((1, 2), (), -1, {3}, last_known=(3,))).leader == -1, "it is not a replica any more"


def test_a_replica_that_is_not_assigned_any_more_is_not_eligible() -> None:
    c = change((1, 2, 3), (2,), 2, {1}, elr=(1, 3), min_isr=3)
    c.target_replicas, c.target_isr = [1, 2], []
    assert elected(c).elr == (2,), "1 is back and leads, 3 is gone"


def test_a_shrinking_isr_raises_the_leader_epoch_for_brokers_of_older_releases_only() -> None:
    for version, leader_epoch in ((OLD_METADATA_VERSION, 1), (NEW_METADATA_VERSION, 0)):
        c = change((1, 2, 3), (1, 2, 3), 1, {1, 2, 3}, version=version)
        c.target_isr = [1, 2]
        assert elected(c).leader_epoch == leader_epoch


def test_without_the_feature_the_last_one_stays_in_the_isr_and_is_waited_for() -> None:
    c = change((1, 2), (1,), 1, {2}, version=OLD_METADATA_VERSION)
    c.target_isr = []
    after = elected(c)
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (-1, (1,), (), ())


# AlterPartition


def test_a_new_isr_must_be_of_replicas_with_the_leader_and_each_once() -> None:
    w = world()
    epochs = {b: w.image.brokers[b].broker_epoch for b in (1, 2, 3)}
    for isr in ([2, 3], [1, 2, 2], [1, 9], []):
        states = [BrokerState(b, epochs.get(b, 0)) for b in isr]
        assert alter(w, [1], new_isr_with_epochs=states).error_code == errors.INVALID_REQUEST
    assert alter(w, [1, 2], new_isr_with_epochs=[], new_isr=[1, 2]).error_code == 0, "version 2 has no epochs"
    assert w.partition("t").isr == (1, 2)


def test_who_does_not_lead_is_told_so() -> None:
    w = world()
    silence(w, 1)
    w.heartbeat(1)
    assert alter(w, [2], leader_epoch=0).error_code == errors.FENCED_LEADER_EPOCH
    assert alter(w, [2], broker_id=3).error_code == errors.INVALID_REQUEST
    with pytest.raises(KafkaError) as failure:
        stale = w.image.brokers[2].broker_epoch
        w.image.brokers[2].broker_epoch += 1
        alter_with_epoch(w, stale)
    assert failure.value.code == errors.STALE_BROKER_EPOCH


def alter_with_epoch(w: World, broker_epoch: int) -> Any:
    return w.controller.alter_partition(AlterPartitionRequest(2, broker_epoch), w.now_ms)


def test_a_broker_that_is_shutting_down_does_not_enter_the_isr() -> None:
    w = world()
    alter(w, [1, 2])
    w.create("u", assignments=[[3]])
    w.heartbeat(3, want_shut_down=True)
    assert w.image.brokers[3].in_controlled_shutdown
    assert alter(w, [1, 2, 3]).error_code == errors.INELIGIBLE_REPLICA


def test_a_recovering_leader_says_when_it_has_recovered() -> None:
    w = world(factor=2, unclean_leader_election_enable="true")
    silence(w, 2)
    silence(w, 1)
    w.heartbeat(2)
    w.heartbeat(1)
    assert w.partition("t").leader_recovery_state == RECOVERING
    assert alter(w, [2, 1], leader_recovery_state=1).error_code == errors.INVALID_REQUEST
    assert alter(w, [2, 1]).error_code == 0
    assert w.partition("t").leader_recovery_state == RECOVERED
    assert alter(w, [2], leader_recovery_state=1).error_code == errors.INVALID_REQUEST


# ElectLeaders


def elect(w: World, kind: int, *wanted: tuple[str, int]) -> list[tuple[int, str | None]]:
    topics = [TopicPartitions(name, [index]) for name, index in wanted]
    results = w.run(w.controller.elect_leaders(ElectLeadersRequest(kind, topics), 0)).replica_election_results
    return [(row.error_code, row.error_message) for result in results for row in result.partition_result]


def test_every_partition_gets_an_answer_of_its_own() -> None:
    w = world()
    silence(w, 1)
    assert elect(w, 0, ("nope", 0), ("t", 5)) == [
        (errors.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as nope"),
        (errors.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-5"),
    ]
    assert elect(w, 0, ("t", 0))[0][0] == errors.PREFERRED_LEADER_NOT_AVAILABLE
    assert elect(w, 1, ("t", 0))[0][0] == errors.ELECTION_NOT_NEEDED
    silence(w, 2, 3)
    assert elect(w, 1, ("t", 0))[0][0] == errors.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_an_unclean_election_that_was_asked_for_is_held_whatever_the_topic_says() -> None:
    w = world(factor=2)
    silence(w, 2)
    silence(w, 1)
    w.heartbeat(2)
    assert w.partition("t").leader == -1
    assert elect(w, 1, ("t", 0)) == [(0, None)]
    partition = w.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), RECOVERING)


def test_an_election_of_everything_answers_for_what_had_to_change() -> None:
    w = world()
    w.create("u", assignments=[[2, 3]])
    silence(w, 1)
    w.heartbeat(1)
    alter(w, [2, 3, 1])
    results = w.run(w.controller.elect_leaders(ElectLeadersRequest(0, None), 0)).replica_election_results
    found = {r.topic: [row.error_code for row in r.partition_result] for r in results}
    assert found == {"t": [0], "u": []}
    assert w.partition("t").leader == 1


def test_an_unknown_kind_of_election_is_refused() -> None:
    w = world()
    with pytest.raises(KafkaError) as failure:
        elect(w, 7, ("t", 0))
    assert failure.value.code == errors.INVALID_REQUEST


# Settings that change who may lead


def set_config(w: World, name: str, value: str | None, resource_name: str = "t", kind: int = TOPIC_RESOURCE) -> None:
    """None takes the setting away."""
    change = configs.AlterableConfig(name, 0 if value is not None else 1, value)
    resource = configs.AlterConfigsResource(kind, resource_name, [change])
    w.run(w.controller.incremental_alter_configs(configs.IncrementalAlterConfigsRequest([resource]), 0))


def run_duties(w: World) -> None:
    duty = w.controller.duties.take(w.now_ms)
    while duty is not None:
        w.run(duty)
        duty = w.controller.duties.take(w.now_ms)


def test_an_unclean_election_is_held_as_soon_as_it_is_allowed() -> None:
    w = world(factor=2)
    silence(w, 2)
    silence(w, 1)
    w.heartbeat(2)
    run_duties(w)
    assert w.partition("t").leader == -1
    set_config(w, "unclean.leader.election.enable", "true")
    assert w.controller.duties.next_ms(w.now_ms) <= w.now_ms
    run_duties(w)
    assert (w.partition("t").leader, w.partition("t").leader_recovery_state) == (2, RECOVERING)
    assert w.controller.duties.next_ms(w.now_ms) > w.now_ms


def test_a_change_of_the_minimum_forgets_who_was_eligible_but_not_where_nobody_leads() -> None:
    w = world(min_insync_replicas="3")
    w.create("down", assignments=[[2, 3]], configs={"min.insync.replicas": "2"})
    silence(w, 2, 3)
    assert (w.partition("t").isr, w.partition("t").elr) == ((1,), (2, 3))
    assert (w.partition("down").isr, w.partition("down").elr) == ((), (2, 3))
    last_known = w.partition("down").last_known_elr
    set_config(w, "min.insync.replicas", "1")
    set_config(w, "min.insync.replicas", "1", "down")
    assert w.partition("t").elr == ()
    assert (w.partition("down").elr, w.partition("down").last_known_elr) == ((2, 3), last_known)
    w.heartbeat(3)
    assert (w.partition("down").leader, w.partition("down").isr, w.partition("down").elr) == (3, (3,), ())


def test_a_change_of_the_minimum_leaves_those_eligible_without_whom_nothing_was_committed() -> None:
    """The ISR is below the new minimum as it was below the old one."""
    w = world(min_insync_replicas="3")
    silence(w, 2, 3)
    set_config(w, "min.insync.replicas", "2")
    assert (w.partition("t").isr, w.partition("t").elr) == ((1,), (2, 3))
    set_config(w, "min.insync.replicas", None)
    assert w.controller.state.min_insync_replicas("t") == 1 and w.partition("t").elr == ()


def test_a_change_for_the_cluster_leaves_topics_alone_that_have_a_minimum_of_their_own() -> None:
    w = world(min_insync_replicas="3")
    w.create("u", assignments=[[1, 2, 3]])
    silence(w, 2, 3)
    assert (w.partition("t").elr, w.partition("u").elr) == ((2, 3), ())
    set_config(w, "min.insync.replicas", "2", "", BROKER_RESOURCE)
    assert (w.partition("t").elr, w.partition("u").elr) == ((2, 3), ())


# Directories


def two_directories(w: World, broker_id: int) -> bytes:
    other = b"\xbb" * 15 + bytes([broker_id])
    w.image.brokers[broker_id].log_dirs = (directory(broker_id), other)
    return other


def assign(w: World, broker_id: int, where: bytes) -> None:
    topic_id = w.image.topics_by_name["t"].topic_id
    request = AssignReplicasToDirsRequest(broker_id, w.image.brokers[broker_id].broker_epoch)
    request.directories = [DirectoryData(where, [DirTopic(topic_id, [DirPartition(0)])])]
    w.run(w.controller.assign_replicas_to_dirs(request, 0))


def lose(w: World, broker_id: int, *where: bytes) -> Any:
    request = BrokerHeartbeatRequest(broker_id, w.image.brokers[broker_id].broker_epoch, w.image.offset)
    request.offline_log_dirs = list(where)
    return w.run(w.controller.broker_heartbeat(request, w.now_ms))


def test_a_lost_directory_costs_only_what_lies_in_it() -> None:
    w = world()
    w.create("u", assignments=[[1, 2]])
    other = two_directories(w, 1)
    assign(w, 1, other)
    lose(w, 1, other)
    assert w.record_names() == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]
    assert (w.partition("t").leader, w.partition("t").isr) == (2, (2, 3))
    assert (w.partition("u").leader, w.partition("u").isr) == (1, (1, 2))
    assert w.image.brokers[1].log_dirs == (directory(1),) and not w.image.brokers[1].fenced
    lose(w, 1, other)
    assert w.records == []


def test_a_replica_in_a_lost_directory_is_not_eligible() -> None:
    """The disk may be replaced by an empty one."""
    w = world(factor=2, min_insync_replicas="2")
    silence(w, 2)
    assert w.partition("t").elr == (2,)
    other = two_directories(w, 1)
    assign(w, 1, other)
    lose(w, 1, other)
    assert (w.partition("t").isr, w.partition("t").elr) == ((), (2,))


def test_a_fenced_broker_with_a_lost_directory_is_not_given_what_lies_there() -> None:
    w = world(factor=1)
    other = two_directories(w, 1)
    assign(w, 1, other)
    silence(w, 1)
    assert lose(w, 1, other).is_fenced
    assert not w.heartbeat(1).is_fenced
    assert w.partition("t").leader == -1
    assign(w, 1, directory(1))
    assert w.partition("t").leader == 1


def test_a_replica_in_a_directory_nobody_knows_is_offline() -> None:
    w = world(factor=2)
    assign(w, 1, b"\xee" * 16)
    assert (w.partition("t").leader, w.partition("t").isr) == (2, (2,))


def test_a_broker_that_comes_back_without_one_of_its_directories_is_not_eligible_any_more() -> None:
    """However well it was stopped: what was in that directory is not there."""
    for log_dirs, eligible in (([directory(2)], (2,)), ([bytes([0xBB, 2]) + bytes(14)], ())):
        w = world(factor=2, min_insync_replicas="2")
        epoch = w.image.brokers[2].broker_epoch
        silence(w, 2)
        assert (w.partition("t").isr, w.partition("t").elr) == ((1,), (2,))
        w.register(2, previous_epoch=epoch, incarnation=2, log_dirs=log_dirs)
        assert w.partition("t").elr == eligible


def test_a_broker_that_is_killed_before_it_hears_its_epoch_stays_eligible() -> None:
    """Its next run names the epoch before, the only one it knows; or the new one, if it was killed a moment later."""
    w = world(factor=2, min_insync_replicas="2")
    epoch = w.image.brokers[2].broker_epoch
    silence(w, 2)
    for incarnation in (2, 3, 4):
        unheard = w.register(2, previous_epoch=epoch, incarnation=incarnation)
        assert w.partition("t").elr == (2,)
    heard = w.register(2, previous_epoch=unheard, incarnation=5)
    assert w.partition("t").elr == (2,)
    assert heard > unheard > epoch


def test_an_epoch_that_was_used_is_not_forgotten_for_the_one_before() -> None:
    """A broker that took part may have what it had not before; one that stayed fenced has nothing that counts."""
    for is_unfenced, eligible in ((False, (2,)), (True, ())):
        w = world(factor=2, min_insync_replicas="2")
        epoch = w.image.brokers[2].broker_epoch
        silence(w, 2)
        used = w.register(2, previous_epoch=epoch, incarnation=2)
        w.heartbeat(2, offset=used if is_unfenced else 0)
        assert w.image.brokers[2].fenced is not is_unfenced
        if is_unfenced:
            silence(w, 2)
            assert w.partition("t").elr == (2,)
        w.register(2, previous_epoch=epoch, incarnation=3)
        assert w.partition("t").elr == eligible


def test_a_new_active_controller_knows_which_epochs_were_not_used() -> None:
    """They are learned from the records, by every controller."""
    w = world(factor=2, min_insync_replicas="2")
    epoch = w.image.brokers[2].broker_epoch
    silence(w, 2)
    w.register(2, previous_epoch=epoch, incarnation=2)
    w.fail_over()
    w.register(2, previous_epoch=epoch, incarnation=3)
    assert w.partition("t").elr == (2,)


def test_a_broker_with_a_restored_directory_is_not_elected() -> None:
    """Its logs are shorter than they were, so it names no epoch (-1): the partition waits for who has everything."""
    for is_restored, leader in ((False, 2), (True, -1)):
        w = world(factor=2, min_insync_replicas="2")
        first, second = (w.image.brokers[broker_id].broker_epoch for broker_id in (1, 2))
        silence(w, 2)
        silence(w, 1)
        assert w.partition("t").leader == -1
        w.register(2, previous_epoch=-1 if is_restored else second, incarnation=2)
        assert not w.heartbeat(2).is_fenced
        assert w.partition("t").leader == leader
        w.register(1, previous_epoch=first, incarnation=2)
        assert not w.heartbeat(1).is_fenced
        assert w.partition("t").leader == (1 if is_restored else 2)
