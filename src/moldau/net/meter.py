"""Measures the thread time that each connection takes, while a quota of request time is set.

Time goes to one connection at a time: what is sent to another one in the middle of a turn is that other one's. What the
event loop used since it last served somebody is the connection's too, for it was needed to learn of it and to call it;
up to a bound, as the node may have had work of its own in between. Only the CPU time of this thread counts, so waiting
is free, for a disk, for other nodes, for the machine.
"""

from __future__ import annotations

import time
from typing import Final

from moldau.node.context import ClientContext
from moldau.quota.client_quotas import ClientQuotas

LOOP_NS_MAX: Final = 200_000


class TimeMeter:
    """That of one event loop. Who finds `is_on` False need not call the rest."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas
        self._whose: ClientContext | None = None
        self._since_ns = time.thread_time_ns()

    @property
    def is_on(self) -> bool:
        return self._quotas.measures_time

    def begin(self, context: ClientContext) -> ClientContext | None:
        """From now on time goes to this connection. Returns whose it was, for `end`."""
        now_ns = time.thread_time_ns()
        before = self._whose
        used_ns = now_ns - self._since_ns
        if before is not None:
            before.unbilled_ns += used_ns
        else:
            context.unbilled_ns += min(used_ns, LOOP_NS_MAX)
        self._whose = context
        self._since_ns = now_ns
        return before

    def end(self, before: ClientContext | None) -> None:
        now_ns = time.thread_time_ns()
        if self._whose is not None:
            self._whose.unbilled_ns += now_ns - self._since_ns
        self._whose = before
        self._since_ns = now_ns
