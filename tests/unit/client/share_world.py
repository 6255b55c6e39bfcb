"""Scripted brokers of a share group: a coordinator that assigns, and leaders that keep share sessions and locks.

The leaders check what a real one checks of a session (epochs, acknowledgements in the first request) and keep every
request they saw, so that a test can look at what a consumer said and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.client.connection.transport import Address
from moldau.client.share_consumer import ShareConsumer
from moldau.client.wiring import wired
from moldau.protocol import errors as codes
from moldau.protocol.messages import share_acknowledge_response as acknowledged
from moldau.protocol.messages import share_fetch_response as fetched
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from moldau.protocol.messages.share_fetch_request import ShareFetchRequest
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from tests.unit.client.fake_network import TOPIC_ID, FakeNetwork, ScriptedBroker, metadata

ADDRESSES: dict[int, Address] = {1: ("broker-1", 9092), 2: ("broker-2", 9092)}
LOCK_MS = 30_000

Types = dict[int, int]


def batch(base_offset: int, values: Iterable[bytes], control: bool = False) -> bytes:
    builder = BatchBuilder(base_offset=base_offset)
    for value in values:
        builder.append(1000, b"\x00\x00\x00\x01" if control else None, value, [])
    return builder.build(
        producer_id=7 if control else -1,
        producer_epoch=0 if control else -1,
        base_sequence=-1,
        transactional=control,
        control=control,
    )


def values_of(first: int, last: int) -> bytes:
    """One batch whose records say their offsets."""
    return batch(first, [b"%d" % number for number in range(first, last + 1)])


def types_of(rows: Any) -> Types:
    """A type for each offset, as a broker reads ranges."""
    found: Types = {}
    for row in rows:
        count = row.last_offset - row.first_offset + 1
        types = row.acknowledge_types * count if len(row.acknowledge_types) == 1 else row.acknowledge_types
        assert len(types) == count
        found.update(zip(range(row.first_offset, row.last_offset + 1), types, strict=True))
    return found


def empty(partition: int) -> fetched.PartitionData:
    return fetched.PartitionData(partition_index=partition, records=MemoryRecords(b"", 0, 0))


class Leader:
    """One broker's share sessions; deliveries are what the test puts in."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.broker = ScriptedBroker()
        self.epoch: int | None = None
        # Partition -> rows to deliver, one a fetch: bytes and (first, last, count) of what is locked.
        self.deliveries: dict[int, list[tuple[bytes, list[tuple[int, int, int]]]]] = {}
        self.session: set[int] = set()
        # (partition, types) as they came, and the error codes to answer with, by turns.
        self.acknowledged: list[tuple[int, Types]] = []
        self.refusals: list[int] = []
        self.fetch_errors: list[int] = []
        # A whole answer in place of the next one: an error code, DISCONNECT or SILENCE.
        self.next_answers: list[object] = []
        self.fetches: list[ShareFetchRequest] = []
        self.acknowledges: list[ShareAcknowledgeRequest] = []
        self.broker.on(ShareFetchRequest, self.on_fetch)
        self.broker.on(ShareAcknowledgeRequest, self.on_acknowledge)

    def deliver(self, data: bytes, *ranges: tuple[int, int, int], partition: int = 0) -> None:
        self.deliveries.setdefault(partition, []).append((data, list(ranges)))

    def _check_session(self, epoch: int, acknowledges: bool, may_open: bool) -> int:
        if epoch == 0 and may_open:
            assert not acknowledges, "the first request of a session acknowledges something"
            self.epoch, self.session = 0, set()
        elif self.epoch is None:
            return codes.SHARE_SESSION_NOT_FOUND
        elif epoch == -1:
            self.epoch = None
            return 0
        elif epoch != self.epoch:
            return codes.INVALID_SHARE_SESSION_EPOCH
        assert self.epoch is not None
        self.epoch += 1
        return 0

    def _next_answer(self) -> object:
        found = self.next_answers.pop(0) if self.next_answers else 0
        if not isinstance(found, int):
            self.epoch = None  # the connection is gone, and the session with it
        return found

    def on_fetch(self, request: Message, version: int) -> object:
        assert isinstance(request, ShareFetchRequest)
        self.fetches.append(request)
        planned = self._next_answer()
        if not isinstance(planned, int):
            return planned
        has_batches = any(row.acknowledgement_batches for topic in request.topics for row in topic.partitions)
        code = planned or self._check_session(request.share_session_epoch, has_batches, True)
        if code:
            if planned in (codes.SHARE_SESSION_NOT_FOUND,):
                self.epoch = None
            return fetched.ShareFetchResponse(error_code=code)
        rows: dict[int, fetched.PartitionData] = {}
        for topic in request.topics:
            for row in topic.partitions:
                self.session.add(row.partition_index)
                if row.acknowledgement_batches:
                    data = rows[row.partition_index] = empty(row.partition_index)
                    data.acknowledge_error_code = self._acknowledge(row)
        for forgotten in request.forgotten_topics_data:
            self.session.difference_update(forgotten.partitions)
        for partition in sorted(self.session if request.max_records else ()):
            if self.fetch_errors:
                rows.setdefault(partition, empty(partition)).error_code = self.fetch_errors.pop(0)
            elif self.deliveries.get(partition):
                data_bytes, ranges = self.deliveries[partition].pop(0)
                found = rows.setdefault(partition, empty(partition))
                found.records = MemoryRecords(data_bytes, 0, len(data_bytes))
                found.acquired_records = [
                    fetched.AcquiredRecords(first_offset=a, last_offset=b, delivery_count=c) for a, b, c in ranges
                ]
        if not rows:
            self.world.network.clock_ms += request.max_wait_ms
        topics = [fetched.ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(rows.values()))]
        return fetched.ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=topics if rows else [])

    def _acknowledge(self, row: Any) -> int:
        self.acknowledged.append((row.partition_index, types_of(row.acknowledgement_batches)))
        return self.refusals.pop(0) if self.refusals else 0

    def on_acknowledge(self, request: Message, version: int) -> object:
        assert isinstance(request, ShareAcknowledgeRequest)
        self.acknowledges.append(request)
        planned = self._next_answer()
        if not isinstance(planned, int):
            return planned
        code = planned or self._check_session(request.share_session_epoch, True, False)
        if code:
            return acknowledged.ShareAcknowledgeResponse(error_code=code)
        rows = [
            acknowledged.PartitionData(partition_index=row.partition_index, error_code=self._acknowledge(row))
            for topic in request.topics
            for row in topic.partitions
        ]
        topics = [acknowledged.ShareAcknowledgeTopicResponse(topic_id=TOPIC_ID, partitions=rows)]
        return acknowledged.ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=LOCK_MS, responses=topics if rows else []
        )


