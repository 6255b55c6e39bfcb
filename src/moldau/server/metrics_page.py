"""The page `/metrics` over HTTP, for Prometheus and for people with curl, where `moldau.metrics.listener` says so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 5.0
PATHS = (b"/", b"/metrics")


class MetricsPage:
    """One small listener. Every answer closes its connection."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Raises OSError when the address is not free."""
        self._server = await asyncio.start_server(self._serve, host or None, port, limit=REQUEST_BYTES_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS_MAX)
            writer.write(self._answer(head))
            await asyncio.wait_for(writer.drain(), REQUEST_SECONDS_MAX)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # somebody who does not speak HTTP, or has gone
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split()
        method, path = (words[0], words[1].partition(b"?")[0]) if len(words) == 3 else (b"", b"")
        if method not in (b"GET", b"HEAD"):
            return respond("405 Method Not Allowed", "this page can only be read\n", has_body=True)
        if path not in PATHS:
            return respond("404 Not Found", "there is only /metrics\n", has_body=method == b"GET")
        return respond("200 OK", self._text(), has_body=method == b"GET")


def respond(status: str, text: str, has_body: bool) -> bytes:
    body = text.encode("utf-8")
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + (body if has_body else b"")
