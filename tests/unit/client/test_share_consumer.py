"""The share consumer against scripted brokers: what it gives, what it says of it, and what it does when things fail."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client.errors import (
    ClientError,
    ClosedError,
    ConfigError,
    CorruptRecordError,
    GroupAuthorizationError,
    InvalidGroupIdError,
    InvalidRequestError,
    RecordDeserializationError,
    TopicAuthorizationError,
    WakeupError,
)
from moldau.client.results import TopicPartition
from moldau.client.share.acknowledgements import AcknowledgeType
from moldau.client.share_consumer import LINGER_MS, ShareConsumer
from moldau.client.wiring import wired
from moldau.protocol import errors as codes
from moldau.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from moldau.protocol.messages.share_fetch_request import ShareFetchRequest
from tests.unit.client.fake_network import DISCONNECT, SILENCE
from tests.unit.client.share_world import LOCK_MS, World, batch, poll_until, values_of

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
P0 = TopicPartition("t", 0)


def given(records: list[Any]) -> list[int]:
    return [int(record.offset) for record in records]


class Told:
    """An acknowledgement callback that writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[TopicPartition, set[int]], str | None]] = []

    def __call__(self, offsets: dict[TopicPartition, set[int]], error: ClientError | None) -> None:
        self.calls.append((offsets, None if error is None else error.name))


# Settings


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "enable.auto.commit",
        "group.instance.id",
        "isolation.level",
        "partition.assignment.strategy",
        "interceptor.classes",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "group.protocol",
        "group.remote.assignor",
    ],
)
def test_settings_that_a_share_group_does_not_have_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} cannot be set when using a share group"):
        ShareConsumer("broker-1:9092", config={"group.id": "g", name: "earliest"})


def test_a_group_id_is_required() -> None:
    for more in ({}, {"group_id": " "}):
        with pytest.raises(InvalidGroupIdError):
            ShareConsumer("broker-1:9092", **more)


def test_modes_are_checked() -> None:
    with pytest.raises(ConfigError, match="implicit, explicit"):
        ShareConsumer("broker-1:9092", group_id="g", share_acknowledgement_mode="late")
    with pytest.raises(ConfigError, match="batch_optimized, record_limit"):
        ShareConsumer("broker-1:9092", group_id="g", share_acquire_mode="all")


# Implicit acknowledgement


def test_the_next_poll_accepts_with_its_own_fetch_what_the_last_one_gave() -> None:
    world = World()
    world.leader.deliver(values_of(0, 2), (0, 2, 1))
    world.leader.deliver(values_of(3, 3), (3, 3, 2))
    consumer = world.consumer()
    first = consumer.poll(5000)
    assert given(first) == [0, 1, 2] and first[0].delivery_count == 1 and not world.leader.acknowledged
    second = consumer.poll(5000)
    assert given(second) == [3] and second[0].delivery_count == 2
    assert world.leader.acknowledged == [(0, {0: 1, 1: 1, 2: 1})]
    assert not world.leader.acknowledges, "the fetch carries them"
    assert consumer.acquisition_lock_timeout_ms == LOCK_MS


def test_what_a_fetch_asks_for_is_what_was_set() -> None:
    world = World()
    consumer = world.consumer(max_poll_records=7, fetch_max_wait_ms=50, fetch_min_bytes=2, fetch_max_bytes=999)
    consumer.poll(1000)
    request = world.leader.fetches[0]
    assert (request.group_id, request.member_id) == ("g", consumer.member_id())
    assert (request.max_records, request.batch_size, request.max_wait_ms) == (7, 7, 50)
    assert (request.min_bytes, request.max_bytes, request.share_acquire_mode) == (2, 999, 0)
    epochs = [row.share_session_epoch for row in world.leader.fetches]
    assert epochs == list(range(len(epochs))) and len(epochs) > 2
    assert [len(row.topics) for row in world.leader.fetches[:2]] == [1, 0], "a session is told what changed"


