"""Replicas of one partition, each on a disk of its own; a script says who leads, writes, fetches and dies."""

from __future__ import annotations

from moldau.config.log_config import LogConfig
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_request import FetchPartition
from moldau.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.batch import split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.walk import read_records
from moldau.replication.follower import DELAYED, STATES, TRUNCATING, Follower
from moldau.replication.partition import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Partition
from moldau.sim.kernel.disk import SimDisk
from moldau.storage.disk import File
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from moldau.storage.validation import CLIENT

TOPIC_ID = bytes(range(16))
PLENTY = 1 << 20
BACKOFF_MS = 1000


class Replica:
    """One broker's replica: its disk survives what happens to the rest."""

    def __init__(self, broker_id: int, world: World) -> None:
        self.broker_id = broker_id
        self.world = world
        self.disk = SimDisk(broker_id, lambda delay_ms, action: action())
        self.checkpointed = 0
        self.request_number = 0
        self.is_up = False
        self.start()

    def start(self) -> None:
        self.logs = LogManager(self.disk, ["/data"], self._config)
        self.logs.load(self.world.now_ms)
        log = self.logs.get("t", 0)
        if log is None:
            log = self.logs.create("t", 0, TOPIC_ID, self.world.now_ms)
        self.partition = Partition("t", TOPIC_ID, 0, self.broker_id, log)
        self.partition.high_watermark.restart_at(min(max(self.checkpointed, log.log_start_offset), log.log_end_offset))
        self.follower = Follower(self.partition, self.logs)
        self.is_up = True

    def _config(self, topic: str) -> LogConfig:
        return self.world.config

    @property
    def log(self) -> Log:
        assert self.partition.log is not None
        return self.partition.log

    def stop(self) -> None:
        self.is_up = False
        self.checkpointed = self.partition.high_watermark.offset
        self.disk.process_crash()

    def values(self) -> str:
        """The records as epoch:value, one after the other."""
        log, found, offset = self.log, [], self.log.log_start_offset
        while offset < log.log_end_offset:
            records = log.read(offset, PLENTY, log.log_end_offset, True).records
            assert records is not None
            data = bytes_of(records)
            for header in split_batches(data, 0, len(data)):
                for record in read_records(data, header):
                    if record.offset >= offset:
                        found.append(f"{header.partition_leader_epoch}:{(record.value or b'').decode()}")
            offset = int(split_batches(data, 0, len(data))[-1].last_offset) + 1
        return " ".join(found) if found else "-"

    def show(self) -> str:
        if not self.is_up:
            return f"{self.broker_id}: down"
        log = self.log
        epochs = " ".join(f"{epoch}@{start}" for epoch, start in log.leader_epochs.entries()) or "-"
        return (
            f"{self.broker_id}: offsets {log.log_start_offset}..{log.log_end_offset}, high watermark "
            f"{self.partition.high_watermark.offset}, epochs {epochs}, records {self.values()}"
        )


