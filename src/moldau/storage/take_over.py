"""A future log takes the place of the current one: each step when the one before it is on the medium.

The old directory is renamed away before the new one gets its name, and that is on the medium in between, so that no
crash leaves two directories of one partition. From the moment on at which the future log has everything until it is in
its place nothing is appended to the current one: producers try again. Whatever comes in between, a truncation, the end
of the move, a directory that fails, gives the current log its name back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.protocol.errors import KafkaError
from moldau.storage.log import Log

if TYPE_CHECKING:
    from moldau.storage.log_manager import LogManager

logger = logging.getLogger("moldau.storage")


class TakeOver:
    """`is_wanted` says whether the move is still on; `catch_up` copies what is missing, in the same turn, and says
    whether the future log has everything now; `done` hears whether it took over. What the disk has finished goes on in
    a turn of its own, by way of `in_next_turn`."""

    def __init__(
        self,
        manager: LogManager,
        source: Log,
        future: Log,
        is_wanted: Callable[[], bool],
        catch_up: Callable[[int], bool],
        done: Callable[[bool, int], None],
        in_next_turn: Callable[[Callable[[int], None]], None],
    ) -> None:
        self._manager = manager
        self._source = source
        self._future = future
        self._is_wanted = is_wanted
        self._catch_up = catch_up
        self._done = done
        self._in_next_turn = in_next_turn
        self._old_path = source.directory
        self._truncations = 0

    def start(self) -> None:
        """First of all it is known in its directory how far the future log is safe, and how far compacted."""
        self._manager.checkpoints.write_all_later(self._future, self._later(self._on_checkpoints))

    def _later(self, step: Callable[[OSError | None, int], None]) -> Callable[[OSError | None], None]:
        return lambda error: self._in_next_turn(lambda now_ms: step(error, now_ms))

    def _on_checkpoints(self, error: OSError | None, now_ms: int) -> None:
        source = self._source
        try:
            if error is not None or not self._is_wanted() or source.holds > 0 or not self._catch_up(now_ms):
                self._done(False, now_ms)
                return
            self._manager.notify_log_gone(source)
            self._manager.rename_directory(source, self._manager.marked_path(source, self._manager.delete_suffix))
        except KafkaError:
            self._done(False, now_ms)
            return
        source.hold()
        self._truncations = source.truncations
        self._sync(source, self._on_old_name_gone)

    def _sync(self, log: Log, step: Callable[[OSError | None, int], None]) -> None:
        path = log.log_directory.path
        self._manager.disk.do_later(path, lambda disk: disk.sync_directory(path), self._later(step))

    def _may_go_on(self, log: Log, error: OSError | None) -> bool:
        if error is not None:
            log.log_directory.fail(error)
        is_as_before = self._source.truncations == self._truncations and not self._source.closed
        return error is None and self._is_wanted() and is_as_before

    def _on_old_name_gone(self, error: OSError | None, now_ms: int) -> None:
        future = self._future
        if not self._may_go_on(self._source, error):
            self._go_back(now_ms)
            return
        try:
            self._manager.rename_directory(future, f"{future.log_directory.path}/{future.topic}-{future.partition}")
        except KafkaError:
            self._go_back(now_ms)
            return
        future.directory_unsynced = True  # until its name is on the medium, nothing in it counts as safe
        self._sync(future, self._on_new_name)

    def _on_new_name(self, error: OSError | None, now_ms: int) -> None:
        if not self._may_go_on(self._future, error):
            self._go_back(now_ms)
            return
        logger.info(
            "moved %s-%d to log directory %s",
            self._future.topic,
            self._future.partition,
            self._future.log_directory.path,
        )
        self._done(True, now_ms)

    def _go_back(self, now_ms: int) -> None:
        """The current log goes on under its name; the future one, if it has that already, under another."""
        source, future = self._source, self._future
        try:
            if not future.closed and not future.log_directory.failed:
                self._manager.futures.rename_back(future)
            if not source.closed and not source.log_directory.failed:
                self._manager.rename_directory(source, self._old_path)
                source.directory_unsynced = True
                self._sync(source, self._on_old_name_back)
                return
        except KafkaError as error:
            logger.error(
                "cannot move %s-%d, it stays in %s: %s", source.topic, source.partition, source.directory, error.message
            )
        self._done(False, now_ms)

    def _on_old_name_back(self, error: OSError | None, now_ms: int) -> None:
        source = self._source
        if error is not None:
            source.log_directory.fail(error)
        elif not source.closed:
            source.release()
        self._done(False, now_ms)
