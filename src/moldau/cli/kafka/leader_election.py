"""`kafka-leader-election`: has leaders of partitions elected: the preferred ones, or any that live."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect, java_failure, java_text, read_text
from moldau.cli.kafka.options import (
    VALUE,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_invalid,
)

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.results import Outcome, TopicPartition

FAILED = "org.apache.kafka.tools.AdminCommandFailedException"
BAD_FILE = "org.apache.kafka.tools.AdminOperationException"
MAPPING = "com.fasterxml.jackson.databind.JsonMappingException"
TYPES = {"PREFERRED": 0, "UNCLEAN": 1}
DEPRECATED = (
    "Option --admin.config has been deprecated and will be removed in a future version. Use --command-config instead."
)
CHOICES = ("topic", "all-topic-partitions", "path-to-json-file")

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="host:port"),
        Option("admin.config", "(DEPRECATED) The same as --command-config.", VALUE, described_as="config file"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("path-to-json-file", "A file that names partitions.", VALUE, described_as="Path to JSON file"),
        Option("topic", "The topic of --partition.", VALUE, described_as="topic name"),
        Option("partition", "A partition of --topic.", VALUE, "Integer", "partition id"),
        Option("all-topic-partitions", "All partitions that could have another leader."),
        Option(
            "election-type",
            "REQUIRED: preferred: the first replica; unclean: any that lives, where none is in sync.",
            VALUE,
            "[PREFERRED,UNCLEAN]",
            "election type",
        ),
    ]
)


class CouldNotElect(JavaFailure):
    """Some elections failed; each is told beside the whole."""

    def __init__(self, failures: list[JavaFailure]) -> None:
        super().__init__(FAILED, f"{len(failures)} replica(s) could not be elected")
        self.failures = failures

    def java_text(self) -> str:
        return "\n".join([super().java_text(), *(f"\tSuppressed: {java_text(failure)}" for failure in self.failures)])


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = PARSER.parse(arguments)
        check_help_or_version(options, "Have leaders of partitions elected.")
        check_invalid(options, "admin.config", "command-config")
        if options.has("admin.config"):
            print(DEPRECATED)
        _check(options)
        _run(options, connect)
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"{failure.message}\n{java_text(failure)}\n\n")
        return 1
    return 0


def _check(options: Options) -> None:
    missing = [name for name in ("bootstrap-server", "election-type") if not options.has(name)]
    if missing:
        raise JavaFailure(FAILED, f"Missing required option(s): {', '.join(missing)}")
    if sum(options.has(name) for name in CHOICES) != 1:
        raise JavaFailure(FAILED, f"One and only one of the following options is required: {', '.join(CHOICES)}")
    if options.has("topic") and not options.has("partition"):
        raise JavaFailure(FAILED, "Missing required option(s): partition")
    if options.has("partition") and not options.has("topic"):
        raise JavaFailure(FAILED, "Option partition is only allowed if topic is used")


def _run(options: Options, connect: Connect) -> None:
    text = options.text("election-type") or ""
    kind = text.upper()
    if kind not in TYPES:
        sentence = f"Cannot parse argument '{text}' of option election-type"
        raise JavaFailure("joptsimple.OptionArgumentConversionException", sentence)
    partitions = _partitions(options)
    config = options.text("command-config") or options.text("admin.config")
    with ask("", lambda: connect(options.text("bootstrap-server"), config)) as admin:
        _elect(admin, kind, partitions)


def _partitions(options: Options) -> list[TopicPartition] | None:
    """None: all of them."""
    from moldau.client.results import TopicPartition

    if options.has("path-to-json-file"):
        return read_partitions(_read_file(options.text("path-to-json-file") or ""))
    if options.has("all-topic-partitions"):
        return None
    return [TopicPartition(options.text("topic") or "", options.integer("partition") or 0)]


def _read_file(path: str) -> str:
    try:
        return read_text(path)
    except JavaFailure as failure:
        raise _wrapped(failure) from None


def _wrapped(failure: JavaFailure) -> JavaFailure:
    return JavaFailure("java.lang.RuntimeException", failure.java_text().splitlines()[0], failure)


def read_partitions(text: str) -> list[TopicPartition]:
    """The partitions of a file such as {"partitions": [{"topic": "t", "partition": 0}]}."""
    from moldau.client.results import TopicPartition

    try:
        read = json.loads(text)
    except ValueError:
        read = None
    if read is None:
        raise JavaFailure(BAD_FILE, "Replica election data is empty")
    rows = read.get("partitions") if isinstance(read, dict) else None
    if rows is None:
        raise JavaFailure(BAD_FILE, 'Replica election data is missing "partitions" field')
    found: list[TopicPartition] = []
    twice: list[TopicPartition] = []
    for row in rows:
        for name, kind in (("topic", str), ("partition", int)):
            if not isinstance(row, dict) or name not in row:
                raise _wrapped(JavaFailure(MAPPING, f"No such field exists: `{name}`"))
            if not isinstance(row[name], kind):
                expected = "Integer" if kind is int else "String"
                text = f"Expected `{expected}` value, received {json.dumps(row[name])}"
                raise _wrapped(JavaFailure(MAPPING, text))
        partition = TopicPartition(row["topic"], row["partition"])
        (twice if partition in found else found).append(partition)
    if twice:
        names = ", ".join(str(each) for each in dict.fromkeys(twice))
        raise JavaFailure(BAD_FILE, f"Replica election data contains duplicate partitions: [{names}]")
    return found


def _elect(admin: Admin, kind: str, partitions: list[TopicPartition] | None) -> None:
    from moldau.client.errors import ClientError, RequestTimeoutError

    try:
        outcomes = admin.elect_leaders(TYPES[kind], partitions)
    except RequestTimeoutError as error:
        sentence = "Timeout waiting for election results"
        print(sentence)
        raise JavaFailure(FAILED, sentence, java_failure(error, "electLeaders")) from None
    except ClientError as error:
        failure = java_failure(error, "electLeaders")
        if error.name == "CLUSTER_AUTHORIZATION_FAILED":
            sentence = "Not authorized to perform leader election"
            print(sentence)
            raise JavaFailure(FAILED, sentence, failure) from None
        raise JavaFailure("java.util.concurrent.ExecutionException", java_text(failure), failure) from None
    _tell(kind, outcomes)


def _tell(kind: str, outcomes: dict[TopicPartition, Outcome[None]]) -> None:
    from moldau.cli.kafka.java_order import hash_order, partition_hash

    elected = [partition for partition, outcome in outcomes.items() if outcome.error is None]
    failed = {partition: outcome.error for partition, outcome in outcomes.items() if outcome.error is not None}
    needless = [partition for partition, error in failed.items() if error.name == "ELECTION_NOT_NEEDED"]
    if elected:
        names = ", ".join(str(each) for each in hash_order(elected, partition_hash))
        print(f"Successfully completed leader election ({kind}) for partitions {names}")
    if needless:
        names = ", ".join(str(each) for each in hash_order(needless, partition_hash))
        print(f"Valid replica already elected for partitions {names}")
    failures = []
    for partition in hash_order([each for each in failed if each not in needless], partition_hash):
        failure = java_failure(failed[partition], "electLeaders")
        failures.append(failure)
        print(f"Error completing leader election ({kind}) for partition: {partition}: {java_text(failure)}")
    if failures:
        raise CouldNotElect(failures)
