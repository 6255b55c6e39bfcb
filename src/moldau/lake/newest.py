"""Keeps the newest record of each key, as compaction does: within a partition by offset, between partitions by time.

A key has one partition as long as a topic's number of partitions stays; where that grew, its newer records may be
elsewhere, with smaller offsets, and only timestamps can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.lake.errors import LakeError
from moldau.lake.extras import need

# Rows are thinned out whenever so many have come together.
ROWS_HELD_MAX = 500_000


def newest_by_key(batches: Iterator[Any]) -> Iterator[Any]:
    """The newest rows of all batches together, in batches."""
    pa = need("pyarrow")
    held: list[Any] = []
    rows = 0
    for batch in batches:
        check_keys(batch)
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_HELD_MAX:
            held = newest(pa.Table.from_batches(held)).to_batches()
            # Where keys hardly repeat, thinning out again and again would cost the square of the rows.
            rows = 0 if sum(item.num_rows for item in held) > ROWS_HELD_MAX // 2 else rows
    if held:
        yield from newest(pa.Table.from_batches(held)).to_batches()


def newest(rows: Any) -> Any:
    """One row of each topic and key."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if not rows.num_rows:
        return rows
    numbered = pa.table(
        {
            "topic": rows.column("topic"),
            "key": rows.column("key"),
            "partition": rows.column("partition"),
            "offset": rows.column("offset"),
            "time": rows.column("timestamp").cast(pa.int64()),
            "row": pa.array(range(rows.num_rows), pa.int64()),
        }
    )
    # The last row of a group, once they are sorted, is the newest.
    by_offset = numbered.sort_by([("partition", "ascending"), ("offset", "ascending")])
    found = by_offset.group_by(["topic", "key", "partition"], use_threads=False).aggregate(
        [("time", "last"), ("row", "last")]
    )
    by_time = found.sort_by([("time_last", "ascending"), ("partition", "ascending")])
    chosen = by_time.group_by(["topic", "key"], use_threads=False).aggregate([("row_last", "last")])
    places = chosen.column("row_last_last")
    return rows.take(places.take(compute.sort_indices(places)))


def check_keys(batch: Any) -> None:
    """A record without a key has no row that it could change."""
    compute = need("pyarrow.compute")
    keys = batch.column("key")
    if keys.null_count:
        place = compute.index(keys.is_null(), True).as_py()
        topic, partition, offset = (batch.column(name)[place].as_py() for name in ("topic", "partition", "offset"))
        raise LakeError(
            f"The record at offset {offset} of {topic}-{partition} has no key, so that it cannot be merged into a table"
            " of keys. Load this topic with --mode append."
        )
