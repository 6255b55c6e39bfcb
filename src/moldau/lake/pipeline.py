"""A pipeline as data: sources, steps and sinks, checked as a whole before anything runs.

`Pipeline` is what a TOML file becomes (pipeline_file.py) and what programs build themselves; pipeline_run.py runs
it. A source, step or sink has a name; steps and sinks read what was named before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.lake.errors import LakeError
from moldau.lake.table import FORMATS

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PIPELINE_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")

APPEND = "append"
UPSERT = "upsert"
UPDATE = "update"


@dataclass(frozen=True)
class TopicSource:
    """Records of topics, as Spark's source `moldau` gives them; read as a stream."""

    name: str
    topic: str = ""
    pattern: str = ""
    # Where a first run begins: earliest, latest, or offsets as JSON.
    start: str = "earliest"
    value_format: str = ""
    value_schema: str = ""
    envelope: str = ""
    # Late records: those older than the newest by more than this are left out of windows, as in "10 minutes".
    watermark: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSource:
    """A lake table as it is when the run begins."""

    name: str
    table: str


@dataclass(frozen=True)
class FileSource:
    """Files that Spark reads by itself: csv, json, parquet, orc, text."""

    name: str
    files: str
    format: str = "parquet"
    schema: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


Source = TopicSource | TableSource | FileSource


@dataclass(frozen=True)
class SqlStep:
    """A query over everything that was named before."""

    name: str
    sql: str


@dataclass(frozen=True)
class PythonStep:
    """A function of DataFrames: called with the inputs in their order, it returns one."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]


Step = SqlStep | PythonStep


@dataclass(frozen=True)
class TopicSink:
    """Rows to a topic: columns key, value, headers, partition; exactly once unless told otherwise."""

    name: str
    source: str
    topic: str
    delivery: str = "exactly-once"
    # What Spark writes of a query that aggregates: what is final (append), or what a batch has changed (update).
    mode: str = APPEND
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSink:
    """Rows to a lake table, exactly once."""

    name: str
    source: str
    table: str
    format: str | None = None
    partition_by: tuple[str, ...] = ()
    mode: str = APPEND


Sink = TopicSink | TableSink


@dataclass(frozen=True)
class Pipeline:
    """All of it. state: the directory of checkpoints, lock and run logs. kafka: client settings of all
    sources and sinks."""

    name: str
    sources: Sequence[Source]
    sinks: Sequence[Sink]
    steps: Sequence[Step] = ()
    state: str = ""
    kafka: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    # Seconds between micro-batches of a continuous run.
    interval_s: float = 10.0

    def check(self) -> None:
        """Raises LakeError with all that is wrong, one sentence a line."""
        problems = list(_problems(self))
        if problems:
            raise LakeError("\n".join(problems))

    @property
    def state_directory(self) -> str:
        return self.state or f".moldau/{self.name}"

    def source(self, name: str) -> Source | None:
        return next((item for item in self.sources if item.name == name), None)

    def is_plain_load(self, sink: Sink) -> bool:
        """Whether rows go from topics to a table as they are, which needs no query."""
        return isinstance(sink, TableSink) and isinstance(self.source(sink.source), TopicSource)


def _problems(pipeline: Pipeline) -> Sequence[str]:
    found: list[str] = []
    if not _PIPELINE_NAME.fullmatch(pipeline.name):
        found.append(f"The pipeline's name {pipeline.name!r} may have letters, digits, dots, dashes and underscores.")
    if not pipeline.sources:
        found.append("The pipeline has no source: name a topic, a table or files.")
    if not pipeline.sinks:
        found.append("The pipeline has no sink: name a topic or a table.")
    if pipeline.interval_s <= 0:
        found.append("The interval must be above 0 seconds.")
    known: list[str] = []
    for item in (*pipeline.sources, *pipeline.steps):
        found += _name_problems(item.name, known)
        if isinstance(item, PythonStep):
            found += [_unknown("step", item.name, name, known) for name in item.inputs if name not in known]
        known.append(item.name)
    for source in pipeline.sources:
        found += _source_problems(pipeline, source)
    for step in pipeline.steps:
        if isinstance(step, SqlStep) and not step.sql.strip():
            found.append(f"Step {step.name} has no SQL.")
    names: list[str] = []
    for sink in pipeline.sinks:
        if sink.name in names:
            found.append(f"Two sinks have the name {sink.name}: their progress would be mixed up. Rename one.")
        names.append(sink.name)
        found += _sink_problems(pipeline, sink, known)
    return found


def _name_problems(name: str, known: Sequence[str]) -> list[str]:
    if not _NAME.fullmatch(name):
        return [f"The name {name!r} cannot stand in SQL: use letters, digits and underscores."]
    if name in known:
        return [f"The name {name} is there twice: rename one."]
    return []


def _source_problems(pipeline: Pipeline, source: Source) -> list[str]:
    if not isinstance(source, TopicSource):
        return []
    problems = []
    if bool(source.topic) == bool(source.pattern):
        problems.append(f"Source {source.name} needs either a topic or a pattern.")
    if not _bootstrap(pipeline, source.options):
        problems.append(f"Source {source.name} does not know its brokers: write bootstrap.servers below [kafka].")
    if source.value_format in ("json", "csv") and not source.value_schema:
        problems.append(f"Source {source.name} needs a value_schema, such as 'id BIGINT, name STRING'.")
    return problems


def _sink_problems(pipeline: Pipeline, sink: Sink, known: Sequence[str]) -> list[str]:
    problems = []
    if sink.source not in known:
        problems.append(_unknown("sink", sink.name, sink.source, known))
    if isinstance(sink, TopicSink):
        if not _bootstrap(pipeline, sink.options):
            problems.append(f"Sink {sink.name} does not know its brokers: write bootstrap.servers below [kafka].")
        if sink.mode not in (APPEND, UPDATE):
            problems.append(f"Sink {sink.name} has mode {sink.mode}: topics take {APPEND} or {UPDATE}.")
        if sink.delivery not in ("exactly-once", "at-least-once"):
            problems.append(f"Sink {sink.name} has delivery {sink.delivery}: write exactly-once or at-least-once.")
        return problems
    if sink.format is not None and sink.format not in FORMATS:
        problems.append(f"Sink {sink.name} has format {sink.format}: there are {', '.join(FORMATS)}.")
    if sink.mode not in (APPEND, UPSERT):
        problems.append(f"Sink {sink.name} has mode {sink.mode}: tables take {APPEND} or {UPSERT}.")
    if sink.mode == UPSERT and not pipeline.is_plain_load(sink):
        problems.append(
            f"Sink {sink.name} upserts, which works straight from a topic only: write `from` = a topic source."
        )
    return problems


def _bootstrap(pipeline: Pipeline, options: Mapping[str, str]) -> str:
    return options.get("kafka.bootstrap.servers", "") or pipeline.kafka.get("bootstrap.servers", "")


def _unknown(kind: str, name: str, wanted: str, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(wanted, list(known), 1)
    hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(known) or 'none'}."
    return f"The {kind} {name} reads from {wanted!r}, which no source or earlier step is named.{hint}"
