"""The metadata node with one voter on a simulated disk: bootstrap, commits, restarts, crashes, snapshots."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.snapshot import image_to_records
from moldau.node import metadata_snapshots
from moldau.node.metadata_node import MetadataNode
from moldau.protocol import errors
from moldau.protocol.api_table import ALLOCATE_PRODUCER_IDS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import describe_quorum_request as quorum
from moldau.protocol.messages import fetch_request
from moldau.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from moldau.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import METADATA_TOPIC_UUID
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.snapshots import snapshot_bytes
from moldau.storage.log_manager import CannotStart
from tests.unit.metadata.harness import CLUSTER, LOG, Harness


@pytest.fixture
def h() -> Harness:
    harness = Harness()
    harness.start()
    harness.run(lambda: harness.ready)
    return harness


def test_a_single_voter_is_the_active_controller_when_start_returns() -> None:
    harness = Harness()
    node = harness.start(join=False)
    assert node.is_active_controller
    assert (node.leader_id, node.leader_epoch, node.cluster_id) == (1, 1, CLUSTER)


def test_a_new_node_is_ready_after_three_syncs_of_its_log() -> None:
    """Leader change and bootstrap share the first, which runs while the logs load; then registration, unfencing."""
    harness = Harness()
    syncs: list[str] = []
    harness.disk.observer = lambda line: syncs.append(line) if line.startswith("sync ") else None
    harness.start()
    harness.run(lambda: harness.ready)
    assert len([line for line in syncs if ".log" in line]) == 3
    assert not harness.node.image.brokers[1].fenced


def test_the_first_records_are_those_of_a_real_cluster(h: Harness) -> None:
    image = h.node.image
    assert image.features == {
        "metadata.version": 30, "eligible.leader.replicas.version": 1, "group.version": 1, "share.version": 1,
        "streams.version": 1, "transaction.version": 2,
    }  # fmt: skip
    assert image.broker_defaults() == {"min.insync.replicas": "1"}
    assert h.node.finalized_features()["kraft.version"] == 1
    assert image.brokers[1].broker_epoch == 13
    assert 1 in image.controllers


def test_an_answer_comes_after_its_records_were_published(h: Harness) -> None:
    seen: list[str] = []
    h.node.add_listener(lambda delta, image: seen.extend(topic.name for topic in delta.changed_topics.values()))
    assert h.create("t").topics[0].error_code == 0
    assert seen == ["t"]
    assert "t" in h.node.image.topics_by_name


def test_nothing_is_published_before_it_is_synced(h: Harness) -> None:
    answers: list[Any] = []
    request = CreateTopicsRequest([CreatableTopic("t", 1, 1)])
    h.node.submit(
        lambda controller: controller.create_topics(request, h.now_ms),
        lambda answer, now_ms: answers.append(answer),
        h.now_ms,
    )
    assert not answers and "t" not in h.node.image.topics_by_name
    h.run(lambda: bool(answers))
    assert "t" in h.node.image.topics_by_name


def test_appends_that_arrive_during_a_sync_share_the_next_one(h: Harness) -> None:
    syncs: list[str] = []
    h.disk.observer = lambda line: syncs.append(line) if line.startswith("sync ") and ".log" in line else None
    answers: list[Any] = []
    for number in range(10):
        request = CreateTopicsRequest([CreatableTopic(f"t{number}", 1, 1)])
        verb = lambda controller, request=request: controller.create_topics(request, h.now_ms)  # noqa: E731
        h.node.submit(verb, lambda answer, now_ms: answers.append(answer), h.now_ms)
    h.run(lambda: len(answers) == 10)
    assert len(syncs) == 2


def test_a_refused_verb_is_answered_with_its_error(h: Harness) -> None:
    answer = h.ask(lambda controller: controller.unregister_broker(UnregisterBrokerRequest(9), 0))
    assert isinstance(answer, KafkaError)
    assert answer.code == errors.BROKER_ID_NOT_REGISTERED


def test_a_clean_restart_keeps_everything_and_raises_the_epochs(h: Harness) -> None:
    h.create("t", 2)
    epoch = h.broker.broker_epoch
    h.stop()
    h.start(previous_epoch=epoch)
    h.run(lambda: h.ready)
    partition = h.node.image.topics_by_name["t"].partitions[0]
    assert (h.node.leader_epoch, partition.leader, partition.leader_epoch) == (2, 1, 2)
    assert partition.leader_recovery_state == 0


@pytest.mark.parametrize("seed", range(15))
def test_what_was_answered_survives_a_power_loss(seed: int) -> None:
    h = Harness()
    h.disk.rng.seed(seed)
    for round_number in range(3):
        h.start()
        h.run(lambda: h.ready)
        assert all(f"t{n}" in h.node.image.topics_by_name for n in range(round_number))
        assert h.create(f"t{round_number}").topics[0].error_code == 0
        request = CreateTopicsRequest([CreatableTopic(f"unanswered{round_number}", 1, 1)])
        h.node.submit(lambda c, r=request: c.create_topics(r, h.now_ms), lambda *answer: None, h.now_ms)  # type: ignore[misc]
        h.lose_power()
    assert h.node.leader_epoch >= 3


def test_an_idle_controller_writes_a_no_op_every_half_second(h: Harness) -> None:
    before = h.node.image.offset
    h.run_for(5000)
    assert 9 <= h.node.image.offset - before <= 11


def test_a_snapshot_is_written_by_time_and_loaded_at_the_next_start() -> None:
    h = Harness({"metadata.log.max.snapshot.interval.ms": "2000"})
    h.start()
    h.run(lambda: h.ready)
    h.create("t")
    h.run_for(2500)
    snapshot = h.node.log.latest_snapshot()
    assert snapshot is not None and snapshot.offset > 13
    names = h.disk.list(LOG)
    assert f"{snapshot.offset:020d}-{snapshot.epoch:010d}.checkpoint" in names
    assert not any(".part" in name for name in names)
    epoch = h.broker.broker_epoch
    h.stop()
    h.start(previous_epoch=epoch)
    h.run(lambda: h.ready)
    assert "t" in h.node.image.topics_by_name
    assert h.node.finalized_features()["kraft.version"] == 1


def test_old_snapshots_go_and_the_log_before_them_with_them() -> None:
    settings = {
        "metadata.log.max.snapshot.interval.ms": "3000",
        "internal.metadata.log.segment.bytes": "2000",
        "metadata.max.retention.bytes": "6000",
    }
    h = Harness(settings)
    h.start()
    h.run(lambda: h.ready)
    h.run_for(200_000)
    snapshots = [name for name in h.disk.list(LOG) if name.endswith(".checkpoint")]
    assert 1 <= len(snapshots) <= 3
    assert h.node.log.start_offset() > 0
    assert "00000000000000000000.log" not in h.disk.list(LOG)
    h.stop()
    h.start()
    h.run(lambda: h.ready)
    assert h.node.image.features["metadata.version"] == 30


def test_quorum_state_has_the_form_of_its_kind_of_quorum(h: Harness) -> None:
    assert json.loads(h.disk.read_file(f"{LOG}/quorum-state")) == {
        "leaderId": 1, "leaderEpoch": 1, "votedId": -1, "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1,
    }  # fmt: skip
    static = Harness(static=True)
    static.start()
    static.run(lambda: static.ready)
    assert static.disk.read_file(f"{LOG}/quorum-state") == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
        b'"data_version":0}'
    )
    assert "kraft.version" not in static.node.finalized_features()


def test_producer_ids_are_allocated_for_the_local_broker(h: Harness) -> None:
    answers: list[AllocateProducerIdsResponse] = []
    for _ in range(2):
        request = AllocateProducerIdsRequest(1, h.broker.broker_epoch)
        h.channel.ask(ALLOCATE_PRODUCER_IDS, request, lambda answer, now_ms: answers.append(answer), h.now_ms)
    h.run(lambda: len(answers) == 2)
    assert [(answer.producer_id_start, answer.producer_id_len) for answer in answers] == [(0, 1000), (1000, 1000)]


def test_the_quorum_describes_itself(h: Harness) -> None:
    request = quorum.DescribeQuorumRequest([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])])
    response = h.node.describe_quorum(request, 2, h.now_ms)
    data = response.topics[0].partitions[0]
    assert (data.leader_id, data.leader_epoch, data.high_watermark) == (1, 1, h.node.high_watermark)
    assert [(v.replica_id, v.log_end_offset) for v in data.current_voters] == [(1, h.node.log.end_offset())]
    assert [(n.node_id, n.listeners[0].name, n.listeners[0].port) for n in response.nodes] == [(1, "CONTROLLER", 9093)]


def test_an_observer_can_fetch_the_metadata_log(h: Harness) -> None:
    partition = fetch_request.FetchPartition(0, 1, 0, 0, replica_directory_id=b"o" * 16)
    request = fetch_request.FetchRequest(cluster_id=CLUSTER, replica_state=fetch_request.ReplicaState(5))
    request.topics = [fetch_request.FetchTopic("__cluster_metadata", METADATA_TOPIC_UUID, [partition])]
    answers: list[Any] = []
    h.node.handle_raft_request(1, request, "CONTROLLER", h.now_ms, answers.append)
    data = answers[0].responses[0].partitions[0]
    assert (data.error_code, data.high_watermark) == (0, h.node.high_watermark)
    assert data.records.size > 500
    request.cluster_id = "other"
    h.node.handle_raft_request(1, request, "CONTROLLER", h.now_ms, answers.append)
    assert answers[1].error_code == errors.INCONSISTENT_CLUSTER_ID


def test_a_directory_that_was_not_formatted_cannot_be_started() -> None:
    h = Harness()
    h.disk.remove("/data/meta.properties")
    with pytest.raises(CannotStart, match=r"meta\.properties"):
        h.start()


def test_a_log_that_cannot_be_synced_is_fatal(h: Harness) -> None:
    reasons: list[str] = []
    h.node.on_fatal = reasons.append
    h.disk.fail("sync", ".log")
    h.run(lambda: bool(reasons))
    assert "/data failed" in reasons[0]


def test_a_full_disk_refuses_changes_and_the_node_lives_on(h: Harness) -> None:
    """Nothing half written stays; with space again everything works."""
    h.disk.capacity_bytes = 1
    answer = h.create("t")
    assert isinstance(answer, KafkaError) and answer.code == errors.KAFKA_STORAGE_ERROR
    h.run_for(2000)
    h.disk.clear_faults()
    assert h.create("t").topics[0].error_code == 0


def test_a_large_snapshot_takes_many_turns_and_holds_the_image_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded_in_turn: list[int] = []
    encode = metadata_snapshots.encode_metadata_record

    def count(record: Message, version: int) -> bytes:
        encoded_in_turn[-1] += 1
        return encode(record, version)

    h = Harness()
    h.start()
    h.run(lambda: h.ready)
    h.create("before", 1500)
    monkeypatch.setattr(metadata_snapshots, "encode_metadata_record", count)
    node, image, began_ms = h.node, h.node.image, h.now_ms
    poll = node.poll

    def turn(now_ms: int) -> int:
        encoded_in_turn.append(0)
        return poll(now_ms)

    monkeypatch.setattr(node, "poll", turn)
    encoded_in_turn.append(0)
    node.write_snapshot(h.now_ms)
    h.create("after")
    h.run(lambda: node.log.latest_snapshot() != OffsetAndEpoch(0, 0))
    records = image_to_records(image)
    assert sum(encoded_in_turn) == len(records) > 1500
    assert max(encoded_in_turn) <= metadata_snapshots.RECORDS_PER_TURN
    snapshot = node.log.latest_snapshot()
    assert snapshot is not None and (snapshot.offset, snapshot.epoch) == (image.offset + 1, image.epoch)
    kraft_version, voters = node.raft.voter_history.voters_before(snapshot.offset)
    values = [encode(record, version) for record, version in records]
    whole = snapshot_bytes(values, image.epoch, image.timestamp_ms, kraft_version, voters, began_ms)
    assert node.log.read_snapshot(snapshot, 0, node.log.snapshot_size(snapshot)) == whole
    assert "after" in node.image.topics_by_name


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
def test_a_controller_on_every_address_is_reached_as_the_voters_name_it(host: str) -> None:
    """As localhost, which it was called, every other machine would find itself there, and elect leaders forever."""
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:9092,CONTROLLER://{host}:9093",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
        "controller.quorum.voters": "1@one.example:9093,2@two.example:9093,3@three.example:9093",
    }
    harness = Harness(settings, static=True)
    node = MetadataNode(BrokerConfig(harness.values, warn=False), harness.disk, random.Random(1), bytes(16))
    assert [(each.host, each.port) for each in node.controller_registration().listeners] == [("one.example", 9093)]


def test_a_controller_that_no_voter_names_is_reached_under_the_machines_name() -> None:
    harness = Harness({"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093"})
    node = harness.start(join=False)
    assert [each.host for each in node.controller_registration().listeners] == ["localhost"]
    node.endpoints.host_name = "one.example"
    assert [each.host for each in node.controller_registration().listeners] == ["one.example"]


def test_a_snapshot_that_is_asked_for_too_early_stays_due() -> None:
    """In the middle of a transaction there is none; it comes when that is over, not a whole interval later."""
    h = Harness({"metadata.log.max.snapshot.interval.ms": "2000"})
    node = h.start()
    h.run(lambda: h.ready)
    writer = metadata_snapshots.SnapshotWriter(BrokerConfig(h.values, warn=False), node.log, node.raft, h.now_ms)
    due_ms = h.now_ms + 2000
    assert not writer.is_due(due_ms - 1) and writer.is_due(due_ms)
    writer.write(node.image, True, due_ms)
    assert writer.is_due(due_ms), "nothing was written"
    writer.write(node.image, False, due_ms)
    assert not writer.is_due(due_ms)
