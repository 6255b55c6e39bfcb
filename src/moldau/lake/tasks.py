"""What one Spark task of a load does: reads a range of offsets, writes files, and says which.

Runs on executors. What would fail again in the same way comes back as a sentence, so that Spark does not try it
four times; everything else is raised, and Spark runs the task again.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.lake.data_file import DataFile
from moldau.lake.errors import LakeError
from moldau.lake.file_writer import FileWriter, WriteSettings
from moldau.lake.row_shape import RowShape
from moldau.spark.planning import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Larger batches mean fewer calls; Spark sees none of them.
ROWS_PER_BATCH = 65_536


@dataclass(frozen=True)
class LoadTask:
    """One range and all that is needed to load it; plain data that travels to executors."""

    range: OffsetRange
    shape: RowShape
    write: WriteSettings
    # Only the newest record of each key is kept, with a column that says whether it deletes the key.
    newest_only: bool = False


@dataclass(frozen=True)
class TaskResult:
    """What a task has done."""

    range: OffsetRange
    files: tuple[DataFile, ...] = ()
    rows: int = 0
    seconds: float = 0.0
    # A sentence, if it failed in a way that would repeat itself.
    error: str = ""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def to_json(self) -> str:
        item = self.range
        return json.dumps(
            {
                "range": [item.topic, item.partition, item.start, item.end, item.topic_id],
                "files": [file.to_object() for file in self.files],
                "rows": self.rows,
                "seconds": self.seconds,
                "error": self.error,
            }
        )

    @staticmethod
    def from_json(text: str) -> TaskResult:
        data = json.loads(text)
        topic, partition, start, end, topic_id = data["range"]
        return TaskResult(
            OffsetRange(topic, partition, start, end, topic_id),
            tuple(DataFile.from_object(item) for item in data["files"]),
            data["rows"],
            data["seconds"],
            data["error"],
        )


def run_task(task: LoadTask) -> TaskResult:
    """Loads one range into files that no commit names yet."""
    from moldau.spark.lookup import ReadError

    began = time.monotonic()
    try:
        files, rows = _write_range(task)
    except (LakeError, ReadError) as error:
        return TaskResult(task.range, error=str(error))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM):
            raise
        sentence = (
            f"{task.write.directory} cannot be written: {os.strerror(error.errno)}. Nothing was"
            " committed; make room and load again."
        )
        return TaskResult(task.range, error=sentence)
    return TaskResult(task.range, tuple(files), rows, time.monotonic() - began)


def _write_range(task: LoadTask) -> tuple[list[DataFile], int]:
    writer = FileWriter(task.write)
    rows = 0
    try:
        for batch in read_rows(task):
            rows += batch.num_rows
            writer.write(batch)
        return writer.finish(), rows
    except BaseException:
        writer.abandon()
        raise


def read_rows(task: LoadTask) -> Iterator[Any]:
    """The rows of the task's range, batch by batch."""
    from moldau.spark.rows import read_range

    options = task.shape.options
    batches = read_range(
        task.range,
        options.client_config,
        include_headers=options.include_headers,
        fail_on_data_loss=options.fail_on_data_loss,
        poll_timeout_ms=options.poll_timeout_ms,
        rows_per_batch=ROWS_PER_BATCH,
    )
    rows = task.shape.rows(batches)
    if task.newest_only:
        from moldau.lake.newest import newest_by_key

        return newest_by_key(rows)
    return rows


Runner = Callable[[Sequence[LoadTask]], list[TaskResult]]


def run_here(tasks: Sequence[LoadTask]) -> list[TaskResult]:
    """Runs tasks one after the other in this process: for tests, and for tables too small to start Spark for."""
    return [run_task(task) for task in tasks]


class SparkRunner:
    """Runs each task as one Spark task; works with Spark Connect too, since it is a DataFrame."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __call__(self, tasks: Sequence[LoadTask]) -> list[TaskResult]:
        if not tasks:
            return []
        return [TaskResult.from_json(text) for text in run_on_spark(self._session, list(tasks), _task_json)]


def _task_json(task: LoadTask) -> str:
    return run_task(task).to_json()


def run_on_spark(session: SparkSession, items: list[Any], work: Callable[[Any], str]) -> list[str]:
    """Calls work(item) in one Spark task for each item; returns the texts in no special order."""
    from moldau.lake.session import raise_sentence

    try:
        context = _context(session)
        if context is not None:
            numbers = context.parallelize(range(len(items)), len(items))
            return list(numbers.map(lambda number: work(items[number])).collect())
        return _run_as_frame(session, items, work)
    except Exception as error:
        raise_sentence(error)
        raise


def _context(session: SparkSession) -> Any:
    """Spark's context; None with Spark Connect, which has DataFrames only."""
    try:
        return session.sparkContext
    except Exception:
        return None


def _run_as_frame(session: SparkSession, items: list[Any], work: Callable[[Any], str]) -> list[str]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            texts = [work(items[number]) for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["result"])

    frame = session.range(0, len(items), 1, len(items)).mapInArrow(run, "result string")
    return [row["result"] for row in frame.collect()]
