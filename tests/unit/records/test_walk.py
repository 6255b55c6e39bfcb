"""The walk over records: real ones, random ones, malformed ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.records.batch import BatchHeader, CorruptBatch, has_valid_crc, read_header, split_batches
from moldau.records.codecs import DecompressedTooLarge
from moldau.records.walk import (
    HIGHEST_LONG,
    KEY_MISSING,
    LOWEST_LONG,
    OFFSETS_WITH_GAPS,
    REWRITE_NEEDED,
    TIMESTAMP_OUT_OF_RANGE,
    Record,
    add_wrapping,
    check_records,
    find_timestamp,
    max_timestamp_record,
    read_keys_and_values,
    read_records,
)
from tests.unit.records import raw_batches, samples
from tests.unit.records.raw_batches import NOW, framed, record, varint


def header_of(data: bytes) -> BatchHeader:
    return read_header(data, 0, len(data))


def check(data: bytes, lowest: int = LOWEST_LONG, highest: int = HIGHEST_LONG) -> tuple[int, int]:
    header = header_of(data)
    return check_records(data, 61, len(data), header.records_count, header.base_timestamp, lowest, highest)


@pytest.mark.parametrize("codec", samples.COMPRESSED_LOGS)
def test_real_compressed_batches_hold_forty_records(codec: int) -> None:
    """Offsets rise by one and all values are what the producer sent."""
    log = samples.COMPRESSED_LOGS[codec]
    records = read_records(log, header_of(log))
    assert [entry.offset for entry in records] == list(range(40))
    assert all(entry.key is None and entry.value == b"hello" and entry.headers == [] for entry in records)
    header = header_of(log)
    assert max(entry.timestamp for entry in records) == header.max_timestamp
    assert records[0].timestamp == header.base_timestamp


def test_a_real_transaction_is_read() -> None:
    """Markers have their type as key; data records their keys and values."""
    log = samples.TRANSACTION_LOG
    commit, data, abort, still_open = (read_records(log, header) for header in split_batches(log, 0, len(log)))
    assert [entry.key for entry in commit + abort] == [b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"]
    assert commit[0].value == bytes(6)
    assert [(entry.offset, entry.key, entry.value) for entry in data] == [(4, b"k0", b"abort0"), (5, b"k1", b"abort1")]
    assert still_open[0] == Record(7, 1700000002000, b"k", b"open", [])
    assert "open" in repr(still_open[0])
    assert hash(still_open[0]) == hash(Record(7, 1700000002000, b"k", b"open", []))


def test_a_batch_emptied_by_compaction_has_no_records() -> None:
    """Its header counts zero."""
    log = samples.COMPACTED_LOG
    counts = [len(read_records(log, header)) for header in split_batches(log, 0, len(log))]
    assert counts == [0, 0, 2]


def test_log_append_time_is_the_time_of_every_record() -> None:
    """The deltas inside do not count then."""
    data = raw_batches.batch([record(0, 5, b"a", b"b"), record(1, 9, b"a", b"b")], attributes=8, max_timestamp=NOW + 99)
    header = header_of(data)
    assert [entry.timestamp for entry in read_records(data, header)] == [NOW + 99, NOW + 99]
    assert find_timestamp(data, header, NOW + 50) == (NOW + 99, 0)
    assert max_timestamp_record(data, header) == (NOW + 99, 0)


def test_timestamps_are_found() -> None:
    """The first record at or after the target; the first of those with the largest time."""
    records = [record(delta, time, b"k", b"v") for delta, time in enumerate([0, 7, 3, 7])]
    data = raw_batches.batch(records, base_offset=100, max_timestamp=NOW + 7)
    header = header_of(data)
    assert find_timestamp(data, header, NOW - 1) == (NOW, 100)
    assert find_timestamp(data, header, NOW + 1) == (NOW + 7, 101)
    assert find_timestamp(data, header, NOW + 3, from_offset=102) == (NOW + 3, 102)
    assert find_timestamp(data, header, NOW + 8) is None
    assert max_timestamp_record(data, header) == (NOW + 7, 101)
    empty = samples.COMPACTED_LOG[:61]
    assert max_timestamp_record(empty, header_of(empty)) is None


def test_findings_are_told_apart() -> None:
    """One bit for each kind of oddity, and none for a plain batch."""
    plain = [record(0, 0, b"a", b"b"), record(1, 1, b"c", None, [(b"h", None), (b"i", b"j")])]
    assert check(raw_batches.batch(plain)) == (NOW + 1, 0)
    assert check(raw_batches.batch([record(1, 0, b"a", b"b")])) == (NOW, OFFSETS_WITH_GAPS)
    assert check(raw_batches.batch([record(0, 0, None, b"b")])) == (NOW, KEY_MISSING)
    assert check(raw_batches.batch([record(0, 1, b"a", b"b")])) == (NOW + 1, REWRITE_NEEDED)
    assert check(raw_batches.batch([record(0, 0, b"a", b"b", attributes=1)])) == (NOW, REWRITE_NEEDED)
    assert check(raw_batches.batch(plain), highest=NOW) == (NOW + 1, TIMESTAMP_OUT_OF_RANGE)
    assert check(raw_batches.batch(plain), lowest=NOW + 1) == (NOW + 1, TIMESTAMP_OUT_OF_RANGE)
    no_time = raw_batches.batch([record(0, 0, b"a", b"b")], base_timestamp=-1)
    assert check(no_time, lowest=NOW, highest=NOW) == (-1, 0)


def test_overflowing_timestamps_wrap_as_in_java() -> None:
    """Only hostile ones do; compiled and interpreted code agree."""
    assert add_wrapping(2**63 - 1, 1) == -(2**63)
    assert add_wrapping(-(2**63), -1) == 2**63 - 1
    data = raw_batches.batch([record(0, 2**63 - 1, b"a", b"b")])
    assert check(data) == (-1, REWRITE_NEEDED)
    assert read_records(data, header_of(data))[0].timestamp == NOW + 2**63 - 1 - 2**64
    high_base = raw_batches.batch([record(0, 5, b"a", b"b")], base_timestamp=2**63 - 1)
    assert check(high_base) == (-1, REWRITE_NEEDED)


def fields(*values: bytes) -> bytes:
    """One record out of its fields, behind attributes, timestamp delta and offset delta."""
    return framed(b"\x00\x00\x00" + b"".join(values))


NULL = varint(-1)
MALFORMED = {
    "length too short": varint(7) + record(0, 0, b"a", b"b")[1:],
    "length too long": varint(9) + record(0, 0, b"a", b"b")[1:],
    "length too long, and filled": varint(9) + record(0, 0, b"a", b"b")[1:] + b"x",
    "length negative": varint(-3) + record(0, 0, b"a", b"b")[1:],
    "length zero": varint(0),
    "only attributes": framed(b"\x00"),
    "key beyond the record": fields(varint(2**30), varint(1), b"x", varint(0)),
    "value beyond the record": fields(NULL, varint(5), b"x", varint(0)),
    "negative header count": fields(NULL, varint(1), b"x", varint(-1)),
    "too many headers": fields(NULL, varint(1), b"x", varint(1000)),
    "more headers than there are": fields(NULL, NULL, varint(2), varint(0), NULL),
    "header without key": fields(NULL, varint(1), b"x", varint(1), NULL, varint(1), b"x"),
    "header beyond the record": fields(NULL, NULL, varint(1), varint(100), NULL),
    "varint of six bytes": framed(b"\x00\x00\x80\x80\x80\x80\x80\x00" + NULL + NULL + varint(0)),
    "varlong of eleven bytes": framed(b"\x00" + b"\x80" * 10 + b"\x00\x00" + NULL + NULL + varint(0)),
    "bytes left in the record": framed(record(0, 0, b"a", b"b")[1:] + b"zz"),
    "bytes left in the batch": record(0, 0, b"a", b"b") + b"z",
    "nothing": b"",
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("tail", [b"", b"\x00" * 50])
def test_malformed_records_are_corrupt(name: str, tail: bytes) -> None:
    """Also when bytes follow behind the batch that could be mistaken for its own."""
    data = raw_batches.batch(MALFORMED[name], count=1)
    header = header_of(data)
    with pytest.raises(CorruptBatch):
        check_records(data + tail, 61, len(data), 1, NOW, LOWEST_LONG, HIGHEST_LONG)
    with pytest.raises(CorruptBatch):
        read_records(data + tail, header)


@pytest.mark.parametrize("count", [2, 2**31 - 1, -1])
def test_a_wrong_count_is_corrupt(count: int) -> None:
    """Nothing is allocated for records that cannot be there."""
    data = raw_batches.batch([record(0, 0, b"a", b"b")], count=count)
    for function in (read_records, max_timestamp_record):
        if function is max_timestamp_record and count < 0:
            continue
        with pytest.raises(CorruptBatch):
            function(data, header_of(data))
    if count > 0:
        with pytest.raises(CorruptBatch):
            check(data)


def test_sloppy_forms_that_kafka_reads_are_read() -> None:
    """Any negative length is null, a header name may be bad utf-8, varints may have zeros on top."""
    data = raw_batches.batch([fields(varint(-2), varint(-9), varint(1), varint(1), b"\xff", varint(-2))])
    assert check(data) == (NOW, KEY_MISSING)
    assert read_records(data, header_of(data)) == [Record(0, NOW, None, None, [("\ufffd", None)])]
    data = raw_batches.batch([framed(b"\x00\x80\x00\x80\x80\x00" + NULL + NULL + varint(0))])
    assert check(data) == (NOW, KEY_MISSING)


def test_the_limit_holds_for_readers() -> None:
    """Reading a batch never decompresses more than it may."""
    data = raw_batches.packed_batch([record(0, 0, None, bytes(100_000))], 4)
    with pytest.raises(DecompressedTooLarge):
        read_records(data, header_of(data), 1000)


raw_headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=100)), max_size=3)
raw_records = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**40),
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=300),
        raw_headers,
    ),
    max_size=70,
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([0, 1, 2, 3, 4]), raw_records)
def test_random_records_come_back(
    codec: int, entries: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]
) -> None:
    """Written by the independent encoder, read and checked by ours."""
    encoded = [
        record(delta, time, key, value, [(name.encode(), header) for name, header in headers])
        for delta, (time, key, value, headers) in enumerate(entries)
    ]
    data = raw_batches.packed_batch(encoded, codec) if codec else raw_batches.batch(encoded)
    header = header_of(data)
    expected = [
        Record(delta, NOW + time, key, value, headers) for delta, (time, key, value, headers) in enumerate(entries)
    ]
    assert read_records(data, header) == expected
    assert read_keys_and_values(data, header) == [(one.offset, one.key, one.value) for one in expected]
    if codec == 0:
        highest, findings = check(data)
        assert highest == max([-1] + [NOW + time for time, _, _, _ in entries])
        assert not findings & OFFSETS_WITH_GAPS
        assert bool(findings & KEY_MISSING) == any(key is None for _, key, _, _ in entries)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 5))
def test_random_bytes_are_read_alike_or_not_at_all(body: bytes, count: int) -> None:
    """The bulk check and the reader agree on which bytes are records."""
    data = raw_batches.batch(body, count=count)
    try:
        records = read_records(data, header_of(data))
    except CorruptBatch:
        with pytest.raises(CorruptBatch):
            check(data)
    else:
        assert len(records) == count
        assert check(data)[0] == max([-1] + [entry.timestamp for entry in records])


def test_every_flipped_byte_is_refused_or_changes_nothing() -> None:
    """A batch with one byte changed is caught by size, magic or crc, or differs outside of its records only."""
    good = raw_batches.batch([record(0, 0, b"key", b"value", [(b"h", b"v")]), record(1, 3, None, None)])
    expected = read_records(good, header_of(good))
    for index in range(len(good)):
        for flip in (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF):
            data = good[:index] + bytes([good[index] ^ flip]) + good[index + 1 :]
            try:
                header = header_of(data)
            except CorruptBatch:
                continue
            if has_valid_crc(data, header):
                assert index < 8 or 12 <= index < 16
                assert [entry.value for entry in read_records(data, header)] == [entry.value for entry in expected]
