"""`moldau load`: topics into a lake table, incrementally and exactly once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from moldau.cli.completion import complete_topics
from moldau.cli.lake_options import lake_errors, master_options, spark_settings
from moldau.cli.options import CONSUMER, Connection, connected
from moldau.cli.output import bytes_text, plural, print_json
from moldau.cli.stopping import Stopping

if TYPE_CHECKING:
    from moldau.lake.load import Load, LoadSettings, Round
    from moldau.lake.run_log import RunLog

FORMATS = ("delta", "iceberg", "parquet")
CODECS = ("zstd", "snappy", "lz4", "gzip", "none")


@click.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@click.option("--to", "path", required=True, metavar="PATH", help="The directory of the table; a new one is made.")
@click.option(
    "--table-format",
    type=click.Choice(FORMATS),
    help="The table's format. Default: what it is; delta if new.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["table", "json", *FORMATS]),
    help="Output for people or for programs (table, json); a format of the table is taken here too.",
)
@click.option("--pattern", metavar="REGEX", help="All topics whose whole name matches, also those that come later.")
@click.option(
    "--partition-by",
    multiple=True,
    metavar="COLUMN",
    help="Divide files by `date`, the day (UTC) of records, or by a column; may be repeated.",
)
@click.option(
    "--mode",
    type=click.Choice(["append", "upsert"]),
    default="append",
    show_default=True,
    help="upsert: one row for each key, the newest; tombstones delete. For compacted topics and change data.",
)
@click.option(
    "--envelope", type=click.Choice(["debezium"]), help="With --mode upsert: what change capture wraps rows into."
)
@click.option(
    "--once/--continuous", default=True, show_default=True, help="Load what is there, or go on until stopped."
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --continuous: at least so long from commit to commit, unless there is a backlog.",
)
@click.option(
    "--from",
    "start",
    default="earliest",
    show_default=True,
    metavar="WHERE",
    help="Where the first load of a topic begins: earliest, latest, or milliseconds since 1970.",
)
@click.option("--until", metavar="WHERE", help="Where to end: latest, or milliseconds since 1970. Default: latest.")
@click.option("--headers", is_flag=True, help="Also load the headers.")
@click.option("--value-format", metavar="FORMAT", help="Decode values into columns: json, avro, protobuf, csv, string.")
@click.option("--value-schema", metavar="SCHEMA", help="The schema of values, or @FILE.")
@click.option("--value-schema-message", metavar="NAME", help="The message of a protobuf schema.")
@click.option("--value-schema-directory", metavar="PATH", help="Schemas by the ids in front of values.")
@click.option(
    "--on-bad-record",
    type=click.Choice(["fail", "drop", "deadLetter"]),
    help="What to do with values that cannot be decoded. Default: fail.",
)
@click.option("--dead-letter-topic", metavar="TOPIC", help="Where values go that cannot be decoded.")
@click.option(
    "--on-data-loss",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="What to do when records were deleted before they were loaded.",
)
@click.option("--read-uncommitted", is_flag=True, help="Also load records of open and aborted transactions.")
@click.option(
    "--commit-group", metavar="GROUP", help="Tell this group how far the load is, so that tools show its lag."
)
@click.option("--compression", type=click.Choice(CODECS), default="zstd", show_default=True, help="Of the files.")
@click.option("--fsync", is_flag=True, help="Write files through to the disk before a commit names them.")
@click.option(
    "--records-per-commit", type=click.IntRange(min=1), metavar="N", help="At most so many offsets in a commit."
)
@click.option("--records-per-task", type=click.IntRange(min=1), metavar="N", help="At most so many offsets in a task.")
@click.option("--report", metavar="FILE.html", help="Write a summary with plots when the load ends.")
@click.option("--json", "as_json", is_flag=True, hidden=True, help="The same as --format json.")
@master_options
@connected
@lake_errors
def load(
    connection: Connection,
    topics: tuple[str, ...],
    path: str,
    mode: str,
    once: bool,
    interval_s: float,
    report: str | None,
    formats: tuple[str, ...],
    table_format: str | None,
    as_json: bool,
    master: str | None,
    spark_conf: tuple[str, ...],
    **more: object,
) -> None:
    """Load topics into a lake table: rows and offsets are committed together.

    Started again, it goes on behind the last commit, whatever ended it before.
    Nothing is missing, and nothing is there twice.

    \b
    Examples:
      moldau load orders --to lake/orders
      moldau load clicks --to lake/clicks --partition-by date --continuous --interval 60
      moldau load customers --to lake/customers --mode upsert --value-format json --value-schema 'id long, name string'
    """
    from moldau.lake.run_log import RunLog
    from moldau.lake.session import parallelism, start_session
    from moldau.lake.table import local_path
    from moldau.lake.tasks import SparkRunner

    as_json = as_json or "json" in formats
    more["table_format"] = _table_format(table_format, formats)
    settings = _settings(connection, topics, path, more)
    name = f"load {', '.join(topics) or more['pattern']}"
    opened = _open(settings, mode, None)  # wrong options are told before Spark takes its seconds to start
    del opened
    session = start_session(master, f"moldau {name}", spark_settings(spark_conf))
    settings = _with_parallelism(settings, parallelism(session))
    load_of: Load = _open(settings, mode, SparkRunner(session))
    directory = os.path.join(local_path(path), "_moldau", "runs")
    with load_of:
        log = RunLog(
            directory, name, {"table": load_of.directory, "format": load_of.table.format, "master": master or "local"}
        )
        log.begin()
        _run(load_of, log, once, interval_s, as_json)
    if report is not None:
        from moldau.lake.report import render_report

        with open(report, "w", encoding="utf-8") as file:
            file.write(render_report(log.stats))
    _tell(log, load_of.directory, as_json)


def _table_format(named: str | None, formats: tuple[str, ...]) -> str | None:
    chosen = dict.fromkeys([*([] if named is None else [named]), *(item for item in formats if item in FORMATS)])
    if len(chosen) > 1:
        raise click.UsageError(f"The table cannot be {' and '.join(chosen)} at once: name one format.")
    return next(iter(chosen), None)


def _open(settings: LoadSettings, mode: str, runner: object) -> Load:
    from moldau.lake.load import Load
    from moldau.lake.tasks import run_here

    chosen = run_here if runner is None else runner
    if mode == "upsert":
        from moldau.lake.changelog import ChangelogLoad

        return ChangelogLoad(settings, chosen)  # type: ignore[arg-type]
    return Load(settings, chosen)  # type: ignore[arg-type]


def _run(load_of: Load, log: RunLog, once: bool, interval_s: float, quiet: bool) -> None:
    from moldau.cli.run_view import RunView

    try:
        with RunView(log.stats, quiet) as view:
            for done in _rounds(load_of, once, interval_s):
                log.add(done.stats())
                view.on_round(log.stats.rounds[-1])
    except BaseException as error:
        log.end(str(error) or type(error).__name__)
        raise
    log.end()


def _rounds(load_of: Load, once: bool, interval_s: float) -> Iterator[Round]:
    if once:
        yield from load_of.run_once()
        return
    with Stopping(lambda: click.echo("Ending after this round; once more ends at once.", err=True)) as stop:
        yield from load_of.run_continuously(interval_s, lambda: stop.requested)


def _settings(connection: Connection, topics: tuple[str, ...], path: str, more: dict[str, object]) -> LoadSettings:
    from moldau.lake.load import ROUND_OFFSETS_MAX, LoadSettings

    options = {f"kafka.{name}": str(value) for name, value in connection.config(CONSUMER).items()}
    if bool(topics) == bool(more["pattern"]):
        raise click.UsageError("Name topics, or a --pattern, and not both.")
    options.update({"subscribe": ",".join(topics)} if topics else {"subscribePattern": str(more["pattern"])})
    options |= _bounds(str(more["start"]), more["until"])
    options["kafka.isolation.level"] = "read_uncommitted" if more["read_uncommitted"] else "read_committed"
    options["failOnDataLoss"] = "false" if more["on_data_loss"] == "skip" else "true"
    options["includeHeaders"] = "true" if more["headers"] else "false"
    for flag, name in (
        ("value_format", "valueFormat"),
        ("value_schema", "valueSchema"),
        ("value_schema_message", "valueSchemaMessage"),
        ("value_schema_directory", "valueSchemaDirectory"),
        ("on_bad_record", "onBadRecord"),
        ("dead_letter_topic", "deadLetterTopic"),
        ("commit_group", "commitGroup"),
    ):
        if more[flag]:
            options[name] = _text_or_file(str(more[flag])) if flag == "value_schema" else str(more[flag])
    partition_by = more["partition_by"]
    per_commit, per_task = more["records_per_commit"], more["records_per_task"]
    assert isinstance(partition_by, tuple)
    return LoadSettings(
        options,
        path,
        None if more["table_format"] is None else str(more["table_format"]),
        partition_by,
        str(more["compression"]),
        fsync=bool(more["fsync"]),
        round_offsets_max=per_commit if isinstance(per_commit, int) else ROUND_OFFSETS_MAX,
        task_offsets_max=per_task if isinstance(per_task, int) else None,
        envelope="" if more["envelope"] is None else str(more["envelope"]),
    )


def _bounds(start: str, until: object) -> dict[str, str]:
    options: dict[str, str] = {}
    if start.isdigit():
        options |= {"startingTimestamp": start, "startingOffsetsByTimestampStrategy": "latest"}
    elif start in ("earliest", "latest"):
        options["startingOffsets"] = start
    else:
        raise click.UsageError(f"--from is {start}: write earliest, latest, or milliseconds since 1970.")
    if until is not None and until != "latest":
        if not str(until).isdigit():
            raise click.UsageError(f"--until is {until}: write latest, or milliseconds since 1970.")
        options["endingTimestamp"] = str(until)
    return options


def _text_or_file(text: str) -> str:
    if not text.startswith("@"):
        return text
    with open(text[1:], encoding="utf-8") as file:
        return file.read()


def _with_parallelism(settings: LoadSettings, cores: int) -> LoadSettings:
    from dataclasses import replace

    return replace(settings, parallelism=cores)


def _tell(log: RunLog, directory: str, as_json: bool) -> None:
    run = log.stats
    if as_json:
        print_json(
            {
                "table": directory,
                "records": run.rows,
                "files": run.files,
                "bytes": run.bytes,
                "commits": len(run.rounds),
                "seconds": round(run.seconds, 3),
                "version": run.rounds[-1].version if run.rounds else None,
            }
        )
    elif not run.rounds:
        click.echo(f"{directory} has everything already.")
    else:
        click.echo(
            f"{plural(run.rows, 'record')} loaded into {directory} in {run.seconds:.1f} s:"
            f" {plural(len(run.rounds), 'commit')}, {plural(run.files, 'file')}, {bytes_text(run.bytes)}."
        )
