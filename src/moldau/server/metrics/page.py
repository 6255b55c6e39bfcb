"""Pages over HTTP where `moldau.metrics.listener` says so: `/metrics`, `/clients`, `/healthz` and `/readyz`.

For Prometheus, for Kubernetes, for `moldau client list` and for people with curl. A scrape is collected in turns of a
few milliseconds, so that clients do not wait for it; who asks while one is being collected gets the same one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from moldau.net.turns import Turns
from moldau.server.metrics.metric import STRIMZI, Metric, metric_pieces

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 5.0
SLICE_S = 0.002
WRITTEN_AT_ONCE = 256 * 1024
METRICS_PATHS = (b"/", b"/metrics")
CLIENTS = b"/clients"
HEALTH, READY = b"/healthz", b"/readyz"
METRICS = "metrics"
"""What the turns of the loop are told that a scrape is."""

PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
PLAIN_TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


class MetricsPage:
    """One small listener. Every response closes its connection. `not_ready` says why clients cannot be served, if
    so."""

    def __init__(
        self,
        collect: Callable[[], Iterator[Metric | None]],
        not_ready: Callable[[], str],
        turns: Turns,
        spelling: str = STRIMZI,
        clients: Callable[[], Iterator[str]] | None = None,
    ) -> None:
        """`clients` makes the document of `/clients`, if there is one."""
        self._collect = collect
        self._clients = clients
        self._not_ready = not_ready
        self._turns = turns
        self.spelling = spelling
        self._server: asyncio.Server | None = None
        self._collected: dict[bytes, asyncio.Task[list[bytes]]] = {}
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Raises OSError when the address is not free."""
        self._server = await asyncio.start_server(self._serve, host or None, port, limit=REQUEST_BYTES_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for collected in self._collected.values():
            collected.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS_MAX)
            for piece in await self._response_to(head):
                writer.write(piece)
                await asyncio.wait_for(writer.drain(), REQUEST_SECONDS_MAX)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # somebody who does not speak HTTP, or has gone
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    async def _response_to(self, head: bytes) -> list[bytes]:
        words = head.split(b"\r\n", 1)[0].split()
        method, path = (words[0], words[1].partition(b"?")[0]) if len(words) == 3 else (b"", b"")
        if method not in (b"GET", b"HEAD"):
            return respond("405 Method Not Allowed", "this page can only be read\n", has_body=True)
        has_body = method == b"GET"
        if path in METRICS_PATHS:
            return respond_pieces(
                "200 OK", await self._pieces(METRICS_PATHS[1], self._texts), has_body, PROMETHEUS_TEXT
            )
        if path == CLIENTS and self._clients is not None:
            return respond_pieces("200 OK", await self._pieces(path, self._clients), has_body, JSON)
        if path == HEALTH:
            return respond("200 OK", "ok\n", has_body)
        if path == READY:
            reason = self._not_ready()
            if reason:
                return respond("503 Service Unavailable", f"{reason}\n", has_body)
            return respond("200 OK", "ready\n", has_body)
        return respond("404 Not Found", "there are /metrics, /clients, /healthz and /readyz\n", has_body)

    async def _pieces(self, path: bytes, make: Callable[[], Iterator[str]]) -> list[bytes]:
        collected = self._collected.get(path)
        if collected is None or collected.done():
            collected = self._collected[path] = asyncio.ensure_future(self._collect_pieces(make()))
        # Whoever goes away does not end it for the others.
        return await asyncio.shield(collected)

    async def _collect_pieces(self, parts: Iterator[str]) -> list[bytes]:
        """With thousands of partitions a page has megabytes: it is never in one piece."""
        pieces: list[bytes] = []
        texts: list[str] = []
        size = 0
        turns = self._turns
        turns.begin()
        for text in parts:
            if text:
                texts.append(text)
                size += len(text)
            if size >= WRITTEN_AT_ONCE:
                pieces.append("".join(texts).encode())
                texts, size = [], 0
            if turns.is_longer_than(SLICE_S):
                if turns.end():
                    turns.tell(METRICS, "", "collecting metrics")
                await asyncio.sleep(0)
                turns.begin()
        pieces.append("".join(texts).encode())
        if turns.end():
            turns.tell(METRICS, "", "collecting metrics")
        return pieces

    def _texts(self) -> Iterator[str]:
        """Empty where there is nothing to show, but others may have their turn."""
        for metric in self._collect():
            if metric is None:
                yield ""
            else:
                yield from metric_pieces(metric, self.spelling)


def respond(status: str, text: str, has_body: bool, kind: str = PLAIN_TEXT) -> list[bytes]:
    return respond_pieces(status, [text.encode("utf-8")], has_body, kind)


def respond_pieces(status: str, body: list[bytes], has_body: bool, kind: str) -> list[bytes]:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {sum(map(len, body))}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    if not has_body:
        return [head.encode("ascii")]
    return [head.encode("ascii") + body[0], *body[1:]]
