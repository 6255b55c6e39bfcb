"""`kafka-consumer-perf-test`: how many records a second a consumer can read."""

from __future__ import annotations

import random
import sys
import time
from typing import TYPE_CHECKING

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
    from moldau.cli.kafka.reading import Reading

POLL_MS = 100
POLL_RECORDS = 5_000
MEBIBYTE = 1024 * 1024
DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
HEADER_END = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
HEADER = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec" + HEADER_END
HEADER_DETAILED = "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec" + HEADER_END

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("topic", "The topic.", VALUE, described_as="topic"),
        Option("include", "A regular expression of topics.", VALUE, described_as="Java regex (String)"),
        Option(
            "group",
            "The group of consumers to read in; without one nothing is kept on the brokers.",
            VALUE,
            described_as="gid",
        ),
        Option("fetch-size", "The most to fetch of a partition at once.", VALUE, "Integer", "size", 1048576),
        Option("command-property", "A setting of the consumer, as name=value.", VALUE, described_as="prop1=val1"),
        Option("from-latest", "Begin at the end where the group has no offset yet."),
        Option("socket-buffer-size", "receive.buffer.bytes.", VALUE, "Integer", "size", 2097152),
        Option("consumer.config", "Deprecated: use --command-config.", VALUE, described_as="config file"),
        Option("command-config", "A file with settings of the consumer.", VALUE, described_as="config file"),
        Option("print-metrics", "Show what the consumer counted."),
        Option("show-detailed-stats", "Report in between."),
        Option("timeout", "End when nothing came for so long.", OPTIONAL_VALUE, "Long", "milliseconds", 10000),
        Option("messages", "Deprecated: use --num-records.", VALUE, "Long", "count"),
        Option("num-records", "REQUIRED: how many records to read.", VALUE, "Long", "count"),
        Option("reporting-interval", "How often to report.", VALUE, "Integer", "interval_ms", 5000),
        Option("date-format", "How times are shown.", VALUE, described_as="date format", default=DATE_FORMAT),
        Option("hide-header", "Leave the header out."),
    ]
)


def main(arguments: list[str]) -> int:
    from moldau.cli.kafka.admin_tools import java_text
    from moldau.cli.kafka.java_client import client_failure
    from moldau.client.errors import ClientError

    try:
        _measure(_parse(arguments))
    except (JavaFailure, ClientError) as error:
        failure = error if isinstance(error, JavaFailure) else client_failure(error)
        sys.stdout.flush()
        sys.stderr.write(f"{'null' if failure.message is None else failure.message}\n{java_text(failure)}\n\n")
        return 1
    return 0


def _parse(arguments: list[str]) -> Options:
    try:
        options = PARSER.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, str(failure.message), PARSER) from None
    check_help_or_version(options, "Measure how fast records can be read.")
    if options.has("topic") == options.has("include"):
        raise Exit(1, "Exactly one of the following arguments is required: [topic], [include]", PARSER)
    if options.has("num-records") == options.has("messages"):
        raise Exit(1, "Exactly one of the following arguments is required: [messages], [num-records]", PARSER)
    check_required(options, "bootstrap-server")
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
    config["group.id"] = options.text("group") or f"perf-consumer-{random.randrange(100_000)}"
    config["receive.buffer.bytes"] = str(options.integer("socket-buffer-size"))
    config["max.partition.fetch.bytes"] = str(options.integer("fetch-size"))
    config["auto.offset.reset"] = "latest" if options.has("from-latest") else "earliest"
    config["check.crcs"] = "false"
    config.setdefault("client.id", "perf-consumer-client")
    return config


def _measure(options: Options) -> None:
    from moldau.cli.kafka.reading import Reading

    detailed = options.has("show-detailed-stats")
    if not options.has("hide-header"):
        print(HEADER_DETAILED if detailed else HEADER)
        sys.stdout.flush()
    config = _settings(options)
    format_date(0, options.text("date-format") or "")
    if (options.integer("reporting-interval") or 0) <= 0:
        raise JavaFailure("java.lang.IllegalArgumentException", "Reporting interval must be greater than 0.")
    reading = Reading(config, options.text("topic"), options.text("include"), options.has("group"))
    reading.start()
    try:
        measure = Measure(options, reading, int(config.get("max.poll.records", POLL_RECORDS)))
        measure.run()
        ended_ms = now_ms()
    finally:
        reading.close()
    if not detailed:
        print(measure.summary(ended_ms))
    if options.has("print-metrics"):
        print_metrics(reading.consumer.metrics())