def test_records_that_wait_here_are_given_before_more_is_fetched() -> None:
    """Their predecessors are then acknowledged by a request of its own."""
    world = World()
    world.leader.deliver(values_of(0, 9), (0, 4, 1), (5, 9, 1))
    consumer = world.consumer(max_poll_records=5)
    assert given(consumer.poll(5000)) == [0, 1, 2, 3, 4]
    fetches = len(world.leader.fetches)
    assert given(consumer.poll(5000)) == [5, 6, 7, 8, 9]
    consumer.commit()
    assert len(world.leader.fetches) == fetches and len(world.leader.acknowledges) == 2
    assert [types for _, types in world.leader.acknowledged] == [
        dict.fromkeys(range(5), 1),
        dict.fromkeys(range(5, 10), 1),
    ]


def test_nothing_is_fetched_ahead_of_the_reader() -> None:
    """What would wait here is locked, and others could work on it."""
    world = World()
    for number in range(5):
        world.leader.deliver(values_of(number, number), (number, number, 1))
    consumer = world.consumer()
    consumer.poll(5000)
    for _ in range(20):
        consumer._cluster.network.poll(100)
    assert len(world.leader.fetches) == 1


def test_what_waited_here_longer_than_its_lock_is_not_given() -> None:
    world = World()
    world.leader.deliver(values_of(0, 9), (0, 4, 1), (5, 9, 1))
    consumer = world.consumer(max_poll_records=5)
    assert given(consumer.poll(5000)) == [0, 1, 2, 3, 4]
    world.network.clock_ms += LOCK_MS
    world.leader.deliver(values_of(5, 9), (5, 9, 2))
    assert [record.delivery_count for record in consumer.poll(5000)] == [2] * 5


def test_control_records_are_acknowledged_as_gaps_without_the_user() -> None:
    world = World()
    told = Told()
    world.leader.deliver(batch(0, [b"marker"], control=True), (0, 0, 1))
    world.leader.deliver(values_of(1, 2) + batch(3, [b"marker"], control=True), (1, 3, 1))
    consumer = world.explicit(on_acknowledged=told)
    records = consumer.poll(5000)
    assert given(records) == [1, 2] and world.leader.acknowledged == [(0, {0: 0})]
    for record in records:
        consumer.accept(record)
    assert consumer.commit() == {P0: None}
    assert world.leader.acknowledged[-1] == (0, {1: 1, 2: 1, 3: 0})
    assert told.calls == [({P0: {1, 2}}, None)]


def test_poll_needs_a_subscription() -> None:
    world = World()
    consumer = ShareConsumer("broker-1:9092", group_id="g", config=wired(network=world.network))
    with pytest.raises(InvalidRequestError, match="subscribe"):
        consumer.poll()


# Explicit acknowledgement


def test_each_record_gets_what_was_said_of_it() -> None:
    world = World()
    world.leader.deliver(values_of(0, 3), (0, 3, 1))
    consumer = world.explicit()
    records = consumer.poll(5000)
    consumer.accept(records[0])
    consumer.release(records[1])
    consumer.reject(records[2])
    consumer.release(records[3])
    consumer.acknowledge(records[3])  # the last word counts
    consumer.poll(0)
    assert world.leader.acknowledged == [(0, {0: ACCEPT, 1: RELEASE, 2: REJECT, 3: ACCEPT})]


def test_a_record_of_which_nothing_was_said_keeps_poll_from_going_on() -> None:
    world = World()
    world.leader.deliver(values_of(0, 1), (0, 1, 1))
    consumer = world.explicit()
    records = consumer.poll(5000)
    consumer.accept(records[0])
    with pytest.raises(InvalidRequestError, match="first at offset 1"):
        consumer.poll(1000)
    consumer.accept(records[1])
    consumer.poll(0)
    assert world.leader.acknowledged == [(0, {0: 1, 1: 1})]


def test_records_that_are_not_of_the_last_poll_cannot_be_acknowledged() -> None:
    world = World()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.explicit()
    (record,) = consumer.poll(5000)
    with pytest.raises(InvalidRequestError, match="not one of the last poll"):
        consumer.acknowledge_offset("t", 0, 5)
    consumer.accept(record)
    consumer.commit()
    with pytest.raises(InvalidRequestError, match="sent already"):
        consumer.accept(record)


