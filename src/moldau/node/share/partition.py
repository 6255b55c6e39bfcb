"""One share partition at its leader: loads its state, hands out records, has changes stored, gives locks back.

LOADING until the share coordinator has told the state; then ACTIVE; CLOSED for good when leadership, the group's state
or the topic is gone, and with it all locks. Whoever waits for records is called in the order of coming, and only as
long as there is something to have: a thousand members that wait cost no more than one. Kafka: SharePartition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import islice
from typing import Final

from moldau.config.definitions import duration_ms
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.metadata.image import MetadataImage
from moldau.node.share.acknowledgement import (
    Acknowledgement,
    Change,
    Letters,
    acknowledge,
    archive_aborted,
    archive_dead_letters,
    expire_locks,
    finish,
    letters_due,
    mark_stored,
    release,
    unstored_letters,
)
from moldau.node.share.acquisition import AcquiredRecords, Acquisition
from moldau.node.share.reads import ShareRead, read_batches
from moldau.node.share.record_states import ARCHIVING
from moldau.node.share.settings import ShareSettings
from moldau.node.share.state_messages import READ, WRITE
from moldau.node.share.states import ShareStates, StateQuestion
from moldau.node.share.window import DamagedState, Limits, StateBatch, Window
from moldau.node.waiting import TimedWaiter
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import read_share_group_state_request as read_request
from moldau.protocol.messages import read_share_group_state_response as read_response
from moldau.protocol.messages import write_share_group_state_request as write_request
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import FileRecords
from moldau.replication.partition import NO_EPOCH, Partition
from moldau.replication.waiter import PartitionWaiter

LOADING: Final = 0
ACTIVE: Final = 1
CLOSED: Final = 2

# What a share coordinator may say, and what that means to a member.
STATE_ERRORS: Final = {
    errors.NOT_COORDINATOR: errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_NOT_AVAILABLE: errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NETWORK_EXCEPTION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.KAFKA_STORAGE_ERROR: errors.COORDINATOR_NOT_AVAILABLE,
    errors.GROUP_ID_NOT_FOUND: errors.GROUP_ID_NOT_FOUND,
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_LEADER_OR_FOLLOWER,
    errors.FENCED_LEADER_EPOCH: errors.NOT_LEADER_OR_FOLLOWER,
    errors.FENCED_STATE_EPOCH: errors.NOT_LEADER_OR_FOLLOWER,
}
# After these the state here is not the one that is stored: it must be loaded anew, here or elsewhere.
FATAL: Final = frozenset({errors.NOT_LEADER_OR_FOLLOWER, errors.GROUP_ID_NOT_FOUND, errors.UNKNOWN_TOPIC_OR_PARTITION})
UNSATISFIED_MAX: Final = 8
NO_OFFSET: Final = -1

log = logging.getLogger("moldau.node")

Stored = Callable[[KafkaError | None, int], None]
"""Called when a change is stored (None) or cannot be (the error), and `now_ms`."""


OnLetters = Callable[["SharePartition", bool, int], None]
"""Called with the share partition, whether it is to wait a while because something failed, and `now_ms`."""


def as_member_sees(error: KafkaError) -> KafkaError:
    code = STATE_ERRORS.get(error.code, errors.UNKNOWN_SERVER_ERROR)
    return error if code == error.code else KafkaError(code)


class Watcher(PartitionWaiter):
    """Told by the partition that it moved: one for all who wait for the share partition."""

    def __init__(self, owner: SharePartition) -> None:
        super().__init__()
        self._owner = owner

    def on_partition_moved(self, now_ms: int) -> None:
        self.finished = True
        self._owner.on_partition_moved(now_ms)


class RecordsWaiter(TimedWaiter):
    """A fetch that waits for records of share partitions."""

    def maybe_respond(self, now_ms: int) -> bool:
        raise NotImplementedError

    def on_partition_moved(self, now_ms: int) -> None:
        """Told by share partitions, not by partitions."""
        raise NotImplementedError


class PendingWrite:
    """What is to be stored, and who waits for it."""

    __slots__ = ("batches", "stored")

    def __init__(self, batches: list[StateBatch], stored: Stored) -> None:
        self.batches = batches
        self.stored = stored


class SharePartition:
    """See the module. `on_closed` is told once; `on_lock` when a lock may be the next to run out; `on_letters` when
    records wait for their dead letters."""

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        states: ShareStates,
        on_closed: Callable[[SharePartition], None],
        on_lock: Callable[[int], None],
        on_letters: OnLetters,
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = LOADING
        self.failure: KafkaError | None = None
        self.window = Window(0)
        self.state_epoch = 0
        # In the order of their coming.
        self.waiting: dict[RecordsWaiter, None] = {}
        self.is_unused = False
        """No session of the group is here any more."""
        self.limits = Limits()
        self.isolation = 0
        self.offset_reset = "latest"
        self.timeouts_total = 0
        self.asked_ms = 0
        """When the state was asked for."""
        self.on_loaded: Callable[[int], None] | None = None
        """Told how long that took."""
        self._states = states
        self._on_closed = on_closed
        self._on_lock = on_lock
        self._on_letters = on_letters
        self._watcher: Watcher | None = None
        self._writing: list[PendingWrite] = []
        self._to_write: list[PendingWrite] = []
        self._serving = False
        self._bytes_per_record = 0.0  # of what was last read, with the batches around it

    def configure(self, settings: ShareSettings, image: MetadataImage) -> None:
        """What the group's settings say now; they hold from the next use on."""
        group_id = self.key[0]
        self.limits = settings.limits_of(image, group_id)
        self.isolation = settings.isolation_of(image, group_id)
        self.offset_reset = settings.offset_reset_of(image, group_id)

    # Loading and losing it

    def load(self, now_ms: int) -> None:
        self.asked_ms = now_ms
        row = read_request.PartitionData(self.key[2], self.leader_epoch)
        self._states.ask(StateQuestion(READ, self.key, row, self._on_state), now_ms)

    def _on_state(self, result: Message | KafkaError, now_ms: int) -> None:
        if self.state != LOADING:
            return
        try:
            if isinstance(result, KafkaError):
                raise as_member_sees(result)
            assert isinstance(result, read_response.PartitionResult)
            self._take_state(result, now_ms)
        except KafkaError as error:
            self.close(error, now_ms)
            return
        except DamagedState as damaged:
            log.error("the stored share group state of %s is invalid: %s", self, damaged)
            self.close(KafkaError(errors.UNKNOWN_SERVER_ERROR), now_ms)
            return
        self.state = ACTIVE
        if self.on_loaded is not None:
            self.on_loaded(now_ms - self.asked_ms)
        self._announce_letters(now_ms)
        self.serve(now_ms)

    def _take_state(self, stored: read_response.PartitionResult, now_ms: int) -> None:
        start = stored.start_offset if stored.start_offset != NO_OFFSET else self._first_offset(now_ms)
        window = Window(start)
        window.load(
            [
                StateBatch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count)
                for row in stored.state_batches
            ]
        )
        self.window = window
        self.state_epoch = stored.state_epoch

    def _first_offset(self, now_ms: int) -> int:
        """Where a group begins that has no state of its own yet."""
        partition = self.partition
        log_of_partition = partition.check_leader(self.leader_epoch)
        if self.offset_reset == "earliest":
            return log_of_partition.log_start_offset
        if self.offset_reset == "latest":
            return partition.high_watermark.offset
        since_ms = log_of_partition.wall.at(now_ms) - duration_ms(self.offset_reset.partition(":")[2])
        found = partition.find_offset(since_ms, 0, self.leader_epoch, -1)
        if found.offset < 0:
            raise KafkaError(errors.OFFSET_NOT_AVAILABLE)
        return found.offset

    def close(self, error: KafkaError, now_ms: int) -> None:
        """Forgets everything: the next one to lead, or to be asked, begins with what is stored."""
        if self.state == CLOSED:
            return
        self.state = CLOSED
        self.failure = error
        pending, self._writing, self._to_write = self._writing + self._to_write, [], []
        self._on_closed(self)
        for write in pending:
            write.stored(error, now_ms)
        waiting, self.waiting = self.waiting, {}
        for waiter in waiting:
            if not waiter.finished and waiter.maybe_respond(now_ms):
                waiter.finished = True

    def is_current(self) -> bool:
        """Whether this broker still leads the partition, in the epoch that this was loaded in."""
        return self.partition.is_leader and self.partition.leader_epoch == self.leader_epoch

    @property
    def is_idle(self) -> bool:
        """Nothing is being stored, nobody waits, nobody holds anything, every dead letter is written."""
        return self._is_left_alone and self.window.archiving == 0

    @property
    def _is_left_alone(self) -> bool:
        return not self._writing and not self._to_write and not self.waiting and self.window.acquired == 0

    @property
    def is_kept_for_letters(self) -> bool:
        """Nobody needs it but the dead letters that are on their way."""
        return self.is_unused and self._is_left_alone

    def retire_if_unused(self, now_ms: int) -> None:
        """Memory is not kept for groups that are gone, nor what may be altered behind its back."""
        if self.is_unused and self.is_idle:
            self.close(KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION), now_ms)

    # Fetching

    def may_have_records(self) -> bool:
        """Whether a fetch might get something now."""
        if self.state != ACTIVE or not self.is_current():
            return self.state == CLOSED
        window = self.window
        offset = window.next_fetch_offset()
        if window.batches and offset > window.end_offset and window.size >= self.limits.locks_max:
            return False
        return offset < self._bound()

    def _bound(self) -> int:
        partition = self.partition
        if self.isolation and partition.log is not None:
            return partition.last_stable_offset(partition.log)
        return partition.high_watermark.offset

    def available_bytes(self, max_bytes: int) -> int:
        """How much a fetch could read now, roughly; raises what the fetch would get in its response."""
        read = self._read(max_bytes, 0)
        return 0 if read is None else read.size

    def _read(self, max_bytes: int, now_ms: int) -> ShareRead | None:
        partition, window = self.partition, self.window
        log_start = partition.check_leader(self.leader_epoch).log_start_offset
        if window.next_fetch_offset() < log_start:
            window.start_at_least(log_start)  # what was deleted from the log is done with
        offset = max(window.next_fetch_offset(), log_start)
        if window.batches and offset > window.end_offset and window.size >= self.limits.locks_max:
            return None
        try:
            found = partition.read(offset, max_bytes, True, self.isolation, self.leader_epoch, NO_EPOCH)
        except KafkaError as error:
            if error.code != errors.OFFSET_OUT_OF_RANGE:
                raise
            return None  # the log ends earlier than it did, and gives nothing yet
        if not isinstance(found.records, FileRecords) or found.records.size == 0:
            return None
        return ShareRead(offset, found.records, found.aborted or [])

    def acquire(
        self, member_id: str, max_bytes: int, records_max: int, batch_records: int, by_record: bool, now_ms: int
    ) -> tuple[ShareRead, list[AcquiredRecords]] | None:
        """Records for a member, with what was read of the log; None if there are none to have now."""
        read = self._read(max_bytes, now_ms)
        if read is None:
            return None
        # What is in flight may lie between the first record that can be had and those that nobody has had yet.
        in_flight = max(0, self.window.end_offset - read.offset + 1) if self.window.batches else 0
        offsets = records_max + in_flight
        read_batches(read, self.partition, offsets, int(offsets * self._bytes_per_record))
        if read.ranges:
            self._bytes_per_record = len(read.data) / (read.ranges[-1][1] - read.ranges[0][0] + 1)
        acquisition = Acquisition(self.window, member_id, self.limits, records_max, by_record, now_ms)
        acquired = acquisition.acquire(read.offset, read.ranges, batch_records)
        if read.aborted_ranges:
            archive_aborted(self.window, read.aborted_ranges)
            acquired = without(acquired, read.aborted_ranges)
        if not acquired:
            return None
        self._on_lock(self.window.next_lock_ms())
        read.keep(acquired[0].first, acquired[-1].last)
        return read, acquired

    # Waiting

    def wait(self, waiter: RecordsWaiter) -> None:
        self.waiting[waiter] = None
        self._watch()

    def _watch(self) -> None:
        if self._watcher is None and self.state != CLOSED:
            self._watcher = Watcher(self)
            self.partition.waiters.append(self._watcher)

    def on_partition_moved(self, now_ms: int) -> None:
        self._watcher = None
        if self.state == CLOSED:
            return
        if not self.is_current():
            self.close(KafkaError(errors.NOT_LEADER_OR_FOLLOWER), now_ms)
            return
        self.serve(now_ms)

    def serve(self, now_ms: int) -> None:
        """Lets those who wait have what there is, in the order in which they came."""
        if self._serving:
            return
        self._serving = True
        unsatisfied = 0
        try:
            while unsatisfied < UNSATISFIED_MAX and self.may_have_records():
                waiter = next(islice(self.waiting, unsatisfied, None), None)
                if waiter is None:
                    break
                if waiter.finished or waiter.maybe_respond(now_ms):
                    waiter.finished = True
                    self.waiting.pop(waiter, None)
                else:
                    unsatisfied += 1
        finally:
            self._serving = False
        if self.waiting:
            self._watch()

    def wait_no_more(self, waiter: RecordsWaiter) -> None:
        self.waiting.pop(waiter, None)

    # Acknowledging

    def acknowledge(self, member_id: str, entries: list[Acknowledgement], stored: Stored, now_ms: int) -> None:
        """Raises KafkaError when the acknowledgements are not right; else `stored` hears how it went."""
        change = acknowledge(self.window, member_id, entries, self.limits, now_ms)
        if change.renewed:
            self._on_lock(self.window.next_lock_ms())
        self._store(change, stored, now_ms)

    def release(self, member_id: str, now_ms: int) -> None:
        """The member is gone."""
        if self.state == ACTIVE:
            self._store(release(self.window, member_id, self.limits), nobody, now_ms)

    def _store(self, change: Change, stored: Stored, now_ms: int) -> None:
        if change.is_empty:
            stored(None, now_ms)
            return
        self._write(change.batches, StoredChange(self, change, stored).done, now_ms)

    def on_change_stored(self, change: Change, stored: Stored, error: KafkaError | None, now_ms: int) -> None:
        if self.state == ACTIVE:
            expired = finish(self.window, change, error is None, self.limits, now_ms)
            if expired:
                self._store_expired(expired, now_ms)
        stored(error, now_ms)
        if self.state == ACTIVE:
            self._announce_letters(now_ms)
            self.serve(now_ms)

    def expire_locks(self, now_ms: int) -> None:
        if self.state != ACTIVE or self.window.next_lock_ms() > now_ms:
            return
        expired = expire_locks(self.window, self.limits, now_ms)
        if expired:
            self.timeouts_total += sum([batch.last - batch.first + 1 for batch in expired])
            self._store_expired(expired, now_ms)
            self.serve(now_ms)

    def _store_expired(self, expired: list[StateBatch], now_ms: int) -> None:
        letters = [batch for batch in expired if batch.state == ARCHIVING]
        self._write(expired, StoredLetters(self, letters).done if letters else nobody, now_ms)

    # Dead letters

    def _announce_letters(self, now_ms: int) -> None:
        if self.window.archiving > 0:
            self._on_letters(self, False, now_ms)

    def on_letters_stored(self, letters: list[StateBatch], error: KafkaError | None, now_ms: int) -> None:
        """A record that might be delivered again must not have a dead letter: that it is ARCHIVING is stored first."""
        if self.state != ACTIVE:
            return
        if error is None:
            mark_stored(self.window, letters)
        self._on_letters(self, error is not None, now_ms)

    def store_letters_again(self, now_ms: int) -> None:
        """What could not be stored before, unless it is being stored now."""
        if not self._writing and not self._to_write:
            letters = unstored_letters(self.window)
            if letters:
                self._write(letters, StoredLetters(self, letters).done, now_ms)

    def letters_due(self, records_max: int) -> list[Letters]:
        return letters_due(self.window, self.limits, records_max)

    def archive_letters(self, letters: list[Letters], now_ms: int) -> int:
        """They are written, or never will be; how many there were. That is stored afterwards: if it never is, another
        leader writes them again."""
        stored: list[StateBatch] = []
        for one in letters:
            stored += archive_dead_letters(self.window, one.first, one.last)
        if stored:
            self._write(stored, nobody, now_ms)
            self.serve(now_ms)
        return sum([batch.last - batch.first + 1 for batch in stored])

    # Storing

    def _write(self, batches: list[StateBatch], stored: Stored, now_ms: int) -> None:
        """One write at a time: what comes while it is under way is written together."""
        self._to_write.append(PendingWrite(batches, stored))
        if not self._writing:
            self._write_next(now_ms)

    def _write_next(self, now_ms: int) -> None:
        self._writing, self._to_write = self._to_write, []
        rows = [
            write_request.StateBatch(batch.first, batch.last, batch.state, batch.count)
            for write in self._writing
            for batch in write.batches
        ]
        row = write_request.PartitionData(
            self.key[2],
            self.state_epoch,
            self.leader_epoch,
            self.window.start_offset,
            self.window.complete_count(),
            rows,
        )
        self._states.ask(StateQuestion(WRITE, self.key, row, self._on_written), now_ms)

    def _on_written(self, result: Message | KafkaError, now_ms: int) -> None:
        written, self._writing = self._writing, []
        if self.state == CLOSED:
            return
        error = as_member_sees(result) if isinstance(result, KafkaError) else None
        for write in written:
            write.stored(error, now_ms)
        if error is not None:
            log.warning("cannot write the share group state of %s: %s", self, result)
            # INVALID_REQUEST: the state was deleted, with its group.
            if error.code in FATAL or (isinstance(result, KafkaError) and result.code == errors.INVALID_REQUEST):
                self.close(error, now_ms)
                return
        if self._to_write and not self._writing:
            self._write_next(now_ms)
        self.retire_if_unused(now_ms)

    def __repr__(self) -> str:
        return f"share partition {self.key[0]}:{self.partition.topic}-{self.key[2]}"


