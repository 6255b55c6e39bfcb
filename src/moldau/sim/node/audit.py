"""Reads everything a node has, through its own API, and holds it against the model.

The audit talks to the node without a network in between and while the workload is paused, so what it sees is one
moment. It can end early when the host dies under it (reading may rebuild an index, and that may meet a planned crash).
"""

from __future__ import annotations

import random

from moldau.protocol import errors
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_configs_response import DescribeConfigsResponse
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.sim.kernel.host import Host, Slot
from moldau.sim.kernel.world import Violation
from moldau.sim.models.partition import (
    LogView,
    PartitionModel,
    ReadRecord,
    check_timestamp_lookup_finds_the_first_record_not_older,
    first_of_largest_timestamp,
)
from moldau.sim.models.topics import ClusterModel, TopicModel
from moldau.sim.node.client import decode_response, encode_request
from moldau.sim.node.consumer import read_batches

EARLIEST, LATEST, LARGEST_TIMESTAMP = -2, -1, -3
TOPIC_RESOURCE = 2
RESPONSE_MS_MAX = 10_000


class HostDied(Exception):
    """The host died while it was asked."""


class NotReady(Exception):
    """The node has no response yet: a partition without a leader, say."""


class DirectSlot(Slot):
    """A response that goes nowhere but back to the auditor."""

    def __init__(self) -> None:
        self.done = False
        self.payload = None
        self.close = False

    def respond(self, payload: bytes | None, *, close: bool = False, mute_ms: int = 0) -> None:
        self.done = True
        self.payload = payload
        self.close = close


class Auditor:
    def __init__(self, host: Host, model: ClusterModel, rng: random.Random) -> None:
        self.host = host
        self.world = host.world
        self.model = model
        self.rng = rng
        self._life = host.lives
        self._connection: object = None
        self._correlation_id = 0

    def ask(self, request: Message, version: int) -> Message:
        program = self.host.program
        if program is None or self.host.lives != self._life:
            raise HostDied
        if self._connection is None:
            self._connection = program.open_connection("audit")
        self._correlation_id += 1
        frame = encode_request(request, version, self._correlation_id, "audit")
        slot = DirectSlot()
        self.host.turn(lambda: program.handle(self._connection, frame, self.world.now_ms, slot))
        if not slot.done:
            self.world.run_until(lambda: slot.done or self.host.program is not program, RESPONSE_MS_MAX)
        if self.host.program is not program:
            raise HostDied
        if slot.payload is None:
            raise Violation(f"every request is answered: {request!r}")
        return decode_response(slot.payload, request.API_KEY, version, self._correlation_id)

    # The whole audit

    def check_topics(self) -> None:
        """Topics first: this also settles what an administrator is uncertain about."""
        response = self.ask(MetadataRequest(None, False), 12)
        assert isinstance(response, MetadataResponse)
        found: dict[str, tuple[bytes, int]] = {}
        for topic in response.topics:
            if topic.error_code != errors.NONE or topic.name is None:
                raise NotReady(f"{topic.name}: {errors.error_name(topic.error_code)}")
            for partition in topic.partitions:
                if partition.error_code != errors.NONE:
                    raise NotReady(f"{topic.name}-{partition.partition_index}")
            # Internal topics come by themselves.
            if not topic.is_internal:
                found[topic.name] = (topic.topic_id, len(topic.partitions))
        self.model.check_topics(found)

    def check_configs(self, topic: TopicModel) -> None:
        resource = DescribeConfigsResource(TOPIC_RESOURCE, topic.name, sorted(topic.configs))
        response = self.ask(DescribeConfigsRequest([resource]), 4)
        assert isinstance(response, DescribeConfigsResponse)
        described = {entry.name: entry.value for entry in response.results[0].configs}
        for key, allowed in sorted(topic.configs.items()):
            if key.startswith("internal.") and key not in described:
                continue
            if described.get(key) not in allowed and None not in allowed:
                raise Violation(f"a config keeps its value: {topic.name} {key}={described.get(key)}, not {allowed}")
            if None not in allowed:
                topic.configs[key] = {described.get(key)}

    def check_partition(self, topic: TopicModel, index: int, *, power_lost: bool) -> None:
        model = topic.partitions[index]
        start, _ = self.list_offset(topic.name, index, EARLIEST)
        end, _ = self.list_offset(topic.name, index, LATEST)
        view = LogView(start, end, self.read_all(topic, index, start, end))
        if power_lost:
            model.on_power_loss(end)
        model.check(view)
        self.check_lookups(topic, index, view)

    def read_all(self, topic: TopicModel, index: int, start: int, end: int) -> list[ReadRecord]:
        name = topic.partitions[index].name
        records: list[ReadRecord] = []
        offset = start
        while offset < end:
            new = [record for record in self.fetch(topic, index, offset, 1 << 20) if record.offset >= offset]
            if not new:
                raise Violation(f"what lies below the high watermark can be read: {name} offset {offset} of {end}")
            records.extend(new)
            offset = new[-1].offset + 1
        return records

    def check_lookups(self, topic: TopicModel, index: int, view: LogView) -> None:
        """Offsets and timestamps picked at random are found where the full read has them."""
        model = topic.partitions[index]
        for record in self.rng.sample(view.records, min(4, len(view.records))):
            found = self.fetch(topic, index, record.offset, 1)
            if not found or not found[0].offset <= record.offset <= found[-1].offset:
                raise Violation(f"an offset finds its batch: {model.name} {record.offset}")
            for timestamp in (record.timestamp, record.timestamp + 1):
                self.check_timestamp(model, topic.name, index, view, timestamp)
        largest = self.list_offset(topic.name, index, LARGEST_TIMESTAMP)
        expected = first_of_largest_timestamp(view)
        if view.start > 0 and largest == (-1, -1):
            return  # the largest timestamp of a segment may be that of a record below the log start
        if largest != (expected if expected is not None else (-1, -1)):
            raise Violation(f"the largest timestamp finds its first record: {model.name} {largest}, not {expected}")

    def check_timestamp(self, model: PartitionModel, name: str, index: int, view: LogView, timestamp: int) -> None:
        offset, found_timestamp = self.list_offset(name, index, timestamp)
        found = None if offset < 0 else (offset, found_timestamp)
        check_timestamp_lookup_finds_the_first_record_not_older(model, view, timestamp, found)

    # Single requests

    def list_offset(self, name: str, index: int, timestamp: int) -> tuple[int, int]:
        wanted = ListOffsetsTopic(name, [ListOffsetsPartition(index, -1, timestamp)])
        response = self.ask(ListOffsetsRequest(-1, 0, [wanted]), 8)
        assert isinstance(response, ListOffsetsResponse)
        result = response.topics[0].partitions[0]
        if result.error_code != errors.NONE:
            raise NotReady(f"offsets of {name}-{index}: {errors.error_name(result.error_code)}")
        return result.offset, result.timestamp

    def fetch(self, topic: TopicModel, index: int, offset: int, max_bytes: int) -> list[ReadRecord]:
        partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_epoch=-1,
            topics=[FetchTopic(topic_id=topic.topic_id, partitions=[partition])],
        )
        response = self.ask(request, 13)
        assert isinstance(response, FetchResponse)
        result = response.responses[0].partitions[0]
        if result.error_code != errors.NONE:
            raise Violation(
                f"what is there can be fetched: {topic.partitions[index].name} offset {offset}:"
                f" {errors.error_name(result.error_code)}"
            )
        data = result.records.to_bytes() if isinstance(result.records, MemoryRecords) else b""
        return read_batches(topic.partitions[index].name, data)
