"""`moldau partition describe|elect-leader`: who leads and who follows each partition, and having leaders elected."""

from __future__ import annotations

import time

import click

from moldau.cli.completion import complete_topics
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, finish, plural, print_json, print_table, say
from moldau.cli.partition_names import find_partitions, ids_text
from moldau.cli.watch import repeat
from moldau.client.admin import PREFERRED, UNCLEAN, Admin, PartitionReassignment
from moldau.client.connection.cluster import PartitionMetadata
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition
from moldau.facts.cluster_health import min_in_sync

STATES = ("unavailable", "under-min-isr", "at-min-isr", "under-replicated", "moving", "not-preferred", "ok")
BAD = {"unavailable": "red", "under-min-isr": "red", "at-min-isr": "yellow", "under-replicated": "yellow"}

# How long it takes at most until every broker has heard of an election.
NEWS_S = 2.0

names_argument = click.argument("names", nargs=-1, metavar="[TOPIC[:N,N-N]]...", shell_complete=complete_topics)


@click.command()
@names_argument
@click.option(
    "--only",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only partitions in this state; may be repeated. Default: all.",
)
@format_option
@watch_options
@connected
def describe(
    connection: Connection,
    names: tuple[str, ...],
    states: tuple[str, ...],
    output_format: str,
    watch: bool,
    interval_s: float,
) -> None:
    """Show leader, replicas and state of partitions, all of the cluster or those that are named.

    \b
    unavailable       has no leader
    under-min-isr     takes no acks=all writes: fewer replicas are in sync than min.insync.replicas
    at-min-isr        takes none any more once it loses another replica
    under-replicated  not all replicas are in sync
    moving            is being reassigned
    not-preferred     all is well, but another replica than the first leads
    """
    with open_admin(connection) as admin:
        repeat(lambda: _show(admin, names, states, output_format), watch, interval_s)


def _show(admin: Admin, names: tuple[str, ...], states: tuple[str, ...], output_format: str) -> None:
    partitions = find_partitions(admin, names)
    moving = reassignments_of(admin)
    short = {each.topic for each in partitions if len(each.in_sync_replicas) < len(each.replicas)}
    minimums = min_in_sync(admin, short)
    rows = [_row(each, moving.get(TopicPartition(each.topic, each.partition)), minimums) for each in partitions]
    if states:
        rows = [row for row in rows if row["state"] in states or ("moving" in states and row["adding_replicas"])]
    if output_format == "json":
        print_json(rows)
    elif not rows:
        click.echo("There are no such partitions.", err=True)
    else:
        print_partitions(rows)


def reassignments_of(admin: Admin) -> dict[TopicPartition, PartitionReassignment]:
    """Who may not see what is moving sees the partitions all the same."""
    try:
        return admin.list_partition_reassignments()
    except ClientError:
        return {}


def state_of(item: PartitionMetadata, going_on: PartitionReassignment | None, minimums: dict[str, int]) -> str:
    in_sync, minimum = len(item.in_sync_replicas), minimums.get(item.topic, 1)
    if item.leader < 0:
        return "unavailable"
    if in_sync < len(item.replicas):
        if going_on is not None and in_sync >= len(item.replicas) - len(going_on.adding_replicas):
            return "moving"
        if in_sync <= minimum:
            return "under-min-isr" if in_sync < minimum else "at-min-isr"
        return "under-replicated"
    if going_on is not None:
        return "moving"
    return "ok" if item.leader == item.replicas[0] else "not-preferred"


def _row(
    item: PartitionMetadata, going_on: PartitionReassignment | None, minimums: dict[str, int]
) -> dict[str, object]:
    return {
        "topic": item.topic,
        "partition": item.partition,
        "leader": item.leader,
        "leader_epoch": item.leader_epoch,
        "replicas": item.replicas,
        "in_sync_replicas": item.in_sync_replicas,
        "offline_replicas": item.offline_replicas,
        "eligible_leader_replicas": item.eligible_leader_replicas,
        "adding_replicas": [] if going_on is None else going_on.adding_replicas,
        "removing_replicas": [] if going_on is None else going_on.removing_replicas,
        "state": state_of(item, going_on, minimums),
    }


