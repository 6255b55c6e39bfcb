"""`moldau partition reassign`: moves replicas to other brokers, shows how far they are, and calls moves off."""

from __future__ import annotations

import time
from typing import NamedTuple

import click

from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import finish, plural, print_json, print_table, say
from moldau.cli.partition import names_argument
from moldau.cli.partition_names import find_partitions, ids_text
from moldau.cli.positions import DurationType
from moldau.cli.progress import WorkBar
from moldau.client.admin import Admin
from moldau.client.connection.cluster import PartitionMetadata
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition

LOOK_S = 0.5

Plan = dict[TopicPartition, list[int]]


@click.command()
@names_argument
@click.option("--to", metavar="ID[,ID...]", help="The replicas, the first of them to lead; the same for all.")
@click.option(
    "--brokers", metavar="ID[,ID...]", help="Spread the replicas over these brokers, by racks where they are."
)
@click.option("--replication-factor", type=click.IntRange(min=1), help="With --brokers: how many replicas.")
@click.option(
    "--plan", "file", type=click.Path(exists=True, dir_okay=False), help="A plan as JSON, as Kafka's tool has it."
)
@click.option("--cancel", is_flag=True, help="Call off the moves of these partitions; the old replicas stay.")
@click.option("--throttle", type=click.IntRange(min=1), metavar="BYTES", help="Bytes a second between brokers.")
@click.option("--dry-run", is_flag=True, help="Only show what would be moved; --format json is a plan for --plan.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until everything has moved.")
@click.option("--wait-timeout", type=DurationType(), metavar="DURATION", help="Wait no longer than this, such as 10m.")
@format_option
@connected
def reassign(
    connection: Connection,
    names: tuple[str, ...],
    to: str | None,
    brokers: str | None,
    replication_factor: int | None,
    file: str | None,
    cancel: bool,
    throttle: int | None,
    dry_run: bool,
    wait: bool,
    wait_timeout: float | None,
    output_format: str,
) -> None:
    """Move replicas of partitions to other brokers.

    \b
    Examples:
      moldau partition reassign orders:0 --to 2,3,1
      moldau partition reassign orders payments --brokers 1,2,3,4 --dry-run
      moldau partition reassign --plan plan.json --throttle 50000000
      moldau partition reassign orders --cancel

    Waiting can be ended with Ctrl-C; the moves go on, and `moldau partition describe --only moving` shows them. A
    throttle is taken away when the moves are done; without --wait, `kafka-reassign-partitions --verify` does that.
    """
    if sum((to is not None, brokers is not None, file is not None, cancel)) != 1:
        raise click.UsageError("Say what to do with one of --to, --brokers, --plan and --cancel.")
    if bool(names) == (file is not None) and not (cancel and not names):
        raise click.UsageError("Name the partitions, as in orders or orders:0,2; a --plan names its own.")
    with open_admin(connection) as admin:
        if cancel:
            _cancel(admin, names, output_format)
            return
        plan = _make_plan(admin, names, to, brokers, replication_factor, file)
        before = _current(admin, plan)
        changes = {key: replicas for key, replicas in plan.items() if replicas != before[key].replicas}
        if dry_run or not changes:
            show_plan(plan, before, output_format, dry_run)
            return
        if throttle is not None:
            set_throttle(admin, changes, before, throttle)
        started = start_moves(admin, changes)
        moved = Moves(admin, {key: changes[key] for key in started.good}, before)
        done = wait_for_moves(moved, wait_timeout) if wait and started.good else False
        if throttle is not None and done:
            clear_throttle(admin, changes)
    _tell(started, changes, before, done, output_format)


# Plans


def _numbers(option: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts) or len(set(parts)) != len(parts):
        raise click.UsageError(f"{option} wants different broker ids as in 1,2,3; not {text!r}.")
    return [int(part) for part in parts]


def _make_plan(
    admin: Admin, names: tuple[str, ...], to: str | None, brokers: str | None, factor: int | None, file: str | None
) -> Plan:
    if file is not None:
        return _read_plan(file)
    partitions = find_partitions(admin, names)
    if to is not None:
        replicas = _numbers("--to", to)
        _check_brokers(admin, replicas)
        return {TopicPartition(item.topic, item.partition): replicas for item in partitions}
    chosen = _numbers("--brokers", brokers or "")
    _check_brokers(admin, chosen)
    return _spread(admin, partitions, chosen, factor)


