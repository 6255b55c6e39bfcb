"""Share groups on three nodes: leaders and share coordinators go, and what was acknowledged stays."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.node.share.dead_letters import DeadLetters
from moldau.protocol import errors
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.node import cluster as nodes
from tests.unit.node.cluster import Cluster
from tests.unit.node.world import batch, produce_request
from tests.unit.share.letters import letters_in, offsets_of
from tests.unit.share.member import Member, acquired, codes

ACCEPT, RELEASE = 1, 2
GROUP = "g"
GROUP_RESOURCE = 32


class ShareCluster:
    def __init__(self, **settings: str) -> None:
        self.cluster = Cluster(
            share_coordinator_state_topic_num_partitions="3", offsets_topic_num_partitions="3", **settings
        ).start()
        assert self.up().create("s") == 0
        self.ask(IncrementalAlterConfigsRequest([self.earliest()]), 1)
        for key_type, key in ((0, GROUP), (2, f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAQ:0")):
            self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 6)
            self.cluster.run(2000)
        self.topic_id = self.up().node.image.topics_by_name["s"].topic_id
        self.place = (self.topic_id, 0)

    def earliest(self) -> AlterConfigsResource:
        return AlterConfigsResource(GROUP_RESOURCE, GROUP, [AlterableConfig("share.auto.offset.reset", 0, "earliest")])

    def up(self) -> nodes.Member:
        return self.cluster.up()[0]

    def ask(self, request: Any, version: int) -> Any:
        return self.up().ask(request, version)

    def leader_of(self, topic: str, index: int) -> nodes.Member:
        image = self.up().node.image
        return self.cluster[image.topics_by_name[topic].partitions[index].leader]

    @property
    def leader(self) -> nodes.Member:
        return self.leader_of("s", 0)

    def coordinator(self) -> nodes.Member:
        """Of the share partition."""
        node = self.leader.node
        return self.leader_of("__share_group_state", node.coordinators.shares.partition_for((GROUP, *self.place)))

    def join(self, member_id: str) -> None:
        member = Member(None, GROUP, member_id)  # type: ignore[arg-type]
        for _ in range(20):
            found = self.ask(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4).coordinators[0]
            if found.error_code == 0:
                member.ask = self.cluster[found.node_id].ask
                answer = member.beat("s") if member.epoch == 0 else member.beat()
                if answer.error_code == 0 and answer.assignment and answer.assignment.topic_partitions:
                    return
            self.cluster.run(1100)
        raise AssertionError("no partitions")

    def member(self, member_id: str) -> Member:
        return Member(self.leader.ask, GROUP, member_id)

    def fill(self, size: int) -> None:
        answer = self.leader.ask(produce_request("s", 0, batch(self.cluster.now_ms, size), -1), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.fixture
def world() -> ShareCluster:
    world = ShareCluster()
    world.join("m1")
    world.fill(10)
    return world


def test_another_leader_goes_on_with_what_was_acknowledged(world: ShareCluster) -> None:
    """Locks and sessions go with their leader (KAFKA-18618, KAFKA-18769)."""
    old = world.leader
    member = world.member("m1")
    assert acquired(member.fetch(world.place, max_wait_ms=5000)) == [(0, 0, 9, 1)]
    assert codes(member.acknowledge({world.place: [(0, 4, [ACCEPT])]})) == [(0, 0)]
    assert codes(member.acknowledge({world.place: [(5, 6, [RELEASE])]})) == [(0, 0)]
    old.kill()
    world.cluster.run_until(lambda: world.up().node.image.topics_by_name["s"].partitions[0].leader != old.node_id)
    world.cluster.run(3000)
    member.ask = world.leader.ask
    answer = member.acknowledge({world.place: [(7, 9, [ACCEPT])]})
    assert answer.error_code == errors.SHARE_SESSION_NOT_FOUND
    again = world.member("m2")
    found = acquired(again.fetch(world.place, max_wait_ms=9000))
    assert found == [(0, 5, 6, 2), (0, 7, 9, 1)], "what was not acknowledged is delivered again"


def test_what_is_acknowledged_is_stored_though_the_coordinator_dies(world: ShareCluster) -> None:
    member = world.member("m1")
    member.fetch(world.place, max_wait_ms=5000)
    coordinator = world.coordinator()
    if coordinator is world.leader:
        pytest.skip("both are on one broker in this cluster")
    asked = world.leader.send(member.acknowledge_request({world.place: [(0, 9, [ACCEPT])]}), 2)
    coordinator.kill()
    world.cluster.run_until(lambda: asked.reply.done, 60_000)
    assert codes(asked.response) == [(0, 0)]
    member.session += 1
    assert acquired(member.fetch(max_wait_ms=500)) == []


def test_who_waits_at_a_leader_that_is_none_any_more_is_told(world: ShareCluster) -> None:
    """KAFKA-19567. The answer names the new leader."""
    old = world.leader
    member = world.member("m1")
    member.fetch(world.place, max_wait_ms=5000)
    asked = old.send(member.fetch_request([], max_wait_ms=120_000), 2)
    world.cluster.cut_off(old)
    others = [one for one in world.cluster.up() if one is not old]
    world.cluster.run_until(
        lambda: others[0].node.image.topics_by_name["s"].partitions[0].leader not in (old.node_id, -1), 60_000
    )
    world.cluster.heal()
    world.cluster.run_until(lambda: asked.reply.done, 60_000)
    row = asked.response.responses[0].partitions[0]
    assert row.error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert row.current_leader.leader_id == others[0].node.image.topics_by_name["s"].partitions[0].leader
    assert asked.response.node_endpoints[0].node_id == row.current_leader.leader_id
    member.session += 1
    answer = member.acknowledge({world.place: [(0, 9, [ACCEPT])]})
    assert codes(answer)[0][1] in (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.NOT_LEADER_OR_FOLLOWER)


def test_a_deposed_leader_can_store_nothing(world: ShareCluster) -> None:
    """It is cut off, another one leads; when it comes back its acknowledgements are refused, not lost in silence."""
    old = world.leader
    member = world.member("m1")
    member.fetch(world.place, max_wait_ms=5000)
    world.cluster.cut_off(old)
    others = [one for one in world.cluster.up() if one is not old]
    world.cluster.run_until(
        lambda: others[0].node.image.topics_by_name["s"].partitions[0].leader not in (old.node_id, -1), 60_000
    )
    new = world.cluster[others[0].node.image.topics_by_name["s"].partitions[0].leader]
    asked = old.send(member.acknowledge_request({world.place: [(0, 9, [ACCEPT])]}), 2)
    world.cluster.run(1000)
    again = Member(new.ask, GROUP, "m2")
    found: list[Any] = []
    for _ in range(20):
        found += acquired(again.fetch(*([world.place] if again.session == 0 else []), max_wait_ms=2000))
        if found:
            break
    world.cluster.heal()
    world.cluster.run_until(lambda: asked.reply.done, 120_000)
    refused = codes(asked.response)[0][1] != 0
    delivered = [offset for _, first, last, _ in found for offset in range(first, last + 1)]
    assert refused != (not delivered), "either it was stored, or it was delivered again"


# Dead letters

REJECT = 3
LETTERS = "dlq.g"


def with_letters() -> ShareCluster:
    """The dead letter topic has three partitions, so that each broker leads one of them."""
    world = ShareCluster(
        errors_deadletterqueue_auto_create_topics_enable="true", num_partitions="3", default_replication_factor="3"
    )
    request = UpdateFeaturesRequest(5000, [FeatureUpdateKey("share.version", 2, upgrade_type=1)])
    assert world.ask(request, 1).error_code == 0
    entries = [
        AlterableConfig("errors.deadletterqueue.topic.name", 0, LETTERS),
        AlterableConfig("errors.deadletterqueue.copy.record.enable", 0, "true"),
    ]
    world.ask(IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, GROUP, entries)]), 1)
    world.join("m1")
    world.fill(10)
    return world


def letters_of(world: ShareCluster) -> list[int]:
    """Those that are committed, by the leader's account."""
    topic = world.up().node.image.topics_by_name.get(LETTERS)
    if topic is None or topic.partitions[0].leader < 0:
        return []
    return offsets_of(letters_in(world.leader_of(LETTERS, 0).node, LETTERS))


