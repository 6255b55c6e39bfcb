"""Runs pipelines on Spark: each sink is a streaming query with a checkpoint of its own, or a load.

A sink that takes a topic as it is runs as a load, straight from Arrow. All others are queries of Structured
Streaming: to topics by the sink `moldau`, to tables by micro-batches (batch_sink.py). Sinks that read no topic have
nothing to wait for: they are written once, as a batch.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.lake.batch_sink import BatchSink, TopicBatches, write_frame
from moldau.lake.errors import LakeError
from moldau.lake.extras import need
from moldau.lake.frames import read_frame
from moldau.lake.load import Load, LoadSettings, write_settings
from moldau.lake.lock import WriterLock
from moldau.lake.open_table import open_or_create, open_table
from moldau.lake.pipeline import (
    APPEND,
    UPDATE,
    UPSERT,
    FileSource,
    Pipeline,
    Sink,
    Source,
    SqlStep,
    Step,
    TableSink,
    TableSource,
    TopicSink,
    TopicSource,
)
from moldau.lake.positions import Positions
from moldau.lake.run_log import RoundStats, RunLog, now_ms
from moldau.lake.session import first_line, parallelism, raise_sentence
from moldau.lake.table import Note, local_path
from moldau.lake.tasks import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POLL_S = 0.2
# A topic is no files; that is not known to be none.
NO_FILES = -1
OBSERVED = "moldau_out"
# How Spark names the parts of a micro-batch.
PHASES = {
    "looking for offsets": ("latestOffset",),
    "planning": ("getBatch", "queryPlanning"),
    "reading and writing": ("addBatch",),
    "committing": ("walCommit", "commitOffsets", "commitBatch"),
}
OnRound = Callable[[RoundStats], None]


def run_pipeline(
    pipeline: Pipeline,
    session: SparkSession,
    once: bool = True,
    on_round: OnRound | None = None,
    stop: Callable[[], bool] | None = None,
    log: RunLog | None = None,
) -> RunLog:
    """Runs until everything that is there is done (once), or until stop() says so. LakeError says what went wrong."""
    pipeline.check()
    directory = local_path(pipeline.state_directory)
    with WriterLock(directory, f"a run of pipeline {pipeline.name}"):
        kept = log or RunLog(os.path.join(directory, "runs"), f"pipeline {pipeline.name}")
        kept.begin()
        run = _Run(pipeline, session, directory, kept, on_round or (lambda _: None), stop or (lambda: False))
        try:
            run.go(once)
        except BaseException as error:
            kept.end(str(error) or type(error).__name__)
            raise
        kept.end()
        return kept


class _Run:
    """One run while it lasts."""

    def __init__(
        self,
        pipeline: Pipeline,
        session: SparkSession,
        directory: str,
        log: RunLog,
        on_round: OnRound,
        stop: Callable[[], bool],
    ) -> None:
        self._pipeline = pipeline
        self._session = session
        self._directory = directory
        self._log = log
        self._on_round = on_round
        self._stop = stop
        self._frames: dict[str, DataFrame] = {}
        self._seen: dict[str, int] = {}
        # Rows, bytes and files that each batch of a sink wrote.
        self._written: dict[tuple[str, int], tuple[int, int, int]] = {}

    def go(self, once: bool) -> None:
        loads = [sink for sink in self._pipeline.sinks if self._pipeline.is_plain_load(sink)]
        others = [sink for sink in self._pipeline.sinks if not self._pipeline.is_plain_load(sink)]
        if others:
            self._build()
        queries: list[tuple[str, Any]] = []
        open_loads: list[tuple[str, Load]] = []
        try:
            for sink in others:
                query = self._start(sink, once)
                if query is not None:
                    queries.append((sink.name, query))
                    if once:
                        # One after the other: each may use the whole cluster, and memory is needed for one. Loads
                        # keep no state, and use what the first query leaves free while its processes start.
                        self._watch([queries[-1]], self._open(loads, open_loads), once)
                        loads = []
            self._watch(queries, self._open(loads, open_loads), once)
        finally:
            for _, query in queries:
                if query.isActive:
                    query.stop()
            for _, load in open_loads:
                load.close()

    # What is read, and what is made of it

    def _build(self) -> None:
        for source in self._pipeline.sources:
            self._name(source.name, self._read(source))
        for step in self._pipeline.steps:
            self._name(step.name, self._make(step))

    def _name(self, name: str, frame: DataFrame) -> None:
        self._frames[name] = frame
        frame.createOrReplaceTempView(name)

    def _read(self, source: Source) -> DataFrame:
        if isinstance(source, TableSource):
            return read_frame(self._session, open_table(source.table))
        if isinstance(source, FileSource):
            reader = self._session.read.format(source.format).options(**source.options)
            try:
                return (reader.schema(source.schema) if source.schema else reader).load(source.files)
            except Exception as error:
                raise LakeError(f"Source {source.name} cannot be read: {first_line(error)}") from error
        options = topic_options(self._pipeline, source)
        try:
            frame = self._session.readStream.format("moldau").options(**options).load()
        except Exception as error:
            raise_sentence(error)
            raise LakeError(f"Source {source.name} cannot be read: {first_line(error)}") from error
        return frame.withWatermark("timestamp", source.watermark) if source.watermark else frame

    def _make(self, step: Step) -> DataFrame:
        try:
            if isinstance(step, SqlStep):
                return self._session.sql(step.sql)
            found = step.function(*(self._frames[name] for name in step.inputs))
        except Exception as error:
            raise LakeError(f"Step {step.name} fails: {first_line(error)}") from error
        if not hasattr(found, "createOrReplaceTempView"):
            raise LakeError(f"Step {step.name} returned a {type(found).__name__}: it must return a DataFrame.")
        return found  # type: ignore[no-any-return]

    # Where it goes

    def _open(self, sinks: list[Sink], open_loads: list[tuple[str, Load]]) -> list[tuple[str, Load]]:
        """Opens the loads of these sinks, and notes them among those to be closed."""
        opened = []
        for sink in sinks:
            load = self._load(sink)
            load.__enter__()
            open_loads.append((sink.name, load))
            opened.append((sink.name, load))
        return opened

    def _load(self, sink: Sink) -> Load:
        assert isinstance(sink, TableSink)
        source = self._pipeline.source(sink.source)
        assert isinstance(source, TopicSource)
        settings = LoadSettings(
            topic_options(self._pipeline, source),
            sink.table,
            sink.format,
            sink.partition_by,
            parallelism=parallelism(self._session),
            envelope=source.envelope,
        )
        if sink.mode == UPSERT:
            from moldau.lake.changelog import ChangelogLoad

            return ChangelogLoad(settings, SparkRunner(self._session))
        return Load(settings, SparkRunner(self._session))

    def _start(self, sink: Sink, once: bool) -> Any:
        """The query of a sink; None where a batch was enough."""
        frame = self._frames[sink.source]
        try:
            if not frame.isStreaming:
                self._write_batch(sink, frame)
                return None
            return self._start_stream(sink, frame, once)
        except LakeError:
            raise
        except Exception as error:
            raise_sentence(error)
            raise LakeError(f"Sink {sink.name} cannot be written: {first_line(error)}") from error

    def _start_stream(self, sink: Sink, frame: DataFrame, once: bool) -> Any:
        checkpoint = os.path.join(self._directory, "checkpoints", sink.name)
        if isinstance(sink, TopicSink):
            frame = frame.observe(OBSERVED, *_counts(frame))
        writer = frame.writeStream.queryName(sink.name).option("checkpointLocation", checkpoint)
        writer = writer.outputMode(sink.mode if isinstance(sink, TopicSink) else APPEND)
        if once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._pipeline.interval_s} seconds")
        if isinstance(sink, TopicSink):
            options = {
                **_prefixed(self._pipeline.kafka),
                "topic": sink.topic,
                "delivery": sink.delivery,
                **sink.options,
            }
            if sink.mode == UPDATE:
                return writer.foreachBatch(TopicBatches(options, checkpoint)).start()
            return writer.format("moldau").options(**options).start()
        name = f"pipeline/{self._pipeline.name}/{sink.name}"
        on_written = partial(self._on_written, sink.name) if _calls_back_here(self._session) else None
        batches = BatchSink(name, sink.table, checkpoint, sink.format, sink.partition_by, on_written)
        return writer.foreachBatch(batches).start()

    def _on_written(self, name: str, batch: int, rows: int, size: int, files: int) -> None:
        self._written[name, batch] = (rows, size, files)

    def _write_batch(self, sink: Sink, frame: DataFrame) -> None:
        began = time.monotonic()
        if isinstance(sink, TopicSink):
            options = {**_prefixed(self._pipeline.kafka), "topic": sink.topic, "delivery": sink.delivery}
            rows, size = _write_observed(frame, {**options, **sink.options})
            seconds = time.monotonic() - began
            self._tell(RoundStats(now_ms(), seconds, rows, size, NO_FILES, step=sink.name, rows_out=rows))
            return
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(frame.schema, timezone="UTC")
        directory = local_path(sink.table)
        table = open_or_create(directory, sink.format, schema, sink.partition_by)
        table.evolve(schema)
        results = write_frame(frame, write_settings(table, LoadSettings({}, directory)), schema)
        files = [file for result in results for file in result.files]
        rows = sum(result.rows for result in results)
        version = table.append(files, Positions(), Positions(), Note("batch", {"rows": rows}))
        seconds = time.monotonic() - began
        self._tell(
            RoundStats(
                now_ms(),
                seconds,
                rows,
                sum(file.size for file in files),
                len(files),
                version,
                step=sink.name,
                rows_out=rows,
            )
        )

    # Progress

    def _watch(self, queries: list[tuple[str, Any]], loads: list[tuple[str, Load]], once: bool) -> None:
        """Runs the loads in this thread, and looks after the queries in between."""
        waiting = {name: load.run_once() if once else None for name, load in loads}
        due = dict.fromkeys(waiting, 0.0)
        while True:
            for name, load in loads:
                if name in waiting and time.monotonic() >= due[name]:
                    due[name] = time.monotonic() + self._pipeline.interval_s
                    if not self._load_round(name, load, waiting):
                        due[name] = 0.0
            self._look_at(queries)
            active = [query for _, query in queries if query.isActive]
            if once and not waiting and not active:
                break
            if not once and self._stop():
                break
            if not (once and waiting):
                time.sleep(POLL_S)
        self._look_at(queries)

    def _load_round(self, name: str, load: Load, waiting: dict[str, Any]) -> bool:
        """One round of a load; False if more is waiting right away."""
        rounds = waiting[name]
        if rounds is None:
            for item in load.run_once():
                self._tell(_named(item.stats(), name))
            return True
        done = next(rounds, None)
        if done is None:
            del waiting[name]
            return True
        self._tell(_named(done.stats(), name))
        return False

    def _look_at(self, queries: list[tuple[str, Any]]) -> None:
        for name, query in queries:
            for progress in query.recentProgress:
                batch = int(progress["batchId"])
                if batch > self._seen.get(name, -1) and int(progress["numInputRows"]) > 0:
                    self._seen[name] = batch
                    self._tell(_stats(name, progress, self._written.pop((name, batch), None)))
            error = query.exception()
            if error is not None:
                raise_sentence(error)
                raise LakeError(f"Sink {name} failed: {first_line(error)}") from error

    def _tell(self, item: RoundStats) -> None:
        self._log.add(item)
        self._on_round(item)


def _named(item: RoundStats, step: str) -> RoundStats:
    from dataclasses import replace

    return replace(item, step=step)


def topic_options(pipeline: Pipeline, source: TopicSource) -> dict[str, str]:
    """The options of Spark's source for a topic of the pipeline."""
    options = {"kafka.isolation.level": "read_committed", **_prefixed(pipeline.kafka)}
    options |= {"subscribe": source.topic} if source.topic else {"subscribePattern": source.pattern}
    options["startingOffsets"] = source.start
    if source.value_format:
        options["valueFormat"] = source.value_format
    if source.value_schema:
        options["valueSchema"] = source.value_schema
    return {**options, **source.options}


