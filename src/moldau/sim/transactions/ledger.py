"""Transactions as their producers know them, held against what is committed in the logs; one sentence per check.

Every record says which attempt wrote it, and so does every offset committed in a transaction. So each committed batch,
marker and state of a transactional id can be held against what its producer did, and against the other partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.coordinator.group.offset_records import OFFSET_TYPE, decode_offset_key, decode_offset_value
from moldau.coordinator.txn.records import decode_transaction, decode_transactional_id
from moldau.coordinator.txn.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    STATE_NAMES,
    Transaction,
)
from moldau.protocol.topic_names import GROUP_TOPIC, TRANSACTION_TOPIC
from moldau.records.batch import BatchHeader, read_header
from moldau.records.walk import read_records
from moldau.sim.cluster.committed_log import CommittedListener
from moldau.sim.kernel.world import Violation
from moldau.storage.control_markers import read_marker

if TYPE_CHECKING:
    from moldau.replication.partition import Partition
    from moldau.sim.kernel.host import Host
    from moldau.sim.transactions.world import TransactionWorld

COMMIT, ABORT = "commit", "abort"
SEPARATOR = b"/"

Place = tuple[str, int]
"""Topic and partition."""

FOLLOWERS_OF: dict[int, tuple[int, ...]] = {
    EMPTY: (EMPTY, ONGOING, PREPARE_ABORT),
    ONGOING: (ONGOING, PREPARE_COMMIT, PREPARE_ABORT),
    PREPARE_COMMIT: (COMPLETE_COMMIT,),
    PREPARE_ABORT: (COMPLETE_ABORT,),
    COMPLETE_COMMIT: (EMPTY, ONGOING, PREPARE_ABORT),
    COMPLETE_ABORT: (EMPTY, ONGOING, PREPARE_ABORT),
}
"""Which states of a transactional id may follow which in the log."""


class Attempt:
    """One transaction as its producer knows it."""

    def __init__(self, number: int, owner: str) -> None:
        self.number = number
        self.owner = owner
        self.sent: dict[Place, list[bytes]] = {}
        self.offsets: dict[Place, int] = {}
        # What the producer asked for, what it was told, and what the markers say.
        self.wanted = ""
        self.told = ""
        self.decided = ""
        self.found: dict[Place, list[bytes]] = {}
        self.found_offsets: dict[Place, int] = {}
        # Somebody who reads committed records only has seen it.
        self.was_read = False

    def value(self, place: Place, rest: bytes) -> bytes:
        """A new record of this attempt."""
        values = self.sent.setdefault(place, [])
        value = b"%d/%d/%s" % (self.number, len(values), rest)
        values.append(value)
        return value

    def __repr__(self) -> str:
        return (
            f"attempt {self.number} of {self.owner} (asked: {self.wanted or '-'}, told: {self.told or '-'},"
            f" decided: {self.decided or '-'})"
        )


class Opened:
    """A transaction that is open in one partition."""

    def __init__(self, first_offset: int, epoch: int, attempt: Attempt) -> None:
        self.first_offset = first_offset
        self.epoch = epoch
        self.attempt = attempt


class PlaceLedger:
    """What is committed in one partition."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.open: dict[int, Opened] = {}
        self.closed: set[int] = set()
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.records: list[tuple[int, Attempt, bytes]] = []

    @property
    def first_open(self) -> int | None:
        return min((opened.first_offset for opened in self.open.values()), default=None)


class Fence:
    """Somebody was told a producer epoch: nothing of an older one is written from here on."""

    def __init__(self, epoch: int, ends: dict[Place, int]) -> None:
        self.epoch = epoch
        self.ends = ends


