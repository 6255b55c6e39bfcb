"""What a version cannot carry is refused or left out, as the schema says."""

from __future__ import annotations

import pytest

from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import LeaderIdAndEpoch, PartitionProduceResponse, ProduceResponse
from moldau.protocol.primitives import EncodeError, Reader, Writer
from moldau.protocol.records_data import FileRecords, MemoryRecords
from tests.unit.protocol.messages import encode


def test_a_value_that_the_version_cannot_carry_is_refused() -> None:
    with pytest.raises(EncodeError, match="replica_state"):
        encode(FetchRequest(replica_state=ReplicaState(replica_id=1)), 14)
    with pytest.raises(EncodeError, match="replica_id"):
        encode(FetchRequest(replica_id=1), 15)
    with pytest.raises(EncodeError, match="forgotten_topics_data"):
        encode(FetchRequest(forgotten_topics_data=[None]), 4)  # type: ignore[list-item]
    with pytest.raises(EncodeError, match="last_fetched_epoch"):
        encode(FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition(last_fetched_epoch=3)])]), 11)


def test_an_ignorable_value_is_left_out() -> None:
    assert encode(FetchRequest(rack_id="r", session_id=7), 4) == encode(FetchRequest(), 4)


def test_null_is_refused_in_versions_without_it() -> None:
    assert encode(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"
    with pytest.raises(EncodeError, match="topics"):
        encode(MetadataRequest(topics=None), 0)
    assert MetadataRequest().topics == []


def test_unknown_tagged_fields_cannot_be_sent_in_a_version_without_tags() -> None:
    with pytest.raises(EncodeError, match="unknown_tags"):
        encode(FetchRequest(unknown_tags=[(9, b"")]), 11)


@pytest.mark.parametrize("version", [2, 14])
def test_a_version_outside_of_the_schema_cannot_be_encoded(version: int) -> None:
    with pytest.raises(EncodeError, match="no version"):
        encode(ProduceRequest(), version)


def test_a_tagged_struct_at_its_default_is_not_sent() -> None:
    def response(leader: LeaderIdAndEpoch) -> bytes:
        return encode(ProduceResponse(responses=[], unknown_tags=None), 10) + encode(
            PartitionProduceResponse(current_leader=leader), 10
        )

    assert len(response(LeaderIdAndEpoch(3, 4))) == len(response(LeaderIdAndEpoch())) + 1 + 1 + 9


def test_instances_do_not_share_their_lists() -> None:
    first, second = FetchRequest(), FetchRequest()
    first.topics.append(FetchTopic("t"))
    assert second.topics == [] and FetchRequest().topics == []
    request = MetadataRequest()
    assert request.topics is not None
    request.topics.clear()
    assert request.topics is not MetadataRequest().topics


def test_records_of_a_produce_request_stay_in_the_frame() -> None:
    """The records are a piece of the very bytes that were decoded, and go out again as they came."""
    data = PartitionProduceData(index=2, records=MemoryRecords(b"..batch..", 2, 7))
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    frame = encode(request, 9)
    decoded = ProduceRequest.decode(Reader(frame), 9)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, MemoryRecords)
    assert records.data is frame
    assert records.to_bytes() == b"batch"
    assert decoded == request
    assert encode(decoded, 9) == frame


def test_records_in_a_file_are_parts_between_the_bytes() -> None:
    piece = FileRecords(object(), 10, 20)
    data = PartitionProduceData(index=2, records=piece)
    writer = Writer()
    ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[data])]).encode(writer, 9)
    head, file, tail = writer.finish()
    assert file is piece
    assert isinstance(head, bytes) and head.endswith(b"\x00\x00\x00\x02\x15")
    assert tail == b"\x00\x00\x00"


def test_messages_print_and_compare_by_their_fields() -> None:
    first = FetchTopic("t", partitions=[FetchPartition(1)])
    assert first == FetchTopic("t", partitions=[FetchPartition(1)])
    assert first != FetchTopic("t", partitions=[FetchPartition(2)])
    assert first != FetchTopic("t", partitions=[FetchPartition(1)], unknown_tags=[(1, b"")])
    assert first != "t"
    assert repr(ReplicaState(1, 2)) == "ReplicaState(replica_id=1, replica_epoch=2)"
    assert repr(ReplicaState(unknown_tags=[(1, b"")])).endswith("unknown_tags=[(1, b'')])")
