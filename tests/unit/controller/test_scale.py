"""Ten thousand partitions: what a broker's coming and going, a heartbeat and one small change cost."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from moldau.controller.result import Result
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.stored.metadata_records import (
    PartitionChangeRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from tests.pace import costs
from tests.unit.controller.test_partition_change import alter
from tests.unit.controller.world import World

TOPICS, PARTITIONS = 100, 100
NOISE = 5
"""What depends on the number of partitions costs thousands of times as much in the large world."""


def world(topics: int) -> World:
    w = World()
    w.add_brokers(1, 2, 3)
    for number in range(topics):
        w.create(f"topic-{number}", PARTITIONS, 3)
    w.create("t", assignments=[[1, 2, 3]])
    return w


@pytest.fixture(scope="module")
def small() -> World:
    return world(0)


@pytest.fixture(scope="module")
def large() -> World:
    return world(TOPICS)


def test_a_heartbeat_does_not_depend_on_the_number_of_partitions(small: World, large: World) -> None:
    def heartbeat(w: World) -> Callable[[], object]:
        request = BrokerHeartbeatRequest(1, w.image.brokers[1].broker_epoch, w.image.offset, cordoned_log_dirs=[])
        return lambda: w.controller.broker_heartbeat(request, w.now_ms)

    with_few, with_many = costs(heartbeat(small), heartbeat(large), times=50)
    assert with_many < NOISE * with_few


def test_a_small_change_does_not_walk_over_all_partitions(small: World, large: World) -> None:
    def shrink_and_expand(w: World) -> None:
        assert alter(w, [1, 2]).error_code == 0
        assert alter(w, [1, 2, 3]).error_code == 0

    with_few, with_many = costs(lambda: shrink_and_expand(small), lambda: shrink_and_expand(large), times=20)
    assert with_many < NOISE * with_few


def test_fencing_a_broker_costs_no_more_than_its_partitions(large: World) -> None:
    """Decided, encoded and replayed: a third of the partitions gets another leader, all of them another ISR.

    The yardstick is what it costs to write these records and to read them, which is the same for each of them.
    """
    controller = large.controller
    start = time.process_time()
    epoch = large.image.brokers[1].broker_epoch
    controller.brokers.connection_lost(1, epoch)
    result: Result = controller.fence_broker(1, epoch)
    for record, version in result.records:
        encode_metadata_record(record, version)
    controller.replay(result.records, controller.state.next_offset, 1, large.now_ms)
    took = time.process_time() - start
    moved = [r for r, _ in result.records if isinstance(r, PartitionChangeRecord) and r.leader >= 0]
    assert len(result.records) == TOPICS * PARTITIONS + 2
    assert abs(len(moved) - TOPICS * PARTITIONS / 3) < 500
    assert not any(1 in p.isr or p.leader == 1 for p in large.image.topics_by_name["topic-0"].partitions.values())
    (records,) = costs(
        lambda: [decode_metadata_record(encode_metadata_record(record, version)) for record, version in result.records],
        times=3,
    )
    assert took < 30 * records, f"{took:.3f} s, and {records:.3f} s for the records alone"


def test_a_broker_that_comes_back_costs_only_what_is_leaderless(large: World) -> None:
    large.heartbeat(1)
    assert large.record_names() == ["BrokerRegistrationChangeRecord"]
