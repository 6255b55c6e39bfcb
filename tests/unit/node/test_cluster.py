"""Three whole nodes: they form a quorum, register, decide together, and go on when one of them is gone."""

from __future__ import annotations

from functools import partial

import pytest

from moldau.protocol import errors
from moldau.protocol.messages import describe_quorum_request as quorum
from moldau.protocol.messages import incremental_alter_configs_request as alter
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.unit.node.cluster import Cluster, Member

TOPIC, BROKER_LOGGER = 2, 8
SET = 0


@pytest.fixture
def cluster() -> Cluster:
    return Cluster().start()


def followers(cluster: Cluster) -> list[Member]:
    active = cluster.active()
    return [member for member in cluster.reachable() if member is not active]


def unfenced(member: Member) -> list[int]:
    return sorted(b.broker_id for b in member.node.image.brokers.values() if not b.fenced)


def test_three_nodes_form_a_quorum_and_all_their_brokers_are_let_in(cluster: Cluster) -> None:
    cluster.run(1000)
    for member in cluster.up():
        assert unfenced(member) == [1, 2, 3]
        assert sorted(member.node.image.controllers) == [1, 2, 3], "every controller makes itself known"
        assert member.node.metadata.leader_id == cluster.active().node_id
        assert member.node.lifecycle.broker_epoch == member.node.image.brokers[member.node_id].broker_epoch


def test_a_topic_that_any_broker_is_asked_for_is_on_all_of_them(cluster: Cluster) -> None:
    for member in cluster.members.values():
        assert member.create(f"t{member.node_id}", partitions=3) == errors.NONE
    cluster.run(300)
    for member in cluster.up():
        placed = sorted((p.topic, p.index) for p in member.node.replicas.all())
        assert placed == [(f"t{number}", index) for number in (1, 2, 3) for index in range(3)]
        assert member.disk.is_directory("/data/t1-0")


def test_many_new_logs_are_made_turn_by_turn(cluster: Cluster) -> None:
    """Whoever talks to a broker meanwhile gets its answers; a replica whose turn has not come is not there yet."""
    asked = cluster.active()
    assert asked.create("many", partitions=350) == errors.NONE
    early = len(asked.node.replicas.all())
    assert 0 < early < 350
    assert asked.node.replicas.why_missing("many", 349).code == errors.NOT_LEADER_OR_FOLLOWER
    assert asked.create("more", partitions=2) == errors.NONE, (
        "those that wait come first, and it is answered all the same"
    )
    cluster.run(500)
    for member in cluster.up():
        assert sorted(p.index for p in member.node.replicas.all() if p.topic == "many") == list(range(350))
        assert all(p.log is not None for p in member.node.replicas.all())
        assert sorted(p.index for p in member.node.replicas.all() if p.topic == "more") == [0, 1]


def test_logs_of_a_topic_that_is_gone_are_not_made(cluster: Cluster) -> None:
    asked = cluster.active()
    assert asked.create("many", partitions=350) == errors.NONE
    row = asked.ask(DeleteTopicsRequest(topics=[DeleteTopicState("many")], timeout_ms=1000), 6).responses[0]
    assert row.error_code == errors.NONE
    cluster.run(500)
    for member in cluster.up():
        assert not [p for p in member.node.replicas.all() if p.topic == "many"]


def test_an_error_of_the_controller_reaches_the_client_as_it_is(cluster: Cluster) -> None:
    asked = followers(cluster)[0]
    assert asked.create("t") == errors.NONE
    assert asked.create("t") == errors.TOPIC_ALREADY_EXISTS
    assert asked.create("u", replicas=4) == errors.INVALID_REPLICATION_FACTOR


