"""A whole node on a simulated disk and clock, asked through the dispatcher as a connection would."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from moldau.api.dispatch import Dispatcher
from moldau.config.broker_config import BrokerConfig
from moldau.node.context import ClientContext
from moldau.node.node import Node
from moldau.node.reply import Reply
from moldau.protocol import api_keys
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.metadata_response import MetadataResponseTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import PartitionProduceResponse
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.records.clocks import WallClock
from moldau.server.storage_format import FormatOptions, format_storage
from moldau.sim.kernel.disk import SimDisk
from moldau.sim.node.program import joined

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
STEP_MS = 20


class Asked:
    """A request on its way: `reply.done` says whether it was answered."""

    def __init__(self, request: Message, version: int, reply: Reply) -> None:
        self.key = type(request).API_KEY
        self.version = version
        self.reply = reply

    @property
    def response(self) -> Any:
        assert self.reply.done, "not answered yet"
        assert self.reply.parts is not None, "answered with nothing"
        reader = Reader(joined(self.reply.parts))
        ResponseHeader.decode(reader, api_keys.response_header_version(self.key, self.version))
        return api_keys.response_class(self.key).decode(reader, self.version)


class NodeWorld:
    """One node; `log_dirs` are folders of its simulated disk."""

    def __init__(self, log_dirs: str = "/data", **settings: str) -> None:
        self.now_ms = 1_700_000_000_000
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.count = 0
        self.disk = SimDisk(1, self._schedule)
        self.values = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "log.dirs": log_dirs,
        }
        self.values.update({key.replace("_", "."): value for key, value in settings.items()})
        format_storage(self.values, CLUSTER, self.disk, FormatOptions(), self.now_ms)
        self.lives = 0
        self.wall = WallClock()
        self.clock_ms = 0
        """How far the wall clock is ahead."""
        self.fatal: list[str] = []

    def _schedule(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.count += 1
        self.events.append((self.now_ms + delay_ms, self.count, action))

    # Life

    def start(self) -> NodeWorld:
        self.lives += 1
        self.fatal.clear()
        self.context = ClientContext("PLAINTEXT", "127.0.0.1:5000")
        config = BrokerConfig(self.values, warn=False)
        self.node = Node(config, self.disk, random.Random(self.lives), bytes([self.lives]) * 16, wall=self.wall)
        self.node.on_fatal = self.fatal.append
        self.dispatcher = Dispatcher(self.node)
        self.node.start(self.now_ms)
        self.run(1000)
        return self

    def read_clocks(self) -> None:
        """What a process does at the beginning of every turn."""
        self.wall.note(self.now_ms, self.now_ms, self.now_ms + self.clock_ms)

    def run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.now_ms += STEP_MS
            self.read_clocks()
            for event in sorted(event for event in self.events if event[0] <= self.now_ms):
                self.events.remove(event)
                event[2]()
            self.node.poll(self.now_ms)

    def leave(self) -> bool:
        """Controlled shutdown; says whether the controller let the node go."""
        left: list[bool] = []
        self.node.begin_shutdown(self.now_ms, lambda: left.append(True))
        self.run(500)
        return bool(left)

    def stop(self) -> None:
        self.node.stop(self.now_ms)
        self.events.clear()

    # Asking

    def send(self, request: Message, version: int, client_id: str | None = "test") -> Asked:
        key = type(request).API_KEY
        writer = Writer()
        RequestHeader(key, version, 7, client_id).encode(writer, api_keys.request_header_version(key, version))
        request.encode(writer, version)
        frame = writer.to_bytes()
        return Asked(request, version, self.dispatcher.handle(self.context, frame, 0, len(frame), self.now_ms))

    def ask(self, request: Message, version: int) -> Any:
        asked = self.send(request, version)
        if not asked.reply.done:
            self.run(200)
        return asked.response

    def create(self, topic: str, partitions: int = 1, **configs: str) -> int:
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        wanted.configs = [CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
        response = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 5)
        return int(response.topics[0].error_code)

    def delete(self, topic: str) -> int:
        response = self.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1000), 6)
        return int(response.responses[0].error_code)

    def describe(self, topic: str) -> MetadataResponseTopic:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        described = self.ask(request, 12).topics[0]
        assert isinstance(described, MetadataResponseTopic)
        return described

    def produce(self, topic: str, index: int = 0, values: int = 1, acks: int = 1) -> PartitionProduceResponse:
        request = produce_request(topic, index, batch(self.now_ms, values), acks)
        answer = self.ask(request, 9).responses[0].partition_responses[0]
        assert isinstance(answer, PartitionProduceResponse)
        return answer


def batch(now_ms: int, values: int = 1, value: bytes = b"value") -> bytes:
    builder = BatchBuilder()
    for _ in range(values):
        builder.append(now_ms, None, value, [])
    return builder.build()


def produce_request(topic: str, index: int, data: bytes, acks: int = 1) -> ProduceRequest:
    partition = PartitionProduceData(index=index, records=MemoryRecords(data, 0, len(data)))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
    )
