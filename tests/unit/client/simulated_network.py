"""A cluster on a simulated clock whose network delays, loses, repeats and breaks, all from one seed.

Two brokers share the logs of one topic. Leadership moves; the wrong broker says NOT_LEADER_OR_FOLLOWER. Connections
break with requests and answers on their way; a request that was lost may have been carried out or not. Now and then an
answer arrives twice, or garbage does.
"""

from __future__ import annotations

import random

from moldau.client.connection.transport import Address, Network, address_text
from moldau.client.connection.wire import Call, Connection
from moldau.client.errors import NetworkError, RequestTimeoutError
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.messages.produce_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import read_header
from moldau.records.walk import read_records
from tests.unit.client.fake_network import TOPIC_ID, ScriptedBroker, metadata

ADDRESSES: dict[int, Address] = {1: ("broker-1", 9092), 2: ("broker-2", 9092)}


class PartitionLog:
    """Keeps sequences as a broker does: refuses gaps and what is too large, recognises the last five batches."""

    def __init__(self, leader: int, batch_bytes_max: int) -> None:
        self.leader = leader
        self.leader_epoch = 0
        self.batch_bytes_max = batch_bytes_max
        self.values: list[bytes] = []
        # (base offset, end offset, bytes with their final offsets)
        self.batches: list[tuple[int, int, bytes]] = []
        self.epoch = -1
        self.next_sequence = 0
        self.recent: list[tuple[int, int, int, int]] = []

    def produce(self, data: bytes) -> tuple[int, int]:
        """Error code and offset."""
        if len(data) > self.batch_bytes_max:
            return 10, -1
        header = read_header(data, 0, len(data))
        for epoch, sequence, count, offset in self.recent:
            if (epoch, sequence, count) == (header.producer_epoch, header.base_sequence, header.records_count):
                return 0, offset
        if header.producer_epoch < self.epoch:
            return 47, -1
        if header.producer_epoch > self.epoch:
            if header.base_sequence != 0 and self.epoch >= 0:
                return 45, -1
            self.epoch, self.next_sequence = header.producer_epoch, header.base_sequence
        if header.base_sequence != self.next_sequence:
            return 45, -1
        offset = len(self.values)
        self.values += [record.value or b"" for record in read_records(data, header)]
        self.batches.append((offset, len(self.values), offset.to_bytes(8, "big") + data[8:]))
        self.next_sequence += header.records_count
        self.recent = [*self.recent[-4:], (self.epoch, header.base_sequence, header.records_count, offset)]
        return 0, offset


class SimulatedCluster:
    """Two brokers, one topic t."""

    def __init__(self, chance: random.Random, partitions: int, batch_bytes_max: int = 1 << 20) -> None:
        self.chance = chance
        # How long a throttled client is to pause, and how many answers of a hundred say so.
        self.throttle_ms = 0
        self.throttles_percent = 0
        self.throttled = 0
        self.logs = [PartitionLog(1 + index % 2, batch_bytes_max) for index in range(partitions)]
        self.brokers = {node: ScriptedBroker() for node in ADDRESSES}
        for node, broker in self.brokers.items():
            broker.on(MetadataRequest, self._metadata)
            broker.on(
                InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=9, producer_epoch=0)
            )
            broker.on(ProduceRequest, lambda request, version, node=node: self._produce(request, node))
            broker.on(FetchRequest, lambda request, version, node=node: self._fetch(request, node))

    def move_a_leader(self) -> None:
        log = self.chance.choice(self.logs)
        log.leader = 3 - log.leader
        log.leader_epoch += 1

    def _metadata(self, request: Message, version: int) -> object:
        answer = metadata({"t": [log.leader for log in self.logs]}, ADDRESSES)(request, version)
        for topic in answer.topics:  # type: ignore[attr-defined]
            for row in topic.partitions:
                row.leader_epoch = self.logs[row.partition_index].leader_epoch
        return answer

    def _produce(self, request: Message, node: int) -> object:
        assert isinstance(request, ProduceRequest)
        rows = []
        hinted = self.chance.random() < 0.5
        for row in request.topic_data[0].partition_data:
            log = self.logs[row.index]
            assert isinstance(row.records, MemoryRecords)
            if log.leader != node:
                leader = LeaderIdAndEpoch(leader_id=log.leader, leader_epoch=log.leader_epoch) if hinted else None
                rows.append(PartitionProduceResponse(index=row.index, error_code=6, current_leader=leader))
                continue
            code, offset = log.produce(row.records.to_bytes())
            rows.append(PartitionProduceResponse(index=row.index, error_code=code, base_offset=offset))
        nodes = [NodeEndpoint(node_id=key, host=at[0], port=at[1]) for key, at in ADDRESSES.items()] if hinted else []
        topic = TopicProduceResponse(name="t", topic_id=TOPIC_ID, partition_responses=rows)
        return ProduceResponse(responses=[topic], node_endpoints=nodes, throttle_time_ms=self._throttle())

    def _throttle(self) -> int:
        if not self.throttles_percent or self.chance.randrange(100) >= self.throttles_percent:
            return 0
        self.throttled += 1
        return self.throttle_ms

    def _fetch(self, request: Message, node: int) -> object:
        """Outside of any session: session id 0. A client that is throttled gets nothing."""
        assert isinstance(request, FetchRequest)
        throttle_ms = self._throttle()
        if throttle_ms:
            return FetchResponse(throttle_time_ms=throttle_ms)
        rows = []
        for row in request.topics[0].partitions if request.topics else []:
            log = self.logs[row.partition]
            if log.leader != node:
                rows.append(PartitionData(partition_index=row.partition, error_code=6))
                continue
            data = b"".join([item[2] for item in log.batches if item[1] > row.fetch_offset][:3])
            rows.append(
                PartitionData(
                    partition_index=row.partition,
                    high_watermark=len(log.values),
                    last_stable_offset=len(log.values),
                    records=MemoryRecords(data, 0, len(data)),
                )
            )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=rows)])


