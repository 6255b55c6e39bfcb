"""Validation on produce: the answers of a real Apache Kafka 4.3.1 to the same bytes, written down case by case."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.protocol.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
    KafkaError,
)
from moldau.records.batch import has_valid_crc, read_header, split_batches
from moldau.records.builder import BatchBuilder, control_batch, end_transaction_batch
from moldau.records.walk import read_records
from moldau.storage.validation import (
    CLIENT,
    COORDINATOR,
    RAFT_LEADER,
    InvalidRecords,
    ValidatedBatches,
    ValidationRules,
    check_replicated,
    validate,
)
from tests.unit.records import samples
from tests.unit.records.raw_batches import (
    NOW,
    PACKERS,
    batch,
    framed,
    gzip,
    lz4,
    packed_batch,
    raw_snappy,
    record,
    snappy,
    varint,
    zstd,
)

RECORDS = [record(delta, 0, b"k%d" % delta, b"v%d" % delta) for delta in range(3)]
GOOD = batch(RECORDS)
BODY = b"".join(RECORDS)


def rules(**fields: int | bool | str) -> ValidationRules:
    made = ValidationRules(topic_partition="t-0")
    for name, value in fields.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made


def run(
    data: bytes,
    the_rules: ValidationRules | None = None,
    origin: int = CLIENT,
    next_offset: int = 40,
    leader_epoch: int = 7,
    now_ms: int = NOW,
) -> ValidatedBatches:
    return validate(
        data,
        0,
        len(data),
        next_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        rules=the_rules or rules(),
        origin=origin,
    )


def refusal(data: bytes, the_rules: ValidationRules | None = None, origin: int = CLIENT) -> InvalidRecords:
    with pytest.raises(InvalidRecords) as caught:
        run(data, the_rules, origin)
    return caught.value


def test_a_good_batch_gets_offset_and_epoch_and_nothing_else() -> None:
    """The crc stays, since it does not cover them."""
    result = run(GOOD)
    written = result.to_bytes()
    assert written[:8] == (40).to_bytes(8, "big")
    assert written[12:16] == (7).to_bytes(4, "big")
    assert written[8:12] + written[16:] == GOOD[8:12] + GOOD[16:]
    assert sum(len(part) for part in result.parts) == result.size == len(GOOD)
    assert (result.first_offset, result.last_offset, result.records_count) == (40, 42, 3)
    assert (result.max_timestamp, result.offset_of_max_timestamp, result.append_time_ms) == (NOW, 42, -1)
    (header,) = result.batches
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch, header.position) == (40, 42, 7, 0)
    assert vars_of(header) == vars_of(read_header(written, 0, len(written)))


def test_the_body_of_a_large_batch_is_not_copied() -> None:
    """What is written is a new start of the header and a view of the bytes that came in."""
    data = batch([record(0, 0, b"k", bytes(10_000))])
    result = run(data)
    assert [len(part) for part in result.parts] == [16, len(data) - 16]
    assert isinstance(result.parts[1], memoryview)
    assert result.parts[1].obj is data
    assert result.to_bytes()[16:] == data[16:]
    assert refusal(data[:-1] + b"\x01").code == CORRUPT_MESSAGE


HEADER_FIELDS = (
    *("position", "base_offset", "size", "partition_leader_epoch", "magic", "crc", "attributes", "last_offset_delta"),
    *("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "records_count"),
)


def vars_of(header: object) -> dict[str, object]:
    return {name: getattr(header, name) for name in HEADER_FIELDS}


def test_a_batch_in_the_middle_of_a_frame_is_taken_from_there() -> None:
    """start and end are those of the records field in its request."""
    frame = b"before" + GOOD + b"after that"
    result = validate(frame, 6, 6 + len(GOOD), 40, leader_epoch=7, now_ms=NOW, rules=rules(), origin=CLIENT)
    assert result.to_bytes() == run(GOOD).to_bytes()


# What follows the batch, as far as it is no whole batch itself, is dropped.
@pytest.mark.parametrize(
    "tail", [b"12345", bytes(8) + b"\x00\x00\x01\x00" + b"\x00" * 4 + b"\x02" + b"\x00" * 3, GOOD[:-3]]
)
def test_a_partial_batch_behind_the_first_is_dropped(tail: bytes) -> None:
    """As Kafka does it, silently."""
    assert run(GOOD + tail).to_bytes() == run(GOOD).to_bytes()


ANSWERS: dict[str, tuple[bytes, int]] = {
    "empty": (b"", INVALID_RECORD),
    "10 bytes": (GOOD[:10], INVALID_RECORD),
    "16 bytes": (GOOD[:16], INVALID_RECORD),
    "17 bytes": (GOOD[:17], INVALID_RECORD),
    "truncated": (GOOD[:-1], INVALID_RECORD),
    "zeros behind it": (GOOD + bytes(20), CORRUPT_MESSAGE),
    "two batches": (GOOD + GOOD, INVALID_RECORD),
    "second batch of magic 3": (GOOD + batch(RECORDS, magic=3), CORRUPT_MESSAGE),
    "wrong crc": (batch(RECORDS, crc=1), CORRUPT_MESSAGE),
    "magic 0": (batch(RECORDS, magic=0), INVALID_RECORD),
    "magic 1": (batch(RECORDS, magic=1), INVALID_RECORD),
    "magic 0 and small": (batch(RECORDS, magic=0, length=14), INVALID_RECORD),
    "length 14": (batch(RECORDS, length=14), CORRUPT_MESSAGE),
    "length 48": (batch(RECORDS, length=48), CORRUPT_MESSAGE),
    "length 49": (batch(RECORDS, length=49), CORRUPT_MESSAGE),
    "length 2^30": (batch(RECORDS, length=1 << 30), INVALID_RECORD),
    "no records": (batch([]), INVALID_RECORD),
    "no records, one offset": (batch([], last_offset_delta=0), INVALID_RECORD),
    "last offset delta too large": (batch(RECORDS, last_offset_delta=5), INVALID_RECORD),
    "last offset delta too small": (batch(RECORDS, last_offset_delta=1), INVALID_RECORD),
    "last offset delta negative": (batch(RECORDS, last_offset_delta=-5), INVALID_RECORD),
    "count negative": (batch(RECORDS, count=-1, last_offset_delta=2), INVALID_RECORD),
    "count too large": (batch(RECORDS, count=4), INVALID_RECORD),
    "count too small": (batch(RECORDS, count=2), INVALID_RECORD),
    "count 2^31 - 1": (batch(RECORDS, count=2**31 - 1), INVALID_RECORD),
    "count wraps": (batch(RECORDS, count=-(2**31), last_offset_delta=2**31 - 1), INVALID_RECORD),
    "base offset 5": (batch(RECORDS, base_offset=5), INVALID_RECORD),
    "base offset 256": (batch(RECORDS, base_offset=256), INVALID_RECORD),
    "base offset wins over crc": (batch(RECORDS, base_offset=5, crc=1), INVALID_RECORD),
    "control batch": (batch(RECORDS, attributes=0x20), INVALID_RECORD),
    "producer without sequence": (batch(RECORDS, producer_id=1000, producer_epoch=0), INVALID_RECORD),
    "codec 5": (batch(RECORDS, attributes=5), UNKNOWN_SERVER_ERROR),
    "codec 6": (batch(RECORDS, attributes=6), UNKNOWN_SERVER_ERROR),
    "codec 7": (batch(RECORDS, attributes=7), UNKNOWN_SERVER_ERROR),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_broken_batches_get_kafkas_error_code(name: str) -> None:
    """No record errors, and no text for the client: Kafka keeps both to itself here."""
    data, code = ANSWERS[name]
    error = refusal(data)
    assert error.code == code
    assert error.record_errors == []
    assert error.client_message is None
    assert error.message
    assert isinstance(error, KafkaError)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (batch(RECORDS, magic=3), "Invalid magic found in record: 3"),
        (batch(RECORDS, magic=-1), "Invalid magic found in record: -1"),
        (batch(RECORDS, length=0), "Record size 0 is less than the minimum record overhead (14)"),
        (batch(RECORDS, length=13), "Record size 13 is less than the minimum record overhead (14)"),
        (batch(RECORDS, length=-5), "Record size -5 is less than the minimum record overhead (14)"),
    ],
)
def test_bytes_that_are_no_batch_get_kafkas_words(data: bytes, message: str) -> None:
    """Here, and for record errors, the response carries a message."""
    error = refusal(data)
    assert (error.code, error.client_message) == (CORRUPT_MESSAGE, message)


@pytest.mark.parametrize(
    "fields",
    [
        {"producer_id": 1000, "producer_epoch": 0, "base_sequence": 5},
        {"producer_id": 1001, "producer_epoch": -1, "base_sequence": 0},
        {"producer_epoch": 3, "base_sequence": 7},
        {"producer_id": -2, "producer_epoch": 0, "base_sequence": 0},
        {"attributes": 0x80},
        {"attributes": 0x4000},
        {"attributes": 0x40},
        {"attributes": -0x8000},
        {"base_timestamp": -1},
    ],
)
def test_odd_fields_that_kafka_keeps_are_kept(fields: dict[str, int]) -> None:
    """Unknown attribute bits and producer fields pass through; sequences are the producer state's business."""
    data = batch(RECORDS, **fields)
    assert run(data).to_bytes()[16:] == data[16:]


