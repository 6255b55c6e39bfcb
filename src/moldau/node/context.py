"""Who is asking: what a node knows about one client connection."""

from __future__ import annotations

from collections.abc import Callable

from moldau.quota.client_quotas import ClientBudgets
from moldau.security.authorizer import SessionRights


class ClientContext:
    """Lives as long as its connection."""

    def __init__(self, listener: str, peer: str, is_controller_listener: bool = False) -> None:
        self.listener = listener
        self.peer = peer
        self.is_controller_listener = is_controller_listener
        self.principal = "User:ANONYMOUS"
        self.token_authenticated = False
        self.rights: SessionRights | None = None  # what it was allowed lately, if there is an authorizer
        self.software_name = "unknown"
        self.software_version = "unknown"
        # A client of a broker whose request came here in an envelope, and whether that met the active controller.
        self.is_forwarded = False
        self.reached_controller = True
        self.is_follower = False  # its end is the end of the fetch sessions that came over it
        self.on_closed: list[Callable[[int], None]] | None = None
        self.budgets: ClientBudgets | None = None  # those of the quotas that were last asked for
        self.unbilled_ns = 0  # thread time spent on this connection that no quota has counted yet
        self.bills_rest = False
        self.client_id: str | None = None  # of the last request
        self.has_telemetry = False  # its end is the end of client instances that asked or pushed over it

    def when_closed(self, callback: Callable[[int], None]) -> None:
        """`callback(now_ms)` is called once, when the connection has ended."""
        if self.on_closed is None:
            self.on_closed = []
        self.on_closed.append(callback)

    def closed(self, now_ms: int) -> None:
        """Whoever owns the connection says that it has ended."""
        callbacks, self.on_closed = self.on_closed, None
        if callbacks is not None:
            for callback in callbacks:
                callback(now_ms)
