"""What clients push is passed on by a thread; whoever does not take it holds up nobody."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from moldau.config.definitions import ConfigError
from moldau.config.own_keys import OWN_KEYS, TELEMETRY_ENDPOINT_KEY
from moldau.security.token_sources import SourceError
from moldau.server import otlp_export
from moldau.server.otlp_export import OtlpExport
from tests.pace import patience


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + patience(10)
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.005)


def test_a_collector_gets_the_bytes_as_they_are() -> None:
    taken: list[tuple[str, str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    export = OtlpExport(f"http://127.0.0.1:{server.server_port}/v1/metrics")
    try:
        export.add(b"one")
        export.add(b"two")
        until(lambda: export.counts.sent_total == 2)
    finally:
        export.close()
        server.shutdown()
        server.server_close()
    assert taken == [("/v1/metrics", "application/x-protobuf", body) for body in (b"one", b"two")]


def test_a_collector_that_fails_is_told_of_once_and_once_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([False, False, True, True])

    def send(url: str, body: bytes) -> None:
        if not next(answers):
            raise SourceError(f"{url} responds with status 503")

    export = OtlpExport("http://c/v1/metrics", send)
    with caplog.at_level(logging.INFO, "moldau.telemetry"):
        for number in range(4):
            export.add(b"x")
            until(lambda number=number: export.counts.sent_total + export.counts.failed_total == number + 1)
    export.close()
    assert (export.counts.sent_total, export.counts.failed_total) == (2, 2)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "cannot export client telemetry: http://c/v1/metrics responds with status 503",
        "exporting client telemetry to http://c/v1/metrics again",
    ]


def test_a_collector_that_hangs_costs_so_much_memory_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_export, "QUEUED_BYTES_MAX", 1000)
    monkeypatch.setattr(otlp_export, "STOP_S_MAX", 0.05)
    started, go_on = threading.Event(), threading.Event()

    def send(url: str, body: bytes) -> None:
        started.set()
        go_on.wait(patience(10))

    export = OtlpExport("http://c", send)
    export.add(b"first")
    assert started.wait(patience(10))
    for _ in range(30):
        export.add(bytes(100))
    assert export.counts.dropped_total == 20
    began_s = time.monotonic()
    export.close()
    assert time.monotonic() - began_s < patience(5)
    export.add(b"late")
    assert export.counts.dropped_total == 21
    go_on.set()


def test_its_address_is_checked() -> None:
    key = OWN_KEYS[TELEMETRY_ENDPOINT_KEY]
    for text in ("", "http://localhost:4318/v1/metrics", "https://collector.example.org/x"):
        assert key.parse(text) == text
    for text in ("localhost:4318", "file:///etc/passwd", "http://", "http:///x", "http://a b"):
        with pytest.raises(ConfigError, match="Expected a URL"):
            key.parse(text)
