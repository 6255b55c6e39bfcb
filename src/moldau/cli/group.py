"""`moldau group list|describe|delete|remove-members`: groups of consumers, how far behind they are, who is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moldau.cli.completion import complete_groups
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import finish, plural, print_error, print_json, print_note, print_table, say
from moldau.cli.watch import repeat
from moldau.client.admin import Admin, GroupDescription, GroupListing, MemberToRemove
from moldau.client.errors import ClientError
from moldau.client.results import Outcome
from moldau.protocol.errors import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP

if TYPE_CHECKING:
    from moldau.cli.group_view import Pace
    from moldau.facts.share_progress import Progress

STATES = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)
TYPES = ("classic", "consumer", "share", "streams")

_NEXT_STEPS = {
    GROUP_ID_NOT_FOUND: "`moldau group list` shows which groups there are.",
    NON_EMPTY_GROUP: "Stop its consumers first; `moldau group describe -m` shows them.",
}

groups_argument = click.argument("group_ids", nargs=-1, metavar="[GROUP]...", shell_complete=complete_groups)


def refusal(group_id: str, error: ClientError) -> dict[str, object]:
    return {"group_id": group_id, "error": error.name, "message": error.message}


def tell_error(error: ClientError) -> None:
    step = _NEXT_STEPS.get(error.code, "")
    print_error(f"{explain(error) or error.message} {step}".rstrip())


@click.command("list")
@click.option(
    "-s",
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only groups in this state; may be repeated.",
)
@click.option(
    "-t",
    "--type",
    "types",
    multiple=True,
    type=click.Choice(TYPES, case_sensitive=False),
    help="Only groups of this type; may be repeated.",
)
@click.option("-q", "--quiet", is_flag=True, help="Names only, one a line.")
@format_option
@connected
def list_groups(
    connection: Connection, states: tuple[str, ...], types: tuple[str, ...], quiet: bool, output_format: str
) -> None:
    """List the groups of all kinds; of share groups also how many records are left, and how many are locked now."""
    progress: dict[str, Progress] = {}
    with open_admin(connection) as admin:
        listing = admin.list_groups(states, types)
        groups = listing.found
        shared = [group.group_id for group in groups if group.type.lower() == "share"]
        if shared and not quiet:
            from moldau.facts.share_progress import progress_of_groups

            progress = progress_of_groups(admin, shared)
    rows = [_listing_row(group, progress.get(group.group_id)) for group in groups]
    if output_format == "json":
        print_json(rows)
    elif quiet:
        for group in groups:
            click.echo(group.group_id)
    elif not groups:
        click.echo("There are no such groups." if states or types else "There are no groups yet.", err=True)
    else:
        columns = ["GROUP", "TYPE", "PROTOCOL", "STATE", *(["LAG", "IN FLIGHT"] if progress else [])]
        cells = [[*row.values(), *([None, None] if progress and "lag" not in row else [])] for row in rows]
        dashed = [["-" if cell is None and index > 3 else cell for index, cell in enumerate(row)] for row in cells]
        print_table(columns, dashed, right=("LAG", "IN FLIGHT"))
    for broker_id, error in listing.errors.items():
        print_error(f"Groups of broker {broker_id} are missing: {explain(error) or error.message}")
    if listing.errors:
        click.get_current_context().exit(1)


def _listing_row(group: GroupListing, progress: Progress | None) -> dict[str, object]:
    row: dict[str, object] = {
        "group_id": group.group_id,
        "type": group.type.lower() or None,
        "protocol": group.protocol_type or None,
        "state": group.state or None,
    }
    return row if progress is None else row | {"lag": progress.lag, "in_flight": progress.in_flight}


@click.command()
@groups_argument
@click.option("-a", "--all", "everything", is_flag=True, help="All groups of consumers.")
@click.option("-m", "--members", is_flag=True, help="Show the members and what each has.")
@click.option("-o", "--offsets", is_flag=True, help="Show offsets and lag. This is what is shown without --members.")
@click.option("-l", "--lagging", is_flag=True, help="Only partitions that are not read to their end.")
@format_option
@watch_options
@connected
def describe(
    connection: Connection,
    group_ids: tuple[str, ...],
    everything: bool,
    members: bool,
    offsets: bool,
    lagging: bool,
    output_format: str,
    watch: bool,
    interval_s: float,
) -> None:
    """Show state, offsets, lag and members of groups of consumers and of streams groups.

    \b
    Examples:
      moldau group describe billing
      moldau group describe billing --members
      moldau group describe --all --lagging --watch
    """
    if bool(group_ids) == everything:
        raise click.UsageError("Name the groups, or say --all.")
    paces: dict[str, Pace] | None = {} if watch else None
    view = (offsets or not members, members, lagging)
    with open_admin(connection) as admin:
        repeat(lambda: _describe(admin, group_ids, view, output_format, paces), watch, interval_s)


def _describe(
    admin: Admin,
    group_ids: tuple[str, ...],
    view: tuple[bool, bool, bool],
    output_format: str,
    paces: dict[str, Pace] | None,
) -> None:
    from moldau.cli.group_view import Pace, collect, print_group

    names = list(dict.fromkeys(group_ids)) or [group.group_id for group in admin.list_consumer_groups()]
    if not names:
        print_note("There are no groups of consumers yet.")
    outcomes: dict[str, Outcome[GroupDescription]] = admin.describe_consumer_groups(names) if names else {}
    collected = collect(admin, (outcome.get() for outcome in outcomes.values() if outcome.error is None))
    streams = _streams_groups(admin, [one for one in names if _is_not_of_consumers(outcomes[one].error)])
    rows: list[dict[str, object]] = []
    failed = False
    for group_id in names:
        found = streams.get(group_id) or outcomes[group_id].error or collected[group_id]
        if isinstance(found, ClientError):
            failed = True
            rows.append(refusal(group_id, found))
            tell_error(_other_kind(admin, group_id, found))
            continue
        rows.append(found)
        pace = None
        if paces is not None:
            pace = paces.setdefault(group_id, Pace())
            pace.look(found)
        if output_format == "table":
            print_group(found, *view, pace)
    finish(output_format, rows, failed)


def _is_not_of_consumers(error: ClientError | None) -> bool:
    return error is not None and error.code == GROUP_ID_NOT_FOUND


def _streams_groups(admin: Admin, group_ids: list[str]) -> dict[str, dict[str, object] | ClientError]:
    """Those of the groups that are streams groups, described as such."""
    from moldau.cli.streams_group_view import streams_json

    known = (
        {group.group_id for group in admin.list_groups().found if group.type.lower() == "streams"} if group_ids else ()
    )
    wanted = [one for one in group_ids if one in known]
    outcomes = admin.describe_streams_groups(wanted) if wanted else {}
    found: dict[str, dict[str, object] | ClientError] = {}
    for group_id, outcome in outcomes.items():
        try:
            found[group_id] = streams_json(admin, outcome.get())
        except ClientError as error:
            found[group_id] = error
    return found


def _other_kind(admin: Admin, group_id: str, error: ClientError) -> ClientError:
    """A group that is there but is not of consumers deserves another sentence than one that is not there."""
    if error.code == GROUP_ID_NOT_FOUND:
        for group in admin.list_groups().found:
            if group.group_id == group_id and group.type.lower() == "share":
                error.message = f"{group_id} is a share group, not one of consumers. "
                error.message += f"`moldau share describe {group_id}` shows it."
    return error


@click.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_groups)
@click.option("--if-exists", is_flag=True, help="Accept that the group does not exist.")
@format_option
@connected
def delete(connection: Connection, group_ids: tuple[str, ...], if_exists: bool, output_format: str) -> None:
    """Delete groups without members, with their offsets."""
    with open_admin(connection) as admin:
        outcomes = admin.delete_consumer_groups(dict.fromkeys(group_ids))
    rows: list[dict[str, object]] = []
    failed = False
    for group_id, outcome in outcomes.items():
        error = outcome.error
        if error is not None and if_exists and error.code == GROUP_ID_NOT_FOUND:
            rows.append({"group_id": group_id, "deleted": False})
            say(output_format, f"Group {group_id} does not exist.")
        elif error is not None:
            failed = True
            rows.append(refusal(group_id, error))
            tell_error(error)
        else:
            rows.append({"group_id": group_id, "deleted": True})
            say(output_format, f"Deleted group {group_id}.")
    finish(output_format, rows, failed)


@click.command("remove-members")
@click.argument("group_id", metavar="GROUP", shell_complete=complete_groups)
@click.option("-i", "--instance", "instances", multiple=True, metavar="NAME", help="A group.instance.id.")
@click.option("-m", "--member", "members", multiple=True, metavar="ID", help="The id of a member.")
@click.option("-a", "--all", "everything", is_flag=True, help="All members.")
@click.option("--reason", metavar="TEXT", help="What the broker's log is to say about it.")
@format_option
@connected
def remove_members(
    connection: Connection,
    group_id: str,
    instances: tuple[str, ...],
    members: tuple[str, ...],
    everything: bool,
    reason: str | None,
    output_format: str,
) -> None:
    """Make members leave GROUP; the others share out their partitions.

    A member that is still running joins again. Use it for static members that will not come back.
    """
    if everything == bool(instances or members):
        raise click.UsageError("Name the members with --instance or --member, or say --all.")
    wanted = [MemberToRemove(group_instance_id=name) for name in dict.fromkeys(instances)]
    wanted += [MemberToRemove(member_id=member_id) for member_id in dict.fromkeys(members)]
    with open_admin(connection) as admin:
        try:
            outcomes = admin.remove_members_from_consumer_group(group_id, None if everything else wanted, reason)
        except ClientError as error:
            if error.code != GROUP_ID_NOT_FOUND:
                raise
            tell_error(error)
            finish(output_format, [refusal(group_id, error)], True)
            return
    _report_removed(group_id, outcomes, output_format)


def _report_removed(group_id: str, outcomes: dict[MemberToRemove, Outcome[None]], output_format: str) -> None:
    rows: list[dict[str, object]] = []
    failed = False
    for member, outcome in outcomes.items():
        named = {"group_instance_id": member.group_instance_id, "member_id": member.member_id or None}
        if outcome.error is not None:
            failed = True
            rows.append({**named, "error": outcome.error.name, "message": outcome.error.message})
            print_error(f"{member.group_instance_id or member.member_id}: {explain(outcome.error)}")
        else:
            rows.append({**named, "removed": True})
    count = sum("removed" in row for row in rows)
    if count or not failed:
        say(output_format, f"Removed {plural(count, 'member')} from group {group_id}.")
    finish(output_format, rows, failed)
