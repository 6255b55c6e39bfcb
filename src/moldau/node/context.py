"""Who is asking: what a node knows about one client connection."""

from __future__ import annotations

from collections.abc import Callable


class ClientContext:
    """Lives as long as its connection."""

    def __init__(self, listener: str, peer: str, is_controller_listener: bool = False) -> None:
        self.listener = listener
        self.peer = peer
        self.is_controller_listener = is_controller_listener
        self.principal = "User:ANONYMOUS"
        self.software_name = "unknown"
        self.software_version = "unknown"
        self.on_closed: list[Callable[[int], None]] = []
        """Called with `now_ms` when the connection is gone, whoever closed it."""
