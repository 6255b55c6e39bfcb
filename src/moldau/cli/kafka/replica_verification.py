"""`kafka-replica-verification`: reads all replicas of partitions side by side and tells where they differ.

Every round reads the same offsets from every replica of each partition, compares batch by batch what all of them have,
and goes on behind it. How far the slowest replica is behind the high watermark is reported from time to time.
"""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.kafka.admin_tools import check_servers, java_failure, java_text
from moldau.cli.kafka.java_log import log_line
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
from moldau.client.results import TopicPartition

if TYPE_CHECKING:
    from moldau.client.connection.cluster import Cluster
    from moldau.protocol.messages.fetch_response import PartitionData

TOOL = "org.apache.kafka.tools.ReplicaVerificationTool"
DEPRECATED = "This tool is deprecated and may be removed in a future major release."
NO_TOPICS = "No topics found. [topics-include] if specified, is either filtering out all topics or there is no topic."
# A consumer that may read from any replica; brokers know it as the one that debugs.
DEBUGGING_ID = -2
# The last version that names topics instead of their ids.
FETCH_VERSION = 12
PAUSE_S = 0.1

PARSER = OptionParser(
    [
        Option("broker-list", "REQUIRED: the brokers to connect to.", VALUE, described_as="hostname:port,..."),
        Option("fetch-size", "Bytes of each fetch.", VALUE, "Integer", "bytes", default=1048576),
        Option("max-wait-ms", "How long a fetch may wait.", VALUE, "Integer", "ms", default=1000),
        Option("topics-include", "Which topics.", VALUE, described_as="Java regex (String)", default=".*"),
        Option("time", "Where to begin.", VALUE, "Long", "timestamp/-1(latest)/-2(earliest)", default=-1),
        Option("report-interval-ms", "How often to report.", VALUE, "Long", "ms", default=30000),
    ]
)


class Piece(NamedTuple):
    """A batch or a part of one as a replica has it."""

    offset: int
    next_offset: int
    checksum: int


def main(arguments: list[str]) -> int:
    sys.stderr.write(log_line("WARN", DEPRECATED, TOOL))
    try:
        options = PARSER.parse(arguments)
        check_help_or_version(options, "Check that all replicas of partitions have the same records.")
        check_required(options, "broker-list")
        servers = options.text("broker-list") or ""
        if not all(re.fullmatch(r".*?\[?([0-9a-zA-Z\-%._:]*)\]?:\d+", server) for server in servers.split(",")):
            raise Exit(1, "Please provide valid host:port like host1:9091,host2:9092\n", PARSER)
        return _connect(servers, options)
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"{failure.message}\n{java_text(failure)}\n\n")
        return 1


def _connect(servers: str, options: Options) -> int:
    from moldau.client.config import ADMIN, ClientConfig
    from moldau.client.connection.cluster import Cluster
    from moldau.client.errors import ClientError

    check_servers(servers, "bootstrap.servers", "Failed to create new KafkaAdminClient")
    cluster = Cluster(ClientConfig(ADMIN, {"bootstrap.servers": servers, "client.id": "ReplicaVerificationTool"}))
    try:
        return _run(cluster, options)
    except ClientError as error:
        raise java_failure(error, "listTopics") from None
    finally:
        cluster.close()


def _pattern(text: str) -> re.Pattern[str]:
    """Topics as consumers once named them: commas stand for "or"."""
    from moldau.cli.kafka.java_regex import compile_pattern

    cleaned = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return compile_pattern(cleaned)
    except JavaFailure:
        raise JavaFailure("java.lang.RuntimeException", f"{cleaned} is an invalid regex") from None


def _run(cluster: Cluster, options: Options) -> int:
    timeout_ms = 30_000
    cluster.refresh(None, timeout_ms)
    pattern = _pattern(options.text("topics-include") or "") if cluster.topics else re.compile("")
    replicas = {
        TopicPartition(topic.name, index): list(partition.replicas)
        for topic in cluster.topics.values()
        if pattern.fullmatch(topic.name)
        for index, partition in topic.partitions.items()
    }
    if not replicas:
        sys.stderr.write(log_line("ERROR", NO_TOPICS, TOOL))
        return 1
    starts = _starts(cluster, list(replicas), options.long("time") or 0, timeout_ms)
    sizes = (options.integer("fetch-size") or 0, options.integer("max-wait-ms") or 0)
    verifier = Verifier(cluster, replicas, starts, *sizes)
    print(f"{_now()}: verification process is started")
    sys.stdout.flush()
    interval_s = (options.long("report-interval-ms") or 0) / 1000
    reported = time.monotonic()
    while True:
        verifier.step()
        if time.monotonic() - reported > interval_s:
            print(f"{_now()}: {verifier.report()}")
            reported = time.monotonic()
        sys.stdout.flush()


def _now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f",{int(now * 1000) % 1000:03d}"


def _starts(
    cluster: Cluster, partitions: list[TopicPartition], timestamp: int, timeout_ms: int
) -> dict[TopicPartition, int]:
    from moldau.client.offsets import list_offsets

    outcomes = list_offsets(cluster, dict.fromkeys(partitions, timestamp), timeout_ms)
    return {partition: outcome.get().offset for partition, outcome in outcomes.items()}


