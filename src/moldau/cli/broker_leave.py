"""`moldau broker drain|unregister`: a broker that is to go hands over what it has, and is forgotten when it is gone."""

from __future__ import annotations

import time

import click

from moldau.cli.broker import find_broker
from moldau.cli.completion import complete_brokers
from moldau.cli.drain_plan import plan_drain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import plural, print_error, print_json, say
from moldau.cli.partition_reassign import (
    Moves,
    clear_throttle,
    set_throttle,
    show_plan,
    start_moves,
    tell_refused,
    wait_for_moves,
)
from moldau.cli.positions import DurationType
from moldau.client.admin import PREFERRED, Admin
from moldau.client.connection.cluster import PartitionMetadata
from moldau.client.results import TopicPartition
from moldau.facts.cluster import all_partitions, describe_brokers

# How long it takes at most until every broker has heard of the elections.
NEWS_S = 5.0
LOOK_S = 0.2

id_argument = click.argument("broker_id", metavar="ID", type=click.IntRange(min=0), shell_complete=complete_brokers)


@click.command()
@id_argument
@click.option("--replicas", is_flag=True, help="Move its replicas to other brokers too, not only what it leads.")
@click.option("--throttle", type=click.IntRange(min=1), metavar="BYTES", help="Bytes a second between brokers.")
@click.option(
    "--dry-run", is_flag=True, help="Only show what would change; --format json is a plan for reassign --plan."
)
@click.option("--wait-timeout", type=DurationType(), metavar="DURATION", help="Wait no longer than this, such as 10m.")
@format_option
@connected
def drain(
    connection: Connection,
    broker_id: int,
    replicas: bool,
    throttle: int | None,
    dry_run: bool,
    wait_timeout: float | None,
    output_format: str,
) -> None:
    """Have other brokers lead what this one leads; with --replicas, take everything away from it.

    Its replicas become the last of their partitions, so that it leads nothing again by itself. Afterwards it can be
    stopped without anybody noticing; to have it lead again, `moldau partition reassign` puts it first.

    \b
    Examples:
      moldau broker drain 4 --dry-run
      moldau broker drain 4 --replicas --throttle 50000000 && systemctl stop moldau && moldau broker unregister 4
    """
    with open_admin(connection) as admin:
        found = describe_brokers(admin)
        find_broker(found, broker_id)
        racks = {broker.id: broker.rack for broker in found.brokers if broker.id not in found.fenced}
        before = _by_name(admin)
        plan = plan_drain(before.values(), broker_id, racks, replicas)
        for key in plan.stuck:
            why = "no other broker can take it" if replicas else "it has no other replica"
            print_error(f"Partition {key} stays on broker {broker_id}: {why}.")
        if dry_run:
            show_plan(plan.changes, before, output_format, True)
            raise click.exceptions.Exit(1 if plan.stuck else 0)
        if plan.changes and throttle is not None:
            set_throttle(admin, plan.changes, before, throttle)
        started = start_moves(admin, plan.changes)
        tell_refused(started)
        done = not started.good or wait_for_moves(
            Moves(admin, {key: plan.changes[key] for key in started.good}, before), wait_timeout
        )
        if plan.changes and throttle is not None and done:
            clear_throttle(admin, plan.changes)
        leads = _elect_others(admin, broker_id)
        after = [item for item in _by_name(admin).values() if broker_id in item.replicas]
    row = {"id": broker_id, "changed": len(started.good), "leaders": leads, "replicas": len(after), "done": done}
    if output_format == "json":
        print_json(row)
    say(output_format, _sentence(broker_id, leads, len(after), done))
    if started.failed or plan.stuck or leads or not done:
        raise click.exceptions.Exit(1)


def _by_name(admin: Admin) -> dict[TopicPartition, PartitionMetadata]:
    return {TopicPartition(item.topic, item.partition): item for item in all_partitions(admin.list_topics())}


def _elect_others(admin: Admin, broker_id: int) -> int:
    """Has the first replicas lead where the broker still does; returns how many partitions it leads in the end."""
    deadline = time.monotonic() + NEWS_S
    while True:
        led = [key for key, item in _by_name(admin).items() if item.leader == broker_id and len(item.replicas) > 1]
        if not led or time.monotonic() > deadline:
            return len(led) + sum(
                item.leader == broker_id and len(item.replicas) == 1 for item in _by_name(admin).values()
            )
        admin.elect_leaders(PREFERRED, led)
        time.sleep(LOOK_S)


def _sentence(broker_id: int, leads: int, replicas: int, done: bool) -> str:
    if not done:
        return f"Broker {broker_id} still hands over; `moldau partition describe --only moving` shows how far it is."
    has = f"leads {plural(leads, 'partition')}" if leads else "leads nothing"
    if replicas:
        return f"Broker {broker_id} {has} and has {plural(replicas, 'replica')}."
    return f"Broker {broker_id} has nothing any more: stop it, then `moldau broker unregister {broker_id}`."


@click.command()
@id_argument
@click.option("--force", is_flag=True, help="Also a broker that runs, or that has replicas which are lost then.")
@format_option
@connected
def unregister(connection: Connection, broker_id: int, force: bool, output_format: str) -> None:
    """Forget a broker that is stopped and will not come back.

    Example:
      moldau broker unregister 4
    """
    with open_admin(connection) as admin:
        found = describe_brokers(admin)
        find_broker(found, broker_id)
        replicas = sum(broker_id in item.replicas for item in all_partitions(admin.list_topics()))
        if not force and broker_id not in found.fenced:
            raise click.ClickException(f"Broker {broker_id} is running: stop it first, or cut it off with --force.")
        if not force and replicas:
            raise click.ClickException(
                f"Broker {broker_id} has {plural(replicas, 'replica')}: move them with `moldau partition reassign` or,"
                f" before it stops, `moldau broker drain {broker_id} --replicas`; --force gives them up."
            )
        admin.unregister_broker(broker_id)
    if output_format == "json":
        print_json({"id": broker_id, "unregistered": True})
    say(output_format, f"Broker {broker_id} is no part of the cluster any more.")
