"""Files of a log that are out of use: renamed to `.deleted` at once, removed after `file.delete.delay.ms`.

Whoever reads them still holds them open in the meantime. A start removes what it finds of them.
"""

from __future__ import annotations

from moldau.storage.disk import Disk
from moldau.storage.producer_snapshots import ProducerSnapshots
from moldau.storage.segment import DELETED_SUFFIX, Segment


class PendingRemoval:
    """Files that go for good once `due_ms` is past; -1: the delay starts at the next housekeeping."""

    def __init__(self, paths: list[str], due_ms: int) -> None:
        self.paths = paths
        self.due_ms = due_ms


class RetiredFiles:
    """Those of one log."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._pending: list[PendingRemoval] = []

    def retire(self, segments: list[Segment], snapshots: ProducerSnapshots, due_ms: int, keep_first: bool) -> None:
        """Renames the files of these segments; `keep_first` if another segment takes over the first one's snapshot."""
        paths: list[str] = []
        for segment in segments:
            paths.extend(segment.rename_files(DELETED_SUFFIX))
        for segment in segments[1:] if keep_first else segments:
            snapshot = snapshots.forget(segment.base_offset)
            if snapshot is not None and self._disk.exists(snapshot):
                self._disk.rename(snapshot, snapshot + DELETED_SUFFIX)
                paths.append(snapshot + DELETED_SUFFIX)
        self._pending.append(PendingRemoval(paths, due_ms))

    def move_to(self, old_directory: str, directory: str) -> None:
        """The folder that they are in was renamed."""
        for removal in self._pending:
            removal.paths = [directory + path[len(old_directory) :] for path in removal.paths]

    @property
    def is_empty(self) -> bool:
        return not self._pending

    def remove_due(self, now_ms: int, delay_ms: int) -> None:
        waiting: list[PendingRemoval] = []
        for removal in self._pending:
            if removal.due_ms < 0:
                removal.due_ms = now_ms + delay_ms
            if removal.due_ms > now_ms:
                waiting.append(removal)
                continue
            for path in removal.paths:
                self._disk.remove(path)
        self._pending = waiting
