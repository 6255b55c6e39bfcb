"""`kafka-console-producer`: lines of the standard input become records."""

from __future__ import annotations

import re
import sys
import threading
from collections import deque
from collections.abc import Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, BinaryIO

from moldau.cli.kafka.line_reader import CLASS_NAME, Headers, LineReader, LineSplitter
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
    from moldau.client.errors import ClientError
    from moldau.client.produce.delivery import DeliveryFuture
    from moldau.client.producer import Producer
    from moldau.client.results import TopicPartition

READ_BYTES = 1 << 18
ERROR_LOGGER = "org.apache.kafka.clients.producer.internals.ErrorLoggingCallback"
SIZE_MARGIN = 64
# How many read pieces are kept until it is certain that their records were delivered, before that is looked at.
PIECES_MAX = 64

PARSER = OptionParser(
    [
        Option("topic", "REQUIRED: the topic.", VALUE, described_as="topic"),
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("sync", "Wait for each record before the next is sent."),
        Option(
            "compression-codec",
            "none, gzip, snappy, lz4 or zstd; gzip where no codec is named.",
            OPTIONAL_VALUE,
            described_as="compression-codec",
        ),
        Option("batch-size", "The size of a batch in bytes (batch.size).", VALUE, "Integer", "size", 16384),
        Option("message-send-max-retries", "How often to try again (retries).", VALUE, "Integer", default=3),
        Option("retry-backoff-ms", "The pause before another try (retry.backoff.ms).", VALUE, "Long", default=100),
        Option("timeout", "How long a batch waits for more records (linger.ms).", VALUE, "Long", "timeout_ms", 1000),
        Option("request-required-acks", "acks.", VALUE, described_as="request required acks", default="-1"),
        Option("request-timeout-ms", "request.timeout.ms.", VALUE, "Integer", "request timeout ms", 1500),
        Option("metadata-expiry-ms", "metadata.max.age.ms.", VALUE, "Long", "metadata expiration interval", 300000),
        Option("max-block-ms", "How long sending may wait (max.block.ms).", VALUE, "Long", "max block on send", 60000),
        Option("max-memory-bytes", "buffer.memory.", VALUE, "Long", "total memory in bytes", 33554432),
        Option(
            "max-partition-memory-bytes",
            "Deprecated: use --batch-size.",
            VALUE,
            "Integer",
            "memory in bytes per partition",
            16384,
        ),
        Option("line-reader", "The class that reads lines.", VALUE, described_as="reader_class", default=CLASS_NAME),
        Option("socket-buffer-size", "send.buffer.bytes.", VALUE, "Integer", "size", 102400),
        Option("property", "Deprecated: use --reader-property.", VALUE, described_as="prop"),
        Option(
            "reader-property",
            "How lines are read, as name=value: parse.key, key.separator, parse.headers, headers.delimiter,"
            " headers.separator, headers.key.separator, null.marker, ignore.error.",
            VALUE,
            described_as="prop",
        ),
        Option("reader-config", "A file with such properties.", VALUE, described_as="config file"),
        Option("producer-property", "Deprecated: use --command-property.", VALUE, described_as="producer_prop"),
        Option("command-property", "A setting of the producer, as name=value.", VALUE, described_as="producer_prop"),
        Option("producer.config", "Deprecated: use --command-config.", VALUE, described_as="config file"),
        Option("command-config", "A file with settings of the producer.", VALUE, described_as="config file"),
    ]
)

_IS_DONE = methodcaller("done")

# setting -> option, in the order in which they are merged
MERGED = (
    ("linger.ms", "timeout"),
    ("acks", "request-required-acks"),
    ("request.timeout.ms", "request-timeout-ms"),
    ("retries", "message-send-max-retries"),
    ("retry.backoff.ms", "retry-backoff-ms"),
    ("send.buffer.bytes", "socket-buffer-size"),
    ("buffer.memory", "max-memory-bytes"),
    ("batch.size", "batch-size"),
    ("batch.size", "max-partition-memory-bytes"),
    ("metadata.max.age.ms", "metadata-expiry-ms"),
    ("max.block.ms", "max-block-ms"),
)


def main(arguments: list[str], source: BinaryIO | None = None) -> int:
    try:
        options = _parse(arguments)
        reader = LineReader(_reader_properties(options))
        config = _producer_settings(options)
        sending = Sending(config, options.text("topic") or "", options.has("sync"))
    except JavaFailure as failure:
        return _end(failure)
    try:
        with sending:
            _send_input(sending, reader, sys.stdin.buffer if source is None else source)
    except JavaFailure as failure:
        return _end(failure)
    return 0


def _end(failure: JavaFailure) -> int:
    from moldau.cli.kafka.admin_tools import java_text

    sys.stdout.flush()
    options_wrong = failure.class_name.startswith("joptsimple.")
    sys.stderr.write(f"{failure.message if options_wrong else java_text(failure)}\n")
    return 1


