"""Transactions over three whole nodes: markers and verification between brokers, and deaths between the steps."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.coordinator.routing import partition_for
from moldau.protocol import errors
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.primitives import Message
from tests.unit.api.transaction_client import Producer, group_offset, read
from tests.unit.node.cluster import Cluster, Member

PARTITIONS = 6


class ClusterWorld:
    """Takes each request to the broker that a client would send it to, and asks again while that one is not ready."""

    RETRIED = frozenset(
        {
            errors.NOT_LEADER_OR_FOLLOWER,
            errors.NOT_ENOUGH_REPLICAS,
            errors.NOT_COORDINATOR,
            errors.COORDINATOR_LOAD_IN_PROGRESS,
            errors.COORDINATOR_NOT_AVAILABLE,
            errors.CONCURRENT_TRANSACTIONS,
            errors.UNSTABLE_OFFSET_COMMIT,
            errors.UNKNOWN_TOPIC_OR_PARTITION,
        }
    )

    def __init__(self, **settings: str) -> None:
        self.cluster = Cluster(
            offsets_topic_num_partitions="3",
            transaction_state_log_num_partitions="3",
            transaction_abort_timed_out_transaction_cleanup_interval_ms="1000",
            **settings,
        ).start()
        self.cluster[1].create("t", PARTITIONS)
        for key_type in (0, 1):
            for _ in range(20):
                request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x", "g"])
                answer = self.cluster[1].ask(request, 4)
                if all(row.error_code == 0 for row in answer.coordinators):
                    break
                self.cluster.run(200)
        self.cluster.run(1000)

    @property
    def now_ms(self) -> int:
        return self.cluster.now_ms

    def run(self, duration_ms: int) -> None:
        self.cluster.run(duration_ms)

    def leader(self, topic: str, index: int) -> Member | None:
        for member in self.cluster.up():
            partition = member.node.replicas.find(topic, index)
            registered = member.node.image.topics_by_name[topic].partitions[index]
            if partition is not None and partition.is_leader and registered.leader == member.node_id:
                return member
        return None

    def coordinator(self, transactional_id: str = "x") -> Member | None:
        return self.leader("__transaction_state", partition_for(transactional_id, 3))

    def target(self, request: Any) -> Member | None:
        name = type(request).__name__
        if name == "ProduceRequest":
            return self.leader("t", request.topic_data[0].partition_data[0].index)
        if name in ("FetchRequest", "ListOffsetsRequest"):
            row = request.topics[0].partitions[0]
            return self.leader("t", row.partition if name == "FetchRequest" else row.partition_index)
        if name in ("TxnOffsetCommitRequest", "OffsetFetchRequest"):
            group = request.groups[0].group_id if name == "OffsetFetchRequest" else request.group_id
            return self.leader("__consumer_offsets", partition_for(group, 3))
        if name == "DescribeTransactionsRequest":
            return self.coordinator(request.transactional_ids[0])
        transactional_id = getattr(request, "transactional_id", None) or request.v3_and_below_transactional_id
        return self.coordinator(transactional_id)

    def ask(self, request: Message, version: int) -> Any:
        for _ in range(200):
            target = self.target(request)
            if target is not None:
                answer = target.ask(request, version, limit_ms=40_000)
                if not (codes_in(answer) & self.RETRIED):
                    return answer
            self.run(50)
        raise AssertionError(f"{type(request).__name__} is not answered: {answer}")


def codes_in(answer: Any) -> set[int]:
    """All error codes anywhere in an answer."""
    found: set[int] = set()
    for name in answer.FIELDS:
        value = getattr(answer, name)
        if name.endswith("error_code"):
            found.add(value)
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, Message):
                    found |= codes_in(one)
    return found


def producer_of(world: ClusterWorld, version: int) -> Producer:
    return Producer(world, version=version)  # type: ignore[arg-type]


def all_values(world: ClusterWorld) -> list[list[bytes]]:
    return [read(world, index) for index in range(PARTITIONS)]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_over_all_brokers_is_all_or_nothing(version: int) -> None:
    world = ClusterWorld()
    producer = producer_of(world, version)
    assert producer.init() == 0
    for number in range(4):
        for index in range(PARTITIONS):
            assert producer.produce(index, b"%d" % number) == 0
        assert producer.commit_offset("g", number) == 0
        assert producer.end(number % 2 == 0) == 0
    world.run(500)
    assert all_values(world) == [[b"0", b"2"]] * PARTITIONS
    assert group_offset(world, "g") == (0, 2)  # type: ignore[arg-type]
    assert producer.state == "CompleteAbort"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commits", [True, False])
def test_a_coordinator_that_dies_after_its_decision_is_replaced_by_one_that_carries_it_out(
    version: int, commits: bool
) -> None:
    world = ClusterWorld()
    producer = producer_of(world, version)
    producer.init()
    for index in range(PARTITIONS):
        assert producer.produce(index, b"a") == 0
    coordinator = world.coordinator()
    assert coordinator is not None
    coordinator.node.coordinators.transactions.markers = None  # it dies before it has sent any
    assert producer.end(commits) == 0
    world.run(300)
    assert producer.state.startswith("Prepare")
    coordinator.kill()
    world.run(15_000)
    assert producer.state == ("CompleteCommit" if commits else "CompleteAbort")
    assert all_values(world) == [[b"a"] if commits else []] * PARTITIONS


def test_a_leader_that_dies_gets_its_marker_when_it_is_replaced() -> None:
    world = ClusterWorld()
    producer = producer_of(world, 2)
    producer.init()
    for index in range(PARTITIONS):
        assert producer.produce(index, b"a") == 0
    coordinator = world.coordinator()
    assert coordinator is not None
    victim = next(member for member in world.cluster.up() if member is not coordinator)
    world.cluster.cut_off(victim)
    asked = coordinator.send(EndTxnRequest("x", producer.producer_id, producer.epoch, True), 5)
    world.run(300)
    victim.kill()
    world.cluster.heal()
    world.run(40_000)
    assert asked.response.error_code == 0
    assert producer.state == "CompleteCommit"
    assert all_values(world) == [[b"a"]] * PARTITIONS


def test_a_transaction_whose_producer_and_coordinator_died_is_aborted_in_time() -> None:
    world = ClusterWorld()
    producer = producer_of(world, 2)
    producer.init(timeout_ms=10_000)
    for index in range(PARTITIONS):
        assert producer.produce(index, b"a") == 0
    coordinator = world.coordinator()
    assert coordinator is not None
    coordinator.kill()
    world.run(25_000)
    assert producer.state == "CompleteAbort"
    assert all_values(world) == [[]] * PARTITIONS