def test_in_the_implicit_mode_nothing_is_acknowledged_by_the_user() -> None:
    world = World()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer()
    (record,) = consumer.poll(5000)
    with pytest.raises(InvalidRequestError, match="explicit"):
        consumer.accept(record)
    with pytest.raises(InvalidRequestError, match="explicit"), consumer.processing(record):
        pass


# Commits and the callback


def test_commit_says_for_each_partition_what_came_of_it() -> None:
    world = World([1, 1])
    told = Told()
    world.leader.deliver(values_of(0, 1), (0, 1, 1), partition=0)
    world.leader.deliver(values_of(7, 7), (7, 7, 1), partition=1)
    consumer = world.consumer(on_acknowledged=told)
    assert len(consumer.poll(5000)) == 3
    world.leader.refusals = [0, codes.INVALID_RECORD_STATE]
    results = consumer.commit()
    names = {item.partition: error and error.name for item, error in results.items()}
    assert names == {0: None, 1: "INVALID_RECORD_STATE"}
    assert told.calls == [({P0: {0, 1}}, None), ({TopicPartition("t", 1): {7}}, "INVALID_RECORD_STATE")]
    assert consumer.commit() == {}, "nothing to send"


def test_commit_tries_again_what_passes() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer(on_acknowledged=told)
    consumer.poll(5000)
    world.leader.refusals = [codes.COORDINATOR_NOT_AVAILABLE, codes.COORDINATOR_LOAD_IN_PROGRESS]
    assert consumer.commit() == {P0: None}
    assert len(world.leader.acknowledged) == 3 and told.calls == [({P0: {0}}, None)]


@pytest.mark.parametrize("code", [codes.NOT_LEADER_OR_FOLLOWER, codes.UNKNOWN_TOPIC_OR_PARTITION])
def test_commit_does_not_try_again_where_the_partition_is_elsewhere(code: int) -> None:
    world = World()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer()
    consumer.poll(5000)
    world.leader.refusals = [code]
    error = consumer.commit()[P0]
    assert error is not None and error.code == code and len(world.leader.acknowledged) == 1


def test_commit_ends_within_its_timeout() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer(on_acknowledged=told)
    consumer.poll(5000)
    world.leader.next_answers = [SILENCE]
    before_ms = world.network.clock_ms
    error = consumer.commit(timeout_ms=700)[P0]
    assert error is not None and error.name == "REQUEST_TIMED_OUT"
    assert 700 <= world.network.clock_ms - before_ms < 1_000
    assert told.calls == [({P0: {0}}, "REQUEST_TIMED_OUT")]


def test_an_answer_that_comes_after_the_timeout_is_not_told_of_twice() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer(on_acknowledged=told, request_timeout_ms=5_000)
    consumer.poll(5000)
    world.leader.next_answers = [SILENCE]
    consumer.commit(timeout_ms=700)
    consumer.poll(20_000)  # meanwhile the request itself has failed
    assert told.calls == [({P0: {0}}, "REQUEST_TIMED_OUT")]


def test_commit_async_is_heard_of_by_the_callback_alone() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer()
    consumer.set_acknowledgement_callback(told)
    consumer.poll(5000)
    consumer.commit_async()
    assert told.calls == []
    consumer.poll(1000)
    assert told.calls == [({P0: {0}}, None)]
    assert world.leader.acknowledged == [(0, {0: 1})]


def test_what_the_callback_raises_comes_out_of_the_call() -> None:
    world = World()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))

    def fail(offsets: object, error: object) -> None:
        raise RuntimeError("mine")

    consumer = world.consumer(on_acknowledged=fail)
    consumer.poll(5000)
    with pytest.raises(RuntimeError, match="mine"):
        consumer.commit()
    assert consumer.commit() == {}


# Nodes and sessions


def test_each_node_has_a_session_of_its_own() -> None:
    world = World([1, 2])
    world.leaders[1].deliver(values_of(0, 0), (0, 0, 1), partition=0)
    world.leaders[2].deliver(values_of(5, 5), (5, 5, 1), partition=1)
    consumer = world.consumer()
    records = poll_until(consumer, lambda: all(leader.acknowledged for leader in world.leaders.values()))
    assert sorted((record.partition, int(record.offset)) for record in records) == [(0, 0), (1, 5)]
    assert world.leaders[1].acknowledged == [(0, {0: 1})] and world.leaders[2].acknowledged == [(1, {5: 1})]
    for leader in world.leaders.values():
        epochs = [row.share_session_epoch for row in leader.fetches]
        assert epochs[0] == 0 and leader.session == {leader.node_id - 1}