def test_size_is_checked_before_the_crc_and_after_the_base_offset() -> None:
    """The limit is on the whole batch, header included."""
    large = [record(0, 0, b"k", b"x" * 1000)]
    limited = rules(max_message_bytes=500)
    assert refusal(batch(large), limited).code == MESSAGE_TOO_LARGE
    assert refusal(batch(large, crc=1), limited).code == MESSAGE_TOO_LARGE
    assert refusal(batch(large, base_offset=5), limited).code == INVALID_RECORD
    exact = batch([record(0, 0, b"k", b"x" * (500 - 61 - 10))])
    assert len(exact) == 500
    assert run(exact, limited).size == 500


def test_a_wrong_largest_timestamp_is_corrected() -> None:
    """With a new crc; negative times count as none."""
    for wrong in (NOW + 50, -1, 0):
        assert run(batch(RECORDS, max_timestamp=wrong)).to_bytes() == run(GOOD).to_bytes()
    negative = run(batch(RECORDS, base_timestamp=-100)).to_bytes()
    assert read_header(negative, 0, len(negative)).max_timestamp == -1
    assert negative[17:] == bytes.fromhex(
        "e131fc90000000000002ffffffffffffff9cffffffffffffffffffffffffffffffffffffffffffff00000003"
        "14000000046b300476300014000002046b310476310014000004046b3204763200"
    )


