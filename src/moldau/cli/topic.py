"""`moldau topic create|list|delete`."""

from __future__ import annotations

import click

from moldau.cli.completion import complete_topics
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_topic_admin, parse_pairs
from moldau.cli.output import finish, plural, print_error, print_json, print_table, say
from moldau.client.admin import NewTopic
from moldau.client.connection.cluster import TopicMetadata
from moldau.client.errors import ClientError
from moldau.protocol.errors import TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.uuids import uuid_to_text

__all__ = ["create", "delete", "list_topics"]


def error_row(name: str, error: ClientError) -> dict[str, object]:
    return {"name": name, "error": error.name, "message": error.message}


def tell_error(error: ClientError) -> None:
    print_error(explain(error) or error.message)


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
@format_option
@connected
def create(
    connection: Connection,
    names: tuple[str, ...],
    partitions: int,
    replication_factor: int,
    configs: tuple[str, ...],
    replica_assignment: str | None,
    if_not_exists: bool,
    validate_only: bool,
    output_format: str,
) -> None:
    """Create topics.

    \b
    Examples:
      moldau topic create orders
      moldau topic create orders payments -p 12 -r 3 -c retention.ms=86400000
    """
    given: dict[str, str | None] = {**parse_pairs("--config", configs)}
    placed = [] if replica_assignment is None else parse_assignment(replica_assignment)
    if placed and (partitions != -1 or replication_factor != -1):
        raise click.UsageError(
            "--replica-assignment sets partitions and replicas: leave --partitions and --replication-factor out."
        )
    topics = [NewTopic(name, partitions, replication_factor, given, placed) for name in dict.fromkeys(names)]
    with open_topic_admin(connection) as admin:
        outcomes = admin.create_topics(topics, validate_only)
    rows: list[dict[str, object]] = []
    failed = False
    for name, outcome in outcomes.items():
        error = outcome.error
        if error is not None and if_not_exists and error.code == TOPIC_ALREADY_EXISTS:
            rows.append({"name": name, "created": False})
            say(output_format, f"Topic {name} exists already.")
        elif error is not None:
            failed = True
            rows.append(error_row(name, error))
            tell_error(error)
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
            size = f": {plural(made.partitions, 'partition')}, replication factor {made.replication_factor}."
            say(output_format, verb.format(name) + (size if made.partitions > 0 else "."))
    finish(output_format, rows, failed)


def parse_assignment(text: str) -> list[list[int]]:
    """'1:2,2:3' as the brokers of each partition."""
    try:
        return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--replica-assignment wants broker ids as in 1:2,2:3, not {text!r}.") from None


@click.command("list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=complete_topics)
@click.option("-i", "--internal", is_flag=True, help="Also the topics that Kafka keeps for itself.")
@click.option("-q", "--quiet", is_flag=True, help="Names only, one a line.")
@format_option
@connected
def list_topics(
    connection: Connection, patterns: tuple[str, ...], internal: bool, quiet: bool, output_format: str
) -> None:
    """List the topics, or those whose names match a PATTERN such as 'orders-*'."""
    with open_topic_admin(connection) as admin:
        everything = admin.list_topics()
    topics = [topic for topic in everything if internal or not topic.is_internal]
    if patterns:
        from fnmatch import fnmatchcase

        topics = [topic for topic in topics if any(fnmatchcase(topic.name, pattern) for pattern in patterns)]
    if output_format == "json":
        print_json(
            [
                {
                    "name": topic.name,
                    "topic_id": uuid_to_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replication_factor": replication_factor_of(topic),
                    "internal": topic.is_internal,
                }
                for topic in topics
            ]
        )
    elif quiet:
        for topic in topics:
            click.echo(topic.name)
    elif topics:
        rows = [(topic.name, len(topic.partitions), replication_factor_of(topic)) for topic in topics]
        print_table(("NAME", "PARTITIONS", "REPLICAS"), rows, right=("PARTITIONS", "REPLICAS"))
    elif patterns:
        click.echo(f"No topic matches {' or '.join(patterns)}.", err=True)
    else:
        click.echo("There are no topics yet; `moldau topic create NAME` makes one.", err=True)


def replication_factor_of(topic: TopicMetadata) -> int:
    first = topic.partitions.get(0)
    return 0 if first is None else len(first.replicas)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_topics)
@click.option("--if-exists", is_flag=True, help="Accept that the topic does not exist.")
@format_option
@connected
def delete(connection: Connection, names: tuple[str, ...], if_exists: bool, output_format: str) -> None:
    """Delete topics and all their records."""
    with open_topic_admin(connection) as admin:
        outcomes = admin.delete_topics(dict.fromkeys(names))
    rows: list[dict[str, object]] = []
    failed = False
    for name, outcome in outcomes.items():
        error = outcome.error
        if error is not None and if_exists and error.code == UNKNOWN_TOPIC_OR_PARTITION:
            rows.append({"name": name, "deleted": False})
            say(output_format, f"Topic {name} does not exist.")
        elif error is not None:
            failed = True
            rows.append(error_row(name, error))
            tell_error(error)
        else:
            rows.append({"name": name, "deleted": True})
            say(output_format, f"Deleted topic {name}.")
    finish(output_format, rows, failed)