class StoredChange:
    """A change on its way to the share coordinator."""

    __slots__ = ("_change", "_owner", "_stored")

    def __init__(self, owner: SharePartition, change: Change, stored: Stored) -> None:
        self._owner = owner
        self._change = change
        self._stored = stored

    def done(self, error: KafkaError | None, now_ms: int) -> None:
        self._owner.on_change_stored(self._change, self._stored, error, now_ms)


class StoredLetters:
    """Records that are ARCHIVING, on their way to the share coordinator."""

    __slots__ = ("_letters", "_owner")

    def __init__(self, owner: SharePartition, letters: list[StateBatch]) -> None:
        self._owner = owner
        self._letters = letters

    def done(self, error: KafkaError | None, now_ms: int) -> None:
        self._owner.on_letters_stored(self._letters, error, now_ms)


def nobody(error: KafkaError | None, now_ms: int) -> None:
    """For changes that nobody waits for."""


def without(acquired: list[AcquiredRecords], ranges: list[tuple[int, int]]) -> list[AcquiredRecords]:
    """What is left of them when these offsets are taken out."""
    left = acquired
    for first, last in ranges:
        kept: list[AcquiredRecords] = []
        for one in left:
            if one.last < first or one.first > last:
                kept.append(one)
                continue
            if one.first < first:
                kept.append(AcquiredRecords(one.first, first - 1, one.count))
            if one.last > last:
                kept.append(AcquiredRecords(last + 1, one.last, one.count))
        left = kept
    return left
