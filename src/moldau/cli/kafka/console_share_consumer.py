"""`kafka-console-share-consumer`: prints the records that a share group hands out, and says what became of them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from moldau.cli.kafka.options import JavaFailure

if TYPE_CHECKING:
    from moldau.cli.kafka.console_share_options import ShareOptions
    from moldau.cli.stopping import Stopping
    from moldau.client.record import ConsumerRecord
    from moldau.client.share_consumer import ShareConsumer

LOGGER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
POLL_MS_MAX = 600_000


def main(arguments: list[str]) -> int:
    from moldau.cli.kafka.console_share_options import ShareOptions
    from moldau.cli.kafka.java_log import write_log
    from moldau.cli.stopping import Stopping

    options = ShareOptions(arguments)
    try:
        with Stopping() as stop:
            return _run(options, stop)
    except JavaFailure as failure:
        write_log("ERROR", "Unknown error when running consumer: ", LOGGER, failure)
        return 1
    finally:
        if options.tells_events:
            print("shutdown_complete")


def _run(options: ShareOptions, stop: Stopping) -> int:
    from moldau.cli.kafka.share_reading import new_share_consumer

    consumer = new_share_consumer(options.config)
    stop.interrupt = consumer.interrupt_poll
    printing = Printing(options, consumer, stop)
    try:
        consumer.subscribe([options.topic])
        printing.run()
    finally:
        printing.end()
    return stop.exit_code


class Printing:
    """Prints and acknowledges until there is enough, nothing more comes, or somebody ends it."""

    def __init__(self, options: ShareOptions, consumer: ShareConsumer, stop: Stopping) -> None:
        self._options = options
        self._stop = stop
        self._consumer = consumer
        self._formatter = options.formatter
        self._max = -1
        self._count = 0

    def run(self) -> None:
        from moldau.cli.kafka.java_client import client_failure
        from moldau.cli.kafka.java_log import write_log
        from moldau.client.errors import ClientError

        self._max = self._options.max_messages
        while not self._stop.requested and (self._max == -1 or self._count < self._max):
            try:
                records = self._receive()
            except ClientError as error:
                failure = client_failure(error, self._options.topic)
            except JavaFailure as problem:
                failure = problem
            else:
                self._print(records)
                continue
            write_log("ERROR", "Error processing message, terminating consumer process: ", LOGGER, failure)
            return

    def end(self) -> None:
        """What was shown is acknowledged; what was not goes back to the group."""
        self._consumer.close()
        sys.stdout.flush()
        sys.stderr.write(f"Processed a total of {self._count} messages\n")
        sys.stderr.flush()

    def _receive(self) -> list[ConsumerRecord]:
        """Records, none if somebody ends the tool; the real tool's exception where none come in time."""
        started = time.monotonic()
        timeout_ms = self._options.timeout_ms
        while True:
            records = self._consumer.poll(POLL_MS_MAX if timeout_ms is None else min(timeout_ms, POLL_MS_MAX))
            if records or self._stop.requested:
                return records
            if timeout_ms is not None and (time.monotonic() - started) * 1000 > timeout_ms:
                raise JavaFailure("org.apache.kafka.common.errors.TimeoutException", None)

    def _print(self, records: list[ConsumerRecord]) -> None:
        from moldau.cli.kafka.console_consumer import write_bytes
        from moldau.cli.kafka.java_log import write_log
        from moldau.cli.share_printing import print_and_acknowledge
        from moldau.client.share.acknowledgements import AcknowledgeType

        wanted = records if self._max == -1 else records[: self._max - self._count]
        shown: list[ConsumerRecord] = []
        out: list[bytes] = []
        try:
            for record in wanted:
                self._count += 1
                try:
                    self._formatter.write(record, out)
                except JavaFailure as failure:
                    if not self._options.rejects_errors:
                        raise
                    write_log("ERROR", "Error processing message, rejecting this message: ", LOGGER, failure)
                    self._consumer.acknowledge(record, AcknowledgeType.REJECT)
                else:
                    shown.append(record)
        finally:
            kind = self._options.acknowledge_type
            print_and_acknowledge(self._consumer, shown, kind, lambda: write_bytes(b"".join(out)))
