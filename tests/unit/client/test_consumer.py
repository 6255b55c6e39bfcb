"""The consumer and its fetcher, against a scripted broker."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client.consumer import Consumer
from moldau.client.errors import (
    ClientError,
    ClosedError,
    CorruptRecordError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import (
    AbortedTransaction,
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
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from moldau.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from tests.unit.client.fake_network import DISCONNECT, HOME, TOPIC_ID, FakeNetwork, ScriptedBroker, metadata

P0 = TopicPartition("t", 0)


def batch(
    base_offset: int, values: list[bytes], producer_id: int = -1, transactional: bool = False, control: bool = False
) -> bytes:
    builder = BatchBuilder(base_offset=base_offset)
    for value in values:
        builder.append(1000 + base_offset, b"\x00\x00\x00\x00" if control else None, value, [])
    return builder.build(
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        transactional=transactional,
        control=control,
    )


class Log:
    """Answers Fetch and ListOffsets from batches (base offset, end offset, bytes) per partition."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int, bytes]]] = {}
        self.start: dict[int, int] = {}
        self.faults: list[object] = []
        self.aborted: list[AbortedTransaction] = []
        self.fetches: list[FetchRequest] = []

    def add(self, partition: int, values: list[bytes], **more: object) -> None:
        base = self.end(partition)
        data = batch(base, values, **more)  # type: ignore[arg-type]
        self.batches.setdefault(partition, []).append((base, base + len(values), data))

    def end(self, partition: int) -> int:
        rows = self.batches.get(partition, [])
        return rows[-1][1] if rows else 0

    def list_offsets(self, request: Message, version: int) -> object:
        assert isinstance(request, ListOffsetsRequest)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=row.partition_index,
                            offset=self.start.get(row.partition_index, 0)
                            if row.timestamp == -2
                            else (self.end(row.partition_index) if row.timestamp == -1 else -1),
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def fetch(self, request: Message, version: int) -> object:
        assert isinstance(request, FetchRequest)
        self.fetches.append(request)
        fault = self.faults.pop(0) if self.faults else 0
        if not isinstance(fault, int):
            return fault
        rows = []
        for topic in request.topics:
            assert topic.topic_id == (TOPIC_ID if version >= 13 else bytes(16))
            for row in topic.partitions:
                code = fault
                if not self.start.get(row.partition, 0) <= row.fetch_offset <= self.end(row.partition):
                    code = 1
                data = b"".join(item[2] for item in self.batches.get(row.partition, []) if item[1] > row.fetch_offset)
                rows.append(
                    PartitionData(
                        partition_index=row.partition,
                        error_code=code,
                        high_watermark=self.end(row.partition),
                        last_stable_offset=self.end(row.partition),
                        aborted_transactions=self.aborted,
                        records=None if code else MemoryRecords(data, 0, len(data)),
                    )
                )
        name = "t" if version < 13 else ""
        return FetchResponse(responses=[FetchableTopicResponse(topic=name, topic_id=TOPIC_ID, partitions=rows)])


def set_up(partitions: int = 1, highest: dict[int, int] | None = None, **more: object) -> tuple[Consumer, Log]:
    broker = ScriptedBroker(highest)
    log = Log()
    broker.on(MetadataRequest, metadata({"t": [1] * partitions}))
    broker.on(ListOffsetsRequest, log.list_offsets)
    broker.on(FetchRequest, log.fetch)
    consumer = Consumer("broker:9092", config=wired(network=FakeNetwork({HOME: broker})), **more)  # type: ignore[arg-type]
    consumer.assign([TopicPartition("t", index) for index in range(partitions)])
    return consumer, log


def values(consumer: Consumer, timeout_ms: int = 1000, limit: int | None = None) -> list[bytes | None]:
    return [record.value for record in consumer.poll(timeout_ms, limit)]


def test_records_come_in_order_from_the_beginning() -> None:
    consumer, log = set_up()
    log.add(0, [b"a", b"b"])
    log.add(0, [b"c"])
    consumer.seek_to_beginning()
    records = consumer.poll(1000)
    assert [(record.offset, record.value, record.timestamp) for record in records] == [
        (0, b"a", 1000),
        (1, b"b", 1000),
        (2, b"c", 1002),
    ]
    assert consumer.position(P0) == 3 and consumer.high_watermark(P0) == 3


