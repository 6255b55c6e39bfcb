"""One shard of a coordinator: a partition of its topic, the state that was replayed from it, and who waits for it.

The order of things is always the same: decide, append, replay, release when committed. An append that fails has changed
nothing. A response is held back until everything it may have seen is committed, also the response of a verb that only
read: so no client ever sees what a failover could take back.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.coordinator.log import CoordinatorLog
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.coordinator.timers import Timer, Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.records.batch import BatchHeader, split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.clocks import NEVER_MS, WallClock
from moldau.records.walk import read_keys_and_values, read_records

LOADING: Final = 0
ACTIVE: Final = 1
CLOSED: Final = 2
FAILED: Final = 3

RETRY_MS: Final = 500
# Varints, lengths and attributes of a record in a batch take less than this.
RECORD_OVERHEAD: Final = 32
BATCH_OVERHEAD: Final = 128
END_TRANSACTION_KEYS: Final = {b"\x00\x00\x00\x00": False, b"\x00\x00\x00\x01": True}

logger = logging.getLogger("moldau.coordinator")

Done = Callable[[Message | KafkaError], None]


def pass_on(outcome: Outcome, done: Done | None, error: KafkaError | None, now_ms: int) -> None:
    """Responds. Never raises: it is often called in the turn of somebody else, who must not suffer."""
    try:
        if outcome.on_written is not None:
            outcome.on_written(error, now_ms)
        if done is None:
            return
        if error is not None:
            done(error)
        elif outcome.response is not None:
            done(outcome.response)
    except Exception:
        logger.exception("unexpected error after the records of a request were written: its response is lost")


class Waiting:
    """A response whose records, or those it has seen, are not committed yet."""

    def __init__(self, outcome: Outcome, done: Done | None, end_offset: int, deadline_ms: int) -> None:
        self.outcome = outcome
        self.done = done
        self.end_offset = end_offset
        self.deadline_ms = deadline_ms

    def finish(self, error: KafkaError | None, now_ms: int) -> None:
        pass_on(self.outcome, self.done, error, now_ms)


class Shard:
    """See the module. `on_broken` is called when memory and log may differ: the shard must be loaded anew."""

    def __init__(
        self,
        name: str,
        leader_epoch: int,
        log: CoordinatorLog,
        machine: CoordinatorMachine,
        timers: Timers,
        codec: int,
        wall: WallClock,
    ) -> None:
        self.name = name
        self.leader_epoch = leader_epoch
        self.log = log
        self.machine = machine
        self.timers = timers
        self.wall = wall
        self.state = LOADING
        self.written_end = 0
        self.loaded_records = 0
        self.load_started_ms = -1
        self.on_broken: Callable[[Shard, int], None] | None = None
        self._codec = codec
        # What the batches say; Kafka's coordinators differ in it.
        self.base_sequence = 0
        self._load_position = -1
        self.waits_for_log = False  # the next part of the log is being read
        self.on_log_ready: Callable[[], None] | None = None
        self._waiting: deque[Waiting] = deque()
        self._watching = False
        self._writing = False

    # Loading

    def load_step(self, max_bytes: int) -> bool:
        """Replays the next part of the log; True when there is no more. The log end at that moment is the state. If
        that part is still being read, `waits_for_log` is set, and `on_log_ready` is called when it is there."""
        if self._load_position < 0:
            self._load_position = self.log.start_offset()
        data = self.log.read(self._load_position, max_bytes, self._on_log_ready)
        if data is None:
            self.waits_for_log = True
            return False
        if data:
            self._replay_batches(data)
            return False
        self.written_end = self.log.end_offset()
        return True

    def _on_log_ready(self) -> None:
        self.waits_for_log = False
        if self.on_log_ready is not None and self.state == LOADING:
            self.on_log_ready()

    def _replay_batches(self, data: bytes) -> None:
        machine = self.machine
        for header in split_batches(data, 0, len(data)):
            if header.is_control:
                self._replay_marker(data, header)
            else:
                producer_id = int(header.producer_id) if header.is_transactional else -1
                producer_epoch = int(header.producer_epoch)
                for offset, key, value in read_keys_and_values(data, header):
                    if offset >= self._load_position and key is not None:
                        machine.replay(key, value, offset, producer_id, producer_epoch)
                        self.loaded_records += 1
            self._load_position = int(header.next_offset)

    def _replay_marker(self, data: bytes, header: BatchHeader) -> None:
        for record in read_records(data, header):
            committed = None if record.key is None else END_TRANSACTION_KEYS.get(record.key)
            if committed is not None:
                self.machine.replay_end_transaction(int(header.producer_id), int(header.producer_epoch), committed)

    def activate(self, image: MetadataImage, now_ms: int) -> None:
        """Everything is replayed: requests may come."""
        outcomes = self.machine.on_loaded(image, now_ms)
        self.state = ACTIVE
        self._write_internal(outcomes, now_ms)

    def close(self, now_ms: int, state: int = CLOSED) -> None:
        """Leadership is gone, or the broker stops: whoever waits must look for the coordinator again."""
        self.state = state
        self.timers.clear()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            entry.finish(KafkaError(errors.NOT_COORDINATOR), now_ms)
        try:
            self.machine.on_unloaded(now_ms)
        except Exception:
            logger.exception("unexpected error while unloading %s", self.name)
        # What was set while everyone was told belongs to nobody.
        self.timers.clear()

    # Writing

    def write(self, outcome: Outcome, done: Done | None, deadline_ms: int, now_ms: int) -> None:
        """Appends what was decided and responds when it is committed."""
        if outcome.records:
            error = self._append_and_replay(outcome, now_ms)
            if error is not None:
                pass_on(outcome, done, error, now_ms)
                return
        if outcome.records or outcome.response is not None or outcome.on_written is not None:
            self._release_or_wait(outcome, done, deadline_ms, now_ms)
        # Otherwise the machine responds by itself, and nothing here may end that by its deadline.

    def _write_internal(self, outcomes: list[Outcome], now_ms: int) -> None:
        """For what nobody asked for."""
        for outcome in outcomes:
            if self.state == ACTIVE:
                self.write(outcome, None, NEVER_MS, now_ms)

    def on_marker_written(self, producer_id: int, producer_epoch: int, committed: bool, end_offset: int) -> None:
        """A transaction marker went into this shard's partition: what was pending counts now, or never will."""
        self.written_end = end_offset
        self.machine.replay_end_transaction(producer_id, producer_epoch, committed)

    def _append_and_replay(self, outcome: Outcome, now_ms: int) -> KafkaError | None:
        self._writing = True
        try:
            if outcome.atomic:
                self._append_batch(outcome, outcome.records, now_ms)
            else:
                for records in self._in_batches(outcome.records):
                    self._append_batch(outcome, records, now_ms)
        except KafkaError as error:
            return error
        except Exception:
            # The record is in the log and its effect is not, or half of it.
            logger.exception("%s: cannot replay its own records; loading it again", self.name)
            if self.on_broken is not None:
                self.on_broken(self, now_ms)
            return KafkaError(errors.NOT_COORDINATOR)
        finally:
            self._writing = False
        return None

    def _append_batch(self, outcome: Outcome, records: list[StoredRecord], now_ms: int) -> None:
        builder = BatchBuilder(codec=self._codec)
        wall_ms = self.wall.at(now_ms)
        for key, value in records:
            builder.append(wall_ms, key, value)
        transactional = outcome.producer_id >= 0
        batch = builder.build(
            producer_id=outcome.producer_id,
            producer_epoch=outcome.producer_epoch,
            base_sequence=self.base_sequence,
            transactional=transactional,
        )
        self.written_end = self.log.append(batch, now_ms)
        if outcome.replay:
            # A batch has no gaps, so the offsets follow from its end.
            offset = self.written_end - len(records)
            machine = self.machine
            for key, value in records:
                machine.replay(key, value, offset, outcome.producer_id, outcome.producer_epoch)
                offset += 1

    def _in_batches(self, records: list[StoredRecord]) -> list[list[StoredRecord]]:
        """Records that need not be written together, in batches that the log takes."""
        size_max = self.log.batch_bytes_max() - BATCH_OVERHEAD
        batches: list[list[StoredRecord]] = [[]]
        size = 0
        for key, value in records:
            record_size = RECORD_OVERHEAD + len(key) + (0 if value is None else len(value))
            if batches[-1] and size + record_size > size_max:
                batches.append([])
                size = 0
            batches[-1].append((key, value))
            size += record_size
        return batches

    def _release_or_wait(self, outcome: Outcome, done: Done | None, deadline_ms: int, now_ms: int) -> None:
        end_offset = self.written_end
        high_watermark = self.log.high_watermark()
        if self._waiting:
            self._release_up_to(high_watermark, now_ms)
        if not self._waiting and end_offset <= high_watermark:
            pass_on(outcome, done, None, now_ms)
            return
        self._waiting.append(Waiting(outcome, done, end_offset, deadline_ms))
        self._watch()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self.log.watch(self._on_log_moved)

    def _on_log_moved(self, now_ms: int) -> None:
        self._watching = False
        if self.state != ACTIVE:
            return
        if not self._writing:
            # Otherwise a verb is between its decision and its replay, and looks itself when it is done.
            self.release_committed(now_ms)
        if self._waiting:
            self._watch()

    def release_committed(self, now_ms: int) -> None:
        self._release_up_to(self.log.high_watermark(), now_ms)

    def _release_up_to(self, high_watermark: int, now_ms: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0].end_offset <= high_watermark:
            waiting.popleft().finish(None, now_ms)

    # Time

    @property
    def is_waiting(self) -> bool:
        return len(self._waiting) > 0

    def next_ms(self) -> int:
        return min(self.timers.next_ms(), self._first_deadline_ms())

    def _first_deadline_ms(self) -> int:
        """Requests wait equally long, so the first that has a deadline is due first."""
        for entry in self._waiting:
            if entry.deadline_ms != NEVER_MS:
                return entry.deadline_ms
        return NEVER_MS

    def poll(self, now_ms: int) -> None:
        """Fires timers and gives up on those who waited too long; what they wrote may still be committed later."""
        while self.state == ACTIVE:
            timer = self.timers.take_due(now_ms)
            if timer is None:
                break
            self._fire(timer, now_ms)
        if self._first_deadline_ms() <= now_ms:
            self._give_up_on_late(now_ms)

    def _give_up_on_late(self, now_ms: int) -> None:
        late = [entry for entry in self._waiting if entry.deadline_ms <= now_ms]
        self._waiting = deque([entry for entry in self._waiting if entry.deadline_ms > now_ms])
        for entry in late:
            entry.finish(KafkaError(errors.REQUEST_TIMED_OUT), now_ms)

    def _fire(self, timer: Timer, now_ms: int) -> None:
        try:
            outcome = timer.action(now_ms)
        except Exception:
            # One group's trouble must not stop the timers of all others.
            logger.exception("unexpected error in timer %s of %s", timer.key, self.name)
            return
        if outcome is None:
            return
        if not outcome.records:
            self.write(outcome, None, NEVER_MS, now_ms)
            return
        error = self._append_and_replay(outcome, now_ms)
        if error is None:
            self._release_or_wait(outcome, None, NEVER_MS, now_ms)
            return
        pass_on(outcome, None, error, now_ms)
        if outcome.replay and self.state == ACTIVE and not self.timers.is_scheduled(timer.key):
            # What could not be written has changed nothing, so it is still due.
            logger.warning("%s: cannot write the records of timer %s: %s; trying again", self.name, timer.key, error)
            self.timers.schedule(timer.key, now_ms + RETRY_MS, timer.action)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        try:
            outcomes = self.machine.on_metadata(delta, image, now_ms)
        except Exception:
            logger.exception("unexpected error in %s while applying a metadata change", self.name)
            return
        self._write_internal(outcomes, now_ms)
