"""`moldau perf latency`: one record at a time, there and back."""

from __future__ import annotations

import time

import click

from moldau.cli.histogram import Histogram
from moldau.cli.options import CONSUMER, PRODUCER, Connection, connected, format_option
from moldau.cli.output import bytes_text
from moldau.cli.perf import (
    DEFAULT_DURATION_S,
    ensure_topic,
    limit_options,
    payload_options,
    payloads,
    stoppable,
    topic_argument,
)
from moldau.cli.perf_view import LiveView, Measurement, show_summary
from moldau.client.consumer import Consumer
from moldau.client.errors import ClientError
from moldau.client.producer import Producer
from moldau.client.results import RecordMetadata, TopicPartition
from moldau.client.wiring import wired


@click.command()
@topic_argument
@limit_options
@payload_options
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N records a second.")
@click.option("--partition", type=click.IntRange(min=0), default=0, show_default=True, help="The partition to use.")
@format_option
@connected
def latency(
    connection: Connection,
    topic: str,
    records: int | None,
    duration_s: float | None,
    size: int,
    acks: str,
    rate: float | None,
    partition: int,
    output_format: str,
) -> None:
    """Send one record at a time and wait until it comes back: the time to the acknowledgement, and to the reader.

    \b
    Examples:
      moldau perf latency
      moldau perf latency orders -n 10000 --acks 1
    """
    there = ensure_topic(connection, topic, -1)
    if partition not in there:
        raise click.ClickException(f"Topic {topic} has partitions 0 to {len(there) - 1}.")
    if records is None and duration_s is None:
        duration_s = DEFAULT_DURATION_S
    about = f"one record of {bytes_text(size)} at a time, acks={acks}"
    measured = Measurement("latency", topic, about, records, duration_s)
    producing = connection.config(PRODUCER, acks=acks, linger_ms=0)
    consuming = connection.config(CONSUMER, fetch_max_wait_ms=500, default_api_timeout_ms=connection.timeout_ms)
    home = TopicPartition(topic, partition)
    with (
        Producer(config=wired(producing, first_contact_ms=0)) as producer,
        Consumer(config=wired(consuming, first_contact_ms=0)) as consumer,
    ):
        producer.partitions_for(topic)
        consumer.partitions_for(topic)
        consumer.assign([home])
        consumer.seek(home, consumer.end_offsets([home])[home])
        with LiveView(measured, output_format == "table") as view:
            trips = RoundTrips(measured, producer, consumer, home, payloads(size, 1)[0], connection.timeout_s)
            stoppable(lambda: trips.run(rate, view))
        measured.finish()
    show_summary(measured, output_format)


class RoundTrips:
    """One record after the other, there and back."""

    def __init__(
        self,
        measured: Measurement,
        producer: Producer,
        consumer: Consumer,
        home: TopicPartition,
        value: bytes,
        timeout_s: float,
    ) -> None:
        self.measured = measured
        self.producer = producer
        self.consumer = consumer
        self.home = home
        self.value = value
        self.timeout_s = timeout_s
        self.acknowledged = measured.latencies["acknowledged"] = Histogram()
        self.arrived = measured.latencies["end to end"] = Histogram()

    def run(self, rate: float | None, view: LiveView) -> None:
        measured = self.measured
        self._trip(None)  # the first one finds connections closed and caches cold
        measured.start = time.perf_counter()
        while (measured.total is None or measured.records < measured.total) and (
            measured.duration_s is None or measured.elapsed_s < measured.duration_s
        ):
            if rate is not None:
                time.sleep(max(0.0, measured.start + measured.records / rate - time.perf_counter()))
            self._trip(measured)
            view.update()

    def _trip(self, measured: Measurement | None) -> None:
        start = time.perf_counter()
        acknowledged_at: list[float] = []

        def on_delivery(metadata: RecordMetadata | None, error: ClientError | None) -> None:
            acknowledged_at.append(time.perf_counter())

        future = self.producer.send(self.home.topic, self.value, partition=self.home.partition, on_delivery=on_delivery)
        offset = -1
        arrived_at = 0.0
        deadline = start + self.timeout_s
        while not arrived_at:
            records = self.consumer.poll(1000)
            now = time.perf_counter()
            if future.done() and offset < 0:
                offset = future.result().offset
            # Others may write to the partition; without an offset (acks=0) the value must do.
            if any(item.offset == offset or (offset < 0 and item.value == self.value) for item in records):
                arrived_at = now
            elif now > deadline:
                raise click.ClickException(f"The record did not come back within {self.timeout_s:g} seconds.")
        future.result(int(self.timeout_s * 1000))
        if measured is not None:
            measured.records += 1
            measured.bytes += len(self.value)
            if acknowledged_at:
                self.acknowledged.add(int((acknowledged_at[0] - start) * 1e6))
            self.arrived.add(int((arrived_at - start) * 1e6))