def test_a_limit_stops_within_a_batch_and_goes_on_there() -> None:
    consumer, log = set_up()
    log.add(0, [b"a", b"b", b"c"])
    consumer.seek_to_beginning()
    assert values(consumer, limit=2) == [b"a", b"b"] and consumer.position(P0) == 2
    assert values(consumer) == [b"c"]


def test_seek_into_a_batch_leaves_out_what_lies_before() -> None:
    consumer, log = set_up()
    log.add(0, [b"a", b"b", b"c"])
    consumer.seek(P0, 2)
    assert values(consumer) == [b"c"]


def test_without_a_position_the_reset_policy_decides() -> None:
    consumer, log = set_up()
    log.add(0, [b"old"])
    assert values(consumer, 10) == []
    log.add(0, [b"new"])
    assert values(consumer) == [b"new"]
    consumer, log = set_up(auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError):
        consumer.poll(10)


def test_a_position_that_is_given_is_read_as_soon_as_the_leader_is_known() -> None:
    consumer, log = set_up()
    log.add(0, [b"a"])
    consumer.seek(P0, 0)
    start_ms = consumer._cluster.network.now_ms()
    assert values(consumer) == [b"a"]
    waited_ms = consumer._cluster.network.now_ms() - start_ms
    assert waited_ms < 50, "the pause after failures, 100 ms, is not for metadata that is being asked for"


def test_a_partition_that_does_not_exist_is_asked_for_now_and_then() -> None:
    consumer, log = set_up()
    beyond = TopicPartition("t", 7)
    consumer.assign([beyond])
    consumer.seek(beyond, 0)
    network = consumer._cluster.network
    assert isinstance(network, FakeNetwork)
    assert consumer.poll(10_000) == [] and not log.fetches
    asked = [request for _, request in network.brokers[HOME].seen if isinstance(request, MetadataRequest)]
    assert 5 < len(asked) < 100, "again and again, with pauses"


def test_an_offset_out_of_range_is_reset_or_raised() -> None:
    consumer, log = set_up(auto_offset_reset="earliest")
    log.add(0, [b"a"])
    consumer.seek(P0, 99)
    assert values(consumer) == [b"a"]
    consumer, log = set_up(auto_offset_reset="none")
    consumer.seek(P0, 99)
    with pytest.raises(OffsetOutOfRangeError, match="Offset 99 of t-0"):
        consumer.poll(1000)


@pytest.mark.parametrize("faults", [[6], [DISCONNECT], [75, 3, DISCONNECT, 74], [100]])
def test_retriable_errors_are_tried_again(faults: list[object]) -> None:
    consumer, log = set_up()
    log.add(0, [b"a"])
    log.faults = list(faults)
    consumer.seek_to_beginning()
    assert values(consumer, 30_000) == [b"a"]


def test_a_broker_that_goes_away_and_comes_back_is_read_on() -> None:
    consumer, log = set_up()
    broker = consumer._cluster.network.brokers[HOME]  # type: ignore[attr-defined]
    log.add(0, [b"a"])
    consumer.seek_to_beginning()
    assert values(consumer) == [b"a"]
    broker.up = False
    log.faults = [DISCONNECT]
    assert values(consumer, 20_000) == []
    broker.up = True
    log.add(0, [b"b"])
    assert values(consumer, 20_000) == [b"b"]


def test_an_error_that_cannot_be_tried_again_is_raised() -> None:
    consumer, log = set_up()
    log.faults = [29]
    consumer.seek_to_beginning()
    with pytest.raises(ClientError) as caught:
        consumer.poll(1000)
    assert caught.value.name == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("highest", [4, 11, 12, 13, 17])
def test_old_and_new_versions_of_fetch_are_spoken(highest: int) -> None:
    consumer, log = set_up(highest={1: highest})
    log.add(0, [b"a"])
    consumer.seek_to_beginning()
    assert values(consumer) == [b"a"]


