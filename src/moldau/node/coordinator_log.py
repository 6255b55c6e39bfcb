"""A partition of an internal topic as the log of a coordinator shard, for as long as this broker leads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.coordinator.log import CoordinatorLog
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import MemoryRecords
from moldau.replication.partition import Partition
from moldau.replication.waiter import PartitionWaiter
from moldau.storage.disk import File
from moldau.storage.log import Log
from moldau.storage.validation import COORDINATOR

ALL_IN_SYNC: Final = -1


class MovementWaiter(PartitionWaiter):
    """Calls back once, at the next movement of the partition."""

    def __init__(self, on_moved: Callable[[int], None]) -> None:
        super().__init__()
        self._on_moved = on_moved

    def on_partition_moved(self, now_ms: int) -> None:
        self.finished = True
        self._on_moved(now_ms)


class PartitionLog(CoordinatorLog):
    """See the module. In any other leader epoch than `leader_epoch` it neither reads nor writes."""

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self._partition = partition
        self.leader_epoch = leader_epoch

    def _is_led(self) -> bool:
        return self._partition.is_leader and self._partition.leader_epoch == self.leader_epoch

    def _log(self) -> Log:
        if not self._is_led():
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        return self._partition.check_online()

    def append(self, batch: bytes, now_ms: int) -> int:
        if not self._is_led():
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        records = MemoryRecords(batch, 0, len(batch))
        result = self._partition.append_as_leader(records, ALL_IN_SYNC, now_ms, COORDINATOR)
        if self._partition.context.woken:
            self._partition.context.serve_woken(now_ms)
        return result.last_offset + 1

    def start_offset(self) -> int:
        return self._log().log_start_offset

    def end_offset(self) -> int:
        return self._log().log_end_offset

    def high_watermark(self) -> int:
        """-1 once this broker does not lead any more: then nothing is known about what it wrote."""
        return self._partition.high_watermark.offset if self._is_led() else -1

    def read(self, offset: int, max_bytes: int) -> bytes:
        log = self._log()
        records = log.read(offset, max_bytes, log.log_end_offset, min_one_batch=True).records
        if records is None:
            return b""
        file = records.file
        assert isinstance(file, File)
        try:
            return file.read(records.position, records.size)
        except OSError as error:
            raise log.storage_failure(error) from error

    def batch_bytes_max(self) -> int:
        log = self._log()
        return min(log.config.max_message_bytes, log.config.segment_bytes)

    def watch(self, on_moved: Callable[[int], None]) -> None:
        self._partition.waiters.append(MovementWaiter(on_moved))
