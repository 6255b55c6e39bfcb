"""Micro-batches into a lake table, exactly once: the number of the batch is the table's position in the query.

Spark runs a micro-batch again, with the same rows, until it is in its checkpoint. The table's commit holds the
files of a batch and the number of the next one, so that a batch that was committed before a crash is skipped
afterwards. The query's id takes the part of a topic's id: a query with a new checkpoint would count from 0 again,
and is refused.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.client.results import TopicPartition
from moldau.lake.data_file import DataFile
from moldau.lake.errors import LakeError
from moldau.lake.extras import need
from moldau.lake.file_writer import FileWriter, WriteSettings
from moldau.lake.load import LoadSettings, write_settings
from moldau.lake.lock import WriterLock
from moldau.lake.open_table import open_or_create
from moldau.lake.positions import Positions, fingerprint
from moldau.lake.session import raise_sentence
from moldau.lake.table import LakeTable, Note, local_path
from moldau.lake.tasks import TaskResult
from moldau.protocol.uuids import uuid_to_text
from moldau.spark.planning import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TopicBatches:
    """Writes the micro-batches of one query into topics; to be called by foreachBatch.

    Spark gives sources in Python no output mode `update`; the sink's batch jobs, told the query and the number of the
    batch, are just as exact.
    """

    options: Mapping[str, str]
    checkpoint: str

    def __call__(self, frame: DataFrame, batch: int) -> None:
        named = {**self.options, "runId": read_query_id(self.checkpoint), "runBatch": str(batch)}
        frame.write.format("moldau").mode("append").options(**named).save()


@dataclass(frozen=True)
class BatchSink:
    """Writes the micro-batches of one query into one table; to be called by foreachBatch."""

    # `pipeline/NAME/SINK`: no topic can have such a name.
    name: str
    table: str
    checkpoint: str
    format: str | None = None
    partition_by: tuple[str, ...] = ()
    # Told what a batch wrote: its number, rows, bytes and files. None where batches run in another process.
    on_written: Callable[[int, int, int, int], None] | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.write(frame, batch)

    def write(self, frame: DataFrame, batch: int) -> int:
        """Commits the rows of a batch; returns how many, 0 if that was done before."""
        schema = need("pyspark.sql.pandas.types").to_arrow_schema(frame.schema, timezone="UTC")
        # Also against a vacuum, which could take files away that are about to be committed.
        with WriterLock(local_path(self.table), self.name):
            table = open_or_create(self.table, self.format, schema, self.partition_by)
            table.evolve(schema)
            return self._commit(table, frame, schema, batch)

    def _commit(self, table: LakeTable, frame: DataFrame, schema: Any, batch: int) -> int:
        item = TopicPartition(self.name, 0)
        query_id = read_query_id(self.checkpoint)
        before = table.positions([item])
        self._check_query(before, query_id)
        if before.offsets.get(item, 0) > batch:
            self._tell(batch, [], 0)
            return 0
        results = write_frame(frame, write_settings(table, LoadSettings({}, table.path)), schema)
        after = Positions({item: batch + 1}, {self.name: query_id})
        files = [file for result in results for file in result.files]
        rows = sum(result.rows for result in results)
        table.append(files, before, after, Note("batch", {"rows": rows, "batch": batch}))
        self._tell(batch, files, rows)
        return rows

    def _tell(self, batch: int, files: Sequence[DataFile], rows: int) -> None:
        if self.on_written is not None:
            self.on_written(batch, rows, sum(file.size for file in files), len(files))

    def _check_query(self, before: Positions, query_id: str) -> None:
        known = before.topic_ids.get(self.name)
        if known and fingerprint(known) != fingerprint(query_id):
            raise LakeError(
                f"{self.table} has rows of {self.name} from a checkpoint that is gone: with a new one they would be"
                f" written again. Restore {self.checkpoint}, or accept that with"
                f" `moldau lake forget {self.table} {self.name}`."
            )


def read_query_id(checkpoint: str) -> str:
    """The id that Spark keeps in a query's checkpoint, in the form of a topic's id."""
    place = os.path.join(local_path(checkpoint), "metadata")
    try:
        with open(place, encoding="utf-8") as file:
            return uuid_to_text(uuid.UUID(json.load(file)["id"]).bytes)
    except (OSError, ValueError, KeyError) as error:
        raise LakeError(f"The checkpoint's file {place} cannot be read: {error}.") from error


def write_frame(frame: DataFrame, settings: WriteSettings, schema: Any) -> list[TaskResult]:
    """Has Spark's tasks write the rows of a DataFrame from Arrow; returns what they wrote."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        result = write_batches(batches, settings, schema)
        yield pa.RecordBatch.from_arrays([pa.array([result.to_json()], pa.string())], ["result"])

    try:
        found = [TaskResult.from_json(row["result"]) for row in frame.mapInArrow(run, "result string").collect()]
    except Exception as error:
        raise_sentence(error)
        raise
    for result in found:
        if result.error:
            raise LakeError(result.error)
    return found


def write_batches(batches: Iterator[Any], settings: WriteSettings, schema: Any) -> TaskResult:
    """One task's rows into files that no commit names yet."""
    nothing = OffsetRange("", 0, 0, 0)
    writer = FileWriter(settings)
    rows = 0
    try:
        for batch in batches:
            rows += batch.num_rows
            writer.write(batch if batch.schema.equals(schema) else batch.cast(schema))
        return TaskResult(nothing, tuple(writer.finish()), rows)
    except LakeError as error:
        writer.abandon()
        return TaskResult(nothing, error=str(error))
    except BaseException:
        writer.abandon()
        raise
