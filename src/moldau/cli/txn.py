"""`moldau txn list|describe|find-hanging|abort`: transactions, those that hang, and how to end them."""

from __future__ import annotations

import time

import click

from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, finish, print_error, print_fields, print_json, print_table, print_title, say
from moldau.cli.partition_names import find_partitions
from moldau.cli.watch import repeat
from moldau.client.admin import Admin
from moldau.client.admin.transactions import HangingTransaction, ProducerState, TransactionDescription
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition

# The default of transaction.max.timeout.ms: no transaction that its coordinator knows of is older.
MAX_TIMEOUT_S = 900


@click.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only those in this state, such as Ongoing.")
@click.option("--producer-id", "producer_ids", multiple=True, type=click.IntRange(min=0), help="Only of this producer.")
@click.option(
    "--longer-than", "longer_than_s", type=click.FloatRange(min=0), metavar="SECONDS", help="Only open so long."
)
@click.option("--pattern", metavar="REGEX", help="Only ids that match.")
@format_option
@watch_options
@connected
def list_transactions(
    connection: Connection,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than_s: float | None,
    pattern: str | None,
    output_format: str,
    watch: bool,
    interval_s: float,
) -> None:
    """List the transactional ids of the cluster."""
    longer_than_ms = -1 if longer_than_s is None else int(longer_than_s * 1000)
    with open_admin(connection) as admin:
        repeat(lambda: _list(admin, states, producer_ids, longer_than_ms, pattern, output_format), watch, interval_s)


def _list(
    admin: Admin,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than_ms: int,
    pattern: str | None,
    output_format: str,
) -> None:
    found = admin.list_transactions(states, producer_ids, longer_than_ms, pattern)
    rows = [
        {
            "transactional_id": item.transactional_id,
            "state": item.state,
            "producer_id": item.producer_id,
            "coordinator": item.coordinator_id,
        }
        for item in sorted(found)
    ]
    if output_format == "json":
        print_json(rows)
    else:
        print_table(
            ("TRANSACTIONAL ID", "STATE", "PRODUCER ID", "COORDINATOR"),
            [
                (row["transactional_id"], _state(str(row["state"])), row["producer_id"], row["coordinator"])
                for row in rows
            ],
            right=("PRODUCER ID", "COORDINATOR"),
        )
    for broker, error in found.errors.items():
        print_error(f"Broker {broker} was not heard: {explain(error)}")
    if found.errors:
        raise SystemExit(1)


def _state(text: str) -> Styled:
    return Styled(text, fg="yellow" if text not in ("Empty", "CompleteCommit", "CompleteAbort", "Dead") else None)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TRANSACTIONAL-ID...")
@click.option(
    "--partitions", is_flag=True, help="The names are partitions (TOPIC or TOPIC:0,2-4): show their producers."
)
@format_option
@connected
def describe(connection: Connection, names: tuple[str, ...], partitions: bool, output_format: str) -> None:
    """Show transactional ids as their coordinators know them, or the producers that partitions remember."""
    rows: list[dict[str, object]] = []
    failed = False
    now_ms = int(time.time() * 1000)
    with open_admin(connection) as admin:
        if partitions:
            _describe_producers(admin, names, output_format)
            return
        for name, outcome in admin.describe_transactions(names).items():
            if outcome.error is not None:
                failed = True
                rows.append({"transactional_id": name, "error": outcome.error.name})
                print_error(explain(outcome.error) or str(outcome.error))
                continue
            row = _description(name, outcome.get(), now_ms)
            rows.append(row)
            if output_format == "table":
                _print_description(row)
    finish(output_format, rows, failed)


def _description(name: str, found: TransactionDescription, now_ms: int) -> dict[str, object]:
    started = found.transaction_start_time_ms
    return {
        "transactional_id": name,
        "state": found.state,
        "coordinator": found.coordinator_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.transaction_timeout_ms,
        "start_time_ms": started,
        "open_ms": None if started is None or found.state != "Ongoing" else max(0, now_ms - started),
        "partitions": [str(item) for item in sorted(found.partitions)],
    }


def _print_description(row: dict[str, object]) -> None:
    print_title(f"transactional id {row['transactional_id']}")
    shown = [(name.replace("_", " "), row[name]) for name in row if name not in ("transactional_id", "partitions")]
    partitions = row["partitions"]
    assert isinstance(partitions, list)
    print_fields([*((name, value) for name, value in shown if value is not None)])
    print_fields([("partitions", ", ".join(partitions) or Styled("none", dim=True))])


