"""Deleted logs: their directories, renamed to -delete at once, removed after the delay, one at a time for each disk.

A start removes what is left of them.
"""

from __future__ import annotations

from moldau.storage.disk import Disk
from moldau.storage.log_directory import LogDirectory


class DeletedLog:
    """One that goes at `due_ms`; `is_going` while a thread removes it."""

    def __init__(self, directory: LogDirectory, path: str, due_ms: int) -> None:
        self.directory = directory
        self.path = path
        self.due_ms = due_ms
        self.is_going = False


class DeletedLogs:
    """Those of a node. Once `is_stopped`, no other one is begun."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._logs: list[DeletedLog] = []
        self.is_stopped = False

    def add(self, directory: LogDirectory, path: str, due_ms: int) -> None:
        self._logs.append(DeletedLog(directory, path, due_ms))

    def remove_due(self, now_ms: int) -> None:
        self._logs = [log for log in self._logs if not log.directory.failed]
        busy = {log.directory.path for log in self._logs if log.is_going}
        for log in self._logs[:]:
            if log.due_ms <= now_ms and log.directory.path not in busy:
                busy.add(log.directory.path)
                self._remove(log, now_ms)

    def _remove(self, log: DeletedLog, now_ms: int) -> None:
        log.is_going = True

        def done(error: OSError | None) -> None:
            log.is_going = False
            if log in self._logs:
                self._logs.remove(log)
            if error is not None and not isinstance(error, FileNotFoundError):
                log.directory.fail(error)
            elif not self.is_stopped:
                self.remove_due(now_ms)  # the next one

        self._disk.remove_tree_later(log.path, done)
