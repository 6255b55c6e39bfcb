"""Moves replicas between the log directories of this broker (KIP-113): copies, tells the controller, then swaps.

A move copies the current log into a future one, piece by piece, while the current one is written and read as ever. When
it has caught up the controller is told (KIP-858), so that a failure of either directory finds the right replicas; when
the metadata says so, the rest is copied and the future log takes over (`take_over.py`). A restart goes on with it.
Kafka: ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.clocks import AT_ONCE_MS, NEVER_MS
from moldau.replication.partition import Partition
from moldau.replication.throttle import ReplicationQuota
from moldau.storage.disk import File
from moldau.storage.future_logs import fits_future_name
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_manager import LogManager
from moldau.storage.take_over import TakeOver

PIECE_BYTES = 1 << 20
RETRY_MS = 1000

COPYING = "copying"
ASSIGNING = "assigning"
SWAPPING = "swapping"

log = logging.getLogger("moldau.node")


class Move:
    """One replica on its way."""

    def __init__(self, partition: Partition, source: Log, future: Log) -> None:
        self.partition = partition
        self.source = source
        self.future = future
        self.state = COPYING
        self.busy = False  # a piece is being read, or the future log flushed
        self.is_flushed = False
        self.retry_at_ms = 0
        self.aligned_at = -1  # the number of times the source had been truncated when the two were compared

    @property
    def lag(self) -> int:
        return max(0, self.source.log_end_offset - self.future.log_end_offset)

    @property
    def is_over(self) -> bool:
        return self.source.closed or self.future.closed or self.partition.log is not self.source


class DirectoryMoves:
    """All moves of this broker; `tell_directory` is called when the controller is to hear of the new place of one."""

    def __init__(self, logs: LogManager, samples: int = 11, sample_ms: int = 1000) -> None:
        self.logs = logs
        self.quota = ReplicationQuota(samples, sample_ms)
        self.tell_directory: Callable[[Partition, int], None] | None = None
        self.on_deadline: Callable[[int], None] | None = None
        self.assigns_directories = True
        # Where partitions that are not here yet are to be made, by topic and index.
        self.preferred: dict[tuple[str, int], str] = {}
        self._moves: dict[tuple[bytes, int], Move] = {}
        # What the disk has finished goes on in the next turn, which knows what time it is.
        self._finished: list[Callable[[int], None]] = []

    def __len__(self) -> int:
        return len(self._moves)

    def find(self, partition: Partition) -> Move | None:
        return self._moves.get((partition.topic_id, partition.index))

    # Asking for a move

    def check_directory(self, topic: str, index: int, path: str) -> LogDirectory:
        """The directory a replica is to go to; raises what AlterReplicaLogDirs responds with when that cannot be."""
        if not fits_future_name(topic, index):
            raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        for directory in self.logs.directories:
            if directory.path == path.rstrip("/"):
                if directory.failed:
                    raise KafkaError(errors.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
                return directory
        raise KafkaError(errors.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")

    def request(self, partition: Partition, directory: LogDirectory, now_ms: int) -> None:
        """Begins a move, or another one in its place, or ends it when the replica is to stay where it is."""
        current = partition.log
        if current is None or current.log_directory.failed:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR, f"Partition {partition.topic}-{partition.index} is offline")
        move = self.find(partition)
        if move is not None:
            if move.future.log_directory is directory:
                return
            self.cancel(partition, now_ms)
        if current.log_directory is directory:
            return
        future = self.logs.futures.create(current, directory, now_ms)
        log.info(
            "moving %s-%d from log directory %s to %s", *_name(partition), current.log_directory.path, directory.path
        )
        self._begin(partition, current, future)
        self._wake(now_ms)

    def resume(self, partition: Partition, now_ms: int) -> None:
        """At start: goes on with what the run before had begun."""
        current, future = partition.log, self.logs.futures.get(partition.topic, partition.index)
        if future is None or self.find(partition) is not None:
            return
        if current is None or current.log_directory.failed or future.log_directory.failed:
            return
        if future.topic_id != partition.topic_id or future.log_directory is current.log_directory:
            self.logs.futures.remove(partition.topic, partition.index, now_ms)
            return
        try:
            self.logs.futures.drop_uncertain(future, now_ms)
        except KafkaError:
            return
        future.set_config(current.config)
        log.info("resuming the move of %s-%d to log directory %s", *_name(partition), future.log_directory.path)
        self._begin(partition, current, future)

    def _begin(self, partition: Partition, current: Log, future: Log) -> None:
        current.moving = True
        self.logs.notify_log_gone(current)  # a compaction under way would change what is copied
        self._moves[(partition.topic_id, partition.index)] = Move(partition, current, future)

    def cancel(self, partition: Partition, now_ms: int) -> None:
        """The replica stays where it is; the controller hears of it if it was told otherwise."""
        move = self._moves.pop((partition.topic_id, partition.index), None)
        if move is None:
            return
        move.source.moving = False
        try:
            self.logs.futures.remove(partition.topic, partition.index, now_ms)
        except KafkaError as error:
            log.error("cannot remove the future log of %s-%d: %s", *_name(partition), error.message)
        if move.state != COPYING and self.tell_directory is not None:
            self.tell_directory(partition, now_ms)

    def on_directory_failed(self, directory: LogDirectory, now_ms: int) -> None:
        for move in list(self._moves.values()):
            if directory in (move.source.log_directory, move.future.log_directory):
                self.cancel(move.partition, now_ms)

    # The controller

    def promised_directory(self, partition: Partition) -> bytes | None:
        """The directory that the controller is to know: the new one from the moment on when it has everything."""
        move = self.find(partition)
        if move is None or move.state == COPYING:
            return None
        return move.future.log_directory.directory_id

    def on_assigned(self, partition: Partition, now_ms: int) -> None:
        """The metadata has the replica in its new directory."""
        move = self.find(partition)
        if move is not None and move.state == ASSIGNING:
            move.state = SWAPPING
            self._wake(now_ms)

    def on_released(self, released: Log, now_ms: int) -> None:
        """The truncation of a log is on the disk: what is copied into it goes on."""
        if any(move.future is released for move in self._moves.values()):
            self._wake(now_ms)

    def _wake(self, deadline_ms: int) -> None:
        if self.on_deadline is not None:
            self.on_deadline(deadline_ms)

    def _in_next_turn(self, step: Callable[[int], None]) -> None:
        self._finished.append(step)
        self._wake(AT_ONCE_MS)

    # Copying

    def poll(self, now_ms: int) -> int:
        """Goes on with what can go on; returns when to call again at the latest."""
        finished, self._finished = self._finished, []
        for step in finished:
            step(now_ms)
        deadline_ms = NEVER_MS
        copying: set[str] = set()
        for move in list(self._moves.values()):
            target = move.future.log_directory.path
            if move.state == COPYING and target in copying:
                continue  # one after the other into each directory, as Kafka's threads do
            copying.add(target)
            deadline_ms = min(deadline_ms, self._advance(move, now_ms))
        return deadline_ms

    def _advance(self, move: Move, now_ms: int) -> int:
        if move.busy or self.find(move.partition) is not move:
            return NEVER_MS
        if now_ms < move.retry_at_ms:
            return move.retry_at_ms
        try:
            if move.is_over:
                self.cancel(move.partition, now_ms)
                return NEVER_MS
            self._align(move, now_ms)
            if move.future.holds > 0:
                return NEVER_MS  # woken by `on_released`
            return self._step(move, now_ms)
        except KafkaError as error:
            if move.source.log_directory.failed or move.future.log_directory.failed:
                self.cancel(move.partition, now_ms)
                return NEVER_MS
            log.warning(
                "cannot copy %s-%d to its new log directory, trying again: %s", *_name(move.partition), error.message
            )
            move.retry_at_ms = now_ms + RETRY_MS
            return move.retry_at_ms

    def _step(self, move: Move, now_ms: int) -> int:
        if move.lag == 0 or (move.state == SWAPPING and self._is_short(move)):
            return self._caught_up(move, now_ms)
        wait_ms = self.quota.wait_ms(now_ms)
        if wait_ms > 0:
            return now_ms + wait_ms
        records = self._next_piece(move)
        if records is None:
            return now_ms + RETRY_MS
        file, start = records.file, move.future.log_end_offset
        assert isinstance(file, File)
        move.busy = True
        size = records.size
        self.logs.disk.read_later(
            file,
            records.position,
            size,
            lambda data: self._in_next_turn(lambda now_ms: self._on_read(move, data, size, start, now_ms)),
        )
        return NEVER_MS

    def _next_piece(self, move: Move) -> FileRecords | None:
        offset = max(move.future.log_end_offset, move.source.log_start_offset)
        return move.source.read(offset, PIECE_BYTES, move.source.log_end_offset, True).records

    def _is_short(self, move: Move) -> bool:
        """What is missing can be copied in one turn."""
        end_offset, missing = move.future.log_end_offset, 0
        for segment in reversed(move.source.segments):
            if segment.base_offset < end_offset:
                return missing + segment.size - max(0, segment.find_batch(end_offset)[0]) <= PIECE_BYTES
            missing += segment.size
            if missing > PIECE_BYTES:
                break
        return missing <= PIECE_BYTES

    def _on_read(self, move: Move, data: bytes | OSError, size: int, start: int, now_ms: int) -> None:
        move.busy = False
        if self.find(move.partition) is not move or move.is_over:
            return
        if isinstance(data, OSError):
            move.source.log_directory.fail(data)
            return
        if move.source.truncations == move.aligned_at and move.future.log_end_offset == start and len(data) == size:
            try:
                self._append(move, data, now_ms)
            except KafkaError as error:
                log.warning(
                    "cannot copy %s-%d to its new log directory, trying again: %s",
                    *_name(move.partition),
                    error.message,
                )
                move.retry_at_ms = now_ms + RETRY_MS

    def _append(self, move: Move, data: bytes, now_ms: int) -> None:
        move.future.append_as_follower(MemoryRecords(data), now_ms)
        self.quota.record(len(data), now_ms)

    # Agreeing with the current log

    def _align(self, move: Move, now_ms: int) -> None:
        """The current log may have been truncated at either end since the last piece."""
        source, future = move.source, move.future
        if source.truncations != move.aligned_at:
            while self._truncate_to_divergence(source, future, now_ms):
                pass
            move.aligned_at = source.truncations
        if future.log_end_offset < source.base_offsets[0] or future.log_end_offset > source.log_end_offset:
            self.logs.truncate_fully_and_start_at(future, source.base_offsets[0], now_ms)
        start_offset = min(source.log_start_offset, future.log_end_offset)
        if start_offset > future.log_start_offset:
            future.advance_log_start(start_offset)

    def _truncate_to_divergence(self, source: Log, future: Log, now_ms: int) -> bool:
        """The same question that a follower asks its leader; True when it must be asked again."""
        last_epoch = future.leader_epochs.latest_epoch
        if last_epoch < 0:
            return False
        epoch, end_offset = source.leader_epochs.end_offset_for_epoch(last_epoch, source.log_end_offset)
        if epoch == last_epoch and end_offset >= future.log_end_offset:
            return False
        own_epoch, own_end = future.leader_epochs.end_offset_for_epoch(epoch, future.log_end_offset)
        target = end_offset
        if own_end >= 0:
            target = own_end if own_epoch != epoch else min(own_end, end_offset)
        before = (future.log_end_offset, last_epoch)
        if target >= future.log_start_offset:
            self.logs.truncate(future, min(target, future.log_end_offset), now_ms)
        if (future.log_end_offset, future.leader_epochs.latest_epoch) == before:
            self.logs.truncate_fully_and_start_at(future, source.base_offsets[0], now_ms)
            return False
        return True

    # Taking over

    def _caught_up(self, move: Move, now_ms: int) -> int:
        if move.state == COPYING:
            move.state = ASSIGNING if self.assigns_directories else SWAPPING
            if move.state == ASSIGNING and self.tell_directory is not None:
                self.tell_directory(move.partition, now_ms)
                self._wake(now_ms)
        if move.state != SWAPPING:
            return NEVER_MS
        if not move.is_flushed or move.future.recovery_point < move.source.recovery_point:
            self._flush(move)
            return NEVER_MS
        self._swap(move)
        return NEVER_MS

    def _flush(self, move: Move) -> None:
        """What is safe in the current log must be so in the future one before it takes over; and what is old enough
        to have reached the medium there by itself was written here just now."""
        move.busy = True
        move.is_flushed = True

        def done(error: OSError | None) -> None:
            move.busy = False
            if error is not None:
                move.future.log_directory.fail(error)
            self._wake(AT_ONCE_MS)

        move.future.flushing.later(move.future.log_end_offset, done)

    def _swap(self, move: Move) -> None:
        move.busy = True
        TakeOver(
            self.logs,
            move.source,
            move.future,
            lambda: self.find(move.partition) is move and not move.is_over,
            lambda now_ms: self._catch_up(move, now_ms),
            lambda took_over, now_ms: self._on_swapped(move, took_over, now_ms),
            self._in_next_turn,
        ).start()

    def _catch_up(self, move: Move, now_ms: int) -> bool:
        """Copies what is missing; from here to the end nobody writes into the current log."""
        source, future = move.source, move.future
        self._align(move, now_ms)
        if future.holds > 0 or not self._is_short(move):
            return False
        while move.lag > 0:
            records = self._next_piece(move)
            if records is None:
                return False
            assert isinstance(records.file, File)
            try:
                data = records.file.read(records.position, records.size)
            except OSError as error:
                raise source.storage_failure(error) from error
            self._append(move, data, now_ms)
        self._align(move, now_ms)
        if future.holds > 0:
            return False
        epochs = source.leader_epochs
        if epochs.latest_epoch > future.leader_epochs.latest_epoch:
            # An epoch without records yet: the leader's own, most likely.
            future.leader_epochs.begin(epochs.latest_epoch, future.log_end_offset)
        return True

    def _on_swapped(self, move: Move, took_over: bool, now_ms: int) -> None:
        partition, source, future = move.partition, move.source, move.future
        move.busy = False
        if not took_over:
            if self.find(partition) is move:
                move.retry_at_ms = now_ms + RETRY_MS
            return
        self.logs.futures.take_over(partition.topic, partition.index, source, now_ms)
        del self._moves[(partition.topic_id, partition.index)]
        source.moving = False
        future.set_config(source.config)
        assert future.log_end_offset == source.log_end_offset, f"{future} takes the place of {source}"
        partition.log = future
        partition.notify_waiters(now_ms)
        if self.tell_directory is not None:
            self.tell_directory(partition, now_ms)


def _name(partition: Partition) -> tuple[str, int]:
    return partition.topic, partition.index
