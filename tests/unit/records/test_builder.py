"""The builder: byte for byte what Kafka and independent clients write."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.records.batch import has_valid_crc, read_header, split_batches
from moldau.records.builder import BatchBuilder, control_batch, end_transaction_batch, record_size
from moldau.records.walk import Record, read_records
from tests.unit.records import samples


def test_a_real_transaction_is_rebuilt_byte_for_byte() -> None:
    """Markers and data batches, from their records and header fields alone."""
    log = samples.TRANSACTION_LOG
    commit, data, abort, still_open = split_batches(log, 0, len(log))
    rebuilt = end_transaction_batch(3, 0, int(commit.base_timestamp), 8, 1, commit=True, coordinator_epoch=0)
    for header in (data, abort, still_open):
        if header is abort:
            rebuilt += end_transaction_batch(6, 0, int(abort.base_timestamp), 8, 2, commit=False, coordinator_epoch=0)
            continue
        builder = BatchBuilder(int(header.base_offset))
        for record in read_records(log, header):
            builder.append(record.timestamp, record.key, record.value, record.headers)
        rebuilt += builder.build(
            producer_id=8,
            producer_epoch=int(header.producer_epoch),
            base_sequence=0,
            partition_leader_epoch=0,
            transactional=True,
        )
    assert rebuilt == log


@pytest.mark.parametrize("codec", [2, 3, 4])
def test_real_compressed_batches_are_rebuilt_byte_for_byte(codec: int) -> None:
    """As the Java producer wrote them; gzip differs in its deflate stream, see the codecs."""
    log = samples.COMPRESSED_LOGS[codec]
    header = read_header(log, 0, len(log))
    builder = BatchBuilder(codec=codec)
    for record in read_records(log, header):
        builder.append(record.timestamp, record.key, record.value, record.headers)
    assert (
        builder.build(producer_id=int(header.producer_id), producer_epoch=0, base_sequence=0, partition_leader_epoch=0)
        == log
    )


def test_gzip_with_a_level_is_what_kafka_writes() -> None:
    """Level 6 is what the Java producer uses by default."""
    log = samples.GZIP_LOG
    builder = BatchBuilder(codec=1, level=6)
    for record in read_records(log, read_header(log, 0, len(log))):
        builder.append(record.timestamp, record.key, record.value, record.headers)
    assert builder.build(producer_id=9, producer_epoch=0, base_sequence=0, partition_leader_epoch=0) == log


def test_compaction_keeps_gaps_and_the_last_offset() -> None:
    """Offsets may be left out in the middle and at the end."""
    builder = BatchBuilder(10)
    builder.append_at(12, 1000, b"a", b"1")
    builder.append_at(15, 900, b"b", None)
    with pytest.raises(ValueError, match="not above"):
        builder.append_at(15, 900, b"b", None)
    data = builder.build(partition_leader_epoch=3, last_offset=19)
    header = read_header(data, 0, len(data))
    assert (header.base_offset, header.last_offset, header.records_count) == (10, 19, 2)
    assert (header.base_timestamp, header.max_timestamp, header.partition_leader_epoch) == (1000, 1000, 3)
    assert read_records(data, header) == [Record(12, 1000, b"a", b"1", []), Record(15, 900, b"b", None, [])]


def test_an_emptied_batch_is_what_compaction_leaves() -> None:
    """No records, base timestamp -1, but offsets and producer fields; the largest timestamp is put in by its owner."""
    data = BatchBuilder(0).build(
        producer_id=1, producer_epoch=0, base_sequence=0, partition_leader_epoch=0, last_offset=1
    )
    header = read_header(data, 0, len(data))
    real = read_header(samples.COMPACTED_LOG, 0, 61)
    assert (header.last_offset, header.base_timestamp, header.records_count) == (
        real.last_offset,
        real.base_timestamp,
        real.records_count,
    )
    assert data[43:61] == samples.COMPACTED_LOG[43:61]


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    """Record times count from it and stay what they were."""
    builder = BatchBuilder(delete_horizon_ms=5000)
    builder.append(100, b"k", None)
    builder.append(9000, b"l", None)
    data = builder.build()
    header = read_header(data, 0, len(data))
    assert header.has_delete_horizon
    assert (header.base_timestamp, header.max_timestamp) == (5000, 9000)
    assert [record.timestamp for record in read_records(data, header)] == [100, 9000]


def test_log_append_time_is_marked() -> None:
    """The time is in the header, the flag is set, and every record has it."""
    builder = BatchBuilder()
    builder.append(100, b"k", b"v")
    data = builder.build(log_append_time_ms=777)
    header = read_header(data, 0, len(data))
    assert header.is_log_append_time and header.max_timestamp == 777
    assert read_records(data, header)[0].timestamp == 777


def test_control_batches_have_their_key_and_flag() -> None:
    """The quorum's first batch has three control records in one batch, without a producer."""
    data = control_batch(0, 4, 123, [(2, b"leader"), (5, b"version"), (6, b"voters")])
    header = read_header(data, 0, len(data))
    assert header.is_control and not header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert [(record.key, record.value) for record in read_records(data, header)] == [
        (b"\x00\x00\x00\x02", b"leader"),
        (b"\x00\x00\x00\x05", b"version"),
        (b"\x00\x00\x00\x06", b"voters"),
    ]