def print_partitions(rows: list[dict[str, object]]) -> None:
    moves = any(row["adding_replicas"] or row["removing_replicas"] for row in rows)
    columns = ["TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN-SYNC", *(["MOVING"] if moves else []), "STATE"]
    table = []
    for row in rows:
        state = str(row["state"])
        cells: list[object] = [
            row["topic"],
            row["partition"],
            Styled("none", fg="red", bold=True) if row["leader"] == -1 else row["leader"],
            row["leader_epoch"],
            _ids(row["replicas"]),
            _ids(row["in_sync_replicas"]),
        ]
        if moves:
            adding, removing = _ids(row["adding_replicas"]), _ids(row["removing_replicas"])
            cells.append(" ".join(filter(None, (adding and f"+{adding}", removing and f"-{removing}"))))
        table.append((*cells, Styled(state, fg=BAD.get(state, "green" if state == "ok" else None))))
    print_table(columns, table, right=("PARTITION", "LEADER", "EPOCH"))


def _ids(value: object) -> str:
    assert isinstance(value, list)
    return ids_text(value)


@click.command("elect-leader")
@names_argument
@click.option("--all", "every", is_flag=True, help="All partitions of the cluster.")
@click.option(
    "--unclean",
    is_flag=True,
    help="Where no replica is in sync, take any that lives. RECORDS THAT IT DOES NOT HAVE ARE LOST.",
)
@format_option
@connected
def elect_leader(
    connection: Connection, names: tuple[str, ...], every: bool, unclean: bool, output_format: str
) -> None:
    """Have the first replica of each partition elected its leader again, where it is in sync.

    \b
    Examples:
      moldau partition elect-leader --all
      moldau partition elect-leader orders:0,2 payments
    """
    if bool(names) == every:
        raise click.UsageError("Name partitions, or say --all.")
    with open_admin(connection) as admin:
        wanted = [TopicPartition(item.topic, item.partition) for item in find_partitions(admin, names)]
        outcomes = admin.elect_leaders(UNCLEAN if unclean else PREFERRED, None if every else wanted)
        elected = [partition for partition, outcome in outcomes.items() if outcome.error is None]
        leaders = _leaders(admin, elected, unclean)
    rows: list[dict[str, object]] = []
    failed = False
    for partition in sorted(outcomes):
        error = outcomes[partition].error
        row: dict[str, object] = {"topic": partition.topic, "partition": partition.partition}
        if error is None:
            row |= {"elected": True, "leader": leaders.get(partition)}
            say(output_format, f"Partition {partition} is led by {leaders.get(partition, 'another replica')} now.")
        elif error.name == "ELECTION_NOT_NEEDED":
            row |= {"elected": False, "error": None}
        else:
            failed = True
            row |= {"elected": False, "error": error.name, "message": error.message}
            click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
            click.echo(f"Partition {partition}: {explain(error) or error.message}", err=True)
        rows.append(row)
    needless = sum(1 for row in rows if row.get("error", "") is None)
    if every or needless:
        count = plural(needless, "partition") if not every else "All other partitions"
        verb = "has" if not every and needless == 1 else "have"
        say(output_format, f"{count} {verb} the right leader already.")
    finish(output_format, rows, failed)


def _leaders(admin: Admin, partitions: list[TopicPartition], unclean: bool) -> dict[TopicPartition, int]:
    """Who leads now. A preferred leader is the first replica; any other has to be asked for until brokers know it."""
    topics = {partition.topic for partition in partitions}
    deadline = time.monotonic() + NEWS_S
    while topics:
        found = {TopicPartition(item.topic, item.partition): item for item in find_partitions(admin, topics)}
        if not unclean:
            return {partition: found[partition].replicas[0] for partition in partitions}
        leaders = {partition: found[partition].leader for partition in partitions}
        if min(leaders.values()) >= 0 or time.monotonic() > deadline:
            return {partition: leader for partition, leader in leaders.items() if leader >= 0}
        time.sleep(0.05)
    return {}
