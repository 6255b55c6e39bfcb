"""A compacted log on the simulated disk, held against a simple model after every run and at every crash.

The model remembers everything that was ever appended. What must hold: a later read is a subsequence of what was
appended, unchanged; the last value of every key is there; a tombstone stays for its time; nothing older comes back;
nothing of an open transaction and nothing in the active segment goes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from moldau.config.log_config import LogConfig
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.batch import BatchHeader, check_crc, split_batches
from moldau.records.builder import BatchBuilder, end_transaction_batch
from moldau.records.walk import read_records
from moldau.sim.disk import SimDisk, SimulatedCrash
from moldau.sim.world import Violation
from moldau.storage.compaction.cleaner import CleanerSettings, CompactionWorkers, Done, LogCleaner
from moldau.storage.compaction.compact import compact
from moldau.storage.compaction.task import CompactionTask
from moldau.storage.disk import File
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from moldau.storage.validation import COORDINATOR

DATA = "data"
TOPIC = "compacted"
TOPIC_ID = bytes(range(16))
START_MS = 1_700_000_000_000
PRODUCERS = 3


class Appended:
    """One record as it went in."""

    __slots__ = ("aborted", "key", "offset", "timestamp", "value")

    def __init__(self, offset: int, key: bytes, value: bytes | None, timestamp: int) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.aborted = False


class InlineWorkers(CompactionWorkers):
    """Runs a task at once, on the same disk."""

    def __init__(self, world: CompactionWorld) -> None:
        self.world = world

    def submit(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        result = compact(self.world.disk, task, lambda count: None)
        self.world.before_swap()
        done(result)

    def cancel(self, task: CompactionTask) -> None:
        """It is over before anybody could."""


class CompactionWorld:
    """One log, one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.later: list[Callable[[], None]] = []
        self.disk = SimDisk(seed, lambda delay_ms, action: self.later.append(action))
        self.now_ms = START_MS
        self.keys = self.rng.randint(1, 30)
        self.model: list[Appended] = []
        self.by_offset: dict[int, Appended] = {}
        self.runs = 0
        self.crashes = 0
        # The time of the first run that has seen a tombstone; before that plus the retention it may not go.
        self.seen_ms: dict[int, int] = {}
        self.sequences: dict[int, int] = {}
        self.open: dict[int, list[Appended]] = {}
        self.crash_in_swap = 0
        self.config = LogConfig(
            segment_bytes=self.rng.choice((400, 900, 3000)),
            index_interval_bytes=self.rng.choice((1, 100, 4096)),
            compact=True,
            delete=False,
            delete_retention_ms=self.rng.choice((0, 5_000, 60_000)),
            min_cleanable_dirty_ratio=0.0,
            min_compaction_lag_ms=self.rng.choice((0, 0, 3_000)),
            file_delete_delay_ms=self.rng.choice((0, 1000)),
        )
        self.codec = self.rng.choice((0, 0, 1, 2, 3, 4))
        self.disk.make_directory(DATA)
        self.disk.sync_directory("")
        self._open(first=True)

    @property
    def log(self) -> Log:
        return self.logs.logs[(TOPIC, 0)]

    def _open(self, first: bool = False) -> None:
        self.logs = LogManager(self.disk, [DATA], lambda topic: self.config)
        self.logs.load(self.now_ms)
        if first:
            self.logs.create(TOPIC, 0, TOPIC_ID, self.now_ms)
        settings = CleanerSettings(backoff_ms=1, dedupe_buffer_bytes=self.rng.choice((1 << 20, 4800)))
        self.cleaner = LogCleaner(
            self.logs, InlineWorkers(self), settings, lambda log: log.log_end_offset, lambda: self.now_ms
        )

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            for _ in range(self.rng.randint(1, 40)):
                self._append_something()
            self.now_ms += self.rng.choice((0, 10, 2_000, 70_000))
            self._compact()
            self.check()
            if self.rng.random() < 0.15:
                self._restart()
                self.check()

    # The workload

    def _append_something(self) -> None:
        self.now_ms += self.rng.randint(0, 200)
        while self.later and self.rng.random() < 0.5:
            self.later.pop(0)()
        choice = self.rng.random()
        if choice < 0.55:
            self._append_batch(-1)
        elif choice < 0.85:
            self._append_batch(self.rng.randint(1, PRODUCERS))
        elif self.open:
            self._end_transaction(self.rng.choice(sorted(self.open)), self.rng.random() < 0.5)

    def _append_batch(self, producer_id: int) -> None:
        builder = BatchBuilder(codec=self.codec)
        transactional = producer_id >= 0 and producer_id != PRODUCERS
        added = []
        for _ in range(self.rng.randint(1, 5)):
            key = b"key-%d" % self.rng.randrange(self.keys)
            value = None if self.rng.random() < 0.2 else self.rng.randbytes(self.rng.randint(0, 40))
            timestamp = self.now_ms - self.rng.randint(0, 50)
            builder.append(timestamp, key, value)
            added.append(Appended(-1, key, value, timestamp))
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        epoch = 0 if producer_id >= 0 else -1
        data = builder.build(producer_id, epoch, sequence, transactional=transactional)
        result = self.log.append_as_leader(MemoryRecords(data), 0, self.now_ms)
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(added)
        for number, appended in enumerate(added):
            appended.offset = result.first_offset + number
            self.model.append(appended)
            self.by_offset[appended.offset] = appended
        if transactional:
            self.open.setdefault(producer_id, []).extend(added)

    def _end_transaction(self, producer_id: int, commit: bool) -> None:
        data = end_transaction_batch(0, -1, self.now_ms, producer_id, 0, commit, 0)
        self.log.append_as_leader(MemoryRecords(data), 0, self.now_ms, COORDINATOR)
        for appended in self.open.pop(producer_id):
            appended.aborted = not commit

    # Compaction and crashes

    def before_swap(self) -> None:
        """Called when the cleaned files are there and nothing was renamed yet."""
        if self.crash_in_swap > 0:
            self.disk.crash_after(self.crash_in_swap)

    def _compact(self) -> None:
        dirty_to = self.log.active.base_offset
        self.crash_in_swap = self.rng.randint(1, 25) if self.rng.random() < 0.3 else 0
        if self.rng.random() < 0.8:
            # What was never synced may be lost, here and in the model; that is not what this world is about.
            self.log.flush()
        if self.rng.random() < 0.1:
            self.disk.crash_after(self.rng.randint(1, 30))
        flushed = self.log.recovery_point == self.log.log_end_offset
        try:
            self.now_ms += 1
            self.cleaner.poll(self.now_ms)
            self.log.housekeeping(self.now_ms)
            self.disk.crash_after(0)
            self.runs += 1
            if self.cleaner.uncleanable:
                raise Violation(f"a sound log can be compacted: {self.cleaner.uncleanable}")
        except SimulatedCrash:
            self.crashes += 1
            if flushed:
                self.disk.power_loss(self.rng)
            else:
                self.disk.process_crash()
            self.later.clear()
            self._open()
        for appended in self.model:
            if appended.value is None and appended.offset < dirty_to:
                self.seen_ms.setdefault(appended.offset, self.now_ms)

    def _restart(self) -> None:
        while self.later:
            self.later.pop(0)()
        self.logs.shutdown(self.now_ms)
        self._open()

    # What must hold

    def read(self) -> list[tuple[int, bytes, bytes | None, int]]:
        """Everything in the log, read from its start as a consumer does."""
        found: list[tuple[int, bytes, bytes | None, int]] = []
        log = self.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            records = log.read(offset, 1 << 20, log.log_end_offset, True).records
            if records is None:
                break
            assert isinstance(records, FileRecords)
            file = records.file
            assert isinstance(file, File)
            data = file.read(records.position, records.size)
            for header in split_batches(data, 0, len(data)):
                if not check_crc(data, header):
                    raise Violation(f"every batch has its checksum (offset {header.base_offset})")
                found.extend(self._records(data, header, offset))
                offset = int(header.last_offset) + 1
        return found

    def _records(self, data: bytes, header: BatchHeader, offset: int) -> list[tuple[int, bytes, bytes | None, int]]:
        if header.is_control:
            return []
        records = read_records(data, header)
        if any(record.timestamp > header.max_timestamp for record in records):
            raise Violation(f"no record is younger than its batch says (offset {header.base_offset})")
        return [
            (record.offset, record.key or b"", record.value, record.timestamp)
            for record in records
            if record.offset >= offset
        ]

    def check(self) -> None:
        found = self.read()
        offsets = [entry[0] for entry in found]
        if offsets != sorted(set(offsets)):
            raise Violation("offsets rise")
        for offset, key, value, timestamp in found:
            appended = self.by_offset.get(offset)
            if appended is None or (appended.key, appended.value, appended.timestamp) != (key, value, timestamp):
                raise Violation(f"the record at {offset} is what was appended there")
        self._check_last_values({entry[0] for entry in found})
        self._check_lookups(offsets)

    def _check_last_values(self, offsets: set[int]) -> None:
        undecided = {appended.offset for batch in self.open.values() for appended in batch}
        last: dict[bytes, Appended] = {}
        for appended in self.model:
            if not appended.aborted and appended.offset not in undecided:
                last[appended.key] = appended
        for appended in self.model:
            if appended.offset in undecided and appended.offset not in offsets:
                raise Violation(f"nothing of an open transaction goes ({appended.offset})")
            if appended.offset >= self.log.active.base_offset and appended.offset not in offsets:
                raise Violation(f"the active segment is not touched ({appended.offset})")
        for key, appended in last.items():
            if appended.offset in offsets:
                continue
            if appended.value is not None:
                raise Violation(f"the last value of {key!r} at {appended.offset} is there")
            seen = self.seen_ms.get(appended.offset)
            if seen is None or self.now_ms < seen + self.config.delete_retention_ms:
                raise Violation(f"the tombstone of {key!r} at {appended.offset} stays for its time")
            if any(self._is_older(self.by_offset[offset], appended) for offset in offsets):
                raise Violation(f"no older value of {key!r} comes back")

    @staticmethod
    def _is_older(other: Appended, last: Appended) -> bool:
        return other.key == last.key and other.offset < last.offset and not other.aborted

    def _check_lookups(self, offsets: list[int]) -> None:
        """A fetch at an offset that is gone gets the next one; indexes and log agree."""
        for _ in range(5):
            target = self.rng.randint(self.log.log_start_offset, self.log.log_end_offset)
            records = self.log.read(target, 1, self.log.log_end_offset, True).records
            following = [offset for offset in offsets if offset >= target]
            if following and records is None:
                raise Violation(f"a fetch at {target} finds {following[0]}")