def reject_all(world: ShareCluster) -> None:
    member = world.member("m1")
    assert acquired(member.fetch(world.place, max_wait_ms=5000)) == [(0, 0, 9, 1)]
    assert codes(member.acknowledge({world.place: [(0, 9, [REJECT])]})) == [(0, 0)]


def move_leader(world: ShareCluster, topic: str, to_id: int) -> None:
    replicas = [to_id, *[one.node_id for one in world.cluster.up() if one.node_id != to_id]]
    place = ReassignablePartition(0, replicas)
    world.ask(AlterPartitionReassignmentsRequest(5000, topics=[ReassignableTopic(topic, [place])]), 1)
    world.cluster.run(2000)
    world.ask(ElectLeadersRequest(0, [TopicPartitions(topic, [0])], 5000), 2)
    world.cluster.run_until(lambda: world.leader_of(topic, 0).node_id == to_id)


def test_dead_letters_go_to_another_broker() -> None:
    world = with_letters()
    create = CreatableTopic(
        LETTERS, 1, 3, configs=[CreatableTopicConfig("errors.deadletterqueue.group.enable", "true")]
    )
    world.ask(CreateTopicsRequest([create], 5000), 7)
    world.cluster.run(2000)
    other = next(one for one in world.cluster.up() if one is not world.leader)
    move_leader(world, LETTERS, other.node_id)
    reject_all(world)
    world.cluster.run_until(lambda: letters_of(world) == list(range(10)))
    leader = world.leader.node.shares.found[(GROUP, *world.place)]
    world.cluster.run_until(lambda: leader.window.start_offset == 10)
    assert world.leader.node.shares.counts.dead_letters_total == 10


