"""Keeps clients from filling the log: of each kind of line only a few in ten seconds, then how many were left out."""

from __future__ import annotations

import logging

LINES_MAX = 10
INTERVAL_S = 10.0


class LogLimit(logging.Filter):
    """A filter for a logger whose lines are caused by clients; lines are of one kind when their message is."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[object, _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = self._kinds.setdefault(record.msg, _Kind(record.created))
        if not 0 <= record.created - kind.since_s < INTERVAL_S:
            kind.since_s, kind.lines = record.created, 0
        kind.lines += 1
        if kind.lines > LINES_MAX:
            kind.left_out += 1
            return False
        if kind.left_out:
            record.msg = f"{record.msg} ({kind.left_out} more lines like this were left out)"
            kind.left_out = 0
        return True


class _Kind:
    """What was said in one interval about one thing."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.lines = 0
        self.left_out = 0
