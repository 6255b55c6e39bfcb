"""`moldau topic alter|add-partitions`: changes configs of topics and how many partitions they have."""

from __future__ import annotations

import click

from moldau.cli.completion import complete_topics
from moldau.cli.config_changes import change_options, parse_changes
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import finish, plural, print_note, say
from moldau.cli.topic import error_row, parse_assignment, tell_error
from moldau.client.admin import TOPIC, Admin, ConfigChange, ConfigResource
from moldau.client.errors import ClientError


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_topics)
@change_options
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="How many partitions from now on.")
@click.option("--validate-only", is_flag=True, help="Only ask whether the broker would do it.")
@format_option
@connected
def alter(
    connection: Connection,
    names: tuple[str, ...],
    sets: tuple[str, ...],
    deletes: tuple[str, ...],
    appends: tuple[str, ...],
    subtracts: tuple[str, ...],
    partitions: int | None,
    validate_only: bool,
    output_format: str,
) -> None:
    """Change configs of topics, or how many partitions they have.

    \b
    Examples:
      moldau topic alter orders --set retention.ms=86400000 --delete segment.bytes
      moldau topic alter orders --append cleanup.policy=compact
      moldau topic alter orders -p 12
    """
    changes = parse_changes(sets, deletes, appends, subtracts)
    if not changes and partitions is None:
        raise click.UsageError("Say what to change: --set KEY=VALUE, --delete KEY or --partitions N.")
    rows: list[dict[str, object]] = []
    failed = False
    with open_admin(connection) as admin:
        for name in dict.fromkeys(names):
            error = _alter(admin, name, changes, partitions, validate_only)
            if error is not None:
                failed = True
                rows.append(error_row(name, error))
                tell_error(error)
            else:
                rows.append({"name": name, "altered": not validate_only})
                say(output_format, f"Topic {name} {'can be changed' if validate_only else 'is changed'}.")
    finish(output_format, rows, failed)


def _alter(
    admin: Admin, name: str, changes: list[ConfigChange], partitions: int | None, validate_only: bool
) -> ClientError | None:
    found = admin.describe_topics([name])[name].error
    if found is not None:
        return found
    if changes:
        resource = ConfigResource(TOPIC, name)
        error = admin.incremental_alter_configs({resource: changes}, validate_only)[resource].error
        if error is not None:
            return error
    if partitions is not None:
        return admin.create_partitions({name: partitions}, validate_only=validate_only)[name].error
    return None


@click.command("add-partitions")
@click.argument("name", shell_complete=complete_topics)
@click.option("-n", "--num", type=click.IntRange(min=1), metavar="N", help="How many more.")
@click.option("--total", type=click.IntRange(min=1), metavar="N", help="How many altogether.")
@click.option(
    "--replica-assignment", metavar="ID:ID,...", help="The brokers of each new partition: 1:2,2:3 is for two of them."
)
@click.option("--validate-only", is_flag=True, help="Only ask whether the broker would do it.")
@format_option
@connected
def add_partitions(
    connection: Connection,
    name: str,
    num: int | None,
    total: int | None,
    replica_assignment: str | None,
    validate_only: bool,
    output_format: str,
) -> None:
    """Give a topic more partitions. There is no way back: a partition cannot be taken away.

    Records with a key go to other partitions than before from then on.

    \b
    Examples:
      moldau topic add-partitions orders --num 3
      moldau topic add-partitions orders --total 12
    """
    placed = None if replica_assignment is None else parse_assignment(replica_assignment)
    if sum(item is not None for item in (num, total)) > 1 or (num, total, placed) == (None, None, None):
        raise click.UsageError("Say how many: --num N more, or --total N altogether.")
    with open_admin(connection) as admin:
        before = len(admin.partitions_of(name))
        more = num if num is not None else len(placed or ())
        after = before + more if total is None else total
        error = admin.create_partitions({name: after}, None if placed is None else {name: placed}, validate_only)[
            name
        ].error
    if error is not None:
        tell_error(error)
        finish(output_format, [error_row(name, error)], True)
        return
    verb = "would have" if validate_only else "has"
    say(output_format, f"Topic {name} {verb} {plural(after, 'partition')}, {after - before} of them new.")
    if output_format == "table" and not validate_only:
        print_note("Records with a key may go to other partitions than before.")
    finish(output_format, [{"name": name, "partitions": after, "before": before}], False)
