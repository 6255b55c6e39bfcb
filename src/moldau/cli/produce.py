"""`moldau produce`: lines of standard input or of files become records."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import click

from moldau.cli.completion import complete_topics
from moldau.cli.explain import explain
from moldau.cli.line_input import Input, read_lines, read_pieces
from moldau.cli.options import PRODUCER, Connection, connected
from moldau.cli.output import plural, print_json, print_note
from moldau.cli.progress import WorkBar
from moldau.cli.record_text import unescape
from moldau.client.encoded import EncodedBatches
from moldau.client.errors import ClientError
from moldau.client.produce.partitioner import partition_for_key
from moldau.client.producer import Partitioner, Producer
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.facts.record_json import BadFormat, ParsedRecord, from_json_line
from moldau.records.line_encoder import ANYWHERE, NO_SEPARATOR, NOTHING_WRONG, LineEncoder, encode_headers

# How long the broker may take to create a topic that does not exist yet, where it creates topics by itself.
AUTO_CREATE_MS = 5_000

# A pipe brings many lines at once: larger batches than a program's default cost nothing then.
BATCH_BYTES = 262_144

# How long lines wait for others that may come; lines that are typed do not wait.
LINGER_S = 0.02

Headers = list[tuple[str, bytes | None]]


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
@click.argument("topic", shell_complete=complete_topics)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True), metavar="[FILE]...")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help="What stands between key and value in each line: : or \\t.")
@click.option("-D", "--delimiter", default="\\n", show_default=True, metavar="TEXT", help="What ends a record.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="The partition. Default: by key, else in turn.")
@click.option(
    "--partitioner",
    type=click.Choice(["murmur2", "crc32", "random", "round-robin"]),
    default="murmur2",
    show_default=True,
    help="How to choose partitions: murmur2 of the key as Java's client, crc32 as librdkafka, or without the key.",
)
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
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N records a second.")
@click.option("--null-marker", metavar="TEXT", help="A key or value that is exactly TEXT is null.")
@click.option(
    "-f",
    "--format",
    "line_format",
    type=click.Choice(["line", "json", "file"]),
    default="line",
    show_default=True,
    help="One record a line; one JSON object a line as `moldau consume -f json` writes them; or each file one record.",
)
@click.option(
    "--report",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to say what was delivered: a sentence on stderr, or JSON on stdout.",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not say how many records were delivered.")
@connected
def produce(
    connection: Connection,
    topic: str,
    files: tuple[str, ...],
    key: str | None,
    key_separator: str | None,
    delimiter: str,
    headers: tuple[str, ...],
    partition: int | None,
    partitioner: str,
    compression: str,
    acks: str,
    rate: float | None,
    null_marker: str | None,
    line_format: str,
    report: str,
    quiet: bool,
) -> None:
    """Send lines from standard input, or of FILEs, to TOPIC.

    \b
    Examples:
      echo hello | moldau produce greetings
      moldau produce orders -K : -z zstd orders.txt
      moldau consume orders -f json | moldau produce copy -f json
      moldau produce pictures -f file -k cat cat.jpg
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("--key gives all records one key, --key-separator each its own: choose one of them.")
    if line_format == "json" and (key is not None or key_separator is not None):
        raise click.UsageError("JSON lines bring their keys along: leave --key and --key-separator out.")
    if line_format == "file" and key_separator is not None:
        raise click.UsageError("A file is one record: give it a key with --key.")
    lines = LineFormat(line_format, key, key_separator, delimiter, null_marker, _parse_headers(headers))
    tally = Tally()
    config = connection.config(
        PRODUCER,
        compression_type=compression,
        acks=acks,
        batch_size=BATCH_BYTES,
        max_block_ms=max(AUTO_CREATE_MS, connection.timeout_ms),
        delivery_timeout_ms=connection.timeout_ms * 2,
    )
    chooser = _chooser(partitioner)
    problem = None
    if not files and sys.stdin.isatty() and not quiet:
        print_note("One record a line; Ctrl-D ends.")
    with Producer(config=wired(config, first_contact_ms=0), on_batch=tally.on_batch, partitioner=chooser) as producer:
        sending = Sending(producer, topic, partition, lines, tally, quiet)
        # Finds out before the first line is read that the broker or the topic is not there.
        partitions = producer.partitions_for(topic)
        if partition is not None and partition not in partitions:
            raise click.ClickException(
                f"Topic {topic} has partitions 0 to {len(partitions) - 1}; there is no partition {partition}."
            )
        try:
            if line_format == "line" and chooser is None and rate is None:
                sending.send_encoded(list(files), len(partitions))
            else:
                sending.send_one_by_one(list(files), rate)
        except BadFormat as error:
            problem = str(error)
        producer.flush()
    _report(topic, tally, problem, report, quiet)


