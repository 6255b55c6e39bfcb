"""Lines as records: the bytes are those of the producer's own buffer, and lines are dealt out by their keys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.records.batch import HEADER_SIZE, read_header
from moldau.records.line_encoder import ANYWHERE, NO_SEPARATOR, TOO_LARGE, EncodedBatch, LineEncoder, encode_headers
from moldau.records.murmur2 import partition_for_key
from moldau.records.record_buffer import RecordBuffer
from moldau.records.walk import Record, read_records

Headers = list[tuple[str, bytes | None]]


def encoder(
    separator: bytes | None = None,
    key: bytes | None = None,
    null: bytes | None = None,
    headers: Headers | None = None,
    partitions: int = 1,
    partition: int = ANYWHERE,
    batch_bytes: int = 100_000,
    record_bytes_max: int = 1_000_000,
    delimiter: bytes = b"\n",
) -> LineEncoder:
    tail = encode_headers(headers or [])
    return LineEncoder(
        delimiter=delimiter,
        separator=separator,
        key=key,
        null=null,
        headers=tail,
        partitions=partitions,
        partition=partition,
        batch_bytes=batch_bytes,
        record_bytes_max=record_bytes_max,
    )


def decode(batch: EncodedBatch, timestamp: int = 5) -> list[Record]:
    buffer = RecordBuffer()
    buffer.set_encoded(batch.data, batch.count, timestamp, timestamp)
    data = buffer.batch(-1, -1, -1)
    return read_records(data, read_header(data, 0, len(data)))


def everything(lines: LineEncoder, data: bytes) -> list[EncodedBatch]:
    rest = lines.add(data, True)
    assert rest == len(data)
    lines.flush()
    return lines.take()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=300).map(lambda raw: raw.replace(b"\n", b"")), min_size=1, max_size=80))
def test_the_bytes_are_those_of_the_record_buffer(values: list[bytes]) -> None:
    headers: Headers = [("a", b"1"), ("b", None)]
    (batch,) = everything(encoder(headers=headers, key=b"k"), b"\n".join(values) + b"\n")
    buffer = RecordBuffer()
    for value in values:
        buffer.append(5, b"k", value, headers)
    buffer.close()
    assert buffer.parts(-1, -1, -1)[1] == batch.data and batch.count == len(values)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.lists(st.integers(1, 50), max_size=30))
def test_it_does_not_matter_how_the_input_is_cut(data: bytes, sizes: list[int]) -> None:
    whole = everything(encoder(), data)
    lines = encoder()
    rest = b""
    position = 0
    for size in sizes:
        rest += data[position : position + size]
        position += size
        rest = rest[lines.add(rest, False) :]
    rest += data[position:]
    lines.add(rest, True)
    lines.flush()
    assert [batch.data for batch in lines.take()] == [batch.data for batch in whole]


def test_the_last_line_needs_no_delimiter_and_an_empty_rest_is_no_line() -> None:
    assert [record.value for record in decode(everything(encoder(), b"a\n\nb")[0])] == [b"a", b"", b"b"]
    assert [record.value for record in decode(everything(encoder(), b"a\n")[0])] == [b"a"]
    assert everything(encoder(), b"") == []


def test_other_delimiters_and_null_markers() -> None:
    (batch,) = everything(encoder(delimiter=b"--", null=b"NULL"), b"a--NULL--c")
    assert [record.value for record in decode(batch)] == [b"a", None, b"c"]


def test_keys_choose_partitions_as_kafka_does() -> None:
    keys = [b"key-%d" % number for number in range(200)]
    data = b"".join(key + b"::" + b"value of " + key + b"\n" for key in keys) + b"NULL::x\n"
    batches = everything(encoder(separator=b"::", partitions=5, null=b"NULL"), data)
    seen: dict[int, list[Record]] = {batch.partition: decode(batch) for batch in batches}
    (lonely,) = seen.pop(ANYWHERE)
    assert (lonely.key, lonely.value) == (None, b"x")
    assert sorted(record.key or b"" for records in seen.values() for record in records) == sorted(keys)
    for partition, records in seen.items():
        for record in records:
            assert record.key is not None and partition == partition_for_key(record.key, 5)
            assert record.value == b"value of " + record.key


def test_a_given_partition_is_stronger_than_the_key() -> None:
    batches = everything(encoder(separator=b":", partitions=5, partition=3), b"a:1\nb:2\nc:3\n")
    assert [(batch.partition, batch.count) for batch in batches] == [(3, 3)]


def test_batches_stay_below_their_size() -> None:
    lines = encoder(batch_bytes=1_000)
    lines.add(b"".join(b"x" * 90 + b"\n" for _ in range(100)), False)
    lines.flush()
    batches = lines.take()
    assert sum(batch.count for batch in batches) == 100 and len(batches) > 9
    assert all(len(batch.data) + HEADER_SIZE <= 1_000 for batch in batches)


def test_a_line_without_separator_and_one_that_is_too_large_stop_the_work_in_front_of_them() -> None:
    lines = encoder(separator=b":")
    lines.add(b"a:1\nbroken\nc:3\n", True)
    assert (lines.lines, lines.problem) == (1, NO_SEPARATOR)
    lines = encoder(record_bytes_max=500)
    lines.add(b"small\n" + b"x" * 600 + b"\n", True)
    lines.flush()
    assert (lines.lines, lines.problem) == (1, TOO_LARGE) and lines.problem_size > 500
    assert [batch.count for batch in lines.take()] == [1]


def test_empty_delimiters_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        encoder(delimiter=b"")
    with pytest.raises(ValueError, match="empty"):
        encoder(separator=b"")
