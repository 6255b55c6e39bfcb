"""The loops over records: which keys a batch has, and what is left of it, also of one with very many records."""

from __future__ import annotations

import pytest

from moldau.records.batch import CorruptBatch, read_header, split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.walk import read_records
from moldau.storage.compaction.batches import NO_HORIZON, STAGED_MAX, filter_records, note_keys, rebuild
from moldau.storage.compaction.offset_map import OffsetMap

MANY = 2 * STAGED_MAX + 100


def batch(keys: list[bytes | None], base_offset: int = 0, codec: int = 0) -> bytes:
    builder = BatchBuilder(base_offset, codec=codec)
    for number, key in enumerate(keys):
        builder.append(1000 + number, key, None if number % 10 == 3 else b"%d" % number)
    return builder.build()


@pytest.mark.parametrize("codec", [0, 4])
def test_the_last_of_each_key_stays(codec: int) -> None:
    keys: list[bytes | None] = [b"key-%d" % (number % 3000) for number in range(MANY)]
    keys[5] = None
    data = batch(keys, 70, codec)
    (header,) = split_batches(data, 0, len(data))
    offsets = OffsetMap(1 << 20)
    assert note_keys(data, header, offsets, 0)
    assert offsets.size == 3000
    offsets.latest_offset = header.last_offset
    remains = filter_records(data, header, offsets, keep_tombstones=True)
    assert (remains.kept, remains.dropped, remains.keyless) == (3000, MANY - 3000, 1)
    assert remains.has_tombstone
    left = rebuild(header, remains, NO_HORIZON)
    records = read_records(left, read_header(left, 0, len(left)))
    first = MANY - 3000
    assert [(record.offset, record.key) for record in records] == [
        (70 + number, keys[number]) for number in range(first, MANY)
    ]
    assert [record.timestamp for record in records] == [1000 + number for number in range(first, MANY)]
    without = filter_records(data, header, offsets, keep_tombstones=False)
    assert without.kept == sum(1 for number in range(first, MANY) if number % 10 != 3)


def test_what_lies_behind_the_map_stays_whatever_its_key() -> None:
    data = batch([b"a", b"b", b"a", None, b"b", b"a"], 10)
    (header,) = split_batches(data, 0, len(data))
    offsets = OffsetMap(1 << 12)
    assert note_keys(data, header, offsets, 0)
    offsets.latest_offset = 12
    remains = filter_records(data, header, offsets, keep_tombstones=False)
    left = rebuild(header, remains, NO_HORIZON)
    records = read_records(left, read_header(left, 0, len(left)))
    assert [record.offset for record in records] == [13, 14, 15]
    assert remains.keyless == 0


def test_a_map_that_is_full_says_so_in_the_middle_of_a_batch() -> None:
    data = batch([b"%d" % number for number in range(MANY)])
    (header,) = split_batches(data, 0, len(data))
    offsets = OffsetMap(24 * 5000)
    assert not note_keys(data, header, offsets, 0)
    assert offsets.size == offsets.capacity == 4500


def test_records_that_make_no_sense_are_noticed() -> None:
    data = bytearray(batch([b"key"] * 50))
    data[61] = 0xFE  # the length of the first record
    (header,) = split_batches(bytes(data), 0, len(data))
    offsets = OffsetMap(1 << 12)
    with pytest.raises(CorruptBatch):
        note_keys(bytes(data), header, offsets, 0)
    with pytest.raises(CorruptBatch):
        filter_records(bytes(data), header, offsets, keep_tombstones=True)
