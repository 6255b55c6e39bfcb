"""The offset map of compaction: it remembers the last offset of every key, within its memory."""

from __future__ import annotations

import random

from moldau.storage.compaction.offset_map import ENTRY_BYTES, NOT_FOUND, OffsetMap


def test_the_last_offset_of_each_key_is_found_as_the_map_grows() -> None:
    rng = random.Random(5)
    offsets = OffsetMap(1 << 24, seed=9)
    expected: dict[bytes, int] = {}
    for offset in range(40_000):
        key = b"%d" % rng.randrange(25_000)
        assert offsets.put(key, offset)
        expected[key] = offset
    assert offsets.size == len(expected)
    for key, offset in expected.items():
        assert offsets.get(key) == offset
    assert offsets.get(b"never seen") == NOT_FOUND


def test_a_full_map_takes_no_new_key_and_goes_on_with_the_known_ones() -> None:
    offsets = OffsetMap(100 * ENTRY_BYTES, load_factor=0.9)
    assert offsets.capacity == 90
    for number in range(90):
        assert offsets.put(b"%d" % number, number)
    assert offsets.is_full
    assert not offsets.put(b"one more", 90)
    assert offsets.put(b"17", 91)
    assert offsets.get(b"17") == 91
    assert offsets.get(b"one more") == NOT_FOUND
    assert offsets.utilization == 0.9


def test_empty_keys_and_long_keys_are_keys() -> None:
    offsets = OffsetMap(1 << 12)
    offsets.put(b"", 0)
    offsets.put(b"x" * 100_000, 1)
    assert (offsets.get(b""), offsets.get(b"x" * 100_000)) == (0, 1)


def test_a_load_factor_of_one_leaves_a_place_where_searches_end() -> None:
    offsets = OffsetMap(10 * ENTRY_BYTES, load_factor=1.0)
    for number in range(9):
        assert offsets.put(b"%d" % number, number)
    assert not offsets.put(b"one more", 9)
    assert offsets.get(b"unknown") == NOT_FOUND


def test_many_keys_at_a_time() -> None:
    """As one after the other: the last of equal keys counts, the table grows, a full map says so."""
    rng = random.Random(6)
    offsets = OffsetMap(1 << 20, seed=9)
    expected: dict[bytes, int] = {}
    for first in range(0, 20_000, 5_000):
        offsets.clear_staged()
        for offset in range(first, first + 5_000):
            key = b"%d" % rng.randrange(15_000)
            offsets.stage(key, offset)
            expected[key] = offset
        assert offsets.put_staged()
    assert offsets.size == len(expected)
    offsets.clear_staged()
    for key in [*expected, b"unknown"]:
        offsets.stage(key, 0)
    offsets.load_staged()
    assert [offsets.get_staged(number) for number in range(len(expected))] == list(expected.values())
    assert offsets.get_staged(len(expected)) == NOT_FOUND
    small = OffsetMap(10 * ENTRY_BYTES)
    for number in range(11):
        small.stage(b"%d" % number, number)
    assert not small.put_staged()
    assert small.size == small.capacity
