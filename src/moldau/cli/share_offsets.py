"""`moldau share offsets|reset`: where share groups start in each partition, and setting that."""

from __future__ import annotations

import click

from moldau.cli.completion import complete_share_groups, complete_topics
from moldau.cli.group_offsets import find_partitions, new_offsets, read_where, show_plan, topics_option
from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import finish, plural, print_note
from moldau.cli.positions import HELP
from moldau.cli.share import groups_argument, refusal, share_groups, tell_error
from moldau.cli.watch import repeat
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.results import OffsetAndMetadata, TopicPartition
from moldau.facts.share_progress import rows_of_groups
from moldau.protocol.errors import GROUP_ID_NOT_FOUND

INACTIVE = ("Empty", "Dead")


@click.command()
@groups_argument
@click.option("-a", "--all", "everything", is_flag=True, help="All share groups.")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    shell_complete=complete_topics,
    help="Only partitions of this topic; may be repeated.",
)
@format_option
@watch_options
@connected
def offsets(
    connection: Connection,
    group_ids: tuple[str, ...],
    everything: bool,
    topics: tuple[str, ...],
    output_format: str,
    watch: bool,
    interval_s: float,
) -> None:
    """Show where share groups start and what is left to them, one row a partition."""
    if bool(group_ids) == everything:
        raise click.UsageError("Name the share groups, or say --all.")
    with open_admin(connection) as admin:
        repeat(lambda: _offsets(admin, group_ids, topics, output_format), watch, interval_s)


def _offsets(admin: Admin, group_ids: tuple[str, ...], topics: tuple[str, ...], output_format: str) -> None:
    from moldau.cli.share_view import print_rows, row_json

    names = list(dict.fromkeys(group_ids)) or share_groups(admin)
    # Asked for offsets alone, the coordinator does not tell a group that is not there from one that has none.
    described = admin.describe_share_groups(names) if names else {}
    there = [name for name in names if described[name].error is None]
    found = rows_of_groups(admin, there, topics)
    rows: list[dict[str, object]] = []
    table: list[tuple[list[object], dict[str, object]]] = []
    failed = False
    for group_id in names:
        of_group = described[group_id].error or found[group_id]
        if isinstance(of_group, ClientError):
            failed = True
            rows.append(refusal(group_id, of_group))
            tell_error(of_group)
            continue
        for each in of_group:
            row = row_json(each)
            rows.append({"group_id": group_id, **row})
            table.append(([group_id], row))
            failed = failed or each.error is not None
    if output_format == "table":
        if table:
            print_rows(["GROUP"], table)
        elif not failed:
            print_note("Nothing was read yet.")
    finish(output_format, rows, failed)


@click.command()
@click.argument("group_id", metavar="GROUP", shell_complete=complete_share_groups)
@topics_option
@click.option("--all-topics", is_flag=True, help="All topics that the group has offsets of.")
@click.option("--to", metavar="WHERE", help=f"Where to: {HELP}.")
@click.option("--to-earliest", is_flag=True, help="The same as --to beginning.")
@click.option("--to-latest", is_flag=True, help="The same as --to end.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="The same as --to N.")
@click.option("--to-datetime", metavar="TIME", help="To a time in UTC: 2026-01-31T12:00:00.000.")
@click.option("--by-duration", metavar="DURATION", help="To a time that long ago: P1DT2H.")
@click.option("--execute", is_flag=True, help="Set the offsets. Without it they are only shown.")
@click.option("--dry-run", is_flag=True, help="Only show them; this is the default.")
@format_option
@connected
def reset(
    connection: Connection,
    group_id: str,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    dry_run: bool,
    output_format: str,
    **where: object,
) -> None:
    """Set where GROUP starts. It must have no members at the moment; what it knew of the partitions is forgotten.

    A group that does not exist yet is made, so that its first members begin there.

    \b
    Examples:
      moldau share reset workers -t orders --to beginning
      moldau share reset workers -t orders:0,1 --to @-2h --execute
      moldau share reset workers --all-topics --to end --execute
    """
    if execute and dry_run:
        raise click.UsageError("--execute and --dry-run are opposites.")
    told = read_where(group_id, where)
    if bool(topics) == all_topics:
        raise click.UsageError("Say which offsets: --topic TOPIC, or --all-topics.")
    with open_admin(connection) as admin:
        _check_inactive(admin, group_id)
        starts = _start_offsets(admin, group_id)
        chosen = list(starts) if all_topics else find_partitions(admin, topics)
        new = new_offsets(admin, starts, told, chosen)
        outcomes = admin.alter_share_group_offsets(group_id, new) if execute and new else {}
    show_plan(group_id, starts, new, outcomes, execute, False, output_format)


def _check_inactive(admin: Admin, group_id: str) -> None:
    found = admin.describe_share_groups([group_id])[group_id]
    if found.error is not None:
        if found.error.code != GROUP_ID_NOT_FOUND:
            raise found.error
        for group in admin.list_groups().found:
            if group.group_id == group_id:
                kind = group.type.lower() or "classic"
                raise click.ClickException(
                    f"{group_id} is a {kind} group, not a share group. `moldau group reset-offsets` is for those."
                )
        return
    group_found = found.get()
    if group_found.state not in INACTIVE:
        raise click.ClickException(
            f"Share group {group_id} is in use: it has {plural(len(group_found.members), 'member')}."
            f" Stop them first; `moldau share describe {group_id} -m` shows them."
        )


def _start_offsets(admin: Admin, group_id: str) -> dict[TopicPartition, OffsetAndMetadata | None]:
    found = admin.list_share_group_offsets({group_id: None})[group_id].get()
    starts: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for partition in sorted(found):
        offset = found[partition].get()
        starts[partition] = None if offset is None else OffsetAndMetadata(offset.start_offset)
    return starts