def test_acknowledgements_of_a_partition_that_moved_fail_here() -> None:
    """They would be refused or misunderstood by the new leader, and the old one has forgotten."""
    world = World([1])
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer(on_acknowledged=told)
    consumer.poll(5000)
    world.leaders_of[:] = [2]
    consumer._group.topics.stale.add("t")
    consumer._cluster.network.poll(100)
    consumer._cluster.network.poll(100)
    error = consumer.commit()[P0]
    assert error is not None and error.code == codes.NOT_LEADER_OR_FOLLOWER
    assert told.calls == [({P0: {0}}, "NOT_LEADER_OR_FOLLOWER")]
    assert not world.leader.acknowledged and not world.leaders[2].acknowledged
    world.leaders[2].deliver(values_of(0, 0), (0, 0, 2))
    assert [record.delivery_count for record in consumer.poll(5000)] == [2]
    assert world.leaders[1].session == set(), "what has moved is forgotten where it was"


@pytest.mark.parametrize("code", [codes.SHARE_SESSION_NOT_FOUND, codes.INVALID_SHARE_SESSION_EPOCH])
def test_a_lost_session_starts_again_and_its_acknowledgements_fail(code: int) -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer(on_acknowledged=told)
    consumer.poll(5000)
    world.leader.next_answers = [code]
    world.leader.deliver(values_of(0, 0), (0, 0, 2))
    assert given(poll_until(consumer, lambda: len(told.calls) == 1) or consumer.poll(5000)) == [0]
    assert told.calls[0][1] in ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH")
    epochs = [row.share_session_epoch for row in world.leader.fetches]
    assert epochs.count(0) == 2


def test_a_lost_connection_fails_what_was_on_its_way_and_what_waited() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 9), (0, 4, 1), (5, 9, 1))
    consumer = world.consumer(on_acknowledged=told, max_poll_records=5)
    assert given(consumer.poll(5000)) == [0, 1, 2, 3, 4]
    world.leader.next_answers = [DISCONNECT]
    consumer.commit()
    assert told.calls == [({P0: {0, 1, 2, 3, 4}}, "NETWORK_EXCEPTION")]
    world.leader.deliver(values_of(0, 9), (0, 9, 2))
    assert [record.delivery_count for record in consumer.poll(5000)] == [2] * 10, "what waited here was released"


def test_the_first_request_of_a_new_session_acknowledges_nothing() -> None:
    """What was given before the session was lost cannot be acknowledged any more, and the callback hears of it."""
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 1), (0, 1, 1))
    consumer = world.explicit(on_acknowledged=told)
    first, second = consumer.poll(5000)
    consumer.accept(first)
    world.leader.next_answers = [DISCONNECT]
    consumer.commit()
    consumer.accept(second)
    consumer.poll(2000)
    assert told.calls == [({P0: {0}}, "NETWORK_EXCEPTION"), ({P0: {1}}, "NOT_LEADER_OR_FOLLOWER")]


def test_a_partition_that_is_not_ours_any_more_is_acknowledged_and_forgotten_by_one_request() -> None:
    world = World([1, 1])
    world.leader.deliver(values_of(0, 0), (0, 0, 1), partition=1)
    consumer = world.consumer()
    assert len(consumer.poll(5000)) == 1
    world.assigned = [0]
    for _ in range(4):
        consumer._cluster.network.poll(5_000)
    assert consumer.assignment() == [P0]
    consumer.poll(1000)
    assert world.leader.acknowledged == [(1, {0: 1})] and world.leader.session == {0}


def test_a_topic_that_moved_is_found_again() -> None:
    world = World([1])
    consumer = world.consumer()
    consumer.poll(600)
    world.leader.fetch_errors = [codes.NOT_LEADER_OR_FOLLOWER]
    world.leaders_of[:] = [2]
    world.leaders[2].deliver(values_of(4, 4), (4, 4, 1))
    assert given(consumer.poll(10_000)) == [4]


