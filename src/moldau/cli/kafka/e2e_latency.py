"""`kafka-e2e-latency`: how long a record takes from its producer to a consumer."""

from __future__ import annotations

import random
import sys
import time
from typing import TYPE_CHECKING

from moldau.cli.kafka.java_text import decode_utf8, double_text, fixed_text
from moldau.cli.kafka.options import (
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
    from moldau.client.producer import Producer
    from moldau.client.record import ConsumerRecord

POLL_MS = 60_000
NANOS_A_MS = 1_000_000
REPORT_EVERY = 1000
# Without end, as far as a test is concerned.
YEAR_MS = 31_536_000_000
POSITIONAL = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config")
NULL_HEADER = -1

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="bootstrap-server"),
        Option("topic", "REQUIRED: the topic.", VALUE, described_as="topic-name"),
        Option("num-records", "REQUIRED: how many records to send.", VALUE, "Integer", "count"),
        Option("producer-acks", "REQUIRED: 1 or all.", VALUE, described_as="producer-acks"),
        Option("record-size", "REQUIRED: the size of a value.", VALUE, "Integer", "bytes"),
        Option("record-key-size", "The size of a key.", VALUE, "Integer", "bytes", 0),
        Option("record-header-key-size", "The size of a header's name.", VALUE, "Integer", "bytes", 0),
        Option("record-header-size", "The size of a header's value; -1: null.", VALUE, "Integer", "bytes", 0),
        Option("num-headers", "How many headers.", VALUE, "Integer", "count", 0),
        Option("command-config", "A file with settings of the clients.", VALUE, described_as="config-file"),
    ]
)


def main(arguments: list[str]) -> int:
    from moldau.cli.kafka.admin_tools import java_text
    from moldau.cli.kafka.java_client import client_failure
    from moldau.client.errors import ClientError

    try:
        _run(_parse(_named(arguments)))
    except (JavaFailure, ClientError) as error:
        failure = error if isinstance(error, JavaFailure) else client_failure(error)
        sys.stdout.flush()
        terse = failure.class_name == "TerseException"
        sys.stderr.write(f"{failure.message}\n" + ("" if terse else f"{java_text(failure)}\n\n"))
        return 1
    return 0


def _named(arguments: list[str]) -> list[str]:
    """Arguments without names, as older versions had them, with their names."""
    if not arguments or any(word.startswith(tuple(f"--{name}" for name in POSITIONAL)) for word in arguments):
        return arguments
    if len(arguments) not in (5, 6):
        sentence = (
            f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(arguments)}."
            " Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config"
        )
        raise JavaFailure("TerseException", sentence)
    names = ", ".join(f"--{name}" for name in POSITIONAL)
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0."
        f" Please use named arguments instead: {names}"
    )
    pairs = zip(POSITIONAL, arguments, strict=False)
    return [word for name, value in pairs for word in (f"--{name}", value)]


