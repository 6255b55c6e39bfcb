"""Ports that the kernel chose and that stay ours while a broker is started, killed and started again.

A port is held by a socket that is bound and never listens. The kernel gives such a port to nobody who asks for a free
one, neither to listen on nor for an outgoing connection, while a broker that is told the number may listen on it, as
both sockets have SO_REUSEADDR. While nobody listens, connections are refused, as they are when a broker is away.
Elsewhere than on Linux two sockets cannot be bound to one address: there the port is let go a moment before it is used.
"""

from __future__ import annotations

import socket
import sys

HOLDS_WHILE_USED = sys.platform == "linux"


class HeldPort:
    """One port of an address of this machine."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._socket: socket.socket | None = _bound(host, 0)
        self.port: int = self._socket.getsockname()[1]

    def let_use(self) -> None:
        """Somebody is about to listen on it."""
        if not HOLDS_WHILE_USED:
            self.close()

    def listen(self) -> socket.socket:
        """A socket that listens on it; OSError where somebody else took it meanwhile."""
        self.let_use()
        listening = _bound(self.host, self.port)
        try:
            listening.listen(512)
        except OSError:
            listening.close()
            raise
        listening.setblocking(False)
        return listening

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _bound(host: str, port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except OSError:
        found.close()
        raise
    return found
