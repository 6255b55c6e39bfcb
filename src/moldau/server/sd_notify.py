"""Tells systemd what the server does: ready, waiting, stopping, and alive for its watchdog; nothing happens elsewhere.

The protocol is one datagram of NAME=value lines to the socket that NOTIFY_SOCKET names (sd_notify(3)); a name that
begins with @ is abstract. The variable leaves the environment, so that nobody whom the server starts speaks for it.
Nothing here waits and nothing here fails: a message that cannot be sent is not worth a broker.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import MutableMapping

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class SystemdNotifier:
    """Messages to the service manager that started this process, if one did and wants them."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        taken = {name: environment.pop(name, "") for name in VARIABLES}
        self._socket = _connect(taken["NOTIFY_SOCKET"])
        self.watchdog_interval_s = _interval_s(taken["WATCHDOG_USEC"], taken["WATCHDOG_PID"]) if self._socket else 0.0
        self._alive_sent_s = 0.0

    @property
    def is_active(self) -> bool:
        """Whether anybody listens."""
        return self._socket is not None

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}")

    def waiting(self, status: str) -> None:
        """The start goes on: no reason to give it up."""
        self._send(f"STATUS={status}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", f"STATUS={status}")

    def alive(self, now_s: float) -> None:
        """To be called often by the loop whose life the watchdog watches; sends at most four times an interval."""
        if self.watchdog_interval_s and now_s - self._alive_sent_s >= self.watchdog_interval_s / 4:
            self._alive_sent_s = now_s
            self._send("WATCHDOG=1")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, *lines: str) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.send("\n".join(line.replace("\n", " ") for line in lines).encode())


def _connect(address: str) -> socket.socket | None:
    if not address.startswith(("/", "@")):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    connection.setblocking(False)
    try:
        connection.connect("\0" + address[1:] if address.startswith("@") else address)
    except OSError:
        connection.close()
        return None
    return connection


def _interval_s(microseconds: str, pid: str) -> float:
    """How long the watchdog waits for a sign of life; 0 where there is none, or where it watches somebody else."""
    if not microseconds.isdecimal() or (pid and pid != str(os.getpid())):
        return 0.0
    return int(microseconds) / 1e6
