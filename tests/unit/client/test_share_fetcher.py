"""Bytes and locked offsets become deliveries: records, gaps, and batches that cannot be read."""

from __future__ import annotations

from moldau.client.share.acknowledgements import SharePartition
from moldau.client.share.fetcher import Delivery, ShareFetcher
from moldau.protocol.messages.share_fetch_response import AcquiredRecords, PartitionData
from moldau.protocol.records_data import MemoryRecords
from tests.unit.client.share_world import batch, values_of

P0 = SharePartition(b"i" * 16, "t", 0)


def fetched(data: bytes, *ranges: tuple[int, int, int], check_crcs: bool = True) -> list[Delivery]:
    fetcher = ShareFetcher(check_crcs)
    rows = [AcquiredRecords(first_offset=a, last_offset=b, delivery_count=c) for a, b, c in ranges]
    fetcher.add(P0, 1, PartitionData(records=MemoryRecords(data, 0, len(data)), acquired_records=rows), 500)
    found = []
    while not fetcher.empty:
        found.append(fetcher.take())
    return found


def offsets(delivery: Delivery) -> list[int]:
    return [int(record.offset) for record in delivery.records]


def test_only_what_is_locked_for_us_is_delivered_with_its_count() -> None:
    first, second = fetched(values_of(0, 9) + values_of(10, 19), (3, 5, 1), (8, 12, 4))
    assert offsets(first) == [3, 4, 5] and offsets(second) == [8, 9, 10, 11, 12]
    assert {record.delivery_count for record in first.records} == {1}
    assert {record.delivery_count for record in second.records} == {4}
    assert first.records[0].value == b"3" and first.locked_ms == 500 and first.node_id == 1
    assert not first.gaps and not second.gaps


def test_two_ranges_of_one_batch_decode_it_once_and_miss_nothing() -> None:
    found = fetched(values_of(0, 99), *[(number, number, 1) for number in range(0, 100, 2)])
    assert [offsets(item) for item in found] == [[number] for number in range(0, 100, 2)]


def test_control_records_are_gaps() -> None:
    (found,) = fetched(values_of(0, 1) + batch(2, [b"marker"], control=True) + values_of(3, 3), (0, 3, 1))
    assert offsets(found) == [0, 1, 3] and found.gaps == [2]


def test_a_range_with_nothing_but_a_marker_has_no_records() -> None:
    (found,) = fetched(batch(2, [b"marker"], control=True), (2, 2, 1))
    assert not found.records and found.gaps == [2]


def test_holes_of_compaction_are_gaps_wherever_they_are() -> None:
    """Before a batch, inside one, between two, behind the last one."""
    data = values_of(2, 3) + values_of(6, 7)
    (found,) = fetched(data, (0, 9, 1))
    assert offsets(found) == [2, 3, 6, 7] and sorted(found.gaps) == [0, 1, 4, 5, 8, 9]
    (found,) = fetched(data, (4, 5, 1))
    assert not found.records and sorted(found.gaps) == [4, 5]


def test_locked_offsets_without_any_bytes_are_gaps() -> None:
    (found,) = fetched(b"", (0, 3, 2))
    assert not found.records and found.gaps == [0, 1, 2, 3] and found.error is None


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def test_a_batch_with_a_wrong_checksum_is_a_delivery_of_its_own() -> None:
    data = values_of(0, 1) + damaged(values_of(2, 4)) + values_of(5, 6)
    before, broken, behind = fetched(data, (0, 6, 3))
    assert offsets(before) == [0, 1] and before.error is None
    assert broken.unreadable == [2, 3, 4] and not broken.records and broken.error is not None
    assert "offset 2" in broken.error.message and "checksum" in broken.error.message
    assert offsets(behind) == [5, 6] and {record.delivery_count for record in behind.records} == {3}


def test_of_a_damaged_batch_only_what_is_ours_is_named() -> None:
    (broken,) = fetched(damaged(values_of(0, 9)), (3, 5, 1))
    assert broken.unreadable == [3, 4, 5]
    found = fetched(damaged(values_of(0, 9)), (3, 5, 1), (8, 9, 1))
    assert [item.unreadable for item in found] == [[3, 4, 5], [8, 9]]


def test_checksums_are_not_looked_at_where_nobody_wants_that() -> None:
    (found,) = fetched(damaged(values_of(0, 0)), (0, 0, 1), check_crcs=False)
    assert offsets(found) == [0] or found.error is not None


def test_bytes_that_are_no_batch_are_unreadable() -> None:
    (broken,) = fetched(b"\xff" * 100, (0, 3, 1))
    assert broken.unreadable == [0, 1, 2, 3] and broken.error is not None


def test_what_is_not_ours_any_more_is_forgotten() -> None:
    fetcher = ShareFetcher(True)
    row = PartitionData(
        records=MemoryRecords(values_of(0, 0), 0, len(values_of(0, 0))),
        acquired_records=[AcquiredRecords(first_offset=0, last_offset=0, delivery_count=1)],
    )
    fetcher.add(P0, 1, row, 0)
    fetcher.keep([P0])
    fetcher.forget_node(2)
    assert fetcher.peek() == (P0, 1)
    fetcher.forget_node(1)
    assert fetcher.empty
    fetcher.add(P0, 1, row, 0)
    fetcher.keep([])
    assert fetcher.empty