def _prefixed(settings: Mapping[str, str]) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in settings.items()}


def _calls_back_here(session: SparkSession) -> bool:
    """Whether foreachBatch runs in this process; Spark Connect runs it where the server is."""
    return "connect" not in type(session).__module__


def _counts(frame: DataFrame) -> list[Any]:
    """What Spark counts on the way: rows, and the bytes of their keys and values."""
    functions = need("pyspark.sql.functions")
    nothing = functions.lit(0)
    sizes = [
        functions.coalesce(functions.octet_length(frame[name]), nothing)
        for name, kind in frame.dtypes
        if name in ("key", "value") and kind in ("string", "binary")
    ]
    return [
        functions.count(functions.lit(1)).alias("rows"),
        functions.coalesce(functions.sum(sum(sizes, nothing)), nothing).alias("bytes"),
    ]


def _write_observed(frame: DataFrame, options: Mapping[str, str]) -> tuple[int, int]:
    """Writes rows to a topic; returns how many and of how many bytes."""
    observation = need("pyspark.sql").Observation(OBSERVED)
    counted = frame.observe(observation, *_counts(frame))
    counted.write.format("moldau").mode("append").options(**options).save()
    return int(observation.get["rows"]), int(observation.get["bytes"])


def _observed(progress: Mapping[str, Any]) -> tuple[int, int, int]:
    """Rows and bytes that went to a topic, as far as Spark tells; there are no files."""
    try:
        row = progress["observedMetrics"][OBSERVED]
        found = row if isinstance(row, Mapping) else row.asDict()
        return int(found["rows"]), int(found["bytes"]), NO_FILES
    except (KeyError, TypeError, AttributeError, ValueError):
        return -1, -1, -1


def _phases(durations: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: sum(int(durations.get(part, 0)) for part in parts) / 1000
        for name, parts in PHASES.items()
        if any(part in durations for part in parts)
    }


def _stats(name: str, progress: Mapping[str, Any], written: tuple[int, int, int] | None = None) -> RoundStats:
    """What Spark says about a micro-batch, and the sink about what it wrote, as a round."""
    lag: dict[str, int] = {}
    for source in progress["sources"]:
        end, latest = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        for item, offset in latest.items():
            lag[item] = max(0, offset - end.get(item, offset))
    seconds = int(progress["durationMs"].get("triggerExecution", 0)) / 1000
    rows_out, size, files = _observed(progress) if written is None else written
    return RoundStats(
        now_ms(),
        seconds,
        int(progress["numInputRows"]),
        size,
        files,
        int(progress["batchId"]),
        lag,
        name,
        rows_out,
        _phases(progress["durationMs"]),
    )


def _offsets(text: Any) -> dict[str, int]:
    """orders-0 -> offset, of the offsets of our source; empty for any other source."""
    try:
        data = json.loads(text) if isinstance(text, str) else text
        return {f"{topic}-{number}": int(offset) for topic, rows in data.items() for number, offset in rows.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
