"""A socket after the TLS handshake, with the calls that a connection makes of a plain one.

OpenSSL reads one record of at most 16 KiB at a time and nothing behind it, so what is left in the kernel makes the
socket readable as ever; only the rest of a record that was read in part is nowhere to be seen: `pending` tells of it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, cast

RECORD_BYTES_MAX: Final = 16384


class TlsSocket:
    """Non-blocking: raises BlockingIOError where it has to wait, whatever TLS waits for."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._sock = sock
        # With a buffer it returns how much it has read; the types that Python has for it do not say so.
        self._read = cast("Callable[[int, memoryview], int]", sock.read)

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv_into(self, view: memoryview) -> int:
        """As many records as are there and fit; 0 at the end, with a goodbye or without one."""
        size = len(view)
        total = 0
        try:
            while True:
                count = self._read(size - total, view[total:] if total else view)
                total += count
                if count < RECORD_BYTES_MAX or total == size:
                    return total
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if total == 0:
                raise BlockingIOError from None
            return total
        except ssl.SSLError as error:
            if total > 0:
                return total  # what was wrong is found again by the next read
            raise ConnectionAbortedError(str(error)) from None

    @property
    def pending(self) -> bool:
        """Whether the rest of a record waits here, of which the system tells nobody."""
        return self._sock.pending() > 0

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        """Sends all that the system takes. What is tried again has to begin with the same bytes."""
        sent = self._write(data)
        size = len(data)
        if sent == size:
            return sent
        view = memoryview(data)
        try:
            while sent < size:
                sent += self._write(view[sent:])
        except BlockingIOError:
            pass
        return sent

    def _write(self, data: bytes | bytearray | memoryview) -> int:
        """One record of it."""
        try:
            return self._sock.write(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        except ssl.SSLError as error:
            raise ConnectionAbortedError(str(error)) from None

    def close(self) -> None:
        """Says goodbye, as far as that can be sent at once."""
        try:
            self._sock.unwrap()
        except (OSError, ValueError):
            pass
        self._sock.close()
