"""A transactional producer as a client plays it, in both transaction versions, against a node on simulated disk."""

from __future__ import annotations

from typing import Any

from moldau.protocol import errors
from moldau.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.walk import read_records
from tests.unit.node.world import NodeWorld

TIMEOUT_MS = 60_000


def transactional_world(**settings: str) -> NodeWorld:
    """A node with the topic `t` of three partitions and coordinators for groups and transactions."""
    world = NodeWorld(
        offsets_topic_replication_factor="1",
        offsets_topic_num_partitions="3",
        transaction_state_log_replication_factor="1",
        transaction_state_log_num_partitions="3",
        transaction_state_log_min_isr="1",
        **settings,
    ).start()
    world.create("t", 3)
    for key_type in (0, 1):
        world.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"]), 4)
        world.run(200)
    return world


def batch(now_ms: int, producer: Producer, sequence: int, values: list[bytes], **flags: bool) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(now_ms, None, value, [])
    flags.setdefault("transactional", True)
    return builder.build(
        producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=sequence, **flags
    )


class Producer:
    """`version` is the transaction version that it speaks. Verbs return error codes."""

    def __init__(self, world: NodeWorld, transactional_id: str = "x", version: int = 2) -> None:
        self.world = world
        self.transactional_id = transactional_id
        self.version = version
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, timeout_ms: int = TIMEOUT_MS, says_who: bool = False, version: int = 5) -> int:
        request = InitProducerIdRequest(self.transactional_id, timeout_ms)
        if says_who:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        answer = self.world.ask(request, version)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)

    def init_until_done(self) -> None:
        for _ in range(20):
            code = self.init()
            if code != errors.CONCURRENT_TRANSACTIONS:
                assert code == 0, code
                return
            self.world.run(20)
        raise AssertionError("the transaction before does not end")

    def add(self, *partitions: int, topic: str = "t", version: int = 3) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(topic, list(partitions))],
        )
        rows = self.world.ask(request, version).results_by_topic_v3_and_below[0].results_by_partition
        return [row.partition_error_code for row in rows]

    def produce(self, partition: int, *values: bytes, version: int | None = None, topic: str = "t") -> int:
        """Adds the partition first where the client has to."""
        if self.version < 2 and version is None:
            assert self.add(partition, topic=topic) == [0]
        return self.write(partition, *values, version=version, topic=topic)

    def write(self, partition: int, *values: bytes, version: int | None = None, topic: str = "t") -> int:
        sequence = self.sequences.get((topic, partition), 0)
        code = self.send(partition, batch(self.world.now_ms, self, sequence, list(values)), version, topic)
        if code == 0:
            self.sequences[(topic, partition)] = sequence + len(values)
        return code

    def send(self, partition: int, data: bytes, version: int | None = None, topic: str = "t") -> int:
        row = PartitionProduceData(index=partition, records=MemoryRecords(data, 0, len(data)))
        request = ProduceRequest(self.transactional_id, -1, 1000, [TopicProduceData(name=topic, partition_data=[row])])
        if version is None:
            version = 12 if self.version >= 2 else 9
        return int(self.world.ask(request, version).responses[0].partition_responses[0].error_code)

    def commit_offset(
        self,
        group: str,
        offset: int,
        partition: int = 0,
        version: int | None = None,
        generation: int = -1,
        member: str = "",
        adds: bool = True,
    ) -> int:
        if version is None:
            version = 5 if self.version >= 2 else 3
        if version < 5 and adds:
            request = AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group)
            code = int(self.world.ask(request, 3).error_code)
            if code:
                return code
        row = TxnOffsetCommitRequestPartition(partition, offset, -1, "")
        commit = TxnOffsetCommitRequest(
            self.transactional_id,
            group,
            self.producer_id,
            self.epoch,
            topics=[TxnOffsetCommitRequestTopic("t", [row])],
        )
        commit.generation_id, commit.member_id = generation, member
        return int(self.world.ask(commit, version).topics[0].partitions[0].error_code)

    def end(self, committed: bool, version: int | None = None, epoch: int | None = None) -> int:
        if version is None:
            version = 5 if self.version >= 2 else 3
        sent_epoch = self.epoch if epoch is None else epoch
        answer = self.world.ask(EndTxnRequest(self.transactional_id, self.producer_id, sent_epoch, committed), version)
        if answer.error_code == 0 and version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)

    def commit(self) -> None:
        assert self.end(True) == 0
        self.world.run(40)

    def abort(self) -> None:
        assert self.end(False) == 0
        self.world.run(40)

    @property
    def state(self) -> str:
        return str(describe(self.world, self.transactional_id).transaction_state)


def describe(world: NodeWorld, transactional_id: str) -> Any:
    return world.ask(DescribeTransactionsRequest([transactional_id]), 0).transaction_states[0]


def fetch_answer(world: NodeWorld, partition: int, isolation: int, offset: int = 0, topic: str = "t") -> Any:
    row = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=isolation, topics=[FetchTopic(topic=topic)]
    )
    request.topics[0].partitions = [row]
    return world.ask(request, 12).responses[0].partitions[0]


def read(world: NodeWorld, partition: int = 0, committed: bool = True) -> list[bytes]:
    """The values that a consumer sees, filtered as a client filters them."""
    answer = fetch_answer(world, partition, 1 if committed else 0)
    assert answer.error_code == 0
    data = b"" if answer.records is None else answer.records.to_bytes()
    aborted = sorted((one.first_offset, one.producer_id) for one in answer.aborted_transactions or [])
    ignored: set[int] = set()
    values: list[bytes] = []
    for header in split_batches(data, 0, len(data)):
        while committed and aborted and aborted[0][0] <= header.last_offset:
            ignored.add(aborted.pop(0)[1])
        if header.is_control:
            if read_records(data, header)[0].key == b"\x00\x00\x00\x00":
                ignored.discard(int(header.producer_id))
        elif not (header.is_transactional and int(header.producer_id) in ignored):
            values += [record.value or b"" for record in read_records(data, header)]
    return values


def end_offsets(world: NodeWorld, partition: int = 0) -> tuple[int, int]:
    """Last stable offset and high watermark."""
    found = []
    for isolation in (1, 0):
        row = ListOffsetsPartition(partition_index=partition, timestamp=-1)
        request = ListOffsetsRequest(-1, isolation, [ListOffsetsTopic("t", [row])])
        found.append(int(world.ask(request, 7).topics[0].partitions[0].offset))
    return found[0], found[1]


def group_offset(world: NodeWorld, group: str, partition: int = 0, stable: bool = True) -> tuple[int, int]:
    """Error and offset."""
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=stable)
    row = world.ask(request, 9).groups[0].topics[0].partitions[0]
    return int(row.error_code), int(row.committed_offset)
