"""Requests that look something up in logs and are answered at once, unless what they look at is cold."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from moldau.api.call import Call
from moldau.node.cold_requests import ColdWait
from moldau.protocol.primitives import Message
from moldau.storage.disk import ColdRead

log = logging.getLogger("moldau.api")

Request = TypeVar("Request", bound=Message)


class ColdCall(Generic[Request]):
    """Builds the response from the beginning, again and again, until everything it needs is in memory."""

    def __init__(self, call: Call, request: Request, build: Callable[[Call, Request], Message]) -> None:
        self._call = call
        self._request = request
        self._build = build
        self._cold = ColdWait(call.node.disk, self._try_again)

    def respond(self) -> None:
        self._cold.begin_try()
        try:
            response = self._build(self._call, self._request)
        except ColdRead as cold:
            self._call.reply.on_abandon = self._cold.abandon
            self._cold.bring(cold)
            return
        finally:
            self._cold.end_try()
        self._call.respond(response)

    def _try_again(self) -> None:
        """In a turn of its own: what goes wrong costs this connection, as in the dispatcher."""
        try:
            self.respond()
        except Exception:
            log.exception("a request from %s failed; closing the connection", self._call.context.peer)
            self._call.close_connection()
