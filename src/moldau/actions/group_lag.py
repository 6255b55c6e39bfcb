"""How far groups are behind, in records and in seconds.

The lag in seconds is exact: it is how long ago the record was written that the group reads next. That record is
fetched, one for each partition that has a lag, and its timestamp is kept, for it never changes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.actions.clients import in_thread
from moldau.actions.record_reading import Range, read_forward
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition
from moldau.facts.group_lag import Committed, fetch_committed, fetch_end_offsets
from moldau.facts.share_progress import rows_of_groups

if TYPE_CHECKING:
    from moldau.actions.viewer import Viewer

SHARE = "share"
STREAMS = "streams"
TIMES_KEPT_MAX = 50_000
# So many records are fetched at most for one page.
TIMES_ASKED_MAX = 400
TIMES_S_MAX = 5.0
ONE_BATCH_BYTES = 1
# More groups than this are too many to ask for the offsets of all.
GROUPS_ASKED_MAX = 2_000


Place = tuple[TopicPartition, int]
NO_RECORD = -1


class Lag(NamedTuple):
    """Of a group or partition; None: not known."""

    records: int | None
    seconds: float | None


async def lags_of_groups(viewer: Viewer, types: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """The lag of each group of a page; types: share and streams groups keep their offsets elsewhere."""
    plain = [group_id for group_id, kind in types.items() if kind != SHARE]
    shared = [group_id for group_id, kind in types.items() if kind == SHARE]
    found = viewer.scope.places_among(await viewer.clients.ask(lambda admin: _progress(admin, plain, shared)))
    behind = {place: end for places in found.values() for place, end in _behind(places).items()}
    times = await record_times(viewer, behind)
    now_ms = time.time_ns() // 1_000_000
    rows: dict[str, dict[str, object]] = {}
    for group_id in types:
        places = found.get(group_id)
        if places is None or isinstance(places, ClientError):
            message = None if places is None else places.message
            rows[group_id] = {"lag": None, "lag_s": None, "error": message}
            continue
        lags = [_lag_at(each, place, times, now_ms) for each, place in places.items()]
        rows[group_id] = {
            "lag": _sum([lag.records for lag in lags]),
            "lag_s": _largest([lag.seconds for lag in lags]),
            "partitions": len(places),
        }
    return rows


class Progress(NamedTuple):
    """Where a group is in a partition and where that ends; of share groups the coordinator tells what is left."""

    offset: int | None
    end: int | None
    left: int | None = None


Places = dict[TopicPartition, Progress]


def _lag_at(each: TopicPartition, place: Progress, times: Mapping[Place, int], now_ms: int) -> Lag:
    lag = lag_of(place.offset, place.end, times.get((each, place.offset or 0)), now_ms)
    if place.left is None:
        return lag
    return Lag(place.left, 0.0 if place.left == 0 else lag.seconds)


def _progress(admin: Admin, plain: list[str], shared: list[str]) -> dict[str, Places | ClientError]:
    """For each partition of each group where the group is and where the partition ends."""
    found: dict[str, Places | ClientError] = {}
    committed = fetch_committed(admin, plain)
    ends = fetch_end_offsets(
        admin, {each for of_group in committed.values() if not isinstance(of_group, ClientError) for each in of_group}
    )
    for group_id, of_group in committed.items():
        if isinstance(of_group, ClientError):
            found[group_id] = of_group
        else:
            found[group_id] = {
                each: Progress(None if offset is None else offset.offset, ends.get(each))
                for each, offset in of_group.items()
            }
    for group_id, rows in (rows_of_groups(admin, shared) if shared else {}).items():
        if isinstance(rows, ClientError):
            found[group_id] = rows
        else:
            found[group_id] = {row.partition: Progress(row.start_offset, row.end_offset, row.lag) for row in rows}
    return found


def _behind(places: Places | ClientError) -> dict[Place, int]:
    if isinstance(places, ClientError):
        return {}
    return {
        (each, place.offset): place.end
        for each, place in places.items()
        if place.offset is not None and place.end is not None and place.offset < place.end
    }


def lag_of(offset: int | None, end: int | None, written_ms: int | None, now_ms: int) -> Lag:
    """written_ms: when the record at the offset was written; without a lag it does not matter."""
    if offset is None or end is None:
        return Lag(None, None)
    records = max(0, end - offset)
    if records == 0 or written_ms == NO_RECORD:
        return Lag(records, 0.0)
    return Lag(records, None if written_ms is None else max(0.0, (now_ms - written_ms) / 1000))


async def record_times(viewer: Viewer, places: Mapping[Place, int]) -> dict[Place, int]:
    """When the records at these places were written; places: with the end of the partition.

    Of a place that compaction has emptied it is the next record behind it, and NO_RECORD where only markers of
    transactions are left.
    """
    kept = viewer.record_times
    missing = [place for place in places if place not in kept]
    by_round: list[dict[TopicPartition, Range]] = []
    for each, offset in missing[:TIMES_ASKED_MAX]:
        # Groups are at different places of one partition, and a consumer can be at one at a time.
        home = next((row for row in by_round if each not in row), None)
        if home is None:
            by_round.append(home := {})
        home[each] = Range(offset, places[each, offset])
    empty: set[Place] = set()
    if by_round:
        try:
            empty = await in_thread(lambda: _fetch_times(viewer, by_round))
        except ClientError:
            pass  # lag in records is told all the same
    while len(kept) > TIMES_KEPT_MAX:
        del kept[next(iter(kept))]
    return {place: NO_RECORD if place in empty else kept[place] for place in places if place in kept or place in empty}


def _fetch_times(viewer: Viewer, rounds: list[dict[TopicPartition, Range]]) -> set[Place]:
    """Keeps the times that are found, and returns the places without any record behind them."""
    # One byte is one batch: brokers never respond with less.
    consumer = viewer.clients.open_consumer(partition_bytes=ONE_BATCH_BYTES)
    deadline = time.monotonic() + TIMES_S_MAX
    empty: set[Place] = set()
    try:
        for ranges in rounds:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            read = read_forward(consumer, ranges, 1, left)
            found = {TopicPartition(record.topic, record.partition): record.timestamp for record in read.records}
            for each, each_range in ranges.items():
                if each in found:
                    viewer.record_times[each, each_range.start] = found[each]
                elif read.positions[each] >= each_range.end:
                    empty.add((each, each_range.start))
        return empty
    finally:
        consumer.close(0)


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _largest(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


async def groups_with_offsets_of(viewer: Viewer, topic: str) -> dict[str, object]:
    """Groups that have offsets of a topic, with their lag there."""
    listing = await viewer.groups.get()
    chosen = listing.groups[:GROUPS_ASKED_MAX]
    plain = [group.group_id for group in chosen if group.type.lower() != SHARE]
    shared = [group.group_id for group in chosen if group.type.lower() == SHARE]

    def work(admin: Admin) -> dict[str, int | None]:
        return {**_lags_of_consumers(admin, plain, topic), **_lags_of_shares(admin, shared, topic)}

    lags = await viewer.clients.ask(work)
    rows = [
        {"id": group.group_id, "type": group.type.lower(), "state": group.state, "lag": lags[group.group_id]}
        for group in chosen
        if group.group_id in lags
    ]
    return {"rows": rows, "asked": len(chosen), "of_groups": len(listing.groups)}


def _lags_of_consumers(admin: Admin, group_ids: list[str], topic: str) -> dict[str, int | None]:
    """The lag in a topic of each group that has committed offsets of it."""
    found: dict[str, Committed] = {}
    for group_id, of_group in fetch_committed(admin, group_ids).items():
        if not isinstance(of_group, ClientError):
            of_topic = {each: offset for each, offset in of_group.items() if each.topic == topic}
            if of_topic:
                found[group_id] = of_topic
    ends = fetch_end_offsets(admin, {each for of_group in found.values() for each in of_group})
    return {
        group_id: _sum(
            [
                lag_of(None if offset is None else offset.offset, ends.get(each), None, 0).records
                for each, offset in of_group.items()
            ]
        )
        for group_id, of_group in found.items()
    }


def _lags_of_shares(admin: Admin, group_ids: list[str], topic: str) -> dict[str, int | None]:
    """The same of share groups, whose coordinators count what is left."""
    outcomes = admin.list_share_group_offsets(dict.fromkeys(group_ids)) if group_ids else {}
    found: dict[str, int | None] = {}
    for group_id, outcome in outcomes.items():
        if outcome.error is not None:
            continue
        of_topic = [row for each, row in outcome.get().items() if each.topic == topic]
        starts = [None if row.error is not None else row.get() for row in of_topic]
        if of_topic:
            found[group_id] = _sum([None if start is None else start.lag for start in starts])
    return found