def test_a_partition_whose_errors_pass_is_asked_again_after_a_pause() -> None:
    world = World()
    world.leader.fetch_errors = [codes.COORDINATOR_NOT_AVAILABLE, codes.UNKNOWN_SERVER_ERROR]
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer()
    assert given(consumer.poll(10_000)) == [0] and len(world.leader.fetches) == 3


def test_record_limit_asks_one_node_at_a_time_for_records() -> None:
    world = World([1, 2])
    consumer = world.consumer(share_acquire_mode="record_limit", max_poll_records=3)
    order: list[int] = []
    for node_id, leader in world.leaders.items():
        inner = leader.on_fetch

        def seen(request: Any, version: int, node_id: int = node_id, inner: Any = inner) -> object:
            assert not any(node.fetching for node in consumer._requests._nodes.values() if node.node_id != node_id)
            order.append(node_id)
            return inner(request, version)

        leader.broker.on(ShareFetchRequest, seen)
    consumer.poll(5_000)
    assert set(order) == {1, 2} and all(row.share_acquire_mode == 1 for row in world.leader.fetches)


def test_one_request_at_a_time_goes_to_a_node() -> None:
    world = World()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.consumer()
    consumer.poll(5000)
    world.leader.next_answers = [SILENCE]
    consumer.poll(100)  # the fetch that carries the acknowledgement is not answered
    before = len(world.leader.broker.seen)
    consumer.commit_async()
    consumer.poll(500)
    assert len(world.leader.broker.seen) == before


# Members


def test_a_member_names_itself_and_leaves_at_the_end() -> None:
    world = World()
    consumer = world.consumer()
    consumer.poll(1000)
    consumer.close()
    assert len(consumer.member_id()) == 22
    assert {row.member_id for row in world.heartbeats} == {consumer.member_id()}
    assert (world.heartbeats[0].member_epoch, world.heartbeats[-1].member_epoch) == (0, -1)


def test_errors_of_the_group_are_raised_by_poll() -> None:
    world = World()
    world.heartbeat_errors = [codes.TOPIC_AUTHORIZATION_FAILED, 0, 0]
    consumer = world.consumer()
    with pytest.raises(TopicAuthorizationError):
        consumer.poll(5000)
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    assert given(consumer.poll(10_000)) == [0]
    world = World()
    world.heartbeat_errors = [codes.GROUP_AUTHORIZATION_FAILED]
    consumer = world.consumer()
    for _ in range(2):
        with pytest.raises(GroupAuthorizationError):
            consumer.poll(5000)


def test_unsubscribe_leaves_and_another_subscription_joins() -> None:
    world = World()
    consumer = world.consumer()
    consumer.poll(1000)
    assert consumer.subscription() == {"t"} and consumer.assignment() == [P0]
    consumer.unsubscribe()
    assert consumer.subscription() == set() and consumer.assignment() == []
    assert world.heartbeats[-1].member_epoch == -1
    consumer.subscribe("t")
    consumer.poll(1000)
    assert world.heartbeats[-1].member_epoch >= 0 and consumer.assignment() == [P0]


# Records that cannot be read


def test_a_record_that_cannot_be_deserialized_comes_behind_those_before_it() -> None:
    world = World()
    world.leader.deliver(batch(0, [b"0", b"1", b"bad", b"3"]), (0, 3, 1))
    consumer = world.consumer(value_deserializer=int)
    assert [record.value for record in consumer.poll(5000)] == [0, 1]
    with pytest.raises(RecordDeserializationError, match="offset 2") as caught:
        consumer.poll(5000)
    assert caught.value.record.value == b"bad" and isinstance(caught.value.__cause__, ValueError)
    assert [record.value for record in consumer.poll(5000)] == [3]
    consumer.commit()
    assert world.leader.acknowledged == [(0, {0: ACCEPT, 1: ACCEPT, 2: RELEASE}), (0, {3: ACCEPT})]


