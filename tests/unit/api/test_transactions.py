"""Transactions on one node, through the requests of both transaction versions: all or nothing, and nobody else's."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from moldau.coordinator.txn.machine import TransactionMachine
from moldau.metadata.model import TOPIC_RESOURCE
from moldau.protocol import errors
from moldau.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.list_transactions_request import ListTransactionsRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.protocol.records_data import MemoryRecords
from moldau.storage.validation import CLIENT
from tests.unit.api.transaction_client import (
    TIMEOUT_MS,
    Producer,
    batch,
    describe,
    end_offsets,
    group_offset,
    read,
    transactional_world,
)
from tests.unit.node.test_directory_moves import move, wait_for_move
from tests.unit.node.world import NodeWorld

BOTH = pytest.mark.parametrize("version", [1, 2])


@BOTH
def test_what_is_committed_is_read_and_not_before(version: int) -> None:
    world = transactional_world()
    producer = Producer(world, version=version)
    assert producer.init() == 0
    assert producer.produce(0, b"a", b"b") == 0
    assert producer.produce(1, b"c") == 0
    assert producer.write(0, b"d") == 0
    assert (read(world, 0), read(world, 1)) == ([], [])
    assert read(world, 0, committed=False) == [b"a", b"b", b"d"]
    assert end_offsets(world, 0) == (0, 3)
    producer.commit()
    assert (read(world, 0), read(world, 1)) == ([b"a", b"b", b"d"], [b"c"])
    assert end_offsets(world, 0) == (4, 4)
    assert producer.state == "CompleteCommit"
    assert producer.epoch == (0 if version < 2 else 1)


@BOTH
def test_what_is_aborted_is_never_read(version: int) -> None:
    world = transactional_world()
    producer = Producer(world, version=version)
    producer.init()
    producer.produce(0, b"kept")
    producer.commit()
    producer.produce(0, b"lost")
    producer.abort()
    producer.produce(0, b"kept, too")
    producer.commit()
    assert read(world, 0) == [b"kept", b"kept, too"]
    assert read(world, 0, committed=False) == [b"kept", b"lost", b"kept, too"]
    assert producer.state == "CompleteCommit"


@BOTH
def test_offsets_count_with_the_commit(version: int) -> None:
    world = transactional_world()
    producer = Producer(world, version=version)
    producer.init()
    assert producer.commit_offset("g", 7) == 0
    assert producer.produce(0, b"a") == 0
    assert group_offset(world, "g") == (errors.UNSTABLE_OFFSET_COMMIT, -1)
    assert group_offset(world, "g", stable=False) == (0, -1)
    producer.commit()
    assert group_offset(world, "g") == (0, 7)
    assert producer.commit_offset("g", 9) == 0
    producer.abort()
    assert group_offset(world, "g") == (0, 7)


# Crashes of the only broker


def crash(world: NodeWorld) -> None:
    world.disk.process_crash()
    world.events.clear()
    world.start()


STEPS = ["begun", "written", "offsets", "decided", "complete"]


@BOTH
@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_between_any_two_steps_neither_tears_nor_hangs(version: int, commits: bool, step: str) -> None:
    """What was decided is carried out; what was not goes on, with the producer that lived on."""
    world = transactional_world()
    producer = Producer(world, version=version)
    producer.init()
    if step == "begun":
        crash(world)
    assert producer.produce(0, b"a") == 0
    assert producer.produce(1, b"b") == 0
    if step == "written":
        crash(world)
    assert producer.commit_offset("g", 5) == 0
    if step == "offsets":
        crash(world)
    before = producer.epoch
    assert producer.end(commits) == 0
    if step == "decided":
        assert producer.state.startswith("Prepare")
        crash(world)
        # The answer may have got lost: the same request again is understood.
        if version == 1:
            assert producer.end(commits) == 0
        else:
            producer.epoch = before
            assert producer.end(commits) == 0
    world.run(100)
    if step == "complete":
        crash(world)
    assert producer.state == ("CompleteCommit" if commits else "CompleteAbort")
    assert (read(world, 0), read(world, 1)) == (([b"a"], [b"b"]) if commits else ([], []))
    assert group_offset(world, "g") == (0, 5 if commits else -1)
    assert end_offsets(world, 0)[0] == end_offsets(world, 0)[1]
    assert producer.produce(0, b"next") == 0
    producer.commit()
    assert read(world, 0)[-1] == b"next"


def test_markers_wait_until_the_decision_is_committed() -> None:
    """A decision that a failover could still take back ends nothing."""
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    producer.produce(0, b"a")
    index = world.node.coordinators.transactions.partition_for("x")
    partition = world.node.replicas.find("__transaction_state", index)
    assert partition is not None
    partition.in_sync_replicas = [1, 2]
    asked = world.send(EndTxnRequest("x", producer.producer_id, producer.epoch, True), 5)
    world.run(2000)
    assert not asked.reply.done
    assert end_offsets(world, 0) == (0, 1)
    world.run(4000)
    assert asked.response.error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert end_offsets(world, 0) == (0, 1)
    partition.in_sync_replicas = [1]
    partition.advance_high_watermark(world.now_ms)
    world.run(1000)
    assert end_offsets(world, 0) == (2, 2)
    assert read(world, 0) == [b"a"]


# Time


@BOTH
def test_a_transaction_that_takes_too_long_is_aborted(version: int) -> None:
    world = transactional_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    producer = Producer(world, version=version)
    producer.init(timeout_ms=5000)
    assert producer.produce(0, b"late") == 0
    world.run(4500)
    assert producer.state == "Ongoing"
    world.run(2000)
    assert producer.state == "CompleteAbort"
    assert (read(world, 0), end_offsets(world, 0)) == ([], (2, 2))
    assert producer.end(True) == (errors.PRODUCER_FENCED if version == 1 else errors.INVALID_TXN_STATE)
    assert producer.write(0, b"later") == errors.INVALID_PRODUCER_EPOCH
    assert (producer.init(says_who=True), producer.epoch) == (0, 1)


def test_a_transaction_that_was_open_at_a_crash_is_aborted_in_time() -> None:
    world = transactional_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    producer = Producer(world)
    producer.init(timeout_ms=5000)
    producer.produce(0, b"late")
    crash(world)
    world.run(7000)
    assert (producer.state, end_offsets(world, 0)) == ("CompleteAbort", (2, 2))


def test_an_abort_that_cannot_be_written_is_tried_again() -> None:
    world = transactional_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    producer = Producer(world)
    producer.init(timeout_ms=5000)
    producer.produce(0, b"late")
    world.disk.fail("append", "__transaction_state", errno.ENOSPC, times=2)
    world.run(9000)
    assert (producer.state, end_offsets(world, 0)) == ("CompleteAbort", (2, 2))


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    world = transactional_world(
        transactional_id_expiration_ms="10000", transaction_remove_expired_transaction_cleanup_interval_ms="1000"
    )
    idle, busy = Producer(world, "idle"), Producer(world, "busy")
    idle.init()
    busy.init()
    for _ in range(3):
        world.run(4000)
        assert busy.produce(0, b"a") == 0
        busy.commit()
    assert describe(world, "idle").error_code == errors.TRANSACTIONAL_ID_NOT_FOUND
    assert idle.produce(0, b"a") == errors.INVALID_PRODUCER_ID_MAPPING
    crash(world)
    assert describe(world, "idle").error_code == errors.TRANSACTIONAL_ID_NOT_FOUND
    assert busy.state == "CompleteCommit"


# Epochs that come to their end


def set_epoch(world: NodeWorld, transactional_id: str, epoch: int) -> None:
    coordinator = world.node.coordinators.transactions
    shard = coordinator.runtime.shards[coordinator.partition_for(transactional_id)]
    machine = shard.machine
    assert isinstance(machine, TransactionMachine)
    following = machine.state.transactions[transactional_id].successor(world.now_ms)
    following.epoch = epoch
    shard.write(machine.state.write(following, None), None, world.now_ms + 1000, world.now_ms)


def test_after_the_last_epoch_comes_another_producer_id() -> None:
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    first = producer.producer_id
    set_epoch(world, "x", 32766)
    producer.epoch = 32766
    assert producer.produce(0, b"a") == 0
    assert producer.end(True) == 0
    assert (producer.producer_id != first, producer.epoch) == (True, 0)
    world.run(40)
    assert read(world, 0) == [b"a"]
    second = producer.producer_id
    # Its answer got lost.
    producer.producer_id, producer.epoch = first, 32766
    assert producer.end(True) == 0
    assert (producer.producer_id, producer.epoch) == (second, 0)
    assert producer.produce(0, b"b") == 0
    producer.commit()
    assert read(world, 0) == [b"a", b"b"]


def test_a_fence_uses_the_epoch_that_is_kept_for_it() -> None:
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    set_epoch(world, "x", 32766)
    producer.epoch = 32766
    producer.produce(0, b"lost")
    successor = Producer(world)
    successor.init_until_done()
    assert (successor.producer_id != producer.producer_id, successor.epoch) == (True, 0)
    assert producer.write(0, b"zombie") == errors.INVALID_PRODUCER_ID_MAPPING
    assert successor.produce(0, b"kept") == 0
    successor.commit()
    assert read(world, 0) == [b"kept"]


def timed_out_at_the_end(version: int = 2) -> tuple[NodeWorld, Producer]:
    """A producer whose transaction was aborted in its last epoch, by a fence with the one behind it."""
    world = transactional_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    producer = Producer(world, version=version)
    producer.init(timeout_ms=5000)
    set_epoch(world, "x", 32766)
    producer.epoch = 32766
    assert producer.produce(0, b"late") == 0
    world.run(7000)
    assert producer.state == "CompleteAbort" and describe(world, "x").producer_epoch == 32767
    return world, producer


def goes_on(world: NodeWorld, producer: Producer, first: int) -> None:
    assert (producer.producer_id != first, producer.epoch) == (True, 0)
    assert producer.produce(0, b"next") == 0
    producer.commit()
    assert (read(world, 0), end_offsets(world, 0)) == ([b"next"], (4, 4))


def test_the_last_epoch_of_all_is_told_to_nobody_who_ends_a_transaction() -> None:
    world, producer = timed_out_at_the_end()
    first = producer.producer_id
    assert producer.end(True) == errors.INVALID_TXN_STATE
    assert producer.end(False) == 0
    second = producer.producer_id
    producer.producer_id, producer.epoch = first, 32766  # its answer got lost
    assert (producer.end(False), producer.producer_id, producer.epoch) == (0, second, 0)
    goes_on(world, producer, first)


@BOTH
def test_the_last_epoch_of_all_is_told_to_nobody_who_begins(version: int) -> None:
    world, producer = timed_out_at_the_end(version)
    first = producer.producer_id
    assert producer.init(says_who=True) == 0
    second = producer.producer_id
    producer.producer_id, producer.epoch = first, 32766  # its answer got lost
    assert (producer.init(says_who=True), producer.producer_id, producer.epoch) == (0, second, 0)
    goes_on(world, producer, first)


def test_nobody_may_begin_with_the_last_epoch_of_all() -> None:
    world, producer = timed_out_at_the_end()
    producer.epoch = 32767
    assert producer.add(0) == [errors.PRODUCER_FENCED]
    assert producer.produce(0, b"b") == errors.INVALID_PRODUCER_EPOCH
    assert end_offsets(world, 0) == (2, 2)


@pytest.mark.parametrize("ends", ["commit", "timeout"])
def test_what_an_earlier_release_began_with_the_last_epoch_ends(ends: str) -> None:
    world = transactional_world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    producer = Producer(world)
    producer.init(timeout_ms=5000)
    first = producer.producer_id
    assert producer.produce(0, b"a") == 0
    set_epoch(world, "x", 32767)
    producer.epoch = 32767
    partition = world.node.replicas.find("t", 0)
    assert partition is not None
    data = batch(world.now_ms, producer, 0, [b"b"])
    partition.append_as_leader(MemoryRecords(data, 0, len(data)), -1, world.now_ms, CLIENT)
    if ends == "commit":
        assert (producer.end(True), producer.epoch) == (0, 0)
        world.run(100)
        assert read(world, 0) == [b"a", b"b"]
    else:
        world.run(7000)
        producer.init_until_done()
    assert end_offsets(world, 0) == (3, 3)
    assert producer.producer_id != first and producer.epoch == 0


# Late writes


def hold_coordinator(world: NodeWorld, holds: bool) -> None:
    """While it is held the coordinator's decisions are not committed, so nobody hears of them."""
    index = world.node.coordinators.transactions.partition_for("x")
    partition = world.node.replicas.find("__transaction_state", index)
    assert partition is not None
    partition.in_sync_replicas = [1, 2] if holds else [1]
    partition.advance_high_watermark(world.now_ms)


