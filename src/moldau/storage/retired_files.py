"""Files of a log that are out of use: renamed to `.deleted` at once, removed after `file.delete.delay.ms`.

Whoever reads them still holds them open in the meantime. A start removes what it finds of them.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.storage.disk import Disk
from moldau.storage.producer_snapshots import ProducerSnapshots
from moldau.storage.segment import DELETED_SUFFIX, Segment

DELAY_FROM_NEXT_LOOK = -1


class PendingRemoval:
    """Files that go for good once `due_ms` is past, or so long after the next housekeeping as they stay."""

    def __init__(self, paths: list[str], due_ms: int) -> None:
        self.paths = paths
        self.due_ms = due_ms


class RetiredFiles:
    """Those of one log."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._pending: list[PendingRemoval] = []
        self._is_removing = False
        self._moves = 0

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

    def retire_files(self, paths: list[str], due_ms: int) -> None:
        """The same for files by name; those that are not there do not matter."""
        renamed: list[str] = []
        for path in paths:
            if self._disk.exists(path):
                self._disk.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        if renamed:
            self._pending.append(PendingRemoval(renamed, due_ms))

    def move_to(self, old_directory: str, directory: str) -> None:
        """The directory that they are in was renamed; what is being removed under the old name is tried again."""
        self._moves += 1
        for removal in self._pending:
            removal.paths = [directory + path[len(old_directory) :] for path in removal.paths]

    @property
    def is_empty(self) -> bool:
        return not self._pending

    def remove_due(self, now_ms: int, delay_ms: int, failed: Callable[[OSError], None]) -> None:
        """Has what is due removed on a thread, all of it at once; `failed` hears of what goes wrong."""
        due: list[PendingRemoval] = []
        for removal in self._pending:
            if removal.due_ms < 0:
                removal.due_ms = now_ms + delay_ms
            if removal.due_ms <= now_ms:
                due.append(removal)
        if not due or self._is_removing:
            return
        self._is_removing = True
        moves = self._moves

        def done(error: OSError | None) -> None:
            self._is_removing = False
            if error is not None:
                failed(error)
            elif moves == self._moves:
                self._pending = [removal for removal in self._pending if removal not in due]

        self._disk.remove_later([path for removal in due for path in removal.paths], done)
