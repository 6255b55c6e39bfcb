"""The worker process of a simulated node that compacts: over in a moment, and nothing that a turn waits for."""

from __future__ import annotations

from moldau.sim.kernel.disk import SimDisk
from moldau.storage.compaction.cleaner import CompactionWorkers, Done
from moldau.storage.compaction.compact import compact
from moldau.storage.compaction.task import CompactionResult, CompactionTask


def no_throttle(_count: int) -> None:
    """As fast as the disk can."""


class CompactionWorker(CompactionWorkers):
    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk

    def submit(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        results: list[CompactionResult] = []
        error = self._disk.run_on_thread(lambda: results.append(compact(self._disk, task, no_throttle)))
        done(results[0] if error is None else error)

    def cancel(self, task: CompactionTask) -> None:
        """It is over before anybody could."""