def _parse(arguments: list[str]) -> Options:
    try:
        options = PARSER.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, str(failure.message), PARSER) from None
    check_help_or_version(options, "Measure how long a record takes from its producer to a consumer.")
    check_required(options, "bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
    if options.text("producer-acks") not in ("1", "all"):
        raise Exit(
            1,
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement."
            " Please use '1' or 'all'.",
            PARSER,
        )
    if (options.integer("num-records") or 0) <= 0:
        raise Exit(1, "Value for --num-records must be a positive integer.", PARSER)
    for name in ("record-size", "record-key-size", "record-header-key-size"):
        if (options.integer(name) or 0) < 0:
            raise Exit(1, f"Value for --{name} must be a non-negative integer.", PARSER)
    if (options.integer("record-header-size") or 0) < NULL_HEADER:
        sentence = "Value for --record-header-size must be a non-negative integer or -1 for null header value."
        raise Exit(1, sentence, PARSER)
    if (options.integer("num-headers") or 0) < 0:
        raise Exit(1, "Value for --num-headers must be a non-negative integer.", PARSER)
    return options


def _run(options: Options) -> None:
    from moldau.cli.kafka.java_client import file_settings, new_producer
    from moldau.cli.kafka.reading import Reading

    config = file_settings(options, "command-config")
    config["bootstrap.servers"] = options.text("bootstrap-server") or ""
    topic = options.text("topic") or ""
    group = f"test-group-{time.time_ns() // NANOS_A_MS}"
    reader = {**config, "group.id": group, "auto.offset.reset": "latest", "fetch.max.wait.ms": "0"}
    writer = {**config, "linger.ms": "0", "max.block.ms": str(YEAR_MS), "acks": options.text("producer-acks") or ""}
    reading = Reading(reader, topic, None, False)
    try:
        _create_if_missing(config, topic)
        with new_producer(writer) as producer:
            _prepare(reading, topic)
            Measure(options, topic, producer, reading).run()
    finally:
        reading.close()


def _create_if_missing(config: dict[str, str], topic: str) -> None:
    from moldau.cli.kafka.admin_tools import ask, get_all, known_settings
    from moldau.client.admin import Admin, NewTopic

    with ask("", lambda: Admin(config=known_settings(config))) as admin:
        if any(found.name == topic for found in ask("listTopics", admin.list_topics)):
            return
        print(f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
        sys.stdout.flush()
        try:
            get_all("createTopics", lambda: admin.create_topics([NewTopic(topic, 1, 1)]))
        except JavaFailure as failure:
            print(f"Creation of topic {topic} failed")
            sentence = f"java.util.concurrent.ExecutionException: {failure.class_name}: {failure.message}"
            raise JavaFailure("java.lang.RuntimeException", sentence) from None


def _prepare(reading: Reading, topic: str) -> None:
    """The consumer waits at the end of each partition."""
    consumer = reading.consumer
    partitions = consumer.partitions_for(topic)
    reading.read_only(partitions)
    consumer.seek_to_end(partitions)
    for partition in partitions:
        consumer.position(partition)


class Measure:
    """Sends records one at a time and waits for each."""

    def __init__(self, options: Options, topic: str, producer: Producer, reading: Reading) -> None:
        self._topic = topic
        self._producer = producer
        self._reading = reading
        self._count = options.integer("num-records") or 0
        self._value_size = options.integer("record-size") or 0
        self._key_size = options.integer("record-key-size") or 0
        self._header_name_size = options.integer("record-header-key-size") or 0
        self._header_size = options.integer("record-header-size") or 0
        self._headers_count = options.integer("num-headers") or 0
        self._random = random.Random(0)

    def run(self) -> None:
        latencies = []
        for number in range(self._count):
            key = self._letters(self._key_size) if self._key_size else None
            value = self._letters(self._value_size)
            headers = [self._header() for _ in range(self._headers_count)]
            begin = time.perf_counter_ns()
            self._producer.send(self._topic, value, key, headers=headers or None).result()
            records = self._reading.poll(POLL_MS, 500)
            elapsed = time.perf_counter_ns() - begin
            _check(records, key, value, headers)
            if number % REPORT_EVERY == 0:
                print(f"{number}\t{double_text(elapsed / 1000.0 / 1000.0)}")
                sys.stdout.flush()
            latencies.append(elapsed)
        self._print(latencies)

    def _letters(self, size: int) -> bytes:
        return bytes((self._random.randrange(26) + 65,)) * size

    def _header(self) -> tuple[str, bytes | None]:
        name = self._letters(self._header_name_size).decode()
        return name, None if self._header_size == NULL_HEADER else self._letters(self._header_size)

    def _print(self, latencies: list[int]) -> None:
        average = sum(latencies) / len(latencies) / 1000.0 / 1000.0
        whole = sorted(latency // NANOS_A_MS for latency in latencies)
        shown = [whole[int(len(whole) * share)] for share in (0.5, 0.99, 0.999)]
        print(f"Avg latency: {fixed_text(average, 4)} ms")
        print("Percentiles: 50th = {}, 99th = {}, 99.9th = {}".format(*shown))


def _check(
    records: list[ConsumerRecord], key: bytes | None, value: bytes, headers: list[tuple[str, bytes | None]]
) -> None:
    """What arrived is what was sent, and nothing else."""
    sentence = None
    if not records:
        sentence = f"poll() timed out before finding a result (timeout:[{POLL_MS}ms])"
    elif (records[0].value or b"") != value:
        read = decode_utf8(records[0].value or b"")
        sentence = f"The message value read [{read}] did not match the message value sent [{value.decode()}]"
    elif key is None and records[0].key is not None:
        sentence = f"Expected null message key but received [{decode_utf8(records[0].key)}]"
    elif key is not None and records[0].key is None:
        sentence = "Expected message key but received null"
    elif key is not None and records[0].key != key:
        read = decode_utf8(records[0].key)
        sentence = f"The message key read [{read}] did not match the message key sent [{key.decode()}]"
    elif headers and not records[0].headers:
        sentence = "Expected message headers but received none"
    elif len(headers) != len(records[0].headers):
        sentence = "Header count mismatch between sent and received messages"
    elif headers != records[0].headers:
        sentence = _header_difference(headers, records[0].headers)
    elif len(records) != 1:
        sentence = f"Only one result was expected during this test. We found [{len(records)}]"
    if sentence is not None:
        raise JavaFailure("java.lang.RuntimeException", sentence)


def _header_difference(sent: list[tuple[str, bytes | None]], read: list[tuple[str, bytes | None]]) -> str:
    one, other = next((a, b) for a, b in zip(read, sent, strict=True) if a != b)
    shown = [f"{name}:{'null' if data is None else decode_utf8(data)}" for name, data in (one, other)]
    return f"The message header read [{shown[0]}] did not match the message header sent [{shown[1]}]"
