"""The consumer and its fetcher, against a scripted broker."""

from __future__ import annotations

import pytest

from moldau.client.consumer import Consumer
from moldau.client.errors import ClientError, ClosedError, CorruptRecordError, OffsetOutOfRangeError
from moldau.client.results import TopicPartition
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
    consumer = Consumer("broker:9092", network=FakeNetwork({HOME: broker}), **more)  # type: ignore[arg-type]
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
    with pytest.raises(OffsetOutOfRangeError):
        consumer.poll(10)


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
