"""`kafka-producer-perf-test`: how many records a second a producer can send, and how long they take.

Latencies are counted a batch at a time: all records of a batch arrive together, so that for each batch only the times
at which its records were sent are kept, not an object for each record.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.admin_tools import read_config
from moldau.cli.kafka.java_text import divide, fixed_text
from moldau.cli.kafka.metrics_table import print_metrics
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.subcommands import CommandParser

if TYPE_CHECKING:
    from moldau.client.errors import ClientError
    from moldau.client.produce.delivery import Fate
    from moldau.client.producer import Producer

PAYLOAD_POOL_BYTES = 1 << 22
# Records that are sent in one go get one timestamp.
TOGETHER_MAX = 128
SLEEP_MS_MIN = 2
REPORTING_INTERVAL_MS = 5000
TRANSACTION_MS = 3000
MEBIBYTE = 1024 * 1024
PAIR = "PROP-NAME=PROP-VALUE"


def _parser() -> CommandParser:
    parser = CommandParser(prog="kafka-producer-perf-test", description="Measures how fast records can be sent.")
    add = parser.add_argument
    add("--bootstrap-server", metavar="BOOTSTRAP-SERVER", help="The brokers to connect to.")
    add("--topic", metavar="TOPIC", required=True, help="The topic.")
    add("--num-records", metavar="NUM-RECORDS", type="long", required=True, help="How many records to send.")
    add("--payload-delimiter", metavar="PAYLOAD-DELIMITER", default="\\n", help="What separates records in the file.")
    add("--throughput", metavar="THROUGHPUT", type=float, required=True, help="At most so many a second; -1: no limit.")
    add("--producer-props", metavar=PAIR, nargs="+", help="Deprecated: use --command-property.")
    add("--command-property", metavar=PAIR, nargs="+", help="Settings of the producer.")
    add("--producer.config", metavar="CONFIG-FILE", help="Deprecated: use --command-config.")
    add("--command-config", metavar="CONFIG-FILE", help="A file with settings of the producer.")
    add("--print-metrics", action="store_true", help="Show what the producer counted.")
    add("--transactional-id", metavar="TRANSACTIONAL-ID", help="Send in transactions.")
    add("--transaction-duration-ms", metavar="TRANSACTION-DURATION", type="long", help="How long a transaction lasts.")
    add("--warmup-records", metavar="WARMUP-RECORDS", type="long", default=0, help="Leave out the first ones.")
    add(
        "--reporting-interval",
        metavar="INTERVAL-MS",
        type="long",
        default=REPORTING_INTERVAL_MS,
        help="How often to report.",
    )
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", metavar="RECORD-SIZE", type=int, help="The size of a record.")
    payload.add_argument("--payload-file", metavar="PAYLOAD-FILE", help="A file with values to choose from.")
    payload.add_argument("--payload-monotonic", action="store_true", help="Values are numbers that count up.")
    return parser


def main(arguments: list[str]) -> int:
    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    options = parser.parse_args(arguments)
    _check(parser, options)
    config = _settings(options)
    values = Payloads(options)
    return Run(options, config, values).run()


def _check(parser: CommandParser, options: Any) -> None:
    """The rules between options, in the order of the real tool."""
    if options.num_records <= 0:
        parser.error("--num-records should be greater than zero.")
    if options.warmup_records >= options.num_records:
        parser.error(
            "The value for --warmup-records must be strictly fewer than the number of records in the test,"
            " --num-records."
        )
    if options.record_size is not None and options.record_size <= 0:
        parser.error("--record-size should be greater than zero.")
    properties = (options.command_property, options.producer_props)
    files = (options.producer_config, options.command_config)
    if all(given is None for given in (options.bootstrap_server, *properties, *files)):
        parser.error(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or"
            " --command-config must be specified."
        )
    if None not in properties:
        parser.error("--command-property and --producer-props cannot be specified together.")
    if None not in files:
        parser.error("--command-config and --producer.config cannot be specified together.")
    if options.transaction_duration_ms is not None and options.transaction_duration_ms <= 0:
        parser.error("--transaction-duration-ms should be greater than zero.")
    if options.reporting_interval <= 0:
        parser.error("--reporting-interval should be greater than zero.")


def _settings(options: Any) -> dict[str, str]:
    """The settings of the producer: the file, over it the properties, over them the options."""
    for old, new in (("producer-props", "command-property"), ("producer.config", "command-config")):
        if getattr(options, old.replace("-", "_").replace(".", "_")) is not None:
            print(f"Option --{old} has been deprecated and will be removed in a future version. Use --{new} instead.")
    path = options.command_config or options.producer_config
    config = {} if path is None else read_config(path)
    for text in options.command_property or options.producer_props or []:
        pieces = text.rstrip("=").split("=")
        if len(pieces) != 2:
            raise JavaFailure("java.lang.IllegalArgumentException", f"Invalid property: {text}")
        config[pieces[0]] = pieces[1]
    config.setdefault("client.id", "perf-producer-client")
    if options.bootstrap_server is not None:
        config["bootstrap.servers"] = options.bootstrap_server
    if options.transactional_id is not None:
        config["transactional.id"] = options.transactional_id
    elif options.transaction_duration_ms is not None and "transactional.id" not in config:
        config["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    return config


class Payloads:
    """The values to send."""

    def __init__(self, options: Any) -> None:
        self._random = random.Random(0)
        self._size: int | None = options.record_size
        self._choices: list[bytes] = []
        self._pool = b""
        self._position = 0
        if options.payload_file is not None:
            self._choices = self._read_file(options.payload_file, options.payload_delimiter)
        elif self._size is not None:
            letters = bytes(65 + byte % 26 for byte in range(256))
            self._pool = self._random.randbytes(max(PAYLOAD_POOL_BYTES, self._size)).translate(letters)

    def _read_file(self, path: str, delimiter: str) -> list[bytes]:
        print(f"Reading payloads from: {os.path.abspath(path)}")
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            raise JavaFailure("java.lang.IllegalArgumentException", "File does not exist or empty file provided.")
        import re

        with open(path, encoding="utf-8", errors="replace") as file:
            pieces = re.split("\n" if delimiter == "\\n" else delimiter, file.read())
        if pieces and not pieces[-1]:
            pieces.pop()
        print(f"Number of records read: {len(pieces)}")
        return [piece.encode() for piece in pieces]

    def next(self, first: int, count: int) -> list[bytes]:
        """Values for records first, first + 1, ..."""
        if self._choices:
            return self._random.choices(self._choices, k=count)
        size = self._size
        if size is None:
            return [b"%d" % number for number in range(first, first + count)]
        pool = self._pool
        last = len(pool) - size
        values = []
        for _ in range(count):
            if self._position > last:
                # Not the same cuts again.
                self._position = self._random.randrange(min(size, last + 1))
            values.append(pool[self._position : self._position + size])
            self._position += size
        return values


class Stats:
    """What was sent and how long it took, as a whole and since the last report."""

    def __init__(self, interval_ms: int, steady: bool) -> None:
        self._interval_ms = interval_ms
        self._steady = steady
        self.started_ms = now_ms()
        self.printing = True
        self._latencies: dict[int, int] = {}
        self._bytes = 0
        self._new_window(self.started_ms)

    def _new_window(self, start_ms: int) -> None:
        self._window_start_ms = start_ms
        self._window_count = self._window_bytes = self._window_total_ms = self._window_max_ms = 0

    def record(self, latency_ms: int, count: int, size: int, at_ms: int) -> None:
        self._latencies[latency_ms] = self._latencies.get(latency_ms, 0) + count
        self._bytes += size
        self._window_count += count
        self._window_bytes += size
        self._window_total_ms += latency_ms * count
        self._window_max_ms = max(self._window_max_ms, latency_ms)
        if at_ms - self._window_start_ms >= self._interval_ms:
            if self.printing:
                self._print_window(at_ms)
            self._new_window(at_ms)

    def _print_window(self, at_ms: int) -> None:
        elapsed = at_ms - self._window_start_ms
        count = self._window_count
        rate = fixed_text(divide(1000.0 * count, elapsed), 1)
        speed = fixed_text(divide(1000.0 * self._window_bytes, elapsed) / MEBIBYTE, 2)
        average = fixed_text(divide(self._window_total_ms, count), 1)
        print(
            f"{'In steady state.' if self._steady else ''}{count} records sent, {rate} records/sec ({speed} MB/sec),"
            f" {average} ms avg latency, {fixed_text(float(self._window_max_ms), 1)} ms max latency."
        )
        sys.stdout.flush()

    def print_total(self) -> None:
        elapsed = now_ms() - self.started_ms
        count = sum(self._latencies.values())
        total = sum(latency * many for latency, many in self._latencies.items())
        speed = divide(1000.0 * self._bytes, elapsed) / MEBIBYTE
        highest = max(self._latencies, default=0)
        p50, p95, p99, p999 = (self._percentile(count, share) for share in (0.5, 0.95, 0.99, 0.999))
        print(
            f"{count}{' steady state' if self._steady else ''} records sent,"
            f" {fixed_text(divide(1000.0 * count, elapsed), 6)} records/sec ({fixed_text(speed, 2)} MB/sec),"
            f" {fixed_text(divide(total, count), 2)} ms avg latency, {fixed_text(float(highest), 2)} ms max latency,"
            f" {p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
        )

    def _percentile(self, count: int, share: float) -> int:
        wanted = int(share * count)
        for latency in sorted(self._latencies):
            wanted -= self._latencies[latency]
            if wanted < 0:
                return latency
        return 0


class Run:
    """One test from the first record to the summary."""

    def __init__(self, options: Any, config: dict[str, str], values: Payloads) -> None:
        from moldau.cli.kafka.java_client import new_producer

        self._options = options
        self._values = values
        self._count: int = options.num_records
        self._warmup: int = options.warmup_records
        self._lock = threading.Lock()
        # For each batch on its way: its partition's fate, and when and how much was sent in it.
        self._sent: dict[int, tuple[Fate, list[list[int]]]] = {}
        self._steady: Stats | None = None
        self._producer: Producer = new_producer(config)
        self._transactional = "transactional.id" in config
        self._transaction_ms = options.transaction_duration_ms or TRANSACTION_MS

    def run(self) -> int:
        if self._warmup > 0:
            print(
                f"Warmup first {self._warmup} records. Steady state results will print after the complete test summary."
            )
        self._stats = Stats(self._options.reporting_interval, False)
        try:
            self._send_all()
            self._producer.flush()
        finally:
            self._producer.close()
        self._stats.print_total()
        if self._steady is not None:
            self._steady.print_total()
        if self._options.print_metrics:
            print_metrics(self._producer.metrics())
        return 0

    def _send_all(self) -> None:
        number = 0
        wait = throttle(self._options.throughput)
        while number < self._count:
            together = min(TOGETHER_MAX, self._count - number, wait(number))
            if number < self._warmup:
                together = min(together, self._warmup - number)
            elif self._warmup > 0 and self._steady is None:
                self._steady = Stats(self._options.reporting_interval, True)
                self._stats.printing = False
            self._send(self._values.next(number, together), number >= self._warmup > 0)
            number += together

    def _send(self, values: list[bytes], steady: bool) -> None:
        sent_ms = now_ms()
        futures = self._producer.send_many(self._options.topic, values, timestamp_ms=sent_ms)
        # Nearly always they are all in one batch.
        if futures[0].fate is futures[-1].fate:
            self._note(futures[0].fate, sent_ms, len(values), sum(map(len, values)), steady)
            return
        for future, value in zip(futures, values, strict=True):
            self._note(future.fate, sent_ms, 1, len(value), steady)

    def _note(self, fate: Fate, sent_ms: int, count: int, size: int, steady: bool) -> None:
        with self._lock:
            found = self._sent.get(id(fate))
            if found is not None and found[0] is fate:
                last = found[1][-1]
                if last[0] == sent_ms and last[3] == steady:
                    last[1] += count
                    last[2] += size
                else:
                    found[1].append([sent_ms, count, size, steady])
                return
            rows = [[sent_ms, count, size, int(steady)]]
            self._sent[id(fate)] = (fate, rows)
        if not fate.listen(lambda: self._on_fate(fate)):
            self._on_fate(fate)

    def _on_fate(self, fate: Fate) -> None:
        at_ms = now_ms()
        with self._lock:
            found = self._sent.pop(id(fate), None)
            if found is None:
                return
            if fate.parts:
                # A batch that the broker found too large: its records arrive when the last part does.
                last = fate.parts[-1][1]
                self._sent[id(last)] = (last, found[1])
                if last.listen(lambda: self._on_fate(last)):
                    return
                del self._sent[id(last)]
                fate = last
            for sent_ms, count, size, steady in found[1]:
                if fate.error is not None:
                    self._tell(fate.error, count)
                    continue
                self._stats.record(at_ms - sent_ms, count, size, at_ms)
                if steady and self._steady is not None:
                    self._steady.record(at_ms - sent_ms, count, size, at_ms)

    def _tell(self, error: ClientError, count: int) -> None:
        """Java's tool shows the exception of each record that failed."""
        from moldau.cli.kafka.admin_tools import java_text
        from moldau.cli.kafka.java_client import client_failure

        sys.stderr.write(f"{java_text(client_failure(error, self._options.topic))}\n" * count)
        sys.stderr.flush()


def throttle(rate: float) -> Callable[[int], int]:
    """A function that waits until the next records may be sent, and says how many those may be."""
    if rate < 0:
        return lambda number: TOGETHER_MAX
    started = time.monotonic()

    def wait(number: int) -> int:
        if rate == 0:
            threading.Event().wait()
        while True:
            allowed = int((time.monotonic() - started) * rate) + 1 - number
            if allowed > 0:
                return allowed
            time.sleep(max(SLEEP_MS_MIN / 1000, (number - (time.monotonic() - started) * rate) / rate))

    return wait


def now_ms() -> int:
    return time.time_ns() // 1_000_000
