"""One shard of a coordinator: a partition of its topic, the state that was replayed from it, and who waits for it.

The order of things is always the same: decide, append, replay, release when committed. An append that fails has changed
nothing. An answer is held back until everything it may have seen is committed, also the answer of a verb that only
read: so no client ever sees what a failover could take back.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.coordinator.log import CoordinatorLog
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import NEVER_MS, Timer, Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.records.batch import BatchHeader, split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.walk import read_records

LOADING: Final = 0
ACTIVE: Final = 1
CLOSED: Final = 2
FAILED: Final = 3

RETRY_MS: Final = 500
END_TRANSACTION_KEYS: Final = {b"\x00\x00\x00\x00": False, b"\x00\x00\x00\x01": True}

logger = logging.getLogger("moldau.coordinator")

Done = Callable[[Message | KafkaError], None]


class Waiting:
    """An answer whose records, or those it has seen, are not committed yet."""

    def __init__(self, outcome: Outcome, done: Done | None, end_offset: int, deadline_ms: int) -> None:
        self.outcome = outcome
        self.done = done
        self.end_offset = end_offset
        self.deadline_ms = deadline_ms

    def finish(self, error: KafkaError | None, now_ms: int) -> None:
        outcome = self.outcome
        if outcome.on_written is not None:
            outcome.on_written(error, now_ms)
        if self.done is None:
            return
        if error is not None:
            self.done(error)
        elif outcome.response is not None:
            self.done(outcome.response)


class Shard:
    """See the module."""

    def __init__(
        self, name: str, leader_epoch: int, log: CoordinatorLog, machine: CoordinatorMachine, timers: Timers, codec: int
    ) -> None:
        self.name = name
        self.leader_epoch = leader_epoch
        self.machine = machine
        self.timers = timers
        self.state = LOADING
        self.written_end = 0
        self.loaded_records = 0
        self._log = log
        self._codec = codec
        self._load_position = -1
        self._waiting: deque[Waiting] = deque()
        self._watching = False

    # Loading

    def load_step(self, max_bytes: int) -> bool:
        """Replays the next part of the log; True when there is no more. The log end at that moment is the state."""
        if self._load_position < 0:
            self._load_position = self._log.start_offset()
        data = self._log.read(self._load_position, max_bytes)
        if data:
            self._replay_batches(data)
            return False
        self.written_end = self._log.end_offset()
        return True

    def _replay_batches(self, data: bytes) -> None:
        machine = self.machine
        for header in split_batches(data, 0, len(data)):
            if header.is_control:
                self._replay_marker(data, header)
            else:
                producer_id = int(header.producer_id) if header.is_transactional else -1
                producer_epoch = int(header.producer_epoch)
                for record in read_records(data, header):
                    if record.offset >= self._load_position and record.key is not None:
                        machine.replay(record.key, record.value, record.offset, producer_id, producer_epoch)
                        self.loaded_records += 1
            self._load_position = int(header.next_offset)

    def _replay_marker(self, data: bytes, header: BatchHeader) -> None:
        for record in read_records(data, header):
            committed = None if record.key is None else END_TRANSACTION_KEYS.get(record.key)
            if committed is not None:
                self.machine.replay_end_transaction(int(header.producer_id), int(header.producer_epoch), committed)

    def activate(self, image: MetadataImage, now_ms: int) -> None:
        """Everything is replayed: requests may come."""
        self.state = ACTIVE
        self.write_internal(self.machine.on_loaded(image, now_ms), now_ms)

    def close(self, now_ms: int) -> None:
        """Leadership is gone, or the broker stops: whoever waits must look for the coordinator again."""
        self.state = CLOSED
        self.timers.clear()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            entry.finish(KafkaError(errors.NOT_COORDINATOR), now_ms)
        self.machine.on_unloaded(now_ms)

    # Writing

    def write(self, outcome: Outcome, done: Done | None, deadline_ms: int, now_ms: int) -> None:
        """Appends what was decided and answers when it is committed."""
        if outcome.records:
            try:
                self.written_end = self._append(outcome, now_ms)
            except KafkaError as error:
                Waiting(outcome, done, -1, now_ms).finish(error, now_ms)
                return
            if outcome.replay:
                # The offset of the last record: a batch has no gaps, so the others follow from it.
                offset = self.written_end - len(outcome.records)
                for key, value in outcome.records:
                    self.machine.replay(key, value, offset, outcome.producer_id, outcome.producer_epoch)
                    offset += 1
        self._release_or_wait(outcome, done, deadline_ms, now_ms)

    def write_internal(self, outcome: Outcome | None, now_ms: int) -> None:
        """For what nobody asked for: timers, metadata."""
        if outcome is not None:
            self.write(outcome, None, NEVER_MS, now_ms)

    def on_marker_written(self, producer_id: int, producer_epoch: int, committed: bool, end_offset: int) -> None:
        """A transaction marker went into this shard's partition: what was pending counts now, or never will."""
        self.written_end = end_offset
        self.machine.replay_end_transaction(producer_id, producer_epoch, committed)

    def _append(self, outcome: Outcome, now_ms: int) -> int:
        builder = BatchBuilder(codec=self._codec)
        for key, value in outcome.records:
            builder.append(now_ms, key, value)
        transactional = outcome.producer_id >= 0
        batch = builder.build(outcome.producer_id, outcome.producer_epoch, base_sequence=0, transactional=transactional)
        if len(batch) > self._log.batch_bytes_max():
            raise KafkaError(
                errors.RECORD_LIST_TOO_LARGE,
                f"{len(outcome.records)} records of {self.name} make {len(batch)} bytes, more than a batch may have",
            )
        return self._log.append(batch, now_ms)

    def _release_or_wait(self, outcome: Outcome, done: Done | None, deadline_ms: int, now_ms: int) -> None:
        waiting = Waiting(outcome, done, self.written_end, deadline_ms)
        if not self._waiting and self.written_end <= self._log.high_watermark():
            waiting.finish(None, now_ms)
            return
        self._waiting.append(waiting)
        self._watch()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._log.watch(self._on_log_moved)

    def _on_log_moved(self, now_ms: int) -> None:
        self._watching = False
        if self.state == CLOSED:
            return
        self.release_committed(now_ms)
        if self._waiting:
            self._watch()

    def release_committed(self, now_ms: int) -> None:
        high_watermark = self._log.high_watermark()
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
        timer = self.timers.take_due(now_ms)
        while timer is not None and self.state == ACTIVE:
            self._fire(timer, now_ms)
            timer = self.timers.take_due(now_ms)
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
            logger.exception("the timer %s of %s failed", timer.key, self.name)
            return
        if outcome is None:
            return
        end_before = self.written_end
        self.write(outcome, None, NEVER_MS, now_ms)
        failed = len(outcome.records) > 0 and self.written_end == end_before
        if failed and outcome.replay and not self.timers.is_scheduled(timer.key):
            # Nothing has changed, so what was due is still due.
            logger.warning("%s could not write what was due (%s); trying again", self.name, timer.key)
            self.timers.schedule(timer.key, now_ms + RETRY_MS, timer.action)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        try:
            outcome = self.machine.on_metadata(delta, image, now_ms)
        except Exception:
            logger.exception("%s could not follow a change of the metadata", self.name)
            return
        self.write_internal(outcome, now_ms)
