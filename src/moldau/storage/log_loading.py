"""Opens all logs of a node, a few a turn, so that its controller lives while its broker still recovers.

Directory by directory: what is in it, how much of that has to be walked after an unclean stop, the large logs to the
workers, then each log opened, and at the end the directory's checkpoints. Whoever drives it calls `run_turn` while
there is something to do (`has_work`); after the workers are done `on_progress` says that there is again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from moldau.storage.log_directory import LogDirectory
from moldau.storage.recovery_task import (
    SMALLEST_TASK_BYTES,
    WORTH_IT_BYTES,
    RecoveryResult,
    RecoveryTask,
    bytes_to_walk,
)

if TYPE_CHECKING:
    from moldau.storage.log_manager import LogManager

LOGS_PER_TURN: Final = 20
DIRECTORIES_MEASURED_PER_LOG: Final = 10
"""To list a directory takes this much less than to open its log."""
TURN_BYTES: Final = 4 << 20
"""So much is walked in a turn, by as many logs as it takes."""
LONG_TURN_BYTES: Final = 32 << 20
"""A log that alone would take so much of a turn is left to a worker, where there are any."""


class LogLoading:
    """Made by `LogManager.begin_load`. Raises what `LogManager.load` raises."""

    def __init__(self, logs: LogManager) -> None:
        self.logs = logs
        self.is_done = False
        self.on_progress: Callable[[], None] | None = None
        self.logs_found = 0
        self.logs_loaded = 0
        self._stopped = False
        self._directories = deque(logs.online_directories())
        self._directory: LogDirectory | None = None
        self._tasks: list[RecoveryTask] = []
        self._unmeasured: deque[RecoveryTask] = deque()
        self._waiting: deque[RecoveryTask] = deque()
        self._recovered: dict[str, RecoveryResult] = {}
        self._with_workers = False
        self._asked_workers = False

    @property
    def has_work(self) -> bool:
        """Whether a turn would do anything now."""
        return not (self.is_done or self._stopped or self._with_workers)

    @property
    def remaining(self) -> tuple[str, int] | None:
        """The directory that is being loaded, and how many of its logs are left."""
        return None if self._directory is None else (self._directory.path, len(self._waiting))

    def stop(self) -> None:
        """The node ends; what is not open stays closed."""
        self._stopped = True

    def abandon(self, now_ms: int) -> None:
        """A stop before all logs are open: checkpoints stay as they are, and a directory as clean as it was found."""
        self.stop()
        logs = self.logs
        logs.close_logs(now_ms)
        for directory in logs.online_directories():
            try:
                if logs.runs.was_clean(directory):
                    logs.runs.write_clean_shutdown_file(directory, logs.runs.clean_broker_epochs[directory.path])
            except OSError as error:
                directory.fail(error)
        logs.unlock()

    def run_turn(self, now_ms: int) -> None:
        """Does about as much as `LogManager.logs_per_turn` logs take."""
        budget = self.logs.logs_per_turn * DIRECTORIES_MEASURED_PER_LOG
        walked_bytes = 0
        while self.has_work and budget > 0 and walked_bytes < TURN_BYTES:
            directory = self._directory
            if directory is None:
                self._next_directory(now_ms)
                continue
            try:
                if directory.failed:
                    self._directory = None
                elif self._unmeasured:
                    self._measure(self._unmeasured.popleft())
                    budget -= 1
                elif not self._asked_workers:
                    self._ask_workers()
                elif self._waiting:
                    walked_bytes += self._load_one(directory, self._waiting.popleft())
                    budget -= DIRECTORIES_MEASURED_PER_LOG
                else:
                    self.logs.finish_directory(directory)
                    self._directory = None
            except OSError as error:
                directory.fail(error)

    def _next_directory(self, now_ms: int) -> None:
        if not self._directories:
            self.logs.finish_load(now_ms)
            self.is_done = True
            return
        directory = self._directory = self._directories.popleft()
        if directory.failed:
            return
        try:
            self._tasks = self.logs.find_logs(directory, now_ms)
        except OSError as error:
            directory.fail(error)
            return
        self.logs_found += len(self._tasks)
        self._recovered = {}
        self._unmeasured = deque() if self.logs.runs.was_clean(directory) else deque(self._tasks)
        self._waiting = deque(self._tasks)
        self._asked_workers = False

    def _measure(self, task: RecoveryTask) -> None:
        task.size_bytes = bytes_to_walk(self.logs.disk.list_with_sizes(task.directory), task.recovery_point)

    def _ask_workers(self) -> None:
        """The large logs, if it is worth the start of a process; the turns go on when all of them are recovered."""
        self._asked_workers = True
        workers, workers_max = self.logs.recovery_workers, self.logs.recovery_workers_max
        large = [task for task in self._tasks if task.size_bytes >= SMALLEST_TASK_BYTES]
        if workers is None or not large:
            return
        if workers.in_background and max(task.size_bytes for task in large) >= LONG_TURN_BYTES:
            pass  # it would hold up all else, even if it is the only one
        elif workers_max < 2 or len(large) < 2 or sum(task.size_bytes for task in large) < WORTH_IT_BYTES:
            return
        self._with_workers = True
        workers.run_later(large, workers_max, lambda results: self._on_recovered(large, results))

    def _on_recovered(self, tasks: list[RecoveryTask], results: list[RecoveryResult | None]) -> None:
        self._with_workers = False
        for task, result in zip(tasks, results, strict=True):
            if result is not None:
                self._recovered[task.directory] = result
        if self.on_progress is not None:
            self.on_progress()

    def _load_one(self, directory: LogDirectory, task: RecoveryTask) -> int:
        """Returns how many bytes were walked."""
        recovered = self._recovered.get(task.directory)
        self.logs.load_one(directory, task, recovered, self.logs.runs.was_clean(directory))
        self.logs_loaded += 1
        return task.size_bytes if recovered is None else 0