class World:
    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.config = LogConfig()
        self.replicas: dict[int, Replica] = {}
        self.leader = -1
        self.epoch = -1
        self.partition_epoch = 0

    def run(self, command: str) -> list[str]:
        name, *arguments = command.split()
        self.now_ms += 1
        lines: list[str] = getattr(self, f"do_{name}")(*arguments) or []
        return lines

    # Commands

    def do_replicas(self, *broker_ids: str) -> None:
        for text in broker_ids:
            self.replicas[int(text)] = Replica(int(text), self)

    def do_lead(self, broker_id: str, unheard: str = "", by: str = "-1") -> list[str]:
        """The metadata names a new leader, and `unheard N` does not hear of it; the ISR is everybody who is up."""
        self.leader = int(broker_id)
        self.epoch += 1
        self.partition_epoch += 1
        for replica in self.replicas.values():
            if replica.is_up and replica.broker_id != int(by):
                self._hear(replica)
        return [f"epoch {self.epoch} is led by {self.leader}"]

    def _hear(self, replica: Replica) -> None:
        up = [other.broker_id for other in self.replicas.values() if other.is_up]
        everybody = sorted(self.replicas)
        replica.partition.update(self.leader, self.epoch, self.partition_epoch, everybody, up, self.now_ms)
        if replica.broker_id != self.leader:
            replica.follower.begin(self.epoch)

    def do_hear(self, broker_id: str) -> None:
        self._hear(self.replicas[int(broker_id)])

    def do_produce(self, broker_id: str, *values: str) -> list[str]:
        """Each value a batch; pid/sequence=value for one of an idempotent producer."""
        lines = []
        for text in values:
            producer, _, value = text.rpartition("=")
            builder = BatchBuilder()
            builder.append(self.now_ms, None, value.encode())
            pid, _, sequence = producer.partition("/")
            data = (
                builder.build(producer_id=int(pid), producer_epoch=0, base_sequence=int(sequence))
                if producer
                else builder.build()
            )
            try:
                result = self.replicas[int(broker_id)].partition.append_as_leader(
                    MemoryRecords(data), 1, self.now_ms, CLIENT
                )
                lines.append(f"offset {result.first_offset}{', a duplicate' if result.duplicate else ''}")
            except KafkaError as error:
                lines.append(errors.error_name(error.code))
        return lines

    def do_batch(self, broker_id: str, *values: str) -> list[str]:
        """All values in one batch."""
        builder = BatchBuilder()
        for value in values:
            builder.append(self.now_ms, None, value.encode())
        partition = self.replicas[int(broker_id)].partition
        result = partition.append_as_leader(MemoryRecords(builder.build()), 1, self.now_ms, CLIENT)
        return [f"offsets {result.first_offset}..{result.last_offset}"]

    def do_fetch(self, broker_id: str, *how: str) -> list[str]:
        """One fetch and its answer; `lost`: the answer does not arrive."""
        replica = self.replicas[int(broker_id)]
        follower = replica.follower
        replica.request_number += 1
        if follower.state == DELAYED:
            follower.resume()
        asked = follower.fetch_partition(replica.log, PLENTY, replica.request_number)
        data = self._answer(replica, asked)
        lines = [f"asks {self.leader}: offset {asked.fetch_offset}, last epoch {asked.last_fetched_epoch}"]
        lines.append(self._describe(data) + (", which is lost" if how == ("lost",) else ""))
        if how == ("flipped",):
            assert isinstance(data.records, MemoryRecords)
            data.records = MemoryRecords(data.records.data[:-1] + b"\xff")
        if how != ("lost",):
            follower.take(data, self.now_ms, BACKOFF_MS)
            if follower.state == TRUNCATING:
                lines += self._find_leader_offsets(follower)
            if follower.state != 0:
                lines.append(STATES[follower.state])
        return [*lines, replica.show()]

    def _find_leader_offsets(self, follower: Follower) -> list[str]:
        leader = self.replicas[self.leader].partition
        start = leader.find_offset(EARLIEST_TIMESTAMP, 0, self.epoch, follower.partition.broker_id).offset
        end = leader.find_offset(LATEST_TIMESTAMP, 0, self.epoch, follower.partition.broker_id).offset
        follower.on_leader_offsets(start, end, self.now_ms, BACKOFF_MS)
        return [f"the leader has {start}..{end}"]

    def _answer(self, replica: Replica, asked: FetchPartition) -> PartitionData:
        leader = self.replicas[self.leader].partition
        try:
            leader.on_follower_fetch(
                replica.broker_id, -1, asked.fetch_offset, asked.log_start_offset, asked.current_leader_epoch,
                asked.last_fetched_epoch, self.now_ms,
            )  # fmt: skip
            read = leader.read_as_follower(
                replica.broker_id, -1, asked.fetch_offset, PLENTY, min_one_batch=True,
                current_leader_epoch=asked.current_leader_epoch, last_fetched_epoch=asked.last_fetched_epoch,
                now_ms=self.now_ms,
            )  # fmt: skip
        except KafkaError as error:
            return PartitionData(error_code=error.code, high_watermark=-1)
        data = PartitionData(high_watermark=read.high_watermark, log_start_offset=read.log_start_offset)
        if read.diverging_end_offset >= 0:
            data.diverging_epoch = EpochEndOffset(read.diverging_epoch, read.diverging_end_offset)
        elif read.records is not None:
            assert isinstance(read.records, FileRecords)
            data.records = MemoryRecords(bytes_of(read.records))
        return data

    def _describe(self, data: PartitionData) -> str:
        if data.error_code:
            return f"answer: {errors.error_name(data.error_code)}"
        if data.diverging_epoch.end_offset >= 0:
            return f"answer: epoch {data.diverging_epoch.epoch} ends at {data.diverging_epoch.end_offset}"
        size = "no records"
        if isinstance(data.records, MemoryRecords):
            headers = split_batches(data.records.data, 0, data.records.size)
            size = f"records {headers[0].base_offset}..{headers[-1].last_offset}"
        return f"answer: {size}, high watermark {data.high_watermark}, log start {data.log_start_offset}"

    def do_stop(self, broker_id: str) -> None:
        """Killed; what it wrote stays."""
        self.replicas[int(broker_id)].stop()

    def do_lose(self, broker_id: str, offset: str) -> None:
        """The power is lost, and with it what was not on the medium: the records from this offset on."""
        replica = self.replicas[int(broker_id)]
        replica.logs.truncate(replica.log, int(offset), self.now_ms)
        replica.stop()

    def do_start(self, broker_id: str) -> list[str]:
        replica = self.replicas[int(broker_id)]
        replica.start()
        if self.leader >= 0 and self.leader != replica.broker_id:
            self.partition_epoch += 1
            for other in self.replicas.values():
                if other.is_up:
                    self._hear(other)
        return [replica.show()]

    def do_delete(self, broker_id: str, offset: str) -> None:
        """DeleteRecords: the log begins at the offset."""
        self.replicas[int(broker_id)].partition.delete_records(int(offset), self.now_ms)

    def do_show(self) -> list[str]:
        return [replica.show() for replica in self.replicas.values()]


def bytes_of(records: FileRecords) -> bytes:
    file = records.file
    assert isinstance(file, File)
    return file.read(records.position, records.size)
