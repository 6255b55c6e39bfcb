"""The load: rounds of plan, tasks, commit. The table alone knows how far it is.

A round reads the table's positions, plans ranges from there to what the brokers have, has them written by tasks,
and commits files and new positions together. Nothing else is kept: a load that is killed is simply started again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from moldau.client.results import TopicPartition
from moldau.lake.errors import LakeError
from moldau.lake.file_writer import WriteSettings
from moldau.lake.lock import WriterLock
from moldau.lake.open_table import open_or_create
from moldau.lake.positions import Positions, check_topic_ids
from moldau.lake.row_shape import RowShape, make_shape
from moldau.lake.run_log import RoundStats, now_ms
from moldau.lake.table import LakeTable, Note, local_path
from moldau.lake.tasks import LoadTask, Runner, TaskResult
from moldau.spark.group_progress import GroupProgress
from moldau.spark.lookup import Found, Lookup
from moldau.spark.options import ReadOptions, read_options
from moldau.spark.planning import OffsetRange, count_offsets, limit_offsets, split_ranges, whole_ranges

# A round holds at most so many offsets, so that a long backlog is committed piece by piece.
ROUND_OFFSETS_MAX = 20_000_000
# Tasks are cut no smaller than this: a file of less is not worth its overhead.
TASK_OFFSETS_MIN = 50_000
ISOLATION = "kafka.isolation.level"


@dataclass(frozen=True)
class LoadSettings:
    """What to load, where to, and how. options: those of Spark's source `moldau`, such as subscribe."""

    options: Mapping[str, str]
    path: str
    # None: that of the table, or delta for a new one.
    format: str | None = None
    partition_by: tuple[str, ...] = ()
    # Smaller and, on most data, quicker than snappy.
    compression: str = "zstd"
    file_bytes_max: int = 512 * 1024 * 1024
    fsync: bool = False
    round_offsets_max: int = ROUND_OFFSETS_MAX
    task_offsets_max: int | None = None
    # The envelope of change data, for upserts; empty: rows are in values as they are.
    envelope: str = ""
    # How many tasks to cut a round into at least; the number of cores of the cluster, usually.
    parallelism: int = 2


@dataclass(frozen=True)
class Round:
    """What one committed round did; version is -1 if there was nothing to commit."""

    version: int = -1
    ranges: tuple[OffsetRange, ...] = ()
    results: tuple[TaskResult, ...] = ()
    seconds: float = 0.0
    # Offsets that brokers had and that no round has loaded yet.
    behind: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(result.rows for result in self.results)

    @property
    def files(self) -> int:
        return sum(len(result.files) for result in self.results)

    @property
    def bytes(self) -> int:
        return sum(result.size for result in self.results)

    @property
    def lag(self) -> int:
        return sum(self.behind.values())

    def stats(self) -> RoundStats:
        """The round for views and reports."""
        lag = {str(item): count for item, count in self.behind.items()}
        return RoundStats(
            now_ms(), self.seconds, self.rows, self.bytes, self.files, self.version, lag, rows_out=self.rows
        )


