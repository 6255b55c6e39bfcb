"""TLS handshakes: in steps on a few threads, so that neither their arithmetic nor a slow client holds up the loop.

The loop waits until a socket is ready, a thread does one step with what is there (half a millisecond, several with
large RSA keys; OpenSSL works without the interpreter's lock), and the loop goes on with the outcome. A step never waits
for the other side. Until its first bytes have come a connection has no TLS at all: it costs a socket. There is a
deadline, and a limit on the steps for those who send a byte at a time; OpenSSL bounds what a handshake may say.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from moldau.net.log_limit import LogLimit
from moldau.net.tls import TlsMisuse, TlsSocket
from moldau.net.turns import Turns

HANDSHAKE_MS_MAX: Final = 30_000
STEPS_MAX: Final = 256
THREADS_MAX: Final = 4
HANDSHAKE_RECORD: Final = 0x16

DONE: Final = 0
WANTS_READ: Final = 1
WANTS_WRITE: Final = 2
LOST: Final = 3
"""The other side has gone away without a word about TLS: that is no failed authentication."""
FAILED: Final = 4

HANDSHAKE: Final = "handshake"

log = logging.getLogger("moldau.net")
log.addFilter(LogLimit())

_GONE = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class HandshakeThreads:
    """Those of one event loop; started with the first step."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns) -> None:
        self.loop = loop
        self.turns = turns
        self._threads: ThreadPoolExecutor | None = None

    def run(self, step: Callable[[], None], done: Callable[[], None]) -> None:
        """`done` is called in a turn of the loop, after the step."""
        if self._threads is None:
            count = min(THREADS_MAX, max(2, os.cpu_count() or 2))
            self._threads = ThreadPoolExecutor(count, thread_name_prefix="tls handshake")
        future = self._threads.submit(step)
        future.add_done_callback(lambda finished: self._on_done(finished, done))

    def _on_done(self, finished: Future[None], done: Callable[[], None]) -> None:
        if finished.cancelled():
            return
        error = finished.exception()
        if error is not None:
            log.error("TLS handshake failed with an unexpected error", exc_info=error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            self.loop.call_soon_threadsafe(self.turns.run, HANDSHAKE, done)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


class Handshake:
    """One, of either side. `on_end` is called once, in a turn of the loop, unless it is closed before."""

    def __init__(
        self,
        sock: socket.socket,
        threads: HandshakeThreads,
        context: Callable[[], ssl.SSLContext],
        server_hostname: str | None,
        on_end: Callable[[Handshake], None],
        deadline_ms: int,
    ) -> None:
        self._sock = sock
        self._fd = sock.fileno()
        self._threads = threads
        self._loop = threads.loop
        self._context = context
        self._server_hostname = server_hostname
        self._on_end = on_end
        self.deadline_ms = deadline_ms
        self._secured: TlsSocket | None = None
        self._watches = 0  # WANTS_READ or WANTS_WRITE
        self._is_stepping = False
        self._steps = 0
        self.closed = False
        self.outcome = FAILED
        self.reason = "the step did not end"
        if server_hostname is None:
            self._watch(WANTS_READ)
        else:
            self._step()

    @property
    def is_server(self) -> bool:
        return self._server_hostname is None

    def take_socket(self) -> TlsSocket:
        """What it led to; the socket is not this one's any more."""
        assert self.outcome == DONE and self._secured is not None and not self.closed
        self.closed = True
        return self._secured

    def peer_certificate(self) -> bytes | None:
        assert self._secured is not None
        return self._secured.peer_certificate()

    # In the loop

    def _watch(self, what: int) -> None:
        self._watches = what
        if what == WANTS_READ:
            self._loop.add_reader(self._fd, self._threads.turns.run, HANDSHAKE, self._on_ready)
        else:
            self._loop.add_writer(self._fd, self._threads.turns.run, HANDSHAKE, self._on_ready)

    def _stop_watching(self) -> None:
        if self._watches == WANTS_READ:
            self._loop.remove_reader(self._fd)
        elif self._watches == WANTS_WRITE:
            self._loop.remove_writer(self._fd)
        self._watches = 0

    def _on_ready(self) -> None:
        self._stop_watching()
        if self._secured is None and self.is_server and not self._is_greeted():
            self._end()
        else:
            self._step()

    def _is_greeted(self) -> bool:
        """Whether the first byte is that of a handshake."""
        try:
            first = self._sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError as error:
            self.outcome, self.reason = LOST, error.strerror or str(error)
            return False
        if not first:
            self.outcome, self.reason = LOST, "closed"
        elif first[0] != HANDSHAKE_RECORD:
            self.outcome, self.reason = FAILED, "it does not speak TLS"
        else:
            return True
        return False

    def _step(self) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            self.outcome, self.reason = FAILED, "it came in too many pieces"
            self._end()
            return
        self._is_stepping = True
        self._threads.run(self._shake_hands, self._on_stepped)

    def _on_stepped(self) -> None:
        self._is_stepping = False
        if self.closed:
            self._close_socket()
        elif self.outcome in (WANTS_READ, WANTS_WRITE):
            self._watch(self.outcome)
        else:
            self._end()

    def _end(self) -> None:
        self._on_end(self)
        if not self.closed:
            self.close()

    def close(self) -> None:
        """Gives up, or is done with it."""
        if self.closed:
            return
        self.closed = True
        self._stop_watching()
        if not self._is_stepping:
            self._close_socket()

    def _close_socket(self) -> None:
        (self._secured if self._secured is not None else self._sock).close()

    # On a thread

    def _shake_hands(self) -> None:
        self.outcome, self.reason = FAILED, "the step did not end"  # whatever is thrown
        try:
            if self._secured is None:
                self._secured = TlsSocket(self._sock, self._context(), self._server_hostname)
            self._secured.shake_hands()
            self.outcome = DONE
        except ssl.SSLWantReadError:
            self.outcome = WANTS_READ
        except ssl.SSLWantWriteError:
            self.outcome = WANTS_WRITE
        except _GONE:
            self.outcome, self.reason = LOST, "closed"
        except ssl.SSLCertVerificationError as error:
            self.outcome, self.reason = FAILED, f"the certificate is not trusted: {error.verify_message}"
        except ssl.SSLError as error:
            self.outcome, self.reason = FAILED, reason_text(error)
        except OSError as error:
            self.outcome, self.reason = LOST, str(error)
        except TlsMisuse as misuse:
            self.outcome, self.reason = FAILED, str(misuse)
        except ValueError as error:
            self.outcome, self.reason = FAILED, str(error)  # such as a host name that can be none


def reason_text(error: ssl.SSLError) -> str:
    """OpenSSL's words, in small letters."""
    return (error.reason or error.strerror or str(error)).partition(" (")[0].lower().replace("_", " ")