def test_a_record_that_cannot_be_deserialized_may_be_rejected_instead() -> None:
    world = World()
    world.leader.deliver(batch(0, [b"bad", b"1"]), (0, 1, 1))
    consumer = world.explicit(value_deserializer=int)
    with pytest.raises(RecordDeserializationError):
        consumer.poll(5000)
    with pytest.raises(InvalidRequestError, match="cannot be renewed"):
        consumer.acknowledge_offset("t", 0, 0, RENEW)
    consumer.acknowledge_offset("t", 0, 0, REJECT)
    (record,) = consumer.poll(5000)
    assert record.value == 1
    consumer.accept(record)
    consumer.commit()
    assert world.leader.acknowledged == [(0, {0: REJECT}), (0, {1: ACCEPT})]


def test_a_damaged_batch_is_rejected_and_told_of() -> None:
    world = World()
    good = values_of(2, 2)
    bad = values_of(0, 1)
    world.leader.deliver(bad[:-1] + bytes([bad[-1] ^ 1]) + good, (0, 2, 1))
    consumer = world.consumer()
    with pytest.raises(CorruptRecordError, match="offset 0"):
        consumer.poll(5000)
    assert given(consumer.poll(5000)) == [2]
    consumer.commit()
    assert world.leader.acknowledged == [(0, {0: REJECT, 1: REJECT}), (0, {2: ACCEPT})]


# Renewals


def test_a_renewed_record_comes_again_before_any_other() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 2), (0, 2, 1))
    world.leader.deliver(values_of(3, 3), (3, 3, 1))
    consumer = world.explicit(on_acknowledged=told)
    records = consumer.poll(5000)
    consumer.accept(records[0])
    consumer.renew(records[1])
    consumer.accept(records[2])
    assert given(consumer.poll(5000)) == [1]
    assert world.leader.acknowledged == [(0, {0: ACCEPT, 1: RENEW, 2: ACCEPT})]
    assert world.leader.acknowledges[0].is_renew_ack and len(world.leader.fetches) == 1
    consumer.accept(records[1])
    assert given(consumer.poll(5000)) == [3]
    assert world.leader.acknowledged[1:] == [(0, {1: ACCEPT})]


def test_a_record_that_could_not_be_renewed_is_not_given_again() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    world.leader.deliver(values_of(1, 1), (1, 1, 1))
    consumer = world.explicit(on_acknowledged=told)
    (record,) = consumer.poll(5000)
    consumer.renew(record)
    world.leader.refusals = [codes.INVALID_RECORD_STATE]
    assert given(consumer.poll(5000)) == [1]
    assert told.calls == [({P0: {0}}, "INVALID_RECORD_STATE")]


# processing()


def test_a_block_that_ends_well_accepts_and_what_it_decided_is_sent_soon() -> None:
    world = World()
    world.leader.deliver(values_of(0, 2), (0, 2, 1))
    consumer = world.explicit()
    records = consumer.poll(5000)
    for record in records[:2]:
        with consumer.processing(record) as same:
            assert same is record
    assert not world.leader.acknowledged
    for _ in range(10):
        consumer._cluster.network.poll(LINGER_MS)  # as the thread does that keeps the member alive
    assert world.leader.acknowledged == [(0, {0: ACCEPT, 1: ACCEPT})], "one request for both"
    with consumer.processing(records[2]):
        pass
    consumer.poll(0)
    assert world.leader.acknowledged[1:] == [(0, {2: ACCEPT})]


