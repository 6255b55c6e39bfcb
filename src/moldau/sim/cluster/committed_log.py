"""What was once committed, batch by batch: whatever any replica ever knew to be below the high watermark stays so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.records.batch import BATCH_LENGTH, HEADER_SIZE, LAST_OFFSET_DELTA, LENGTH_OVERHEAD
from moldau.sim.kernel.disk import SimDisk
from moldau.sim.kernel.world import Violation
from moldau.storage.log import Log

if TYPE_CHECKING:
    from moldau.replication.partition import Partition
    from moldau.sim.kernel.host import Host


class CommittedListener:
    """Told what becomes known of partitions; does nothing with it."""

    def on_committed(self, topic: str, index: int, batch: bytes) -> None:
        """A batch is below somebody's high watermark, for the first time; batches of a partition come in order."""

    def on_partition(self, host: Host, partition: Partition) -> None:
        """A replica was looked at; what it knows to be committed was told before."""


class CommittedLog:
    """The committed part of one partition, gathered from its replicas."""

    def __init__(self, topic: str, index: int = 0, listener: CommittedListener | None = None) -> None:
        self.topic = topic
        self.index = index
        self.name = f"{topic}-{index}"
        self._listener = listener
        self.start = -1
        self.end = 0
        self.batches: dict[int, bytes] = {}
        self.trusted = True

    def take(self, base: int, last: int, batch: bytes, who: str) -> None:
        """A replica has this batch below its high watermark."""
        known = self.batches.get(base)
        if known is not None:
            if known != batch and self.trusted:
                raise Violation(f"logs are equal below the high watermark: {self.name} offset {base} at {who}")
            return
        if base < self.end:
            if base >= self.start and self.trusted:
                raise Violation(f"logs are equal below the high watermark: {self.name} has a batch at {base} at {who}")
            return
        if self.start < 0:
            self.start = base
        self.batches[base] = batch
        self.end = last + 1
        if self._listener is not None:
            self._listener.on_committed(self.topic, self.index, batch)


class ReplicaCursor:
    """How far one replica's log has been held against what is committed."""

    __slots__ = ("high_watermark", "log", "offset", "position", "segment", "truncations")

    def __init__(self, log: Log) -> None:
        self.log = log
        self.high_watermark = 0
        self.offset = 0
        self.position = 0
        self.segment = -1
        self.truncations = 0

    def look(self, disk: SimDisk, log: Log, high_watermark: int, committed: CommittedLog, who: str) -> None:
        """Takes what has come below the high watermark since the last look."""
        if log.truncations != self.truncations:
            self.truncations = log.truncations
            self.segment = -1
        bases = [segment.base_offset for segment in log.segments]
        if self.segment not in bases:
            self.segment = bases[0]
            self.position = 0
        for segment in log.segments[bases.index(self.segment) :]:
            if segment.base_offset != self.segment:
                self.segment = segment.base_offset
                self.position = 0
            if not self._look_at_segment(disk, segment.path(".log"), high_watermark, committed, who):
                return

    def _look_at_segment(self, disk: SimDisk, path: str, limit: int, committed: CommittedLog, who: str) -> bool:
        """True when all of the segment was below the high watermark. What lies before the log's start is not served,
        and a leader that has deleted its own cannot say any more whether it is the same."""
        if not disk.exists(path):
            return False
        data = disk.inode_at(path).current
        position, size = self.position, len(data)
        while position + HEADER_SIZE <= size:
            base = int.from_bytes(data[position : position + BATCH_LENGTH], "big")
            field = position + BATCH_LENGTH
            length = int.from_bytes(data[field : field + 4], "big") + LENGTH_OVERHEAD
            field = position + LAST_OFFSET_DELTA
            last = base + int.from_bytes(data[field : field + 4], "big")
            if last >= limit or position + length > size:
                return False
            if last >= self.log.log_start_offset or base >= committed.end:
                committed.take(base, last, bytes(data[position : position + length]), who)
            position += length
            self.position = position
            self.offset = last + 1
        return True
