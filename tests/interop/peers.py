"""One side of a differential test: a node, asked through raw requests, whatever software it runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from tests.interop.nodes import Node
from tests.interop.wire import CLOSED, Wire
from tests.pace import patience, patience_ms

SECONDS = patience(20)
PRODUCE_VERSION = 12
FETCH_VERSION = 12


class Peer:
    """Asks one node; opens a new connection where the node has closed the last one."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.wires: dict[int, Wire] = {}

    def close(self) -> None:
        for wire in self.wires.values():
            wire.socket.close()
        self.wires.clear()

    def connect(self, controller: bool = False) -> Wire:
        """A connection of the caller's own."""
        return Wire(self.node.host, self.node.controller_port if controller else self.node.port)

    def ask(self, request: Message, version: int, client_id: str | None = "wire", controller: bool = False) -> Any:
        port = self.node.controller_port if controller else self.node.port
        if port not in self.wires:
            self.wires[port] = Wire(self.node.host, port)
        answer = self.wires[port].ask(request, version, client_id)
        if answer == CLOSED:
            self.wires.pop(port).socket.close()
        return answer

    def metadata(self, topic: str, version: int = 12) -> Any:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        return self.ask(request, version).topics[0]

    def topic_id(self, topic: str) -> bytes:
        found: bytes = self.metadata(topic).topic_id
        return found

    def wait_for_topic(self, topic: str, partitions: int = 1) -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            described = self.metadata(topic)
            if described.error_code == 0 and len(described.partitions) == partitions:
                if self.serves(topic, partitions):
                    return
            time.sleep(0.02)
        raise AssertionError(f"{self.node.name}: {topic} has no leaders after {SECONDS} s")

    def serves(self, topic: str, partitions: int) -> bool:
        """Whether the leaders answer: metadata may know them a moment before they know themselves."""
        rows = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
        answer = self.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(topic, rows)]), 7)
        return all(row.error_code == 0 for row in answer.topics[0].partitions)

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        """Creates a topic and waits until it can be used; `_` in the name of a config stands for a dot."""
        entries = [CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()]
        new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=entries)
        answer = self.ask(CreateTopicsRequest(topics=[new], timeout_ms=patience_ms(10_000)), 7)
        assert answer.topics[0].error_code == 0, answer
        self.wait_for_topic(topic, partitions)

    def produce(
        self,
        topic: str,
        records: bytes | None,
        *,
        partition: int = 0,
        acks: int = -1,
        version: int = PRODUCE_VERSION,
        transactional_id: str | None = None,
    ) -> Any:
        """The answer for one partition, or CLOSED."""
        data = PartitionProduceData(index=partition, records=None if records is None else MemoryRecords(records))
        if version >= 13:
            of_topic = TopicProduceData(topic_id=self.topic_id(topic), partition_data=[data])
        else:
            of_topic = TopicProduceData(name=topic, partition_data=[data])
        request = ProduceRequest(
            transactional_id=transactional_id, acks=acks, timeout_ms=patience_ms(10_000), topic_data=[of_topic]
        )
        answer = self.ask(request, version)
        return answer if answer == CLOSED else answer.responses[0].partition_responses[0]

    def fetch_request(
        self, topic: str, offsets: Iterable[tuple[int, int]], version: int, **fields: Any
    ) -> FetchRequest:
        """A fetch of (partition, offset) pairs of one topic; further fields of the partition go by `partition_…`."""
        of_partition = {
            name.removeprefix("partition_"): value for name, value in fields.items() if name.startswith("partition_")
        }
        of_request = {name: value for name, value in fields.items() if not name.startswith("partition_")}
        partitions = [
            FetchPartition(
                partition=partition,
                fetch_offset=offset,
                partition_max_bytes=of_partition.get("max_bytes", 1 << 20),
                **{name: value for name, value in of_partition.items() if name != "max_bytes"},
            )
            for partition, offset in offsets
        ]
        if version >= 13:
            of_topic = FetchTopic(topic_id=self.topic_id(topic), partitions=partitions)
        else:
            of_topic = FetchTopic(topic=topic, partitions=partitions)
        return FetchRequest(**{"max_wait_ms": 100, "min_bytes": 1, "topics": [of_topic], **of_request})

    def fetch(self, topic: str, offset: int, *, partition: int = 0, version: int = FETCH_VERSION, **fields: Any) -> Any:
        """The answer for one partition, or CLOSED."""
        answer = self.ask(self.fetch_request(topic, [(partition, offset)], version, **fields), version)
        return answer if answer == CLOSED else answer.responses[0].partitions[0]