def test_what_a_broker_can_answer_itself_and_what_it_passes_on_come_back_in_one_answer(cluster: Cluster) -> None:
    asked = followers(cluster)[0]
    assert asked.create("t") == errors.NONE
    request = alter.IncrementalAlterConfigsRequest(
        resources=[
            alter.AlterConfigsResource(TOPIC, "t", [alter.AlterableConfig("retention.ms", SET, "77")]),
            alter.AlterConfigsResource(BROKER_LOGGER, "99", [alter.AlterableConfig("moldau", SET, "INFO")]),
            alter.AlterConfigsResource(TOPIC, "missing", [alter.AlterableConfig("retention.ms", SET, "77")]),
        ]
    )
    rows = asked.ask(request, 1).responses
    assert [(row.resource_name, row.error_code) for row in rows] == [
        ("t", errors.NONE),
        ("99", errors.INVALID_REQUEST),
        ("missing", errors.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    cluster.run(100)
    assert all(member.node.log_config_of("t").retention_ms == 77 for member in cluster.up())


def test_a_topic_is_created_for_a_client_that_only_asks_about_it(cluster: Cluster) -> None:
    asked = followers(cluster)[0]
    request = MetadataRequest(topics=[MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True)
    assert asked.ask(request, 12).topics[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    cluster.run(200)
    assert asked.ask(request, 12).topics[0].error_code == errors.NONE


def test_every_broker_hands_out_producer_ids_of_its_own(cluster: Cluster) -> None:
    request = InitProducerIdRequest(None, 1000, producer_id=-1, producer_epoch=-1)
    answers = [member.ask(request, 4) for member in cluster.up() for _ in range(2)]
    assert {answer.error_code for answer in answers} == {errors.NONE}
    ids = sorted(answer.producer_id for answer in answers)
    assert ids == [0, 1, 1000, 1001, 2000, 2001]


def test_any_broker_describes_the_quorum(cluster: Cluster) -> None:
    request = quorum.DescribeQuorumRequest([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])])
    cluster.run(1000)
    for member in cluster.up():
        data = member.ask(request, 2).topics[0].partitions[0]
        assert (data.error_code, data.leader_id) == (errors.NONE, cluster.active().node_id)
        assert [voter.replica_id for voter in data.current_voters] == [1, 2, 3]


# When one of them is gone


def test_a_killed_controller_is_replaced_and_nobody_who_lives_is_fenced(cluster: Cluster) -> None:
    assert cluster[1].create("before") == errors.NONE
    killed = cluster.active()
    killed.kill()
    took_ms = cluster.run_until(cluster.has_active)
    assert took_ms < 3000
    living = [member.node_id for member in cluster.up()]
    for member in cluster.up():
        assert member.create(f"after{member.node_id}", replicas=2) == errors.NONE
    cluster.run(10_000)
    assert all(unfenced(member) == living for member in cluster.up())
    assert all("before" in member.node.image.topics_by_name for member in cluster.up())


def test_a_node_that_comes_back_registers_anew_and_catches_up(cluster: Cluster) -> None:
    killed = cluster.active()
    epoch = killed.node.lifecycle.broker_epoch
    killed.kill()
    cluster.run_until(cluster.has_active)
    assert cluster.up()[0].create("meanwhile", partitions=3, replicas=2) == errors.NONE
    killed.start()
    cluster.run_until(lambda: killed.node.is_ready)
    assert killed.node.lifecycle.broker_epoch > epoch
    cluster.run(1000)
    assert "meanwhile" in killed.node.image.topics_by_name
    assert all(unfenced(member) == [1, 2, 3] for member in cluster.up())
    assert not killed.node.metadata.is_active_controller


def test_settings_of_a_topic_that_changed_while_a_node_was_away_hold_for_its_logs_when_it_is_back(
    cluster: Cluster,
) -> None:
    """Its logs are loaded with the settings it knew; a leader with an old minimum would commit what it must not."""
    assert cluster[1].create("t") == 0
    cluster.run(1000)
    away = followers(cluster)[0]
    away.kill()
    change = AlterableConfig("min.insync.replicas", 0, "3")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(2, "t", [change])])
    assert cluster.active().ask(request, 1).responses[0].error_code == 0
    cluster.run(1000)
    away.start()
    cluster.run_until(lambda: away.node.is_ready)
    partition = away.node.replicas.find("t", 0)
    assert partition is not None and partition.log is not None
    assert partition.log.config.min_insync_replicas == 3


def test_a_request_that_finds_no_controller_is_answered_by_the_next_one(cluster: Cluster) -> None:
    asked = followers(cluster)[0]
    cluster.active().kill()
    assert asked.create("t", replicas=2) == errors.NONE
    assert cluster.active().node.metadata.image.topics_by_name["t"]


def test_a_request_that_waits_for_a_controller_nobody_hears_goes_to_its_successor(cluster: Cluster) -> None:
    asked = followers(cluster)[0]
    cluster.cut_off(cluster.active())
    assert asked.create("t", replicas=2) == errors.NONE


def test_a_request_that_meets_a_failing_metadata_log_is_answered_by_the_next_controller(cluster: Cluster) -> None:
    """What it wanted is in the log already when a follower's waiting fetch cannot be read from it."""
    cluster.run(200)  # until the followers' fetches wait at the leader
    asked, failing = followers(cluster)[0], cluster.active()
    failing.node.on_fatal = lambda reason: cluster.schedule(0, failing.kill)
    failing.disk.fail("read", "__cluster_metadata")
    assert asked.create("t", replicas=2) == errors.NONE
    assert not failing.is_up
    assert cluster.active().node.metadata.image.topics_by_name["t"]


