"""`kafka-share-consumer-perf-test`: how many records a second the consumers of a share group can read."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from moldau.cli.kafka.consumer_perf import DATE_FORMAT, MEBIBYTE, POLL_MS, format_date, now_ms
from moldau.cli.kafka.java_text import divide, fixed_text
from moldau.cli.kafka.metrics_table import print_metrics
from moldau.cli.kafka.options import (
    OPTIONAL_VALUE,
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_required,
)

if TYPE_CHECKING:
    from moldau.cli.stopping import Stopping
    from moldau.client.share_consumer import ShareConsumer

HEADER = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
CLIENT_ID = "perf-share-consumer-client"
CLOSE_MS = 500

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("topic", "REQUIRED: the topic.", VALUE, described_as="topic"),
        Option("group", "The share group to read in.", VALUE, described_as="gid", default="perf-share-consumer"),
        Option("fetch-size", "The most to fetch at once.", VALUE, "Integer", "size", 1048576),
        Option("command-property", "A setting of the consumers, as name=value.", VALUE, described_as="prop1=val1"),
        Option("socket-buffer-size", "receive.buffer.bytes.", VALUE, "Integer", "size", 2097152),
        Option("consumer.config", "Deprecated: use --command-config.", VALUE, described_as="config file"),
        Option("command-config", "A file with settings of the consumers.", VALUE, described_as="config file"),
        Option("print-metrics", "Show what the consumers counted."),
        Option("show-detailed-stats", "Report in between."),
        Option("show-consumer-stats", "Report of each consumer at the end."),
        Option("timeout", "End when nothing came for so long.", OPTIONAL_VALUE, "Long", "milliseconds", 10000),
        Option("messages", "Deprecated: use --num-records.", VALUE, "Long", "count"),
        Option("num-records", "REQUIRED: how many records to read.", VALUE, "Long", "count"),
        Option("reporting-interval", "How often to report.", VALUE, "Long", "interval_ms", 5000),
        Option("date-format", "How times are shown.", VALUE, described_as="date format", default=DATE_FORMAT),
        Option("hide-header", "Leave the header out."),
        Option("threads", "How many consumers share the work.", VALUE, "Integer", "count", 1),
    ]
)


def main(arguments: list[str]) -> int:
    from moldau.cli.kafka.java_client import client_failure
    from moldau.client.errors import ClientError

    try:
        return _measure(_parse(arguments))
    except (JavaFailure, ClientError) as error:
        failure = error if isinstance(error, JavaFailure) else client_failure(error)
        sys.stdout.flush()
        sys.stderr.write(f"{'null' if failure.message is None else failure.message}\n{failure.java_text()}\n\n")
        return 1


def _parse(arguments: list[str]) -> Options:
    try:
        options = PARSER.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, str(failure.message), PARSER) from None
    check_help_or_version(options, "Measure how fast a share group can read.")
    check_required(options, "topic", "bootstrap-server")
    if options.has("num-records") == options.has("messages"):
        raise Exit(1, "Exactly one of the following arguments is required: [messages], [num-records]", PARSER)
    if options.has("command-config") and options.has("consumer.config"):
        raise Exit(1, 'Option "[consumer.config]" can\'t be used with option "[command-config]"', PARSER)
    if options.has("messages"):
        print("Warning: --messages is deprecated. Use --num-records instead.")
    if options.has("consumer.config"):
        print("Warning: --consumer.config is deprecated. Use --command-config instead.")
    return options


def _settings(options: Options) -> dict[str, str]:
    from moldau.cli.kafka.java_client import file_settings, read_pairs

    config = file_settings(options, "command-config", "consumer.config")
    config.update(read_pairs(options.values("command-property")))
    config["bootstrap.servers"] = options.text("bootstrap-server") or ""
    config["group.id"] = options.text("group") or ""
    config["receive.buffer.bytes"] = str(options.integer("socket-buffer-size"))
    if options.has("fetch-size"):
        config["fetch.max.bytes"] = str(options.integer("fetch-size"))
    config["check.crcs"] = "false"
    config.setdefault("client.id", CLIENT_ID)
    return config


def _measure(options: Options) -> int:
    from moldau.cli.stopping import Stopping

    config = _settings(options)
    format_date(0, options.text("date-format") or "")
    if not options.has("hide-header"):
        print(HEADER)
        sys.stdout.flush()
    count = options.integer("threads") or 0
    if count < 1:
        raise JavaFailure("java.lang.IllegalArgumentException", None)
    name = config["client.id"]
    names = [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]
    with Stopping() as stop:
        _run(options, config, names, stop)
        return stop.exit_code


def _run(options: Options, config: dict[str, str], names: list[str], stop: Stopping) -> None:
    from moldau.cli.kafka.share_reading import new_share_consumer

    consumers: list[ShareConsumer] = []
    try:
        consumers += (new_share_consumer({**config, "client.id": each}) for each in names)
        measure = Measure(options, consumers, names, stop)
        stop.interrupt = measure.interrupt
        measure.run()
        ended_ms = now_ms()
        for consumer in consumers:
            consumer.commit()
        if stop.requested:
            return
        print(measure.summary(measure.records, measure.bytes, ended_ms))
        if options.has("print-metrics"):
            for consumer in consumers:
                print_metrics(consumer.metrics())
    finally:
        for consumer in consumers:
            consumer.close(CLOSE_MS)


class Measure:
    """Some consumers that read at once, until all together have read enough."""

    def __init__(self, options: Options, consumers: list[ShareConsumer], names: list[str], stop: Stopping) -> None:
        self._options = options
        self._stop = stop
        self._wanted = (options.long("num-records") if options.has("num-records") else options.long("messages")) or 0
        self._dates = options.text("date-format") or ""
        self.timeout_ms = options.long("timeout") or 0
        self._lock = threading.Lock()
        self._consumers = consumers
        self.records = self.bytes = 0
        self.started_ms = now_ms()
        for consumer in consumers:
            consumer.subscribe([options.text("topic") or ""])
        self.readers = [
            Reader(self, options, *each) for each in zip(consumers, names, range(1, len(names) + 1), strict=True)
        ]

    def run(self) -> None:
        # Whoever ends the tool with a second signal need not wait for them.
        threads = [threading.Thread(target=reader.run, daemon=True) for reader in self.readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for reader in self.readers:
            if reader.failure is not None:
                raise JavaFailure("java.util.concurrent.ExecutionException", reader.failure.java_text(), reader.failure)
        if self._stop.requested:
            return
        if self._options.has("show-consumer-stats"):
            self._tell_consumers()
        if self.records < self._wanted:
            print(
                f"WARNING: Exiting before consuming the expected number of records: timeout ({self.timeout_ms} ms)"
                " exceeded. You can use the --timeout option to increase the timeout."
            )

    def interrupt(self) -> None:
        for consumer in self._consumers:
            consumer.interrupt_poll()

    def _tell_consumers(self) -> None:
        ended_ms = now_ms()
        for reader in self.readers:
            shown = self.summary(reader.records, reader.bytes, ended_ms)
            print(f"Share consumer {reader.number} having client id {reader.client_id} consumption metrics- {shown}")

    def is_enough(self) -> bool:
        return self._stop.requested or self.records >= self._wanted

    def add(self, records: int, size: int) -> None:
        with self._lock:
            self.records += records
            self.bytes += size

    def summary(self, records: int, size: int, ended_ms: int) -> str:
        seconds = (ended_ms - self.started_ms) / 1000.0
        read_mb = size / MEBIBYTE
        cells = [
            format_date(self.started_ms, self._dates),
            format_date(ended_ms, self._dates),
            fixed_text(read_mb, 4),
            fixed_text(divide(read_mb, seconds), 4),
            fixed_text(divide(float(records), seconds), 4),
            str(records),
            str(ended_ms - self.started_ms),
        ]
        return ", ".join(cells)


class Reader:
    """One consumer, and what it has read, in all and since its last report."""

    def __init__(
        self, measure: Measure, options: Options, consumer: ShareConsumer, client_id: str, number: int
    ) -> None:
        self._measure = measure
        self._consumer = consumer
        self._interval_ms = options.long("reporting-interval") or 0
        self._detailed = options.has("show-detailed-stats")
        self._dates = options.text("date-format") or ""
        self.number = number
        self.client_id = client_id
        self.records = self.bytes = 0
        self._last_records = self._last_bytes = 0
        self.failure: JavaFailure | None = None

    def run(self) -> None:
        from moldau.cli.kafka.java_client import client_failure
        from moldau.client.errors import ClientError

        try:
            if self._interval_ms <= 0:
                raise JavaFailure("java.lang.IllegalArgumentException", "Reporting interval must be greater than 0.")
            self._read()
        except ClientError as error:
            self.failure = client_failure(error)
        except JavaFailure as failure:
            self.failure = failure

    def _read(self) -> None:
        current_ms = report_ms = consumed_ms = now_ms()
        while not self._measure.is_enough() and current_ms - consumed_ms <= self._measure.timeout_ms:
            records = self._consumer.poll(POLL_MS)
            current_ms = now_ms()
            if not records:
                continue
            consumed_ms = current_ms
            sizes = [len(record.value or b"") + len(record.key or b"") for record in records]
            self._measure.add(len(sizes), sum(sizes))
            if current_ms - report_ms >= self._interval_ms:
                # As in the real tool, a report that is due comes behind the first record of a poll.
                self.records += 1
                self.bytes += sizes.pop(0)
                self._report(report_ms, current_ms)
                report_ms = current_ms
            self.records += len(sizes)
            self.bytes += sum(sizes)

    def _report(self, start_ms: int, end_ms: int) -> None:
        if self._detailed:
            elapsed = end_ms - start_ms
            cells = [
                format_date(start_ms, self._dates),
                format_date(end_ms, self._dates),
                fixed_text(self.bytes / MEBIBYTE, 4),
                fixed_text(divide(1000.0 * (self.bytes - self._last_bytes) / MEBIBYTE, elapsed), 4),
                fixed_text(divide(float(self.records - self._last_records), elapsed) * 1000.0, 4),
                str(self.records),
                f"{elapsed} for share consumer {self.number}\n",
            ]
            sys.stdout.write(", ".join(cells))
            sys.stdout.flush()
        self._last_bytes, self._last_records = self.bytes, self.records
