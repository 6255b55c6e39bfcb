"""Bytes that a real Apache Kafka 4.3.1 wrote or sent: they decode to the right values and encode to themselves."""

from __future__ import annotations

import pytest

from moldau.protocol.messages import describe_topic_partitions_response as topic_partitions
from moldau.protocol.messages import fetch_response as fetch
from moldau.protocol.messages import list_offsets_response as list_offsets
from moldau.protocol.messages import metadata_response
from moldau.protocol.primitives import Message, Reader
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.stored import control_records as control
from moldau.protocol.stored import group_records as group
from moldau.protocol.stored import metadata_records as metadata
from moldau.protocol.stored import share_records as share
from moldau.protocol.stored import transaction_records as transaction
from moldau.protocol.stored.framing import UnknownRecordType
from moldau.protocol.uuids import ZERO_UUID
from tests.unit.protocol.messages import encode


@pytest.mark.parametrize(
    ("data", "record"),
    [
        ("010c00116d657461646174612e76657273696f6e001e00", metadata.FeatureLevelRecord("metadata.version", 30)),
        ("01170001001212426f6f747374726170207265636f726473", metadata.BeginTransactionRecord("Bootstrap records")),
        (
            "0104000401146d696e2e696e73796e632e7265706c69636173023100",
            metadata.ConfigRecord(4, "", "min.insync.replicas", "1"),
        ),
        ("01180000", metadata.EndTransactionRecord()),
    ],
)
def test_metadata_records(data: str, record: Message) -> None:
    raw = bytes.fromhex(data)
    assert metadata.decode_metadata_record(raw) == record
    assert metadata.encode_metadata_record(record, raw[2]) == raw


# The real record has three voters; this is cut to the first.
VOTER_1 = control.Voter(
    1,
    bytes.fromhex("011f6ad78103f57130ec608ba9566279"),
    [control.Endpoint("CONTROLLER", "127.0.0.1", 19192)],
    control.KRaftVersionFeature(0, 1),
)


@pytest.mark.parametrize(
    ("data", "record"),
    [
        ("0000000001a1dd45b4bb00", control.SnapshotHeaderRecord(0, 1794713695419)),
        ("000000", control.SnapshotFooterRecord(0)),
        ("0000000100", control.KRaftVersionRecord(0, 1)),
        (
            "00000000000304000000010000000002000000000300030000000300000000010000",
            control.LeaderChangeMessage(
                0,
                3,
                [control.LeaderChangeVoter(1), control.LeaderChangeVoter(2), control.LeaderChangeVoter(3)],
                [control.LeaderChangeVoter(3), control.LeaderChangeVoter(1)],
            ),
        ),
        (
            "00000200000001011f6ad78103f57130ec608ba9566279020b434f4e54524f4c4c45520a3132372e302e302e314af8"
            "00000000010000" + "00",
            control.VotersRecord(0, [VOTER_1]),
        ),
    ],
)
def test_control_records(data: str, record: Message) -> None:
    raw = bytes.fromhex(data)
    assert type(record).decode(Reader(raw), 0) == record
    assert encode(record, 0) == raw


PERF_TOPIC_ID = bytes.fromhex("710bb91f817f4edbb7a25d0ee223e98c")


@pytest.mark.parametrize(
    ("key_data", "key", "value_data", "value"),
    [
        (
            "00010013706572662d636f6e73756d65722d343931393900047065726600000002",
            group.OffsetCommitKey("perf-consumer-49199", "perf", 2),
            "000400000000000100f50000000001000001a1dd51d1af010010710bb91f817f4edbb7a25d0ee223e98c",
            group.OffsetCommitValue(65781, 0, "", 1794714489263, topic_id=PERF_TOPIC_ID),
        ),
        (
            "0001000974786e2d67726f757000066f726465727300000000",
            group.OffsetCommitKey("txn-group", "orders", 0),
            "0004000000000000000200000000056d657461000001a1dd4aa35900",
            group.OffsetCommitValue(2, 0, "meta", 1794714018649, topic_id=ZERO_UUID),
        ),
        (
            "00020013706572662d636f6e73756d65722d3439313939",
            group.GroupMetadataKey("perf-consumer-49199"),
            "0003000000000000ffffffff000001a1dd51c4c400000000",
            group.GroupMetadataValue("", 0, None, None, 1794714485956, []),
        ),
    ],
)
def test_group_records(key_data: str, key: Message, value_data: str, value: Message) -> None:
    raw_key, raw_value = bytes.fromhex(key_data), bytes.fromhex(value_data)
    assert group.decode_group_key(raw_key) == key
    assert group.encode_group_key(key) == raw_key
    assert group.decode_group_value(key.API_KEY, raw_value) == value
    assert group.encode_group_value(value, raw_value[1]) == raw_value


def test_a_transaction_record_with_tagged_fields() -> None:
    raw = bytes.fromhex(
        "000100000000000003e900000000ea6001030474786e020000000000135f5f636f6e73756d65725f6f666673657473020000000e00"
        "000001a1dd4aa37c000001a1dd4aa35102000800000000000003e902020002"
    )
    value = transaction.TransactionLogValue(
        producer_id=1001,
        previous_producer_id=1001,
        producer_epoch=0,
        transaction_timeout_ms=60000,
        transaction_status=1,
        transaction_partitions=[
            transaction.PartitionsSchema("txn", [0]),
            transaction.PartitionsSchema("__consumer_offsets", [14]),
        ],
        transaction_last_update_timestamp_ms=1794714018684,
        transaction_start_timestamp_ms=1794714018641,
        client_transaction_version=2,
    )
    assert transaction.decode_transaction_value(0, raw) == value
    assert transaction.encode_transaction_value(value, 1) == raw
    key = transaction.TransactionLogKey("txn-a")
    assert transaction.encode_transaction_key(key).hex() == "0000000574786e2d61"


