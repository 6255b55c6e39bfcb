"""Moldau and Apache Kafka accept and refuse the same batches, with the same codes and offsets."""

from __future__ import annotations

import gzip
import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from tests.interop.batches import batch, now_ms, record, varint
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.interop.wire import CLOSED, plain, records_of
from tests.pace import patience, patience_ms

DAY_MS = 86_400_000


def produce(peer: Peer, topic: str, records: bytes | None, **fields: Any) -> Any:
    """The answer for one partition as plain values; a real append time is only told apart from none."""
    answer = peer.produce(topic, records, **fields)
    if answer == CLOSED:
        return CLOSED
    result = plain(answer)
    if result["log_append_time_ms"] != -1:
        result["log_append_time_ms"] = "<now>"
    return result


def stored(peer: Peer, topic: str, offset: int = 0) -> bytes:
    """What a fetch from that offset returns."""
    return records_of(peer.fetch(topic, offset).records)


@pytest.mark.parametrize("version", range(3, 14))
def test_a_batch_is_appended_in_every_version(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return [produce(peer, topic, batch([b"a", b"b"]), version=version, acks=acks) for acks in (1, -1)]

    first, second = same(scenario)
    assert (first["error_code"], first["base_offset"], second["base_offset"]) == (0, 0, 2)


def test_the_stored_bytes_are_the_same(same: Same, topic: str) -> None:
    """Base offset and leader epoch are written into the batch, nothing else changes."""
    sent = batch([b"a", b"b"], partition_leader_epoch=5, timestamp=now_ms())

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        peer.produce(topic, sent)
        peer.produce(topic, sent)
        return stored(peer, topic)

    assert len(same(scenario)) == 2 * len(sent)


@pytest.mark.parametrize("acks", [2, -2, 5])
def test_acks_that_do_not_exist(same: Same, topic: str, acks: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return produce(peer, topic, batch(), acks=acks)

    assert same(scenario)["error_code"] == errors.INVALID_REQUIRED_ACKS


def test_acks_0_gets_no_answer(same: Same, topic: str) -> None:
    """The next request on the connection is answered; what was sent is there."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, MemoryRecords(batch([b"a"])))])
        with peer.connect() as wire:
            wire.send(ProduceRequest(acks=0, timeout_ms=patience_ms(1000), topic_data=[data]), 9)
            answer = wire.ask(peer.fetch_request(topic, [(0, 0)], 12), 12)
        return len(records_of(answer.responses[0].partitions[0].records)) > 0

    assert same(scenario)


def test_an_error_with_acks_0_closes_the_connection(same: Same) -> None:
    """There is no other way to tell."""

    def scenario(peer: Peer) -> Any:
        data = TopicProduceData(name="missing", partition_data=[PartitionProduceData(0, MemoryRecords(batch([b"a"])))])
        with peer.connect() as wire:
            wire.send(ProduceRequest(acks=0, timeout_ms=patience_ms(1000), topic_data=[data]), 9)
            return CLOSED if wire.receive_frame() is None else "answered"

    assert same(scenario) == CLOSED


@pytest.mark.parametrize("version", [3, 7, 9, 10, 12])
def test_topics_and_partitions_that_are_not_there(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return [
            produce(peer, "missing", batch(), version=version),
            produce(peer, topic, batch(), partition=1, version=version),
            produce(peer, topic, batch(), partition=-1, version=version),
        ]

    same(scenario)


def test_a_topic_id_that_is_not_known(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        data = [PartitionProduceData(0, MemoryRecords(batch()))]
        answers = []
        for identifier in (b"\5" * 16, bytes(16)):
            asked = [TopicProduceData(topic_id=identifier, partition_data=data)]
            answers.append(plain(peer.ask(ProduceRequest(acks=1, timeout_ms=patience_ms(1000), topic_data=asked), 13)))
        return answers

    same(scenario)


def test_a_topic_of_the_system_cannot_be_written(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        return produce(peer, "__cluster_metadata", batch())

    same(scenario)


BAD_BATCHES = {
    "crc": batch(crc_error=1),
    "empty": b"",
    "one byte": b"\0",
    "half a header": batch()[:40],
    "half a batch": batch()[:-1],
    "longer than its data": batch(length_error=1),
    "shorter than its data": batch(length_error=-1),
    "length 0": batch()[:8] + b"\0\0\0\0" + batch()[12:],
    "negative length": batch()[:8] + b"\xff\xff\xff\xff" + batch()[12:],
    "magic 0": batch(magic=0),
    "magic 1": batch(magic=1),
    "magic 3": batch(magic=3),
    "magic -1": batch(magic=-1),
    "no records": batch([], count=0, last_offset_delta=0),
    "no records at all": batch([], count=0, last_offset_delta=-1),
    "count too high": batch([b"a", b"b"], count=3),
    "count too low": batch([b"a", b"b"], count=1),
    "negative count": batch([b"a"], count=-1),
    "last offset too high": batch([b"a", b"b"], last_offset_delta=5),
    "last offset too low": batch([b"a", b"b"], last_offset_delta=0),
    "offsets with a gap": batch([b"a", b"b"], payload=record(b"a") + record(b"b", offset_delta=2), last_offset_delta=2),
    "bytes after the last record": batch([b"a"], payload=record(b"a") + b"xx"),
    "a record that ends early": batch([b"a"], payload=record(b"a")[:-1]),
    "a record longer than it says": batch([b"a"], payload=varint(3) + record(b"a")[1:]),
    "a negative record length": batch([b"a"], payload=varint(-5) + record(b"a")[1:]),
    "a negative header count": batch([b"a"], payload=record(b"a", headers=varint(-1))),
    "a header without a name": batch([b"a"], payload=record(b"a", headers=varint(1) + varint(-1) + varint(-1))),
    "a control batch": batch(attributes=0x20),
    "a transactional batch": batch(attributes=0x10),
    "log append time": batch(attributes=0x08),
    "a delete horizon": batch(attributes=0x40),
    "unknown attributes": batch(attributes=0x7F00),
    "codec 5": batch(attributes=5),
    "codec 7": batch(attributes=7),
    "gzip that is none": batch(attributes=1, payload=b"not gzip at all"),
    "snappy that is none": batch(attributes=2, payload=b"not snappy at all"),
    "lz4 that is none": batch(attributes=3, payload=b"not lz4 at all"),
    "zstd that is none": batch(attributes=4, payload=b"not zstd at all"),
    "gzip with a gap": batch([b"a", b"b"], attributes=1, last_offset_delta=7),
    "gzip with a wrong count": batch([b"a", b"b"], attributes=1, count=3, last_offset_delta=2),
    "gzip": batch([b"a", b"b"], attributes=1),
    "two batches": batch() + batch(),
    "two batches, the second torn": batch() + batch()[:-3],
    "two batches, the second wrong": batch() + batch(crc_error=1),
    "a negative base offset": batch(base_offset=-9),
    "a base offset": batch(base_offset=77),
    "a producer without a sequence": batch(producer_id=7, producer_epoch=0, base_sequence=-1),
    "a producer without an epoch": batch(producer_id=7, producer_epoch=-1, base_sequence=0),
    "a sequence without a producer": batch(base_sequence=4),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_odd_batches_are_judged_alike(same: Same, topic: str, name: str) -> None:
    """Accepted or refused with the same code; afterwards a good batch gets the same offset."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return produce(peer, topic, BAD_BATCHES[name]), produce(peer, topic, batch([b"good"]))

    same(scenario)


@pytest.mark.parametrize("version", [7, 9])
def test_codecs_of_their_time(same: Same, topic: str, version: int) -> None:
    """zstd needs a producer that knows version 7; older ones must not send it."""
    empty_zstd = bytes.fromhex("28b52ffd0058") + b"\1\0\0"

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        compressed = batch([], attributes=4, payload=empty_zstd, count=1)
        return [produce(peer, topic, compressed, version=chosen) for chosen in (6, version)]

    same(scenario)


def test_a_batch_that_is_too_large(same: Same, topic: str) -> None:
    """max.message.bytes counts the whole batch as stored."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, max_message_bytes="1000")
        overhead = len(batch([b"x" * 900])) - 900
        return [produce(peer, topic, batch([b"x" * (size - overhead)])) for size in (999, 1000, 1001, 5000)]

    codes = [answer["error_code"] for answer in same(scenario)]
    assert codes == [0, 0, errors.MESSAGE_TOO_LARGE, errors.MESSAGE_TOO_LARGE]


def test_a_batch_larger_than_a_segment(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, segment_bytes="1048576", max_message_bytes="5000000")
        return produce(peer, topic, batch([b"x" * 2_000_000])), produce(peer, topic, batch())

    same(scenario)


@pytest.mark.parametrize(
    ("name", "offset_ms"),
    [("long ago", -10 * DAY_MS), ("soon", 30 * 60_000), ("too soon", 2 * 3_600_000), ("never", 10 * DAY_MS)],
)
def test_timestamps_far_from_now(same: Same, topic: str, name: str, offset_ms: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        peer.create(f"{topic}-limits", message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000")
        data = batch([b"a", b"b"], timestamp=now_ms() + offset_ms)
        squeezed = batch([b"a", b"b"], timestamp=now_ms() + offset_ms, attributes=1)
        return [produce(peer, where, what) for where in (topic, f"{topic}-limits") for what in (data, squeezed)]

    same(scenario)


@pytest.mark.parametrize("timestamp", [-1, -2, 0, 2**62])
def test_timestamps_that_are_special(same: Same, topic: str, timestamp: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return produce(peer, topic, batch([b"a"], timestamp=timestamp))

    same(scenario)


def test_a_maximum_timestamp_that_is_not_true(same: Same, topic: str) -> None:
    """What is stored is what the batch says or what its records say; both sides do the same."""
    now = now_ms()

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = [produce(peer, topic, batch([b"a", b"b"], timestamp=now, max_timestamp=now + 5000))]
        answers.append(stored(peer, topic))
        answers.append(produce(peer, topic, batch([b"a"], timestamp=now, max_timestamp=now + 9000, attributes=1)))
        return answers

    same(scenario)


def test_log_append_time(same: Same, topic: str) -> None:
    """The answer tells the time, and the batch says that its time is the broker's."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, message_timestamp_type="LogAppendTime")
        answers = [
            produce(peer, topic, batch([b"a", b"b"], timestamp=5)),
            produce(peer, topic, batch([b"c"], attributes=1)),
        ]
        data = stored(peer, topic)
        return answers, data[21:23], data[57:77], len(data)

    (first, _), attributes, _, _ = same(scenario)
    assert first["log_append_time_ms"] == "<now>"
    assert attributes == b"\0\x08"


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_recompression_to_the_codec_of_the_topic(same: Same, topic: str, codec: str) -> None:
    """A batch that comes in with another codec is stored with the topic's; offsets, counts and attributes agree."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, compression_type=codec)
        answers = [
            produce(peer, topic, batch([b"x" * 500, b"y" * 500])),
            produce(peer, topic, batch([b"x" * 500, b"y" * 500], attributes=1)),
        ]
        data = stored(peer, topic)
        return answers, data[21:23], data[23:27], data[43:61]

    same(scenario)


def test_recompression_checks_the_records(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, compression_type="gzip", cleanup_policy="compact")
        without_key = batch([b"a", b"b"])
        return produce(peer, topic, without_key), produce(peer, topic, batch([b"a"], key=b"k"))

    same(scenario)


@pytest.mark.parametrize("attributes", [0, 1])
def test_a_compacted_topic_wants_keys(same: Same, topic: str, attributes: int) -> None:
    """INVALID_RECORD, with one entry for each record without a key."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, cleanup_policy="compact")
        mixed = record(b"a", key=b"k") + record(b"b", offset_delta=1) + record(b"c", offset_delta=2)
        if attributes:
            mixed = gzip.compress(mixed)
        return [
            produce(peer, topic, batch([b"a"], attributes=attributes)),
            produce(peer, topic, batch([b"a"], key=b"k", attributes=attributes)),
            produce(peer, topic, batch([b"", b"", b""], payload=mixed, attributes=attributes)),
        ]

    refused, accepted, mixed = same(scenario)
    assert (refused["error_code"], accepted["error_code"]) == (errors.INVALID_RECORD, 0)
    assert [row["batch_index"] for row in mixed["record_errors"]] == [1, 2]


def new_producer(peer: Peer) -> tuple[int, int]:
    """A new id; a broker that has just started may ask for patience while it gets its first block of ids."""
    deadline = time.monotonic() + patience(10)
    while True:
        answer = peer.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4)
        if answer.error_code != errors.COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert answer.error_code == 0, answer
    return answer.producer_id, answer.producer_epoch


def test_sequences_are_checked(same: Same, topic: str) -> None:
    """In order: appended. Again: the first offset. A gap: OUT_OF_ORDER. Epoch too old: INVALID_PRODUCER_EPOCH."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        producer_id, epoch = new_producer(peer)

        def send(sequence: int, count: int = 2, at_epoch: int = epoch) -> Any:
            data = batch([b"v"] * count, producer_id=producer_id, producer_epoch=at_epoch, base_sequence=sequence)
            return produce(peer, topic, data)

        answers = [
            send(0),
            send(2),
            send(4),
            send(2),
            send(0),
            send(7),
            send(4, 3),
            send(5),
            send(6),
            send(8),
            send(10),
        ]
        answers += [send(12), send(0), send(2), send(4), send(6)]
        answers += [send(3, at_epoch=epoch + 1), send(0, at_epoch=epoch + 1), send(14), send(0, at_epoch=epoch + 1)]
        return answers

    codes = [answer["error_code"] for answer in same(scenario)]
    assert codes[:3] == [0, 0, 0]
    assert codes[5] == errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_the_partition_does_not_know(same: Same, topic: str) -> None:
    """A first batch is accepted with any sequence, since its producer may have been forgotten."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = []
        for sequence in (0, 5, 6):
            data = batch([b"v"], producer_id=123_456, producer_epoch=3, base_sequence=sequence)
            answers.append(produce(peer, topic, data))
        return answers

    same(scenario)


def test_sequences_wrap_around(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = []
        for sequence, count in ((2**31 - 2, 1), (2**31 - 1, 2), (1, 1), (3, 1)):
            data = batch([b"v"] * count, producer_id=99, producer_epoch=0, base_sequence=sequence)
            answers.append(produce(peer, topic, data))
        return answers

    same(scenario)


def test_several_batches_of_one_producer_in_one_request(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        first = batch([b"a"], producer_id=5, producer_epoch=0, base_sequence=0)
        second = batch([b"b"], producer_id=5, producer_epoch=0, base_sequence=1)
        return produce(peer, topic, first + second), produce(peer, topic, second)

    same(scenario)


def test_producers_are_described(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        producer_id, epoch = new_producer(peer)
        for sequence in (0, 1):
            data = batch([b"v"], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
            peer.produce(topic, data)
        asked = [TopicRequest(topic, [0, 1, 2]), TopicRequest("missing", [0])]
        answer = plain(peer.ask(DescribeProducersRequest(topics=asked), 0), {"producer_id", "last_timestamp"})
        for row in answer["topics"]:
            row["partitions"] = sorted(row["partitions"], key=lambda item: int(item["partition_index"]))
        answer["topics"] = sorted(answer["topics"], key=lambda item: str(item["name"]))
        return answer

    same(scenario)


def test_a_transactional_batch_outside_a_transaction(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        data = batch(attributes=0x10, producer_id=5, producer_epoch=0, base_sequence=0)
        return produce(peer, topic, data)

    same(scenario)


def test_the_same_partition_twice_in_one_request(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        parts = [PartitionProduceData(0, MemoryRecords(batch([value]))) for value in (b"a", b"b")]
        request = ProduceRequest(
            acks=1, timeout_ms=patience_ms(1000), topic_data=[TopicProduceData(name=topic, partition_data=parts)]
        )
        answer = peer.ask(request, 9)
        return answer if answer == CLOSED else [row.error_code for row in answer.responses[0].partition_responses]

    same(scenario)


def test_many_partitions_in_one_request(same: Same, topic: str) -> None:
    """One bad partition does not spoil the others."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 3)
        rows = [(0, batch([b"a"])), (1, batch([b"b"], crc_error=1)), (2, batch([b"c"])), (3, batch([b"d"]))]
        parts = [PartitionProduceData(index, MemoryRecords(data)) for index, data in rows]
        request = ProduceRequest(
            acks=-1, timeout_ms=patience_ms(1000), topic_data=[TopicProduceData(name=topic, partition_data=parts)]
        )
        answer = plain(peer.ask(request, 11))
        found = answer["responses"][0]["partition_responses"]
        answer["responses"][0]["partition_responses"] = sorted(found, key=lambda row: int(row["index"]))
        return answer

    same(scenario)


def test_an_empty_request(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        return plain(peer.ask(ProduceRequest(acks=1, timeout_ms=patience_ms(1000), topic_data=[]), 9))

    same(scenario)


@pytest.mark.parametrize("version", range(6))
def test_producer_ids(same: Same, version: int) -> None:
    """Without a transactional id each answer is a new id with epoch 0."""

    def scenario(peer: Peer) -> Any:
        new_producer(peer)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answers = [peer.ask(request, version) for _ in range(3)]
        ids = [answer.producer_id for answer in answers]
        assert ids == [ids[0], ids[0] + 1, ids[0] + 2]
        return [plain(answer, {"producer_id"}) for answer in answers]

    same(scenario)


@pytest.mark.parametrize(
    ("producer_id", "epoch", "transactional_id"),
    [(5, -1, None), (-1, 5, None), (5, 5, None), (-2, -1, None), (-1, -1, "")],
)
def test_producer_ids_asked_for_in_odd_ways(
    same: Same, producer_id: int, epoch: int, transactional_id: str | None
) -> None:
    def scenario(peer: Peer) -> Any:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = peer.ask(request, 4)
        return answer if answer == CLOSED else (answer.error_code, answer.producer_epoch, answer.producer_id >= 0)

    same(scenario)