class Verifier:
    """Where the comparison is in each partition."""

    def __init__(
        self,
        cluster: Cluster,
        replicas: dict[TopicPartition, list[int]],
        starts: dict[TopicPartition, int],
        fetch_bytes: int,
        wait_ms: int,
    ) -> None:
        self.cluster = cluster
        self.replicas = replicas
        self.offsets = starts
        self.fetch_bytes = fetch_bytes
        self.wait_ms = wait_ms
        self.max_lag = -1
        self.slowest: TopicPartition | None = None

    def step(self) -> None:
        """One round: everybody is asked, then all partitions are compared."""
        from moldau.client.errors import ClientError

        responses: dict[TopicPartition, dict[int, PartitionData]] = {}
        for broker in sorted({broker for brokers in self.replicas.values() for broker in brokers}):
            try:
                for partition, data in self._fetch(broker).items():
                    responses.setdefault(partition, {})[broker] = data
            except ClientError:
                continue  # that replica has nothing to compare in this round
        self.max_lag, self.slowest = -1, None
        moved = False
        for partition in self.replicas:
            before = self.offsets[partition]
            self._compare(partition, responses.get(partition, {}))
            moved = moved or self.offsets[partition] > before
        if not moved:
            time.sleep(PAUSE_S)

    def _fetch(self, broker: int) -> dict[TopicPartition, PartitionData]:
        from moldau.protocol.messages import fetch_request as request_messages
        from moldau.protocol.messages.fetch_response import FetchResponse

        topics: dict[str, list[request_messages.FetchPartition]] = {}
        for partition, brokers in self.replicas.items():
            if broker in brokers:
                row = request_messages.FetchPartition(
                    partition=partition.partition,
                    fetch_offset=self.offsets[partition],
                    partition_max_bytes=self.fetch_bytes,
                )
                topics.setdefault(partition.topic, []).append(row)
        request = request_messages.FetchRequest(
            replica_id=DEBUGGING_ID,
            max_wait_ms=self.wait_ms // len({each for row in self.replicas.values() for each in row}),
            min_bytes=1,
            topics=[request_messages.FetchTopic(topic=name, partitions=rows) for name, rows in topics.items()],
        )
        response = self.cluster.ask_broker(request, FetchResponse, self.wait_ms + 30_000, broker, FETCH_VERSION)
        return {
            TopicPartition(topic.topic, row.partition_index): row
            for topic in response.responses
            for row in topic.partitions
        }

    def _compare(self, partition: TopicPartition, responses: dict[int, PartitionData]) -> None:
        good = {broker: data for broker, data in responses.items() if data.error_code == 0}
        if len(good) < len(self.replicas[partition]):
            # Some replica cannot be asked at the moment; nothing can be said of all of them.
            self._note_lag(partition, max((data.high_watermark for data in good.values()), default=-1))
            return
        high_watermark = max(data.high_watermark for data in good.values())
        pieces = {broker: _pieces(data, self.offsets[partition]) for broker, data in good.items()}
        first, *others = sorted(pieces)
        for number, piece in enumerate(pieces[first]):
            if any(number >= len(pieces[broker]) for broker in others):
                break
            for broker in others:
                self._tell_difference(partition, first, piece, broker, pieces[broker][number])
            self.offsets[partition] = piece.next_offset
        self._note_lag(partition, high_watermark)

    def _tell_difference(self, partition: TopicPartition, first: int, mine: Piece, other: int, theirs: Piece) -> None:
        where = f"{_now()}: partition {partition}"
        if mine.offset != theirs.offset:
            mismatch = f"replica {first}'s offset {mine.offset} doesn't match replica {other}'s offset {theirs.offset}"
            print(f"{where}: {mismatch}")
            raise Exit(1)
        if mine.checksum != theirs.checksum:
            print(
                f"{where} has unmatched checksum at offset {mine.offset}; replica {first}'s checksum {mine.checksum}"
                f"; replica {other}'s checksum {theirs.checksum}"
            )

    def _note_lag(self, partition: TopicPartition, high_watermark: int) -> None:
        lag = high_watermark - self.offsets[partition]
        if lag > self.max_lag:
            self.max_lag, self.slowest = lag, partition

    def report(self) -> str:
        offset = self.offsets[self.slowest] if self.slowest is not None else -1
        which = f"{self.slowest} at offset {offset} among {len(self.replicas)} partitions"
        return f"max lag is {self.max_lag} for partition {which}"


def _pieces(data: PartitionData, offset: int) -> list[Piece]:
    from moldau.protocol.records_data import MemoryRecords
    from moldau.records.batch import split_batches

    if not isinstance(data.records, MemoryRecords):
        return []
    raw = data.records.to_bytes()
    return [
        Piece(int(header.base_offset), int(header.next_offset), int(header.crc))
        for header in split_batches(raw, 0, len(raw))
        if header.next_offset > offset
    ]