class LineFormat:
    """How a record is written down in the input."""

    def __init__(
        self,
        kind: str,
        key: str | None,
        separator: str | None,
        delimiter: str,
        null_marker: str | None,
        headers: Headers,
    ) -> None:
        try:
            self.separator = None if separator is None else unescape(separator)
            self.delimiter = unescape(delimiter)
        except BadFormat as error:
            raise click.UsageError(str(error)) from None
        if self.separator == b"" or not self.delimiter:
            raise click.UsageError("Neither --key-separator nor --delimiter may be empty.")
        self.kind = kind
        self.key = None if key is None else key.encode()
        self.null = None if null_marker is None else null_marker.encode()
        self.headers = headers

    def parse(self, line: bytes) -> ParsedRecord:
        if self.kind == "json":
            return from_json_line(line)
        key: bytes | None = self.key
        value: bytes | None = line
        if self.separator is not None:
            key, found, value = line.partition(self.separator)
            if not found:
                raise BadFormat(self.no_separator())
        return ParsedRecord(None if key == self.null else key, None if value == self.null else value, [])

    def no_separator(self) -> str:
        assert self.separator is not None
        return f"has no key separator {self.separator.decode('utf-8', 'backslashreplace')!r} in it."


class Sending:
    """One run of the command: input in, records to the producer."""

    def __init__(
        self, producer: Producer, topic: str, partition: int | None, lines: LineFormat, tally: Tally, quiet: bool
    ) -> None:
        self.producer = producer
        self._encoded = EncodedBatches(producer)
        self.topic = topic
        self.partition = partition
        self.lines = lines
        self.tally = tally
        self.quiet = quiet

    def send_encoded(self, files: list[str], partitions: int) -> None:
        """The fast way: lines are framed as records in bulk, and no object is made for any of them."""
        lines = self.lines
        partition = ANYWHERE if self.partition is None else self.partition
        if partition == ANYWHERE and lines.key is not None and lines.key != lines.null:
            partition = partition_for_key(lines.key, partitions)
        for name, source in _open_all(files):
            encoder = LineEncoder(
                delimiter=lines.delimiter,
                separator=lines.separator,
                key=lines.key,
                null=lines.null,
                headers=encode_headers(lines.headers),
                partitions=partitions,
                partition=partition,
                batch_bytes=self._encoded.batch_bytes,
                record_bytes_max=self._encoded.request_bytes_max,
            )
            self._pump(source, encoder)
            if encoder.problem != NOTHING_WRONG:
                raise BadFormat(f"{_where(name, int(encoder.lines) + 1, files)} {self._problem(encoder)}")

    def _pump(self, source: Input, encoder: LineEncoder) -> None:
        rest = b""
        waiting_since = time.monotonic()
        with WorkBar("sending", source.size, wanted=not self.quiet and not source.is_terminal) as bar:
            for data in read_pieces(source):
                rest = rest + data if rest else data
                rest = rest[encoder.add(rest, False) :]
                if encoder.problem != NOTHING_WRONG or self.tally.first_error is not None:
                    break
                now = time.monotonic()
                if not source.more_at_once() or now - waiting_since > LINGER_S:
                    encoder.flush()
                    waiting_since = now
                self._hand_over(encoder)
                bar.update(source.position, int(encoder.lines), source.position)
            else:
                encoder.add(rest, True)
        encoder.flush()
        self._hand_over(encoder)

    def _hand_over(self, encoder: LineEncoder) -> None:
        for batch in encoder.take():
            now_ms = time.time_ns() // 1_000_000
            where = None if batch.partition == ANYWHERE else batch.partition
            self._encoded.send(self.topic, where, batch.data, batch.count, now_ms, now_ms)

    def _problem(self, encoder: LineEncoder) -> str:
        if encoder.problem == NO_SEPARATOR:
            return self.lines.no_separator()
        limit = self._encoded.request_bytes_max
        return (
            f"cannot be sent: it takes {encoder.problem_size} bytes as a record, more than max.request.size ({limit})."
            f" -X max.request.size=N allows more, if the broker does."
        )

    def send_one_by_one(self, files: list[str], rate: float | None) -> None:
        start = time.monotonic()
        sent = 0
        for name, source in _open_all(files):
            records = [source.read_all()] if self.lines.kind == "file" else read_lines(source, self.lines.delimiter)
            with WorkBar("sending", source.size, wanted=not self.quiet and not source.is_terminal) as bar:
                for number, line in enumerate(records, 1):
                    if self.tally.first_error is not None:
                        return
                    if rate is not None:
                        _pace(start + sent / rate)
                    self._send(line, _where(name, number, files))
                    sent += 1
                    bar.update(source.position, sent, source.position)

    def _send(self, line: bytes, where: str) -> None:
        try:
            record = self.lines.parse(line)
            headers = [*self.lines.headers, *record.headers]
            self.producer.send(
                self.topic,
                record.value,
                record.key,
                partition=record.partition if self.partition is None else self.partition,
                timestamp_ms=record.timestamp,
                headers=headers or None,
            )
        except BadFormat as error:
            raise BadFormat(f"{where} {error}") from None
        except ClientError as error:
            raise BadFormat(f"{where} cannot be sent: {explain(error)}") from None