def test_a_marker_takes_the_right_to_write_from_what_was_verified_before() -> None:
    """The hole that KIP-890 closes: verified, held back, and delivered after the end of the transaction."""
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    hold_coordinator(world, True)
    asked = world.send(produce_request(producer, 0, b"late"), 12)
    assert not asked.reply.done
    marker = WritableTxnMarker(producer.producer_id, producer.epoch, False, [WritableTxnMarkerTopic("t", [0])])
    assert world.ask(WriteTxnMarkersRequest([marker]), 1).markers[0].topics[0].partitions[0].error_code == 0
    hold_coordinator(world, False)
    assert asked.response.responses[0].partition_responses[0].error_code == errors.INVALID_TXN_STATE
    assert end_offsets(world, 0) == (1, 1)


def test_writes_behind_one_that_is_verified_wait_for_it() -> None:
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    hold_coordinator(world, True)
    waiting = [world.send(produce_request(producer, number, b"%d" % number), 12) for number in range(3)]
    assert not any(asked.reply.done for asked in waiting)
    hold_coordinator(world, False)
    codes = [asked.response.responses[0].partition_responses[0].error_code for asked in waiting]
    assert codes == [0, 0, 0]
    assert read(world, 0, committed=False) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("count", [2, 200])
def test_a_write_behind_one_that_waits_for_the_markers_before_is_not_judged_without_it(count: int) -> None:
    """The transaction before ends while the first write waits to ask again; those that come now must not overtake."""
    world = transactional_world(
        add_partitions_to_txn_retry_backoff_ms="500", add_partitions_to_txn_retry_backoff_max_ms="5000"
    )
    producer = Producer(world)
    producer.init()
    producer.produce(0, b"before")
    assert producer.end(True) == 0
    world.node.txn_markers.on_completed = lambda transactional_id, now_ms: None
    waiting = [world.send(produce_request(producer, 0, b"0"), 12)]
    world.run(100)
    assert producer.state == "CompleteCommit" and not waiting[0].reply.done
    waiting += [world.send(produce_request(producer, number, b"%d" % number), 12) for number in range(1, count)]
    world.run(1000)
    codes = [asked.response.responses[0].partition_responses[0].error_code for asked in waiting]
    assert codes == [0] * count
    assert read(world, 0, committed=False) == [b"before", *(b"%d" % number for number in range(count))]


