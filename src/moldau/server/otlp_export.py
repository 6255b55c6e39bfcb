"""Passes what clients push on to a collector, as OTLP over HTTP: on a thread, from a queue with bounds.

A push is MetricsData, and a request to a collector has the same form, so the bytes go on as they came. The loop only
puts them into the queue; what does not fit there is dropped and counted. A collector that does not respond is told of
once, and once when it responds again. Nothing is sent twice.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from moldau.security.token_sources import SourceError
from moldau.server.http_source import fetch
from moldau.server.metrics.telemetry import ExportCounts

QUEUED_MAX = 1000
QUEUED_BYTES_MAX = 16 << 20
TIMEOUT_S = 10.0
STOP_S_MAX = 1.0
HEADERS = {"Content-Type": "application/x-protobuf", "User-Agent": "moldau"}

log = logging.getLogger("moldau.telemetry")

Send = Callable[[str, bytes], None]


def post(url: str, body: bytes) -> None:
    """SourceError where it was not taken."""
    fetch(url, None, HEADERS, body, TIMEOUT_S)


class OtlpExport:
    """See the module. `add` belongs to the loop; the thread ends with `close`."""

    def __init__(self, url: str, send: Send = post) -> None:
        self.url = url
        self.counts = ExportCounts()
        self._send = send
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._changed = threading.Condition()
        self._is_over = False
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="otlp-export", daemon=True)
        self._thread.start()

    def add(self, payload: bytes) -> None:
        with self._changed:
            if len(self._queue) >= QUEUED_MAX or self._queued_bytes + len(payload) > QUEUED_BYTES_MAX or self._is_over:
                self.counts.dropped_total += 1
                return
            self._queue.append(payload)
            self._queued_bytes += len(payload)
            self._changed.notify()

    def close(self) -> None:
        """What is queued has a moment to leave, the rest is dropped."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join(STOP_S_MAX)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._is_over:
                    self._changed.wait()
                if not self._queue:
                    return
                payload = self._queue.popleft()
                self._queued_bytes -= len(payload)
            self._pass_on(payload)

    def _pass_on(self, payload: bytes) -> None:
        try:
            self._send(self.url, payload)
        except SourceError as error:
            self.counts.failed_total += 1
            if not self._has_failed:
                self._has_failed = True
                log.warning("cannot export client telemetry: %s", error)
        else:
            self.counts.sent_total += 1
            if self._has_failed:
                self._has_failed = False
                log.info("exporting client telemetry to %s again", self.url)