class World:
    """A topic t, its leaders, a coordinator on broker 1, and consumers on a clock that jumps."""

    def __init__(self, leaders: list[int] | None = None, real_time: bool = False) -> None:
        self.leaders_of = leaders or [1]
        self.topics: dict[str, int | list[int]] = {"t": self.leaders_of}
        self.leaders = {node_id: Leader(self, node_id) for node_id in ADDRESSES}
        self.network = FakeNetwork({at: self.leaders[node].broker for node, at in ADDRESSES.items()}, real_time)
        self.heartbeats: list[ShareGroupHeartbeatRequest] = []
        self.heartbeat_errors: list[int] = []
        self.member_epoch = 0
        self.assigned: list[int] | None = None
        for leader in self.leaders.values():
            leader.broker.on(MetadataRequest, self._on_metadata)
            leader.broker.on(FindCoordinatorRequest, self._on_find)
            leader.broker.on(ShareGroupHeartbeatRequest, self._on_heartbeat)

    @property
    def leader(self) -> Leader:
        return self.leaders[1]

    def consumer(self, **more: Any) -> ShareConsumer:
        made = ShareConsumer("broker-1:9092", group_id="g", config=wired(network=self.network), **more)
        made.subscribe(["t"])
        return made

    def explicit(self, **more: Any) -> ShareConsumer:
        return self.consumer(share_acknowledgement_mode="explicit", **more)

    def _on_metadata(self, request: Message, version: int) -> object:
        return metadata(self.topics, ADDRESSES)(request, version)

    def _on_find(self, request: Message, version: int) -> object:
        host, port = ADDRESSES[1]
        return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=1, host=host, port=port)])

    def _on_heartbeat(self, request: Message, version: int) -> object:
        assert isinstance(request, ShareGroupHeartbeatRequest)
        self.heartbeats.append(request)
        if self.heartbeat_errors and (code := self.heartbeat_errors.pop(0)):
            return ShareGroupHeartbeatResponse(error_code=code, error_message=None)
        if request.member_epoch == -1:
            return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=-1)
        self.member_epoch += request.member_epoch == 0
        partitions = list(range(len(self.leaders_of))) if self.assigned is None else self.assigned
        assignment = Assignment(topic_partitions=[TopicPartitions(topic_id=TOPIC_ID, partitions=partitions)])
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.member_epoch,
            heartbeat_interval_ms=5_000,
            assignment=assignment,
        )


def poll_until(consumer: ShareConsumer, done: Callable[[], bool]) -> list[Any]:
    """Polls until the condition holds; what came meanwhile."""
    records: list[Any] = []
    for _ in range(50):
        if done():
            return records
        records += consumer.poll(1000)
    raise AssertionError("the condition did not come true")
