"""Folders of deleted logs: renamed to -delete at once, removed after the delay, one at a time for each directory.

A start removes what is left of them.
"""

from __future__ import annotations

from moldau.storage.disk import Disk
from moldau.storage.log_directory import LogDirectory


class DoomedFolder:
    """One that goes at `due_ms`; `is_going` while a thread removes it."""

    def __init__(self, directory: LogDirectory, path: str, due_ms: int) -> None:
        self.directory = directory
        self.path = path
        self.due_ms = due_ms
        self.is_going = False


class DoomedFolders:
    """Those of a node. Once `is_stopped`, no other one is begun."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._folders: list[DoomedFolder] = []
        self.is_stopped = False

    def add(self, directory: LogDirectory, path: str, due_ms: int) -> None:
        self._folders.append(DoomedFolder(directory, path, due_ms))

    def remove_due(self, now_ms: int) -> None:
        self._folders = [folder for folder in self._folders if not folder.directory.failed]
        busy = {folder.directory.path for folder in self._folders if folder.is_going}
        for folder in self._folders[:]:
            if folder.due_ms <= now_ms and folder.directory.path not in busy:
                busy.add(folder.directory.path)
                self._remove(folder, now_ms)

    def _remove(self, folder: DoomedFolder, now_ms: int) -> None:
        folder.is_going = True

        def done(error: OSError | None) -> None:
            folder.is_going = False
            if folder in self._folders:
                self._folders.remove(folder)
            if error is not None and not isinstance(error, FileNotFoundError):
                folder.directory.fail(error)
            elif not self.is_stopped:
                self.remove_due(now_ms)  # the next one

        self._disk.remove_tree_later(folder.path, done)
