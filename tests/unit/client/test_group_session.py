"""A consumer with a group, as its user sees it: commits, committed offsets, listeners, errors; on a simulated clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moldau.client.assignors import (
    Assignor,
    GroupMetadata,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
)
from moldau.client.consumer import Consumer
from moldau.client.errors import (
    ClientError,
    CommitFailedError,
    ConfigError,
    GroupAuthorizationError,
    InvalidGroupIdError,
    RebalanceInProgressError,
    RequestTimeoutError,
    RetriableCommitFailedError,
    TopicAuthorizationError,
    WakeupError,
)
from moldau.client.group.listener import RebalanceListener
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from moldau.client.wiring import wired
from moldau.protocol import errors as codes
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponseTopic
from moldau.protocol.messages.offset_commit_request import OffsetCommitRequest
from moldau.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequest
from moldau.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import SILENCE, TOPIC_ID
from tests.unit.client.group_world import GroupWorld, WorldNetwork

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10


class Listener(RebalanceListener):
    def __init__(self) -> None:
        self.events: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("revoked", [item.partition for item in partitions]))

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("assigned", [item.partition for item in partitions]))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("lost", [item.partition for item in partitions]))


def set_up(world: GroupWorld | None = None, **config: Any) -> tuple[GroupWorld, Consumer]:
    """A consumer on a world of two partitions, not yet subscribed."""
    world = world or GroupWorld(1, partitions=2)
    settings = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False, **config}
    return world, Consumer("broker-1:9092", config=wired(settings, network=WorldNetwork(world)))


def join(consumer: Consumer, count: int = 2) -> None:
    for _ in range(200):
        if len(consumer.assignment()) == count:
            return
        consumer.poll(50)
    raise AssertionError("did not join")


def subscribed(**config: Any) -> tuple[GroupWorld, Consumer]:
    world, consumer = set_up(**config)
    consumer.subscribe(["t"])
    join(consumer)
    return world, consumer


def requests(world: GroupWorld, kind: type[Message]) -> list[Any]:
    return [request for _, request in world.cluster.seen if isinstance(request, kind)]


def commit_answer(code: int) -> OffsetCommitResponse:
    rows = [OffsetCommitResponsePartition(partition_index=0, error_code=code)]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", topic_id=TOPIC_ID, partitions=rows)])


def fetch_answer(code: int, row_code: int = 0) -> OffsetFetchResponse:
    rows = [OffsetFetchResponsePartitions(partition_index=0, committed_offset=-1, error_code=row_code)]
    topics = [OffsetFetchResponseTopics(name="t", topic_id=TOPIC_ID, partitions=rows)]
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id="g", error_code=code, topics=[] if code else topics)]
    )


# The coordinator


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again() -> None:
    world, consumer = set_up()
    row = Coordinator(key="g", error_code=codes.COORDINATOR_NOT_AVAILABLE, host="", port=-1, node_id=-1)
    world.cluster.scripted[FindCoordinatorRequest] = [FindCoordinatorResponse(coordinators=[row])] * 3
    consumer.subscribe(["t"])
    join(consumer)
    assert len(requests(world, FindCoordinatorRequest)) == 4


def test_a_group_that_may_not_be_used_is_an_error_of_poll() -> None:
    world, consumer = set_up()
    row = Coordinator(key="g", error_code=codes.GROUP_AUTHORIZATION_FAILED, host="", port=-1, node_id=-1)
    world.cluster.scripted[FindCoordinatorRequest] = [FindCoordinatorResponse(coordinators=[row])]
    consumer.subscribe(["t"])
    with pytest.raises(GroupAuthorizationError):
        join(consumer)
    join(consumer)


def test_older_brokers_are_asked_in_their_versions() -> None:
    world, consumer = set_up()
    world.cluster.highest = {FIND_COORDINATOR: 3, OFFSET_FETCH: 7, OFFSET_COMMIT: 9}
    world.cluster.committed = {0: 4}
    consumer.assign([P0])
    assert consumer.position(P0) == 4
    consumer.commit({P0: 5})
    assert world.cluster.committed == {0: 5}


# Commits


def test_commits_name_topics_by_id_and_carry_the_membership() -> None:
    world, consumer = subscribed()
    consumer.commit({P0: OffsetAndMetadata(0, 3, "note")})
    (version, request) = [row for row in world.cluster.seen if isinstance(row[1], OffsetCommitRequest)][-1]
    assert isinstance(request, OffsetCommitRequest)
    row = request.topics[0].partitions[0]
    assert (version, request.topics[0].topic_id) == (10, TOPIC_ID)
    assert (row.committed_offset, row.committed_leader_epoch, row.committed_metadata) == (0, 3, "note")
    metadata = consumer.group_metadata()
    assert (request.member_id, request.generation_id_or_member_epoch) == (metadata.member_id, metadata.generation_id)


def test_commits_of_assigned_partitions_carry_no_membership() -> None:
    world, consumer = set_up()
    consumer.assign([P0])
    consumer.commit({P0: 3})
    (request,) = requests(world, OffsetCommitRequest)
    assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)
    assert consumer.group_metadata() == ConsumerGroupMetadata("g")


def test_a_group_with_members_takes_no_commits_of_others() -> None:
    world, consumer = set_up()
    consumer.assign([P0])
    world.cluster.scripted[OffsetCommitRequest] = [commit_answer(codes.UNKNOWN_MEMBER_ID)]
    with pytest.raises(CommitFailedError, match="has members"):
        consumer.commit({P0: 3})


@pytest.mark.parametrize(
    "code",
    [
        codes.COORDINATOR_LOAD_IN_PROGRESS,
        codes.NOT_COORDINATOR,
        codes.COORDINATOR_NOT_AVAILABLE,
        codes.UNKNOWN_TOPIC_OR_PARTITION,
        codes.UNKNOWN_TOPIC_ID,
        codes.REQUEST_TIMED_OUT,
    ],
)
def test_a_commit_is_tried_again_where_that_may_help(code: int) -> None:
    world, consumer = subscribed()
    world.cluster.scripted[OffsetCommitRequest] = [commit_answer(code)] * 2
    consumer.commit({P0: 1})
    assert world.cluster.committed[0] == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (codes.UNKNOWN_MEMBER_ID, CommitFailedError),
        (codes.ILLEGAL_GENERATION, CommitFailedError),
        (codes.REBALANCE_IN_PROGRESS, RebalanceInProgressError),
        (codes.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (codes.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
        (codes.OFFSET_METADATA_TOO_LARGE, ClientError),
    ],
)
def test_what_a_refused_commit_raises(code: int, kind: type[ClientError]) -> None:
    world, consumer = subscribed()
    world.cluster.scripted[OffsetCommitRequest] = [commit_answer(code)]
    with pytest.raises(kind):
        consumer.commit({P0: 1})
    assert 0 not in world.cluster.committed
    if code == codes.UNKNOWN_MEMBER_ID:
        world.cluster.classic.members.clear()
    join(consumer)
    for _ in range(20):
        consumer.poll(20)
    consumer.commit({P0: 1})


def test_a_commit_ends_within_its_timeout() -> None:
    world, consumer = subscribed(**{"default.api.timeout.ms": 2_000})
    world.cluster.scripted[OffsetCommitRequest] = [commit_answer(codes.COORDINATOR_LOAD_IN_PROGRESS)] * 1000
    start_ms = world.clock_ms
    with pytest.raises(RequestTimeoutError):
        consumer.commit({P0: 1})
    assert 2_000 <= world.clock_ms - start_ms < 2_200
    world.cluster.scripted[OffsetCommitRequest] = [SILENCE] * 1000
    with pytest.raises(RequestTimeoutError):
        consumer.commit({P0: 1}, timeout_ms=500)
    assert world.clock_ms - start_ms < 3_000


def test_asynchronous_commits_are_tried_once_and_told_by_poll() -> None:
    world, consumer = subscribed()
    told: list[tuple[Any, Any]] = []
    world.cluster.scripted[OffsetCommitRequest] = [commit_answer(codes.COORDINATOR_LOAD_IN_PROGRESS)]
    consumer.commit_async({P0: 1}, lambda offsets, error: told.append((offsets, error)))
    consumer.commit_async({P0: 2}, lambda offsets, error: told.append((offsets, error)))
    assert told == []
    for _ in range(10):
        consumer.poll(50)
    (first, error), second = told
    assert first == {P0: OffsetAndMetadata(1)} and isinstance(error, RetriableCommitFailedError)
    assert second == ({P0: OffsetAndMetadata(2)}, None)
    assert world.cluster.committed == {0: 2}


def test_a_synchronous_commit_comes_behind_the_asynchronous_ones() -> None:
    world, consumer = subscribed()
    told: list[Any] = []
    consumer.commit_async({P0: 1}, lambda offsets, error: told.append(error))
    consumer.commit({P0: 2})
    assert told == [None] and world.cluster.committed == {0: 2}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_nothing_to_commit_is_committed_whoever_asks(protocol: str) -> None:
    world, consumer = set_up(**{"group.protocol": protocol})
    consumer.subscribe(["t"])
    consumer.commit()
    assert requests(world, OffsetCommitRequest) == []
    with pytest.raises((CommitFailedError, RebalanceInProgressError)):
        consumer.commit({P0: 1})


def test_nothing_to_commit_waits_for_the_asynchronous_ones() -> None:
    world, consumer = subscribed()
    told: list[Any] = []
    consumer.commit_async({P0: 1}, lambda offsets, error: told.append(error))
    consumer.commit({})
    assert told == [None] and world.cluster.committed == {0: 1}


def test_automatic_commits_come_in_their_interval_and_cover_what_was_handed_out() -> None:
    world, consumer = subscribed(**{"enable.auto.commit": True, "auto.commit.interval.ms": 1_000})
    world.cluster.counts = [3, 0]
    taken = []
    while len(taken) < 3:
        taken += consumer.poll(50)
    assert not requests(world, OffsetCommitRequest)
    until_ms = world.clock_ms + 1_100
    while world.clock_ms < until_ms:
        consumer.poll(50)
    assert world.cluster.committed == {0: 3, 1: 0}
    count = len(requests(world, OffsetCommitRequest))
    consumer.close()
    assert len(requests(world, OffsetCommitRequest)) == count + 1


def test_wakeup_ends_what_waits_for_the_group() -> None:
    world, consumer = subscribed()
    world.cluster.scripted[OffsetCommitRequest] = [SILENCE]
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.commit({P0: 1})
    consumer.wakeup()
    start_ms = world.clock_ms
    assert consumer.poll(10_000) == [] and world.clock_ms - start_ms < 1_000


# Committed offsets


def test_transactions_that_are_open_are_waited_for_under_read_committed() -> None:
    world, consumer = set_up(**{"isolation.level": "read_committed"})
    world.cluster.committed = {0: 7}
    world.cluster.scripted[OffsetFetchRequest] = [fetch_answer(0, codes.UNSTABLE_OFFSET_COMMIT)] * 2
    assert consumer.committed([P0]) == {P0: OffsetAndMetadata(7)}
    assert [request.require_stable for request in requests(world, OffsetFetchRequest)] == [True] * 3


@pytest.mark.parametrize("code", [codes.COORDINATOR_LOAD_IN_PROGRESS, codes.NOT_COORDINATOR])
def test_committed_offsets_are_asked_for_again_where_that_may_help(code: int) -> None:
    world, consumer = set_up()
    world.cluster.committed = {0: 7}
    world.cluster.scripted[OffsetFetchRequest] = [fetch_answer(code)] * 2
    assert consumer.committed([P0, P1]) == {P0: OffsetAndMetadata(7), P1: None}


def test_committed_offsets_that_may_not_be_seen_are_an_error() -> None:
    world, consumer = set_up()
    world.cluster.scripted[OffsetFetchRequest] = [fetch_answer(codes.GROUP_AUTHORIZATION_FAILED)] * 2
    with pytest.raises(GroupAuthorizationError):
        consumer.committed([P0])
    consumer.assign([P0])
    with pytest.raises(GroupAuthorizationError):
        consumer.poll(1_000)


def test_a_seek_is_stronger_than_what_was_committed() -> None:
    world, consumer = set_up()
    world.cluster.committed = {0: 1}
    world.cluster.counts = [9, 0]
    consumer.assign([P0])
    consumer.seek(P0, 6)
    assert [record.offset for record in consumer.poll(1_000)] == [6, 7, 8]


def test_who_committed_may_know_a_later_leader() -> None:
    """KIP-320: the epoch of a committed offset is kept, and one that is news makes the consumer ask for metadata."""
    world, consumer = set_up()
    row = OffsetFetchResponsePartitions(partition_index=0, committed_offset=3, committed_leader_epoch=9)
    topics = [OffsetFetchResponseTopics(name="t", topic_id=TOPIC_ID, partitions=[row])]
    answer = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)])
    world.cluster.scripted[OffsetFetchRequest] = [answer]
    consumer.assign([P0])
    assert consumer.position(P0) == 3
    before = len(requests(world, MetadataRequest))
    consumer.poll(100)
    assert len(requests(world, MetadataRequest)) > before
    consumer.commit()
    assert requests(world, OffsetCommitRequest)[-1].topics[0].partitions[0].committed_leader_epoch == 9


def test_patterns_leave_internal_topics_out_unless_told_otherwise() -> None:
    for exclude, expected in ((True, {"t"}), (False, {"t", "__consumer_offsets"})):
        world, consumer = set_up(**{"exclude.internal.topics": exclude})
        answer = world.cluster._metadata()
        answer.topics.append(MetadataResponseTopic(name="__consumer_offsets", topic_id=b"i" * 16, is_internal=True))
        world.cluster.scripted[MetadataRequest] = [answer]
        consumer.subscribe(pattern=".*")
        join(consumer)
        assert consumer.subscription() == expected


def test_a_group_id_of_none_is_no_group() -> None:
    _, consumer = set_up(**{"group.id": None})
    with pytest.raises(InvalidGroupIdError):
        consumer.subscribe(["t"])


# Listeners


def test_what_a_listener_raises_is_raised_by_poll_and_the_group_goes_on() -> None:
    class Failing(Listener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            super().on_partitions_assigned(partitions)
            raise ValueError("mine")

    world, consumer = set_up()
    listener = Failing()
    consumer.subscribe(["t"], listener=listener)
    with pytest.raises(ValueError, match="mine"):
        join(consumer)
    assert consumer.assignment() == [P0, P1]
    world.cluster.counts = [1, 0]
    assert len(consumer.poll(1_000)) == 1
    consumer.close()
    assert listener.events == [("assigned", [0, 1]), ("revoked", [0, 1])]


def test_a_listener_can_commit_and_seek_but_not_poll_or_leave() -> None:
    refused: list[str] = []

    class Busy(RebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            consumer.seek(P0, 2)
            assert consumer.position(P1) == 0
            for call in (consumer.poll, consumer.unsubscribe, consumer.close):
                try:
                    call()
                except ClientError as error:
                    refused.append(error.message)

        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            consumer.commit()

    world, consumer = set_up()
    world.cluster.counts = [4, 0]
    consumer.subscribe(["t"], listener=Busy())
    join(consumer)
    records = []
    while len(records) < 2:
        records += consumer.poll(50)
    assert [record.offset for record in records] == [2, 3] and len(refused) == 3
    consumer.unsubscribe()
    assert world.cluster.committed == {0: 4, 1: 0}


def test_offsets_are_committed_before_partitions_are_revoked() -> None:
    class Looking(Listener):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            super().on_partitions_revoked(partitions)
            committed.append(dict(world.cluster.committed))

    committed: list[dict[int, int]] = []
    world, consumer = set_up(**{"enable.auto.commit": True})
    world.cluster.counts = [3, 3]
    consumer.subscribe(["t"], listener=Looking())
    taken = 0
    while taken < 6:
        taken += len(consumer.poll(50))
    consumer.enforce_rebalance()
    world.cluster.counts = [9, 9]
    assert consumer.poll(0) == []  # what is about to be revoked is not handed out any more
    while not committed:
        consumer.poll(20)
    assert committed == [{0: 3, 1: 3}]


def test_a_member_that_was_thrown_out_is_told_so_and_joins_again() -> None:
    world, consumer = set_up(**{"enable.auto.commit": True})
    listener = Listener()
    consumer.subscribe(["t"], listener=listener)
    join(consumer)
    world.cluster.scripted[HeartbeatRequest] = [HeartbeatResponse(error_code=codes.UNKNOWN_MEMBER_ID)]
    world.cluster.classic.members.clear()
    while len(listener.events) < 3:
        consumer.poll(500)
    assert listener.events == [("assigned", [0, 1]), ("lost", [0, 1]), ("assigned", [0, 1])]


def test_heartbeats_go_on_while_something_else_waits() -> None:
    """position() waits for a committed offset that does not come, for longer than the session."""
    world, consumer = subscribed(**{"session.timeout.ms": 10_000, "default.api.timeout.ms": 30_000})
    world.cluster.scripted[OffsetFetchRequest] = [fetch_answer(codes.COORDINATOR_LOAD_IN_PROGRESS)] * 10_000
    with pytest.raises(RequestTimeoutError):
        consumer.committed([P0])
    assert consumer.group_metadata().member_id in world.cluster.classic.members
    assert len(requests(world, HeartbeatRequest)) >= 8


class Greedy(Assignor):
    """Gives everything to the member that came last."""

    name = "greedy"
    protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(
        self, metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        everything = [row.partition for rows in metadata.values() for row in rows]
        return {max(subscriptions): MemberAssignment(everything)}


def test_an_assignor_of_the_users_own() -> None:
    world, consumer = set_up(**{"partition.assignment.strategy": [Greedy]})
    consumer.subscribe(["t"])
    join(consumer)
    assert [row.name for row in requests(world, JoinGroupRequest)[-1].protocols] == ["greedy"]
    # One that is not cooperative although it says so is found out, and the user told.
    _, other = set_up(world, **{"partition.assignment.strategy": [Greedy]})
    other.subscribe(["t"])
    with pytest.raises(ClientError, match="not cooperative"):
        for _ in range(500):
            other.poll(20)
            consumer.poll(20)


def test_an_assignor_that_raises_is_an_error_of_poll() -> None:
    class Broken(Assignor):
        name = "broken"

    _, consumer = set_up(**{"partition.assignment.strategy": [Broken()]})
    consumer.subscribe(["t"])
    with pytest.raises(ClientError, match="assignor broken failed"):
        join(consumer)


# Leaving


def test_close_leaves_the_group_and_unsubscribe_too() -> None:
    for leave in ("close", "unsubscribe"):
        world, consumer = subscribed()
        getattr(consumer, leave)()
        assert len(requests(world, LeaveGroupRequest)) == 1 and not world.cluster.classic.members
    consumer.subscribe(["t"])
    join(consumer)


def test_close_gives_up_when_nobody_answers() -> None:
    world, consumer = subscribed(**{"enable.auto.commit": True})
    world.cluster.scripted[OffsetCommitRequest] = [SILENCE] * 10
    start_ms = world.clock_ms
    consumer.close(timeout_ms=1_000)
    assert world.clock_ms - start_ms < 1_500


def test_what_was_read_is_committed_even_by_a_member_that_closes_in_a_rebalance() -> None:
    """Its JoinGroup waits for the others; the commit takes another connection, and so does LeaveGroup."""
    world, consumer = set_up(**{"enable.auto.commit": True, "partition.assignment.strategy": "cooperative-sticky"})
    consumer.subscribe(["t"])
    join(consumer)
    _, other = set_up(world, **{"partition.assignment.strategy": "cooperative-sticky"})
    other.subscribe(["t"])
    for _ in range(200):
        if len(consumer.assignment()) == len(other.assignment()) == 1:
            break
        consumer.poll(20)
        other.poll(20)
    consumer.enforce_rebalance()
    for _ in range(5):
        consumer.poll(20)
    world.cluster.counts = [5, 5]
    taken = 0
    while taken < 5:
        taken += len(consumer.poll(50))
    assert world.cluster.classic.state == "preparing"
    (partition,) = consumer.assignment()
    start_ms = world.clock_ms
    consumer.close()
    assert world.cluster.committed[partition.partition] == 5
    assert len(world.cluster.classic.members) == 1 and world.clock_ms - start_ms < 1_000


def test_closing_twice_and_using_a_closed_consumer() -> None:
    _, consumer = subscribed()
    consumer.close()
    consumer.close()
    for call in (lambda: consumer.poll(), lambda: consumer.subscribe(["t"]), lambda: consumer.commit()):
        with pytest.raises(ClientError, match="closed"):
            call()


# Settings


def test_groups_need_a_group_id() -> None:
    world = GroupWorld(1)
    consumer = Consumer("broker-1:9092", config=wired(network=WorldNetwork(world)))
    calls = [
        lambda: consumer.subscribe(["t"]),
        lambda: consumer.commit(),
        lambda: consumer.commit_async(),
        lambda: consumer.committed([P0]),
        lambda: consumer.group_metadata(),
    ]
    for call in calls:
        with pytest.raises(InvalidGroupIdError):
            call()
    with pytest.raises(InvalidGroupIdError):
        set_up(**{"group.id": "  "})
    with pytest.raises(ConfigError, match="without a group"):
        Consumer("broker-1:9092", config=wired(network=WorldNetwork(world)), enable_auto_commit=True)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"group.protocol": "consumer", "session.timeout.ms": 9_000}, "session.timeout.ms cannot be set"),
        ({"group.protocol": "CONSUMER", "heartbeat.interval.ms": 9_000}, "heartbeat.interval.ms cannot be set"),
        ({"group.protocol": "consumer", "partition.assignment.strategy": "range"}, "cannot be set"),
        ({"group.remote.assignor": "range"}, "cannot be set when group.protocol=CLASSIC"),
        ({"heartbeat.interval.ms": 9_000, "session.timeout.ms": 9_000}, "lower than session"),
        ({"partition.assignment.strategy": "org.example.None"}, "org.example.None"),
        ({"group.instance.id": ""}, "group.instance.id"),
        ({"group.instance.id": "a/b"}, "group.instance.id"),
        ({"group.protocol": "old"}, "group.protocol"),
        ({"max.poll.interval.ms": 0}, "max.poll.interval.ms"),
    ],
)
def test_settings_that_kafka_refuses_are_refused(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        set_up(**config)


def test_subscriptions_that_make_no_sense_are_refused() -> None:
    _, consumer = set_up()
    calls: list[dict[str, Any]] = [{}, {"topics": ["t"], "pattern": "t"}, {"topics": [""]}, {"pattern": ""}]
    for call in calls:
        with pytest.raises(ClientError):
            consumer.subscribe(**call)
    consumer.subscribe(["t"])
    with pytest.raises(ClientError, match="either subscribed to or assigned"):
        consumer.assign([P0])
    consumer.subscribe([])
    consumer.assign([P0])


def test_the_members_that_join_tell_their_topics_racks_and_assignors() -> None:
    world, consumer = subscribed(**{"client.rack": "r1", "group.instance.id": "i1"})
    request = requests(world, JoinGroupRequest)[-1]
    assert [row.name for row in request.protocols] == ["range", "cooperative-sticky"]
    assert request.group_instance_id == "i1" and b"r1" in request.protocols[0].metadata
    assert consumer.subscription() == {"t"}
