"""Runs the console: one process, one event loop, until it is told to stop."""

from __future__ import annotations

import ctypes
import gc
import logging
import socket
import sys
from collections.abc import Callable

import uvicorn

from moldau.console.app import make_app
from moldau.console.settings import ConsoleSettings

log = logging.getLogger("moldau.console")

HEADER_BYTES_MAX = 64 * 1024
# Live tails never end by themselves: they are not waited for.
STOP_S = 2
OBJECTS_BETWEEN_COLLECTIONS = 5_000
# Of glibc's mallopt().
M_ARENA_MAX = -8


class CannotListen(Exception):
    """The address cannot be had; the text says why."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def keep_small() -> None:
    """A console lives for days with little to do: what it does not need any more goes back to the system.

    The command line collects garbage rarely, which suits tools. Threads get no heaps of their own here: what one of
    them has read and dropped would stay with it.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 10, 5)
    gc.freeze()
    try:
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    except (OSError, AttributeError):
        pass  # another C library


def listen(settings: ConsoleSettings) -> socket.socket:
    """The socket of the console's address; raises CannotListen."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotListen(f"{settings.host}:{settings.port} cannot be had: {reason}.") from None
    listener.listen(128)
    return listener


def run(settings: ConsoleSettings, on_ready: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM; on_ready is told the address."""
    keep_small()
    listener = listen(settings)
    port = listener.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "https" if settings.tls_certificate else "http"
    config = uvicorn.Config(
        make_app(settings),
        # Access lines say nothing that the audit log does not; what goes wrong is logged by the console itself.
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="on",
        ws="none",
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    server = _Server(config, lambda: on_ready(f"{scheme}://{host}:{port}/"))
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
        sys.stdout.flush()