class TransactionLedger(CommittedListener):
    def __init__(self, setting: TransactionWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.attempts: list[Attempt] = []
        self.places: dict[Place, PlaceLedger] = {}
        self.states: dict[str, Transaction] = {}
        self.decisions: set[tuple[int, int, bool]] = set()
        self.markers: dict[tuple[int, int, bool], str] = {}
        self.fences: dict[int, Fence] = {}
        self.handed_out: dict[tuple[int, int], str] = {}
        self._stable: dict[tuple[int, int, Place, int], int] = {}

    def begin(self, owner: str) -> Attempt:
        attempt = Attempt(len(self.attempts), owner)
        self.attempts.append(attempt)
        return attempt

    def attempt_of(self, value: bytes, where: str) -> Attempt:
        number = value.split(SEPARATOR, 1)[0]
        if not number.isdigit() or int(number) >= len(self.attempts):
            raise Violation(f"nothing is invented: {where} has {value[:40]!r}")
        return self.attempts[int(number)]

    # What producers are told

    def on_told(self, attempt: Attempt, how: str) -> None:
        attempt.told = how
        self.world.note(f"{attempt!r}")
        if attempt.decided and attempt.decided != how:
            raise Violation(f"a transaction ended as its producer was told: {attempt!r}")

    def on_epoch(self, owner: str, producer_id: int, epoch: int) -> None:
        """A producer was told under which epoch it writes from now on."""
        known = self.handed_out.setdefault((producer_id, epoch), owner)
        if known != owner:
            raise Violation(f"an epoch has one producer: {producer_id} epoch {epoch} is {known}'s and {owner}'s")

    def on_begun(self, producer_id: int, epoch: int) -> None:
        """InitProducerId gave a producer this epoch: whatever its predecessors left behind has ended."""
        fence = self.fences.get(producer_id)
        if fence is None or fence.epoch < epoch:
            self.fences[producer_id] = Fence(epoch, self.setting.log_ends())

    # What is committed

    def ledger_of(self, place: Place) -> PlaceLedger:
        found = self.places.get(place)
        if found is None:
            found = self.places[place] = PlaceLedger(place)
        return found

    def coordinator_epoch(self, place: Place, producer_id: int) -> int:
        """That of the last marker of this producer there; -1 without one."""
        return self.ledger_of(place).coordinator_epochs.get(producer_id, -1)

    def on_committed(self, topic: str, index: int, batch: bytes) -> None:
        header = read_header(batch, 0, len(batch))
        if topic == TRANSACTION_TOPIC:
            self._on_states(batch, header)
            return
        if header.producer_id < 0:
            return
        ledger = self.ledger_of((topic, index))
        marker = read_marker(batch, header)
        self._check_epoch(ledger, header)
        if marker is not None:
            ledger.coordinator_epochs[int(header.producer_id)] = marker.coordinator_epoch
            self._on_marker(ledger, header, marker.commit)
        elif topic == GROUP_TOPIC:
            self._on_offsets(ledger, batch, header)
        else:
            values = [record.value or b"" for record in read_records(batch, header)]
            self._on_values(ledger, header, values)

    def _check_epoch(self, ledger: PlaceLedger, header: BatchHeader) -> None:
        producer_id, epoch = int(header.producer_id), int(header.producer_epoch)
        where = f"{ledger.place[0]}-{ledger.place[1]} offset {header.base_offset}"
        if epoch < ledger.epochs.get(producer_id, -1):
            raise Violation(
                f"the epoch of a producer never goes back: {where} has epoch {epoch} of {producer_id} after"
                f" {ledger.epochs[producer_id]}"
            )
        ledger.epochs[producer_id] = epoch
        # A marker that came twice may also come late: it ends nothing then.
        if header.is_control and producer_id not in ledger.open:
            return
        fence = self.fences.get(producer_id)
        if fence is not None and epoch < fence.epoch and header.base_offset >= fence.ends.get(ledger.place, 0):
            raise Violation(
                f"nothing of an older epoch is written once a producer began: {producer_id} epoch {epoch} at {where},"
                f" {fence.epoch} was given when the log ended at {fence.ends.get(ledger.place, 0)}"
            )

    def _on_values(self, ledger: PlaceLedger, header: BatchHeader, values: list[bytes]) -> None:
        where = f"{ledger.place[0]}-{ledger.place[1]}"
        for index, value in enumerate(values):
            attempt = self._join(ledger, header, value)
            found = attempt.found.setdefault(ledger.place, [])
            expected = attempt.sent.get(ledger.place, [])
            if value in found:
                raise Violation(f"a record is there once: {where} has {value[:40]!r} again, {attempt!r}")
            if value not in expected:
                raise Violation(f"nothing is invented: {where} has {value[:40]!r}, {attempt!r}")
            if expected.index(value) != len(found):
                raise Violation(f"a producer's records are in its order: {where} has {value[:40]!r} too early")
            found.append(value)
            ledger.records.append((int(header.base_offset) + index, attempt, value))

    def _join(self, ledger: PlaceLedger, header: BatchHeader, value: bytes) -> Attempt:
        """The attempt of a record, which must be that of the transaction it lies in."""
        where = f"{ledger.place[0]}-{ledger.place[1]} offset {header.base_offset}"
        attempt = self.attempt_of(value, where)
        producer_id = int(header.producer_id)
        opened = ledger.open.get(producer_id)
        if opened is None:
            if attempt.number in ledger.closed:
                raise Violation(f"what comes after the end of a transaction is not written: {where}, {attempt!r}")
            ledger.open[producer_id] = Opened(int(header.base_offset), int(header.producer_epoch), attempt)
        elif opened.attempt is not attempt:
            raise Violation(f"a transaction has records of one attempt: {where} has {opened.attempt!r} and {attempt!r}")
        return attempt

    def _on_offsets(self, ledger: PlaceLedger, batch: bytes, header: BatchHeader) -> None:
        for record in read_records(batch, header):
            if record.key is None or record.value is None or int.from_bytes(record.key[:2], "big") != OFFSET_TYPE:
                continue
            _, topic, index = decode_offset_key(record.key)
            committed = decode_offset_value(record.value, int(record.offset))
            attempt = self._join(ledger, header, committed.metadata.encode())
            offset = int(committed.offset)
            if attempt.offsets.get((topic, index)) != offset:
                raise Violation(f"no offset is invented: {topic}-{index} at {offset}, {attempt!r}")
            attempt.found_offsets[topic, index] = offset

    # Markers

    def _on_marker(self, ledger: PlaceLedger, header: BatchHeader, commit: bool) -> None:
        producer_id = int(header.producer_id)
        where = f"{ledger.place[0]}-{ledger.place[1]} offset {header.base_offset}"
        self.markers.setdefault((producer_id, int(header.producer_epoch), commit), where)
        opened = ledger.open.pop(producer_id, None)
        if opened is not None:
            ledger.closed.add(opened.attempt.number)
            self.decide(opened.attempt, COMMIT if commit else ABORT, where)

    def decide(self, attempt: Attempt, how: str, where: str) -> None:
        if attempt.decided not in ("", how):
            raise Violation(f"a transaction ends the same way everywhere: {how} at {where}, {attempt!r}")
        if how == COMMIT and attempt.wanted != COMMIT:
            raise Violation(f"only what a producer asked to commit is committed: {where}, {attempt!r}")
        if how == ABORT and attempt.was_read:
            raise Violation(f"no aborted record is read: aborted at {where}, {attempt!r}")
        attempt.decided = how
        if attempt.told not in ("", how):
            raise Violation(f"a transaction ended as its producer was told: {how} at {where}, {attempt!r}")

    # Transactional ids

    def _on_states(self, batch: bytes, header: BatchHeader) -> None:
        for record in read_records(batch, header):
            transactional_id = None if record.key is None else decode_transactional_id(record.key)
            if transactional_id is None:
                continue
            if record.value is None:
                self.states.pop(transactional_id, None)
                continue
            self._on_state(decode_transaction(transactional_id, record.value), int(record.offset))

    def _on_state(self, now: Transaction, offset: int) -> None:
        before = self.states.get(now.transactional_id)
        self.states[now.transactional_id] = now
        self.world.note(
            f"{now.transactional_id} is {STATE_NAMES[now.state]} with {now.producer_id} epoch {now.epoch}"
            f" {sorted(now.partitions)}"
        )
        if now.is_preparing:
            self.decisions.add((now.producer_id, now.epoch, now.state == PREPARE_COMMIT))
        if before is None:
            return
        name = f"{now.transactional_id} at {offset}"
        if now.state not in FOLLOWERS_OF[before.state]:
            raise Violation(
                f"a decision never changes: {name} is {STATE_NAMES[now.state]} after {STATE_NAMES[before.state]}"
            )
        if now.producer_id == before.producer_id and now.epoch < before.epoch:
            raise Violation(f"the epoch of a producer never goes back: {name}, {now.epoch} after {before.epoch}")
        is_same_transaction = before.state == ONGOING or before.is_preparing
        if is_same_transaction and now.state in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT):
            missing = before.partitions - now.partitions
            if missing:
                raise Violation(f"a partition stays in its transaction: {name} has lost {sorted(missing)}")

    # Last stable offsets

    def on_partition(self, host: Host, partition: Partition) -> None:
        """A leader was looked at."""
        log = partition.log
        if log is None or not partition.is_leader:
            return
        stable = partition.last_stable_offset(log)
        place = (partition.topic, partition.index)
        where = f"{place[0]}-{place[1]} at broker {host.host_id}"
        key = (host.host_id, host.lives, place, partition.led_since_epoch)
        if stable < self._stable.get(key, 0):
            raise Violation(f"the last stable offset never goes back: {where}, {stable} after {self._stable[key]}")
        self._stable[key] = stable
        if stable > partition.high_watermark.offset:
            raise Violation(f"the last stable offset is not above the high watermark: {where}, {stable}")
        ledger = self.places.get(place)
        first_open = None if ledger is None else ledger.first_open
        if first_open is not None and stable > first_open:
            raise Violation(
                f"the last stable offset does not pass an open transaction: {where} is at {stable}, open since"
                f" {first_open}"
            )

    # The end

    def undecided(self) -> str:
        """A transactional id that has something open; empty for none."""
        for transactional_id, state in self.states.items():
            if state.state == ONGOING or state.is_preparing:
                return f"{transactional_id} is {STATE_NAMES[state.state]}"
        return ""

    def check_end(self) -> None:
        """Everything is decided, and nothing is half there."""
        for ledger in self.places.values():
            for producer_id, opened in ledger.open.items():
                raise Violation(f"no transaction stays open: {producer_id} in {ledger.place}, {opened.attempt!r}")
        if self.undecided():
            raise Violation(f"no transaction stays open: {self.undecided()}")
        for decision, where in self.markers.items():
            if decision not in self.decisions:
                raise Violation(f"a marker says what was decided: {decision} at {where}")
        for attempt in self.attempts:
            self._check_attempt(attempt)

    def _check_attempt(self, attempt: Attempt) -> None:
        if attempt.told == COMMIT and attempt.decided != COMMIT and (attempt.sent or attempt.offsets):
            raise Violation(f"what a producer was told to be committed is committed: {attempt!r}")
        if attempt.decided == COMMIT:
            if attempt.found != attempt.sent:
                raise Violation(
                    f"a transaction is there as a whole: {attempt!r} sent {attempt.sent}, {attempt.found} is there"
                )
            if attempt.found_offsets != attempt.offsets:
                raise Violation(
                    f"offsets are committed with their transaction: {attempt!r} sent {attempt.offsets},"
                    f" {attempt.found_offsets} is there"
                )

    def committed_values(self, place: Place, start: int = 0, end: int | None = None) -> list[tuple[int, bytes]]:
        """Offsets and values that a reader of committed records sees there."""
        ledger = self.ledger_of(place)
        return [
            (offset, value)
            for offset, attempt, value in ledger.records
            if attempt.decided == COMMIT and offset >= start and (end is None or offset < end)
        ]

    def committed_offset(self, place: Place) -> int:
        """What the group that reads this partition has committed; -1 for nothing."""
        found = [one.offsets[place] for one in self.attempts if one.decided == COMMIT and place in one.offsets]
        return max(found, default=-1)