def test_a_write_that_comes_again_in_the_next_transaction_does_not_stop_what_follows() -> None:
    """Version 1 keeps its epoch, so the late one is verified; nobody waits for it, it has long been written."""
    world = transactional_world()
    producer = Producer(world, version=1)
    producer.init()
    late = produce_request(producer, 0, b"first")
    producer.add(0)
    assert world.ask(late, 9).responses[0].partition_responses[0].error_code == 0
    assert producer.end(True) == 0
    world.run(100)
    assert producer.add(0) == [0]
    assert world.ask(late, 9).responses[0].partition_responses[0].base_offset == 0
    assert world.ask(produce_request(producer, 1, b"second"), 9).responses[0].partition_responses[0].error_code == 0
    assert producer.end(True) == 0
    world.run(100)
    assert read(world, 0) == [b"first", b"second"]


def test_what_comes_before_its_predecessor_is_refused() -> None:
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    answer = world.ask(produce_request(producer, 1, b"too early"), 12)
    assert answer.responses[0].partition_responses[0].error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.write(0, b"first") == 0


def test_a_write_that_was_held_back_is_written_at_its_own_time() -> None:
    """Where the log gives the timestamps they do not go back, and the time a producer waits begins with the write."""
    world = transactional_world()
    assert world.create("stamped", 1, message_timestamp_type="LogAppendTime") == 0
    producer, other = Producer(world), Producer(world, "y")
    producer.init()
    index = world.node.coordinators.transactions.partition_for("y")
    assert index != world.node.coordinators.transactions.partition_for("x")
    other.init()
    hold_coordinator(world, True)
    asked = world.send(produce_request(producer, 0, b"held", "stamped"), 12)
    world.run(2000)
    assert other.produce(0, b"between", topic="stamped") == 0
    world.run(1000)
    hold_coordinator(world, False)
    assert asked.response.responses[0].partition_responses[0].error_code == 0
    assert asked.response.responses[0].partition_responses[0].log_append_time_ms == world.now_ms