def test_paused_partitions_are_left_alone() -> None:
    consumer, log = set_up(2)
    log.add(0, [b"a"])
    log.add(1, [b"b"])
    consumer.seek_to_beginning()
    consumer.pause([P0])
    assert values(consumer) == [b"b"] and values(consumer, 50) == []
    consumer.resume([P0])
    assert values(consumer) == [b"a"]


def test_a_wrong_checksum_is_noticed() -> None:
    consumer, log = set_up()
    log.add(0, [b"aaaa"])
    base, end, data = log.batches[0][0]
    log.batches[0][0] = (base, end, data[:-2] + b"x" + data[-1:])
    consumer.seek_to_beginning()
    with pytest.raises(CorruptRecordError, match="checksum"):
        consumer.poll(1000)


@pytest.mark.parametrize(("isolation", "seen"), [("read_committed", [b"y"]), ("read_uncommitted", [b"x", b"y"])])
def test_control_records_are_never_shown_and_aborted_ones_by_isolation(isolation: str, seen: list[bytes]) -> None:
    consumer, log = set_up(isolation_level=isolation)
    log.add(0, [b"x"], producer_id=9, transactional=True)
    log.add(0, [b"marker"], producer_id=9, transactional=True, control=True)
    log.add(0, [b"y"], producer_id=9, transactional=True)
    log.aborted = [AbortedTransaction(producer_id=9, first_offset=0)]
    consumer.seek_to_beginning()
    assert values(consumer) == seen and consumer.position(P0) == 3


def test_questions_about_offsets() -> None:
    consumer, log = set_up(2)
    log.add(0, [b"a", b"b"])
    both = consumer.partitions_for("t")
    assert consumer.beginning_offsets(both) == {both[0]: 0, both[1]: 0}
    assert consumer.end_offsets(both) == {both[0]: 2, both[1]: 0}
    assert consumer.offsets_for_times({both[0]: 5}) == {both[0]: None}


def test_partitions_that_are_not_assigned_and_closed_consumers_are_refused() -> None:
    consumer, _ = set_up()
    with pytest.raises(ClientError, match="t-5 is not assigned"):
        consumer.seek(TopicPartition("t", 5), 0)
    consumer.close()
    with pytest.raises(ClosedError):
        consumer.poll()


def test_deserializers_make_what_the_user_wants() -> None:
    consumer, log = set_up(value_deserializer=lambda data: int(data or b"0"))
    log.add(0, [b"1", b"22"])
    consumer.seek_to_beginning()
    assert [record.value for record in consumer.poll(1000)] == [1, 22]


def test_iteration_goes_on_over_polls() -> None:
    consumer, log = set_up(max_poll_records=1)
    log.add(0, [b"a", b"b", b"c"])
    consumer.seek_to_beginning()
    records = iter(consumer)
    assert [next(records).value for _ in range(3)] == [b"a", b"b", b"c"]


def test_the_next_fetch_is_on_its_way_while_records_are_kept() -> None:
    consumer, log = set_up()
    log.add(0, [b"a", b"b"])
    consumer.seek(P0, 0)
    assert values(consumer, limit=1) == [b"a"]
    assert [row.topics[0].partitions[0].fetch_offset for row in log.fetches] == [0, 2]


def test_wakeup_ends_a_poll() -> None:
    consumer, _ = set_up()
    consumer.seek(P0, 0)
    consumer.wakeup()
    start_ms = consumer._cluster.network.now_ms()
    assert values(consumer, 10_000) == [] and consumer._cluster.network.now_ms() - start_ms < 100


def end_of_epoch(consumer: Consumer, epoch: int, end_offset: int) -> None:
    """The broker answers OffsetForLeaderEpoch so, and its metadata names leader epoch 8 instead of 7."""
    broker = consumer._cluster.network.brokers[HOME]  # type: ignore[attr-defined]
    row = EpochEndOffset(partition=0, leader_epoch=epoch, end_offset=end_offset)
    answer = OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic="t", partitions=[row])])
    broker.on(OffsetForLeaderEpochRequest, lambda request, version: answer)
    plain = metadata({"t": [1]})

    def raised(request: Message, version: int) -> object:
        answer = plain(request, version)
        answer.topics[0].partitions[0].leader_epoch = 8  # type: ignore[attr-defined]
        return answer

    broker.on(MetadataRequest, raised)
    consumer._positions.stale_topics.add("t")


