"""`moldau pipeline run|validate|status|init`: pipelines that are written down in TOML files."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import click

from moldau.cli.lake_options import lake_errors, master_options, spark_settings
from moldau.cli.options import format_option
from moldau.cli.output import plural, print_fields, print_json, print_table, print_title, say

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
    from moldau.lake.pipeline_file import read_pipeline
    from moldau.lake.pipeline_run import run_pipeline
    from moldau.lake.run_log import RunLog
    from moldau.lake.session import start_session
    from moldau.lake.table import local_path

    pipeline = read_pipeline(file)
    session = start_session(master, f"moldau {pipeline.name}", {**pipeline.spark, **spark_settings(spark_conf)})
    folder = os.path.join(local_path(pipeline.state_folder), "runs")
    log = RunLog(folder, f"pipeline {pipeline.name}", {"file": file, "master": master or "local"})
    stopped: list[int] = []

    def stop(number: int, frame: object) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)

    if not once:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
    try:
        with RunView(log.stats, quiet or output_format == "json") as view:
            run_pipeline(pipeline, session, once, view.on_round, lambda: bool(stopped), log)
    finally:
        if report is not None:
            from moldau.lake.report import render_report

            with open(report, "w", encoding="utf-8") as page:
                page.write(render_report(log.stats))
    if output_format == "json":
        stats = log.stats
        print_json(
            {"name": pipeline.name, "rows": stats.rows, "rounds": len(stats.rounds), "seconds": round(stats.seconds, 3)}
        )
    say(
        output_format,
        f"{pipeline.name}: {plural(log.stats.rows, 'record')} in {plural(len(log.stats.rounds), 'round')},"
        f" {log.stats.seconds:.1f} s.",
    )


@click.command()
@file_argument
@format_option
@lake_errors
def validate(file: str, output_format: str) -> None:
    """Check a pipeline's file without running it: names, settings, Python functions, and that"
    " nothing is left hanging."""
    from moldau.lake.pipeline_file import read_pipeline

    pipeline = read_pipeline(file)
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
        f" {plural(len(pipeline.sinks), 'sink')}."
    )


@click.command()
@file_argument
@format_option
@lake_errors
def status(file: str, output_format: str) -> None:
    """Show whether a pipeline runs, and what its last run did."""
    from moldau.lake.lock import FOLDER, is_held, read_holder
    from moldau.lake.pipeline_file import read_pipeline
    from moldau.lake.run_log import read_run, run_files
    from moldau.lake.table import local_path

    pipeline = read_pipeline(file)
    folder = local_path(pipeline.state_folder)
    lock = os.path.join(folder, FOLDER, "lock")
    running = is_held(lock)
    files = run_files(os.path.join(folder, "runs"))
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
    rows = []
    for sink in pipeline.sinks:
        rounds = [item for item in run_stats.rounds if item.step == sink.name]
        if rounds:
            records = sum(item.rows for item in rounds)
            rows.append(
                [sink.name, len(rounds), f"{records:,}", f"{rounds[-1].seconds:.2f}", f"{rounds[-1].lag_total:,}"]
            )
    if rows:
        names = ("SINK", "ROUNDS", "RECORDS", "LAST SECONDS", "LAG")
        print_table(names, rows, right=names[1:])


@click.command()
@file_argument
@format_option
@lake_errors
def init(file: str, output_format: str) -> None:
    """Write a pipeline's file to begin with."""
    from moldau.lake.pipeline_file import write_template

    write_template(file)
    if output_format == "json":
        print_json({"file": file})
    say(output_format, f"{file} is there. Change it, then: moldau pipeline validate {file}")