def _describe_producers(admin: Admin, names: tuple[str, ...], output_format: str) -> None:
    wanted = [TopicPartition(item.topic, item.partition) for item in find_partitions(admin, names)]
    rows: list[dict[str, object]] = []
    for partition, outcome in admin.describe_producers(wanted).items():
        rows += [_producer_row(partition, item) for item in outcome.get()]
    if output_format == "json":
        print_json(rows)
        return
    _print_producers(rows)


def _producer_row(partition: TopicPartition, item: ProducerState) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "producer_id": item.producer_id,
        "producer_epoch": item.producer_epoch,
        "last_sequence": item.last_sequence,
        "last_timestamp": item.last_timestamp,
        "coordinator_epoch": item.coordinator_epoch,
        "transaction_start_offset": item.current_transaction_start_offset,
    }


def _print_producers(rows: list[dict[str, object]]) -> None:
    columns = ("PARTITION", "PRODUCER ID", "EPOCH", "LAST SEQUENCE", "LAST TIMESTAMP", "OPEN SINCE OFFSET")
    print_table(
        columns,
        [
            (
                f"{row['topic']}-{row['partition']}",
                row["producer_id"],
                row["producer_epoch"],
                row["last_sequence"],
                row["last_timestamp"],
                Styled("-", dim=True) if row["transaction_start_offset"] is None else row["transaction_start_offset"],
            )
            for row in rows
        ],
        right=columns[1:],
    )


@click.command("find-hanging")
@click.argument("names", nargs=-1, metavar="[TOPIC[:PARTITIONS]]...")
@click.option(
    "--older-than",
    "older_than_s",
    type=click.FloatRange(min=0),
    default=MAX_TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="Leave out transactions with younger records: set it to the cluster's transaction.max.timeout.ms.",
)
@format_option
@connected
def find_hanging(connection: Connection, names: tuple[str, ...], older_than_s: float, output_format: str) -> None:
    """Find transactions that are open in partitions and that no coordinator knows, so that none will end them.

    They keep readers of committed records from going on. `moldau txn abort` ends them.
    """
    now_ms = int(time.time() * 1000)
    with open_admin(connection) as admin:
        wanted = [TopicPartition(item.topic, item.partition) for item in find_partitions(admin, names)]
        found = admin.find_hanging_transactions(wanted, int(older_than_s * 1000), now_ms) if wanted else []
    rows = [_producer_row(item.partition, item.producer) for item in found]
    if output_format == "json":
        print_json(rows)
    elif rows:
        _print_producers(rows)
    else:
        click.echo("No transaction hangs.")


@click.command()
@click.argument("what", metavar="TRANSACTIONAL-ID|TOPIC:PARTITION")
@click.option(
    "--start-offset", type=click.IntRange(min=0), help="Where the hanging transaction starts in the partition."
)
@format_option
@connected
def abort(connection: Connection, what: str, start_offset: int | None, output_format: str) -> None:
    """End a transaction.

    With --start-offset a hanging transaction is aborted in one partition, where `moldau txn find-hanging` found it.
    Without it, the transaction of a transactional id is aborted by its coordinator, and its producer is fenced.

    \b
    Examples:
      moldau txn abort orders:0 --start-offset 1042
      moldau txn abort billing-1
    """
    with open_admin(connection) as admin:
        if start_offset is None:
            _force(admin, what)
            row: dict[str, object] = {"transactional_id": what, "fenced": True}
            sentence = f"The transaction of {what} is aborted and its producer is fenced."
        else:
            hanging = _find_open(admin, what, start_offset)
            admin.abort_transaction(hanging.aborted_by)
            row = {**_producer_row(hanging.partition, hanging.producer), "aborted": True}
            sentence = f"The transaction at offset {start_offset} of {hanging.partition} is aborted."
    say(output_format, sentence)
    if output_format == "json":
        print_json(row)


def _force(admin: Admin, name: str) -> None:
    """An id that does not exist would be created by fencing it."""
    admin.describe_transactions([name])[name].get()
    admin.force_terminate_transaction(name)


def _find_open(admin: Admin, name: str, start_offset: int) -> HangingTransaction:
    found = find_partitions(admin, [name])
    if len(found) != 1:
        raise click.UsageError(f"Name one partition as TOPIC:PARTITION, not {name!r}.")
    partition = TopicPartition(found[0].topic, found[0].partition)
    for item in admin.describe_producers([partition])[partition].get():
        if item.current_transaction_start_offset == start_offset:
            return HangingTransaction(partition, item)
    raise ClientError(-1, f"No open transaction starts at offset {start_offset} of {partition}.")
