"""`moldau lake replay`: sends the rows of a lake table back to a topic."""

from __future__ import annotations

import click

from moldau.cli.completion import complete_topics
from moldau.cli.lake_options import lake_errors, master_options, spark_settings
from moldau.cli.options import PRODUCER, Connection, connected, format_option
from moldau.cli.output import plural, print_json


@click.command()
@click.argument("path", metavar="PATH")
@click.option("--to", "target", required=True, metavar="TOPIC", shell_complete=complete_topics)
@click.option("--from-time", metavar="WHEN", help="Only records from this time on: 2026-11-15T10:00:00, or 7d ago.")
@click.option("--to-time", metavar="WHEN", help="Only records before this time.")
@click.option("--topic", "topics", multiple=True, help="Only rows that came from this topic; may be repeated.")
@click.option("--partition", "partitions", multiple=True, type=click.IntRange(min=0), help="Only this partition.")
@click.option("--by-key", is_flag=True, help="Let keys choose the partition, instead of the one a row came from.")
@click.option("--run-id", metavar="NAME", help="The name of this replay: with the same name, it is never done twice.")
@format_option
@master_options
@connected
@lake_errors
def replay(
    connection: Connection,
    path: str,
    target: str,
    from_time: str | None,
    to_time: str | None,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    by_key: bool,
    run_id: str | None,
    output_format: str,
    master: str | None,
    spark_conf: tuple[str, ...],
) -> None:
    """Send the rows of a table to a topic, with their keys, values, headers, timestamps and partitions.

    All of them become visible at once, to readers with isolation.level=read_committed. The table is not changed.
    A topic that is missing is made, with as many partitions as the rows name.

    \b
    Examples:
      moldau lake replay lake/orders --to orders-again --from-time 2026-11-01 --to-time 2026-11-02
      moldau lake replay lake/orders --to orders --by-key --run-id backfill-7
    """
    from moldau.lake.open_table import open_table
    from moldau.lake.replay import Selection, plan_replay, prepare_topic, replay_tasks
    from moldau.lake.session import start_session

    table = open_table(path)
    selection = Selection(_microseconds(from_time), _microseconds(to_time), topics, partitions)
    options = {f"kafka.{name}": str(value) for name, value in connection.config(PRODUCER).items()}
    if run_id:
        options["runId"] = run_id
    tasks = plan_replay(table, selection, not by_key)
    # Before Spark takes its time to start.
    prepare_topic(tasks, target, options)
    session = start_session(master, f"moldau replay {path}", spark_settings(spark_conf))
    rows = replay_tasks(session, tasks, target, options)
    if output_format == "json":
        print_json({"rows": rows, "topic": target})
    else:
        click.echo(f"{plural(rows, 'row')} sent to {target}.")


def _microseconds(text: str | None) -> int | None:
    """A time in ISO format, in UTC unless it says otherwise, or `7d ago`."""
    from datetime import UTC, datetime

    from moldau.lake.maintenance import parse_age

    if text is None:
        return None
    if text.endswith(" ago"):
        when = datetime.now(UTC) - parse_age(text.removesuffix(" ago").strip())
    else:
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            raise click.UsageError(f"{text!r} is no time: write 2026-11-15T10:00:00, or 7d ago.") from None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return int(when.timestamp() * 1_000_000)