class Measure:
    """Counts records and bytes, in all and since the last report."""

    def __init__(self, options: Options, reading: Reading, limit: int) -> None:
        self._reading = reading
        self._limit = limit
        self._wanted = (options.long("num-records") if options.has("num-records") else options.long("messages")) or 0
        self._timeout_ms = options.long("timeout") or 0
        self._interval_ms = options.integer("reporting-interval") or 0
        self._detailed = options.has("show-detailed-stats")
        self._dates = options.text("date-format") or ""
        self.records = self.bytes = 0
        self._last_records = self._last_bytes = 0
        self.started_ms = now_ms()
        self.join_ms = 0
        self._join_ms_told = 0
        self._joined = False

    def run(self) -> None:
        if self._reading.can_write and not self._detailed:
            self._count()
        else:
            self._read()
        if self.records < self._wanted:
            print(
                f"WARNING: Exiting before consuming the expected number of records: timeout ({self._timeout_ms} ms)"
                " exceeded. You can use the --timeout option to increase the timeout."
            )

    def _count(self) -> None:
        """Nobody looks at the records: they are counted where they lie."""
        from moldau.records.text_writer import TextWriter

        counter = TextWriter(b"", b"", [], b"")
        current_ms = consumed_ms = now_ms()
        while self.records < self._wanted and current_ms - consumed_ms <= self._timeout_ms:
            found = self._reading.poll_text(counter, POLL_MS)
            current_ms = now_ms()
            self._note_join(current_ms)
            consumed_ms = current_ms if found else consumed_ms
            self.records, self.bytes = int(counter.rows), int(counter.record_bytes)

    def _read(self) -> None:
        current_ms = report_ms = consumed_ms = now_ms()
        while self.records < self._wanted and current_ms - consumed_ms <= self._timeout_ms:
            records = self._reading.poll(POLL_MS, self._limit)
            current_ms = now_ms()
            self._note_join(current_ms)
            if not records:
                continue
            consumed_ms = current_ms
            sizes = [len(record.value or b"") + len(record.key or b"") for record in records]
            if current_ms - report_ms >= self._interval_ms:
                # As in the real tool, a report that is due comes behind the first record of a poll.
                self.records += 1
                self.bytes += sizes.pop(0)
                self._report(report_ms, current_ms)
                report_ms = current_ms
            self.records += len(sizes)
            self.bytes += sum(sizes)

    def _note_join(self, current_ms: int) -> None:
        if not self._joined and self._reading.consumer.assignment():
            self._joined = True
            self.join_ms = self._join_ms_told = self._reading.assigned_ms(current_ms) - self.started_ms

    def _report(self, start_ms: int, end_ms: int) -> None:
        if self._detailed:
            elapsed = end_ms - start_ms
            read_mb = (self.bytes - self._last_bytes) / MEBIBYTE
            read = self.records - self._last_records
            fetch_ms = elapsed - self._join_ms_told
            cells = [
                format_date(end_ms, self._dates),
                "0",
                fixed_text(self.bytes / MEBIBYTE, 4),
                fixed_text(divide(1000.0 * read_mb, elapsed), 4),
                str(self.records),
                fixed_text(divide(float(read), elapsed) * 1000.0, 4),
                str(self._join_ms_told),
                str(fetch_ms),
                fixed_text(0.0 if fetch_ms <= 0 else 1000.0 * read_mb / fetch_ms, 4),
                fixed_text(0.0 if fetch_ms <= 0 else 1000.0 * read / fetch_ms, 4),
            ]
            print(", ".join(cells))
            sys.stdout.flush()
        self._join_ms_told = 0
        self._last_bytes, self._last_records = self.bytes, self.records

    def summary(self, ended_ms: int) -> str:
        seconds = (ended_ms - self.started_ms) / 1000.0
        fetch_ms = ended_ms - self.started_ms - self.join_ms
        read_mb = self.bytes / MEBIBYTE
        cells = [
            format_date(self.started_ms, self._dates),
            format_date(ended_ms, self._dates),
            fixed_text(read_mb, 4),
            fixed_text(divide(read_mb, seconds), 4),
            str(self.records),
            fixed_text(divide(float(self.records), seconds), 4),
            str(self.join_ms),
            str(fetch_ms),
            fixed_text(divide(read_mb, fetch_ms / 1000.0), 4),
            fixed_text(divide(float(self.records), fetch_ms / 1000.0), 4),
        ]
        return ", ".join(cells)


def format_date(moment_ms: int, pattern: str) -> str:
    """A time as Java's SimpleDateFormat shows it."""
    from moldau.cli.kafka.java_dates import format_moment

    return format_moment(moment_ms, pattern)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
