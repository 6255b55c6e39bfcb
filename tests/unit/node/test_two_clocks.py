"""A node whose wall clock goes wrong: deadlines stay, what is written follows it, and nothing young is deleted."""

from __future__ import annotations

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.records.clocks import PART_MS_MAX, TRUSTED_AGAIN_MS
from moldau.server.metrics.collect import Sources, collect
from moldau.server.metrics.metric import to_text
from tests.unit.api.transaction_client import Producer, transactional_world
from tests.unit.node.world import NodeWorld

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
WEEK = str(7 * DAY_MS)


def node_with_segments(**settings: str) -> NodeWorld:
    world = NodeWorld(log_retention_check_interval_ms="1000", log_initial_task_delay_ms="1000", **settings).start()
    assert world.create("t", retention_ms=WEEK, internal_segment_bytes="200") == errors.NONE
    for _ in range(20):
        world.produce("t")
    assert len(world.node.logs.logs["t", 0].segments) > 5
    return world


def offsets(world: NodeWorld) -> tuple[int, int]:
    log = world.node.logs.logs["t", 0]
    return log.log_start_offset, log.log_end_offset


def test_one_reading_ten_days_ahead_deletes_nothing_then_or_later() -> None:
    world = node_with_segments()
    world.clock_ms = 10 * DAY_MS
    world.read_clocks()
    world.node.poll(world.now_ms)
    world.clock_ms = 0
    world.run(5000)
    assert offsets(world) == (0, 20)
    for _ in range(20):
        world.produce("t")
    world.run(TRUSTED_AGAIN_MS + 5000)
    assert world.wall.may_delete_by_age
    assert offsets(world) == (0, 40)


def test_a_clock_that_stays_ahead_is_believed_after_minutes() -> None:
    """It was wrong before, as far as anybody can know."""
    world = node_with_segments()
    world.clock_ms = 10 * DAY_MS
    world.run(60_000)
    assert offsets(world) == (0, 20)
    world.run(TRUSTED_AGAIN_MS)
    assert offsets(world) == (20, 20)


def test_size_counts_while_ages_do_not() -> None:
    world = node_with_segments()
    assert world.create("small", retention_ms=WEEK, retention_bytes="0", internal_segment_bytes="200") == errors.NONE
    world.clock_ms = 10 * DAY_MS
    world.run(100)
    for _ in range(5):
        world.produce("small")
    world.run(3000)
    assert not world.wall.may_delete_by_age
    assert world.node.logs.logs["small", 0].log_start_offset > 0
    assert offsets(world) == (0, 20)


def test_it_is_told_by_metrics() -> None:
    world = node_with_segments()

    def values() -> dict[str, str]:
        lines = to_text(collect(Sources(world.node), world.now_ms, 0.0)).splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line.startswith("moldau_clock"))

    assert values() == {"moldau_clock_in_doubt": "0", "moldau_clock_disagreements_total": "0"}
    world.clock_ms = -DAY_MS
    world.run(100)
    assert values() == {"moldau_clock_in_doubt": "1", "moldau_clock_disagreements_total": "1"}


@pytest.mark.parametrize("step_ms", [30_000, -30_000, HOUR_MS, -HOUR_MS, -3 * DAY_MS])
def test_log_append_time_follows_the_clock_forwards_and_back(step_ms: int) -> None:
    world = NodeWorld().start()
    assert world.create("t", message_timestamp_type="LogAppendTime") == errors.NONE
    assert world.produce("t").log_append_time_ms == world.now_ms
    world.clock_ms = step_ms
    world.run(2000)
    assert world.produce("t").log_append_time_ms == world.now_ms + step_ms


def test_records_are_held_against_the_wall_clock() -> None:
    """message.timestamp.after.max.ms is an hour: for a broker that is two hours late, everything is of tomorrow."""
    world = NodeWorld().start()
    world.create("t")
    world.clock_ms = -2 * HOUR_MS
    world.run(2000)
    assert world.produce("t").error_code == errors.INVALID_TIMESTAMP
    world.clock_ms = 0
    world.run(2000)
    assert world.produce("t").error_code == errors.NONE


def test_a_lookup_by_time_finds_what_was_written_with_that_time() -> None:
    world = NodeWorld().start()
    world.create("t", message_timestamp_type="LogAppendTime")
    world.clock_ms = 5 * DAY_MS
    world.run(2000)
    world.produce("t")
    asked = ListOffsetsPartition(0, -1, world.now_ms + 4 * DAY_MS)
    answer = world.ask(ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [asked])]), 9)
    found = answer.topics[0].partitions[0]
    assert (found.offset, found.timestamp) == (0, world.now_ms + 5 * DAY_MS)


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS, PART_MS_MAX])
def test_no_transaction_times_out_because_the_clock_was_set(step_ms: int) -> None:
    world = transactional()
    producer = Producer(world)
    producer.init(timeout_ms=5000)
    producer.produce(0, b"a")
    world.clock_ms = step_ms
    world.run(3000)
    assert producer.state == "Ongoing"
    world.run(4000)
    assert producer.state == "CompleteAbort", "nor does one live longer for it"


def transactional() -> NodeWorld:
    return transactional_world(
        transaction_abort_timed_out_transaction_cleanup_interval_ms="1000",
        transaction_remove_expired_transaction_cleanup_interval_ms="1000",
        producer_id_expiration_check_interval_ms="1000",
    )


def test_ids_of_producers_do_not_expire_by_a_wrong_clock() -> None:
    world = transactional()
    producer = Producer(world)
    producer.init()
    producer.produce(0, b"a")
    producer.commit()
    world.clock_ms = 30 * DAY_MS
    world.run(5000)
    assert world.node.logs.logs["t", 0].producers.entries, "the partition knows the producer's batches"
    assert producer.produce(0, b"b") == errors.NONE, "and the coordinator its id"


def test_the_quorum_tells_calendar_times() -> None:
    world = NodeWorld().start()
    world.clock_ms = -DAY_MS
    world.run(2000)
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    voter = world.ask(request, 1).topics[0].partitions[0].current_voters[0]
    assert abs(voter.last_fetch_timestamp - (world.now_ms - DAY_MS)) < 1000