def test_a_controller_whose_metadata_log_failed_decides_nothing_more(cluster: Cluster) -> None:
    """Until its process is gone: it does not know what is in its log."""
    cluster.run(200)
    asked, failing = followers(cluster)[0], cluster.active()
    failing.disk.fail("read", "__cluster_metadata")
    failing.send(CreateTopicsRequest(topics=[CreatableTopic("t", 1, 2)], timeout_ms=5000), 5)
    assert "only in part" in failing.fatal[0]
    end = failing.node.metadata.log.end_offset()
    asked.send(CreateTopicsRequest(topics=[CreatableTopic("u", 1, 2)], timeout_ms=5000), 5)
    cluster.run(100)
    assert failing.node.metadata.log.end_offset() == end


def test_a_controller_that_was_cut_off_follows_its_successor_when_it_is_back(cluster: Cluster) -> None:
    lost = cluster.active()
    cluster.cut_off(lost)
    cluster.run_until(cluster.has_active)
    assert followers(cluster)[0].create("t", replicas=2) == errors.NONE
    cluster.run(12_000)
    assert not lost.node.metadata.is_active_controller, "it steps down without a majority"
    assert unfenced(cluster.active()) == [m.node_id for m in cluster.up() if m is not lost]
    cluster.heal()
    cluster.run_until(lambda: unfenced(cluster.active()) == [1, 2, 3])
    cluster.run_until(lambda: "t" in lost.node.image.topics_by_name)
    cluster.run_until(lambda: lost.node.lifecycle.is_unfenced)
    assert lost.fatal == []


def test_a_broker_that_was_unregistered_while_it_lives_registers_again(cluster: Cluster) -> None:
    broker = followers(cluster)[0]
    epoch = broker.node.lifecycle.broker_epoch
    answer = followers(cluster)[1].ask(UnregisterBrokerRequest(broker.node_id), 0)
    assert answer.error_code == errors.NONE
    cluster.run_until(lambda: broker.node.lifecycle.broker_epoch > epoch)
    cluster.run_until(lambda: unfenced(cluster.active()) == [1, 2, 3])


def test_a_node_that_stops_gives_up_its_leaderships_and_the_quorum_without_a_pause(cluster: Cluster) -> None:
    assert cluster[1].create("t", partitions=6) == errors.NONE
    cluster.run(2000)
    leaving = cluster.active()
    finished: list[int] = []
    leaving.node.begin_shutdown(cluster.now_ms, lambda: finished.append(cluster.now_ms))
    took_ms = cluster.run_until(lambda: bool(finished))
    assert took_ms < 1000
    leaving.node.stop(cluster.now_ms)
    leaving.kill()
    assert cluster.run_until(cluster.has_active) < 100
    partitions = cluster.active().node.image.topics_by_name["t"].partitions.values()
    assert all(partition.leader in unfenced(cluster.active()) for partition in partitions)
    assert leaving.disk.read_file("/data/.kafka_cleanshutdown")


def test_a_whole_cluster_stops_in_bounded_time(cluster: Cluster) -> None:
    """The last ones find no quorum to ask; they go all the same."""
    finished: list[int] = []

    def end(member: Member) -> None:
        finished.append(member.node_id)
        member.node.stop(cluster.now_ms)
        member.kill()

    for member in cluster.up():
        member.node.begin_shutdown(cluster.now_ms, partial(end, member))
    assert cluster.run_until(lambda: len(finished) == 3) < 5000


# Roles