@BOTH
def test_a_commit_of_offsets_does_not_outlive_the_log_it_was_verified_with(version: int) -> None:
    """The replica moved to another directory: a marker that came then is known to the new log alone."""
    world = transactional_world(log_dirs="/data,/data2")
    producer = Producer(world, version=version)
    producer.init()
    if version == 1:
        assert producer.commit_offset("g", 4) == 0
        producer.abort()
        request = AddOffsetsToTxnRequest(producer.transactional_id, producer.producer_id, producer.epoch, "g")
        assert world.ask(request, 3).error_code == 0
    topics = [TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, 5, -1, "")])]
    commit = TxnOffsetCommitRequest("x", "g", producer.producer_id, producer.epoch, topics=topics)
    index = world.node.coordinators.groups.partition_for("g")
    partition = world.node.replicas.find("__consumer_offsets", index)
    assert partition is not None and partition.log is not None
    log = partition.log
    hold_coordinator(world, True)
    set_epoch(world, "x", producer.epoch)  # something that the answer must wait for
    asked = world.send(commit, 5 if version == 2 else 3)
    assert move(world, "/data2" if log.log_directory.path == "/data" else "/data", index, "__consumer_offsets") == 0
    wait_for_move(world)
    assert partition.log is not log and not asked.reply.done
    hold_coordinator(world, False)
    assert asked.response.topics[0].partitions[0].error_code == errors.NOT_COORDINATOR


