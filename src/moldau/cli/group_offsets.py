"""`moldau group reset-offsets|delete-offsets`: sets and forgets the committed offsets of groups without members."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

import click

from moldau.cli.completion import complete_groups, complete_topics
from moldau.cli.explain import explain
from moldau.cli.group import refusal, tell_error
from moldau.cli.group_plan import BadTopic, parse_topic_partitions, read_plan, write_plan
from moldau.cli.group_plan import parse_duration as parse_iso_duration
from moldau.cli.group_plan import parse_time as parse_iso_time
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import finish, plural, print_error, print_json, print_note, print_table, say
from moldau.cli.positions import AT, BEGINNING, END, HELP, LAST, Position, parse_position
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.results import Outcome, TopicPartition
from moldau.facts.group_lag import Committed, committed_of, fetch_offsets
from moldau.facts.group_targets import NewOffsets, NotCommitted, Targets
from moldau.protocol.errors import GROUP_ID_NOT_FOUND, GROUP_SUBSCRIBED_TO_TOPIC

CURRENT = "current"
SHIFT = "shift"
FILE = "file"
INACTIVE = ("Empty", "Dead")


class Told(NamedTuple):
    """Where to go: a place, a shift, or the lines of a file."""

    kind: str
    position: Position | None = None
    shift: int = 0
    plan: NewOffsets | None = None


topics_option = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:N,...]",
    shell_complete=complete_topics,
    help="A topic, or some of its partitions; may be repeated.",
)


@click.command("reset-offsets")
@click.argument("group_id", metavar="GROUP", shell_complete=complete_groups)
@topics_option
@click.option("--all-topics", is_flag=True, help="All topics that the group has offsets of.")
@click.option("--to", metavar="WHERE", help=f"Where to: {HELP}.")
@click.option("--to-earliest", is_flag=True, help="The same as --to beginning.")
@click.option("--to-latest", is_flag=True, help="The same as --to end.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="The same as --to N.")
@click.option("--to-datetime", metavar="TIME", help="To a time in UTC: 2026-01-31T12:00:00.000.")
@click.option("--by-duration", metavar="DURATION", help="To a time that long ago: P1DT2H.")
@click.option("--to-current", is_flag=True, help="To where it is; to the end where nothing is committed.")
@click.option("--shift-by", type=int, metavar="N", help="By so many records, back if negative.")
@click.option("--from-file", type=click.File(encoding="utf-8"), metavar="FILE", help="Lines TOPIC,PARTITION,OFFSET.")
@click.option("--execute", is_flag=True, help="Set the offsets. Without it they are only shown.")
@click.option("--dry-run", is_flag=True, help="Only show them; this is the default.")
@click.option("--export", is_flag=True, help="Print them as --from-file takes them.")
@format_option
@connected
def reset_offsets(
    connection: Connection,
    group_id: str,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    dry_run: bool,
    export: bool,
    output_format: str,
    **where: object,
) -> None:
    """Set the committed offsets of GROUP, which must have no members at the moment.

    \b
    Examples:
      moldau group reset-offsets billing -t orders --to beginning
      moldau group reset-offsets billing -t orders:0,1 --to @-2h --execute
      moldau group reset-offsets billing --all-topics --shift-by -100 --execute
    """
    if execute and dry_run:
        raise click.UsageError("--execute and --dry-run are opposites.")
    told = read_where(group_id, where)
    if told.kind != FILE and bool(topics) == all_topics:
        raise click.UsageError("Say which offsets: --topic TOPIC, or --all-topics.")
    with open_admin(connection) as admin:
        _check_inactive(admin, group_id)
        committed = committed_of(admin, group_id)
        if told.plan is not None:
            chosen = list(told.plan)
            _check_partitions(admin, chosen)
        else:
            chosen = list(committed) if all_topics else find_partitions(admin, topics)
        new = new_offsets(admin, committed, told, chosen)
        outcomes = admin.alter_consumer_group_offsets(group_id, new) if execute and new else {}
    show_plan(group_id, committed, new, outcomes, execute, export, output_format)


def read_where(group_id: str, where: dict[str, object]) -> Told:
    """The one scenario that was given."""
    given = [name for name, value in where.items() if value is not None and value is not False]
    if len(given) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in where)
        raise click.UsageError(f"Say where to, with one of {names}.")
    name, value = given[0], where[given[0]]
    if name == "to_current":
        return Told(CURRENT)
    if name == "shift_by":
        assert isinstance(value, int)
        return Told(SHIFT, shift=value)
    if name == "from_file":
        return Told(FILE, plan=_read_file(group_id, value))
    return Told("position", _position(name, value))


def _position(name: str, value: object) -> Position:
    if name == "to_earliest":
        return Position(BEGINNING)
    if name == "to_latest":
        return Position(END)
    if name == "to_offset":
        assert isinstance(value, int)
        return Position(AT, value)
    text = str(value)
    if name == "to":
        return parse_position("--to", text)
    try:
        if name == "to_datetime":
            return Position("time", parse_iso_time(text))
        return Position("time", time.time_ns() // 1_000_000 - parse_iso_duration(text))
    except ValueError:
        example = "2026-01-31T12:00:00.000" if name == "to_datetime" else "P1DT2H30M"
        raise click.UsageError(f"--{name.replace('_', '-')} wants a value as in {example}, not {text!r}.") from None


def _read_file(group_id: str, file: object) -> NewOffsets:
    try:
        text: str = file.read()  # type: ignore[attr-defined]
        plan = read_plan(text, [group_id]) if text.strip() else {}
    except ValueError as error:
        raise click.UsageError(f"--from-file: {error} Lines are TOPIC,PARTITION,OFFSET.") from None
    if group_id not in plan:
        raise click.ClickException(f"The file has no offsets for group {group_id}.")
    return plan[group_id]


def _check_inactive(admin: Admin, group_id: str) -> None:
    found = admin.describe_consumer_groups([group_id])[group_id]
    if found.error is not None:
        if found.error.code != GROUP_ID_NOT_FOUND:
            raise found.error
        return
    group = found.get()
    if group.state not in INACTIVE:
        raise click.ClickException(
            f"Group {group_id} is in use: it is {group.state} and has {plural(len(group.members), 'member')}."
            f" Stop its consumers first; `moldau group describe {group_id} -m` shows them."
        )


def find_partitions(admin: Admin, topics: Iterable[str]) -> list[TopicPartition]:
    """The partitions that --topic names, all of which must exist."""
    named, whole = [], []
    for text in topics:
        if ":" not in text:
            whole.append(text)
            continue
        try:
            named += parse_topic_partitions(text)
        except BadTopic:
            raise click.UsageError(f"--topic wants orders or orders:0,1; not {text!r}.") from None
    _check_partitions(admin, named)
    found = admin.describe_topics(whole) if whole else {}
    every = [TopicPartition(name, index) for name in found for index in sorted(found[name].get().partitions)]
    return list(dict.fromkeys([*named, *every]))


def _check_partitions(admin: Admin, partitions: list[TopicPartition]) -> None:
    topics = admin.describe_topics({each.topic for each in partitions}) if partitions else {}
    for each in partitions:
        known = topics[each.topic].get().partitions
        if each.partition not in known:
            raise click.ClickException(
                f"Topic {each.topic} has partitions 0 to {len(known) - 1}; there is no partition {each.partition}."
            )


def new_offsets(
    admin: Admin,
    committed: Committed,
    told: Told,
    chosen: list[TopicPartition],
) -> NewOffsets:
    def offsets_at(partitions: Iterable[TopicPartition], when: int) -> NewOffsets:
        return {each: found.get().offset for each, found in fetch_offsets(admin, partitions, when).items()}

    def tell_late(partition: TopicPartition) -> None:
        print_note(f"{partition} has no record that young: to its end.")

    def tell_moved(partition: TopicPartition, wanted: int, found: int) -> None:
        print_note(f"{partition} {'begins' if found > wanted else 'ends'} at {found}: not to {wanted}.")

    targets = Targets(offsets_at, lambda: committed, tell_late, tell_moved)
    try:
        return dict(sorted(_compute(targets, told, chosen).items()))
    except NotCommitted as error:
        raise click.ClickException(f"{error} Say where to with --to.") from None


def _compute(targets: Targets, told: Told, chosen: list[TopicPartition]) -> NewOffsets:
    if told.plan is not None:
        return targets.nearest(told.plan)
    if told.kind == CURRENT:
        return targets.current(chosen)
    position = told.position
    if position is None:
        return targets.shifted(chosen, told.shift)
    if position.kind == BEGINNING:
        return targets.earliest(chosen)
    if position.kind == END:
        return targets.latest(chosen)
    if position.kind == AT:
        return targets.nearest(dict.fromkeys(chosen, position.number))
    if position.kind == LAST:
        return targets.last(chosen, position.number)
    return targets.at_time(chosen, position.number)


def show_plan(
    group_id: str,
    committed: Committed,
    new: NewOffsets,
    outcomes: dict[TopicPartition, Outcome[None]],
    execute: bool,
    export: bool,
    output_format: str,
) -> None:
    rows: list[dict[str, object]] = []
    failed = False
    for partition, offset in new.items():
        before = committed.get(partition)
        row: dict[str, object] = {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": None if before is None else before.offset,
            "new_offset": offset,
        }
        error = outcomes[partition].error if partition in outcomes else None
        if error is not None:
            failed = True
            row |= {"error": error.name, "message": error.message}
            print_error(f"{partition}: {explain(error)}")
        rows.append(row)
    if export:
        click.echo(write_plan((each.topic, str(each.partition), str(offset)) for each, offset in new.items()), nl=False)
    elif output_format == "json":
        print_json(rows)
    elif new:
        columns = ("TOPIC", "PARTITION", "CURRENT", "NEW", "CHANGE")
        print_table(columns, [_cells(row) for row in rows], right=columns[1:])
    _say_what_happened(group_id, len(new), failed, execute)
    if failed:
        click.get_current_context().exit(1)


def _cells(row: dict[str, object]) -> tuple[object, ...]:
    before, new = row["offset"], row["new_offset"]
    assert isinstance(new, int)
    change = "" if not isinstance(before, int) else "0" if new == before else f"{new - before:+d}"
    return (row["topic"], row["partition"], "-" if before is None else before, new, change)


def _say_what_happened(group_id: str, count: int, failed: bool, execute: bool) -> None:
    if not count:
        print_note(f"Group {group_id} has no offsets to reset.")
    elif not execute:
        print_note("Nothing was changed: --execute sets these offsets.")
    elif not failed:
        print_note(f"The offsets of {plural(count, 'partition')} are set.")


@click.command("delete-offsets")
@click.argument("group_id", metavar="GROUP", shell_complete=complete_groups)
@topics_option
@format_option
@connected
def delete_offsets(connection: Connection, group_id: str, topics: tuple[str, ...], output_format: str) -> None:
    """Forget the offsets of topics that GROUP does not read any more."""
    if not topics:
        raise click.UsageError("Say which offsets: --topic TOPIC.")
    with open_admin(connection) as admin:
        partitions = find_partitions(admin, topics)
        outcomes = admin.delete_consumer_group_offsets(group_id, partitions)
    rows: list[dict[str, object]] = []
    failures: dict[str, ClientError] = {}
    for partition, outcome in outcomes.items():
        row: dict[str, object] = {"topic": partition.topic, "partition": partition.partition}
        if outcome.error is not None:
            failures.setdefault(outcome.error.name, outcome.error)
            row |= {**refusal(group_id, outcome.error)}
        else:
            row |= {"group_id": group_id, "deleted": True}
        rows.append(row)
    for error in failures.values():
        if error.code == GROUP_SUBSCRIBED_TO_TOPIC:
            print_error(f"Group {group_id} reads the topic at the moment. Stop its consumers first.")
        else:
            tell_error(error)
    count = sum("deleted" in row for row in rows)
    if count:
        say(output_format, f"Deleted the offsets of {plural(count, 'partition')} from group {group_id}.")
    finish(output_format, rows, bool(failures))