def _read_plan(file: str) -> Plan:
    from moldau.cli.kafka.options import JavaFailure
    from moldau.cli.kafka.reassign_plan import check_executable, parse_plan

    with open(file, encoding="utf-8") as source:
        text = source.read()
    try:
        plan = parse_plan(text)
        check_executable(plan)
    except JavaFailure as failure:
        raise click.ClickException(f"{file}: {failure.message}") from None
    if plan.directories:
        raise click.ClickException(f"{file} names log directories; `moldau kafka-reassign-partitions` can do that.")
    return plan.assignment


def _check_brokers(admin: Admin, wanted: list[int]) -> None:
    there = sorted(broker.id for broker in admin.describe_cluster().brokers)
    missing = [each for each in wanted if each not in there]
    if missing:
        raise click.ClickException(f"There is no broker {ids_text(missing)}; there are {ids_text(there)}.")


def _spread(admin: Admin, partitions: list[PartitionMetadata], brokers: list[int], factor: int | None) -> Plan:
    import random

    from moldau.controller.placement import UsableBroker, place_replicas

    found = {broker.id: broker.rack for broker in admin.describe_cluster().brokers if broker.id in brokers}
    # Racks count only where every broker has one.
    by_rack = all(rack is not None for rack in found.values())
    usable = [UsableBroker(broker, found[broker] if by_rack else None, False) for broker in sorted(found)]
    plan: Plan = {}
    for topic in dict.fromkeys(item.topic for item in partitions):
        rows = [item for item in partitions if item.topic == topic]
        count = factor or len(rows[0].replicas)
        if count > len(usable):
            raise click.ClickException(f"{topic} has {count} replicas; name at least as many brokers.")
        # The same question has the same result: what a dry run shows is what the run does.
        spread = place_replicas(usable, len(rows), count, random.Random(f"{topic} {sorted(found)} {count}"))
        plan |= {TopicPartition(topic, item.partition): row for item, row in zip(rows, spread, strict=True)}
    return plan


def _current(admin: Admin, plan: Plan) -> dict[TopicPartition, PartitionMetadata]:
    topics = dict.fromkeys(key.topic for key in plan)
    found = {TopicPartition(item.topic, item.partition): item for item in find_partitions(admin, topics)}
    missing = [key for key in plan if key not in found]
    if missing:
        raise click.ClickException(f"There is no partition {missing[0]}.")
    return {key: found[key] for key in plan}


def show_plan(plan: Plan, before: dict[TopicPartition, PartitionMetadata], output_format: str, dry_run: bool) -> None:
    if output_format == "json":
        rows = [{"topic": key.topic, "partition": key.partition, "replicas": plan[key]} for key in sorted(plan)]
        print_json({"version": 1, "partitions": rows})
    elif not dry_run:
        click.echo("Nothing has to move.")
    else:
        columns = ("TOPIC", "PARTITION", "NOW", "THEN")
        rows_shown = [(*key, ids_text(before[key].replicas), ids_text(plan[key])) for key in sorted(plan)]
        print_table(columns, rows_shown, right=("PARTITION",))


# Moving


class Started(NamedTuple):
    good: list[TopicPartition]
    failed: dict[TopicPartition, ClientError]


def start_moves(admin: Admin, changes: Plan) -> Started:
    outcomes = admin.alter_partition_reassignments(changes) if changes else {}
    failed = {key: outcome.error for key, outcome in outcomes.items() if outcome.error is not None}
    return Started(sorted(key for key in outcomes if key not in failed), failed)


