"""`moldau perf produce|consume`: measures throughput from where one stands, with percentiles while it runs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import click

from moldau.cli.completion import complete_topics
from moldau.cli.explain import explain
from moldau.cli.histogram import Histogram
from moldau.cli.options import CONSUMER, PRODUCER, Command, Connection, connected, format_option, open_admin
from moldau.cli.output import plural, print_note
from moldau.cli.perf_view import LiveView, Measurement, show_summary
from moldau.cli.positions import DurationType
from moldau.client.admin import NewTopic
from moldau.client.errors import ClientError
from moldau.client.producer import Producer
from moldau.client.results import RecordMetadata, TopicPartition
from moldau.client.text_consumer import TextConsumer
from moldau.client.wiring import wired
from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION
from moldau.records.text_writer import TextWriter

DEFAULT_TOPIC = "moldau-perf"
DEFAULT_DURATION_S = 10.0
# Nobody looks at the records of a measurement later.
DEFAULT_RETENTION_MS = 3_600_000

# One latency is taken for so many records: taking one for each would be measuring the measurement.
CHUNK_RECORDS = 200
CHUNKS_A_SECOND = 200

POLL_ROWS = 20_000

BUFFER_BYTES = 4 * 1024 * 1024
BUFFER_BATCHES = 8


def topic_argument(command: Command) -> Command:
    return click.argument(
        "topic", default=DEFAULT_TOPIC, metavar=f"[TOPIC, default {DEFAULT_TOPIC}]", shell_complete=complete_topics
    )(command)


def limit_options(command: Command) -> Command:
    command = click.option(
        "-d", "--duration", "duration_s", type=DurationType(), metavar="TIME", help="For how long: 10s, 1m30s."
    )(command)
    return click.option("-n", "--records", type=click.IntRange(min=1), metavar="N", help="How many records.")(command)


def payload_options(command: Command) -> Command:
    command = click.option(
        "--acks",
        type=click.Choice(["0", "1", "all"]),
        default="all",
        show_default=True,
        help="Who must have written it.",
    )(command)
    return click.option(
        "-s", "--size", type=click.IntRange(min=0), default=100, show_default=True, help="The size of a value in bytes."
    )(command)


def ensure_topic(connection: Connection, topic: str, partitions: int) -> list[int]:
    """The partitions of the topic; the one that is used by default is created where it is missing."""
    with open_admin(connection) as admin:
        outcome = admin.describe_topics([topic])[topic]
        if outcome.error is None:
            return sorted(outcome.get().partitions)
        if topic != DEFAULT_TOPIC or outcome.error.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise outcome.error
        configs: dict[str, str | None] = {"retention.ms": str(DEFAULT_RETENTION_MS)}
        made = admin.create_topics([NewTopic(topic, partitions, -1, configs)])[topic].get()
    print_note(f"Created topic {topic}: {plural(made.partitions, 'partition')}; it keeps its records for an hour.")
    return list(range(made.partitions))


def payloads(size: int, count: int = 64) -> list[bytes]:
    """Random letters, always the same ones: codecs and brokers get the same work in every run."""
    source = random.Random(20_26)
    return [bytes(source.choices(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=size)) for _ in range(count)]


@click.command()
@topic_argument
@limit_options
@payload_options
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N records a second.")
@click.option("--keys", type=click.IntRange(min=1), metavar="N", help="Give the records keys, N different ones.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="The codec of the batches.",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=131_072, show_default=True, help="Bytes a batch.")
@click.option(
    "--linger", "linger_ms", type=click.IntRange(min=0), default=5, show_default=True, help="In milliseconds."
)
@click.option("-p", "--partitions", type=int, default=-1, help=f"How many partitions {DEFAULT_TOPIC} gets, if created.")
@format_option
@connected
def produce(
    connection: Connection,
    topic: str,
    records: int | None,
    duration_s: float | None,
    size: int,
    acks: str,
    rate: float | None,
    keys: int | None,
    compression: str,
    batch_size: int,
    linger_ms: int,
    partitions: int,
    output_format: str,
) -> None:
    """Send records as fast as it goes, or at a rate; 10 seconds, if not told otherwise.

    Latency is the time from handing a record to the client until the broker's acknowledgement. Without --rate it is
    mostly the time that records wait in the client for those before them.

    \b
    Examples:
      moldau perf produce
      moldau perf produce orders -n 1000000 -s 1000 -z zstd
      moldau perf produce --rate 5000 -d 1m
    """
    ensure_topic(connection, topic, partitions)
    if records is None and duration_s is None:
        duration_s = DEFAULT_DURATION_S
    about = f"{size} B values, acks={acks}" + ("" if compression == "none" else f", {compression}")
    about += "" if rate is None else f", {rate:g}/s"
    measured = Measurement("produce", topic, about, records, duration_s)
    config = connection.config(
        PRODUCER,
        compression_type=compression,
        acks=acks,
        batch_size=batch_size,
        linger_ms=linger_ms,
        # A large buffer would only let records wait in line: the latency would be the length of the line.
        buffer_memory=max(BUFFER_BYTES, BUFFER_BATCHES * batch_size),
    )
    load = Load(measured, size, keys, rate)
    with Producer(config=wired(config, first_contact_ms=0), on_batch=load.on_batch) as producer:
        producer.partitions_for(topic)
        with LiveView(measured, output_format == "table") as view:
            stoppable(lambda: load.run(producer, view))
            producer.flush()
        measured.finish()
    show_summary(measured, output_format)


def stoppable(work: Callable[[], None]) -> None:
    """Ctrl-C ends a measurement early; its summary is still wanted."""
    try:
        work()
    except KeyboardInterrupt:
        pass


class Load:
    """Sends records in chunks and takes the latency of one record of each."""

    def __init__(self, measured: Measurement, size: int, keys: int | None, rate: float | None) -> None:
        self.measured = measured
        self.latency = measured.latencies["latency"] = Histogram()
        self.rate = rate
        self.size = size
        self.chunk = CHUNK_RECORDS if rate is None else max(1, min(CHUNK_RECORDS, int(rate / CHUNKS_A_SECOND)))
        values = payloads(size)
        self.values = (values * (self.chunk // len(values) + 1))[: self.chunk]
        self.keys = None if keys is None else [b"key-%d" % number for number in range(keys)]
        self.key_bytes = 0 if self.keys is None else sum(map(len, self.keys)) / len(self.keys)
        self.sent = 0

    def on_batch(self, partition: TopicPartition, count: int, error: ClientError | None) -> None:
        """Called by the producer's thread."""
        measured = self.measured
        if error is not None:
            measured.errors += count
            measured.first_error = measured.first_error or explain(error)
        else:
            measured.records += count
            measured.bytes += int(count * (self.size + self.key_bytes))

    def run(self, producer: Producer, view: LiveView) -> None:
        measured = self.measured
        measured.start = time.perf_counter()
        while not self._over():
            if self.rate is not None:
                self._wait_for_turn(view)
            self._send_chunk(producer)
            view.update()

    def _over(self) -> bool:
        measured = self.measured
        too_many = measured.total is not None and self.sent >= measured.total
        too_long = measured.duration_s is not None and measured.elapsed_s >= measured.duration_s
        return too_many or too_long or (measured.errors > 0 and measured.records == 0)

    def _wait_for_turn(self, view: LiveView) -> None:
        assert self.rate is not None
        due = self.measured.start + self.sent / self.rate
        while (remaining := due - time.perf_counter()) > 0:
            view.update()
            time.sleep(min(remaining, 0.1))

    def _send_chunk(self, producer: Producer) -> None:
        measured = self.measured
        count = self.chunk if measured.total is None else min(self.chunk, measured.total - self.sent)
        topic = measured.topic
        keys = None
        if self.keys is not None:
            keys = [self.keys[(self.sent + number) % len(self.keys)] for number in range(count)]
        start = time.perf_counter()
        latency = self.latency

        def on_delivery(metadata: RecordMetadata | None, error: ClientError | None) -> None:
            if error is None:
                latency.add(int((time.perf_counter() - start) * 1e6), count)

        if count > 1:
            producer.send_many(topic, self.values[: count - 1], None if keys is None else keys[:-1])
        key = None if keys is None else keys[-1]
        producer.send(topic, self.values[count - 1], key, on_delivery=on_delivery)
        self.sent += count


