"""Lets a large frame arrive before it is read: one read then has all of it, and nothing is put together from pieces.

The kernel keeps what arrives and calls a socket readable from its low-water mark on. It does so too when its memory for
the socket is full and when the other side has closed, so nobody waits for bytes that cannot come.
"""

from __future__ import annotations

import fcntl
import socket
import sys
import termios

COUNT_BYTES = 4


class LargeReads:
    """Reads the large frames of one socket."""

    def __init__(self) -> None:
        self._waits = False

    def receive(self, sock: socket.socket, size: int) -> bytes | None:
        """The next bytes, so many if they can be had at once; None while they are on their way."""
        if not self._waits and not _is_there(sock, size):
            self._waits = True
            _set_low_water(sock, size)
            return None
        piece = sock.recv(size)
        if self._waits:
            self._waits = False
            _set_low_water(sock, 1)
        return piece


def _is_there(sock: socket.socket, size: int) -> bool:
    count = fcntl.ioctl(sock, termios.FIONREAD, bytes(COUNT_BYTES))
    return int.from_bytes(count, sys.byteorder, signed=True) >= size


def _set_low_water(sock: socket.socket, size: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    except OSError:
        pass  # a system that cannot do this reads in pieces