def _parse(arguments: list[str]) -> Options:
    try:
        options = PARSER.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, str(failure.message), PARSER) from None
    check_help_or_version(options, "Send lines of the standard input to a topic.")
    check_required(options, "topic")
    for new, old in (
        ("command-config", "producer.config"),
        ("command-property", "producer-property"),
        ("reader-property", "property"),
    ):
        if options.has(new) and options.has(old):
            raise Exit(1, f"Options --{new} and --{old} cannot be specified together.", PARSER)
    for old, new in (
        ("producer-property", "command-property"),
        ("producer.config", "command-config"),
        ("property", "reader-property"),
    ):
        if options.has(old):
            print(f"Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead.")
    if options.has("max-partition-memory-bytes"):
        print(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0."
            " Use --batch-size instead."
        )
    _check_servers(options.text("bootstrap-server"))
    return options


def _check_servers(text: str | None) -> None:
    """The servers must be named, each with its port."""
    if not text:
        raise Exit(1, "Error while validating the bootstrap address\n", PARSER)
    if not all(re.fullmatch(r".*?\[?[0-9a-zA-Z\-%._:]*\]?:\d+", server) for server in text.split(",")):
        raise Exit(1, "Please provide valid host:port like host1:9091,host2:9092\n", PARSER)


def _reader_properties(options: Options) -> dict[str, str]:
    from moldau.cli.kafka.java_client import file_settings, read_pairs

    reader = options.text("line-reader")
    if reader is not None and reader.startswith("java."):
        sentence = "The reader must implement org.apache.kafka.tools.api.RecordReader interface"
        raise JavaFailure("java.lang.IllegalArgumentException", sentence)
    if reader != CLASS_NAME:
        raise JavaFailure("java.lang.ClassNotFoundException", reader)
    given = options.values("reader-property") or options.values("property")
    return {**file_settings(options, "reader-config"), **read_pairs(given)}


def _producer_settings(options: Options) -> dict[str, str]:
    from moldau.cli.kafka.java_client import file_settings, merge, read_pairs

    config = file_settings(options, "command-config", "producer.config")
    config.update(read_pairs(options.values("command-property") or options.values("producer-property")))
    config["bootstrap.servers"] = options.text("bootstrap-server") or ""
    config["compression.type"] = (
        (options.text("compression-codec") or "gzip") if options.has("compression-codec") else "none"
    )
    config.setdefault("client.id", "console-producer")
    for name, option in MERGED:
        merge(config, name, options, option)
    return config