@click.command()
@topic_argument
@limit_options
@click.option("-F", "--follow", is_flag=True, help="Wait for more at the end, until -n, -d or Ctrl-C.")
@click.option("--fetch-size", type=click.IntRange(min=1), default=4_194_304, show_default=True, help="Bytes a fetch.")
@format_option
@connected
def consume(
    connection: Connection,
    topic: str,
    records: int | None,
    duration_s: float | None,
    follow: bool,
    fetch_size: int,
    output_format: str,
) -> None:
    """Read a topic from its beginning to its end as fast as it goes.

    \b
    Examples:
      moldau perf consume
      moldau perf consume orders -n 1000000
    """
    config = connection.config(
        CONSUMER,
        allow_auto_create_topics="false",
        default_api_timeout_ms=connection.timeout_ms,
        max_partition_fetch_bytes=fetch_size,
    )
    with TextConsumer(config=wired(config, first_contact_ms=0)) as consumer:
        chosen = consumer.partitions_for(topic)
        begins, ends = consumer.beginning_offsets(chosen), consumer.end_offsets(chosen)
        consumer.assign(chosen)
        for item in chosen:
            consumer.seek(item, begins[item])
        there = sum(ends[item] - begins[item] for item in chosen)
        total = records if follow else min(there, records or there)
        measured = Measurement("consume", topic, plural(len(chosen), "partition"), total, duration_s)
        with LiveView(measured, output_format == "table") as view:
            stoppable(lambda: _read(consumer, measured, view, None if follow else ends))
        measured.finish()
    show_summary(measured, output_format)


def _read(
    consumer: TextConsumer, measured: Measurement, view: LiveView, ends: dict[TopicPartition, int] | None
) -> None:
    counter = TextWriter(b"", b"", [], b"")
    counter.limit = -1 if measured.total is None else measured.total
    measured.start = time.perf_counter()
    while not counter.full and (measured.duration_s is None or measured.elapsed_s < measured.duration_s):
        if ends is not None and all(consumer.position(item) >= end for item, end in ends.items()):
            return
        consumer.poll_text(counter, 200, POLL_ROWS)
        measured.records = int(counter.rows)
        measured.bytes = int(counter.record_bytes)
        view.update()
