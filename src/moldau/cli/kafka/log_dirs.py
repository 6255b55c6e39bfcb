"""`kafka-log-dirs`: the log directories of brokers and the replicas in them, as JSON."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect, get_all, java_failure, java_text
from moldau.cli.kafka.options import VALUE, JavaFailure, Option, OptionParser, check_help_or_version, check_required

if TYPE_CHECKING:
    from moldau.client.admin import LogDirectory

TERSE = "org.apache.kafka.server.util.TerseException"

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="The server(s) to use"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("describe", "Show the log directories."),
        Option("topic-list", "Only these topics, separated by commas.", VALUE, described_as="Topic list"),
        Option("broker-list", "Only these brokers, separated by commas.", VALUE, described_as="Broker list"),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = PARSER.parse(arguments)
        check_help_or_version(options, "Show the log directories of brokers.")
        check_required(options, "bootstrap-server", "describe")
        where = options.text("bootstrap-server")
        topics = {name for name in (options.text("topic-list") or "").split(",") if name}
        wanted = [_read_broker(part) for part in (options.text("broker-list") or "").split(",") if part]
        with ask("", lambda: connect(where, options.text("command-config"))) as admin:
            live = [broker.id for broker in ask("listNodes", admin.describe_cluster).brokers]
            missing = sorted(set(wanted) - set(live))
            if missing:
                sentence = f"ERROR: The given brokers do not exist from --broker-list: {_ids(missing)}."
                raise JavaFailure(TERSE, f"{sentence} Current existent brokers: {_ids(live)}")
            asked = sorted(set(wanted)) or live
            print("Querying brokers for log directories information")
            found = get_all("describeLogDirs", lambda: admin.describe_log_dirs(asked))
            print(f"Received log directory information from brokers {_ids(asked)}")
            print(as_json(found, topics))
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(
            f"{failure.message}\n" if failure.class_name == TERSE else f"{failure.message}\n{java_text(failure)}\n\n"
        )
        return 1
    return 0


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))


def _read_broker(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise JavaFailure("java.lang.NumberFormatException", f'For input string: "{text}"')
    return int(text)


def as_json(found: dict[int, list[LogDirectory]], topics: set[str]) -> str:
    """One line of JSON; topics: those to show, all where it is empty."""
    from moldau.cli.kafka.java_order import hash_map_order

    brokers = []
    for broker_id, directories in found.items():
        by_path = {directory.path: directory for directory in directories}
        shown = [_directory(by_path[path], topics) for path in hash_map_order(by_path, len(by_path))]
        brokers.append({"broker": broker_id, "logDirs": shown})
    return json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":"), ensure_ascii=False)


def _directory(directory: LogDirectory, topics: set[str]) -> dict[str, object]:
    from moldau.cli.kafka.java_order import hash_order, partition_hash

    replicas = {replica.partition: replica for replica in directory.replicas}
    # The real tool puts what it shows into a map of its own, in the order of the map of all.
    chosen = [each for each in hash_order(replicas, partition_hash) if not topics or each.topic in topics]
    rows = [
        {
            "partition": str(partition),
            "size": replicas[partition].size,
            "offsetLag": replicas[partition].offset_lag,
            "isFuture": replicas[partition].is_future,
        }
        for partition in hash_order(chosen, partition_hash)
    ]
    error = None if directory.error is None else java_failure(directory.error).class_name
    return {"partitions": rows, "error": error, "logDir": directory.path}
