"""What was said of records becomes ranges, and back; what is held and what is on its way."""

from __future__ import annotations

import itertools
import random

from moldau.client.record import ConsumerRecord
from moldau.client.share.acknowledgements import GAP, AcknowledgeType, Held, Range, SharePartition, to_ranges

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
P0 = SharePartition(b"i" * 16, "t", 0)


def record(offset: int) -> ConsumerRecord:
    return ConsumerRecord(
        "t", 0, offset, timestamp=0, timestamp_type=0, key=None, value=b"v", headers=None, leader_epoch=0
    )


def test_equal_neighbours_are_one_range_with_one_type() -> None:
    assert to_ranges(dict.fromkeys(range(5, 9), 1)) == [Range(5, 8, [1])]
    assert to_ranges(dict.fromkeys(range(1_000_000), 1)) == [Range(0, 999_999, [1])]


def test_different_neighbours_share_a_range_with_a_type_for_each() -> None:
    assert to_ranges({3: 1, 4: 2, 5: 2, 6: 0}) == [Range(3, 6, [1, 2, 2, 0])]


def test_a_hole_ends_a_range() -> None:
    assert to_ranges({3: 1, 4: 1, 6: 1, 9: 2}) == [Range(3, 4, [1]), Range(6, 6, [1]), Range(9, 9, [2])]


def test_a_run_of_more_than_ten_is_a_range_of_its_own() -> None:
    ten = dict.fromkeys(range(1, 11), 1)
    assert to_ranges({0: 2, **ten, 11: 3}) == [Range(0, 11, [2, *[1] * 10, 3])]
    eleven = dict.fromkeys(range(1, 12), 1)
    assert to_ranges({0: 2, **eleven, 12: 3}) == [Range(0, 0, [2]), Range(1, 11, [1]), Range(12, 12, [3])]


def test_ranges_say_what_was_said_of_each_offset() -> None:
    chance = random.Random(5)
    for _ in range(200):
        types: dict[int, int] = {}
        offset = 0
        while offset < 60:
            kind = chance.choice([0, 1, 2, 3, 4])
            for _ in range(chance.choice([1, 2, 10, 11, 25])):
                types[offset] = kind
                offset += 1
            offset += chance.choice([0, 0, 1])
        ranges = to_ranges(types)
        assert all(a.last_offset < b.first_offset for a, b in itertools.pairwise(ranges))
        found = {}
        for row in ranges:
            size = row.last_offset - row.first_offset + 1
            assert len(row.types) in (1, size)
            found.update(
                zip(range(row.first_offset, row.last_offset + 1), row.types * (size // len(row.types)), strict=True)
            )
        assert found == types


def test_what_was_said_last_of_a_record_counts_and_is_taken_once() -> None:
    held = Held(P0, 1, 0)
    held.add([record(3), record(5)], [4])
    held.types[3] = RELEASE
    held.types[3] = ACCEPT
    assert held.undecided == [5]
    taken = held.take()
    assert taken is not None and taken.types == {3: ACCEPT, 4: GAP} and taken.offsets == {3}
    assert held.undecided == [5] and held.take() is None


def test_a_renewed_record_goes_along_until_it_is_confirmed() -> None:
    held = Held(P0, 1, 0)
    held.add([record(3)], [])
    held.types[3] = RENEW
    taken = held.take()
    assert taken is not None and taken.renews and list(taken.renewing) == [3] and not held.records
