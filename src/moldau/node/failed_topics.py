"""Topics that could not be created for streams applications, and why: told to their members for a while."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

REMEMBERED_MAX: Final = 1000


class FailedTopics:
    """By name: the reason, and until when it is told. The creation is not tried again before."""

    def __init__(self) -> None:
        self._failures: dict[str, tuple[str, int]] = {}

    def note(self, name: str, reason: str, until_ms: int) -> None:
        self._failures.pop(name, None)
        while len(self._failures) >= REMEMBERED_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[name] = (reason, until_ms)

    def among(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """Those of the names that failed lately, with their reasons."""
        found: dict[str, str] = {}
        for name in names:
            failure = self._failures.get(name)
            if failure is None:
                continue
            if failure[1] > now_ms:
                found[name] = failure[0]
            else:
                del self._failures[name]
        return found
