"""`kafka-cluster`: the id of a cluster, its endpoints, and how a broker leaves for good."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, Connect, ask, connect, java_text
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.subcommands import CommandParser, connection_options

if TYPE_CHECKING:
    from moldau.client.admin import Admin

CLIENT = "org.apache.kafka.clients.admin.KafkaAdminClient"
COLUMN = 10
TYPE_COLUMN = 14


def _parser() -> CommandParser:
    parser = CommandParser(prog="kafka-cluster", description="The cluster as a whole.", help_code=1)
    commands = parser.add_subparsers(dest="command")
    for name, about in (
        ("cluster-id", "Show the id of the cluster."),
        ("unregister", "Take a broker out of the cluster for good."),
        ("list-endpoints", "List the brokers or controllers."),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("--config", help="As --command-config.")
        command.add_argument("--command-config", "-c", help="A file with settings for the admin client.")
        connection_options(command, short=True)
        if name == "unregister":
            command.add_argument("--id", "-i", type=int, required=True, help="The id of the broker.")
        elif name == "list-endpoints":
            command.add_argument("--include-fenced-brokers", action="store_true", help="With fenced brokers.")
    return parser


def main(arguments: list[str], connect: Connect = connect) -> int:
    options = _parser().parse_args(arguments)
    try:
        config = options.command_config or options.config
        with ask("", lambda: connect(options.bootstrap_server, config, options.bootstrap_controller)) as admin:
            if options.command == "cluster-id":
                found = ask("describeCluster", admin.describe_cluster)
                print(f"Cluster ID: {found.cluster_id}" if found.cluster_id else NO_CLUSTER_ID)
            elif options.command == "unregister":
                _unregister(admin, options.id)
            else:
                controllers = options.bootstrap_controller is not None
                print("\n".join(endpoint_lines(admin, controllers, options.include_fenced_brokers)))
    except JavaFailure as failure:
        sys.stdout.flush()
        wrapped = f"java.util.concurrent.ExecutionException: {java_text(failure)}\nCaused by: {java_text(failure)}"
        sys.stderr.write(f"{java_text(failure)}\n{wrapped}\n\n")
        return 1
    return 0


NO_CLUSTER_ID = "No cluster ID found. The Kafka version is probably too old."


def _unregister(admin: Admin, broker_id: int) -> None:
    try:
        ask("unregisterBroker", lambda: admin.unregister_broker(broker_id))
    except JavaFailure as failure:
        if failure.class_name == ERRORS_PACKAGE + "UnsupportedVersionException":
            print("The target cluster does not support the broker unregistration API.")
            return
        sentence = f"Unregister broker request for broker ID {broker_id} failed: {failure.message}"
        sys.stderr.write(log_line("ERROR", f"[AdminClient clientId=adminclient-1] {sentence}", CLIENT))
        raise
    print(f"Broker {broker_id} is no longer registered.")


def endpoint_lines(admin: Admin, controllers: bool, fenced: bool) -> list[str]:
    """A table; the column of hosts is as wide as the longest."""
    found = ask("describeCluster", lambda: admin.describe_cluster(include_fenced_brokers=fenced))
    widest = max((len(broker.host) for broker in found.brokers), default=0)
    rows = [["ID", "HOST", "PORT", "RACK", *([] if controllers else ["STATE"]), "ENDPOINT_TYPE"]]
    for broker in found.brokers:
        state = [] if controllers else ["fenced" if broker.id in found.fenced else "unfenced"]
        kind = "controller" if controllers else "broker"
        rack = "null" if broker.rack is None else broker.rack
        rows.append([str(broker.id), broker.host, str(broker.port), rack, *state, kind])
    return [
        " ".join(
            cell.ljust(widest if index == 1 else TYPE_COLUMN if index == len(row) - 1 else COLUMN)
            for index, cell in enumerate(row)
        )
        + " "
        for row in rows
    ]