def test_a_block_that_fails_releases_or_rejects(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.leader.deliver(values_of(0, 3), (0, 3, 1))
    consumer = world.explicit()
    records = consumer.poll(5000)
    with pytest.raises(OSError), consumer.processing(records[0], reject=ValueError):
        raise OSError("away")
    with consumer.processing(records[1], reject=ValueError, release=Exception):
        raise ValueError("poison")
    with consumer.processing(records[2], reject=(ValueError, TypeError), release=(OSError,)):
        raise OSError("away")
    with pytest.raises(KeyboardInterrupt), consumer.processing(records[3], release=Exception):
        raise KeyboardInterrupt
    consumer.commit()
    assert world.leader.acknowledged == [(0, {0: RELEASE, 1: REJECT, 2: RELEASE, 3: RELEASE})]
    assert "t-0 at offset 1 is rejected: ValueError: poison" in caplog.text


def test_what_is_said_inside_the_block_counts() -> None:
    world = World()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.explicit()
    (record,) = consumer.poll(5000)
    with consumer.processing(record):
        consumer.reject(record)
    consumer.commit()
    assert world.leader.acknowledged == [(0, {0: REJECT})]


def test_a_long_block_keeps_the_locks_of_all_that_is_still_to_be_done() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 2), (0, 2, 1))
    consumer = world.explicit(on_acknowledged=told)
    records = consumer.poll(5000)
    consumer.accept(records[0])
    with consumer.processing(records[1], renew=True):
        before_ms = world.network.clock_ms
        while world.network.clock_ms - before_ms < 2 * LOCK_MS:
            consumer._cluster.network.poll(1_000)
    renewals = [types for _, types in world.leader.acknowledged]
    assert renewals and all(types == {1: RENEW, 2: RENEW} for types in renewals)
    assert len(renewals) >= 3 and all(row.is_renew_ack for row in world.leader.acknowledges)
    with consumer.processing(records[2]):
        pass
    assert consumer.commit() == {P0: None}
    assert world.leader.acknowledged[-1] == (0, {0: ACCEPT, 1: ACCEPT, 2: ACCEPT})
    assert told.calls == [({P0: {0, 1, 2}}, None)], "renewals of one's own are nobody's business"


def test_locks_that_cannot_be_renewed_are_not_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.explicit()
    (record,) = consumer.poll(5000)
    world.leader.refusals = [codes.INVALID_RECORD_STATE]
    with consumer.processing(record, renew=True):
        for _ in range(100):
            consumer._cluster.network.poll(1_000)
    assert len(world.leader.acknowledges) == 1 and "Cannot renew the acquisition locks" in caplog.text


# Wakeup and the end


def test_wakeup_ends_a_poll_with_nothing_and_a_commit_with_an_error() -> None:
    world = World()
    consumer = world.consumer()
    consumer.wakeup()
    before_ms = world.network.clock_ms
    assert consumer.poll(60_000) == [] and world.network.clock_ms - before_ms < 30_000
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer.poll(5_000)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.commit()


def test_close_says_the_last_word_and_gives_the_rest_back() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 2), (0, 2, 1))
    with world.explicit(on_acknowledged=told) as consumer:
        records = consumer.poll(5000)
        consumer.accept(records[0])
        consumer.reject(records[2])
    (request,) = [row for _, row in world.leader.broker.seen if isinstance(row, ShareAcknowledgeRequest)]
    assert request.share_session_epoch == -1
    assert world.leader.acknowledged == [(0, {0: ACCEPT, 2: REJECT})] and world.leader.epoch is None
    assert told.calls == [({P0: {0, 2}}, None)]
    assert world.heartbeats[-1].member_epoch == -1, "the session ends first, then the membership"
    with pytest.raises(ClosedError):
        consumer.poll()
    consumer.close()


def test_close_does_not_accept_what_the_last_implicit_poll_gave() -> None:
    world = World()
    world.leader.deliver(values_of(0, 2), (0, 2, 1))
    with world.consumer() as consumer:
        consumer.poll(5000)
    assert world.leader.acknowledged == [] and world.leader.epoch is None


def test_close_ends_in_time_while_the_brokers_are_away() -> None:
    world = World()
    told = Told()
    world.leader.deliver(values_of(0, 0), (0, 0, 1))
    consumer = world.explicit(on_acknowledged=told)
    (record,) = consumer.poll(5000)
    consumer.accept(record)
    for leader in world.leaders.values():
        leader.broker.up = False
        leader.next_answers = [DISCONNECT] * 10
    before_ms = world.network.clock_ms
    consumer.close(timeout_ms=3_000)
    assert world.network.clock_ms - before_ms <= 3_100
    assert [(offsets, error is not None) for offsets, error in told.calls] == [({P0: {0}}, True)]


def test_close_before_anything_happened_is_silent() -> None:
    world = World()
    world.consumer().close()
    assert not world.leader.broker.seen