def _pace(due: float) -> None:
    remaining = due - time.monotonic()
    if remaining > 0:
        time.sleep(remaining)


def _open_all(files: list[str]) -> Iterator[tuple[str, Input]]:
    for name in files or ["-"]:
        if name == "-":
            yield name, Input(sys.stdin.buffer)
        else:
            with open(name, "rb") as file:
                yield name, Input(file)


def _where(name: str, number: int, files: list[str]) -> str:
    return f"{name} line {number}" if files and name != "-" else f"Line {number}"


def _chooser(name: str) -> Partitioner | None:
    """The producer's own partitioner is None."""
    if name == "murmur2":
        return None
    import random

    if name == "random":
        return lambda topic, key, count: random.randrange(count)
    if name == "round-robin":
        return RoundRobin()
    from zlib import crc32

    def by_crc32(topic: str, key: bytes | None, count: int) -> int:
        return random.randrange(count) if key is None else crc32(key) % count

    return by_crc32


class RoundRobin:
    """Each partition in turn, whatever the key."""

    def __init__(self) -> None:
        self._next = -1

    def __call__(self, topic: str, key: bytes | None, count: int) -> int:
        self._next += 1
        return self._next % count


def _parse_headers(texts: tuple[str, ...]) -> Headers:
    """NAME=VALUE; NAME alone is a header without a value. Names may be repeated."""
    pairs: Headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise click.UsageError(f"--header wants NAME=VALUE, not {text!r}.")
        pairs.append((name, value.encode() if equals else None))
    return pairs


def _report(topic: str, tally: Tally, problem: str | None, report: str, quiet: bool) -> None:
    delivered = sum(tally.delivered.values())
    if report == "json":
        print_json(
            {
                "topic": topic,
                "delivered": delivered,
                "failed": tally.failed,
                "partitions": {str(item.partition): count for item, count in sorted(tally.delivered.items())},
            }
        )
    elif not quiet:
        where = ", ".join(f"{count:,} to partition {item.partition}" for item, count in sorted(tally.delivered.items()))
        click.echo(f"Delivered {plural(delivered, 'record')}{': ' if where else ''}{where}.", err=True)
    if tally.first_error is not None:
        reason = explain(tally.first_error) or str(tally.first_error)
        records = "1 record was" if tally.failed == 1 else f"{tally.failed} records were"
        raise click.ClickException(f"{records} not delivered to {topic}: {reason}")
    if problem is not None:
        raise click.ClickException(f"{problem} The lines before it were sent.")
