"""What the cleaner measures of itself, with the meaning these numbers have in Apache Kafka.

Kafka keeps the last run of each cleaner thread and shows the largest of them, or their sum. Here a place is what a
thread is there: there are `log.cleaner.threads` of them, and a run takes the first that is free. Kafka: LogCleaner,
LogCleanerManager.
"""

from __future__ import annotations

from moldau.storage.compaction.task import CompactionStats


class LastRun:
    """The last run in one place."""

    def __init__(self, stats: CompactionStats, elapsed_ms: int) -> None:
        self.stats = stats
        self.elapsed_ms = elapsed_ms


class CleanerMetrics:
    """Plain numbers for whoever exports them; only the cleaner changes them."""

    def __init__(self) -> None:
        self.runs_total = 0
        self.failed_runs_total = 0
        self.bytes_read_total = 0
        self.bytes_written_total = 0
        self.records_read_total = 0
        self.records_removed_total = 0
        # As of the last look at all logs.
        self.last_look_ms = -1
        self.max_dirty_percent = 0
        self.max_compaction_delay_ms = 0
        self._last_runs: dict[int, LastRun] = {}

    def note_look(self, now_ms: int, max_ratio: float, max_delay_ms: int) -> None:
        self.last_look_ms = now_ms
        self.max_dirty_percent = int(max_ratio * 100)
        self.max_compaction_delay_ms = max_delay_ms

    def note_run(self, place: int, stats: CompactionStats, elapsed_ms: int) -> None:
        self.runs_total += 1
        self.bytes_read_total += stats.map_bytes_read + stats.bytes_read
        self.bytes_written_total += stats.bytes_written
        self.records_read_total += stats.records_read
        self.records_removed_total += stats.records_read - stats.records_kept
        self._last_runs[place] = LastRun(stats, elapsed_ms)

    def note_places(self, count: int) -> None:
        """Runs in places that are no more do not count any longer."""
        self._last_runs = {place: run for place, run in self._last_runs.items() if place < count}

    @property
    def max_clean_time_secs(self) -> int:
        return max((run.elapsed_ms for run in self._last_runs.values()), default=0) // 1000

    @property
    def max_compaction_delay_secs(self) -> int:
        """For how long the log that waits most has waited beyond its `max.compaction.lag.ms`."""
        return self.max_compaction_delay_ms // 1000

    @property
    def max_buffer_utilization_percent(self) -> int:
        """How full the offset map was."""
        return int(100 * max((run.stats.map_utilization for run in self._last_runs.values()), default=0.0))

    @property
    def cleaner_recopy_percent(self) -> int:
        """How much of what was read had to be written again."""
        read = sum(run.stats.bytes_read for run in self._last_runs.values())
        written = sum(run.stats.bytes_written for run in self._last_runs.values())
        return 100 * written // read if read else 0

    def time_since_last_run_ms(self, now_ms: int) -> int:
        """Since all logs were last looked at: a cleaner that stands still shows here."""
        return now_ms - self.last_look_ms if self.last_look_ms >= 0 else 0
