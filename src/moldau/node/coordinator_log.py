"""A partition of an internal topic as the log of a coordinator shard, for as long as this broker leads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.coordinator.log import CoordinatorLog
from moldau.node.cold_requests import ColdWait
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import MemoryRecords
from moldau.replication.partition import Partition
from moldau.replication.waiter import PartitionWaiter
from moldau.storage.disk import ColdRead, File
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
        self._cold_wait: ColdWait | None = None
        self._on_ready: Callable[[], None] | None = None
        self._read_offset = -1  # what a thread has read for the next call of `read`
        self._was_read: bytes | OSError = b""

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

    def read(self, offset: int, max_bytes: int, on_ready: Callable[[], None]) -> bytes | None:
        """Threads read, in this turn nobody waits for the medium. While this broker leads, what is in the log stays."""
        log = self._log()
        was_read, self._was_read = self._was_read, b""
        if isinstance(was_read, OSError):
            raise log.storage_failure(was_read) from was_read
        if was_read and self._read_offset == offset:
            return was_read
        self._on_ready = on_ready
        if self._cold_wait is None:
            self._cold_wait = ColdWait(log.disk, self._on_brought)
        wait = self._cold_wait
        wait.begin_try()
        try:
            records = log.read(offset, max_bytes, log.log_end_offset, min_one_batch=True).records
        except ColdRead as cold:
            wait.bring(cold)
            return None
        finally:
            wait.end_try()
        self._cold_wait = None
        if records is None:
            return b""
        file = records.file
        assert isinstance(file, File)
        data = self._read_now(log, file, records.position, records.size)
        if data is not None:
            return bytes(data)
        self._read_offset = offset
        file.read_later(records.position, records.size, self._on_read)
        return None

    def _read_now(self, log: Log, file: File, position: int, size: int) -> bytes | bytearray | None:
        try:
            return file.read_now(position, size)
        except OSError as error:
            raise log.storage_failure(error) from error

    def _on_read(self, outcome: bytes | OSError) -> None:
        self._was_read = outcome
        self._on_brought()

    def _on_brought(self) -> None:
        if self._on_ready is not None:
            self._on_ready()

    def batch_bytes_max(self) -> int:
        log = self._log()
        return min(log.config.max_message_bytes, log.config.segment_bytes)

    def watch(self, on_moved: Callable[[int], None]) -> None:
        self._partition.waiters.append(MovementWaiter(on_moved))