def test_log_append_time_is_put_into_the_header() -> None:
    """The flag, the time and a new crc; what Kafka wrote for the same batch."""
    result = run(batch(RECORDS, base_timestamp=1000), rules(log_append_time=True), now_ms=1794719347360, leader_epoch=0)
    assert (result.append_time_ms, result.max_timestamp) == (1794719347360, 1794719347360)
    assert result.to_bytes()[8:] == bytes.fromhex(
        "00000052000000000294d0325400080000000200000000000003e8000001a1dd9bf2a0ffffffffffffffffffffffffffff00000003"
        "14000000046b300476300014000002046b310476310014000004046b3204763200"
    )
    assert result.batches[0].is_log_append_time
    assert has_valid_crc(result.to_bytes(), result.batches[0])


def test_rewritten_attributes_lose_unknown_bits() -> None:
    """Only when they are rewritten; Kafka does so too."""
    result = run(batch(RECORDS, attributes=0x4080), rules(log_append_time=True))
    assert result.batches[0].attributes == 8


def test_a_producers_log_append_flag_is_cleared_or_refused() -> None:
    """On a CreateTime topic the flag is dropped; on a LogAppendTime topic each record is an error."""
    flagged = batch(RECORDS, attributes=8)
    assert run(flagged).to_bytes() == run(GOOD).to_bytes()
    error = refusal(flagged, rules(log_append_time=True))
    assert error.code == INVALID_TIMESTAMP
    assert error.client_message == "One or more records have been rejected due to invalid timestamp"
    text = (
        f"Invalid timestamp type in message DefaultRecord(offset=2, timestamp={NOW}, key=2 bytes, value=2 bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )
    assert error.record_errors[2] == (2, text)
    packed = refusal(packed_batch(RECORDS, 1, flags=8), rules(log_append_time=True))
    assert "PartialDefaultRecord(offset=1," in str(packed.record_errors[1][1])
    recompressed = refusal(flagged, rules(log_append_time=True, compression_type=1))
    assert "message DefaultRecord(" in str(recompressed.record_errors[0][1])
    assert refusal(batch(RECORDS, attributes=8, base_timestamp=-1)).code == INVALID_TIMESTAMP


def test_timestamps_outside_the_limits_are_named() -> None:
    """Each record that is too old or too new, with Kafka's words."""
    records = [record(0, 0, b"a", b"b"), record(1, -5000, b"a", b"b"), record(2, 5000, b"a", b"b")]
    limits = rules(before_max_ms=1000, after_max_ms=1000)
    for data in (batch(records), packed_batch(records, 1)):
        error = refusal(data, limits)
        assert (error.code, error.message) == (
            INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
        )
        allowed = f"is out of range. The timestamp should be within [{NOW - 1000}, {NOW + 1000}]"
        assert error.record_errors == [
            (1, f"Timestamp {NOW - 5000} of message with offset 1 {allowed}"),
            (2, f"Timestamp {NOW + 5000} of message with offset 2 {allowed}"),
        ]
    for offset in (-1000, 1000):
        assert run(batch(RECORDS, base_timestamp=NOW + offset), limits).records_count == 3
    assert run(batch(RECORDS, base_timestamp=-1), limits).max_timestamp == -1
    assert run(batch(RECORDS, base_timestamp=5), rules(before_max_ms=1, log_append_time=True)).records_count == 3


def test_default_limits_refuse_the_far_future_only() -> None:
    """The lower bound is now minus the largest long, as Kafka prints it."""
    error = refusal(batch(RECORDS, base_timestamp=NOW + 10**8))
    assert len(error.record_errors) == 3
    assert str(error.record_errors[0][1]).endswith(f"[{NOW - 2**63 + 1}, {NOW + 3600000}]")
    assert run(batch(RECORDS, base_timestamp=0)).max_timestamp == 0
    no_limit = rules(after_max_ms=2**63 - 1)
    assert run(batch(RECORDS, base_timestamp=2**62), no_limit).max_timestamp == 2**62


@pytest.mark.parametrize("delta", [2**63 - 1, -(2**63)])
def test_overflowing_timestamps_are_refused(delta: int) -> None:
    """The wrapped sum is named, as Java has it."""
    error = refusal(batch([record(0, delta, b"a", b"b")]))
    wrapped = (NOW + delta + 2**63) % 2**64 - 2**63
    assert error.code == INVALID_TIMESTAMP
    assert str(error.record_errors[0][1]).startswith(f"Timestamp {wrapped} of message")


def test_records_without_a_key_are_refused_on_compacted_topics() -> None:
    """All are named in the errors, three in the message; an empty key is a key."""
    records = [record(0, 0, b"a", b"b")] + [record(delta, 0, None, b"b") for delta in range(1, 5)]
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    for data in (batch(records), packed_batch(records, 4), batch(records, attributes=8)):
        error = refusal(data, rules(compacted=True))
        assert error.code == INVALID_RECORD
        assert error.record_errors == [(index, text) for index in range(1, 5)]
        assert error.client_message == (
            "One or more records have been rejected due to 4 record errors in total, and only showing the first three "
            f"errors at most: [RecordError(batchIndex=1, message='{text}'), RecordError(batchIndex=2, message='{text}')"
            f", RecordError(batchIndex=3, message='{text}')]"
        )
    assert run(batch([record(0, 0, b"", b"b")]), rules(compacted=True)).records_count == 1
    assert run(batch(records)).records_count == 5


def test_a_wrong_time_decides_the_code_when_both_are_wrong() -> None:
    """A record without a key is not asked for its time."""
    records = [record(0, 0, b"a", b"b"), record(1, -5000, None, b"b"), record(2, 5000, b"k", b"b")]
    error = refusal(batch(records), rules(compacted=True, before_max_ms=1000, after_max_ms=1000))
    assert error.code == INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1, 2]
    assert str(error.record_errors[0][1]).startswith("Compacted topic")


