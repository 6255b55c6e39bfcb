"""`moldau produce`: lines from standard input become records."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import click

from moldau.cli.explain import explain
from moldau.cli.options import connection_of, connection_options
from moldau.cli.record_text import BadFormat, ParsedRecord, from_json_line
from moldau.client.errors import ClientError
from moldau.client.producer import Producer
from moldau.client.results import TopicPartition

# How long the broker may take to create a topic that does not exist yet, where it creates topics by itself.
AUTO_CREATE_MS = 5_000

# A pipe brings many lines at once: larger batches than a program's default cost nothing then.
BATCH_BYTES = 131_072


class Tally:
    """Counts what was delivered; told by the producer's thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.delivered: dict[TopicPartition, int] = {}
        self.failed = 0
        self.first_error: ClientError | None = None

    def on_batch(self, partition: TopicPartition, count: int, error: ClientError | None) -> None:
        with self._lock:
            if error is None:
                self.delivered[partition] = self.delivered.get(partition, 0) + count
                return
            self.failed += count
            if self.first_error is None:
                self.first_error = error


@click.command()
@click.argument("topic")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help="What stands between key and value in each line.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="The partition. Default: by key, else in turn.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="The codec of the batches.",
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Who must have written a record before it counts as delivered.",
)
@click.option("--null-marker", metavar="TEXT", help="A key or value that is exactly TEXT is null.")
@click.option(
    "-f",
    "--format",
    "line_format",
    type=click.Choice(["line", "json"]),
    default="line",
    show_default=True,
    help="One record a line, or one JSON object a line as `moldau consume -f json` writes them.",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not say how many records were delivered.")
@connection_options
def produce(
    topic: str,
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    compression: str,
    acks: str,
    null_marker: str | None,
    line_format: str,
    quiet: bool,
    bootstrap_server: str,
    timeout_s: float,
    settings: tuple[str, ...],
) -> None:
    """Send lines from standard input to TOPIC.

    \b
    Examples:
      echo hello | moldau produce greetings
      printf 'k1:v1\\nk2:v2\\n' | moldau produce orders -K : -z zstd
      moldau consume orders -f json | moldau produce copy -f json
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("--key gives all records one key, --key-separator each its own: choose one of them.")
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty.")
    if line_format == "json" and (key is not None or key_separator is not None):
        raise click.UsageError("JSON lines bring their keys along: leave --key and --key-separator out.")
    connection = connection_of(bootstrap_server, timeout_s, settings)
    parse = _parser(line_format, key, key_separator, null_marker)
    common = _parse_headers(headers)
    tally = Tally()
    config = connection.config(
        compression_type=compression,
        acks=acks,
        batch_size=BATCH_BYTES,
        max_block_ms=max(AUTO_CREATE_MS, connection.timeout_ms),
        delivery_timeout_ms=connection.timeout_ms * 2,
    )
    problem = None
    with Producer(config=config, first_contact_ms=0, on_batch=tally.on_batch) as producer:
        _check_topic(producer, topic)
        try:
            _send_lines(producer, topic, partition, parse, common, tally)
        except BadFormat as error:
            problem = str(error)
        producer.flush()
    _report(topic, tally, problem, quiet)


def _check_topic(producer: Producer, topic: str) -> None:
    """Finds out before the first line is read that the broker or the topic is not there."""
    producer.partitions_for(topic)


def _send_lines(
    producer: Producer,
    topic: str,
    partition: int | None,
    parse: Callable[[bytes], ParsedRecord],
    common: list[tuple[str, bytes | None]],
    tally: Tally,
) -> None:
    for number, line in enumerate(sys.stdin.buffer, 1):
        if tally.first_error is not None:
            return
        try:
            record = parse(line[:-1] if line.endswith(b"\n") else line)
            producer.send(
                topic,
                record.value,
                record.key,
                partition=record.partition if partition is None else partition,
                timestamp_ms=record.timestamp,
                headers=[*common, *record.headers] if common or record.headers else None,
            )
        except BadFormat as error:
            raise BadFormat(f"Line {number} {error}") from None
        except ClientError as error:
            raise BadFormat(f"Line {number} cannot be sent: {explain(error)}") from None


def _parser(
    line_format: str, key: str | None, separator: str | None, null_marker: str | None
) -> Callable[[bytes], ParsedRecord]:
    if line_format == "json":
        return from_json_line
    fixed_key = None if key is None else key.encode()
    marker = None if null_marker is None else null_marker.encode()
    between = None if separator is None else separator.encode()

    def parse(line: bytes) -> ParsedRecord:
        record_key: bytes | None = fixed_key
        value: bytes | None = line
        if between is not None:
            record_key, found, value = line.partition(between)
            if not found:
                raise BadFormat(f"has no key separator {separator!r} in it.")
        if marker is not None:
            record_key = None if record_key == marker else record_key
            value = None if value == marker else value
        return ParsedRecord(record_key, value, [])

    return parse


def _parse_headers(texts: tuple[str, ...]) -> list[tuple[str, bytes | None]]:
    """NAME=VALUE; NAME alone is a header without a value. Names may be repeated."""
    pairs: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise click.UsageError(f"--header wants NAME=VALUE, not {text!r}.")
        pairs.append((name, value.encode() if equals else None))
    return pairs


def _report(topic: str, tally: Tally, problem: str | None, quiet: bool) -> None:
    delivered = sum(tally.delivered.values())
    if not quiet:
        where = ", ".join(f"{count} to partition {item.partition}" for item, count in sorted(tally.delivered.items()))
        click.echo(
            f"Delivered {delivered} record{'' if delivered == 1 else 's'}{': ' if where else ''}{where}.", err=True
        )
    if tally.first_error is not None:
        reason = explain(tally.first_error) or str(tally.first_error)
        records = "1 record was" if tally.failed == 1 else f"{tally.failed} records were"
        raise click.ClickException(f"{records} not delivered to {topic}: {reason}")
    if problem is not None:
        raise click.ClickException(f"{problem} The lines before it were sent.")