class Sending:
    """The producer, and the records of which it is not known yet whether they arrived."""

    def __init__(self, config: dict[str, str], topic: str, sync: bool) -> None:
        from moldau.cli.kafka.java_client import new_producer

        self._topic = topic
        self._sync = sync
        self._block_ms = int(config["max.block.ms"])
        self._request_bytes_max = int(config.get("max.request.size", 1 << 20))
        self._topic_known = False
        # Told by the producer's thread: something failed.
        self._failed = False
        self._lock = threading.Lock()
        self._pieces: deque[_Piece] = deque()
        # What is too large is told here, by Java's rule; our own client reckons with a few bytes more.
        roomy = {**config, "max.request.size": str(self._request_bytes_max + SIZE_MARGIN)}
        self._producer: Producer = new_producer(roomy, on_batch=self._on_batch)

    def __enter__(self) -> Sending:
        return self

    def __exit__(self, *_: object) -> None:
        """What was read is delivered, also before an error in a line or Ctrl-C ends the tool."""
        try:
            self._producer.close()
        finally:
            self._report()

    def send_values(self, lines: list[bytes]) -> None:
        """Records that have a value and nothing else."""
        self._send_many(lines, None)

    def send_pairs(self, keys: list[bytes | None], values: list[bytes | None]) -> None:
        self._send_many(values, keys)

    def send(self, key: bytes | None, value: bytes | None, headers: Headers | None) -> None:
        """One record; where it cannot be sent at all the tool says so and goes on."""
        from moldau.client.errors import ClientError, error_for
        from moldau.protocol.errors import MESSAGE_TOO_LARGE

        try:
            if java_size(key, value, headers) > self._request_bytes_max:
                raise error_for(MESSAGE_TOO_LARGE)
            future = self._producer.send(self._topic, value, key, headers=headers)
            self._topic_known = True
            if self._sync:
                future.result()
                return
        except ClientError as error:
            if self._sync:
                failure = self._failure(error, key, value, headers)
                raise JavaFailure("java.util.concurrent.ExecutionException", failure.java_text(), failure) from None
            self._log(error, key, value, headers)
            return
        self._keep(_Piece([future], [key], [value]))

    def _send_many(self, values: Sequence[bytes | None], keys: Sequence[bytes | None] | None) -> None:
        """One by one until the topic is known, and where a record may be too large: each may fail on its own."""
        first = 0
        one_by_one = self._sync or self._has_large(values)
        while first < len(values) and (one_by_one or not self._topic_known):
            self.send(None if keys is None else keys[first], values[first], None)
            first += 1
        self._send_rest(values[first:] if first else values, keys[first:] if first and keys is not None else keys)

    def _send_rest(self, values: Sequence[bytes | None], keys: Sequence[bytes | None] | None) -> None:
        """All in one go; where the producer cannot take one of them it is told of, and the others go on."""
        from moldau.client.errors import ClientError

        while values:
            taken = iter(values)
            try:
                self._keep(_Piece(self._producer.send_many(self._topic, taken, keys), keys, values))
                return
            except ClientError as error:
                rest = len(list(taken))
                failed = len(values) - rest - 1
                self._log(error, None if keys is None else keys[failed], values[failed], None)
                values, keys = values[failed + 1 :], None if keys is None else keys[failed + 1 :]

    def _has_large(self, values: Sequence[bytes | None]) -> bool:
        return max((len(value) for value in values if value), default=0) > self._request_bytes_max // 2 - SIZE_MARGIN

    def _keep(self, piece: _Piece) -> None:
        with self._lock:
            self._pieces.append(piece)
            if len(self._pieces) > PIECES_MAX and all(map(_IS_DONE, self._pieces[0].futures)):
                self._report_piece(self._pieces.popleft())

    # Errors

    def _on_batch(self, partition: TopicPartition, count: int, error: ClientError | None) -> None:
        if error is not None:
            self._failed = True
            self._report()

    def _report(self) -> None:
        if self._failed:
            with self._lock:
                for piece in self._pieces:
                    self._report_piece(piece)

    def _report_piece(self, piece: _Piece) -> None:
        if not self._failed:
            return
        for index, future in enumerate(piece.futures):
            if index in piece.told or not future.done():
                continue
            error = future.exception(0)
            if error is not None:
                piece.told.add(index)
                key = None if piece.keys is None else piece.keys[index]
                self._log(error, key, piece.values[index], None)

    def _log(self, error: ClientError, key: bytes | None, value: bytes | None, headers: Headers | None) -> None:
        from moldau.cli.kafka.java_log import write_log

        sentence = f"Error when sending message to topic {self._topic} with key: {_size(key)}, value: {_size(value)}"
        write_log("ERROR", f"{sentence} with error:", ERROR_LOGGER, self._failure(error, key, value, headers))

    def _failure(
        self, error: ClientError, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> JavaFailure:
        from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE
        from moldau.cli.kafka.java_client import client_failure
        from moldau.client.errors import RequestTimeoutError
        from moldau.protocol.errors import MESSAGE_TOO_LARGE, UNKNOWN_TOPIC_OR_PARTITION

        if error.code == MESSAGE_TOO_LARGE and java_size(key, value, headers) > self._request_bytes_max:
            sentence = (
                f"The message is {java_size(key, value, headers)} bytes when serialized which is larger than"
                f" {self._request_bytes_max}, which is the value of the max.request.size configuration."
            )
            return JavaFailure(ERRORS_PACKAGE + "RecordTooLargeException", sentence)
        if error.code == UNKNOWN_TOPIC_OR_PARTITION or (
            isinstance(error, RequestTimeoutError) and error.message.startswith("Topic ")
        ):
            sentence = f"Topic {self._topic} not present in metadata after {self._block_ms} ms."
            return JavaFailure(ERRORS_PACKAGE + "TimeoutException", sentence)
        return client_failure(error, self._topic, self._block_ms)


class _Piece:
    """Records that were read together."""

    def __init__(
        self,
        futures: list[DeliveryFuture],
        keys: Sequence[bytes | None] | None,
        values: Sequence[bytes | None],
    ) -> None:
        self.futures = futures
        self.keys = keys
        self.values = values
        self.told: set[int] = set()


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"


def java_size(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """What Java's producer reckons with for one record in a batch of its own."""
    batch_and_record_overhead = 61 + 21
    size = batch_and_record_overhead + _sized(key) + _sized(value) + _varint(len(headers or []))
    return size + sum(_sized(name.encode()) + _sized(data) for name, data in headers or [])


def _sized(data: bytes | None) -> int:
    return 1 if data is None else _varint(len(data)) + len(data)


def _varint(value: int) -> int:
    return max(1, ((value << 1).bit_length() + 6) // 7)


def _send_input(sending: Sending, reader: LineReader, source: BinaryIO) -> None:
    """Reads to the end; what is there is sent, whether or not more comes soon."""
    read = getattr(source, "read1", source.read)
    prompt = source is getattr(sys.stdin, "buffer", None) and sys.stdin.isatty() and sys.stdout.isatty()
    splitter = LineSplitter()
    number = 0
    while True:
        if prompt:
            sys.stdout.write(">")
            sys.stdout.flush()
        data = read(READ_BYTES)
        lines = splitter.feed(data) if data else splitter.end()
        _send_lines(sending, reader, lines, number)
        number += len(lines)
        if not data:
            return


def _send_lines(sending: Sending, reader: LineReader, lines: list[bytes], number: int) -> None:
    if reader.plain:
        sending.send_values(lines)
        return
    if reader.parse_headers:
        for line in lines:
            number += 1
            sending.send(*reader.parse(line, number))
        return
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    try:
        for line in lines:
            number += 1
            key, value, _ = reader.parse(line, number)
            keys.append(key)
            values.append(value)
    finally:
        # Lines before one that cannot be read are sent.
        sending.send_pairs(keys, values)
