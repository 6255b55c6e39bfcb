"""The writers that Spark calls: of batch jobs and of streams, rows in Arrow, at least once or exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.spark.decisions import SinkError, Written
from moldau.spark.options import OptionError
from moldau.spark.sink_options import WriteOptions, write_options
from moldau.spark.sink_schema import check_schema
from moldau.spark.worker_process import AcknowledgesAtOnce, settle

# Spark runs the parts of a writer in processes of their own, which start again and again: each imports what it needs.
if TYPE_CHECKING:
    import pyarrow as pa

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"


@dataclass
class TaskWritten(WriterCommitMessage):
    """A task's report on its way to the driver."""

    written: Written


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> BatchWriter:
    """The writer of a batch job; raises OptionError."""
    if overwrite:
        raise OptionError('A topic cannot be overwritten: write with mode("append").')
    read = write_options(options)
    check_schema(schema, read)
    settle()
    return BatchWriter(read)


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> StreamWriter:
    """The writer of a stream; raises OptionError."""
    if overwrite:
        raise OptionError(
            'A topic cannot hold only the newest result: use outputMode("append"), or ("update") through foreachBatch,'
            " with the options runId and runBatch."
        )
    read = write_options(options)
    if read.run_id:
        raise OptionError("The option runId is for batch jobs: a stream is known by its checkpoint.")
    check_schema(schema, read)
    settle()
    return StreamWriter(read)


class BatchWriter(AcknowledgesAtOnce, DataSourceArrowWriter):
    """One run of a batch job, or one batch of a run; the same object travels to the tasks and to the end of the job."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._is_named = bool(options.run_id)
        self._run_id = options.run_id or f"run-{secrets.token_hex(12)}"
        self._run = secrets.token_hex(8)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from moldau.spark.sink_tasks import Place, write_in_transaction, write_plain

        place = Place(self._run_id, self._options.run_batch, _partition_id(), self._run)
        if self._options.exactly_once:
            written = write_in_transaction(self._options, place, iterator, not self._is_named)
        else:
            written = write_plain(self._options, place, iterator)
        settle()
        return TaskWritten(written)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.exactly_once:
            from moldau.spark.sink_driver import commit_batch

            commit_batch(self._options, self._run_id, self._options.run_batch, _reports(messages))
        settle()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.exactly_once:
            from moldau.spark.sink_driver import SinkDriver

            with SinkDriver(self._options, self._run_id) as driver:
                driver.abort(self._options.run_batch, _reports(messages), self._run)


class StreamWriter(AcknowledgesAtOnce, DataSourceStreamArrowWriter):
    """One micro-batch of a stream. Spark makes it anew for each, and once more for the commit: it remembers nothing."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._run = secrets.token_hex(8)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from moldau.spark.sink_tasks import Place, write_in_transaction, write_plain

        query, batch = _query_and_batch()
        place = Place(query, batch, _partition_id(), self._run)
        if self._options.exactly_once:
            written = write_in_transaction(self._options, place, iterator, only_near=False)
        else:
            written = write_plain(self._options, place, iterator)
        settle()
        return TaskWritten(written)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        reports = _reports(messages)
        if self._options.exactly_once and reports:
            from moldau.spark.sink_driver import commit_batch

            commit_batch(self._options, reports[0].sink, batchId, reports)
        settle()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        reports = _reports(messages)
        if self._options.exactly_once and reports:
            from moldau.spark.sink_driver import SinkDriver

            with SinkDriver(self._options, reports[0].sink) as driver:
                driver.abort(batchId, reports, reports[0].run)


def _partition_id() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _query_and_batch() -> tuple[str, int]:
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(QUERY_PROPERTY)
    batch = None if context is None else context.getLocalProperty(BATCH_PROPERTY)
    if not query or batch is None:
        raise SinkError(
            "This version of Spark does not tell tasks which micro-batch they write: use pyspark 4.2 or newer."
        )
    return query, int(batch)


def _reports(messages: list[WriterCommitMessage | None]) -> list[Written]:
    """Failed tasks have none."""
    return [message.written for message in messages if isinstance(message, TaskWritten)]