def read_then_change_leader(policy: str, end_offset: int) -> tuple[Consumer, Log]:
    consumer, log = set_up(auto_offset_reset=policy)
    log.add(0, [b"a", b"b", b"c"])
    consumer.seek(P0, 0)
    assert values(consumer) == [b"a", b"b", b"c"]
    state = consumer._fetcher.partitions[P0]
    state.position_epoch = 7
    end_of_epoch(consumer, 7, end_offset)
    return consumer, log


def test_a_log_that_agrees_is_read_on_under_the_new_leader() -> None:
    consumer, log = read_then_change_leader("earliest", 3)
    assert values(consumer, 100) == [] and consumer.position(P0) == 3
    log.add(0, [b"d"])
    assert values(consumer) == [b"d"]


def test_a_truncated_log_is_read_on_where_it_agrees_or_raised() -> None:
    """KIP-320: without a policy the user decides, with one reading goes on from the last offset that agrees."""
    consumer, log = read_then_change_leader("earliest", 2)
    log.batches[0] = []
    log.add(0, [b"a", b"b"])
    log.add(0, [b"other"])
    assert values(consumer) == [b"other"] and consumer.position(P0) == 3
    consumer, _ = read_then_change_leader("none", 2)
    with pytest.raises(LogTruncationError) as caught:
        consumer.poll(1000)
    assert (caught.value.partition, caught.value.offset) == (P0, 2)


def test_a_nearer_replica_is_read_from_until_it_fails() -> None:
    """KIP-392: the leader names a replica in our rack; an error there leads back to the leader."""
    consumer, log = set_up(client_rack="here")
    log.add(0, [b"a"])
    home = consumer._cluster.network.brokers[HOME]  # type: ignore[attr-defined]
    near = ScriptedBroker()
    consumer._cluster.network.brokers[("near", 9092)] = near  # type: ignore[attr-defined]
    home.on(MetadataRequest, metadata({"t": [1]}, {1: HOME, 2: ("near", 9092)}))
    asked: list[str] = []

    def leader(request: Message, version: int) -> object:
        asked.append("leader")
        assert isinstance(request, FetchRequest) and request.rack_id == "here"
        answer = log.fetch(request, version)
        if len(asked) == 1:
            assert isinstance(answer, FetchResponse)
            answer.responses[0].partitions[0].preferred_read_replica = 2
            answer.responses[0].partitions[0].records = None
        return answer

    def replica(request: Message, version: int) -> object:
        asked.append("replica")
        if asked.count("replica") == 2:
            log.faults = [1]
        return log.fetch(request, version)

    home.on(FetchRequest, leader)
    near.on(FetchRequest, replica)
    consumer.seek(P0, 0)
    assert values(consumer) == [b"a"] and asked[:2] == ["leader", "replica"]
    log.add(0, [b"b"])
    assert values(consumer, 5000) == [b"b"] and "leader" in asked[2:]


def test_a_duration_resets_to_the_first_record_so_young() -> None:
    consumer, log = set_up(auto_offset_reset="by_duration:PT1H")
    log.add(0, [b"old"])
    assert values(consumer, 10) == []  # no record is so young: the end
    log.add(0, [b"new"])
    assert values(consumer) == [b"new"]


def test_a_pair_is_a_partition_and_anything_else_is_explained() -> None:
    consumer, _ = set_up()
    pairs: Any = [("t", 0)]
    consumer.assign(pairs)
    assert consumer.assignment() == [TopicPartition("t", 0)]
    unfit: Any = ["t"]
    with pytest.raises(TypeError, match=r"assign\(\) wants TopicPartition\(topic, partition\), not 't'"):
        consumer.assign(unfit)
