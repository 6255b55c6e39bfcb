"""`kafka-transactions`: transactional ids, the producers of a partition, hanging transactions and their abort."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.admin_tools import Connect, ask, connect
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.subcommands import CommandParser

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.admin.transactions import ProducerState
    from moldau.client.results import TopicPartition

LIST_HEADER = ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
DESCRIBE_HEADER = [
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
]
PRODUCERS_HEADER = [
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
]
HANGING_HEADER = [
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
]
COMMANDS = ("list", "describe", "describe-producers", "abort", "find-hanging", "forceTerminateTransaction")
MINUTE_MS = 60_000
DEFAULT_TIMEOUT_MINUTES = 15


def _parser() -> CommandParser:
    parser = CommandParser(prog="kafka-transactions.sh", description="Transactions and those that hang.", help_code=1)
    parser.add_argument("-v", "--version", action="store_true", help="Show the version.")
    parser.add_argument("--command-config", metavar="FILE", help="A file with settings for the admin client.")
    parser.add_argument("--bootstrap-server", metavar="host:port", required=True, help="The servers to connect to.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    listing = commands.add_parser("list", help="List transactions.")
    listing.add_argument("--duration-filter", type="long", help="Only those that run longer than so many ms.")
    listing.add_argument("--transactional-id-pattern", help="Only ids that match this regular expression.")
    describe = commands.add_parser("describe", help="Show a transactional id.")
    describe.add_argument("--transactional-id", required=True, help="The transactional id.")
    producers = commands.add_parser("describe-producers", help="Show the producers of a partition.")
    producers.add_argument("--broker-id", type=int, help="The broker to ask; the leader without it.")
    producers.add_argument("--topic", required=True, help="The topic.")
    producers.add_argument("--partition", type=int, required=True, help="The partition.")
    abort = commands.add_parser("abort", help="Abort a hanging transaction.")
    abort.add_argument("--topic", required=True, help="The topic.")
    abort.add_argument("--partition", type=int, required=True, help="The partition.")
    abort.add_argument("--start-offset", type="long", help="Where the transaction starts.")
    abort.add_argument("--producer-id", type="long", help="Its producer id.")
    abort.add_argument("--producer-epoch", type=int, help="Its producer epoch.")
    abort.add_argument("--coordinator-epoch", type=int, help="Its coordinator epoch.")
    hanging = commands.add_parser("find-hanging", help="Find hanging transactions.")
    hanging.add_argument("--broker-id", type=int, help="The broker to search.")
    hanging.add_argument("--max-transaction-timeout", type=int, default=DEFAULT_TIMEOUT_MINUTES, help="In minutes.")
    hanging.add_argument("--topic", help="The topic to search.")
    hanging.add_argument("--partition", type=int, help="The partition to search.")
    force = commands.add_parser("forceTerminateTransaction", help="End the transaction of a transactional id.")
    force.add_argument("--transactionalId", dest="transactional_id", required=True, help="The transactional id.")
    return parser


def main(arguments: list[str], connect: Connect = connect) -> int:
    if _wants_version(arguments):
        print("4.3.1 (Commit:26b251a451ce941d)")
        return 0
    options = _parser().parse_args(arguments)
    try:
        with ask("", lambda: connect(options.bootstrap_server, options.command_config)) as admin:
            lines = _run(admin, options, int(time.time() * 1000))
    except JavaFailure as failure:
        sys.stderr.write(f"{failure.message}\n")
        return 1
    for line in lines:
        print(line)
    return 0


def _wants_version(arguments: list[str]) -> bool:
    """Whether it is asked for before any command."""
    for word in arguments:
        if word in ("-v", "--version"):
            return True
        if word in COMMANDS:
            return False
    return False


def _run(admin: Admin, options: Any, now_ms: int) -> list[str]:
    if options.command == "list":
        return _list(admin, options)
    if options.command == "describe":
        return _describe(admin, options.transactional_id, now_ms)
    if options.command == "describe-producers":
        return _describe_producers(admin, options)
    if options.command == "find-hanging":
        return _find_hanging(admin, options, now_ms)
    if options.command == "abort":
        return _abort(admin, options)
    from moldau.client.errors import ClientError

    name = options.transactional_id
    try:
        admin.force_terminate_transaction(name)
    except ClientError as error:
        raise _failed(f"Failed to force terminate transaction `{name}`", error) from None
    return []


def _failed(what: str, error: Exception, message: str | None = None) -> JavaFailure:
    return JavaFailure("", f"{what}: {message or error}. Enable debug logging for additional detail.")


def _list(admin: Admin, options: Any) -> list[str]:
    from moldau.client.errors import ClientError

    what = "Failed to list transactions"
    longer_than = -1 if options.duration_filter is None else max(-1, options.duration_filter)
    try:
        found = admin.list_transactions(
            running_longer_than_ms=longer_than, transactional_id_pattern=options.transactional_id_pattern
        )
    except ClientError as error:
        raise _failed(what, error) from None
    for broker, refusal in found.errors.items():
        text = (
            f"[AdminClient clientId=adminclient-1] The `ListTransactions` request sent to broker {broker} failed"
            f" because of an unexpected error {refusal.name}"
        )
        logger = "org.apache.kafka.clients.admin.internals.ListTransactionsHandler"
        sys.stderr.write(log_line("ERROR", text, logger))
        sentence = f"ListTransactions request sent to broker {broker} failed with an unexpected exception"
        raise _failed(what, refusal, sentence)
    rows = [[row.transactional_id, str(row.coordinator_id), str(row.producer_id), row.state] for row in found]
    return table([LIST_HEADER, *rows])


def _describe(admin: Admin, name: str, now_ms: int) -> list[str]:
    from moldau.client.errors import ClientError
    from moldau.protocol.errors import TRANSACTIONAL_ID_NOT_FOUND

    try:
        found = admin.describe_transactions([name])[name].get()
    except ClientError as error:
        sentence = None
        if error.code == TRANSACTIONAL_ID_NOT_FOUND:
            sentence = (
                f"DescribeTransactions request for transactionalId `{name}` failed because the ID could not be found"
            )
        raise _failed(f"Failed to describe transaction state of transactional-id `{name}`", error, sentence) from None
    started = found.transaction_start_time_ms
    row = [
        str(found.coordinator_id),
        name,
        str(found.producer_id),
        str(found.producer_epoch),
        found.state,
        str(found.transaction_timeout_ms),
        "None" if started is None else str(started),
        "None" if started is None else str(now_ms - started),
        ",".join(str(item) for item in sorted(found.partitions)),
    ]
    return table([DESCRIBE_HEADER, row])


def _producers(admin: Admin, partition: TopicPartition, broker_id: int | None, what: str) -> list[ProducerState]:
    from moldau.client.errors import ClientError
    from moldau.protocol.errors import BROKER_NOT_AVAILABLE

    try:
        return admin.describe_producers([partition], broker_id)[partition].get()
    except ClientError as error:
        # Java's client waits for such a broker as long as it may.
        waited = "Timed out waiting for a node assignment. Call: describeProducers(api=DESCRIBE_PRODUCERS)"
        raise _failed(what, error, waited if error.code == BROKER_NOT_AVAILABLE else None) from None


def _describe_producers(admin: Admin, options: Any) -> list[str]:
    from moldau.client.results import TopicPartition

    partition = TopicPartition(options.topic, options.partition)
    where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
    what = f"Failed to describe producers for partition {partition} on {where}"
    rows = [
        [
            str(item.producer_id),
            str(item.producer_epoch),
            str(-1 if item.coordinator_epoch is None else item.coordinator_epoch),
            str(item.last_sequence),
            str(item.last_timestamp),
            "None" if item.current_transaction_start_offset is None else str(item.current_transaction_start_offset),
        ]
        for item in _producers(admin, partition, options.broker_id, what)
    ]
    return table([PRODUCERS_HEADER, *rows])


def _abort(admin: Admin, options: Any) -> list[str]:
    from moldau.client.admin.transactions import AbortTransaction
    from moldau.client.errors import ClientError
    from moldau.client.results import TopicPartition

    partition = TopicPartition(options.topic, options.partition)
    spec: AbortTransaction
    if options.start_offset is None:
        if None in (options.producer_id, options.producer_epoch, options.coordinator_epoch):
            raise JavaFailure(
                "",
                "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above)"
                " or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)",
            )
        # Some old brokers show no coordinator epoch, and have never had another one than 0 then.
        epoch = max(0, options.coordinator_epoch)
        spec = AbortTransaction(partition, options.producer_id, options.producer_epoch, epoch)
    else:
        spec = _open_at(admin, partition, options.start_offset)
    try:
        admin.abort_transaction(spec)
    except ClientError as error:
        shown = (
            f"AbortTransactionSpec(topicPartition={partition}, producerId={spec.producer_id},"
            f" producerEpoch={spec.producer_epoch}, coordinatorEpoch={spec.coordinator_epoch})"
        )
        raise _failed(f"Failed to abort transaction {shown}", error) from None
    return []


def _open_at(admin: Admin, partition: TopicPartition, start_offset: int) -> Any:
    from moldau.client.admin.transactions import AbortTransaction

    what = f"Failed to describe producers for partition {partition} on leader"
    for item in _producers(admin, partition, None, what):
        if item.current_transaction_start_offset == start_offset:
            epoch = item.coordinator_epoch or 0
            return AbortTransaction(partition, item.producer_id, item.producer_epoch, epoch)
    raise JavaFailure(
        "", f"Could not find any open transactions starting at offset {start_offset} on partition {partition}"
    )


def _find_hanging(admin: Admin, options: Any, now_ms: int) -> list[str]:
    from moldau.client.errors import ClientError

    if options.topic is None and options.partition is not None and options.broker_id is not None:
        raise JavaFailure("", "The --partition argument requires --topic to be provided")
    if options.topic is None and options.broker_id is None:
        raise JavaFailure(
            "", "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    partitions = _search(admin, options)
    older_than_ms = options.max_transaction_timeout * MINUTE_MS
    try:
        found = admin.find_hanging_transactions(partitions, older_than_ms, now_ms, options.broker_id)
    except ClientError as error:
        where = "leaders" if options.broker_id is None else f"broker {options.broker_id}"
        what = f"Failed to describe producers for {len(partitions)} partitions on {where}"
        raise _failed(what, error) from None
    rows = [
        [
            partition.topic,
            str(partition.partition),
            str(state.producer_id),
            str(state.producer_epoch),
            str(-1 if state.coordinator_epoch is None else state.coordinator_epoch),
            str(state.current_transaction_start_offset),
            str(state.last_timestamp),
            str((now_ms - state.last_timestamp) // MINUTE_MS),
        ]
        for partition, state in found
    ]
    return table([HANGING_HEADER, *rows])


def _search(admin: Admin, options: Any) -> list[TopicPartition]:
    """The partitions to search: those of the topic, or those of which the broker has a replica."""
    from moldau.client.errors import ClientError
    from moldau.client.results import TopicPartition

    if options.topic is not None and options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    try:
        names = [item.name for item in admin.list_topics()] if options.topic is None else [options.topic]
        described = admin.describe_topics(names)
        rows = [row for name in names for row in described[name].get().partitions.values()]
    except ClientError as error:
        from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION

        known = error.code == UNKNOWN_TOPIC_OR_PARTITION
        sentence = "This server does not host this topic-partition." if known else None
        count = 1 if options.topic is not None else len(names)
        raise _failed(f"Failed to describe {count} topics", error, sentence) from None
    wanted = options.broker_id
    return [TopicPartition(row.topic, row.partition) for row in rows if wanted is None or wanted in row.replicas]


def table(rows: list[list[str]]) -> list[str]:
    """Columns as wide as their widest cell, each with a tab behind it."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return ["".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) for row in rows]
