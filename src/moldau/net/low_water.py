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


def is_there(sock: socket.socket, size: int) -> bool:
    """Whether so many bytes can be read now."""
    count = fcntl.ioctl(sock, termios.FIONREAD, bytes(COUNT_BYTES))
    return int.from_bytes(count, sys.byteorder, signed=True) >= size


def set_low_water(sock: socket.socket, size: int) -> None:
    """From how many bytes on the socket is readable; a system that cannot do this reads in pieces."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    except OSError:
        pass
