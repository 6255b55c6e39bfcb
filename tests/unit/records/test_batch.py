"""Batch headers: read from real log files, refused when broken."""

from __future__ import annotations

import pytest

from moldau.records.batch import BatchHeader, CorruptBatch, has_valid_crc, read_header, split_batches
from tests.unit.records import raw_batches, samples


def test_every_field_of_a_real_batch_is_read() -> None:
    """The values are those that kafka-dump-log shows."""
    header = split_batches(samples.TRANSACTION_LOG, 0, len(samples.TRANSACTION_LOG))[1]
    assert header.position == 78
    assert (header.base_offset, header.last_offset, header.next_offset) == (4, 5, 6)
    assert (header.size, header.end, header.magic) == (91, 169, 2)
    assert header.partition_leader_epoch == 0
    assert header.crc == 0xAB69D5B4
    assert (header.base_timestamp, header.max_timestamp) == (1700000001000, 1700000001001)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 1, 0)
    assert (header.last_sequence, header.records_count, header.last_offset_delta) == (1, 2, 1)
    assert header.has_producer_id and header.is_transactional
    assert not (header.is_control or header.is_log_append_time or header.has_delete_horizon)
    assert header.codec == 0
    assert "offsets 4..5" in repr(header)


def test_real_logs_split_into_batches_with_good_crcs() -> None:
    """Markers, compacted batches without records and compressed batches all pass."""
    for log in [samples.TRANSACTION_LOG, samples.COMPACTED_LOG, *samples.COMPRESSED_LOGS.values()]:
        headers = split_batches(log, 0, len(log))
        assert sum(header.size for header in headers) == len(log)
        assert all(has_valid_crc(log, header) for header in headers)


def test_flags_and_codecs_are_told_apart() -> None:
    """Each attribute bit has its own property."""
    for codec, log in samples.COMPRESSED_LOGS.items():
        assert read_header(log, 0, len(log)).codec == codec
    data = raw_batches.batch([raw_batches.record(0, 0, b"k", b"v")], attributes=0x48)
    header = read_header(data, 0, len(data))
    assert header.is_log_append_time and header.has_delete_horizon
    marker = split_batches(samples.TRANSACTION_LOG, 0, 78)[0]
    assert marker.is_control and marker.is_transactional
    assert marker.last_sequence == -1


def test_a_partial_tail_is_left_out() -> None:
    """Every cut of the last batch gives the batches before it."""
    log = samples.TRANSACTION_LOG
    starts = [header.position for header in split_batches(log, 0, len(log))]
    for cut in range(starts[-1], len(log)):
        assert [header.position for header in split_batches(log, 0, cut)] == starts[:-1]


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    """A batch that crosses 2^31 - 1 ends with a small sequence."""
    records = [raw_batches.record(delta, 0, None, b"v") for delta in range(3)]
    data = raw_batches.batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 1)
    assert read_header(data, 0, len(data)).last_sequence == 1


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48])
def test_impossible_sizes_are_corrupt(length: int) -> None:
    """Nothing is read from a batch that cannot hold its own header."""
    data = raw_batches.batch([raw_batches.record(0, 0, b"k", b"v")], length=length)
    with pytest.raises(CorruptBatch):
        read_header(data, 0, len(data))
    with pytest.raises(CorruptBatch):
        split_batches(data, 0, len(data))


def test_bounds_and_magic_are_checked() -> None:
    """A header outside of the data, a size beyond its end, and other formats are refused."""
    data = raw_batches.batch([raw_batches.record(0, 0, b"k", b"v")])
    for position, end in ((0, 60), (0, len(data) - 1), (1, len(data)), (-1, len(data)), (0, len(data) + 1)):
        with pytest.raises(CorruptBatch):
            read_header(data, position, end)
    for magic in (0, 1, 3, -1):
        with pytest.raises(CorruptBatch):
            read_header(raw_batches.batch([b"x" * 20], magic=magic), 0, 81)


def test_a_flipped_bit_behind_the_crc_is_noticed() -> None:
    """Every bit from the attributes on is covered."""
    data = bytearray(samples.GZIP_LOG)
    for index in range(17, len(data)):
        data[index] ^= 0x10
        flipped = bytes(data)
        header = read_header(flipped, 0, len(flipped))
        assert isinstance(header, BatchHeader)
        assert not has_valid_crc(flipped, header)
        data[index] ^= 0x10