def test_the_topic_of_dead_letters_is_created_by_the_controller() -> None:
    world = with_letters()
    reject_all(world)
    world.cluster.run_until(lambda: letters_of(world) == list(range(10)))
    assert len(world.up().node.image.topics_by_name[LETTERS].partitions) == 3


def test_a_leader_that_dies_leaves_its_letters_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-20672: what was told to be rejected has a dead letter in the end."""
    world = with_letters()
    old = world.leader
    with monkeypatch.context() as patch:
        patch.setattr(DeadLetters, "_begin", lambda self, sending, now_ms: None)
        reject_all(world)
        old.kill()
    world.cluster.run_until(lambda: world.up().node.image.topics_by_name["s"].partitions[0].leader != old.node_id)
    world.cluster.run(3000)
    member = world.member("m2")
    for _ in range(20):
        member.fetch(*([world.place] if member.session == 0 else []), max_wait_ms=1000)
        if letters_of(world):
            break
    assert letters_of(world) == list(range(10))


def test_letters_wait_for_a_leader_of_their_topic() -> None:
    """Nothing is archived meanwhile."""
    world = with_letters()
    reject_all(world)
    world.cluster.run_until(lambda: letters_of(world) == list(range(10)))
    keeper = world.leader_of(LETTERS, 0)
    others = [one for one in world.cluster.up() if one is not keeper]
    if world.leader is keeper:
        move_leader(world, LETTERS, others[0].node_id)
        keeper = world.leader_of(LETTERS, 0)
    leader = world.leader
    member = Member(leader.ask, GROUP, "m3")
    world.fill(5)
    found = acquired(member.fetch(world.place, max_wait_ms=5000))
    assert found == [(0, 10, 14, 1)]
    asked = leader.send(member.acknowledge_request({world.place: [(10, 14, [REJECT])]}), 2)
    keeper.kill()
    world.cluster.run_until(lambda: asked.reply.done, 60_000)
    world.cluster.run_until(lambda: sorted(set(letters_of(world))) == list(range(15)), 60_000)
