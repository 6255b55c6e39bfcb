"""Consumers of one group, their network and their coordinator on one simulated clock; all chance from one seed.

Two brokers share one topic; one of them coordinates the group, and that moves. Connections break with requests and
answers on their way; what was on its way may have been carried out or not. A request that waits, such as JoinGroup,
holds up those behind it on its connection, as with a real broker.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from moldau.client.connection.transport import Address, Network, address_text
from moldau.client.connection.wire import Call, Connection
from moldau.client.consumer import Consumer
from moldau.client.errors import NetworkError, RequestTimeoutError
from moldau.client.group.listener import RebalanceListener
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol import errors as codes
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.join_group_response import JoinGroupResponse
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.messages.offset_commit_request import OffsetCommitRequest
from moldau.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequest
from moldau.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from moldau.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from moldau.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.messages.sync_group_response import SyncGroupResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from tests.unit.client.fake_network import TOPIC_ID, ScriptedBroker, frame, split_request
from tests.unit.client.model_groups import ClassicGroup, ConsumerGroupModel

ADDRESSES: dict[int, Address] = {1: ("broker-1", 9092), 2: ("broker-2", 9092)}
NODES = {address: node for node, address in ADDRESSES.items()}

_ELSEWHERE: dict[type[Message], Callable[[], Message]] = {
    JoinGroupRequest: lambda: JoinGroupResponse(error_code=codes.NOT_COORDINATOR),
    SyncGroupRequest: lambda: SyncGroupResponse(error_code=codes.NOT_COORDINATOR),
    HeartbeatRequest: lambda: HeartbeatResponse(error_code=codes.NOT_COORDINATOR),
    LeaveGroupRequest: lambda: LeaveGroupResponse(error_code=codes.NOT_COORDINATOR),
    ConsumerGroupHeartbeatRequest: lambda: ConsumerGroupHeartbeatResponse(error_code=codes.NOT_COORDINATOR),
}


class GroupCluster:
    """The topic t, the group g, and what was committed."""

    def __init__(self, partitions: int) -> None:
        self.counts = [0] * partitions
        self.coordinator = 1
        self.classic = ClassicGroup()
        self.consumer = ConsumerGroupModel(TOPIC_ID, partitions)
        self.committed: dict[int, int] = {}
        # Highest versions, by api key, that are lower than those of the protocol.
        self.highest: dict[int, int] = {}
        # Answers that are given instead of the model's, once each; SILENCE is one.
        self.scripted: dict[type[Message], list[object]] = {}
        self.seen: list[tuple[int, Message]] = []

    def handle(self, node: int, request: Message, reply: Callable[[Message], None], now_ms: int) -> None:
        self.classic.tick(now_ms)
        self.consumer.tick(now_ms)
        scripted = self.scripted.get(type(request))
        if scripted:
            answer = scripted.pop(0)
            if isinstance(answer, Message):
                reply(answer)
            return
        elsewhere = _ELSEWHERE.get(type(request))
        if elsewhere is not None and node != self.coordinator:
            reply(elsewhere())
        elif isinstance(request, JoinGroupRequest):
            self.classic.join(request, reply, now_ms)
        elif isinstance(request, SyncGroupRequest):
            self.classic.sync(request, reply, now_ms)
        elif isinstance(request, HeartbeatRequest):
            self.classic.heartbeat(request, reply, now_ms)
        elif isinstance(request, LeaveGroupRequest):
            self.classic.leave(request, reply, now_ms)
        elif isinstance(request, ConsumerGroupHeartbeatRequest):
            self.consumer.heartbeat(request, reply, now_ms)
        else:
            reply(self._answer(node, request, now_ms))

    def _answer(self, node: int, request: Message, now_ms: int) -> Message:
        if isinstance(request, ApiVersionsRequest):
            return ScriptedBroker(self.highest).versions()
        if isinstance(request, MetadataRequest):
            return self._metadata()
        if isinstance(request, FindCoordinatorRequest):
            host, port = ADDRESSES[self.coordinator]
            if request.key:
                return FindCoordinatorResponse(node_id=self.coordinator, host=host, port=port)
            return FindCoordinatorResponse(
                coordinators=[Coordinator(key="g", node_id=self.coordinator, host=host, port=port)]
            )
        if isinstance(request, OffsetCommitRequest):
            return self._commit(node, request, now_ms)
        if isinstance(request, OffsetFetchRequest):
            return self._fetch_offsets(node, request)
        if isinstance(request, ListOffsetsRequest):
            rows = [
                ListOffsetsPartitionResponse(partition_index=row.partition_index, offset=0)
                for row in request.topics[0].partitions
            ]
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=rows)])
        if isinstance(request, OffsetForLeaderEpochRequest):
            # Asked only about epochs that this world never reaches: whoever asks knows too little.
            late = EpochEndOffset(partition=0, error_code=codes.FENCED_LEADER_EPOCH)
            return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic="t", partitions=[late])])
        assert isinstance(request, FetchRequest)
        return self._fetch(request)

    def _metadata(self) -> MetadataResponse:
        brokers = [MetadataResponseBroker(node_id=key, host=at[0], port=at[1]) for key, at in ADDRESSES.items()]
        rows = [
            MetadataResponsePartition(partition_index=number, leader_id=1 + number % 2, leader_epoch=0)
            for number in range(len(self.counts))
        ]
        topic = MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=rows)
        return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=[topic])

    def _commit(self, node: int, request: OffsetCommitRequest, now_ms: int) -> Message:
        group = self.classic if request.member_id.startswith("member-") else self.consumer
        epoch = request.generation_id_or_member_epoch
        code = codes.NOT_COORDINATOR
        if node == self.coordinator and not request.member_id:
            code = codes.NONE
        elif node == self.coordinator:
            code = group.commit_code(request.member_id, epoch, now_ms)
        rows = []
        for row in request.topics[0].partitions:
            rows.append(OffsetCommitResponsePartition(partition_index=row.partition_index, error_code=code))
            if code == codes.NONE:
                before = self.committed.get(row.partition_index, 0)
                assert row.committed_offset >= before, f"partition {row.partition_index} went back from {before}"
                self.committed[row.partition_index] = row.committed_offset
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", topic_id=TOPIC_ID, partitions=rows)])

    def _fetch_offsets(self, node: int, request: OffsetFetchRequest) -> Message:
        if request.topics:
            old = [
                OffsetFetchResponsePartition(partition_index=number, committed_offset=self.committed.get(number, -1))
                for number in request.topics[0].partition_indexes
            ]
            return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=old)])
        asked = request.groups[0].topics
        assert asked is not None
        group = OffsetFetchResponseGroup(group_id="g")
        if node != self.coordinator:
            group.error_code = codes.NOT_COORDINATOR
            return OffsetFetchResponse(groups=[group])
        rows = [
            OffsetFetchResponsePartitions(partition_index=number, committed_offset=self.committed.get(number, -1))
            for number in asked[0].partition_indexes
        ]
        group.topics = [OffsetFetchResponseTopics(name="t", topic_id=TOPIC_ID, partitions=rows)]
        return OffsetFetchResponse(groups=[group])

    def _fetch(self, request: FetchRequest) -> Message:
        rows = []
        for row in request.topics[0].partitions if request.topics else []:
            end = self.counts[row.partition]
            data = b""
            if row.fetch_offset < end:
                builder = BatchBuilder(row.fetch_offset)
                for offset in range(row.fetch_offset, min(end, row.fetch_offset + 5)):
                    builder.append(0, None, b"%d" % offset, [])
                data = builder.build()
            rows.append(
                PartitionData(
                    partition_index=row.partition,
                    high_watermark=end,
                    last_stable_offset=end,
                    records=MemoryRecords(data, 0, len(data)),
                )
            )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=rows)])


class _Pipe:
    """One connection: requests and answers on their way, in order, with their times of arrival."""

    def __init__(self, connection: Connection, node: int) -> None:
        self.connection = connection
        self.node = node
        self.requests: list[tuple[int, bytes]] = []
        self.answers: list[tuple[int, bytes]] = []
        self.waiting = False
        self.broken = False


class GroupWorld:
    """The clock, the cluster, and the networks of all consumers."""

    def __init__(self, seed: int, partitions: int = 4) -> None:
        self.chance = random.Random(seed)
        self.cluster = GroupCluster(partitions)
        self.clock_ms = 1_000
        self.faults = 0.0
        self.networks: list[WorldNetwork] = []
        self.members: list[SimulatedMember] = []

    def advance(self, duration_ms: int) -> None:
        """Time passes; what has arrived by then is dealt with, for everybody."""
        self.clock_ms += max(1, duration_ms)
        self.cluster.classic.tick(self.clock_ms)
        self.cluster.consumer.tick(self.clock_ms)
        for network in self.networks:
            network.carry()

    def next_arrival_ms(self) -> int | None:
        times = [
            items[0][0]
            for network in self.networks
            for pipe in network.pipes.values()
            for items in (pipe.requests if not pipe.waiting else [], pipe.answers)
            if items
        ]
        return min(times, default=None)


class WorldNetwork(Network):
    """One consumer's connections; time passes only in poll()."""

    def __init__(self, world: GroupWorld) -> None:
        self.world = world
        self.pipes: dict[Address, _Pipe] = {}
        self.closed = False
        world.networks.append(self)

    def now_ms(self) -> int:
        return self.world.clock_ms

    def submit(self, address: Address, call: Call[Any]) -> None:
        pipe = self.pipes.get(address)
        if pipe is None or pipe.connection.closed:
            if self.closed or self.world.chance.random() < self.world.faults:
                call.finish(None, NetworkError(f"No connection to {address_text(address)}: Connection refused."))
                return
            connection = Connection(address_text(address), "test")
            pipe = self.pipes[address] = _Pipe(connection, NODES[address[0], address[1]])
            connection.start(self.world.clock_ms, 30_000)
        pipe.connection.submit(call, self.world.clock_ms)

    def in_flight_count(self, address: Address) -> int:
        pipe = self.pipes.get(address)
        return 0 if pipe is None else pipe.connection.in_flight_count

    def is_ready(self, address: Address) -> bool:
        return address in self.pipes

    def close(self) -> None:
        self.closed = True
        self.pipes.clear()

    def poll(self, timeout_ms: int) -> None:
        world = self.world
        for address, pipe in list(self.pipes.items()):
            self._collect(pipe)
            self._maybe_break(address, pipe)
        arrival = world.next_arrival_ms()
        until = world.clock_ms + max(1, timeout_ms)
        world.advance((until if arrival is None else min(until, arrival)) - world.clock_ms)

    def _later(self, items: list[tuple[int, bytes]]) -> int:
        """A time of arrival that does not overtake what left before."""
        before_ms = items[-1][0] if items else 0
        return max(self.world.clock_ms + self.world.chance.randrange(1, 20), before_ms)

    def _collect(self, pipe: _Pipe) -> None:
        data = pipe.connection.take_outgoing()
        while data:
            size = int.from_bytes(data[:4], "big") + 4
            pipe.requests.append((self._later(pipe.requests), data[:size]))
            data = data[size:]

    def _maybe_break(self, address: Address, pipe: _Pipe) -> None:
        if not pipe.connection.negotiated or self.world.chance.random() >= self.world.faults:
            return
        if self.world.chance.random() < 0.5:
            # The broker still carries out some of what was on its way; nobody hears of it.
            while pipe.requests and not pipe.waiting and self.world.chance.random() < 0.7:
                self._handle(pipe, pipe.requests.pop(0)[1])
        pipe.broken = True
        pipe.connection.close(NetworkError("The connection was lost."))
        self.pipes.pop(address, None)

    def carry(self) -> None:
        now_ms = self.world.clock_ms
        for pipe in list(self.pipes.values()):
            while pipe.requests and not pipe.waiting and pipe.requests[0][0] <= now_ms:
                self._handle(pipe, pipe.requests.pop(0)[1])
            while pipe.answers and pipe.answers[0][0] <= now_ms and not pipe.connection.closed:
                pipe.connection.receive(pipe.answers.pop(0)[1])
            if pipe.connection.expired(now_ms):
                pipe.broken = True
                pipe.connection.close(RequestTimeoutError("The broker did not respond in time."))

    def _handle(self, pipe: _Pipe, data: bytes) -> None:
        header, request = split_request(data)
        pipe.waiting = True
        self.world.cluster.seen.append((header.request_api_version, request))

        def reply(answer: Message) -> None:
            pipe.waiting = False
            if not pipe.broken:
                written = frame(answer, header.request_api_key, header.request_api_version, header.correlation_id)
                pipe.answers.append((self._later(pipe.answers), written))

        self.world.cluster.handle(pipe.node, request, reply, self.world.clock_ms)


