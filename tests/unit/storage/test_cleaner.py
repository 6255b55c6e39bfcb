"""The cleaner: which log is next, what becomes of one that it cannot compact, how fast it may be, what it measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.log_config import LogConfig
from moldau.protocol.integers import LONG_MAX
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.server import compaction_worker
from moldau.server.posix_disk import PosixDisk
from moldau.storage.compaction.cleaner import CleanerSettings, CompactionWorkers, Done, LogCleaner
from moldau.storage.compaction.compact import compact
from moldau.storage.compaction.task import CompactionResult, CompactionTask
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, config

VALUE = bytes(200)


def compacted(**changes: int | bool | str) -> LogConfig:
    settings = config(compact=True, delete=False, segment_bytes=4000, **changes)
    settings.min_cleanable_dirty_ratio = 0.5
    return settings


class Workers(CompactionWorkers):
    """Keeps what it is given; the test says when it runs, and how long that takes."""

    def __init__(self, disk: PosixDisk) -> None:
        self.disk = disk
        self.waiting: list[tuple[CompactionTask, float, Done]] = []

    def submit(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        self.waiting.append((task, bytes_per_second, done))

    def cancel(self, task: CompactionTask) -> None:
        """Its result is thrown away by the cleaner."""

    def run_one(self) -> CompactionResult:
        task, _, done = self.waiting.pop(0)
        result = compact(self.disk, task, lambda size: None)
        done(result)
        return result


class Setting:
    """Logs by topic, and a cleaner on a clock that the test moves."""

    def __init__(self, tmp_path: Path, settings: CleanerSettings | None = None, **configs: LogConfig) -> None:
        self.now_ms = NOW_MS
        self.configs = configs
        self.disk = PosixDisk()
        self.logs = LogManager(self.disk, [str(tmp_path / "one"), str(tmp_path / "two")], configs.__getitem__)
        self.logs.load(NOW_MS)
        for topic in configs:
            self.logs.create(topic, 0, TOPIC_ID, NOW_MS)
        self.workers = Workers(self.disk)
        self.cleaner = LogCleaner(
            self.logs,
            self.workers,
            settings if settings is not None else CleanerSettings(backoff_ms=100),
            lambda log: log.log_end_offset,
        )

    def log(self, topic: str) -> Log:
        return self.logs.logs[(topic, 0)]

    def fill(self, topic: str, records: int, keys: int = 5, timestamp: int = NOW_MS) -> None:
        """Whole segments, synced, and an empty active one."""
        log = self.log(topic)
        for number in range(records):
            builder = BatchBuilder()
            builder.append(timestamp, b"key-%d" % (number % keys), VALUE)
            log.append_as_leader(MemoryRecords(builder.build()), 0, self.now_ms)
        log.roll(self.now_ms)
        log.flush()

    def run_one(self) -> CompactionResult:
        """A worker does what it was given, and the turn that follows takes it up."""
        result = self.workers.run_one()
        self.cleaner.poll(self.now_ms)
        return result

    def poll(self) -> list[str]:
        """What was started."""
        self.now_ms += 100
        self.cleaner.poll(self.now_ms)
        return [task.name for task, _, _ in self.workers.waiting]


def test_the_dirtiest_log_is_first_and_what_is_due_by_time_before_it(tmp_path: Path) -> None:
    late = compacted(max_compaction_lag_ms=60_000)
    setting = Setting(tmp_path, clean=compacted(), dirty=compacted(), late=late, kept=config(segment_bytes=4000))
    for topic in ("clean", "dirty", "late", "kept"):
        setting.fill(topic, 100, keys=50)
    setting.now_ms += 1000
    for topic in ("clean", "dirty", "late"):
        setting.logs.checkpoints.set_cleaned_to((topic, 0), setting.log(topic).log_end_offset)
    setting.fill("clean", 150, keys=50)
    setting.fill("dirty", 400, keys=50)
    setting.fill("late", 20, timestamp=NOW_MS - 100_000)
    order = []
    while setting.poll():
        order.append(setting.workers.waiting[0][0].name)
        assert len(setting.workers.waiting) == 1, "one worker, one log at a time"
        setting.run_one()
    assert order == ["late-0", "dirty-0", "clean-0"]


def test_nothing_is_compacted_while_the_clock_is_in_doubt(tmp_path: Path) -> None:
    """Tombstones go by their age."""
    setting = Setting(tmp_path, t=compacted())
    setting.fill("t", 400)
    setting.logs.wall.may_delete_by_age = False
    assert setting.poll() == []
    setting.logs.wall.may_delete_by_age = True
    assert setting.poll() == ["t-0"]


def test_delete_horizons_are_calendar_time(tmp_path: Path) -> None:
    setting = Setting(tmp_path, t=compacted())
    setting.fill("t", 400)
    setting.logs.wall.offset_ms = 5_000_000
    setting.poll()
    assert setting.workers.waiting[0][0].wall_ms == setting.now_ms + 5_000_000


def test_as_many_logs_at_a_time_as_there_are_threads_which_share_buffer_and_rate(tmp_path: Path) -> None:
    settings = CleanerSettings(threads=2, backoff_ms=100, dedupe_buffer_bytes=48_000, bytes_per_second=1e6)
    setting = Setting(tmp_path, settings, a=compacted(), b=compacted(), c=compacted())
    for topic in "abc":
        setting.fill(topic, 100)
    assert setting.poll() == ["a-0", "c-0"], "as dirty as b, and in the directory that comes first"
    assert setting.poll() == ["a-0", "c-0"]
    assert {task.map_bytes for task, _, _ in setting.workers.waiting} == {24_000}
    assert {rate for _, rate, _ in setting.workers.waiting} == {5e5}
    setting.run_one()
    assert setting.poll() == ["c-0", "b-0"]


def test_a_log_whose_segment_does_not_fit_into_the_map_is_set_aside_with_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = CleanerSettings(backoff_ms=100, dedupe_buffer_bytes=24 * 10)
    setting = Setting(tmp_path, settings, a_large=compacted(), b_small=compacted())
    setting.fill("a_large", 100, keys=100)
    setting.fill("b_small", 100)
    setting.poll()
    setting.run_one()
    assert "marking a_large-0 as uncleanable" in caplog.text
    assert "raise log.cleaner.dedupe.buffer.size" in caplog.text
    large = setting.log("a_large")
    assert setting.cleaner.uncleanable_in(large.log_directory) == [large]
    assert setting.cleaner.uncleanable_in(setting.log("b_small").log_directory) == []
    assert setting.cleaner.dirty_bytes(large) == large.size_bytes
    assert setting.cleaner.metrics.failed_runs_total == 1
    assert setting.poll() == ["b_small-0"], "the others go on"
    setting.run_one()
    assert setting.poll() == []
    assert not list(Path(large.directory).glob("*.cleaned"))
    setting.cleaner.change_settings(CleanerSettings(backoff_ms=100))
    assert setting.cleaner.uncleanable_in(large.log_directory) == []
    assert setting.poll() == ["a_large-0"], "with a larger buffer it is tried again"
    assert not setting.run_one().problem


def test_a_damaged_log_is_set_aside_with_file_and_position(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting(tmp_path, t=compacted())
    setting.fill("t", 100)
    path = Path(setting.log("t").segments[1].path(".log"))
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    setting.poll()
    setting.run_one()
    assert f"{path} is damaged at position 0" in caplog.text
    assert setting.log("t").size_bytes == sum(file.stat().st_size for file in path.parent.glob("*.log"))


def test_what_the_cleaner_measures(tmp_path: Path) -> None:
    settings = CleanerSettings(threads=2, backoff_ms=100, dedupe_buffer_bytes=2 * 24 * 100)
    setting = Setting(tmp_path, settings, a=compacted(), b=compacted(max_compaction_lag_ms=1000))
    setting.fill("a", 100, keys=5)
    setting.fill("b", 80, keys=80, timestamp=NOW_MS - 61_000)
    before = setting.log("a").size_bytes + setting.log("b").size_bytes
    metrics = setting.cleaner.metrics
    assert metrics.time_since_last_run_ms(NOW_MS + 5000) == 0
    setting.poll()
    assert metrics.max_dirty_percent == 100
    assert metrics.max_compaction_delay_secs == 60
    assert metrics.time_since_last_run_ms(setting.now_ms + 5000) == 5000
    setting.now_ms += 7_000
    setting.run_one()
    setting.now_ms += 2_000
    setting.run_one()
    after = setting.log("a").size_bytes + setting.log("b").size_bytes
    assert after < before
    assert metrics.runs_total == 2
    assert metrics.max_clean_time_secs == 9
    assert metrics.max_buffer_utilization_percent == 80
    assert metrics.cleaner_recopy_percent == 100 * after // before
    assert metrics.bytes_read_total == 2 * before
    assert metrics.bytes_written_total == after
    assert (metrics.records_read_total, metrics.records_removed_total) == (180, 95)
    assert setting.poll() == []
    assert (metrics.max_dirty_percent, metrics.max_compaction_delay_secs) == (0, 0)
    # The longer of the two was in the second place, which is no more.
    setting.cleaner.change_settings(CleanerSettings(threads=1, backoff_ms=100))
    assert metrics.max_clean_time_secs == 7


class FakeTime:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(compaction_worker, "time", fake)
    return fake


@pytest.mark.parametrize("rate", [10_000.0, 123_456.0, 5e6])
def test_a_worker_keeps_to_its_rate(tmp_path: Path, clock: FakeTime, rate: float) -> None:
    """`log.cleaner.io.max.bytes.per.second` counts what is read, twice, and what is written."""
    setting = Setting(tmp_path, t=compacted())
    setting.fill("t", 300, keys=100)
    setting.poll()
    task, _, done = setting.workers.waiting.pop()
    started = clock.now
    result = compaction_worker.run(task, rate)
    assert isinstance(result, CompactionResult)
    stats = result.stats
    moved = stats.map_bytes_read + stats.bytes_read + stats.bytes_written
    assert moved > 2 * 60_000
    # It never runs ahead by more than the shortest sleep; nothing but sleeping takes time on this clock.
    assert moved / rate - compaction_worker.SHORTEST_SLEEP_S <= clock.now - started <= moved / rate + 1e-6
    assert stats.seconds == pytest.approx(clock.now - started)
    assert min(clock.slept, default=1.0) >= compaction_worker.SHORTEST_SLEEP_S
    done(result)
    setting.cleaner.poll(setting.now_ms)
    assert setting.cleaner.metrics.runs_total == 1


def test_without_a_limit_a_worker_never_sleeps(tmp_path: Path, clock: FakeTime) -> None:
    setting = Setting(tmp_path, t=compacted())
    setting.fill("t", 300)
    setting.poll()
    task, rate, _ = setting.workers.waiting.pop()
    assert rate == CleanerSettings().bytes_per_second
    compaction_worker.run(task, rate)
    assert clock.slept == []


def test_nothing_younger_than_the_least_lag_is_touched(tmp_path: Path) -> None:
    setting = Setting(tmp_path, t=compacted(min_compaction_lag_ms=60_000))
    setting.fill("t", 60, timestamp=NOW_MS - 70_000)
    old_end = setting.log("t").log_end_offset
    setting.fill("t", 60)
    setting.poll()
    (task, _, _) = setting.workers.waiting[0]
    assert task.end_offset == old_end
    assert LogConfig().min_compaction_lag_ms == 0 and LogConfig().max_compaction_lag_ms == LONG_MAX