@pytest.mark.parametrize(
    "data",
    [
        packed_batch(RECORDS, 1),
        packed_batch(RECORDS, 2),
        batch(raw_snappy(BODY), attributes=2, count=3),
        packed_batch(RECORDS, 3),
        packed_batch(RECORDS, 4),
        batch(gzip(BODY[:11]) + gzip(BODY[11:]), attributes=1, count=3),
        batch(gzip(BODY) + b"junkjunk", attributes=1, count=3),
        batch(snappy(BODY) + b"j", attributes=2, count=3),
        batch(snappy(BODY[:11]) + snappy(BODY[11:]), attributes=2, count=3),
        batch(lz4(BODY) + b"junkjunk", attributes=3, count=3),
        batch(zstd(BODY[:11]) + zstd(BODY[11:]), attributes=4, count=3),
    ],
)
def test_compressed_batches_are_kept_as_they_are(data: bytes) -> None:
    """Whatever framing of the codec the client used, as far as Kafka reads it."""
    result = run(data)
    assert result.to_bytes()[16:] == data[16:]
    assert result.max_timestamp == NOW


@pytest.mark.parametrize("codec", PACKERS)
def test_broken_compression_is_an_unknown_server_error(codec: int) -> None:
    """Kafka's decompressors fail with an exception that has no code of its own."""
    packed = PACKERS[codec](BODY)
    for body in (b"garbage data here 12345678901234567890", packed[:-6], packed[: len(packed) // 2]):
        assert refusal(batch(body, attributes=codec, count=3)).code == UNKNOWN_SERVER_ERROR
    empty = refusal(batch(b"", attributes=codec, count=3))
    assert empty.code == (INVALID_RECORD if codec == 4 else UNKNOWN_SERVER_ERROR)


def test_broken_compression_of_single_codecs() -> None:
    """Linked lz4 blocks, which no Java consumer could read; a second lz4 frame; bytes behind zstd and snappy."""
    assert refusal(batch(lz4(BODY, linked=True), attributes=3, count=3)).code == UNKNOWN_SERVER_ERROR
    assert refusal(batch(lz4(BODY[:11]) + lz4(BODY[11:]), attributes=3, count=3)).code == INVALID_RECORD
    for codec, junk in ((4, b"junkjunk"), (4, b"j"), (2, b"junkjunk")):
        data = batch(PACKERS[codec](BODY) + junk, attributes=codec, count=3)
        assert refusal(data).code == UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("codec", PACKERS)
def test_compressed_records_are_checked_like_others(codec: int) -> None:
    """Count, offsets, largest timestamp, and both kinds of log append time."""
    packed = PACKERS[codec](BODY)
    assert refusal(batch(packed, attributes=codec, count=4)).code == INVALID_RECORD
    assert refusal(batch(packed, attributes=codec, count=2)).code == INVALID_RECORD
    wrong_order = [record(1, 0, b"a", b"b"), record(0, 0, b"c", b"d")]
    assert refusal(packed_batch(wrong_order, codec)).code == INVALID_RECORD
    assert (
        run(packed_batch(RECORDS, codec, max_timestamp=NOW + 77)).to_bytes()
        == run(packed_batch(RECORDS, codec)).to_bytes()
    )
    stamped = run(packed_batch(RECORDS, codec), rules(log_append_time=True), now_ms=NOW + 5)
    header = stamped.batches[0]
    assert (header.attributes, header.max_timestamp, header.codec) == (8 | codec, NOW + 5, codec)
    assert has_valid_crc(stamped.to_bytes(), header)
    assert run(packed_batch(RECORDS, codec, flags=8)).to_bytes() == run(packed_batch(RECORDS, codec)).to_bytes()


@pytest.mark.parametrize("codec", PACKERS)
def test_a_bomb_is_too_large(codec: int) -> None:
    """The code makes a producer with many records split its batch."""
    data = packed_batch([record(0, 0, b"k", bytes(500_000))], codec)
    assert run(data).records_count == 1
    assert refusal(data, rules(decompressed_bytes_max=100_000)).code == MESSAGE_TOO_LARGE


MALFORMED = [
    varint(7) + record(0, 0, b"a", b"b")[1:],
    varint(9) + record(0, 0, b"a", b"b")[1:],
    varint(-3) + record(0, 0, b"a", b"b")[1:],
    varint(0),
    framed(b"\x00"),
    framed(b"\x00\x00\x00" + varint(2**30) + varint(1) + b"x" + varint(0)),
    framed(b"\x00\x00\x00" + varint(-1) + varint(1) + b"x" + varint(-1)),
    framed(b"\x00\x00\x00" + varint(-1) + varint(1) + b"x" + varint(1000)),
    framed(b"\x00\x00\x80\x80\x80\x80\x80\x00" + varint(-1) + varint(1) + b"x" + varint(0)),
    framed(record(0, 0, b"a", b"b")[1:] + b"zz"),
]


@pytest.mark.parametrize("index", range(len(MALFORMED)))
@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("target", [-1, 4])
def test_malformed_records_are_invalid(index: int, codec: int, target: int) -> None:
    """Compressed or not, recompressed or not."""
    body = MALFORMED[index]
    data = batch(gzip(body) if codec else body, attributes=codec, count=1)
    assert refusal(data, rules(compression_type=target)).code == INVALID_RECORD


# Three records with headers, nulls and times out of order, and what Kafka made of them for each compression.type.
MIXED = [
    record(0, 0, b"a", b"x" * 50, [(b"h", b"v"), (b"n", None)]),
    record(1, 5, None, None),
    record(2, -3, b"b", b""),
]
RECOMPRESSED = {
    2: "0000006b00000000020c7f74cf000200000002000001a1dd9d388d000001a1dd9d3892ffffffffffffffffffffffffffff00000003"
    "82534e41505059000000000100000001000000265120800100000002616478c20100580402680276026e010c000a020101000e00050402620000",
    3: "000000660000000002d42af59a000300000002000001a1dd9d388d000001a1dd9d3892ffffffffffffffffffffffffffff00000003"
    "04224d18604082260000009f80010000000261647801001ef0080402680276026e010c000a020101000e0005040262000000000000",
    4: "00000064000000000278f465f9000400000002000001a1dd9d388d000001a1dd9d3892ffffffffffffffffffffffffffff00000003"
    "28b52ffd00583c010004028001000000026164780402680276026e010c000a020101000e00050402620000010046e008010000",
    1: "0000006700000000028c937ad0000100000002000001a1dd9d388d000001a1dd9d3892ffffffffffffffffffffffffffff00000003"
    "1f8b08000000000000ff6b60646060604a4ca92019b03065309531e531f2307031313232f031b0b23025313000002671174e51000000",
    0: "000000820000000002c58c47ec000000000002000001a1dd9d388d000001a1dd9d3892ffffffffffffffffffffffffffff00000003"
    "800100000002616478787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
    "780402680276026e010c000a020101000e00050402620000",
}
MIXED_TIME = 0x1A1DD9D388D


@pytest.mark.parametrize("target", RECOMPRESSED)
@pytest.mark.parametrize("source", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("largest", [5, 500])
def test_recompression_writes_what_kafka_writes(source: int, target: int, largest: int) -> None:
    """From every codec to every other; also when the producer's largest timestamp was wrong."""
    fields = {"base_timestamp": MIXED_TIME, "max_timestamp": MIXED_TIME + largest}
    data = packed_batch(MIXED, source, **fields) if source else batch(MIXED, **fields)
    level = {"level": 6} if target == 1 else {}
    result = run(data, rules(compression_type=target, **level), next_offset=12, leader_epoch=0, now_ms=MIXED_TIME)
    written = result.to_bytes()
    if source != target:
        assert written == (12).to_bytes(8, "big") + bytes.fromhex(RECOMPRESSED[target])
    assert (result.first_offset, result.last_offset, result.max_timestamp) == (12, 14, MIXED_TIME + 5)
    assert result.size == len(written)
    assert vars_of(result.batches[0]) == vars_of(read_header(written, 0, len(written)))
    assert has_valid_crc(written, result.batches[0])


def test_recompression_keeps_the_producer_and_sets_log_append_time() -> None:
    """Producer id, epoch, sequence and the transactional flag stay; unknown bits and the delete horizon go."""
    data = batch(MIXED, producer_id=7, producer_epoch=1, base_sequence=9, attributes=0x4050)
    result = run(data, rules(compression_type=4, log_append_time=True), now_ms=NOW + 9)
    header = result.batches[0]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 9)
    assert header.attributes == 4 | 8 | 0x10
    assert (header.base_timestamp, header.max_timestamp, result.append_time_ms) == (NOW, NOW + 9, NOW + 9)
    assert has_valid_crc(result.to_bytes(), header)


def test_recompression_writes_odd_records_anew() -> None:
    """A first time delta, attributes, wrong offsets and a producer's log append time end as Kafka would write them."""
    cases = [
        [record(0, 10, b"a", b"b"), record(1, 20, b"a", b"b")],
        [record(0, 0, b"a", b"b", attributes=1), record(1, 1, b"a", b"b")],
        [record(1, 0, b"a", b"b"), record(0, 1, b"a", b"b")],
    ]
    for records in cases:
        result = run(batch(records), rules(compression_type=4))
        written = result.to_bytes()
        read = read_records(written, read_header(written, 0, len(written)))
        assert [(entry.offset, entry.key, entry.value) for entry in read] == [(40, b"a", b"b"), (41, b"a", b"b")]
        assert read[0].timestamp == result.batches[0].base_timestamp
    expected = bytes.fromhex(
        "0000004f00000000028f0e968f000400000001000001a1dd9d3897000001a1dd9d38a1ffffffffffffffffffffffffffff00000002"
        "28b52ffd0058900000100000000261026200100014020261026200010000"
    )
    late = run(batch(cases[0], base_timestamp=MIXED_TIME), rules(compression_type=4), leader_epoch=0)
    assert late.to_bytes()[8:] == expected
    flagged = run(batch([record(0, 3, b"a", b"b")], attributes=8, max_timestamp=NOW - 4), rules(compression_type=4))
    assert (flagged.batches[0].base_timestamp, flagged.batches[0].max_timestamp) == (NOW - 4, NOW - 4)


def test_the_size_is_checked_again_after_recompression() -> None:
    """gzip of few random bytes is larger than the bytes."""
    value = bytes(range(128, 156))
    limited = rules(compression_type=1, max_message_bytes=100)
    data = batch([record(0, 0, b"k", value)])
    assert len(data) <= 100
    assert refusal(data, limited).code == MESSAGE_TOO_LARGE
    assert run(batch([record(0, 0, b"k", b"x" * 20)]), limited).size <= 100


def test_coordinators_may_write_markers() -> None:
    """Control batches are not recompressed, and their base offset is replaced."""
    marker = end_transaction_batch(99, 0, NOW, 8, 1, commit=True, coordinator_epoch=3)
    result = run(marker, rules(compression_type=4), origin=COORDINATOR)
    assert result.to_bytes()[16:] == marker[16:]
    assert result.first_offset == result.last_offset == 40
    assert refusal(marker).code == INVALID_RECORD


def test_the_quorum_leader_numbers_its_own_batches() -> None:
    """Several batches, kept as they are, if their epoch is the leader's and their offsets rise."""
    first = control_batch(10, 7, NOW, [(2, b"leader")])
    builder = BatchBuilder(11)
    builder.append(NOW + 3, None, b"metadata")
    builder.append(NOW + 1, None, b"metadata")
    data = first + builder.build(partition_leader_epoch=7)
    result = run(data, origin=RAFT_LEADER)
    assert result.to_bytes() == data
    assert [header.position for header in result.batches] == [0, len(first)]
    assert (result.first_offset, result.last_offset, result.records_count) == (10, 12, 3)
    assert (result.max_timestamp, result.offset_of_max_timestamp) == (NOW + 3, 12)
    other_epoch = control_batch(13, 6, NOW, [(2, b"leader")])
    assert refusal(data + other_epoch, origin=RAFT_LEADER).code == INVALID_RECORD
    assert refusal(data + first, origin=RAFT_LEADER).code == UNKNOWN_SERVER_ERROR
    assert refusal(data[:-1], origin=RAFT_LEADER).code == INVALID_RECORD
    assert refusal(b"", origin=RAFT_LEADER).code == INVALID_RECORD
    assert refusal(data, rules(max_message_bytes=70), origin=RAFT_LEADER).code == MESSAGE_TOO_LARGE


def test_what_a_follower_fetched_is_kept_as_it_is() -> None:
    """Real batches with markers and gaps; a torn tail is left out, a flipped bit and falling offsets are errors."""
    log = samples.TRANSACTION_LOG
    result = check_replicated(b"frame" + log, 5, 5 + len(log), "t-0")
    assert result.to_bytes() == log
    assert (result.first_offset, result.last_offset) == (3, 7)
    assert [header.position for header in result.batches] == [header.position for header in split_batches(log, 0, 320)]
    assert (result.max_timestamp, result.offset_of_max_timestamp) == (1794713527388, 6)
    assert check_replicated(log, 0, len(log) - 1, "t-0").last_offset == 6
    assert check_replicated(samples.COMPACTED_LOG, 0, len(samples.COMPACTED_LOG), "t-0").records_count == 2
    empty = check_replicated(log, 0, 0, "t-0")
    assert (empty.size, empty.first_offset, empty.last_offset, empty.batches) == (0, -1, -1, [])
    for bad in (log[:-1] + b"\x01", log + log, batch(RECORDS, magic=1), batch(RECORDS, length=20)):
        with pytest.raises(InvalidRecords):
            check_replicated(bad, 0, len(bad), "t-0")


def test_batches_of_a_later_epoch_wait() -> None:
    """A follower that has not heard of an epoch does not append its batches."""
    data = control_batch(0, 4, NOW, [(2, b"a")]) + control_batch(1, 5, NOW, [(2, b"b")])
    assert check_replicated(data, 0, len(data), "t-0", 4).last_offset == 0
    assert check_replicated(data, 0, len(data), "t-0", 5).last_offset == 1


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_every_flipped_byte_is_refused_or_changes_nothing(codec: int) -> None:
    """Only the leader epoch, which is overwritten anyway, may differ."""
    good = packed_batch(RECORDS, codec) if codec else GOOD
    expected = run(good).to_bytes()
    for index in range(len(good)):
        for flip in (0x01, 0x02, 0x80, 0xFF):
            data = good[:index] + bytes([good[index] ^ flip]) + good[index + 1 :]
            try:
                written = run(data).to_bytes()
            except InvalidRecords:
                continue
            assert 12 <= index < 16
            assert written == expected


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80), st.sampled_from([0, 1, 2, 3, 4]), st.integers(-1, 4), st.integers(1, 4))
def test_random_records_are_refused_with_a_code(body: bytes, codec: int, target: int, count: int) -> None:
    """A good header around garbage raises nothing but InvalidRecords."""
    packed = PACKERS[codec](body) if codec else body
    for payload in (packed, body):
        data = batch(payload, attributes=codec, count=count)
        try:
            result = run(data, rules(compression_type=target))
        except InvalidRecords as error:
            assert error.code in (INVALID_RECORD, INVALID_TIMESTAMP, UNKNOWN_SERVER_ERROR)
        else:
            assert has_valid_crc(result.to_bytes(), result.batches[0])


def test_indexes_outside_of_the_data_are_a_programming_error() -> None:
    """The caller has decoded the request; its bounds are trusted but checked."""
    for start, end in ((-1, 10), (0, len(GOOD) + 1)):
        with pytest.raises(IndexError):
            validate(GOOD, start, end, 0, leader_epoch=0, now_ms=NOW, rules=rules(), origin=CLIENT)
        with pytest.raises(IndexError):
            check_replicated(GOOD, start, end, "t-0")