def produce_request(producer: Producer, sequence: int, value: bytes, topic: str = "t") -> ProduceRequest:
    data = batch(producer.world.now_ms, producer, sequence, [value])
    row = PartitionProduceData(index=0, records=MemoryRecords(data, 0, len(data)))
    return ProduceRequest(producer.transactional_id, -1, 1000, [TopicProduceData(name=topic, partition_data=[row])])


# Whose end it is


def test_the_answer_while_markers_are_written() -> None:
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    producer.produce(0, b"a")
    assert producer.end(True) == 0
    assert producer.state == "PrepareCommit"
    assert producer.end(True) == errors.CONCURRENT_TRANSACTIONS
    assert producer.init() == errors.CONCURRENT_TRANSACTIONS
    assert Producer(world, version=1).init() == errors.CONCURRENT_TRANSACTIONS
    assert producer.add(0) == [errors.CONCURRENT_TRANSACTIONS]
    asked = world.send(produce_request(producer, 0, b"b"), 12)
    assert not asked.reply.done, "the leader asks the coordinator again by itself"
    world.run(20)
    assert asked.response.responses[0].partition_responses[0].error_code == 0


def test_a_deleted_topic_does_not_hold_up_the_end() -> None:
    world = transactional_world()
    world.create("gone")
    producer = Producer(world)
    producer.init()
    assert producer.produce(0, b"a", topic="gone") == 0
    assert producer.produce(0, b"a") == 0
    assert world.delete("gone") == 0
    producer.commit()
    assert (producer.state, read(world, 0)) == ("CompleteCommit", [b"a"])


