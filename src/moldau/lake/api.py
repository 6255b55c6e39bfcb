"""The lake for programs: load topics, read tables as DataFrames, replay them. What the command line does, as functions.

    from moldau.lake.api import load_topics, table_frame

    load_topics("clicks", "lake/clicks", bootstrap_servers="localhost:9092", partition_by=["date"])
    table_frame("lake/clicks").groupBy("date").count().show()

All of them use the Spark session of the program, or start one on all cores of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from moldau.lake.load import Load, LoadSettings
from moldau.lake.open_table import open_table
from moldau.lake.run_log import RunStats, now_ms
from moldau.lake.session import parallelism, start_session
from moldau.lake.tasks import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load_topics(
    topics: str | Sequence[str],
    path: str,
    *,
    bootstrap_servers: str,
    format: str | None = None,
    partition_by: Sequence[str] = (),
    mode: str = "append",
    envelope: str = "",
    options: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
) -> RunStats:
    """Loads what the topics have now and the table has not; says what that was. options: those of
    the source `moldau`."""
    spark = session or start_session(None, "moldau load")
    names = topics if isinstance(topics, str) else ",".join(topics)
    given = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": names, **(options or {})}
    settings = LoadSettings(given, path, format, tuple(partition_by), envelope=envelope, parallelism=parallelism(spark))
    stats = RunStats(f"load {names}", now_ms())
    with _load_of(settings, mode, spark) as load:
        for done in load.run_once():
            stats.rounds.append(done.stats())
    stats.ended_ms = now_ms()
    return stats


def _load_of(settings: LoadSettings, mode: str, session: SparkSession) -> Load:
    if mode == "upsert":
        from moldau.lake.changelog import ChangelogLoad

        return ChangelogLoad(settings, SparkRunner(session))
    if mode != "append":
        raise ValueError(f"The mode is {mode!r}: write append or upsert.")
    return Load(settings, SparkRunner(session))


def table_frame(path: str, session: SparkSession | None = None) -> DataFrame:
    """The table as it is now."""
    from moldau.lake.frames import read_frame

    return read_frame(session or start_session(None, "moldau lake"), open_table(path))


def replay_table(
    path: str,
    topic: str,
    *,
    bootstrap_servers: str,
    start: datetime | None = None,
    end: datetime | None = None,
    run_id: str = "",
    keep_partitions: bool = True,
    session: SparkSession | None = None,
) -> int:
    """Sends rows of a time range to a topic, as they once were; returns how many. The same run_id
    is never sent twice."""
    from moldau.lake.replay import Selection, replay

    options = {"kafka.bootstrap.servers": bootstrap_servers}
    if run_id:
        options["runId"] = run_id
    chosen = Selection(_microseconds(start), _microseconds(end))
    spark = session or start_session(None, "moldau replay")
    return replay(spark, open_table(path), topic, options, chosen, keep_partitions)


def _microseconds(when: datetime | None) -> int | None:
    return None if when is None else int(when.timestamp() * 1_000_000)
