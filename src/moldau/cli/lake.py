"""`moldau lake describe|optimize|vacuum|expire|forget`: looks after lake tables."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from moldau.cli.lake_options import lake_errors
from moldau.cli.options import format_option
from moldau.cli.output import bytes_text, plural, print_fields, print_json, print_note, print_table, print_title, say

if TYPE_CHECKING:
    from moldau.lake.maintenance import Description

path_argument = click.argument("path", metavar="PATH")


@click.command()
@path_argument
@click.option("--commits", type=click.IntRange(min=0), default=10, show_default=True, help="How many to show.")
@format_option
@lake_errors
def describe(path: str, commits: int, output_format: str) -> None:
    """Show schema, files, offsets and the newest commits of a table."""
    from moldau.lake import maintenance
    from moldau.lake.open_table import open_table

    told = maintenance.describe(open_table(path), commits)
    if output_format == "json":
        print_json(_as_object(told))
    else:
        _print(told)


def _as_object(told: Description) -> dict[str, object]:
    import json

    return {
        "path": told.path,
        "format": told.format,
        "version": told.version,
        "columns": {item.name: str(item.type) for item in told.schema},
        "partition_by": list(told.partition_by),
        "files": told.files,
        "rows": told.rows,
        "bytes": told.bytes,
        "offsets": json.loads(told.positions.to_json()),
        "commits": list(told.commits),
    }


def _print(told: Description) -> None:
    from moldau.lake.lock import DIRECTORY, is_held, read_holder

    print_title(f"{told.path}  {told.format}, version {told.version}")
    lock = f"{told.path}/{DIRECTORY}/lock"
    print_fields(
        [
            ("rows", f"{told.rows:,}"),
            ("files", f"{told.files:,}, {bytes_text(told.bytes)}"),
            ("partitioned by", ", ".join(told.partition_by) or "nothing"),
            ("in use by", read_holder(lock) if is_held(lock) else "nobody"),
        ]
    )
    print_title("\nColumns")
    print_table(("NAME", "TYPE"), [[item.name, str(item.type)] for item in told.schema])
    if told.positions.offsets:
        print_title("\nOffsets")
        rows = [[item.topic, item.partition, offset] for item, offset in sorted(told.positions.offsets.items())]
        print_table(("TOPIC", "PARTITION", "NEXT OFFSET"), rows, right=("PARTITION", "NEXT OFFSET"))
    if told.commits:
        print_title("\nCommits")
        print_table(("VERSION", "TIME", "OPERATION", ""), [_commit_row(item) for item in told.commits], ("VERSION",))
    if told.small_files > 20:
        print_note(f"{told.small_files:,} files are small: `moldau lake optimize {told.path}` joins them.")


def _commit_row(item: dict[str, object]) -> list[object]:
    when = time.strftime("%F %T", time.localtime(int(str(item["timestamp"])) / 1000))
    details = item["details"]
    assert isinstance(details, dict)
    return [item["version"], when, item["operation"], ", ".join(f"{name} {value}" for name, value in details.items())]


@click.command()
@path_argument
@click.option("--target-size", type=click.IntRange(min=1), default=256, show_default=True, metavar="MB")
@format_option
@lake_errors
def optimize(path: str, target_size: int, output_format: str) -> None:
    """Join small files into larger ones. A load may run meanwhile; what was joined goes with `moldau lake vacuum`."""
    from moldau.lake import maintenance
    from moldau.lake.open_table import open_table

    done = maintenance.optimize(open_table(path), target_size * 1024 * 1024)
    if output_format == "json":
        print_json({"files_removed": done.removed, "files_added": done.added})
    elif done.removed:
        say(output_format, f"{plural(done.removed, 'file')} became {done.added:,}.")
    else:
        say(output_format, "There are no small files to join.")


@click.command()
@path_argument
@click.option(
    "--retain",
    default="7d",
    show_default=True,
    metavar="AGE",
    help="Keep files that a reader of a state so long ago may need: 7d, 12h, 30m.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@format_option
@lake_errors
def vacuum(path: str, retain: str, dry_run: bool, output_format: str) -> None:
    """Remove files that no commit needs any more, and those that stopped loads left behind.

    With less than a day, the table must not be in use by a load.
    """
    from moldau.lake import maintenance
    from moldau.lake.open_table import open_table

    hours = maintenance.parse_age(retain).total_seconds() / 3600
    removed = maintenance.vacuum(open_table(path), hours, dry_run)
    if output_format == "json":
        print_json({"removed": removed, "dry_run": dry_run})
        return
    if dry_run:
        for name in removed:
            click.echo(name)
    say(output_format, f"{plural(len(removed), 'file')} {'would be ' if dry_run else ''}removed.")


@click.command()
@path_argument
@click.option("--older-than", required=True, metavar="AGE", help="Of records, by their timestamps: 90d, 12h.")
@format_option
@lake_errors
def expire(path: str, older_than: str, output_format: str) -> None:
    """Delete rows of old records. They are not loaded again.

    Tables that are partitioned by date lose whole days, plain parquet tables whole files.
    """
    from moldau.lake import maintenance
    from moldau.lake.open_table import open_table

    rows = maintenance.expire_rows(open_table(path), datetime.now(UTC) - maintenance.parse_age(older_than))
    if output_format == "json":
        print_json({"rows_deleted": rows})
    say(output_format, f"{plural(rows, 'row')} deleted.")


@click.command()
@path_argument
@click.argument("topic")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@format_option
@lake_errors
def forget(path: str, topic: str, yes: bool, output_format: str) -> None:
    """Forget how far a topic is loaded: the next load begins anew, and rows that are there stay.

    For topics that were deleted and created again.
    """
    from moldau.lake import maintenance
    from moldau.lake.open_table import open_table

    if not yes:
        click.confirm(f"Load topic {topic} into {path} from the beginning again?", abort=True)
    maintenance.forget_topic(open_table(path), topic)
    if output_format == "json":
        print_json({"forgotten": topic})
    say(output_format, f"The next load of {topic} begins anew.")