class Load:
    """One load of one table; use it with `with`, which holds the table's lock."""

    # Whether tasks keep only the newest record of each key.
    newest_only = False

    def __init__(self, settings: LoadSettings, runner: Runner) -> None:
        self.settings = settings
        self._runner = runner
        options = dict(settings.options)
        # Rows of aborted transactions have no place in a lake; whoever wants them can say so.
        if not any(name.lower() == ISOLATION for name in options):
            options[ISOLATION] = "read_committed"
        options.setdefault("startingOffsets", "earliest")
        # A batch cannot begin at the end, a stream can; a load can do both, one after the other.
        from_the_end = options["startingOffsets"].strip().lower() == "latest"
        self._options: ReadOptions = read_options(options, streaming=from_the_end)
        self.directory = local_path(settings.path)
        self._lock = WriterLock(self.directory, f"a load of {self._options.subscription}")
        self._lookup: Lookup | None = None
        self._shape = self._make_shape()
        self._table: LakeTable | None = None
        self._group = GroupProgress(self._options) if self._options.commit_group else None

    def _make_shape(self) -> RowShape:
        if self.settings.envelope:
            raise LakeError("Envelopes of change data make sense with --mode upsert only.")
        return make_shape(self._options)

    def __enter__(self) -> Load:
        self._lock.acquire()
        try:
            self._lookup = Lookup(self._options)
            # A topic that does not exist is told before a table is made for it.
            self._lookup.find_partitions()
            self._table = self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._lookup is not None:
            self._lookup.close()
            self._lookup = None
        if self._group is not None:
            self._group.close()
        self._lock.release()

    @property
    def table(self) -> LakeTable:
        assert self._table is not None, "use the load with `with`"
        return self._table

    def _open(self) -> LakeTable:
        wanted = self.settings
        return open_or_create(self.directory, wanted.format, self._shape.schema, wanted.partition_by)

    def run_once(self) -> Iterator[Round]:
        """Rounds until everything is loaded that the brokers had when it began."""
        found, ends = self._ends()
        while True:
            done = self._round(found, ends)
            if done.version >= 0:
                yield done
            if not done.lag:
                return

    def run_continuously(self, interval_s: float, stop: Callable[[], bool]) -> Iterator[Round]:
        """Rounds until stop() says so, at least interval_s apart from begin to begin unless there is a backlog."""
        while not stop():
            began = time.monotonic()
            done = self._round(*self._ends())
            if done.version >= 0:
                yield done
            while not done.lag and not stop() and time.monotonic() - began < interval_s:
                time.sleep(min(0.2, interval_s))

    def _ends(self) -> tuple[Found, dict[TopicPartition, int]]:
        assert self._lookup is not None
        found = self._lookup.find_partitions()
        return found, self._lookup.ending_offsets(found.partitions)

    def _round(self, found: Found, ends: Mapping[TopicPartition, int]) -> Round:
        began = time.monotonic()
        table = self.table
        table.evolve(self._shape.schema)
        before = table.positions(found.partitions)
        check_topic_ids(before, found.topic_ids, self.directory)
        starts = self._starts(before, found, ends)
        targets = limit_offsets(starts, ends, self.settings.round_offsets_max)
        ranges = self._plan(starts, targets, found.topic_ids)
        after = Positions({**before.offsets, **starts}, {**before.topic_ids, **found.topic_ids}).advanced(ranges)
        behind = {item: max(0, end - after.offsets[item]) for item, end in ends.items()}
        if not after.changed_since(before):
            return Round(behind=behind)
        results = self._run(table, ranges)
        version = self._commit(table, results, before, after)
        if self._group is not None:
            self._group.commit(after.offsets)
        return Round(version, tuple(ranges), tuple(results), time.monotonic() - began, behind)

    def _commit(self, table: LakeTable, results: Sequence[TaskResult], before: Positions, after: Positions) -> int:
        files = [file for result in results for file in result.files]
        note = Note("load", {"rows": sum(result.rows for result in results), "files": len(files)})
        return table.append(files, before, after, note)

    def _starts(self, before: Positions, found: Found, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where each partition goes on; LakeError when records between are gone."""
        assert self._lookup is not None
        known_topics = {item.topic for item in before.offsets}
        new = [item for item in found.partitions if item not in before.offsets]
        first = self._lookup.earliest(found.partitions)
        # A partition that was added to a topic later is read whole, whatever was said about the start of the topic.
        # So is a topic that a pattern finds later: it was made after the load had begun.
        found_later = bool(self._options.subscription.pattern and known_topics)
        whole = [item for item in new if item.topic in known_topics or found_later]
        starts = {item: first[item] for item in whole}
        fresh = [item for item in new if item not in whole]
        if fresh:
            # Offsets that the user wrote name all partitions of the first run; later there are none to ask for.
            starts |= self._lookup.starting_offsets(fresh)
        for item, offset in before.offsets.items():
            starts[item] = self._check_start(item, offset, first[item], ends[item])
        return starts

    def _check_start(self, item: TopicPartition, offset: int, first: int, end: int) -> int:
        if first <= offset <= end:
            return offset
        if offset > end and self._options.ending.kind != "latest":
            return offset  # the user's own end lies before; nothing is missing
        if not self._options.fail_on_data_loss:
            return first if offset < first else end
        if offset < first:
            what = f"Records of {item} from offset {offset} to {first} were deleted before they were loaded."
        else:
            what = f"{item} ends at offset {end}, before offset {offset} which was loaded already: its log was cut."
        raise LakeError(f"{what} --on-data-loss skip goes on with what is there.")

    def _plan(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], ids: Mapping[str, str]
    ) -> list[OffsetRange]:
        whole = whole_ranges(starts, ends, ids)
        total = count_offsets(starts, ends)
        pieces = min(self.settings.parallelism, max(1, total // TASK_OFFSETS_MIN))
        return split_ranges(whole, pieces, self.settings.task_offsets_max)

    def _write_settings(self, table: LakeTable) -> WriteSettings:
        return write_settings(table, self.settings)

    def _run(self, table: LakeTable, ranges: Sequence[OffsetRange]) -> list[TaskResult]:
        write = self._write_settings(table)
        results = self._runner([LoadTask(item, self._shape, write, self.newest_only) for item in ranges])
        for result in results:
            if result.error:
                raise LakeError(result.error)
        if sorted(result.range for result in results) != sorted(ranges):
            raise LakeError(
                "Spark did not return a result for each range, so nothing was committed. Start the load again."
            )
        return results


def write_settings(table: LakeTable, wanted: LoadSettings) -> WriteSettings:
    """Where and how the tasks of a load write."""
    return WriteSettings(
        table.path,
        table.write_directory,
        "data" if table.format == "iceberg" else "",
        table.partitioning,
        wanted.compression,
        wanted.file_bytes_max,
        wanted.fsync,
    )
