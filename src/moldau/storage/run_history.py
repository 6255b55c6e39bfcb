"""How the run before this one left each log directory, and what is noted for the next: clean stop, kill or neither.

The marker of a clean stop is the last thing that a stop writes, and the first that a start removes: it saves the next
start from looking at the data. `storage/killed_broker.py` has what is known after a kill.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from moldau.storage.checkpoints import Partition
from moldau.storage.disk import Disk
from moldau.storage.killed_broker import UNKNOWN_BROKER_EPOCH, KilledRun, RunNotes, forget_run, note_run
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


class RunHistory:
    """See the module."""

    def __init__(self, disk: Disk, directories: list[LogDirectory]) -> None:
        self._disk = disk
        self._directories = directories
        self.notes = RunNotes(disk)
        self.loaded_unclean = False
        self.clean_broker_epochs: dict[str, int] = {}
        self._clean: dict[str, bool] = {}
        self._killed: dict[str, KilledRun] = {}

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if not directory.failed]

    # What was

    def take_clean_shutdown_files(self) -> None:
        """Before anything is written: a crash from here on must not be taken for a clean stop."""
        for directory in self._online():
            if directory.path not in self._clean:
                try:
                    self._killed[directory.path] = KilledRun(self._disk, directory.path)
                    # A recovery that is interrupted may have truncated something, and nobody would see it afterwards.
                    forget_run(self._disk, directory.path)
                    self._clean[directory.path] = self._take_clean_shutdown_file(directory)
                except OSError as error:
                    directory.fail(error)

    def _take_clean_shutdown_file(self, directory: LogDirectory) -> bool:
        """Reads and removes the marker of a clean stop: from now on only the next clean stop may claim one."""
        path = f"{directory.path}/{CLEAN_SHUTDOWN_FILE}"
        try:
            data = self._disk.read_file(path)
        except FileNotFoundError:
            self.loaded_unclean = True
            return False
        try:
            self.clean_broker_epochs[directory.path] = int(json.loads(data)["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            self.clean_broker_epochs[directory.path] = UNKNOWN_BROKER_EPOCH
        blocking = self._disk.blocking()
        blocking.remove(path)
        blocking.sync_directory(directory.path)
        return True

    def was_clean(self, directory: LogDirectory) -> bool:
        """Whether the last stop left the directory clean."""
        return self._clean[directory.path]

    def sync_killed(self, directory: LogDirectory, recovery_points: Mapping[str, int]) -> None:
        """Before logs are walked, by directory: what the page cache shows must be what the medium has."""
        if not self._clean[directory.path]:
            self._killed[directory.path].sync(recovery_points)

    def finish_directory(self, directory: LogDirectory, logs: Mapping[Partition, Log]) -> None:
        """All logs in it are open."""
        self._killed[directory.path].check(logs, directory)
        if not directory.failed:
            # What it is now is what the run before left, if this one is killed before it has registered.
            self.notes.begin(directory, self._previous_epoch_in(directory))

    def previous_broker_epoch(self) -> int:
        """The broker epoch of the last run, when it lost nothing in any directory; else -1.

        That is so after a clean stop, and after a kill on a machine that has gone on, if every log ended well."""
        epochs = {self._previous_epoch_in(directory) for directory in self._directories}
        return epochs.pop() if len(epochs) == 1 else UNKNOWN_BROKER_EPOCH

    def _previous_epoch_in(self, directory: LogDirectory) -> int:
        if directory.failed:
            return UNKNOWN_BROKER_EPOCH
        if self._clean.get(directory.path):
            return self.clean_broker_epochs.get(directory.path, UNKNOWN_BROKER_EPOCH)
        killed = self._killed.get(directory.path)
        return UNKNOWN_BROKER_EPOCH if killed is None or directory.truncated_in_recovery else killed.broker_epoch

    # What will be known of this run

    def note_run(self, broker_epoch: int) -> None:
        """The broker is registered: should it be killed, its next run can tell what it has lost."""
        for directory in self._online():
            try:
                self.notes.begin(directory, broker_epoch)
            except OSError as error:
                directory.on_write_failed(error)

    def on_failed(self, directory: LogDirectory) -> None:
        forget_run(self._disk, directory.path)

    def end_cleanly(self, broker_epoch: int) -> None:
        """The logs are closed and the checkpoints written."""
        for directory in self._online():
            try:
                self.write_clean_shutdown_file(directory, broker_epoch)
                forget_run(self._disk, directory.path)
            except OSError as error:
                directory.fail(error)

    def leave_as_found(self, has_logs: Callable[[LogDirectory], bool]) -> None:
        """The end of a node that never loaded the logs: their directories are as clean as they were."""
        for directory in self._online():
            try:
                if self._clean.get(directory.path) or not has_logs(directory):
                    epoch = self.clean_broker_epochs.get(directory.path, UNKNOWN_BROKER_EPOCH)
                    self.write_clean_shutdown_file(directory, epoch)
                killed = self._killed.get(directory.path)
                if killed is not None and killed.broker_epoch != UNKNOWN_BROKER_EPOCH:
                    note_run(self._disk, directory.path, killed.broker_epoch, killed.details)
            except OSError as error:
                directory.fail(error)

    def write_clean_shutdown_file(self, directory: LogDirectory, broker_epoch: int) -> None:
        marker = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode("ascii")
        self._disk.blocking().write_file(f"{directory.path}/{CLEAN_SHUTDOWN_FILE}", marker)
