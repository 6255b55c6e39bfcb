"""Serves an application over HTTP: one process, one event loop, until it is told to stop."""

from __future__ import annotations

import ctypes
import gc
import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

HEADER_BYTES_MAX = 64 * 1024
# Live views never end by themselves: they are not waited for.
STOP_S = 2
OBJECTS_BETWEEN_COLLECTIONS = 5_000
# Of glibc's mallopt().
M_ARENA_MAX = -8


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def keep_small() -> None:
    """A process that lives for days with little to do: what it does not need any more goes back to the system.

    The command line collects garbage rarely, which suits tools. Threads get no heaps of their own here: what one of
    them has read and dropped would stay with it.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 10, 5)
    gc.freeze()
    try:
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    except (OSError, AttributeError):
        pass  # another C library


def serve(
    app: ASGIApp,
    listener: socket.socket,
    on_ready: Callable[[], None],
    tls_certificate: str | None = None,
    tls_key: str | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM, and closes the socket."""
    config = uvicorn.Config(
        app,
        # Access lines say nothing that the audit log does not; what goes wrong is logged by the application itself.
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="on",
        ws="none",
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=tls_certificate,
        ssl_keyfile=tls_key,
    )
    server = _Server(config, on_ready)
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
        sys.stdout.flush()