def test_controllers_and_brokers_can_be_different_nodes() -> None:
    cluster = Cluster({1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"}).start()
    cluster.run_until(lambda: cluster[4].node.image.active_brokers() == [4, 5])
    assert cluster.active().node_id in (1, 2, 3)
    assert cluster[4].create("t", partitions=2, replicas=2) == errors.NONE
    cluster.run(500)
    for member in cluster.up():
        is_broker = member.node_id >= 4
        assert len(member.node.replicas.all()) == (2 if is_broker else 0)
        assert member.disk.is_directory("/data/t-0") == is_broker
        assert "t" in member.node.image.topics_by_name
    cluster.active().kill()
    assert cluster[5].create("u", replicas=2) == errors.NONE


def test_a_controller_leaves_the_logs_of_an_earlier_role_as_it_found_them() -> None:
    """A broker that died becomes a controller only: its stop is not a clean stop of the logs."""
    cluster = Cluster({1: "broker,controller"}).start()
    assert cluster[1].create("t", replicas=1) == errors.NONE
    cluster.run(200)
    for stops_cleanly in (True, False):
        if stops_cleanly:
            cluster[1].node.stop(cluster.now_ms)
        cluster[1].kill()
        before = cluster[1].disk.list("/data")
        assert (".kafka_cleanshutdown" in before) == stops_cleanly
        cluster[1].values.update({"process.roles": "controller", "listeners": "CONTROLLER://10.0.0.1:9501"})
        cluster[1].start()
        cluster.run(100)
        assert not cluster[1].disk.exists("/data/.kafka_cleanshutdown")
        cluster[1].node.stop(cluster.now_ms)
        cluster[1].kill()
        assert set(cluster[1].disk.list("/data")) == {*before} - {".lock"}
        cluster[1].values["process.roles"] = "broker,controller"
        cluster[1].values["listeners"] = "PLAINTEXT://10.0.0.1:9001,CONTROLLER://10.0.0.1:9501"
        cluster[1].start()
        cluster.run_until(lambda: cluster[1].node.is_ready)
        assert len(cluster[1].node.replicas.all()) == 1


def test_a_broker_alone_waits_for_its_controllers_and_keeps_what_it_has() -> None:
    """Before it knows the metadata of now it must neither set logs aside nor delete from them."""
    cluster = Cluster(log_retention_ms="1000", log_retention_check_interval_ms="100").start()
    assert cluster[1].create("t", partitions=3) == errors.NONE
    cluster.run(500)
    for member in cluster.up():
        member.kill()
    cluster[1].start()
    cluster.run(35_000)
    assert not cluster[1].node.is_ready
    assert all(cluster[1].disk.is_directory(f"/data/t-{index}") for index in range(3))
    cluster[2].start()
    cluster.run_until(lambda: cluster[1].node.is_ready and cluster[2].node.is_ready)
    assert len(cluster[1].node.replicas.all()) == 3


def test_a_broker_that_finds_no_controllers_gives_up_and_says_why() -> None:
    cluster = Cluster({1: "controller", 2: "broker"}, initial_broker_registration_timeout_ms="5000")
    cluster[2].start()
    cluster.run(10_000)
    assert cluster[2].fatal and "registration timed out" in cluster[2].fatal[0]


def test_a_fenced_broker_is_shown_only_to_those_who_ask_for_it(cluster: Cluster) -> None:
    gone = followers(cluster)[0]
    gone.kill()
    cluster.run_until(lambda: gone.node_id not in unfenced(cluster.active()))
    member = followers(cluster)[0]
    cluster.run(100)
    plain = member.ask(DescribeClusterRequest(endpoint_type=1), 2)
    assert gone.node_id not in [broker.broker_id for broker in plain.brokers] and len(plain.brokers) == 2
    everyone = member.ask(DescribeClusterRequest(endpoint_type=1, include_fenced_brokers=True), 2)
    assert {broker.broker_id: broker.is_fenced for broker in everyone.brokers} == {
        broker_id: broker_id == gone.node_id for broker_id in (1, 2, 3)
    }
    listed = member.ask(MetadataRequest(topics=[]), 12)
    assert gone.node_id not in [broker.node_id for broker in listed.brokers]
    assert listed.controller_id in [broker.node_id for broker in listed.brokers]


def test_replicas_that_are_away_are_offline_and_the_oldest_clients_do_not_see_them(cluster: Cluster) -> None:
    assert cluster[1].create("t") == errors.NONE
    cluster.run(100)
    leader = cluster[1].node.image.topics_by_name["t"].partitions[0].leader
    gone = next(member for member in followers(cluster) if member.node_id != leader)
    gone.kill()
    cluster.run_until(lambda: gone.node_id not in unfenced(cluster.active()))
    cluster.run(100)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    row = cluster.active().ask(request, 12).topics[0].partitions[0]
    assert (row.error_code, len(row.replica_nodes), row.offline_replicas) == (errors.NONE, 3, [gone.node_id])
    old = cluster.active().ask(request, 0).topics[0].partitions[0]
    assert (old.error_code, old.leader_id) == (errors.REPLICA_NOT_AVAILABLE, leader)
    assert gone.node_id not in old.replica_nodes and len(old.replica_nodes) == 2


def test_a_directory_is_cordoned_and_reopened_while_the_broker_runs() -> None:
    cluster = Cluster(log_dirs="/data,/data2").start()
    broker = followers(cluster)[0]
    second = broker.node.logs.directories[1].directory_id

    def cordon(value: str) -> int:
        change = alter.AlterableConfig("cordoned.log.dirs", SET, value)
        resource = alter.AlterConfigsResource(4, str(broker.node_id), [change])
        return int(broker.ask(alter.IncrementalAlterConfigsRequest([resource]), 1).responses[0].error_code)

    def known() -> tuple[bytes, ...] | None:
        return cluster.active().node.image.brokers[broker.node_id].cordoned_log_dirs

    assert cordon("/data2") == errors.NONE
    cluster.run_until(lambda: known() == (second,), 5000)
    assert cordon("") == errors.NONE
    cluster.run_until(lambda: known() == (), 5000)


def test_a_broker_without_controlled_shutdown_just_goes() -> None:
    cluster = Cluster(controlled_shutdown_enable="false").start()
    finished: list[bool] = []
    broker = followers(cluster)[0]
    broker.node.begin_shutdown(cluster.now_ms, lambda: finished.append(True))
    assert finished