RawRecord = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
raw_records = st.lists(
    st.tuples(
        st.integers(0, 2**42),
        st.none() | st.binary(max_size=100),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([0, 1, 2, 3, 4]), raw_records)
def test_what_is_built_comes_back(codec: int, entries: list[RawRecord]) -> None:
    """Every codec; sizes as estimated where nothing is compressed."""
    builder = BatchBuilder(7, codec=codec)
    size = 61
    for delta, (timestamp, key, value, headers) in enumerate(entries):
        assert builder.append(timestamp, key, value, headers) == 7 + delta
        size += record_size(timestamp - entries[0][0], delta, key, value, headers)
    assert builder.uncompressed_size == size
    data = builder.build(producer_id=5, producer_epoch=6, base_sequence=7, partition_leader_epoch=8)
    header = read_header(data, 0, len(data))
    assert has_valid_crc(data, header)
    assert header.size == len(data)
    assert codec != 0 or len(data) == size
    assert header.max_timestamp == max(entry[0] for entry in entries)
    assert read_records(data, header) == [
        Record(7 + delta, timestamp, key, value, headers)
        for delta, (timestamp, key, value, headers) in enumerate(entries)
    ]


def independent_builders() -> list[Any]:
    modules = []
    for name in ("kafka.record.default_records", "aiokafka.record.default_records"):
        modules.append(pytest.importorskip(name, reason=f"{name} is not installed"))
    return modules


def some_entries(count: int) -> list[RawRecord]:
    chooser = random.Random(5)
    return [
        (
            1_700_000_000_000 + chooser.randrange(-1000, 100_000),
            None if number % 3 == 0 else chooser.randbytes(chooser.randrange(80)),
            None if number % 7 == 0 else b"value " * chooser.randrange(60),
            [("name", chooser.randbytes(4)), ("none", None)] if number % 5 == 0 else [],
        )
        for number in range(count)
    ]


def test_other_clients_write_the_same_bytes() -> None:
    """kafka-python's and aiokafka's builders, uncompressed."""
    for module in independent_builders():
        theirs = module.DefaultRecordBatchBuilder(2, 0, 1, 5, 6, 7, 1 << 20)
        ours = BatchBuilder()
        for offset, (timestamp, key, value, headers) in enumerate(some_entries(200)):
            theirs.append(offset, timestamp, key, value, headers)
            ours.append(timestamp, key, value, headers)
        expected = bytearray(theirs.build())
        # They leave the leader epoch at 0 or -1; it is the broker's field.
        expected[12:16] = b"\xff\xff\xff\xff"
        assert ours.build(producer_id=5, producer_epoch=6, base_sequence=7, transactional=True) == bytes(expected)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_other_clients_read_what_we_compress(codec: int) -> None:
    """And the other way round, where they have the codec."""
    entries = some_entries(300)
    ours = BatchBuilder(codec=codec)
    for timestamp, key, value, headers in entries:
        ours.append(timestamp, key, value, headers)
    data = ours.build()
    for module in independent_builders():
        try:
            theirs = module.DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
            for offset, (timestamp, key, value, headers) in enumerate(entries):
                theirs.append(offset, timestamp, key, value, headers)
            built = bytes(theirs.build())
            read = [
                (entry.timestamp, entry.key, entry.value, entry.headers) for entry in module.DefaultRecordBatch(data)
            ]
        except Exception as error:
            if "UnsupportedCodec" in type(error).__name__ or "not found" in str(error):
                continue
            raise
        assert [(time, key, value, list(headers)) for time, key, value, headers in read] == entries
        mine = read_records(built, read_header(built, 0, len(built)))
        assert [(entry.timestamp, entry.key, entry.value, entry.headers) for entry in mine] == entries