class SimulatedMember(RebalanceListener):
    """One consumer, what it owns by what its listener is told, and what it read."""

    def __init__(self, world: GroupWorld, **config: object) -> None:
        self.world = world
        self.owned: set[int] = set()
        self.read: set[tuple[int, int]] = set()
        self.consumer = Consumer(
            "broker-1:9092,broker-2:9092",
            config=wired(
                {"fetch.max.wait.ms": 50, "auto.commit.interval.ms": 300, **config}, network=WorldNetwork(world)
            ),
            group_id="g",
            auto_offset_reset="earliest",
        )
        self.consumer.subscribe(["t"], listener=self)
        world.members.append(self)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        for item in partitions:
            for other in self.world.members:
                if other is not self and item.partition in other.owned:
                    assert not other.is_current(), f"{item} has two owners"
            self.owned.add(item.partition)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        assert {item.partition for item in partitions} <= self.owned
        self.owned -= {item.partition for item in partitions}

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.owned -= {item.partition for item in partitions}

    def is_current(self) -> bool:
        """Whether the coordinator takes this member's word: if not, others may own what it still believes to own."""
        metadata = self.consumer.group_metadata()
        groups = (self.world.cluster.classic, self.world.cluster.consumer)
        return any(group.is_current(metadata.member_id, metadata.generation_id) for group in groups)

    def poll(self, timeout_ms: int) -> None:
        for record in self.consumer.poll(timeout_ms):
            assert record.partition in self.owned
            self.read.add((record.partition, record.offset))

    def beat(self) -> None:
        """What the heartbeat thread does while the user is away."""
        self.consumer._cluster.network.poll(0)

    def close(self) -> None:
        self.consumer.close(2_000)
        self.world.members.remove(self)
        assert not self.owned
