"""The audit log: one line for each decision, in Kafka's form, on the logger `kafka.authorizer.logger`.

Refusals are told at INFO, what was allowed at DEBUG, and checks that only filter a response at TRACE. Nobody can flood
it: there are so many lines a second for one principal and host, so many for all of them, and the lines left out are
counted. Names come from clients, so what is not printable in them is escaped and what is too long is cut.
"""

from __future__ import annotations

import logging
from typing import Final

from moldau.security.authorizer import Decision
from moldau.security.rights import OPERATION_NAMES, RESOURCE_WORDS

logger = logging.getLogger("kafka.authorizer.logger")

TRACE: Final = 5
WINDOW_MS: Final = 1000
LINES_OF_ONE_MAX: Final = 100
LINES_MAX: Final = 500
NAME_MAX: Final = 1000


class Audit:
    """What was told in this second."""

    def __init__(self) -> None:
        self._window_start_ms = -WINDOW_MS
        self._lines = 0
        self._by_asker: dict[tuple[str, str], int] = {}
        self._left_out = 0
        self.left_out_total = 0
        self._level_read_ms = -1
        self._tells_filters = self._tells_allowed = self._tells_refused = False

    def wants(self, is_allowed: bool, is_filter: bool, now_ms: int) -> bool:
        """Whether somebody reads about such decisions at all. To ask the logger costs more than to decide, so it is
        asked once in a millisecond."""
        if now_ms != self._level_read_ms:
            self._level_read_ms = now_ms
            self._tells_filters = logger.isEnabledFor(TRACE)
            self._tells_allowed = logger.isEnabledFor(logging.DEBUG)
            self._tells_refused = logger.isEnabledFor(logging.INFO)
        if is_filter:
            return self._tells_filters
        return self._tells_allowed if is_allowed else self._tells_refused

    def tell(
        self,
        decision: Decision,
        principal: str,
        host: str,
        operation: int,
        resource_type: int,
        name: str,
        *,
        api_name: str,
        count: int,
        is_filter: bool,
        now_ms: int,
    ) -> None:
        if not self._has_room(principal, host, now_ms):
            self._left_out += 1
            self.left_out_total += 1
            return
        level = TRACE if is_filter else logging.DEBUG if decision.is_allowed else logging.INFO
        logger.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s "
            "with resourceRefCount = %d based on rule %s",
            shown(principal),
            "Allowed" if decision.is_allowed else "Denied",
            OPERATION_NAMES[operation],
            host,
            RESOURCE_WORDS[resource_type],
            shown(name),
            api_name,
            count,
            shown(decision.reason()),
        )

    def _has_room(self, principal: str, host: str, now_ms: int) -> bool:
        # What was asked long ago and is decided now does not begin a second anew.
        if now_ms - self._window_start_ms >= WINDOW_MS:
            self._window_start_ms = now_ms
            self._lines = 0
            self._by_asker.clear()
            if self._left_out:
                logger.info("%d decisions were left out of this log: too many in a second", self._left_out)
                self._left_out = 0
        told = self._by_asker.get((principal, host), 0)
        if self._lines >= LINES_MAX or told >= LINES_OF_ONE_MAX:
            return False
        self._lines += 1
        self._by_asker[(principal, host)] = told + 1
        return True


def shown(text: str) -> str:
    """A name cannot end a line and begin another one."""
    if len(text) > NAME_MAX:
        text = text[:NAME_MAX] + "…"
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
