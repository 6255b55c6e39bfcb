"""Looks up the offsets that one ListOffsets asks for, row by row: what is cold is waited for, what is long is cut.

A row that needs something cold waits until a thread has read it, and is looked up again; rows that were found stay. A
request for many rows goes on in later turns, so that no other waits for all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from moldau.api.call import Call
from moldau.node.cold_requests import ColdWait
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.storage.disk import ColdRead

log = logging.getLogger("moldau.api")

WORK_PER_TURN = 1024
# What a lookup by time costs, in rows that need none: it searches files.
SEARCH_WORK = 16


class OffsetLookup(Protocol):
    """One row of the response."""

    work: int

    def look_up(self) -> None:
        """May raise ColdRead, and is then called again."""

    def fail(self, error: KafkaError) -> None:
        """Is told what else it raised."""


class OffsetLookups:
    """All rows of one request, and the response that they are parts of."""

    def __init__(self, call: Call, response: Message, rows: Sequence[OffsetLookup]) -> None:
        self._call = call
        self._response = response
        self._rows = rows
        self._next = 0
        self._cold = ColdWait(call.node.disk, self._go_on)

    def run(self) -> None:
        left = WORK_PER_TURN
        while self._next < len(self._rows):
            row = self._rows[self._next]
            if left <= 0:
                self._call.reply.on_abandon = self._cold.abandon
                self._call.node.later_turns.add(self._go_on)
                return
            left -= row.work
            if not self._is_found(row):
                return
            self._cold.forget()
            self._next += 1
        self._call.respond(self._response)

    def _is_found(self, row: OffsetLookup) -> bool:
        self._cold.begin_try()
        try:
            row.look_up()
        except ColdRead as cold:
            self._call.reply.on_abandon = self._cold.abandon
            self._cold.bring(cold)
            return False
        except KafkaError as error:
            row.fail(error)
        finally:
            self._cold.end_try()
        return True

    def _go_on(self) -> None:
        """In a turn of its own: what goes wrong costs this connection, as in the dispatcher."""
        if self._cold.abandoned:
            return
        try:
            self.run()
        except Exception:
            log.exception("a request from %s failed; closing the connection", self._call.context.peer)
            self._call.close_connection()
