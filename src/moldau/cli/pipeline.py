"""`moldau pipeline run|validate|status|init`: pipelines that are written down in TOML files."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

import click

from moldau.cli.lake_options import lake_errors, master_options, spark_settings
from moldau.cli.options import Connection, connected, format_option
from moldau.cli.output import plural, print_fields, print_json, print_table, print_title, say
from moldau.cli.stopping import Stopping

if TYPE_CHECKING:
    from moldau.lake.pipeline import Pipeline
    from moldau.lake.run_log import RoundStats, RunStats

file_argument = click.argument("file", metavar="FILE.toml", type=click.Path(dir_okay=False))


@click.command()
@file_argument
@click.option("--once/--continuous", default=True, show_default=True, help="Do what is there, or go on until stopped.")
@click.option("--report", metavar="FILE.html", help="Write a summary with plots when the run ends.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@format_option
@master_options
@lake_errors
def run(
    file: str,
    once: bool,
    report: str | None,
    quiet: bool,
    output_format: str,
    master: str | None,
    spark_conf: tuple[str, ...],
) -> None:
    """Run a pipeline. Started again after whatever ended it, it goes on where its sinks are.

    \b
    Examples:
      moldau pipeline run orders.toml
      moldau pipeline run orders.toml --continuous --master spark://spark.example:7077 --report orders.html
    """
    from moldau.cli.run_view import RunView
    from moldau.lake.ask_brokers import ask_brokers
    from moldau.lake.pipeline_file import read_pipeline
    from moldau.lake.pipeline_run import run_pipeline
    from moldau.lake.run_log import RunLog
    from moldau.lake.session import start_session
    from moldau.lake.table import local_path

    pipeline = read_pipeline(file)
    ask_brokers(pipeline)
    began = time.monotonic()
    if not quiet and output_format == "table":
        click.echo("Starting Spark…", err=True)
    session = start_session(master, f"moldau {pipeline.name}", {**pipeline.spark, **spark_settings(spark_conf)})
    details = {"file": file, "master": master or "local", "spark_start_s": round(time.monotonic() - began, 3)}
    directory = os.path.join(local_path(pipeline.state_directory), "runs")
    log = RunLog(directory, f"pipeline {pipeline.name}", details)
    stop = Stopping()
    try:
        with contextlib.ExitStack() as stack:
            if not once:
                stack.enter_context(stop)
            view = stack.enter_context(RunView(log.stats, quiet or output_format == "json"))
            run_pipeline(pipeline, session, once, view.on_round, lambda: stop.requested, log)
    finally:
        if report is not None:
            from moldau.lake.report import render_report

            with open(report, "w", encoding="utf-8") as page:
                page.write(render_report(log.stats))
    if output_format == "json":
        stats = log.stats
        print_json(
            {
                "name": pipeline.name,
                "rows": stats.rows,
                "rows_out": _known(stats.rows_out),
                "rounds": len(stats.rounds),
                "seconds": round(stats.seconds, 3),
                "sinks": _sink_objects(stats),
            }
        )
    out = "" if log.stats.rows_out < 0 else f", {plural(log.stats.rows_out, 'row')} out"
    say(
        output_format,
        f"{pipeline.name}: {plural(log.stats.rows, 'record')} in {plural(len(log.stats.rounds), 'round')}{out},"
        f" {log.stats.seconds:.1f} s.",
    )


def _known(count: int) -> int | None:
    return None if count < 0 else count


def _sink_objects(stats: RunStats) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "rounds": len(sink.rounds),
            "rows": sink.rows,
            "rows_out": _known(sink.rows_out),
            "files": _known(sink.files),
            "bytes": _known(sink.bytes),
        }
        for name, sink in stats.sinks().items()
    ]


@click.command()
@file_argument
@click.option("--connect", is_flag=True, help="Also ask the brokers: whether they respond, and have the topics.")
@format_option
@lake_errors
def validate(file: str, connect: bool, output_format: str) -> None:
    """Check a pipeline's file without running it: names, settings, Python functions, and that nothing is left
    hanging."""
    from moldau.lake.pipeline_file import read_pipeline

    pipeline = read_pipeline(file)
    if connect:
        _check_topics(pipeline)
    if output_format == "json":
        print_json(
            {
                "name": pipeline.name,
                "sources": [item.name for item in pipeline.sources],
                "steps": [item.name for item in pipeline.steps],
                "sinks": [item.name for item in pipeline.sinks],
            }
        )
        return
    click.echo(
        f"{pipeline.name} is fine: {plural(len(pipeline.sources), 'source')}, {plural(len(pipeline.steps), 'step')},"
        f" {plural(len(pipeline.sinks), 'sink')}.{' Its brokers respond.' if connect else ''}"
    )


def _check_topics(pipeline: Pipeline) -> None:
    from moldau.lake.ask_brokers import ask_brokers
    from moldau.lake.errors import LakeError

    missing = ask_brokers(pipeline)
    if missing:
        raise LakeError(
            f"The brokers respond, but have no topic {' and no topic '.join(missing)}: `moldau topic create` makes it."
        )


@click.command()
@file_argument
@format_option
@lake_errors
def status(file: str, output_format: str) -> None:
    """Show whether a pipeline runs, and what its last run did."""
    from moldau.lake.lock import DIRECTORY, is_held, read_holder
    from moldau.lake.pipeline_file import read_pipeline
    from moldau.lake.run_log import read_run, run_files
    from moldau.lake.table import local_path

    pipeline = read_pipeline(file)
    directory = local_path(pipeline.state_directory)
    lock = os.path.join(directory, DIRECTORY, "lock")
    running = is_held(lock)
    files = run_files(os.path.join(directory, "runs"))
    last = read_run(files[-1]) if files else None
    if output_format == "json":
        print_json({"name": pipeline.name, "running": running, "runs": len(files), "last": _as_object(last)})
        return
    print_title(pipeline.name)
    print_fields([("runs now", read_holder(lock) if running else "no"), ("last run", _sentence(last, running))])
    if last is not None and last.rounds:
        _print_sinks(pipeline, last)


def _as_object(run_stats: RunStats | None) -> dict[str, object] | None:
    if run_stats is None:
        return None
    return {
        "began_ms": run_stats.began_ms,
        "ended_ms": run_stats.ended_ms or None,
        "error": run_stats.error or None,
        "rounds": len(run_stats.rounds),
        "records": run_stats.rows,
        "rows_out": _known(run_stats.rows_out),
        "sinks": _sink_objects(run_stats),
        "lag": sum(item.lag_total for item in _newest(run_stats).values()),
    }


def _newest(run_stats: RunStats) -> dict[str, RoundStats]:
    return {item.step: item for item in run_stats.rounds}


def _sentence(run_stats: RunStats | None, running: bool) -> str:
    if run_stats is None:
        return "never"
    began = time.strftime("%F %T", time.localtime(run_stats.began_ms / 1000))
    if run_stats.error:
        return f"{began}, failed after {run_stats.seconds:.0f} s: {run_stats.error}"
    if not run_stats.ended_ms:
        return f"{began}, {'running' if running else 'it was killed'}"
    return f"{began}, {run_stats.seconds:.1f} s"


def _print_sinks(pipeline: Pipeline, run_stats: RunStats) -> None:
    from moldau.cli.run_view import count_text, size_text

    rows = []
    found = run_stats.sinks()
    for name in (sink.name for sink in pipeline.sinks if sink.name in found):
        sink, last = found[name], found[name].rounds[-1]
        moved = [f"{sink.rows:,}", count_text(sink.rows_out), count_text(sink.files), size_text(sink.bytes)]
        rows.append([name, len(sink.rounds), *moved, f"{last.seconds:.2f}", f"{last.lag_total:,}"])
    if rows:
        names = ("SINK", "ROUNDS", "RECORDS IN", "ROWS OUT", "FILES", "WRITTEN", "LAST SECONDS", "LAG")
        print_table(names, rows, right=names[1:])


@click.command()
@file_argument
@format_option
@connected
@lake_errors
def init(connection: Connection, file: str, output_format: str) -> None:
    """Write a pipeline's file to begin with, for the brokers that are in use here."""
    from moldau.lake.pipeline_file import write_template

    write_template(file, connection.bootstrap_server)
    if output_format == "json":
        print_json({"file": file})
    say(output_format, f"{file} is there. Change it, then: moldau pipeline validate {file}")
