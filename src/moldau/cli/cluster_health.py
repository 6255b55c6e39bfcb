"""`moldau cluster health`: whether everything in the cluster is as it should be."""

from __future__ import annotations

import click

from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, plural, print_fields, print_json, print_table
from moldau.cli.watch import repeat
from moldau.client.connection.cluster import PartitionMetadata
from moldau.facts.cluster_health import Health, check_health

# The answer is there, and it is no.
UNHEALTHY = 3

SHOWN_MAX = 50


@click.command("health")
@format_option
@watch_options
@connected
def health(connection: Connection, output_format: str, watch: bool, interval_s: float) -> None:
    """Tell whether the cluster is healthy: exit code 0 if it is, 3 if not, 1 if nobody could be asked.

    Healthy means: there is a controller, its voters keep up, no broker is fenced, every partition has a leader and
    all its replicas are in sync. A partition at its min.insync.replicas takes no acks=all writes any more once it
    loses another replica; one under them takes none now.
    """
    with open_admin(connection) as admin:
        repeat(lambda: _show_health(check_health(admin), output_format), watch, interval_s)


def _show_health(found: Health, output_format: str) -> None:
    if output_format == "json":
        print_json(_health_row(found))
    else:
        _print_health(found)
    if not found.healthy:
        click.get_current_context().exit(UNHEALTHY)


def _health_row(found: Health) -> dict[str, object]:
    return {
        "healthy": found.healthy,
        "controller": found.controller,
        "brokers": found.brokers,
        "fenced_brokers": found.fenced,
        "voters_behind": found.voters_behind,
        "partitions": found.partitions,
        **{name: [_partition_row(item) for item in items] for name, items in _groups(found)},
    }


def _groups(found: Health) -> list[tuple[str, list[PartitionMetadata]]]:
    return [
        ("offline_partitions", found.offline),
        ("under_min_isr_partitions", found.under_min),
        ("at_min_isr_partitions", found.at_min),
        ("under_replicated_partitions", found.under_replicated),
    ]


def _partition_row(item: PartitionMetadata) -> dict[str, object]:
    return {
        "topic": item.topic,
        "partition": item.partition,
        "leader": item.leader,
        "replicas": item.replicas,
        "in_sync_replicas": item.in_sync_replicas,
    }


def _print_health(found: Health) -> None:
    if found.healthy:
        click.secho("The cluster is healthy.", fg="green", bold=True)
    else:
        click.secho("The cluster is not healthy.", fg="red", bold=True)
    active = found.brokers - len(found.fenced)
    fenced = ", ".join(str(number) for number in found.fenced)
    behind = ", ".join(str(number) for number in found.voters_behind)
    fields: list[tuple[str, object]] = [
        ("controller", Styled("none", fg="red", bold=True) if found.controller < 0 else found.controller),
        ("brokers", Styled(f"{active} active, fenced: {fenced}", fg="red") if fenced else f"{active}, all active"),
    ]
    if behind:
        fields.append(("voters behind", Styled(behind, fg="yellow")))
    fields.append(("partitions", f"{found.partitions:,}"))
    for name, items in _groups(found):
        colour = "green" if not items else "yellow" if name.startswith(("at_", "under_rep")) else "red"
        title = name.removesuffix("_partitions").replace("_", " ").replace("isr", "ISR")
        fields.append(("  " + title, Styled(f"{len(items):,}", fg=colour)))
    print_fields(fields)
    _print_degraded(found)


def _print_degraded(found: Health) -> None:
    states: dict[tuple[str, int], tuple[PartitionMetadata, Styled]] = {}
    for name, items in reversed(_groups(found)):
        colour = "yellow" if name.startswith(("at_", "under_rep")) else "red"
        label = name.removesuffix("_partitions").replace("_", " ").replace("isr", "ISR")
        for item in items:
            states[item.topic, item.partition] = (item, Styled(label, fg=colour))
    if not states:
        return
    click.echo()
    rows = [
        (
            item.topic,
            item.partition,
            "none" if item.leader < 0 else item.leader,
            ",".join(map(str, item.replicas)),
            ",".join(map(str, item.in_sync_replicas)),
            label,
        )
        for _, (item, label) in sorted(states.items())[:SHOWN_MAX]
    ]
    print_table(("TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN-SYNC", "STATE"), rows, right=("PARTITION", "LEADER"))
    if len(states) > SHOWN_MAX:
        click.echo(f"... and {plural(len(states) - SHOWN_MAX, 'partition')} more; --format json has them all.")
