"""`kafka-delete-records`: deletes the records before the offsets that a JSON file names."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.admin_tools import Connect, ask, connect, java_failure, java_text
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.options import (
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    check_help_or_version,
    check_required,
)

if TYPE_CHECKING:
    from moldau.client.results import TopicPartition

T = TypeVar("T")

HANDLER = "org.apache.kafka.clients.admin.internals.DeleteRecordsHandler"
FAILED = "org.apache.kafka.tools.AdminOperationException"
MAPPING = "com.fasterxml.jackson.databind.JsonMappingException"

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server(s) to use"),
        Option(
            "offset-json-file", "REQUIRED: a file with offsets by partition.", VALUE, described_as="Offset json file"
        ),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="command config"),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = PARSER.parse(arguments)
        check_help_or_version(options, "Delete the records of partitions down to an offset.")
        check_required(options, "bootstrap-server", "offset-json-file")
        where = options.text("bootstrap-server")
        with ask("", lambda: connect(where, options.text("command-config"))) as admin:
            offsets = read_offsets(_read_file(options.text("offset-json-file") or ""))
            print("Executing records delete operation")
            outcomes = ask("deleteRecords", lambda: admin.delete_records(offsets))
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"{failure.message}\n{java_text(failure)}\n\n")
        return 1
    print("Records delete operation completed:")
    # The real tool prints in an order that changes from run to run.
    for partition in sorted(outcomes):
        outcome = outcomes[partition]
        if outcome.error is None:
            print(f"partition: {partition}\tlow_watermark: {outcome.get()}")
            continue
        sentence = f"DeleteRecords request for topic partition {partition} failed due to an unexpected error"
        client = "[AdminClient clientId=adminclient-1]"
        sys.stderr.write(log_line("ERROR", f"{client} {sentence} {outcome.error.name}", HANDLER))
        print(f"partition: {partition}\terror: {java_text(java_failure(outcome.error, 'deleteRecords'))}")
    return 0


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        cause = f"Caused by: java.nio.file.NoSuchFileException: {path}"
        sentence = f"Unable to read file {path}"
        sys.stderr.write(f"{sentence}\njava.io.IOException: {sentence}\n{cause}\n\n")
        raise Exit(1) from None


def read_offsets(text: str) -> dict[TopicPartition, int]:
    """The offsets of a file such as {"version": 1, "partitions": [{"topic": "t", "partition": 0, "offset": 1}]}."""
    from moldau.client.results import TopicPartition

    try:
        read = json.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise JavaFailure(FAILED, "The input string is not a valid JSON")
    if read.get("version", 1) != 1:
        raise JavaFailure(FAILED, f"Not supported version field value {read['version']}")
    rows = read.get("partitions")
    if not isinstance(rows, list):
        raise JavaFailure(FAILED, "Missing partitions field")
    offsets: dict[TopicPartition, int] = {}
    twice = []
    for row in rows:
        partition = TopicPartition(_field(row, "topic", str), _field(row, "partition", int))
        if partition in offsets:
            twice.append(str(partition))
        offsets[partition] = _field(row, "offset", int)
    if twice:
        sentence = f"Offset json file contains duplicate topic partitions: {','.join(twice)}"
        raise JavaFailure("org.apache.kafka.tools.AdminCommandFailedException", sentence)
    return offsets


def _field(row: object, name: str, kind: type[T]) -> T:
    if not isinstance(row, dict) or name not in row:
        raise JavaFailure(MAPPING, f"No such field exists: `{name}`")
    value = row[name]
    if not isinstance(value, kind):
        raise JavaFailure(MAPPING, f"Unexpected value of {name}")
    return value
