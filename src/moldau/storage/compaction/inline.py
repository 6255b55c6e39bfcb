"""Compaction in the caller's own turn, for the simulator and for tools: no process, no throttle."""

from __future__ import annotations

from moldau.storage.compaction.cleaner import CompactionWorkers, Done
from moldau.storage.compaction.compact import compact
from moldau.storage.compaction.task import CompactionTask
from moldau.storage.disk import Disk


def no_throttle(_count: int) -> None:
    """As fast as the disk can."""


class InlineWorkers(CompactionWorkers):
    """See the module."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def submit(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        try:
            done(compact(self.disk, task, no_throttle))
        except OSError as error:
            done(error)

    def cancel(self, task: CompactionTask) -> None:
        """It is over before anybody could."""
