"""Fetches of followers: what they tell the leader, what they get, and whom they release."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.node.context import ClientContext
from moldau.node.replica_session import HIGH_WATERMARK_DELAY_MS
from moldau.protocol import errors
from moldau.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.replication.partition import Partition
from moldau.sim.kernel import cold_memory
from tests.unit.node.world import Asked, NodeWorld, batch, produce_request

VERSION = 17
PLENTY = 1 << 20
OWN = 1
EPOCH = 5


@pytest.fixture
def world() -> NodeWorld:
    """A node that leads t-0 and t-1, each with followers 2 and 3 in sync."""
    world = NodeWorld(replica_lag_time_max_ms="30000").start()
    assert world.create("t", 3) == errors.NONE
    brokers = world.node.replicas.context.brokers
    brokers.active_epochs = {1: 11, 2: 12, 3: 13}
    brokers.alive = {1, 2, 3}
    for index in (0, 1):
        lead(world, index, [1, 2, 3])
    return world


def partition_of(world: NodeWorld, index: int = 0) -> Partition:
    found = world.node.replicas.find("t", index)
    assert found is not None and found.log is not None
    return found


def lead(world: NodeWorld, index: int, isr: list[int], leader: int = OWN, epoch: int = EPOCH) -> None:
    partition = partition_of(world, index)
    partition.update(leader, epoch, partition.partition_epoch + 1, [1, 2, 3], isr, world.now_ms)


def named(world: NodeWorld, *rows: tuple[int, int], epoch: int = EPOCH, last_epoch: int = -1) -> list[FetchTopic]:
    """(partition, offset) of topic t."""
    partitions = [
        FetchPartition(
            partition=index,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=0,
            partition_max_bytes=PLENTY,
        )
        for index, offset in rows
    ]
    return [FetchTopic(topic_id=partition_of(world).topic_id, partitions=partitions)] if rows else []


class Fetcher:
    """A follower and its session."""

    def __init__(self, world: NodeWorld, replica_id: int, broker_epoch: int | None = None) -> None:
        self.world = world
        self.state = ReplicaState(replica_id, 10 + replica_id if broker_epoch is None else broker_epoch)
        self.session_id = 0
        self.epoch = 0

    def send(self, topics: list[FetchTopic], **fields: Any) -> Asked:
        values: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": PLENTY}
        values.update(session_id=self.session_id, session_epoch=self.epoch, replica_state=self.state)
        asked = self.world.send(FetchRequest(topics=topics, **{**values, **fields}), VERSION)
        self.epoch += 1
        if asked.reply.done and self.session_id == 0:
            self.session_id = asked.response.session_id
        return asked

    def at(self, *rows: tuple[int, int], **fields: Any) -> Asked:
        return self.send(named(self.world, *rows), **fields)

    def open(self, *rows: tuple[int, int]) -> FetchResponse:
        """The first fetch of a session, answered at once."""
        response = self.send(named(self.world, *rows), max_wait_ms=0).response
        assert isinstance(response, FetchResponse)
        return response


def rows(response: FetchResponse) -> list[PartitionData]:
    return [row for topic in response.responses for row in topic.partitions]


def seen(asked: Asked) -> list[tuple[int, int, bool]]:
    """(partition, high watermark, with records) of an answer."""
    return [(r.partition_index, r.high_watermark, bool(r.records and r.records.size)) for r in rows(asked.response)]


def codes(asked: Asked) -> list[int]:
    return [row.error_code for row in rows(asked.response)]


def write(world: NodeWorld, index: int = 0, acks: int = -1, values: int = 1) -> Asked:
    return world.send(produce_request("t", index, batch(world.now_ms, values), acks), 9)


def result_of(asked: Asked) -> tuple[int, int]:
    row = asked.response.responses[0].partition_responses[0]
    return row.error_code, row.base_offset


# Positions, the high watermark, producers


def test_a_producer_is_answered_by_the_fetch_that_shows_that_all_have_its_records(world: NodeWorld) -> None:
    two, three = Fetcher(world, 2), Fetcher(world, 3)
    two.open((0, 0))
    three.open((0, 0))
    first, second = two.at(), three.at()
    produced = write(world)
    assert not produced.reply.done
    assert seen(first) == [(0, 0, True)] and seen(second) == [(0, 0, True)], "the parked fetches have it at once"
    two.at((0, 1))
    assert not produced.reply.done and partition_of(world).high_watermark.offset == 0
    three.at((0, 1))
    assert result_of(produced) == (errors.NONE, 0)
    assert partition_of(world).high_watermark.offset == 1


def test_one_request_for_two_partitions_makes_one_answer(world: NodeWorld) -> None:
    two = Fetcher(world, 2)
    two.open((0, 0), (1, 0))
    parked = two.at()
    request = produce_request("t", 0, batch(world.now_ms))
    request.topic_data[0].partition_data += produce_request("t", 1, batch(world.now_ms)).topic_data[0].partition_data
    world.send(request, 9)
    assert [index for index, _, with_records in seen(parked) if with_records] == [0, 1]


def test_consumers_see_what_all_in_sync_replicas_have(world: NodeWorld) -> None:
    write(world, acks=1, values=3)
    fetch = FetchRequest(topics=named(world, (0, 0)), max_wait_ms=0, max_bytes=PLENTY, session_epoch=-1)
    assert seen(world.send(fetch, VERSION)) == [(0, 0, False)]
    for follower in (2, 3):
        Fetcher(world, follower).open((0, 3))
    assert seen(world.send(fetch, VERSION)) == [(0, 3, True)]


def test_a_follower_hears_of_the_high_watermark_soon_even_without_records(world: NodeWorld) -> None:
    two, three = Fetcher(world, 2), Fetcher(world, 3)
    two.open((0, 0))
    three.open((0, 0))
    write(world, acks=1)
    parked = two.at((0, 1))
    three.at((0, 1))
    assert not parked.reply.done, "it may travel with the next records"
    world.run(HIGH_WATERMARK_DELAY_MS + 20)
    assert seen(parked) == [(0, 1, False)]
    again = two.at()
    world.run(400)
    assert not again.reply.done, "told once"


def test_a_fetch_that_reads_carries_the_high_watermarks_of_other_partitions(world: NodeWorld) -> None:
    two, three = Fetcher(world, 2), Fetcher(world, 3)
    two.open((0, 0), (1, 0))
    three.open((0, 0))
    write(world, 0, acks=1)
    two.at((0, 1))
    three.at((0, 1))
    write(world, 1, acks=1)
    world.run(600)
    parked = two.at((0, 1), (1, 0), max_wait_ms=0)
    assert seen(parked) == [(1, 0, True)], "partition 0 was told before"


# Who may fetch


@pytest.mark.parametrize(("epoch", "code"), [(4, errors.FENCED_LEADER_EPOCH), (6, errors.UNKNOWN_LEADER_EPOCH)])
def test_followers_of_another_epoch_are_told_and_not_noted(world: NodeWorld, epoch: int, code: int) -> None:
    write(world, acks=1)
    assert codes(Fetcher(world, 2).send(named(world, (0, 1), epoch=epoch))) == [code]
    state = partition_of(world).leader_state
    assert state is not None and state.followers[0].log_end_offset == -1


def test_who_is_no_replica_is_refused(world: NodeWorld) -> None:
    assert codes(Fetcher(world, 7).at((0, 0))) == [errors.UNKNOWN_LEADER_EPOCH]
    assert codes(Fetcher(world, 7).send(named(world, (0, 0), epoch=-1))) == [errors.NOT_LEADER_OR_FOLLOWER]
    assert codes(Fetcher(world, 2).at((2, 0))) == [errors.UNKNOWN_LEADER_EPOCH], "t-2 has one replica"


def test_an_earlier_life_of_a_broker_has_nothing_to_say(world: NodeWorld) -> None:
    write(world, acks=1)
    Fetcher(world, 2, 12).open((0, 1))
    assert codes(Fetcher(world, 2, 11).at((0, 0))) == [errors.NOT_LEADER_OR_FOLLOWER]
    state = partition_of(world).leader_state
    assert state is not None and state.followers[0].log_end_offset == 1


def test_an_offset_outside_of_the_log(world: NodeWorld) -> None:
    assert codes(Fetcher(world, 2).at((0, 1))) == [errors.OFFSET_OUT_OF_RANGE]


def test_where_logs_parted_the_answer_says_so_and_the_position_is_not_taken(world: NodeWorld) -> None:
    write(world, acks=1, values=3)
    lead(world, 0, [1, 2, 3], epoch=7)
    write(world, acks=1)
    response = Fetcher(world, 2).send(named(world, (0, 4), epoch=7, last_epoch=5)).response
    parted = rows(response)[0]
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (5, 3)
    state = partition_of(world).leader_state
    assert state is not None and state.followers[0].log_end_offset == -1


def test_a_topic_made_again_under_the_same_name_is_another_one(world: NodeWorld) -> None:
    two = Fetcher(world, 2)
    two.open((0, 0))
    parked = two.at()
    world.delete("t")
    assert codes(parked) == [errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_parked_fetch_hears_of_a_new_leader_epoch(world: NodeWorld) -> None:
    two = Fetcher(world, 2)
    two.open((0, 0), (1, 0))
    parked = two.at()
    produced = write(world)
    assert parked.reply.done
    parked = two.at((0, 1))
    lead(world, 0, [2, 3], leader=2, epoch=EPOCH + 1)
    assert codes(parked) == [errors.FENCED_LEADER_EPOCH]
    assert result_of(produced)[0] == errors.NOT_LEADER_OR_FOLLOWER


# Sessions


def test_a_session_is_not_found_by_others_or_by_another_epoch(world: NodeWorld) -> None:
    two = Fetcher(world, 2)
    two.open((0, 0))
    three = Fetcher(world, 3)
    three.session_id, three.epoch = two.session_id, 1
    assert three.at().response.error_code == errors.FETCH_SESSION_ID_NOT_FOUND
    two.epoch = 9
    assert two.at().response.error_code == errors.INVALID_FETCH_SESSION_EPOCH


def test_a_forgotten_partition_is_not_read(world: NodeWorld) -> None:
    two = Fetcher(world, 2)
    two.open((0, 0), (1, 0))
    forgotten = ForgottenTopic(topic_id=partition_of(world).topic_id, partitions=[0])
    parked = two.send([], forgotten_topics_data=[forgotten])
    write(world, 0, acks=1)
    assert not parked.reply.done and partition_of(world).listeners == []
    write(world, 1, acks=1)
    assert seen(parked) == [(1, 0, True)]


def test_a_new_session_of_the_same_follower_takes_the_place_of_the_old_one(world: NodeWorld) -> None:
    for _ in range(3):
        Fetcher(world, 2).open((0, 0))
    assert len(partition_of(world).listeners) == 1


def test_a_late_fetch_of_an_earlier_session_says_nothing_about_the_follower(world: NodeWorld) -> None:
    write(world, acks=1, values=2)
    earlier, later = Fetcher(world, 2), Fetcher(world, 2)
    earlier.open((0, 0))
    later.open((0, 2))
    parked = later.at()
    earlier.at((0, 1))
    state = partition_of(world).leader_state
    assert state is not None and state.followers[0].log_end_offset == 2
    write(world, acks=1)
    assert any(with_records for _, _, with_records in seen(parked))


def test_a_partition_that_moves_to_an_earlier_session_is_served_there(world: NodeWorld) -> None:
    """Another number of fetchers: the one takes it up before the other has said that it forgets it."""
    earlier, later = Fetcher(world, 2), Fetcher(world, 2)
    earlier.open((1, 0))
    later.open((0, 0))
    earlier.at((0, 0), max_wait_ms=0)
    later.send([], forgotten_topics_data=[ForgottenTopic(topic_id=partition_of(world).topic_id, partitions=[0])])
    parked = earlier.at()
    write(world, acks=1)
    assert [index for index, _, with_records in seen(parked) if with_records] == [0]


def late_fetch(world: NodeWorld) -> ClientContext:
    """A full fetch of broker 2 that was on its way for long, over a connection that it has given up."""
    living, world.context = world.context, ClientContext("PLAINTEXT", "127.0.0.1:5001")
    Fetcher(world, 2).open((0, 0))
    given_up, world.context = world.context, living
    return given_up


def keeps_up(world: NodeWorld, living: Fetcher, parked: Asked, end_offset: int) -> Asked:
    """A record reaches the follower in the turn in which it is written, and its next fetch counts."""
    assert not parked.reply.done
    write(world, acks=1)
    assert [row for row in seen(parked) if row[2]], "read at once"
    parked = living.at((0, end_offset))
    state = partition_of(world).leader_state
    assert state is not None and state.followers[0].log_end_offset == end_offset
    return parked


def test_a_full_fetch_that_comes_late_takes_nothing_for_good(world: NodeWorld) -> None:
    living = Fetcher(world, 2)
    living.open((0, 0))
    parked = keeps_up(world, living, living.at(), 1)
    late_fetch(world).closed(world.now_ms)
    assert len(world.node.fetch_sessions) == 1
    world.run(600)
    assert parked.reply.done
    keeps_up(world, living, living.at(), 2)


def test_a_full_fetch_that_comes_late_gives_way_even_if_its_connection_never_ends(world: NodeWorld) -> None:
    living = Fetcher(world, 2)
    living.open((0, 0))
    parked = keeps_up(world, living, living.at(), 1)
    late_fetch(world)
    write(world, acks=1)
    world.run(600)
    assert seen(parked)[0][2], "it is served all the same"
    for _ in range(25):
        parked = living.at((0, 2))
        world.run(600)
    assert not partition_of(world).maybe_shrink_in_sync_replicas(world.now_ms)
    keeps_up(world, living, living.at((0, 2)), 3)


def test_a_session_ends_with_its_connection(world: NodeWorld) -> None:
    two, three = Fetcher(world, 2), Fetcher(world, 3)
    two.open((0, 0), (1, 0))
    elsewhere, world.context = world.context, ClientContext("PLAINTEXT", "127.0.0.1:5001")
    three.open((0, 0), (1, 0))
    two.at(max_wait_ms=0)  # goes on over the other connection
    elsewhere.closed(world.now_ms)
    assert len(world.node.fetch_sessions) == 2
    world.context.closed(world.now_ms)
    assert len(world.node.fetch_sessions) == 0 and partition_of(world).listeners == []


def test_a_connection_that_ends_does_not_make_a_follower_late(world: NodeWorld) -> None:
    two, three = Fetcher(world, 2), Fetcher(world, 3)
    for fetcher in (two, three):
        fetcher.open((0, 0))
    for _ in range(80):
        for fetcher in (two, three):
            fetcher.at()
        world.run(500)
    world.context.closed(world.now_ms)
    write(world, acks=1)
    assert not partition_of(world).maybe_shrink_in_sync_replicas(world.now_ms + 20_000)
    assert partition_of(world).maybe_shrink_in_sync_replicas(world.now_ms + 31_000)


def test_a_second_request_of_a_session_is_answered_after_the_first(world: NodeWorld) -> None:
    two = Fetcher(world, 2)
    two.open((0, 0))
    first = two.at()
    second = two.at((1, 0))
    assert first.reply.done and seen(first) == []
    write(world, 1, acks=1)
    assert [row[0] for row in seen(second) if row[2]] == [1]


def test_a_follower_without_a_session_gets_everything_each_time(world: NodeWorld) -> None:
    world.node.fetch_sessions.slots = 0
    two = Fetcher(world, 2)
    write(world, 0, acks=1)
    response = two.open((0, 0), (1, 0))
    assert response.session_id == 0 and [row.partition_index for row in rows(response)] == [0, 1]
    assert all(not partition_of(world, index).listeners for index in (0, 1))
    two.epoch = -1
    parked = two.send(named(world, (0, 1), (1, 0)))
    write(world, 1, acks=1)
    assert seen(parked) == [(1, 0, True), (0, 0, False)]


def test_limits_hold_and_every_partition_gets_its_turn(world: NodeWorld) -> None:
    for index in (0, 1):
        write(world, index, acks=1)
    two = Fetcher(world, 2)
    two.open((0, 0), (1, 0))
    told = [seen(two.at(max_bytes=1)) for _ in range(4)]
    assert [[row[0] for row in answer if row[2]] for answer in told] in ([[0], [1], [0], [1]], [[1], [0], [1], [0]])


def test_a_full_fetch_names_every_partition_whatever_the_limits_say(world: NodeWorld) -> None:
    for index in (0, 1):
        write(world, index, acks=1)
    response = Fetcher(world, 2).at((0, 0), (1, 0), (2, 0), max_bytes=1).response
    found = {row.partition_index: (row.error_code, bool(row.records and row.records.size)) for row in rows(response)}
    assert found == {0: (0, True), 1: (0, False), 2: (errors.UNKNOWN_LEADER_EPOCH, False)}


def test_a_fetch_waits_for_its_minimum(world: NodeWorld) -> None:
    two = Fetcher(world, 2)
    two.open((0, 0))
    one = len(batch(world.now_ms))
    parked = two.at(min_bytes=one + 1)
    write(world, acks=1)
    assert not parked.reply.done
    write(world, acks=1)
    assert [size.records.size for size in rows(parked.response) if size.records] == [2 * one]


# The ISR


def test_a_follower_that_keeps_up_without_being_named_is_not_thrown_out(world: NodeWorld) -> None:
    """Its fetches say nothing about a partition in which nothing happens."""
    partition = partition_of(world)
    fetchers = [Fetcher(world, 2), Fetcher(world, 3)]
    for fetcher in fetchers:
        fetcher.open((0, 0), (1, 0))
    for _ in range(100):
        for fetcher in fetchers:
            fetcher.at()
        world.run(500)
    write(world, acks=1)
    assert not partition.maybe_shrink_in_sync_replicas(world.now_ms)
    assert partition.maybe_shrink_in_sync_replicas(world.now_ms + 31_000), "nobody fetched what was written"
    state = partition.leader_state
    assert state is not None and state.in_sync.proposed == [1]


def test_a_follower_that_is_let_in_joins_although_nothing_moves(world: NodeWorld) -> None:
    lead(world, 0, [1, 2])
    brokers = world.node.replicas.context.brokers
    brokers.active_epochs = {1: 11, 2: 12}
    three = Fetcher(world, 3)
    three.open((0, 0))
    state = partition_of(world).leader_state
    assert state is not None and not state.in_sync.is_changing
    brokers.active_epochs[3] = 13
    assert not partition_of(world).maybe_expand_in_sync_replicas(world.now_ms), "it may have left for a reason"
    world.run(1)
    three.at()
    partition_of(world).maybe_expand_in_sync_replicas(world.now_ms)
    assert state.in_sync.proposed == [1, 2, 3]


def test_a_follower_that_registers_anew_joins_although_nothing_moves(world: NodeWorld) -> None:
    """Its process goes on with the session it had; only its broker epoch is another one."""
    lead(world, 0, [1, 3])
    brokers = world.node.replicas.context.brokers
    brokers.active_epochs[2] = 32
    two = Fetcher(world, 2)
    two.open((0, 0))
    state = partition_of(world).leader_state
    assert state is not None and not state.in_sync.is_changing, "it is not known under this epoch"
    two.state = ReplicaState(2, 32)
    two.at()
    assert state.in_sync.proposed == [1, 3, 2]


# What is asked of leaders besides


def delete_to(world: NodeWorld, offset: int) -> Asked:
    rows = [DeleteRecordsPartition(partition_index=0, offset=offset)]
    return world.send(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=1000), 2)


def deleted(asked: Asked) -> tuple[int, int]:
    row = asked.response.topics[0].partitions[0]
    return row.error_code, row.low_watermark


def test_records_are_deleted_when_every_living_replica_has_given_them_up(world: NodeWorld) -> None:
    write(world, acks=1, values=4)
    fetchers = [Fetcher(world, 2), Fetcher(world, 3)]
    for fetcher in fetchers:
        fetcher.open((0, 4))
    parked = fetchers[0].at()
    asked = delete_to(world, 3)
    assert not asked.reply.done
    assert [row.log_start_offset for row in rows(parked.response)] == [3], "followers hear of it at once"
    for fetcher in fetchers:
        topics = named(world, (0, 4))
        topics[0].partitions[0].log_start_offset = 3
        fetcher.send(topics)
    assert deleted(asked) == (errors.NONE, 3)


def test_deleting_does_not_wait_for_brokers_that_are_fenced_and_not_for_ever(world: NodeWorld) -> None:
    write(world, acks=1, values=4)
    for number in (2, 3):
        Fetcher(world, number).open((0, 4))
    asked = delete_to(world, 2)
    world.run(1100)
    assert deleted(asked) == (errors.REQUEST_TIMED_OUT, 0)
    world.node.replicas.context.brokers.alive = {1}
    assert deleted(delete_to(world, 3)) == (errors.NONE, 3)


@pytest.mark.parametrize(("version", "code"), [(5, errors.OFFSET_NOT_AVAILABLE), (4, errors.LEADER_NOT_AVAILABLE)])
def test_a_new_leader_does_not_say_what_is_latest_before_its_epoch_is_committed(
    world: NodeWorld, version: int, code: int
) -> None:
    def latest() -> tuple[int, int]:
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
        asked = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=wanted)])
        row = world.ask(asked, version).topics[0].partitions[0]
        return row.error_code, row.offset

    write(world, acks=1, values=2)
    assert latest() == (errors.NONE, 0)
    lead(world, 0, [1, 2], epoch=EPOCH + 1)
    assert latest()[0] == code
    Fetcher(world, 2).send(named(world, (0, 2), epoch=EPOCH + 1))
    assert latest() == (errors.NONE, 2)


def test_with_too_few_in_sync_replicas_nothing_is_written_or_committed(world: NodeWorld) -> None:
    partition = partition_of(world)
    assert partition.log is not None
    config = partition.log.config
    config.min_insync_replicas = 2
    lead(world, 0, [1])
    assert result_of(write(world)) == (errors.NOT_ENOUGH_REPLICAS, -1)
    assert partition.log.log_end_offset == 0
    assert result_of(write(world, acks=1)) == (errors.NONE, 0)
    assert partition.high_watermark.offset == 0


def test_when_fewer_replicas_are_enough_the_high_watermark_moves_at_once(world: NodeWorld) -> None:
    def set_minimum(value: str) -> None:
        config = AlterableConfig(name="min.insync.replicas", config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
        assert world.ask(IncrementalAlterConfigsRequest([resource]), 1).responses[0].error_code == errors.NONE

    set_minimum("2")
    world.node.replicas.context.brokers.active_epochs = {1: 11}
    lead(world, 0, [1])
    write(world, acks=1)
    assert partition_of(world).high_watermark.offset == 0
    set_minimum("1")
    assert partition_of(world).high_watermark.offset == 1


def test_a_throttled_follower_that_is_not_in_sync_gets_what_the_rate_allows(world: NodeWorld) -> None:
    lead(world, 0, [1, 2])
    partition = partition_of(world)
    assert partition.log is not None
    partition.log.config.leader_throttled_replicas = "0:1"
    context = world.node.replicas.context
    context.leader_quota.limit = 10
    for _ in range(3):
        write(world, acks=1)
    in_sync, lagging = Fetcher(world, 2), Fetcher(world, 3)
    one = len(batch(world.now_ms))
    first = lagging.open((0, 0))
    assert [row.records.size for row in rows(first) if row.records] == [3 * one], "the rate is not used up yet"
    assert context.leader_quota.is_exceeded(world.now_ms)
    held_back = lagging.at((0, 1))
    assert not held_back.reply.done
    assert seen(in_sync.at((0, 1)))[0][2], "in-sync replicas are not held back"
    world.run(600)
    assert held_back.reply.done and not any(with_records for _, _, with_records in seen(held_back))
    world.run(30_000)
    assert seen(lagging.at((0, 1)))[0][2]


# Cold data


def test_a_partition_that_is_caught_up_with_from_a_slow_disk_holds_up_no_other(world: NodeWorld) -> None:
    """The records of a closed segment are cold: they come when a thread has read them, those of others at once."""
    for _ in range(20):
        write(world, 0, acks=1, values=5)
    log = partition_of(world).log
    assert log is not None
    log.roll(world.now_ms)
    write(world, 0, acks=1)
    world.run(200)
    world.disk.memory.cold_chance = 1.0
    world.disk.sync_delay_ms = (1000, 1000)
    two = Fetcher(world, 2)
    two.open((1, 0))
    first = two.at((0, 0))
    assert not first.reply.done, "there is nothing else to tell"
    write(world, 1, acks=1)
    assert seen(first) == [(1, 0, True)], "what is new does not wait for what is old"
    world.run(100)
    second = two.at((1, 1), max_wait_ms=3000)
    assert not second.reply.done
    world.run(2500)
    assert [index for index, _, with_records in seen(second) if with_records] == [0]


def test_records_that_are_cold_again_and_again_are_sent_anyway(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold_memory, "EVICTED_AT_ONCE_CHANCE", 1.0)
    write(world, 0, acks=1, values=5)
    log = partition_of(world).log
    assert log is not None
    log.roll(world.now_ms)
    write(world, 0, acks=1)
    world.disk.memory.cold_chance = 1.0
    two = Fetcher(world, 2)
    asked = two.at((0, 0), max_wait_ms=3000)
    world.run(2000)
    assert [index for index, _, with_records in seen(asked) if with_records] == [0]


def test_a_session_that_ends_while_a_thread_reads_for_it_is_left_alone(world: NodeWorld) -> None:
    write(world, 0, acks=1, values=5)
    log = partition_of(world).log
    assert log is not None
    log.roll(world.now_ms)
    write(world, 0, acks=1)
    world.disk.memory.cold_chance = 1.0
    two = Fetcher(world, 2)
    asked = two.at((0, 0), max_wait_ms=3000)
    asked.reply.abandon()
    world.run(2000)
    assert not asked.reply.done
