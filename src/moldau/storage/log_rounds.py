"""What is done to every log from time to time, a bounded number of logs in a turn.

A round begins with a list of all logs and is worked off by `poll`; a log that went out of use meanwhile is left out. A
round that takes longer than its interval goes on, and the next one begins after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from moldau.records.clocks import NEVER_MS
from moldau.storage.checkpoints import Partition
from moldau.storage.log import Log

LOOKED_AT_PER_TURN: Final = 2_000
KEPT_PER_TURN: Final = 200
PRODUCERS_PER_TURN: Final = 10_000
COLLECTED_PER_TURN: Final = 1_000
PAUSE_MS: Final = 5

Lines = dict[str, list[str]]
"""Of the checkpoint file in each directory, by the path of the directory."""


class LogRounds:
    """`is_in_use` says whether a log still is one of the manager's."""

    def __init__(self, is_in_use: Callable[[Log], bool], write_high_watermarks: Callable[[Lines], None]) -> None:
        self._is_in_use = is_in_use
        self._write_high_watermarks = write_high_watermarks
        self._producer_expiration_ms = 0
        self._to_keep: deque[Log] = deque()
        self._to_expire: deque[Log] = deque()
        self._high_watermarks: HighWatermarkRound | None = None
        # What the last round wrote.
        self._written: dict[Partition, int] = {}
        self._next_ms = 0

    def begin_housekeeping(self, logs: Iterable[Log]) -> None:
        """Files whose delay is over, flushes by time, indexes that nobody uses."""
        if not self._to_keep:
            self._begin()
            self._to_keep.extend(logs)

    def begin_expiration(self, logs: Iterable[Log], expiration_ms: int) -> None:
        """Producers that were silent for too long."""
        self._producer_expiration_ms = expiration_ms
        if not self._to_expire:
            self._begin()
            self._to_expire.extend(logs)

    def begin_high_watermarks(self, logs: Iterable[Log], high_watermark_of: Callable[[Log], int]) -> None:
        """The checkpoint of high watermarks: written when the round is over, unless it is what was written before."""
        if self._high_watermarks is None:
            self._begin()
            self._high_watermarks = HighWatermarkRound(logs, high_watermark_of)

    @property
    def is_over(self) -> bool:
        return not self._to_keep and not self._to_expire and self._high_watermarks is None

    def _begin(self) -> None:
        if self.is_over:
            self._next_ms = 0

    def poll(self, now_ms: int) -> int:
        """Goes on with what was begun; returns when to call it again."""
        if self.is_over:
            return NEVER_MS
        if now_ms >= self._next_ms:
            self._keep(now_ms)
            self._expire(now_ms)
            self._collect_high_watermarks()
            self._next_ms = now_ms + PAUSE_MS
        return NEVER_MS if self.is_over else self._next_ms

    def _keep(self, now_ms: int) -> None:
        kept = 0
        for _ in range(min(len(self._to_keep), LOOKED_AT_PER_TURN)):
            log = self._to_keep.popleft()
            if log.retired.is_empty and log.unflushed_since_ms < 0:
                continue
            if self._is_in_use(log):
                log.housekeeping(now_ms)
                kept += 1
                if kept == KEPT_PER_TURN:
                    return

    def _expire(self, now_ms: int) -> None:
        producers = 0
        for _ in range(min(len(self._to_expire), LOOKED_AT_PER_TURN)):
            log = self._to_expire.popleft()
            if log.producers.entries or log.producers.guards:
                producers += len(log.producers.entries)
                log.producers.expire(now_ms, self._producer_expiration_ms)
                if producers >= PRODUCERS_PER_TURN:
                    return

    def _collect_high_watermarks(self) -> None:
        collected = self._high_watermarks
        if collected is not None and collected.step(self._is_in_use):
            self._high_watermarks = None
            if collected.offsets != self._written:
                self._written = collected.offsets
                self._write_high_watermarks(collected.lines)


class HighWatermarkRound:
    """High watermarks as far as they are collected: all of them, and the lines of each directory's file."""

    def __init__(self, logs: Iterable[Log], high_watermark_of: Callable[[Log], int]) -> None:
        self._logs = deque(logs)
        self._high_watermark_of = high_watermark_of
        self.offsets: dict[Partition, int] = {}
        self.lines: Lines = {}

    def step(self, is_in_use: Callable[[Log], bool]) -> bool:
        """Whether these were the last."""
        for _ in range(min(len(self._logs), COLLECTED_PER_TURN)):
            log = self._logs.popleft()
            if is_in_use(log):
                offset = self._high_watermark_of(log)
                self.offsets[log.topic, log.partition] = offset
                line = f"{log.topic} {log.partition} {offset}"
                self.lines.setdefault(log.log_directory.path, []).append(line)
        return not self._logs