def test_a_log_that_takes_no_markers_is_asked_until_it_does() -> None:
    world = transactional_world()
    producer = Producer(world)
    producer.init()
    producer.produce(0, b"a")
    producer.produce(1, b"b")
    world.disk.fail("append", "/t-0/", errno.ENOSPC, times=3)
    assert producer.end(True) == 0
    world.run(150)
    assert producer.state == "PrepareCommit"
    assert read(world, 1) == [b"b"]
    world.run(1000)
    assert (producer.state, read(world, 0)) == ("CompleteCommit", [b"a"])


# Inspection


def test_transactions_are_listed_by_state_producer_age_and_name() -> None:
    world = transactional_world()
    open_one, done, fresh = (Producer(world, name) for name in ("open", "done", "fresh"))
    for producer in (open_one, done, fresh):
        producer.init()
    open_one.produce(0, b"a")
    done.produce(1, b"a")
    done.commit()

    def names(version: int = 2, **wanted: Any) -> list[str]:
        answer = world.ask(ListTransactionsRequest(**wanted), version)
        assert answer.error_code == 0
        return sorted(f"{row.transactional_id} {row.transaction_state}" for row in answer.transaction_states)

    assert names() == ["done CompleteCommit", "fresh Empty", "open Ongoing"]
    assert names(state_filters=["Ongoing", "Empty"]) == ["fresh Empty", "open Ongoing"]
    assert names(state_filters=["Nonsense"]) == []
    assert names(producer_id_filters=[done.producer_id]) == ["done CompleteCommit"]
    assert names(transactional_id_pattern="(open|fresh)") == ["fresh Empty", "open Ongoing"]
    world.run(5000)
    assert names(duration_filter=4000, state_filters=["Ongoing"]) == ["open Ongoing"]
    assert names(duration_filter=6000, state_filters=["Ongoing"]) == []
    answer = world.ask(ListTransactionsRequest(state_filters=["Nonsense", "Empty"]), 0)
    assert answer.unknown_state_filters == ["Nonsense"]
    bad = world.ask(ListTransactionsRequest(transactional_id_pattern="(open"), 2)
    assert bad.error_code == errors.INVALID_REGULAR_EXPRESSION


def test_the_topic_of_transactions_is_made_as_kafka_makes_it() -> None:
    world = transactional_world()
    configs = world.node.image.config(TOPIC_RESOURCE, "__transaction_state")
    assert configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


# Two phases (KIP-939)


def two_phase_init(producer: Producer, keeps: bool = False) -> Any:
    request = InitProducerIdRequest(producer.transactional_id, TIMEOUT_MS, enable2_pc=True, keep_prepared_txn=keeps)
    answer = producer.world.ask(request, 6)
    if answer.error_code == 0:
        producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
    return answer


@pytest.mark.parametrize("commits", [True, False])
def test_a_prepared_transaction_outlives_its_producer_and_is_ended_by_the_next(commits: bool) -> None:
    world = transactional_world(
        transaction_two_phase_commit_enable="true", transaction_abort_timed_out_transaction_cleanup_interval_ms="1000"
    )
    producer = Producer(world)
    assert two_phase_init(producer).error_code == 0
    producer.produce(0, b"a")
    world.run(120_000)
    assert producer.state == "Ongoing", "somebody else decides, however long that takes"
    crash(world)
    successor = Producer(world)
    kept = two_phase_init(successor, keeps=True)
    assert (kept.ongoing_txn_producer_id, kept.ongoing_txn_producer_epoch) == (producer.producer_id, producer.epoch)
    assert producer.end(True) == errors.PRODUCER_FENCED
    assert producer.write(1, b"zombie") == errors.INVALID_PRODUCER_EPOCH
    again = Producer(world)
    two_phase_init(again, keeps=True)
    assert successor.end(True) == errors.PRODUCER_FENCED
    assert again.end(commits) == 0
    world.run(100)
    assert (producer.state, read(world, 0)) == (("CompleteCommit", [b"a"]) if commits else ("CompleteAbort", []))
    assert again.produce(0, b"next") == 0
    again.commit()
    assert read(world, 0)[-1] == b"next"


