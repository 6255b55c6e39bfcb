"""Lake to topic: rows go back with keys, values, headers, timestamps and partitions, in the order of their offsets.

Each partition of the table's topics is read by one Spark task, so that its order is kept, and written by the
exactly-once sink under a run id: a replay that was stopped and is started again with the same id writes nothing
twice. Positions of the table are not touched, so that a load that runs is not disturbed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.client import config as client_settings
from moldau.client.admin.topics import NewTopic, TopicAdmin
from moldau.client.errors import ClientError, UnknownTopicOrPartitionError
from moldau.client.wiring import wired
from moldau.lake.compaction import read_batches
from moldau.lake.data_file import DataFile
from moldau.lake.errors import LakeError
from moldau.lake.extras import need
from moldau.lake.table import LakeTable
from moldau.spark.options import OptionError, client_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("key", "value", "topic", "partition", "offset", "timestamp")
SCHEMA = "key binary, value binary, headers array<struct<key:string,value:binary>>, partition int, timestamp timestamp"
ROWS_AT_ONCE = 10_000
FIRST_CONTACT_MS = 2_000


@dataclass(frozen=True)
class Selection:
    """Which rows: times in microseconds since 1970, the end not included; offsets likewise."""

    start_us: int | None = None
    end_us: int | None = None
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()

    def takes(self, file: DataFile) -> bool:
        """Whether the file may hold such rows."""
        if "timestamp" in file.ranges:
            low, high = file.ranges["timestamp"]
            if (self.end_us is not None and low >= self.end_us) or (self.start_us is not None and high < self.start_us):
                return False
        return True


@dataclass(frozen=True)
class Piece:
    """The rows of one partition in one file, with their first and last offset."""

    place: str
    first: int
    last: int
    rows: int


@dataclass(frozen=True)
class ReplayTask:
    """All pieces of one partition of one topic; travels to executors."""

    topic: str
    partition: int
    pieces: tuple[Piece, ...]
    selection: Selection
    keep_partition: bool


def replay(
    session: SparkSession,
    table: LakeTable,
    target: str,
    options: Mapping[str, str],
    selection: Selection | None = None,
    keep_partitions: bool = True,
) -> int:
    """Sends the rows to the topic; returns how many. options: those of the sink `moldau`, runId among them."""
    tasks = plan_replay(table, selection or Selection(), keep_partitions)
    prepare_topic(tasks, target, options)
    return replay_tasks(session, tasks, target, options)


def prepare_topic(tasks: Sequence[ReplayTask], target: str, options: Mapping[str, str]) -> None:
    """Makes a topic that is missing, with the partitions that the rows name; refuses one that has too few of them.

    A topic that brokers make by themselves has as many as they are told, and rows for others would wait in vain.
    """
    needed = max((task.partition + 1 for task in tasks if task.keep_partition), default=0)
    try:
        settings = client_config(options, client_settings.ADMIN)
        with TopicAdmin(config=wired(settings, first_contact_ms=FIRST_CONTACT_MS)) as admin:
            found = admin.describe_topics([target])[target]
            if isinstance(found.error, UnknownTopicOrPartitionError):
                admin.create_topics([NewTopic(target, needed or -1)])[target].get()
                return
            there = len(found.get().partitions)
    except OptionError as error:
        raise LakeError(str(error)) from None
    except ClientError as error:
        raise LakeError(f"The rows cannot be sent to {target}: {error.message}") from None
    if there < needed:
        raise LakeError(
            f"Topic {target} has {there} partitions, and rows of the table name partition {needed - 1}: give it more"
            f" (`moldau topic alter {target} --partitions {needed}`), or let keys choose the partition (--by-key)."
        )


def replay_tasks(session: SparkSession, tasks: Sequence[ReplayTask], target: str, options: Mapping[str, str]) -> int:
    """Sends what was planned to a topic that is there; returns how many rows."""
    rows = sum(piece.rows for task in tasks for piece in task.pieces)
    if not rows:
        return 0
    items = list(tasks)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_task(items[number])

    frame = session.range(0, len(items), 1, len(items)).mapInArrow(read, SCHEMA)
    writer = frame.write.format("moldau").mode("append").option("topic", target).option("writeTimestamps", "true")
    writer.options(**{"delivery": "exactly-once", **options}).save()
    return rows


def plan_replay(table: LakeTable, selection: Selection, keep_partitions: bool = True) -> list[ReplayTask]:
    """Looks into the files that may hold such rows, and groups what is there by topic and partition."""
    missing = [name for name in NEEDED if name not in table.schema().names]
    if missing:
        raise LakeError(
            f"{table.path} has no column {missing[0]}: only tables that `moldau load` filled can be replayed."
        )
    found: dict[tuple[str, int], list[Piece]] = {}
    for file in table.files():
        if selection.takes(file):
            for (topic, partition), piece in _pieces(os.path.join(table.path, file.path), selection):
                found.setdefault((topic, partition), []).append(piece)
    return [
        ReplayTask(topic, partition, tuple(sorted(pieces, key=lambda piece: piece.first)), selection, keep_partitions)
        for (topic, partition), pieces in sorted(found.items())
    ]


def _pieces(place: str, selection: Selection) -> Iterator[tuple[tuple[str, int], Piece]]:
    """What one file holds, by topic and partition."""
    pa = need("pyarrow")
    batches = [
        _select(batch, selection) for batch in read_batches(place, ("topic", "partition", "offset", "timestamp"))
    ]
    rows = pa.Table.from_batches(batches) if batches else None
    if rows is None or not rows.num_rows:
        return
    grouped = rows.group_by(["topic", "partition"]).aggregate(
        [("offset", "min"), ("offset", "max"), ("offset", "count")]
    )
    for row in grouped.to_pylist():
        piece = Piece(place, row["offset_min"], row["offset_max"], row["offset_count"])
        yield (row["topic"], row["partition"]), piece


def _select(batch: Any, selection: Selection) -> Any:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    times = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    masks = []
    if selection.start_us is not None:
        masks.append(compute.greater_equal(times, selection.start_us))
    if selection.end_us is not None:
        masks.append(compute.less(times, selection.end_us))
    if selection.topics:
        masks.append(compute.is_in(batch.column("topic"), pa.array(selection.topics)))
    if selection.partitions:
        masks.append(compute.is_in(batch.column("partition"), pa.array(selection.partitions, pa.int32())))
    for mask in masks:
        batch = batch.append_column(f"mask{len(batch.schema)}", compute.fill_null(mask, False))
    for name in [name for name in batch.schema.names if name.startswith("mask")]:
        batch = batch.filter(batch.column(name)).drop_columns([name])
    return batch


def read_task(task: ReplayTask) -> Iterator[Any]:
    """The rows of one partition in the order of their offsets, as batches of the sink's columns."""
    pa = need("pyarrow")
    for group in overlapping(task.pieces):
        tables = [_read_piece(task, piece) for piece in group]
        rows = pa.concat_tables(tables).sort_by("offset")
        partition = pa.array([task.partition], pa.int32()) if task.keep_partition else pa.nulls(1, pa.int32())
        for batch in rows.combine_chunks().to_batches(max_chunksize=ROWS_AT_ONCE):
            repeated = partition.take(pa.array([0] * batch.num_rows, pa.int32()))
            arrays = [
                batch.column("key"),
                batch.column("value"),
                batch.column("headers"),
                repeated,
                batch.column("timestamp"),
            ]
            yield pa.RecordBatch.from_arrays(arrays, ["key", "value", "headers", "partition", "timestamp"])


