"""`moldau share list|describe|delete`: share groups, how far they are, what their members hold, who is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moldau.cli.completion import complete_share_groups, complete_topics
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import finish, plural, print_error, print_json, print_note, print_table, say
from moldau.cli.watch import repeat
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.results import Outcome
from moldau.facts.share_progress import Progress, progress_of_groups, rows_of_groups
from moldau.protocol.errors import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, UNKNOWN_TOPIC_OR_PARTITION

if TYPE_CHECKING:
    from moldau.cli.share_view import SharePace

SHARE = "share"
STATES = ("Empty", "Stable", "Dead")

_NEXT_STEPS = {
    GROUP_ID_NOT_FOUND: "`moldau share list` shows which share groups there are.",
    NON_EMPTY_GROUP: "Stop its consumers first; `moldau share describe -m` shows them.",
}

groups_argument = click.argument("group_ids", nargs=-1, metavar="[GROUP]...", shell_complete=complete_share_groups)


def tell_error(error: ClientError) -> None:
    step = _NEXT_STEPS.get(error.code, "")
    print_error(f"{explain(error) or error.message} {step}".rstrip())


def refusal(group_id: str, error: ClientError) -> dict[str, object]:
    return {"group_id": group_id, "error": error.name, "message": error.message}


def share_groups(admin: Admin) -> list[str]:
    """The names of all share groups; raises where a broker does not tell its own."""
    return [group.group_id for group in admin.list_groups(types=[SHARE]).get() if group.type.lower() == SHARE]


@click.command("list")
@click.option(
    "-s",
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only groups in this state; may be repeated.",
)
@click.option("-q", "--quiet", is_flag=True, help="Names only, one a line.")
@format_option
@connected
def list_groups(connection: Connection, states: tuple[str, ...], quiet: bool, output_format: str) -> None:
    """List the share groups: state, records that are left, and records that members hold locks on."""
    progress: dict[str, Progress] = {}
    with open_admin(connection) as admin:
        listing = admin.list_groups(states, [SHARE])
        # A broker that is too old for the filter responds with groups of all kinds.
        groups = [group for group in listing.found if group.type.lower() == SHARE]
        if groups and (not quiet or output_format == "json"):
            progress = progress_of_groups(admin, [group.group_id for group in groups])
    unknown = Progress(None, None)
    if output_format == "json":
        print_json(
            [
                {"group_id": group.group_id, "state": group.state or None}
                | progress.get(group.group_id, unknown)._asdict()
                for group in groups
            ]
        )
    elif quiet:
        for group in groups:
            click.echo(group.group_id)
    elif not groups:
        click.echo("There are no such share groups." if states else "There are no share groups yet.", err=True)
    else:
        print_table(
            ("GROUP", "STATE", "LAG", "IN FLIGHT"),
            [
                [
                    group.group_id,
                    group.state,
                    *("-" if number is None else number for number in progress[group.group_id]),
                ]
                for group in groups
            ],
            right=("LAG", "IN FLIGHT"),
        )
    for broker_id, error in listing.errors.items():
        print_error(f"Groups of broker {broker_id} are missing: {explain(error) or error.message}")
    if listing.errors:
        click.get_current_context().exit(1)


@click.command()
@groups_argument
@click.option("-a", "--all", "everything", is_flag=True, help="All share groups.")
@click.option("-m", "--members", is_flag=True, help="Show the members and what each has.")
@click.option("-o", "--offsets", is_flag=True, help="Show offsets and lag. This is what is shown without --members.")
@click.option("-l", "--lagging", is_flag=True, help="Only partitions where something is left.")
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
    """Show state, start offsets, lag and members of share groups.

    \b
    Examples:
      moldau share describe workers
      moldau share describe workers --members
      moldau share describe --all --lagging --watch
    """
    if bool(group_ids) == everything:
        raise click.UsageError("Name the share groups, or say --all.")
    paces: dict[str, SharePace] | None = {} if watch else None
    view = (offsets or not members, members, lagging)
    with open_admin(connection) as admin:
        repeat(lambda: _describe(admin, group_ids, view, output_format, paces), watch, interval_s)


def _describe(
    admin: Admin,
    group_ids: tuple[str, ...],
    view: tuple[bool, bool, bool],
    output_format: str,
    paces: dict[str, SharePace] | None,
) -> None:
    from moldau.cli.share_view import SharePace, print_share_group, share_json

    names = list(dict.fromkeys(group_ids)) or share_groups(admin)
    if not names:
        print_note("There are no share groups yet.")
    outcomes = admin.describe_share_groups(names) if names else {}
    collected = rows_of_groups(admin, [name for name, outcome in outcomes.items() if outcome.error is None])
    rows: list[dict[str, object]] = []
    failed = False
    for group_id in names:
        found = outcomes[group_id].error or collected[group_id]
        if isinstance(found, ClientError):
            failed = True
            rows.append(refusal(group_id, found))
            tell_error(found)
            continue
        shown = share_json(outcomes[group_id].get(), found)
        rows.append(shown)
        pace = None
        if paces is not None:
            pace = paces.setdefault(group_id, SharePace())
            pace.look(shown)
        if output_format == "table":
            print_share_group(shown, *view, pace)
    finish(output_format, rows, failed)


@click.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_share_groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    shell_complete=complete_topics,
    help="Keep the group, and forget only what it knows of this topic; may be repeated.",
)
@click.option("--if-exists", is_flag=True, help="Accept that the group does not exist.")
@format_option
@connected
def delete(
    connection: Connection, group_ids: tuple[str, ...], topics: tuple[str, ...], if_exists: bool, output_format: str
) -> None:
    """Delete share groups without members, with all they know; or only what they know of topics.

    \b
    Examples:
      moldau share delete workers
      moldau share delete workers --topic orders
    """
    names = list(dict.fromkeys(group_ids))
    with open_admin(connection) as admin:
        if topics:
            of_topics = {name: admin.delete_share_group_offsets(name, dict.fromkeys(topics)) for name in names}
            _report_topics(of_topics, output_format)
            return
        # Groups of other kinds are deleted by the same request, and are not meant here.
        others = {group.group_id: group.type.lower() for group in admin.list_groups().found}
        others = {name: kind for name, kind in others.items() if name in names and kind != SHARE}
        meant = [name for name in names if name not in others]
        outcomes = admin.delete_share_groups(meant) if meant else {}
    _report_deleted(names, outcomes, others, if_exists, output_format)


def _report_deleted(
    names: list[str],
    outcomes: dict[str, Outcome[None]],
    others: dict[str, str],
    if_exists: bool,
    output_format: str,
) -> None:
    rows: list[dict[str, object]] = []
    failed = False
    for group_id in names:
        if group_id in others:
            failed = True
            kind = others[group_id] or "classic"
            sentence = f"{group_id} is a {kind} group, not a share group."
            rows.append({"group_id": group_id, "error": "GROUP_ID_NOT_FOUND", "message": sentence})
            print_error(f"{sentence} `moldau group delete {group_id}` deletes it.")
            continue
        error = outcomes[group_id].error
        if error is not None and if_exists and error.code == GROUP_ID_NOT_FOUND:
            rows.append({"group_id": group_id, "deleted": False})
            say(output_format, f"Share group {group_id} does not exist.")
        elif error is not None:
            failed = True
            rows.append(refusal(group_id, error))
            tell_error(error)
        else:
            rows.append({"group_id": group_id, "deleted": True})
            say(output_format, f"Deleted share group {group_id}.")
    finish(output_format, rows, failed)


def _report_topics(outcomes: dict[str, dict[str, Outcome[None]]], output_format: str) -> None:
    rows: list[dict[str, object]] = []
    failed = False
    for group_id, of_group in outcomes.items():
        # What is wrong with the group comes with every topic, and is told once.
        told: set[str] = set()
        for topic, outcome in of_group.items():
            error = outcome.error
            if error is None:
                rows.append({"group_id": group_id, "topic": topic, "deleted": True})
                continue
            failed = True
            rows.append({**refusal(group_id, error), "topic": topic})
            if error.code in _NEXT_STEPS:
                if error.name not in told:
                    tell_error(error)
                told.add(error.name)
            else:
                # That the topic is unknown may mean that the group has nothing of it: the broker's sentence tells.
                unknown = error.code == UNKNOWN_TOPIC_OR_PARTITION
                print_error(f"{topic}: {error.message if unknown else explain(error) or error.message}")
        count = sum(outcome.error is None for outcome in of_group.values())
        if count:
            say(output_format, f"Share group {group_id} has forgotten {plural(count, 'topic')}.")
    finish(output_format, rows, failed)
