"""Fetchers: what they ask a leader when, and what they do with its answers; the leader is a list of requests here."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.config.log_config import LogConfig
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BrokerRegistration, EndPoint
from moldau.node.fetcher import Fetcher, fetch_version
from moldau.node.fetchers import Fetchers, fetcher_number
from moldau.node.outbox import CLOSED, REFUSED, Channel, NoResponse, OnResponse, Outbox
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.clocks import NEVER_MS
from moldau.replication.follower import DELAYED, FAILED, FETCHING
from moldau.replication.partition import Partition
from moldau.replication.waiter import PartitionWaiter
from moldau.sim.kernel.disk import SimDisk
from moldau.storage.log_manager import LogManager
from moldau.storage.validation import CLIENT
from tests.unit.storage.helpers import batch

OWN_ID = 1
LEADER = 2
TOPIC_ID = bytes(range(16))
SESSION = 77


class FakeChannel(Channel):
    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self.closed = False
        self.requests: list[Any] = []
        self.awaited: list[OnResponse] = []

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: OnResponse) -> None:
        assert not self.closed and api_key == type(request).API_KEY
        self.requests.append(request)
        self.awaited.append(answered)

    def close(self) -> None:
        self.closed = True


class FakeOutbox(Outbox):
    def __init__(self) -> None:
        self.opened: list[FakeChannel] = []

    def open(self, purpose: str, host: str, port: int) -> Channel:
        channel = FakeChannel(host, port)
        self.opened.append(channel)
        return channel


def broker(broker_id: int, port: int) -> BrokerRegistration:
    endpoint = EndPoint("PLAINTEXT", "leader", port, 0)
    return BrokerRegistration(
        broker_id,
        5,
        bytes(16),
        end_points={"PLAINTEXT": endpoint},
        features={},
        rack=None,
        fenced=False,
        in_controlled_shutdown=False,
        log_dirs=(),
        cordoned_log_dirs=None,
    )


class World:
    """Fetchers with partitions of one topic; the test answers for the leaders."""

    def __init__(self, **settings: str) -> None:
        self.now_ms = 1_700_000_000_000
        self.outbox = FakeOutbox()
        self.broker_epoch = 9
        self.log_config = LogConfig()
        self.disk = SimDisk(1, self._later)
        self.later: list[Any] = []
        self.logs = LogManager(self.disk, ["/data"], lambda topic: self.log_config)
        self.logs.load(self.now_ms)
        self.logs.on_released = lambda log: self.fetchers.on_released(log, self.now_ms)
        values = {
            "process.roles": "broker",
            "node.id": str(OWN_ID),
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "9@127.0.0.1:9093",
            "log.dirs": "/data",
        }
        values.update({key.replace("_", "."): value for key, value in settings.items()})
        self.fetchers = Fetchers(BrokerConfig(values, warn=False), self.logs, self.outbox, lambda: self.broker_epoch)
        self.woken: list[int] = []
        self.fetchers.on_deadline = self.woken.append
        self.image = MetadataImage()
        self.image.brokers = {LEADER: broker(LEADER, 9002), 3: broker(3, 9003)}
        self.fetchers.apply_image(self.image)
        self.partitions: dict[int, Partition] = {}

    def _later(self, delay_ms: int, action: Any) -> None:
        self.later.append(action)

    def finish_disk_work(self) -> None:
        while self.later:
            self.later.pop(0)()

    def partition(self, index: int) -> Partition:
        if index not in self.partitions:
            log = self.logs.create("t", index, TOPIC_ID, self.now_ms)
            self.partitions[index] = Partition("t", TOPIC_ID, index, OWN_ID, log)
        return self.partitions[index]

    def follow(self, *indexes: int, leader: int = LEADER, epoch: int = 0) -> None:
        for index in indexes:
            self.fetchers.follow(self.partition(index), leader, epoch)
        self.poll()

    def poll(self, after_ms: int = 0) -> int:
        self.now_ms += after_ms
        return self.fetchers.poll(self.now_ms)

    @property
    def channel(self) -> FakeChannel:
        return self.outbox.opened[-1]

    @property
    def requests(self) -> list[Any]:
        return self.channel.requests

    @property
    def last(self) -> FetchRequest:
        request = self.requests[-1]
        assert isinstance(request, FetchRequest)
        return request

    def answer(self, *rows: PartitionData, session: int = SESSION, error: int = 0) -> None:
        topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(rows))] if rows else []
        self.give(FetchResponse(error_code=error, session_id=session, responses=topics))

    def give(self, answer: Message | NoResponse) -> None:
        self.channel.awaited.pop(0)(answer, self.now_ms)

    def fetcher(self) -> Fetcher:
        return self.fetchers.all()[0]

    def state(self, index: int) -> int:
        follower = self.fetchers.follower(TOPIC_ID, index)
        assert follower is not None
        return follower.state


def records(first: int, count: int = 1, epoch: int = 0) -> MemoryRecords:
    return MemoryRecords(batch([b"value"] * count, base_offset=first, leader_epoch=epoch))


def row(index: int, data: MemoryRecords | None = None, high_watermark: int = 0, error: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=error, high_watermark=high_watermark, log_start_offset=0, records=data
    )


def named(request: FetchRequest) -> list[tuple[int, int, int]]:
    """(partition, fetch offset, leader epoch)"""
    return [
        (item.partition, item.fetch_offset, item.current_leader_epoch)
        for topic in request.topics
        for item in topic.partitions
    ]


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def test_the_first_request_names_everything_and_later_ones_only_what_moved() -> None:
    world = World()
    world.follow(0, 1, 2)
    assert named(world.last) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert (world.last.session_epoch, world.last.max_wait_ms) == (0, 0), "the session id is wanted at once"
    assert (world.last.replica_state.replica_id, world.last.replica_state.replica_epoch) == (OWN_ID, 9)
    world.answer(row(0), row(1), row(2))
    assert (world.last.session_id, world.last.session_epoch, world.last.max_wait_ms) == (SESSION, 1, 500)
    assert named(world.last) == []
    world.answer(row(1, records(0, 3), 2))
    assert named(world.last) == [(1, 3, 0)]
    assert world.partitions[1].high_watermark.offset == 2
    assert world.last.session_epoch == 2


def test_an_idle_answer_costs_one_empty_request() -> None:
    world = World()
    world.follow(*range(20))
    world.answer(*[row(index) for index in range(20)])
    for _ in range(5):
        world.answer()
        assert named(world.last) == [] and forgotten(world.last) == []
    assert len(world.channel.awaited) == 1


def test_a_partition_that_joins_does_not_wait_for_the_long_poll_of_the_others() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0))
    world.follow(1)
    assert named(world.last) == [(1, 0, 0)]
    assert len(world.channel.awaited) == 2
    world.follow(2)
    assert len(world.channel.awaited) == 2, "two at most: the third goes with the next"
    world.answer()
    assert named(world.last) == [(2, 0, 0)]
    world.answer(row(1, records(0), 1))
    world.answer(row(2, records(0), 1))
    assert [world.partitions[index].log.log_end_offset for index in (0, 1, 2)] == [0, 1, 1]  # type: ignore[union-attr]


def test_an_answer_to_what_was_asked_in_an_older_epoch_is_ignored() -> None:
    """The leader fences the parked fetch of epoch 0 when it hears of epoch 1, and so did this broker meanwhile."""
    world = World()
    world.follow(0)
    world.answer(row(0))
    world.follow(0, epoch=1)
    assert named(world.last) == [(0, 0, 1)]
    world.answer(row(0, error=errors.FENCED_LEADER_EPOCH))
    assert world.state(0) == FETCHING
    world.answer(row(0, records(0, epoch=1), 1))
    assert world.partitions[0].high_watermark.offset == 1


def test_records_that_come_twice_are_taken_once() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0))
    world.follow(1)
    world.answer(row(0, records(0, 2), 0))
    assert named(world.last) == [(0, 2, 0)]
    world.answer(row(0, records(0, 2), 0), row(1))
    log = world.partitions[0].log
    assert log is not None and log.log_end_offset == 2


@pytest.mark.parametrize(
    "code",
    [errors.NOT_LEADER_OR_FOLLOWER, errors.UNKNOWN_LEADER_EPOCH, errors.UNKNOWN_TOPIC_ID, errors.KAFKA_STORAGE_ERROR],
)
def test_a_partition_with_an_error_leaves_the_session_and_comes_back_later(code: int) -> None:
    world = World()
    world.follow(0, 1)
    world.answer(row(0, error=code), row(1))
    assert world.state(0) == DELAYED
    assert forgotten(world.last) == [0]
    deadline_ms = world.poll()
    assert world.now_ms < deadline_ms <= world.now_ms + 1000
    assert named(world.last) == []
    world.poll(deadline_ms - world.now_ms)
    assert named(world.last) == [(0, 0, 0)]


def test_a_leader_that_does_not_know_yet_is_asked_in_growing_steps_up_to_the_backoff() -> None:
    world = World()
    world.follow(0)
    waits = []
    for _ in range(9):
        world.answer(row(0, error=errors.NOT_LEADER_OR_FOLLOWER))
        assert not world.channel.awaited, "nothing is left to fetch"
        deadline_ms = world.poll()
        waits.append(deadline_ms - world.now_ms)
        world.poll(waits[-1])
    assert waits == [20, 40, 80, 160, 320, 640, 1000, 1000, 1000]


def test_a_fenced_partition_waits_for_the_metadata() -> None:
    world = World()
    world.follow(0, 1)
    world.answer(row(0, error=errors.FENCED_LEADER_EPOCH), row(1))
    assert world.state(0) == FAILED
    world.poll(60_000)
    assert forgotten(world.last) == [0] and len(world.requests) == 2
    world.follow(0, epoch=1)
    assert named(world.last) == [(0, 0, 1)]


@pytest.mark.parametrize("reason", [REFUSED, CLOSED])
def test_without_an_answer_the_fetcher_backs_off_and_starts_over(reason: int) -> None:
    world = World()
    world.follow(0)
    world.answer(row(0, records(0), 0))
    world.give(NoResponse(reason))
    assert world.woken[-1] == world.now_ms + 1000
    world.poll(999)
    assert len(world.requests) == 2, "no request before the backoff is over"
    world.poll(1)
    assert (world.last.session_id, world.last.session_epoch) == (SESSION, 0), "the old session is closed with it"
    assert named(world.last) == [(0, 1, 0)]


def test_when_the_leader_moves_the_backoff_is_not_waited_for() -> None:
    world = World()
    world.follow(0)
    world.give(NoResponse(REFUSED))
    world.follow(0, leader=3, epoch=1)
    assert world.channel.address == ("leader", 9003)
    assert named(world.last) == [(0, 0, 1)]
    assert world.outbox.opened[0].closed, "nobody is followed at the old leader any more"


def test_two_requests_that_fail_together_back_off_once() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0))
    world.follow(1)
    world.give(NoResponse(CLOSED))
    world.give(NoResponse(CLOSED))
    world.poll(1000)
    assert named(world.last) == [(0, 0, 0), (1, 0, 0)] and len(world.channel.awaited) == 1


def test_a_lost_session_begins_anew_at_once_and_a_leader_that_always_loses_it_is_asked_slowly() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0))
    world.answer(session=0, error=errors.FETCH_SESSION_ID_NOT_FOUND)
    assert (world.last.session_id, world.last.session_epoch) == (0, 0)
    assert named(world.last) == [(0, 0, 0)]
    world.answer(session=0, error=errors.FETCH_SESSION_ID_NOT_FOUND)
    count = len(world.requests)
    world.poll(999)
    assert len(world.requests) == count
    world.poll(1)
    assert len(world.requests) == count + 1


def test_a_session_error_to_both_requests_makes_one_new_session() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0))
    world.follow(1)
    world.answer(session=0, error=errors.INVALID_FETCH_SESSION_EPOCH)
    assert len(world.channel.awaited) == 1, "a full request waits until the other one is answered"
    world.answer(session=0, error=errors.INVALID_FETCH_SESSION_EPOCH)
    assert (world.last.session_epoch, named(world.last)) == (0, [(0, 0, 0), (1, 0, 0)])


def test_a_leader_without_room_for_a_session_is_told_everything_and_waited_for() -> None:
    world = World()
    world.follow(0, 1)
    world.answer(row(0), row(1), session=0)
    assert (world.last.session_epoch, world.last.max_wait_ms) == (0, 500)
    assert named(world.last) == [(0, 0, 0), (1, 0, 0)]


def test_who_leaves_is_forgotten_and_may_come_back_before_the_leader_heard_of_it() -> None:
    world = World()
    world.follow(0, 1)
    world.answer(row(0), row(1))
    world.fetchers.leave(world.partitions[0])
    world.answer(row(0, records(0), 1))
    log = world.partitions[0].log
    assert log is not None and log.log_end_offset == 0, "what comes for it is ignored"
    assert forgotten(world.last) == [0]
    world.fetchers.leave(world.partitions[1])
    world.follow(1, epoch=4)
    assert forgotten(world.last) == [] and named(world.last) == [(1, 0, 4)]


def test_the_same_news_twice_change_nothing() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0))
    world.follow(0)
    assert len(world.requests) == 2


def test_nothing_is_asked_before_this_broker_has_an_epoch_and_the_leader_an_address() -> None:
    world = World()
    world.broker_epoch = -1
    world.follow(0)
    assert not world.outbox.opened
    assert world.poll() <= world.now_ms + 100
    world.broker_epoch = 3
    world.poll(100)
    assert world.last.replica_state.replica_epoch == 3
    world.follow(5, leader=8)
    assert len(world.outbox.opened) == 1
    world.image.brokers = {**world.image.brokers, 8: broker(8, 9008)}
    world.fetchers.apply_image(world.image)
    world.poll()
    assert world.channel.address == ("leader", 9008)


def test_a_leader_that_moved_house_is_asked_there() -> None:
    world = World()
    world.follow(0)
    world.image.brokers = {LEADER: broker(LEADER, 9999)}
    world.fetchers.apply_image(world.image)
    world.poll()
    assert world.outbox.opened[0].closed
    assert world.channel.address == ("leader", 9999)
    assert named(world.last) == [(0, 0, 0)]


def test_out_of_range_asks_where_the_leaders_log_begins_and_ends() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0, error=errors.OFFSET_OUT_OF_RANGE))
    ends, starts = world.requests[-2:]
    assert isinstance(ends, ListOffsetsRequest) and isinstance(starts, ListOffsetsRequest)
    assert [request.topics[0].partitions[0].timestamp for request in (ends, starts)] == [-1, -2]
    assert (ends.replica_id, ends.topics[0].partitions[0].current_leader_epoch) == (OWN_ID, 0)
    for offset in (50, 30):
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        world.give(ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])]))
    log = world.partitions[0].log
    assert log is not None and (log.log_start_offset, log.log_end_offset) == (30, 30)
    assert world.partitions[0].high_watermark.offset == 30
    asked = len(world.requests)
    world.poll()
    assert len(world.requests) == asked, "the log is fetched for when it has been emptied on the disk"
    world.finish_disk_work()
    world.poll()
    assert named(world.last) == [(0, 30, 0)]


def test_a_partition_that_is_cut_is_left_out_until_that_is_on_the_disk_and_others_go_on() -> None:
    world = World()
    world.follow(0, 1)
    world.answer(row(0, records(0, 5)), row(1, records(0, 5)))
    parted = row(0)
    parted.diverging_epoch = EpochEndOffset(0, 0)
    world.answer(parted, row(1))
    log = world.partitions[0].log
    assert log is not None and log.log_end_offset == 0 and log.holds == 1
    assert forgotten(world.last) == [0]
    world.answer(row(1, records(5, 5)))
    assert named(world.last) == [(1, 10, 0)]
    world.finish_disk_work()
    assert log.holds == 0 and world.woken[-1] == world.now_ms
    world.poll()
    assert named(world.last) == [(0, 0, 0)]


def test_who_leads_before_its_cut_is_on_the_disk_has_producers_try_again() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0, records(0, 5)))
    parted = row(0)
    parted.diverging_epoch = EpochEndOffset(0, 0)
    world.answer(parted)
    partition = world.partitions[0]
    partition.update(OWN_ID, 1, 1, [OWN_ID, LEADER], [OWN_ID], world.now_ms)
    world.fetchers.leave(partition)
    with pytest.raises(KafkaError) as refused:
        partition.append_as_leader(records(0), 1, world.now_ms, CLIENT)
    assert refused.value.code == errors.KAFKA_STORAGE_ERROR
    world.finish_disk_work()
    assert partition.append_as_leader(records(0), 1, world.now_ms, CLIENT).first_offset == 0


def test_an_error_instead_of_the_leaders_offsets_is_tried_again_later() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0, error=errors.OFFSET_OUT_OF_RANGE))
    for _ in range(2):
        failed = ListOffsetsPartitionResponse(partition_index=0, error_code=errors.KAFKA_STORAGE_ERROR)
        world.give(ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[failed])]))
    assert world.state(0) == DELAYED
    world.poll(1000)
    assert named(world.last) == [(0, 0, 0)]


def test_no_answer_to_the_question_for_offsets_is_a_fetch_again() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0, error=errors.OFFSET_OUT_OF_RANGE))
    world.give(NoResponse(CLOSED))
    world.give(NoResponse(CLOSED))
    world.poll(1000)
    assert named(world.last) == [(0, 0, 0)]


def test_with_flush_messages_the_next_fetch_leaves_when_the_records_are_on_the_medium() -> None:
    world = World()
    world.log_config.flush_messages = 1
    world.logs.on_durable = lambda flushed: world.fetchers.on_durable(flushed, world.now_ms)
    world.follow(0)
    world.answer(row(0))
    count = len(world.requests)
    world.answer(row(0, records(0), 0))
    assert len(world.requests) == count, "to ask for what comes next would say that this is safe"
    while world.later:
        world.later.pop(0)()
    assert named(world.last) == [(0, 1, 0)]


def test_a_partition_that_cannot_be_followed_for_any_reason_costs_no_other() -> None:
    world = World()
    world.follow(0, 1)
    answer = row(0)
    answer.records = FileRecords(None, 0, 10)  # what no leader can send
    world.answer(answer, row(1, records(0), 1))
    assert world.state(0) == FAILED and forgotten(world.last) == [0]
    assert world.partitions[1].high_watermark.offset == 1


def test_the_next_request_leaves_before_waiters_are_told() -> None:
    world = World()
    world.follow(0)
    world.answer(row(0))
    seen: list[int] = []

    class Waiter(PartitionWaiter):
        def on_partition_moved(self, now_ms: int) -> None:
            seen.append(len(world.requests))

    world.partitions[0].waiters.append(Waiter())
    world.answer(row(0, records(0), 1))
    assert seen == [3]


def test_a_throttled_replica_that_lags_waits_and_the_others_go_on() -> None:
    world = World()
    world.log_config.follower_throttled_replicas = "0:1,1:7"
    size = records(0, 3).size
    world.fetchers.quota.limit = size // 2
    world.follow(0, 1)
    world.answer(row(0, records(0, 3), 100), row(1, records(0, 3), 100))
    assert (named(world.last), forgotten(world.last)) == ([(1, 3, 0)], [0])
    waited_ms = 0
    while (0, 3, 0) not in named(world.last):
        deadline_ms = world.poll()
        assert world.now_ms < deadline_ms <= world.now_ms + 1000
        waited_ms += deadline_ms - world.now_ms
        world.poll(deadline_ms - world.now_ms)
    assert 1900 <= waited_ms <= 2100, "then the rate since the first byte is what is allowed"


def test_a_throttled_replica_in_sync_is_not_held_back() -> None:
    world = World()
    world.log_config.follower_throttled_replicas = "*"
    world.fetchers.quota.limit = 1
    world.follow(0)
    world.answer(row(0, records(0, 3), 2))
    world.answer(row(0, records(3, 3), 5))
    assert named(world.last) == [(0, 6, 0)]


def test_partitions_are_spread_over_the_fetchers_and_move_when_their_number_changes() -> None:
    world = World(num_replica_fetchers="2")
    world.follow(0, 1, 2, 3)
    assert len(world.outbox.opened) == 2
    assert sorted(index for channel in world.outbox.opened for index, _, _ in named(channel.requests[0])) == [
        0,
        1,
        2,
        3,
    ]
    world.fetchers.settings.fetchers = 1
    for index in range(4):
        world.fetchers.follow(world.partitions[index], LEADER, 0)
    world.poll()
    assert [fetcher.followed for fetcher in world.fetchers.all()] == [4]


def test_a_closed_outbox_is_not_used() -> None:
    world = World()
    world.follow(0)
    world.fetchers.close()
    assert world.channel.closed
    assert world.poll() == NEVER_MS


@pytest.mark.parametrize(
    ("level", "version"), [(7, 13), (9, 14), (10, 15), (19, 16), (21, 17), (26, 17), (27, 18), (30, 18)]
)
def test_the_metadata_version_decides_how_brokers_speak(level: int, version: int) -> None:
    assert fetch_version(level) == version


def test_the_number_of_a_fetcher_is_what_kafka_computes() -> None:
    assert fetcher_number("any", 5, 1) == 0
    # "t".hashCode() is 116: abs(31 * 116 + 3) % 4
    assert fetcher_number("t", 3, 4) == (31 * 116 + 3) % 4
