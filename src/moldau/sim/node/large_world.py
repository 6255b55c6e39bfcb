"""One node with many partitions and long indexes, killed and started again: what it does in one turn stays bounded.

Nothing fails here and nobody is in a hurry. The node has more logs, segments, index entries and metadata records than
it may handle in one turn; how much a turn reads is counted by `sim/kernel/turn_watch.py`, how much of a snapshot it
encodes is looked at here.
"""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import ProduceResponse
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.world import Violation
from moldau.sim.node.admin_requests import CREATE_VERSION, create_topic
from moldau.sim.node.audit import Auditor
from moldau.sim.node.program import NodeProgram
from moldau.sim.node.world import READY_MS_MAX, SETTLE_MS, NodeWorld

PARTITIONS = (280, 400)
BATCHES = (500, 600)
"""Of the long log: more than fit into a page of its indexes."""
RECORDS_MAX = 256
"""Of a snapshot, encoded in one turn."""
PRODUCE_VERSION = 12
DEFAULT_MILLISECONDS = 4_000
TIMEOUT_MS = 10_000


class LargeNodeWorld(NodeWorld):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.partitions = self.rng.randint(*PARTITIONS)
        self.records_max = 0
        """Of snapshots, in one turn."""
        self._encoded = 0
        self.host.on_turn = self._look

    def _settings(self) -> dict[str, str]:
        return {
            **super()._settings(),
            "log.retention.check.interval.ms": "500",
            "metadata.log.max.record.bytes.between.snapshots": "3000",
        }

    def _run(self, duration_ms: int) -> None:
        self._start()
        self._create("wide", self.partitions, {"internal.segment.bytes": "150", "index.interval.bytes": "0"})
        self._create("long", 1, {"internal.segment.bytes": "40000", "index.interval.bytes": "0"})
        for number in range(4):
            # Each has a snapshot of all that is there by then.
            self._create(f"more-{number}", 30, {})
        for _ in range(3):
            self._produce("wide", range(self.partitions))
        for _ in range(self.rng.randint(*BATCHES)):
            self._produce("long", range(1))
        self.world.run_for(duration_ms)
        self.host.kill()
        self._start()
        self.world.run_for(duration_ms)

    def summary(self) -> str:
        reads = self.host.disk.watch.reads_max
        return (
            f"{self.partitions} partitions, at most {reads} reads and {self.records_max} records of a snapshot a turn"
        )

    def _on_death(self, how: str) -> None:
        """It is started again by whoever killed it."""

    def _start(self) -> None:
        self._encoded = 0
        self.host.boot()
        if not self.world.run_until(self._is_ready, READY_MS_MAX):
            raise Violation("a node that was started becomes ready")

    def _is_ready(self) -> bool:
        program = self.host.program
        return isinstance(program, NodeProgram) and program.node.is_ready

    def _create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        response = self._auditor().ask(create_topic(name, partitions, 1, configs, TIMEOUT_MS), CREATE_VERSION)
        assert isinstance(response, CreateTopicsResponse)
        assert response.topics[0].error_code == errors.NONE, response.topics[0]
        if not self.world.run_until(lambda: self._is_led(name), READY_MS_MAX):
            raise Violation(f"the partitions of a new topic have leaders: {name}")
        self.world.run_for(SETTLE_MS)

    def _is_led(self, name: str) -> bool:
        response = self._auditor().ask(MetadataRequest(None, False), 12)
        assert isinstance(response, MetadataResponse)
        topics = [topic for topic in response.topics if topic.name == name]
        return bool(topics) and all(partition.error_code == errors.NONE for partition in topics[0].partitions)

    def _produce(self, topic: str, indexes: range) -> None:
        builder = BatchBuilder()
        builder.append(self.world.now_ms, None, self.rng.randbytes(20))
        data = builder.build()
        rows = [PartitionProduceData(index, MemoryRecords(data, 0, len(data))) for index in indexes]
        request = ProduceRequest(None, 1, TIMEOUT_MS, [TopicProduceData(name=topic, partition_data=rows)])
        response = self._auditor().ask(request, PRODUCE_VERSION)
        assert isinstance(response, ProduceResponse)
        failed = {row.error_code for row in response.responses[0].partition_responses} - {errors.NONE}
        assert not failed, failed
        self.world.run_for(1)

    def _auditor(self) -> Auditor:
        return Auditor(self.host, self.model, self.rng)

    # Snapshots

    def _look(self, host: Host) -> None:
        """How many records of a snapshot this turn encoded."""
        program = host.program
        if not isinstance(program, NodeProgram) or not hasattr(program.node.metadata, "raft"):
            return
        total = program.node.metadata.snapshot_records_total
        new, self._encoded = total - self._encoded, total
        self.records_max = max(self.records_max, new)
        if new > RECORDS_MAX and program.serves():
            raise Violation(f"a turn of a node that serves does a bounded amount of work: {new} records of a snapshot")
