"""Requests are counted one by one, errors item by item, and times of enough of them to say how they are spread."""

from __future__ import annotations

from collections.abc import Callable

from moldau.api.dispatch import Dispatcher
from moldau.metrics.request_stats import (
    BUSY_S,
    FETCH_CONSUMER,
    FETCH_FOLLOWER,
    SKIPPED_WHEN_BUSY,
    RequestStats,
)
from moldau.net.request_times import MeasuredTimes, RequestTimer
from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.server.metrics.requests import event_metrics
from tests.unit.node.world import NodeWorld, batch, produce_request


class Time:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def timed(world: NodeWorld, clock: Callable[[], float]) -> Dispatcher:
    world.dispatcher = Dispatcher(world.node, RequestTimer(clock).begin)
    return world.dispatcher


def stats_of(dispatcher: Dispatcher, name: str) -> RequestStats:
    return next(stats for stats in dispatcher.stats() if stats.name == name)


def test_the_parts_of_a_way() -> None:
    clock = Time()
    stats = RequestStats("Fetch", 3)
    times = MeasuredTimes(stats, 77, clock)
    clock.now_s += 0.002
    times.handled(99.999)
    clock.now_s += 0.5
    times.completed()
    clock.now_s += 0.003
    times.queued()
    clock.now_s += 0.004
    times.sent(25)
    for values, milliseconds in (
        (stats.queue, 1),
        (stats.local, 2),
        (stats.remote, 500),
        (stats.response_queue, 3),
        (stats.response_send, 4),
        (stats.total, 510),
        (stats.throttle, 25),
    ):
        assert abs(values.sum - milliseconds * 1000) <= 1, milliseconds
    assert stats.request_bytes.max == 77


def test_what_its_handler_completes_waits_for_nobody() -> None:
    clock = Time()
    stats = RequestStats("Produce", 3)
    times = MeasuredTimes(stats, 1, clock)
    clock.now_s += 0.002
    times.completed()
    clock.now_s += 0.001
    times.handled(100.0)
    times.queued()
    times.sent(0)
    assert abs(stats.local.sum - 2000) <= 1 and stats.remote.sum == 0


def test_of_many_requests_one_in_sixteen_is_timed_and_all_are_counted() -> None:
    clock = Time()
    world = NodeWorld().start()
    dispatcher = timed(world, clock)
    asked = 10 * (SKIPPED_WHEN_BUSY + 1)
    timed_ones = 0
    for _ in range(asked):
        clock.now_s += BUSY_S / 10
        timed_ones += world.send(FindCoordinatorRequest(), 3).reply.times is not None
    assert stats_of(dispatcher, "FindCoordinator").requests_total == asked
    assert 10 <= timed_ones <= 12
    for _ in range(5 + SKIPPED_WHEN_BUSY):
        clock.now_s += 10 * BUSY_S
        last = world.send(FindCoordinatorRequest(), 3).reply.times
    assert last is not None, "few requests are all timed"


def test_without_a_clock_nothing_is_timed() -> None:
    world = NodeWorld().start()
    assert world.send(FindCoordinatorRequest(), 3).reply.times is None
    assert stats_of(world.dispatcher, "FindCoordinator").requests_total == 1


def test_errors_are_counted_item_by_item() -> None:
    world = NodeWorld().start()
    assert world.create("t", partitions=2) == errors.NONE
    request = produce_request("t", 0, batch(world.now_ms))
    request.topic_data[0].partition_data.append(
        produce_request("t", 7, batch(world.now_ms)).topic_data[0].partition_data[0]
    )
    world.ask(request, 9)
    produced = stats_of(world.dispatcher, "Produce")
    assert (produced.successes, produced.errors) == (1, {errors.UNKNOWN_TOPIC_OR_PARTITION: 1})
    assert produced.by_version[9] == 1 and produced.requests_total == 1
    topics = [MetadataRequestTopic(name="t"), MetadataRequestTopic(name="nothing")]
    world.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    asked = stats_of(world.dispatcher, "Metadata")
    assert asked.errors == {errors.UNKNOWN_TOPIC_OR_PARTITION: 1} and asked.successes == 1


def test_fetches_are_counted_again_by_who_sent_them() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    topic = [FetchTopic("t", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)])]
    world.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=topic), 12)
    world.ask(FetchRequest(replica_id=5, max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=topic), 12)
    counted = {stats.name: stats.requests_total for stats in world.dispatcher.stats()}
    assert (counted["Fetch"], counted[FETCH_CONSUMER], counted[FETCH_FOLLOWER]) == (2, 1, 1)


def test_what_came_to_the_controller_is_told_as_its_queue() -> None:
    clock = Time()
    stats = [RequestStats("Vote", 1, True), RequestStats("Fetch", 1, True), RequestStats("Produce", 1)]
    for one, local_s in zip(stats, (0.002, 0.2, 7.0), strict=True):
        one.by_version[0] += 1
        times = MeasuredTimes(one, 10, clock)
        clock.now_s += local_s
        times.completed()
        times.sent(0)
    values = {metric.name: metric.values for metric in event_metrics(stats, clock.now_s)}
    prefix = "kafka_controller_controllereventmanager"
    assert values[f"{prefix}_eventqueueprocessingtimems_count"] == {(): 2}
    assert 190 < values[f"{prefix}_eventqueueprocessingtimems"][("quantile", "0.99"),] < 210
    assert values[f"{prefix}_eventqueuetimems"][("quantile", "0.50"),] == 0
