"""`kafka-verifiable-producer`: sends numbers that count up and tells of each what became of it, as JSON."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.java_text import divide
from moldau.cli.kafka.subcommands import CommandParser

if TYPE_CHECKING:
    from moldau.client.errors import ClientError
    from moldau.client.results import RecordMetadata


def _parser() -> CommandParser:
    parser = CommandParser(prog="verifiable-producer", description="Sends numbers and tells of each as JSON.")
    add = parser.add_argument
    add("--topic", metavar="TOPIC", required=True, help="The topic.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--bootstrap-server", metavar="HOST1:PORT1[,HOST2:PORT2[...]]", help="The brokers.")
    add("--max-messages", metavar="MAX-MESSAGES", type=int, default=-1, help="How many; -1: without end.")
    add("--throughput", metavar="THROUGHPUT", type=int, default=-1, help="At most so many a second; -1: no limit.")
    add("--acks", metavar="ACKS", type=int, default=-1, choices=(0, 1, -1), help="acks.")
    add("--producer.config", metavar="CONFIG-FILE", help="Deprecated: use --command-config.")
    add("--message-create-time", metavar="CREATE-TIME", type="long", default=-1, help="The time of the first record.")
    add("--value-prefix", metavar="VALUE-PREFIX", type=int, help="A number before each value, and a dot.")
    add(
        "--repeating-keys", metavar="REPEATING-KEYS", type=int, help="Keys count from 0 to below this, again and again."
    )
    add("--command-config", metavar="CONFIG-FILE", help="A file with settings of the producer.")
    return parser


def main(arguments: list[str]) -> int:
    from moldau.cli.kafka.admin_tools import read_config
    from moldau.cli.kafka.java_client import new_producer
    from moldau.cli.kafka.options import JavaFailure

    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    options = parser.parse_args(arguments)
    config = {"bootstrap.servers": options.bootstrap_server, "acks": str(options.acks), "retries": "0"}
    if options.producer_config is not None and options.command_config is not None:
        parser.error("Options --producer.config and --command-config are mutually exclusive.")
    if options.producer_config is not None:
        print(
            "Option --producer.config has been deprecated and will be removed in a future version."
            " Use --command-config instead."
        )
    path = options.command_config or options.producer_config
    try:
        config |= read_config(path) if path is not None else {}
    except JavaFailure as failure:
        parser.error(str(failure.message))
    return Run(options, new_producer(config)).run()


class Run:
    """Sends until there is enough or somebody ends it."""

    def __init__(self, options: Any, producer: Any) -> None:
        self._options = options
        self._producer = producer
        self._lock = threading.Lock()
        self._sent = self._acked = 0
        self._started_ms = now_ms()
        self._create_ms: int | None = None if options.message_create_time == -1 else options.message_create_time

    def run(self) -> int:
        from moldau.cli.kafka.producer_perf import throttle

        started = now_ms()
        self._tell(name="startup_complete")
        wait = throttle(self._options.throughput)
        try:
            number = 0
            while self._options.max_messages < 0 or number < self._options.max_messages:
                wait(number)
                self._send(number)
                number += 1
        except KeyboardInterrupt:
            pass
        finally:
            self._producer.close()
            self._tell(name="shutdown_complete")
            rate = divide(1000.0 * self._acked, now_ms() - started)
            self._tell(
                name="tool_data",
                sent=self._sent,
                acked=self._acked,
                target_throughput=self._options.throughput,
                avg_throughput=rate,
            )
        return 0

    def _send(self, number: int) -> None:
        from moldau.client.errors import ClientError

        repeating = self._options.repeating_keys
        key = None if repeating is None else str(number % repeating if repeating > 0 else number)
        prefix = self._options.value_prefix
        value = str(number) if prefix is None else f"{prefix}.{number}"
        self._sent += 1

        def on_delivery(found: RecordMetadata | None, error: ClientError | None) -> None:
            self._on_delivery(key, value, found, error)

        timestamp = self._create_ms
        if timestamp is not None:
            self._create_ms = timestamp + now_ms() - self._started_ms
        try:
            self._producer.send(
                self._options.topic,
                value.encode(),
                None if key is None else key.encode(),
                timestamp_ms=timestamp,
                on_delivery=on_delivery,
            )
        except ClientError as error:
            self._on_delivery(key, value, None, error)

    def _on_delivery(
        self, key: str | None, value: str, found: RecordMetadata | None, error: ClientError | None
    ) -> None:
        if found is not None:
            self._acked += 1
            where = {"offset": found.offset, "topic": found.topic, "partition": found.partition}
            self._tell(name="producer_send_success", key=key, value=value, **where)
            return
        from moldau.cli.kafka.java_client import client_failure

        assert error is not None
        failure = client_failure(error, self._options.topic)
        about = {"exception": f"class {failure.class_name}", "message": failure.message}
        self._tell(name="producer_send_error", key=key, value=value, topic=self._options.topic, **about)

    def _tell(self, **fields: object) -> None:
        line = json.dumps({"timestamp": now_ms(), **fields}, separators=(",", ":"), ensure_ascii=False)
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
