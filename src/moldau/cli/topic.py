"""`moldau topic create|list|describe|delete`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from moldau.cli.explain import explain
from moldau.cli.options import Connection, connection_of, connection_options, format_option, parse_pairs
from moldau.cli.output import print_error, print_json, print_table, print_title
from moldau.client.admin import CONFIG_SOURCES, TOPIC, Admin, ConfigEntry, ConfigResource, NewTopic
from moldau.client.cluster import TopicMetadata
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition
from moldau.protocol.errors import TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.uuids import uuid_to_text

TOPIC_CONFIG_SOURCE = 1


def open_admin(connection: Connection) -> Admin:
    return Admin(config=connection.config(default_api_timeout_ms=connection.timeout_ms), first_contact_ms=0)


def _error_row(name: str, error: ClientError) -> dict[str, object]:
    return {"name": name, "error": error.name, "message": error.message}


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-p", "--partitions", type=int, default=-1, help="How many partitions. Default: the broker's.")
@click.option("-r", "--replication-factor", type=int, default=-1, help="How many replicas. Default: the broker's.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A topic config; may be repeated.")
@click.option(
    "--replica-assignment",
    metavar="ID:ID,ID:ID,...",
    help="The brokers of each partition, instead of numbers: 1:2,2:3 makes two partitions.",
)
@click.option("--if-not-exists", is_flag=True, help="Accept that the topic exists already.")
@click.option("--validate-only", is_flag=True, help="Only ask whether the broker would create it.")
@connection_options
@format_option
def create(
    names: tuple[str, ...],
    partitions: int,
    replication_factor: int,
    configs: tuple[str, ...],
    replica_assignment: str | None,
    if_not_exists: bool,
    validate_only: bool,
    bootstrap_server: str,
    timeout_s: float,
    settings: tuple[str, ...],
    output_format: str,
) -> None:
    """Create topics."""
    connection = connection_of(bootstrap_server, timeout_s, settings)
    given: dict[str, str | None] = {**parse_pairs("--config", configs)}
    placed = [] if replica_assignment is None else parse_assignment(replica_assignment)
    if placed and (partitions != -1 or replication_factor != -1):
        raise click.UsageError("--replica-assignment says it all: leave --partitions and --replication-factor out.")
    topics = [NewTopic(name, partitions, replication_factor, given, placed) for name in dict.fromkeys(names)]
    with open_admin(connection) as admin:
        outcomes = admin.create_topics(topics, validate_only)
    rows: list[dict[str, object]] = []
    failed = False
    for name, outcome in outcomes.items():
        error = outcome.error
        if error is not None and if_not_exists and error.code == TOPIC_ALREADY_EXISTS:
            rows.append({"name": name, "created": False})
            _say(output_format, f"Topic {name} exists already.")
        elif error is not None:
            failed = True
            rows.append(_error_row(name, error))
            print_error(explain(error) or error.message)
        else:
            made = outcome.get()
            rows.append(
                {
                    "name": name,
                    "created": not validate_only,
                    "topic_id": uuid_to_text(made.topic_id),
                    "partitions": made.partitions,
                    "replication_factor": made.replication_factor,
                }
            )
            verb = "Topic {} can be created" if validate_only else "Created topic {}"
            unit = "partition" if made.partitions == 1 else "partitions"
            size = f": {made.partitions} {unit}, replication factor {made.replication_factor}."
            _say(output_format, verb.format(name) + (size if made.partitions > 0 else "."))
    _finish(output_format, rows, failed)


def parse_assignment(text: str) -> list[list[int]]:
    """'1:2,2:3' as the brokers of each partition."""
    try:
        return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--replica-assignment wants broker ids as in 1:2,2:3, not {text!r}.") from None


@click.command("list")
@click.option("-i", "--internal", is_flag=True, help="Also the topics that Kafka keeps for itself.")
@click.option("-q", "--quiet", is_flag=True, help="Names only, one a line.")
@connection_options
@format_option
def list_topics(
    internal: bool,
    quiet: bool,
    bootstrap_server: str,
    timeout_s: float,
    settings: tuple[str, ...],
    output_format: str,
) -> None:
    """List the topics."""
    with open_admin(connection_of(bootstrap_server, timeout_s, settings)) as admin:
        topics = [topic for topic in admin.list_topics() if internal or not topic.is_internal]
    if output_format == "json":
        print_json(
            [
                {
                    "name": topic.name,
                    "topic_id": uuid_to_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replication_factor": _replication_factor(topic),
                    "internal": topic.is_internal,
                }
                for topic in topics
            ]
        )
    elif quiet:
        for topic in topics:
            click.echo(topic.name)
    elif not topics:
        click.echo("There are no topics yet; `moldau topic create NAME` makes one.", err=True)
    else:
        rows = [(topic.name, len(topic.partitions), _replication_factor(topic)) for topic in topics]
        print_table(("NAME", "PARTITIONS", "REPLICAS"), rows, right=("PARTITIONS", "REPLICAS"))


def _replication_factor(topic: TopicMetadata) -> int:
    first = topic.partitions.get(0)
    return 0 if first is None else len(first.replicas)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@connection_options
@format_option
def describe(
    names: tuple[str, ...], bootstrap_server: str, timeout_s: float, settings: tuple[str, ...], output_format: str
) -> None:
    """Show partitions, offsets and configs of topics."""
    rows: list[dict[str, object]] = []
    failed = False
    with open_admin(connection_of(bootstrap_server, timeout_s, settings)) as admin:
        for name, outcome in admin.describe_topics(dict.fromkeys(names)).items():
            if outcome.error is not None:
                failed = True
                rows.append(_error_row(name, outcome.error))
                print_error(explain(outcome.error) or outcome.error.message)
                continue
            described = _describe(admin, outcome.get())
            rows.append(described)
            if output_format == "table":
                _print_description(described)
    _finish(output_format, rows, failed)


def _describe(admin: Admin, topic: TopicMetadata) -> dict[str, object]:
    from moldau.client.offsets import EARLIEST, LATEST

    partitions = [topic.partitions[index] for index in sorted(topic.partitions)]
    keys = [TopicPartition(topic.name, item.partition) for item in partitions if item.leader >= 0]
    starts = admin.list_offsets(dict.fromkeys(keys, EARLIEST)) if keys else {}
    ends = admin.list_offsets(dict.fromkeys(keys, LATEST)) if keys else {}
    offsets: dict[TopicPartition, tuple[int | None, int | None]] = {}
    for key in keys:
        start, end = starts[key], ends[key]
        offsets[key] = (
            None if start.error is not None else start.get().offset,
            None if end.error is not None else end.get().offset,
        )
    resource = ConfigResource(TOPIC, topic.name)
    found = admin.describe_configs([resource])[resource]
    entries: list[ConfigEntry] = [] if found.error is not None else found.get()
    return {
        "name": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "replication_factor": _replication_factor(topic),
        "configs": [
            {"name": entry.name, "value": entry.value, "source": CONFIG_SOURCES.get(entry.source, "unknown")}
            for entry in sorted(entries)
            if not entry.is_default
        ],
        "partitions": [
            {
                "partition": item.partition,
                "leader": item.leader,
                "leader_epoch": item.leader_epoch,
                "replicas": item.replicas,
                "in_sync_replicas": item.in_sync_replicas,
                "offline_replicas": item.offline_replicas,
                "start_offset": offsets.get(TopicPartition(topic.name, item.partition), (None, None))[0],
                "end_offset": offsets.get(TopicPartition(topic.name, item.partition), (None, None))[1],
            }
            for item in partitions
        ],
    }


def _print_description(described: dict[str, object]) -> None:
    partitions = described["partitions"]
    configs = described["configs"]
    assert isinstance(partitions, list) and isinstance(configs, list)
    print_title(str(described["name"]))
    click.echo(f"  id                  {described['topic_id']}")
    click.echo(f"  partitions          {len(partitions)}")
    click.echo(f"  replication factor  {described['replication_factor']}")
    if described["internal"]:
        click.echo("  internal            yes")
    for index, entry in enumerate(configs):
        title = "configs" if index == 0 else ""
        click.echo(f"  {title:<18}  {entry['name']}={entry['value']} ({entry['source']})")
    click.echo()
    columns = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN-SYNC", "START", "END")
    rows = [
        (
            row["partition"],
            "none" if row["leader"] < 0 else row["leader"],
            row["leader_epoch"],
            _ids(row["replicas"]),
            _ids(row["in_sync_replicas"]),
            "?" if row["start_offset"] is None else row["start_offset"],
            "?" if row["end_offset"] is None else row["end_offset"],
        )
        for row in partitions
    ]
    print_table(columns, rows, right=("PARTITION", "LEADER", "EPOCH", "START", "END"))
    click.echo()


def _ids(values: Sequence[int]) -> str:
    return ",".join(str(value) for value in values)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--if-exists", is_flag=True, help="Accept that the topic does not exist.")
@connection_options
@format_option
def delete(
    names: tuple[str, ...],
    if_exists: bool,
    bootstrap_server: str,
    timeout_s: float,
    settings: tuple[str, ...],
    output_format: str,
) -> None:
    """Delete topics and all their records."""
    with open_admin(connection_of(bootstrap_server, timeout_s, settings)) as admin:
        outcomes = admin.delete_topics(dict.fromkeys(names))
    rows: list[dict[str, object]] = []
    failed = False
    for name, outcome in outcomes.items():
        error = outcome.error
        if error is not None and if_exists and error.code == UNKNOWN_TOPIC_OR_PARTITION:
            rows.append({"name": name, "deleted": False})
            _say(output_format, f"Topic {name} does not exist.")
        elif error is not None:
            failed = True
            rows.append(_error_row(name, error))
            print_error(explain(error) or error.message)
        else:
            rows.append({"name": name, "deleted": True})
            _say(output_format, f"Deleted topic {name}.")
    _finish(output_format, rows, failed)


def _say(output_format: str, text: str) -> None:
    if output_format == "table":
        click.echo(text)


def _finish(output_format: str, rows: list[dict[str, object]], failed: bool) -> None:
    if output_format == "json":
        print_json(rows)
    if failed:
        click.get_current_context().exit(1)
