"""One retention run over all logs of a node, a few segments at a time, so that no turn of the node takes long.

After a start nothing is known of the segments, and each that is looked at costs a small read; each that goes costs some
renames. How many there are of either depends on the user alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.protocol.errors import KafkaError
from moldau.storage.checkpoints import Partition
from moldau.storage.log import Log

SEGMENTS_PER_TURN = 32

logger = logging.getLogger("moldau.storage")


class RetentionRun:
    """`logs` are those of the log manager, now and later: what is not among them any more is left alone."""

    def __init__(self, logs: dict[Partition, Log]) -> None:
        self._logs = logs
        self.waiting: list[Log] = []

    @property
    def is_over(self) -> bool:
        return not self.waiting

    def begin(self) -> None:
        """Unless the last one is still under way."""
        if not self.waiting:
            self.waiting = list(reversed(self._logs.values()))

    def go_on(self, now_ms: int, high_watermark_of: Callable[[Log], int]) -> int:
        """Some logs, or some segments of one; returns how many segments are to go."""
        count = 0
        looked_at = 0
        while self.waiting and looked_at + count < SEGMENTS_PER_TURN:
            log = self.waiting.pop()
            looked_at += 1
            is_gone = self._logs.get((log.topic, log.partition)) is not log or log.log_directory.failed
            if is_gone or log.compacting or log.holds > 0:
                continue
            segments_max = SEGMENTS_PER_TURN - count
            try:
                deleted = log.apply_retention(now_ms, high_watermark_of(log), segments_max)
                log.housekeeping(now_ms)
            except KafkaError as error:
                logger.warning("skipping retention of %s-%d this time: %s", log.topic, log.partition, error)
                continue
            count += deleted
            if deleted == segments_max:
                self.waiting.append(log)
        return count
