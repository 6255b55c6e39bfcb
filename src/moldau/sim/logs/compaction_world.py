"""A compacted log on the simulated disk, held against a simple model after every run and at every crash.

One seed is one log: records with and without values, transactions of several producers, idempotent ones, all codecs,
runs that are cut short by a small offset map, restarts, and crashes of process or machine at any change of the disk.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable

from moldau.config.log_config import LogConfig
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.builder import BatchBuilder, end_transaction_batch
from moldau.sim.kernel.disk import SimDisk, SimulatedCrash
from moldau.sim.kernel.world import Violation
from moldau.sim.logs.compaction_model import Appended, CompactionModel, LogContent
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


class Size:
    """How much happens: the most appends in a round, records in a batch, and keys; sizes of segments and maps to choose
    from."""

    def __init__(
        self, appends: int, records: int, keys: int, segment_bytes: tuple[int, ...], map_bytes: tuple[int, ...]
    ) -> None:
        self.appends = appends
        self.records = records
        self.keys = keys
        self.segment_bytes = segment_bytes
        self.map_bytes = map_bytes


SMALL = Size(40, 5, 30, (400, 900, 3000), (1 << 20, 4800))
# About fifty thousand records a round; the smaller map is full before all keys are in it.
LARGE = Size(3000, 70, 60_000, (150_000, 1_000_000), (8 << 20, 900_000))


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
    """One log, one seed. With `crashes` off it goes down only when it is told to."""

    def __init__(self, seed: int, size: Size = SMALL, crashes: bool = True) -> None:
        self.rng = random.Random(seed)
        self.size = size
        self.crashes_by_chance = crashes
        self.later: list[Callable[[], None]] = []
        self.disk = SimDisk(seed, lambda delay_ms, action: self.later.append(action))
        self.now_ms = START_MS
        self.keys = self.rng.randint(1 if size is SMALL else size.keys // 2, size.keys)
        self.runs = 0
        self.compactions = 0  # those of the runs that found something to do, and were not cut short
        self.crashes = 0
        self.swap_steps = 0  # changes of the disk in the last swap
        self.sequences: dict[int, int] = {}
        self._crash_in_swap = 0
        self._changes_before_swap = 0
        self._is_swapping = False
        self.config = LogConfig(
            segment_bytes=self.rng.choice(size.segment_bytes),
            index_interval_bytes=self.rng.choice((1, 100, 4096)),
            compact=True,
            delete=False,
            delete_retention_ms=self.rng.choice((0, 5_000, 60_000)),
            min_cleanable_dirty_ratio=0.0,
            min_compaction_lag_ms=self.rng.choice((0, 0, 3_000)),
            file_delete_delay_ms=self.rng.choice((0, 1000)),
        )
        self.model = CompactionModel(self.config.delete_retention_ms)
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
        settings = CleanerSettings(backoff_ms=1, dedupe_buffer_bytes=self.rng.choice(self.size.map_bytes))
        self.cleaner = LogCleaner(self.logs, InlineWorkers(self), settings, lambda log: log.log_end_offset)

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.fill()
            self.compact_by_chance()
            self.check()
            if self.rng.random() < 0.15:
                self.restart()
                self.check()

    # The workload

    def fill(self) -> None:
        """Appends for a while, then time goes by."""
        least = 1 if self.size is SMALL else self.size.appends // 2
        for _ in range(self.rng.randint(least, self.size.appends)):
            self._append_something()
        self.now_ms += self.rng.choice((0, 10, 2_000, 70_000))

    def settle(self) -> None:
        """Nothing is open, unsynced or too young any more: all but the active segment can be compacted."""
        for producer_id in sorted(self.model.open):
            self._end_transaction(producer_id, self.rng.random() < 0.5)
        self.now_ms += 10_000
        self.log.flush()

    def _append_something(self) -> None:
        self.now_ms += self.rng.randint(0, 200)
        while self.later and self.rng.random() < 0.5:
            self.later.pop(0)()
        choice = self.rng.random()
        if choice < 0.55:
            self._append_batch(-1)
        elif choice < 0.85:
            self._append_batch(self.rng.randint(1, PRODUCERS))
        elif self.model.open:
            self._end_transaction(self.rng.choice(sorted(self.model.open)), self.rng.random() < 0.5)

    def _append_batch(self, producer_id: int) -> None:
        rng = self.rng
        builder = BatchBuilder(codec=self.codec)
        transactional = producer_id >= 0 and producer_id != PRODUCERS
        added = []
        for _ in range(rng.randint(1, self.size.records)):
            key = b"key-%d" % rng.randrange(self.keys)
            value = None if rng.random() < 0.2 else rng.randbytes(rng.randint(0, 40))
            timestamp = self.now_ms - rng.randint(0, 50)
            builder.append(timestamp, key, value)
            added.append(Appended(-1, key, value, timestamp))
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        epoch = 0 if producer_id >= 0 else -1
        data = builder.build(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
        )
        result = self.log.append_as_leader(MemoryRecords(data), 0, self.now_ms)
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(added)
        for number, appended in enumerate(added):
            appended.offset = result.first_offset + number
        self.model.append(added, producer_id, transactional)

    def _end_transaction(self, producer_id: int, commit: bool) -> None:
        data = end_transaction_batch(0, -1, self.now_ms, producer_id, 0, commit, 0)
        self.log.append_as_leader(MemoryRecords(data), 0, self.now_ms, COORDINATOR)
        self.model.end_transaction(producer_id, commit)

    # Compaction and crashes

    def before_swap(self) -> None:
        """Called when the cleaned files are there and nothing was renamed yet."""
        self._changes_before_swap = self.disk.changes
        self._is_swapping = True
        if self._crash_in_swap > 0:
            self.disk.crash_after(self._crash_in_swap)

    def after_swap(self) -> None:
        self.compactions += 1
        self._is_swapping = False
        self.swap_steps = self.disk.changes - self._changes_before_swap

    def compact_by_chance(self) -> None:
        crash_in_swap = self.rng.randint(1, 25) if self.rng.random() < 0.3 else 0
        if self.rng.random() < 0.8:
            # What was never synced may be lost, here and in the model; that is not what this world is about.
            self.log.flush()
        crash_anywhere = self.rng.randint(1, 30) if self.rng.random() < 0.1 else 0
        if not self.crashes_by_chance:
            crash_in_swap = crash_anywhere = 0
        self.compact(crash_in_swap, crash_anywhere)

    def compact(self, crash_in_swap: int = 0, crash_anywhere: int = 0) -> None:
        """One run. It crashes in the n-th change of the disk from its start or from that of the swap; 0 is never."""
        dirty_to = self.log.active.base_offset
        if self.rng.random() < 0.2:
            self.leave_something_behind()
        self._crash_in_swap = crash_in_swap
        self._is_swapping = False
        self.swap_steps = 0
        self.disk.crash_after(crash_anywhere)
        flushed = self.log.recovery_point == self.log.log_end_offset
        try:
            self.now_ms += 1
            self.cleaner.poll(self.now_ms)
            while self.later:
                self.later.pop(0)()
                self.cleaner.poll(self.now_ms)
            if self._is_swapping:
                self.after_swap()
            self.log.housekeeping(self.now_ms)
            self.disk.crash_after(0)
            self.runs += 1
            if self.cleaner.uncleanable:
                raise Violation(f"a sound log can be compacted: {self.cleaner.uncleanable}")
        except SimulatedCrash:
            self._go_down(machine_too=flushed)
        self._crash_in_swap = 0
        self.model.compacted(dirty_to, self.now_ms)

    def leave_something_behind(self) -> None:
        """As a worker does that is ended in the middle of its work."""
        base_offset = self.rng.choice(self.log.base_offsets)
        suffix = self.rng.choice((".log", ".index", ".timeindex", ".txnindex"))
        file = self.disk.open(f"{self.log.directory}/{base_offset:020d}{suffix}.cleaned", create=True)
        file.append([self.rng.randbytes(self.rng.randint(0, 100))])
        file.close()

    def _go_down(self, machine_too: bool) -> None:
        self.crashes += 1
        if machine_too:
            self.disk.power_loss(self.rng)
        else:
            self.disk.process_crash()
        self.later.clear()
        self._open()

    def restart(self) -> None:
        while self.later:
            self.later.pop(0)()
        self.logs.shutdown(self.now_ms)
        self._open()

    # What must hold

    def read(self) -> LogContent:
        """Everything in the log, read from its start as a consumer does."""
        log = self.log
        offset = log.log_start_offset
        found = LogContent(log.aborted_transactions(offset, log.log_end_offset))
        while offset < log.log_end_offset:
            records = log.read(offset, 1 << 20, log.log_end_offset, True).records
            if records is None:
                break
            assert isinstance(records, FileRecords)
            file = records.file
            assert isinstance(file, File)
            found.add(file.read(records.position, records.size), offset)
            offset = found.next_offset
        return found

    def check(self) -> None:
        found = self.read()
        self.model.check(found, self.log.active.base_offset, self.now_ms)
        self._check_lookups(list(found.records))

    def _check_lookups(self, offsets: list[int]) -> None:
        """A fetch at an offset that is gone gets the next one; indexes and log agree."""
        for _ in range(5):
            target = self.rng.randint(self.log.log_start_offset, self.log.log_end_offset)
            records = self.log.read(target, 1, self.log.log_end_offset, True).records
            following = bisect_left(offsets, target)
            if following < len(offsets) and records is None:
                raise Violation(f"a fetch at {target} finds {offsets[following]}")
