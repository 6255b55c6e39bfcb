"""Listeners that share limits, those of the broker or those of the controller: who may go on, and who has to leave."""

from __future__ import annotations

import asyncio
import heapq
import logging
from typing import TYPE_CHECKING

from moldau.net.log_limit import LogLimit
from moldau.net.turns import CLOSE, Turns
from moldau.quota.connection_quotas import ConnectionQuotas

if TYPE_CHECKING:
    from moldau.net.connection import Connection
    from moldau.net.listener import Listener

log = logging.getLogger("moldau.net")
log.addFilter(LogLimit())

CLOSED_PER_TURN_MAX = 64


class ListenerGroup:
    """Is told when a connection came or went or a limit changed, and looks through its listeners in a later turn."""

    def __init__(self, quotas: ConnectionQuotas, turns: Turns) -> None:
        self.quotas = quotas
        self.listeners: list[Listener] = []
        self.excess_closed_total = 0
        self._turns = turns
        self._is_due = False

    def add(self, listener: Listener) -> None:
        self.quotas.add_listener(listener.name)
        self.listeners.append(listener)

    def changed(self) -> None:
        if self._is_due:
            return
        if self.quotas.excess() > 0 or any(listener.is_waiting for listener in self.listeners):
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turns.run, CLOSE, self._settle)

    def _settle(self) -> None:
        self._is_due = False
        self._close_excess()
        for listener in self.listeners:
            listener.go_on()

    def _close_excess(self) -> None:
        """Some in a turn. What the protected listener has stays, so there may be nobody left to close."""
        excess = self.quotas.excess()
        for listener in self.listeners:
            if excess > 0 and not self.quotas.is_protected(listener.name):
                closed = listener.close_handshakes(min(excess, CLOSED_PER_TURN_MAX))
                self.excess_closed_total += closed
                excess -= closed
        if excess == 0:
            return
        candidates: list[Connection] = []
        for listener in self.listeners:
            if not self.quotas.is_protected(listener.name):
                candidates += listener.connections
        leaving = heapq.nsmallest(min(excess, CLOSED_PER_TURN_MAX), candidates, key=_worth)
        for connection in leaving:
            log.warning("closing connection from %s: there are more than max.connections", connection.context.peer)
            self.excess_closed_total += 1
            connection.close()


def _worth(connection: Connection) -> tuple[bool, int]:
    """Those that are about to close first, then those on which nothing happened for longest."""
    return not connection.is_closing, connection.last_active_ms
