"""Measures share groups: records a second, CPU for each, how long a waiting member waits, many members, memory.

    python bench/share_groups.py [--moldau COMMAND] [--kafka DIRECTORY] [--rows rate,latency,crowd,memory] [--markdown]

Every row runs against Moldau and, where its jars are (tools/fetch_kafka.sh, or --kafka DIRECTORY),
against a real Apache Kafka in the same run, with rounds that alternate; figures are medians of the rounds. CPU is what
the broker's process has used, from /proc. A JVM is warmed up first. Members are plain sockets in one thread, the same
code for both brokers: each fetch accepts what the one before it brought.

rate     one group with 1 and with 20 members reads a filled topic of 1 and of 12 partitions to its end, every record
         accepted. Members of a topic with 12 partitions fetch from all of them.
latency  one member waits; a record is produced, and delivered: milliseconds from the one to the other, p50 and p99.
crowd    1,000 members on one partition, while somebody produces: records a second, and how many requests failed.
memory   how much the process grows by for each record in flight, when members hold as many as the broker allows:
         whole batches of them, and one by one.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import struct
import time
from typing import Any

from side_by_side import Broker, Table, Wire, alternating, create_topic, frame, fresh_brokers, parser_of

from moldau.protocol import api_keys, errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.headers import ResponseHeader
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from moldau.protocol.messages.share_fetch_response import ShareFetchResponse
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.primitives import Reader
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

PRODUCE_VERSION, FETCH_VERSION = 12, 2
GROUP_RESOURCE = 32
RECORD_BYTES = 100
BATCH_RECORDS = 100
LOCKS_MAX = 10_000
BY_BATCH, BY_RECORD = 0, 1
ACCEPT = 1
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.share.partition.max.record.locks": str(LOCKS_MAX),
    "group.share.max.partition.max.record.locks": str(LOCKS_MAX),
}

Held = dict[int, list[tuple[int, int]]]
"""Ranges of offsets by partition."""


def produce_frame(topic: str, partitions: list[int], records: int) -> bytes:
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    for number in range(records):
        builder.append(now_ms, None, bytes((number + n) % 251 for n in range(RECORD_BYTES)))
    batch = builder.build()
    rows = [PartitionProduceData(index, MemoryRecords(batch, 0, len(batch))) for index in partitions]
    return frame(ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=rows)]), PRODUCE_VERSION)


def fill(broker: Broker, topic: str, partitions: int, records: int) -> None:
    """As many records in each partition, in batches; a few requests in flight."""
    with broker.connect() as wire:
        data = produce_frame(topic, list(range(partitions)), BATCH_RECORDS)
        sent = got = 0
        wanted = max(1, records // BATCH_RECORDS)
        while got < wanted:
            while sent < wanted and sent - got < 5:
                wire.socket.sendall(data)
                sent += 1
            wire.answer()
            got += 1


def topic_id_of(wire: Wire, topic: str) -> bytes:
    while True:
        answer = wire.ask(MetadataRequest([MetadataRequestTopic(name=topic)]), 12)
        row = answer.topics[0]
        if row.error_code == errors.NONE and all(partition.leader_id >= 0 for partition in row.partitions):
            return bytes(row.topic_id)
        time.sleep(0.05)


def prepare(broker: Broker, group: str, topic: str, partitions: int) -> bytes:
    """A topic, and a group that begins with its first record and has a state for every partition."""
    with broker.connect() as wire:
        create_topic(wire, topic, partitions)
        topic_id = topic_id_of(wire, topic)
        earliest = AlterableConfig("share.auto.offset.reset", 0, "earliest")
        resource = AlterConfigsResource(GROUP_RESOURCE, group, [earliest])
        wire.ask(IncrementalAlterConfigsRequest([resource]), 1)
        member, epoch = "first-member-of-the-group", 0
        deadline = time.monotonic() + 120
        while True:
            wire.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)  # whoever asks first makes the topic
            answer = wire.ask(ShareGroupHeartbeatRequest(group, member, epoch, None, [topic]), 1)
            epoch = answer.member_epoch if answer.error_code == errors.NONE else 0
            rows = answer.assignment.topic_partitions if answer.assignment is not None else []
            if rows and len(rows[0].partitions) == partitions:
                return topic_id
            if time.monotonic() > deadline:
                raise RuntimeError(f"{broker.name} assigns nothing: {errors.error_name(answer.error_code)}")
            time.sleep(0.1)


class Member:
    """A member with one connection and one request in flight, which accepts what the one before it brought."""

    def __init__(
        self, port: int, group: str, member_id: str, topic_id: bytes, partitions: list[int], records_max: int = 500
    ) -> None:
        self.wire = Wire(port)
        self.socket: socket.socket = self.wire.socket
        self._group = group
        self._member_id = member_id
        self._topic_id = topic_id
        self._partitions = partitions
        self._records_max = records_max
        self._epoch = 0
        self._buffer = bytearray()
        self.held: Held = {}
        self.accepted = 0
        self.failures = 0
        self.mode = BY_BATCH
        self.keeps = False

    def send(self, max_wait_ms: int) -> None:
        said: Held = {} if self.keeps else self.held
        named = self._partitions if self._epoch == 0 else sorted(said)
        rows = []
        for index in named:
            batches = [AcknowledgementBatch(first, last, [ACCEPT]) for first, last in said.get(index, ())]
            rows.append(FetchPartition(index, batches))
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=52_428_800,
            max_records=self._records_max,
            batch_size=self._records_max,
            share_acquire_mode=self.mode,
            topics=[FetchTopic(self._topic_id, rows)] if rows else [],
        )
        self._epoch += 1
        self.socket.sendall(frame(request, FETCH_VERSION))

    def receive(self) -> int:
        """Takes what has come; how many records an answer brought, -1 if it is not whole yet."""
        data = self.wire.receive(1 << 20)
        self._buffer += data
        if len(self._buffer) < 4:
            return -1
        size = struct.unpack_from(">i", self._buffer, 0)[0]
        if len(self._buffer) < 4 + size:
            return -1
        answer = bytes(memoryview(self._buffer)[4 : 4 + size])
        del self._buffer[: 4 + size]
        return self.take(answer)

    def wait(self) -> int:
        return self.take(self.wire.answer())

    def take(self, data: bytes) -> int:
        reader = Reader(data)
        key = ShareFetchResponse.API_KEY
        ResponseHeader.decode(reader, api_keys.response_header_version(key, FETCH_VERSION))
        answer: Any = ShareFetchResponse.decode(reader, FETCH_VERSION)
        if answer.error_code != errors.NONE:
            raise RuntimeError(errors.error_name(answer.error_code))
        said, got = ({} if self.keeps else self.held), 0
        held: Held = {}
        for topic in answer.responses:
            for row in topic.partitions:
                ranges = said.pop(row.partition_index, [])
                if row.acknowledge_error_code == errors.NONE:
                    self.accepted += sum(last - first + 1 for first, last in ranges)
                if row.acknowledge_error_code or row.error_code:
                    self.failures += 1
                if row.acquired_records:
                    found = [(one.first_offset, one.last_offset) for one in row.acquired_records]
                    held[row.partition_index] = found
                    got += sum(last - first + 1 for first, last in found)
        self.failures += len(said)
        self.held = held
        return got

    def close(self) -> None:
        self.socket.close()


def drain(broker: Broker, members: list[Member], wanted: int, timeout_s: float = 300) -> tuple[float, float]:
    """Until so many records are accepted: records a second, and CPU microseconds of the broker for each."""
    chooser = selectors.DefaultSelector()
    for member in members:
        chooser.register(member.socket, selectors.EVENT_READ, member)
    cpu, start = broker.cpu_seconds(), time.perf_counter()
    for member in members:
        member.send(100)
    accepted = 0
    while accepted < wanted:
        for key, _ in chooser.select(timeout_s):
            member = key.data
            before = member.accepted
            if member.receive() >= 0:
                accepted += member.accepted - before
                member.send(100)
        if time.perf_counter() > start + timeout_s:
            raise RuntimeError(f"{broker.name}: {accepted} of {wanted} records within {timeout_s:.0f} s")
    took = time.perf_counter() - start
    used = broker.cpu_seconds() - cpu
    chooser.close()
    return wanted / took, used / wanted * 1e6


class Names:
    """A new topic and a new group for each round."""

    def __init__(self) -> None:
        self._number = 0

    def next(self) -> tuple[str, str]:
        self._number += 1
        return f"share-bench-{self._number}", f"group-{self._number}"


def members_of(broker: Broker, group: str, topic_id: bytes, partitions: int, count: int) -> list[Member]:
    everything = list(range(partitions))
    return [Member(broker.port, group, f"member-{number:04d}", topic_id, everything) for number in range(count)]


def run_rate(brokers: list[Broker], table: Table, rounds: int, records: int, names: Names) -> None:
    for broker in brokers:
        broker.start()
    for partitions in (1, 12):
        for count in (1, 20):

            def work(broker: Broker, p: int = partitions, c: int = count) -> tuple[float, ...]:
                topic, group = names.next()
                topic_id = prepare(broker, group, topic, p)
                each = max(BATCH_RECORDS, records // p // BATCH_RECORDS * BATCH_RECORDS)
                fill(broker, topic, p, each)
                members = members_of(broker, group, topic_id, p, c)
                found = drain(broker, members, each * p)
                for member in members:
                    member.close()
                return found

            for broker in brokers:
                work(broker)  # what is not warm yet
            rate, cpu = alternating(brokers, rounds, work)
            what = f"{count} member{'s' * (count > 1)}, {partitions} partition{'s' * (partitions > 1)}"
            table.add(f"{what}: records/s", rate, True, "{:,.0f}")
            table.add(f"{what}: CPU µs per record", cpu, False, "{:.2f}")
    for broker in brokers:
        broker.stop()


def run_latency(brokers: list[Broker], table: Table, rounds: int, records: int, names: Names) -> None:
    def work(broker: Broker) -> tuple[float, ...]:
        topic, group = names.next()
        topic_id = prepare(broker, group, topic, 1)
        data = produce_frame(topic, [0], 1)
        member = members_of(broker, group, topic_id, 1, 1)[0]
        times = []
        with broker.connect() as wire:
            for _ in range(records):
                member.send(10_000)
                time.sleep(0.002)  # so that it waits
                start = time.perf_counter()
                wire.socket.sendall(data)
                while member.wait() <= 0:
                    member.send(10_000)
                times.append((time.perf_counter() - start) * 1000)
                wire.answer()
        member.close()
        times.sort()
        return statistics.median(times), times[min(len(times) - 1, len(times) * 99 // 100)]

    for broker in brokers:
        broker.start()
        work(broker)
    p50, p99 = alternating(brokers, rounds, work)
    table.add("from produce to delivery, a waiting member: p50 ms", p50, False, "{:.2f}")
    table.add("from produce to delivery, a waiting member: p99 ms", p99, False, "{:.2f}")
    for broker in brokers:
        broker.stop()


def run_crowd(brokers: list[Broker], table: Table, count: int, records: int, names: Names) -> None:
    failures: list[float] = []

    def work(broker: Broker) -> tuple[float, ...]:
        topic, group = names.next()
        topic_id = prepare(broker, group, topic, 1)
        members = members_of(broker, group, topic_id, 1, count)
        fill(broker, topic, 1, records)
        found = drain(broker, members, max(BATCH_RECORDS, records // BATCH_RECORDS * BATCH_RECORDS))
        failed = sum(member.failures for member in members)
        for member in members:
            member.close()
        return (*found, failed)

    for broker in brokers:
        broker.start()
    rate, cpu, failures = alternating(brokers, 1, work)
    table.add(f"{count:,} members on one partition: records/s", rate, True, "{:,.0f}")
    table.add(f"{count:,} members on one partition: CPU µs per record", cpu, False, "{:.2f}")
    table.add(f"{count:,} members on one partition: failures", failures, False, "{:,.0f}")
    for broker in brokers:
        broker.stop()


def run_memory(brokers: list[Broker], table: Table, in_flight: int, names: Names) -> None:
    def work(broker: Broker, mode: int) -> float:
        topic, group = names.next()
        topic_id = prepare(broker, group, topic, 1)
        fill(broker, topic, 1, in_flight)
        records_max = BATCH_RECORDS if mode == BY_BATCH else 1
        member = Member(broker.port, group, "holder", topic_id, [0], records_max)
        member.mode, member.keeps = mode, True
        before, held = broker.memory_mb(), 0
        while held < in_flight:
            member.send(1000)
            got = member.wait()
            if got <= 0:
                break
            held += got
        grown = (broker.memory_mb() - before) * (1 << 20) / max(1, held)
        member.close()
        return grown

    for broker in brokers:
        broker.start()
        work(broker, BY_BATCH)
    for mode, what in ((BY_BATCH, "whole batches"), (BY_RECORD, "one by one")):
        grown = [work(broker, mode) for broker in brokers]
        table.add(f"memory for each record in flight, {what}: bytes", grown, False, "{:,.0f}")
    for broker in brokers:
        broker.stop()


def main() -> None:
    parser = parser_of(__doc__, ("rate", "latency", "crowd", "memory"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=300_000, help="how many are read in a round")
    parser.add_argument("--waits", type=int, default=1000, help="how many deliveries are timed in a round")
    parser.add_argument("--members", type=int, default=1000, help="how many make a crowd")
    parser.add_argument("--in-flight", type=int, default=LOCKS_MAX, help="how many records are held for their memory")
    arguments = parser.parse_args()
    table, names = Table(arguments), Names()
    for row in arguments.rows:
        with fresh_brokers(arguments, SETTINGS) as brokers:
            if row == "rate":
                run_rate(brokers, table, arguments.rounds, arguments.records, names)
            elif row == "latency":
                run_latency(brokers, table, arguments.rounds, arguments.waits, names)
            elif row == "crowd":
                run_crowd(brokers, table, arguments.members, arguments.records, names)
            else:
                run_memory(brokers, table, min(arguments.in_flight, LOCKS_MAX), names)


if __name__ == "__main__":
    main()
