"""`kafka-console-consumer`: prints records."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.options import JavaFailure

if TYPE_CHECKING:
    from moldau.cli.kafka.console_options import ConsumerOptions
    from moldau.cli.kafka.reading import Reading
    from moldau.client.record import ConsumerRecord
    from moldau.records.text_writer import TextWriter

T = TypeVar("T")

LOGGER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
POLL_RECORDS = 5_000
POLL_MS_MAX = 600_000
NEW_PROTOCOL = (
    "The consumer rebalance protocol (KIP-848) is production-ready! Set group.protocol=consumer to try it out."
    " See https://kafka.apache.org/documentation/#consumer_rebalance_protocol"
)


def main(arguments: list[str]) -> int:
    from moldau.cli.kafka.console_options import ConsumerOptions
    from moldau.cli.kafka.java_log import write_log
    from moldau.cli.kafka.termination import termination

    options = ConsumerOptions(arguments)
    try:
        with termination():
            return _run(options)
    except JavaFailure as failure:
        write_log("ERROR", "Unknown error when running consumer: ", LOGGER, failure)
        return 1
    finally:
        if options.tells_events:
            print("shutdown_complete")


def _run(options: ConsumerOptions) -> int:
    from moldau.cli.kafka.reading import Reading
    from moldau.cli.kafka.termination import TERMINATED, Terminated

    reading = Reading(options.config, options.topic, options.include, options.has_group)
    if options.partition is None and options.config.get("group.protocol", "classic").lower() != "consumer":
        sys.stdout.flush()
        sys.stderr.write(NEW_PROTOCOL + "\n")
        sys.stderr.flush()
    reading.start()
    printing = Printing(options, reading)
    try:
        _place(options, reading)
        printing.run()
    except Terminated:
        return TERMINATED
    finally:
        printing.end()
    return 0


def _place(options: ConsumerOptions, reading: Reading) -> None:
    """One partition is read from where the user says; others begin as auto.offset.reset says."""
    from moldau.cli.kafka.console_options import EARLIEST, LATEST

    if options.partition is None:
        return
    partition = reading.assign(options.partition)
    if options.offset == EARLIEST:
        reading.consumer.seek_to_beginning([partition])
    elif options.offset == LATEST:
        reading.consumer.seek_to_end([partition])
    else:
        reading.consumer.seek(partition, options.offset)


class Printing:
    """Reads and prints until there is enough, nothing more comes, or somebody ends it."""

    def __init__(self, options: ConsumerOptions, reading: Reading) -> None:
        self._reading = reading
        self._formatter = options.formatter
        self._options = options
        self._max = -1
        self._timeout_ms = options.timeout_ms
        self._skips_errors = options.skips_errors
        self._limit = int(options.config.get("max.poll.records", POLL_RECORDS))
        self._count = 0

    def run(self) -> None:
        from moldau.cli.kafka.java_log import write_log
        from moldau.client.errors import ClientError

        self._max = self._options.max_messages
        writer = self._formatter.text_writer() if self._reading.can_write else None
        while self._max == -1 or self._count < self._max:
            try:
                if writer is not None:
                    self._write(writer)
                    continue
                records = self._receive()
            except ClientError as error:
                failure = self._reading.failure(error)
            except JavaFailure as problem:
                failure = problem
            else:
                self._print(records)
                continue
            write_log("ERROR", "Error processing message, terminating consumer process: ", LOGGER, failure)
            return

    def end(self) -> None:
        self._reading.close()
        sys.stdout.flush()
        sys.stderr.write(f"Processed a total of {self._count} messages\n")
        sys.stderr.flush()

    def _receive(self) -> list[ConsumerRecord]:
        limit = self._limit if self._max == -1 else min(self._limit, self._max - self._count)
        return self._wait(lambda patience_ms: self._reading.poll(patience_ms, limit))

    def _write(self, writer: TextWriter) -> None:
        """Prints what comes without an object for each record."""
        if self._max != -1:
            writer.limit = self._max
        try:
            self._wait(lambda patience_ms: self._reading.poll_text(writer, patience_ms))
        finally:
            self._count = int(writer.rows)
            write_bytes(writer.take())

    def _wait(self, poll: Callable[[int], T]) -> T:
        """What comes; the real tool's exception where nothing does in time."""
        started = time.monotonic()
        while True:
            patience_ms = POLL_MS_MAX if self._timeout_ms is None else min(self._timeout_ms, POLL_MS_MAX)
            found = poll(patience_ms)
            if found:
                return found
            if self._timeout_ms is not None and (time.monotonic() - started) * 1000 > self._timeout_ms:
                raise JavaFailure("org.apache.kafka.common.errors.TimeoutException", None)

    def _print(self, records: Sequence[ConsumerRecord]) -> None:
        try:
            data = self._formatter.write_all(records)
        except JavaFailure:
            self._print_each(records)
            return
        self._count += len(records)
        write_bytes(data)

    def _print_each(self, records: Sequence[ConsumerRecord]) -> None:
        """One of them cannot be shown: up to there, and behind it where the user wants that."""
        from moldau.cli.kafka.java_log import write_log

        for record in records:
            self._count += 1
            out: list[bytes] = []
            try:
                self._formatter.write(record, out)
            except JavaFailure as failure:
                if not self._skips_errors:
                    raise
                write_log("ERROR", "Error processing message, skipping this message: ", LOGGER, failure)
            finally:
                write_bytes(b"".join(out))


def write_bytes(data: bytes) -> None:
    """Records are bytes, whatever the encoding of the output is."""
    out = sys.stdout
    buffer = getattr(out, "buffer", None)
    if buffer is None:
        out.write(data.decode("utf-8", "replace"))
        return
    out.flush()
    buffer.write(data)
    buffer.flush()
