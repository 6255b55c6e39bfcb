"""Planning: ranges cover what is to be read, once and completely, in at least and at most so many pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.client.results import TopicPartition
from moldau.spark.planning import OffsetRange, count_offsets, limit_offsets, plan_ranges, split_ranges, whole_ranges

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_a_partition_without_anything_new_has_no_range() -> None:
    ranges = whole_ranges({A0: 5, A1: 7, B0: 0}, {A0: 5, A1: 9, B0: 1}, {"a": "id-of-a"})
    assert ranges == [OffsetRange("a", 1, 7, 9, "id-of-a"), OffsetRange("b", 0, 0, 1, "")]


def test_large_ranges_are_cut_into_more_pieces_than_small_ones() -> None:
    """As with Spark's connector: 3:1 in size gives 3:1 in pieces."""
    pieces = plan_ranges({A0: 0, B0: 100}, {A0: 300, B0: 200}, min_partitions=4)
    assert [(item.topic, item.start, item.end) for item in pieces] == [
        ("a", 0, 100), ("a", 100, 200), ("a", 200, 300), ("b", 100, 200),
    ]  # fmt: skip


def test_no_piece_has_more_offsets_than_max_records_per_partition() -> None:
    pieces = plan_ranges({A0: 0}, {A0: 25}, max_records=10)
    assert [item.size for item in pieces] == [8, 8, 9]


def test_more_pieces_than_offsets_are_not_made() -> None:
    assert [item.size for item in plan_ranges({A0: 7}, {A0: 10}, min_partitions=50)] == [1, 1, 1]


offsets = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 5)),
    st.tuples(st.integers(0, 1000), st.integers(0, 1000)),
    max_size=8,
)


@given(offsets, st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_pieces_cover_each_offset_once_and_in_order(
    rows: dict[TopicPartition, tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    starts = {item: start for item, (start, _) in rows.items()}
    ends = {item: start + size for item, (start, size) in rows.items()}
    pieces = split_ranges(whole_ranges(starts, ends), min_partitions, max_records)
    for item in rows:
        covered = [n for p in pieces if p.topic_partition == item for n in range(p.start, p.end)]
        assert covered == list(range(starts[item], ends[item]))
    assert all(piece.size > 0 for piece in pieces)
    if max_records is not None:
        assert all(piece.size <= max_records for piece in pieces)
    if min_partitions is not None:
        assert len(pieces) >= min(min_partitions, count_offsets(starts, ends))


@given(offsets, st.integers(1, 500))
def test_a_limit_is_kept_used_up_and_never_goes_beyond_what_is_there(
    rows: dict[TopicPartition, tuple[int, int]], limit: int
) -> None:
    starts = {item: start for item, (start, _) in rows.items()}
    ends = {item: start + size for item, (start, size) in rows.items()}
    limited = limit_offsets(starts, ends, limit)
    assert set(limited) == set(ends)
    assert all(starts[item] <= limited[item] <= ends[item] for item in rows)
    assert count_offsets(starts, limited) == min(limit, count_offsets(starts, ends))


def test_a_small_partition_is_read_beside_one_that_is_far_behind() -> None:
    limited = limit_offsets({A0: 0, A1: 0, B0: 3}, {A0: 1_000_000, A1: 2, B0: 3}, 100)
    assert limited == {A0: 99, A1: 1, B0: 3}


def test_shares_of_a_limit_follow_the_sizes() -> None:
    assert limit_offsets({A0: 0, B0: 0}, {A0: 300, B0: 100}, 40) == {A0: 30, B0: 10}