class _Pipe:
    """One connection: requests and answers on their way, in order, with their times of arrival."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests: list[tuple[int, bytes]] = []
        self.answers: list[tuple[int, bytes]] = []
        # Until then the broker throttles the client, which is to send nothing.
        self.quiet_until_ms = 0


class SimulatedNetwork(Network):
    """Carries frames on the simulated clock; time passes only in poll()."""

    def __init__(self, cluster: SimulatedCluster, chance: random.Random, faults: float) -> None:
        self.cluster = cluster
        self.chance = chance
        self.faults = faults
        self.clock_ms = 1_000
        self._nodes = {address: node for node, address in ADDRESSES.items()}
        self._pipes: dict[Address, _Pipe] = {}

    def now_ms(self) -> int:
        return self.clock_ms

    def submit(self, address: Address, call: Call[Message]) -> None:
        pipe = self._pipes.get(address)
        if pipe is None or pipe.connection.closed:
            if self.chance.random() < self.faults:
                call.finish(None, NetworkError(f"No connection to {address_text(address)}: Connection refused."))
                return
            pipe = self._pipes[address] = _Pipe(Connection(address_text(address), "test", clock=self.now_ms))
            pipe.connection.start(self.clock_ms, 30_000)
        pipe.connection.submit(call, self.clock_ms)

    def in_flight_count(self, address: Address) -> int:
        pipe = self._pipes.get(address)
        return 0 if pipe is None else pipe.connection.in_flight_count

    def is_ready(self, address: Address) -> bool:
        pipe = self._pipes.get(address)
        ready = pipe is not None and pipe.connection.negotiated and not pipe.connection.closed
        return ready and self.throttled_ms(address) == 0

    def throttled_ms(self, address: Address) -> int:
        pipe = self._pipes.get(address)
        return 0 if pipe is None or pipe.connection.closed else pipe.connection.throttled_ms(self.clock_ms)

    def close(self) -> None:
        pass

    def poll(self, timeout_ms: int) -> None:
        for address, pipe in list(self._pipes.items()):
            self._collect(pipe)
            if self._maybe_break(address, pipe):
                timeout_ms = 0
        times = [items[0][0] for pipe in self._pipes.values() for items in (pipe.requests, pipe.answers) if items]
        times += [pipe.quiet_until_ms for pipe in self._pipes.values() if pipe.quiet_until_ms > self.clock_ms]
        self.clock_ms = max(self.clock_ms + 1, min([self.clock_ms + max(1, timeout_ms), *times]))
        for address, pipe in list(self._pipes.items()):
            self._carry(self._nodes[address], pipe)
            if pipe.connection.expired(self.clock_ms):
                pipe.connection.close(RequestTimeoutError("The broker did not respond in time."))
            else:
                pipe.connection.tick(self.clock_ms)

    def _later(self, items: list[tuple[int, bytes]]) -> int:
        """A time of arrival that does not overtake what left before."""
        return max([self.clock_ms + self.chance.randrange(1, 40), *(items[-1:] and [items[-1][0]])])

    def _collect(self, pipe: _Pipe) -> None:
        data = pipe.connection.take_outgoing()
        assert not data or self.clock_ms >= pipe.quiet_until_ms, "the client sends while it is throttled"
        while data:
            size = int.from_bytes(data[:4], "big") + 4
            pipe.requests.append((self._later(pipe.requests), data[:size]))
            data = data[size:]

    def _maybe_break(self, address: Address, pipe: _Pipe) -> bool:
        if not pipe.connection.negotiated or pipe.connection.closed or self.chance.random() >= self.faults:
            return False
        if self.chance.random() < 0.5:
            # The broker still carries out some of what was on its way; nobody hears of it.
            for _, request in pipe.requests[: self.chance.randrange(len(pipe.requests) + 1)]:
                self.cluster.brokers[self._nodes[address]].answer(request)
        del self._pipes[address]  # first: a call that fails may open the next connection to the same broker
        pipe.connection.close(NetworkError("The connection was lost."))
        return True

    def _carry(self, node: int, pipe: _Pipe) -> None:
        while pipe.requests and pipe.requests[0][0] <= self.clock_ms:
            answer = self.cluster.brokers[node].answer(pipe.requests.pop(0)[1])
            assert isinstance(answer, bytes)
            pipe.answers.append((self._later(pipe.answers), answer))
            if self.chance.random() < self.faults / 4 and pipe.connection.negotiated:
                again = answer if self.chance.random() < 0.5 else self.chance.randbytes(30)
                pipe.answers.append((pipe.answers[-1][0], again))
        while pipe.answers and pipe.answers[0][0] <= self.clock_ms and not pipe.connection.closed:
            self._collect(pipe)  # what was sent before the client heard of a throttle
            before_ms = pipe.connection.throttled_until_ms
            pipe.connection.receive(pipe.answers.pop(0)[1])
            if pipe.connection.throttled_until_ms > before_ms:
                pipe.quiet_until_ms = self.clock_ms + self.cluster.throttle_ms