def test_share_records() -> None:
    topic_id = bytes.fromhex("b3444b59c6dc48818b951f2c7f9aef6c")
    key = share.ShareUpdateKey("g-share", topic_id, 3)
    raw_key = bytes.fromhex("00010007672d7368617265b3444b59c6dc48818b951f2c7f9aef6c00000003")
    assert (share.decode_share_key(raw_key), share.encode_share_key(key)) == (key, raw_key)
    raw = bytes.fromhex("00000000000100000000000000000000000002000000000000000000000000000000010200010001000400000002")
    value = share.ShareUpdateValue(1, 0, 0, 2, [share.ShareUpdateStateBatch(0, 1, 2, 1)])
    assert (share.decode_share_value(1, raw), share.encode_share_value(value, 0)) == (value, raw)


def test_a_record_of_an_unknown_type_is_told_apart_from_a_damaged_one() -> None:
    with pytest.raises(UnknownRecordType) as caught:
        group.decode_group_key(b"\x00\x63")
    assert caught.value.record_type == 99
    with pytest.raises(UnknownRecordType):
        metadata.decode_metadata_record(b"\x01\x63\x00")


TOPIC_ID = bytes.fromhex("876a143d47454d9aa6cd620e74754a3c")


@pytest.mark.parametrize(
    ("version", "data", "response"),
    [
        (
            18,
            (
                "0000000000000000000002876a143d47454d9aa6cd620e74754a3c0300000000000000000000000000000000000000000000"
                "000000000000000000ffffffff0100000000010001ffffffffffffffffffffffffffffffffffffffffffffffff00ffffffff"
                "01000000"
            ),
            fetch.FetchResponse(
                responses=[
                    fetch.FetchableTopicResponse(
                        topic_id=TOPIC_ID,
                        partitions=[
                            fetch.PartitionData(0, 0, 0, 0, 0, aborted_transactions=None, records=MemoryRecords(b"")),
                            fetch.PartitionData(1, 1, -1, aborted_transactions=None, records=MemoryRecords(b"")),
                        ],
                    )
                ]
            ),
        ),
        (
            11,
            (
                "00000000020670726f626503000000090003ffffffffffffffffffffffffffffffffffffffff00000000000000ffffffffffffffff"
                "000000000000000000000000000000"
            ),
            list_offsets.ListOffsetsResponse(
                topics=[
                    list_offsets.ListOffsetsTopicResponse(
                        "probe",
                        [
                            list_offsets.ListOffsetsPartitionResponse(9, 3, timestamp=-1, offset=-1, leader_epoch=-1),
                            list_offsets.ListOffsetsPartitionResponse(0, 0, timestamp=-1, offset=0, leader_epoch=0),
                        ],
                    )
                ]
            ),
        ),
        (
            13,
            (
                "0000000002000000010a3132372e302e302e31000072d0000017436f4f414954517a5276754b31536631765646626b770000000102"
                "00000670726f6265876a143d47454d9aa6cd620e74754a3c00030000000000000000000100000000020000000102000000010100"
                "000000000001000000010000000002000000010200000001010000000df800000000"
            ),
            metadata_response.MetadataResponse(
                brokers=[metadata_response.MetadataResponseBroker(1, "127.0.0.1", 29392, None)],
                cluster_id="CoOAITQzRvuK1Sf1vVFbkw",
                controller_id=1,
                topics=[
                    metadata_response.MetadataResponseTopic(
                        name="probe",
                        topic_id=TOPIC_ID,
                        partitions=[
                            metadata_response.MetadataResponsePartition(0, index, 1, 0, [1], [1], [])
                            for index in (0, 1)
                        ],
                        topic_authorized_operations=0xDF8,
                    )
                ],
            ),
        ),
        (
            0,
            (
                "00000000030003056e6f706500000000000000000000000000000000000100000df80000000670726f6265876a143d47454d"
                "9aa6cd620e74754a3c00020000000000000000000100000000020000000102000000010101010000000df800010670726f62"
                "65000000010000"
            ),
            topic_partitions.DescribeTopicPartitionsResponse(
                topics=[
                    topic_partitions.DescribeTopicPartitionsResponseTopic(3, "nope", topic_authorized_operations=0xDF8),
                    topic_partitions.DescribeTopicPartitionsResponseTopic(
                        0,
                        "probe",
                        TOPIC_ID,
                        partitions=[
                            topic_partitions.DescribeTopicPartitionsResponsePartition(0, 0, 1, 0, [1], [1], [], [], [])
                        ],
                        topic_authorized_operations=0xDF8,
                    ),
                ],
                next_cursor=topic_partitions.Cursor("probe", 1),
            ),
        ),
    ],
    ids=["Fetch", "ListOffsets", "Metadata", "DescribeTopicPartitions"],
)
def test_responses(version: int, data: str, response: Message) -> None:
    """The bodies of answers, without their headers."""
    raw = bytes.fromhex(data)
    assert type(response).decode(Reader(raw), version) == response
    assert encode(response, version) == raw