def overlapping(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces by offset, those together whose offsets lie between each other: only they must be sorted as one."""
    group: list[Piece] = []
    last = -1
    for piece in sorted(pieces, key=lambda item: item.first):
        if group and piece.first > last:
            yield group
            group = []
        group.append(piece)
        last = max(last, piece.last)
    if group:
        yield group


def _read_piece(task: ReplayTask, piece: Piece) -> Any:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    from moldau.spark.rows import HEADERS_TYPE

    batches = []
    for batch in read_batches(piece.place):
        chosen = _select(batch, task.selection)
        mine = compute.and_(
            compute.equal(chosen.column("topic"), task.topic), compute.equal(chosen.column("partition"), task.partition)
        )
        chosen = chosen.filter(mine)
        headers = (
            chosen.column("headers").cast(HEADERS_TYPE)
            if "headers" in chosen.schema.names
            else pa.nulls(chosen.num_rows, HEADERS_TYPE)
        )
        batches.append(
            pa.RecordBatch.from_arrays(
                [
                    chosen.column("key").cast(pa.binary()),
                    chosen.column("value").cast(pa.binary()),
                    headers,
                    chosen.column("offset"),
                    chosen.column("timestamp").cast(pa.timestamp("us", "UTC")),
                ],
                ["key", "value", "headers", "offset", "timestamp"],
            )
        )
    return pa.Table.from_batches(batches)