class Moves:
    """How far moves are: in replicas, and in bytes of those that have to be copied."""

    def __init__(self, admin: Admin, changes: Plan, before: dict[TopicPartition, PartitionMetadata]) -> None:
        self.admin = admin
        self.partitions = list(changes)
        self.copies = {
            (key, broker)
            for key, replicas in changes.items()
            for broker in replicas
            if broker not in before[key].replicas
        }
        self._leaders = {(key, before[key].leader) for key in changes if before[key].leader >= 0}

    def left(self) -> int:
        """Partitions that are still on their way."""
        return len(self.admin.list_partition_reassignments(self.partitions)) if self.partitions else 0

    def bytes_copied(self) -> tuple[int, int]:
        """What the new replicas have, and what they must have."""
        wanted = self.copies | self._leaders
        sizes: dict[tuple[TopicPartition, int], int] = {}
        outcomes = self.admin.describe_log_dirs({broker for _, broker in wanted}, self.partitions) if wanted else {}
        for broker, outcome in outcomes.items():
            for directory in outcome.get() if outcome.error is None else []:
                for replica in directory.replicas:
                    sizes[replica.partition, broker] = replica.size
        whole = {key: sizes.get((key, broker), 0) for key, broker in self._leaders}
        total = sum(whole.get(key, 0) for key, _ in self.copies)
        done = sum(min(sizes.get((key, broker), 0), whole.get(key, 0)) for key, broker in self.copies)
        return done, total


def wait_for_moves(moves: Moves, limit_s: float | None) -> bool:
    """Shows a bar until all is moved; False when the time is over before."""
    deadline = None if limit_s is None else time.monotonic() + limit_s
    _, total = moves.bytes_copied()
    title = f"moving {plural(len(moves.partitions), 'partition')}"
    with WorkBar(title, max(total, 1)) as bar:
        while moves.left():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            done, _ = moves.bytes_copied()
            bar.update(done, None, done)
            time.sleep(LOOK_S)
    return True


def set_throttle(admin: Admin, changes: Plan, before: dict[TopicPartition, PartitionMetadata], throttle: int) -> None:
    from moldau.cli.kafka import reassign_actions
    from moldau.cli.kafka.reassign_plan import proposed_moves

    moves = proposed_moves(admin.list_partition_reassignments(), changes, {k: before[k].replicas for k in changes})
    reassign_actions.set_broker_throttle(admin, moves, throttle)


def clear_throttle(admin: Admin, changes: Plan) -> None:
    from moldau.cli.kafka import reassign_actions

    brokers = [broker.id for broker in admin.describe_cluster().brokers]
    reassign_actions.delete_throttles(admin, brokers, sorted({key.topic for key in changes}))


def tell_refused(started: Started) -> None:
    for key, error in sorted(started.failed.items()):
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(f"Partition {key}: {explain(error) or error.message}", err=True)


def _tell(
    started: Started,
    changes: Plan,
    before: dict[TopicPartition, PartitionMetadata],
    done: bool,
    output_format: str,
) -> None:
    rows: list[dict[str, object]] = []
    for key in sorted(changes):
        error = started.failed.get(key)
        row: dict[str, object] = {"topic": key.topic, "partition": key.partition, "from": before[key].replicas}
        row |= {"to": changes[key], "done": done and error is None}
        if error is not None:
            row |= {"error": error.name, "message": error.message}
        rows.append(row)
    tell_refused(started)
    if started.good:
        count = plural(len(started.good), "partition")
        text = (
            f"Moved {count}."
            if done
            else f"Started to move {count}; `moldau partition describe --only moving` shows them."
        )
        say(output_format, text)
    finish(output_format, rows, bool(started.failed))


def _cancel(admin: Admin, names: tuple[str, ...], output_format: str) -> None:
    wanted = {TopicPartition(item.topic, item.partition) for item in find_partitions(admin, names)}
    active = sorted(key for key in admin.list_partition_reassignments() if key in wanted)
    outcomes = admin.alter_partition_reassignments(dict.fromkeys(active)) if active else {}
    rows: list[dict[str, object]] = []
    for key, outcome in outcomes.items():
        row: dict[str, object] = {"topic": key.topic, "partition": key.partition}
        row["error"] = None if outcome.error is None else outcome.error.name
        rows.append(row)
        if outcome.error is not None:
            click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
            click.echo(f"Partition {key}: {explain(outcome.error) or outcome.error.message}", err=True)
    good = sum(row["error"] is None for row in rows)
    say(output_format, f"Called off {plural(good, 'move')}." if active else "Nothing is being moved.")
    finish(output_format, rows, good < len(rows))