def test_whoever_ends_a_kept_transaction_in_its_last_epoch_goes_on_under_another_id() -> None:
    world = transactional_world(transaction_two_phase_commit_enable="true")
    producer, successor = Producer(world), Producer(world)
    two_phase_init(producer)
    set_epoch(world, "x", 32765)
    producer.epoch = 32765
    assert producer.produce(0, b"a") == 0
    two_phase_init(successor, keeps=True)
    assert (successor.producer_id, successor.epoch) == (producer.producer_id, 32766)
    successor.commit()
    second = successor.producer_id
    successor.producer_id, successor.epoch = producer.producer_id, 32766  # its answer got lost
    assert (successor.end(True), successor.producer_id, successor.epoch) == (0, second, 0)
    assert second != producer.producer_id and successor.produce(0, b"b") == 0
    successor.commit()
    assert read(world, 0) == [b"a", b"b"]


def test_without_keeping_the_prepared_transaction_is_aborted() -> None:
    world = transactional_world(transaction_two_phase_commit_enable="true")
    producer, successor = Producer(world), Producer(world)
    two_phase_init(producer)
    producer.produce(0, b"a")
    assert two_phase_init(successor).error_code == errors.CONCURRENT_TRANSACTIONS
    world.run(100)
    assert two_phase_init(successor, keeps=True).ongoing_txn_producer_id == -1
    assert read(world, 0) == []


def test_two_phases_must_be_allowed() -> None:
    world = transactional_world(unstable_api_versions_enable="true")
    assert two_phase_init(Producer(world)).error_code == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


# Who may commit offsets (KIP-447)


def test_only_members_of_the_current_generation_commit_offsets_in_a_transaction() -> None:
    world = transactional_world(group_initial_rebalance_delay_ms="0")
    protocols = [JoinGroupRequestProtocol("range", b"")]
    join = JoinGroupRequest("g", 10_000, 10_000, protocol_type="consumer", protocols=protocols)
    joined = world.ask(join, 3)
    assert joined.error_code == 0
    member, generation = joined.member_id, joined.generation_id
    assert world.ask(SyncGroupRequest("g", generation, member), 3).error_code == 0
    producer = Producer(world)
    producer.init()
    for code, of_generation, of_member in (
        (errors.ILLEGAL_GENERATION, generation - 1, member),
        (errors.ILLEGAL_GENERATION, generation + 1, member),
        (errors.UNKNOWN_MEMBER_ID, generation, "somebody else"),
        (0, generation, member),
        (0, -1, ""),
    ):
        assert producer.commit_offset("g", 5, generation=of_generation, member=of_member) == code
    producer.commit()
    assert group_offset(world, "g") == (0, 5)


def test_an_offset_whose_metadata_is_too_long_is_refused_alone() -> None:
    world = transactional_world(offset_metadata_max_bytes="3")
    producer = Producer(world)
    producer.init()
    rows = [TxnOffsetCommitRequestPartition(index, 5, -1, "x" * (index * 4)) for index in (0, 1)]
    request = TxnOffsetCommitRequest("x", "g", producer.producer_id, producer.epoch)
    request.topics = [TxnOffsetCommitRequestTopic("t", rows)]
    answer = world.ask(request, 5).topics[0].partitions
    assert [row.error_code for row in answer] == [0, errors.OFFSET_METADATA_TOO_LARGE]
    producer.commit()
    assert (group_offset(world, "g", 0), group_offset(world, "g", 1)) == ((0, 5), (0, -1))
