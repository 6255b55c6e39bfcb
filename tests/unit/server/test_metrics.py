"""What a node counts is on a page that Prometheus can read."""

from __future__ import annotations

import asyncio
import re
import urllib.error
import urllib.request

import pytest

from moldau.config.definitions import ConfigError
from moldau.config.own_keys import METRICS_LISTENER_KEY, OWN_KEYS, split_address
from moldau.protocol import errors
from moldau.records.builder import BatchBuilder
from moldau.server.metrics import GAUGE, Metric, collect, to_text
from moldau.server.metrics_page import MetricsPage
from tests.unit.node.world import NodeWorld, produce_request

LINE = re.compile(r'[a-z_:][a-z0-9_:]*(\{[a-zA-Z_]+="([^"\\\n]|\\["\\n])*"(,[a-zA-Z_]+="[^"]*")*\})? -?\d+(\.\d+)?')


def test_a_node_tells_what_its_logs_count() -> None:
    world = NodeWorld(log_cleaner_backoff_ms="100").start()
    settings = {"cleanup_policy": "compact", "internal_segment_bytes": "400", "min_cleanable_dirty_ratio": "0.01"}
    assert world.create("t", **settings) == errors.NONE
    for _ in range(30):
        builder = BatchBuilder()
        builder.append(world.now_ms, b"key", b"value")
        world.ask(produce_request("t", 0, builder.build()), 9)
    world.run(120_000)
    text = to_text(collect(world.node, world.node.cleaner.metrics.last_look_ms + 40))
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert all(LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#"))
    assert values["kafka_log_logcleanermanager_time_since_last_run_ms"] == "40"
    assert int(values["moldau_log_cleaner_runs_total"]) >= 1
    assert 0 < int(values["kafka_log_logcleaner_cleaner_recopy_percent"]) < 50
    directory = world.node.logs.directories[0].path
    assert values[f'kafka_log_logcleanermanager_uncleanable_partitions_count{{logDirectory="{directory}"}}'] == "0"
    for name in ("max_clean_time_secs", "max_compaction_delay_secs", "max_buffer_utilization_percent"):
        assert f"kafka_log_logcleaner_{name}" in values


def test_labels_and_help_are_escaped() -> None:
    metric = Metric("m", GAUGE, 'says "a\\b"\nand more')
    metric.values[(("path", 'C:\\x"y"\n'),)] = 1.5
    assert to_text([metric, Metric("n", GAUGE, "", 2)]).splitlines() == [
        '# HELP m says "a\\\\b"\\nand more',
        "# TYPE m gauge",
        'm{path="C:\\\\x\\"y\\"\\n"} 1.5',
        "# HELP n ",
        "# TYPE n gauge",
        "n 2",
    ]


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_the_page() -> None:
    async def run() -> None:
        texts = iter(["one 1\n", "two 2\n", "", ""])
        page = MetricsPage(lambda: next(texts))
        await page.start("127.0.0.1", 0)
        assert await asyncio.to_thread(ask, page.port, "/metrics") == (200, "one 1\n")
        assert await asyncio.to_thread(ask, page.port, "/metrics?x=1") == (200, "two 2\n")
        assert await asyncio.to_thread(ask, page.port, "/metrics", "HEAD") == (200, "")
        assert await asyncio.to_thread(ask, page.port, "/other") == (404, "")
        assert await asyncio.to_thread(ask, page.port, "/metrics", "POST") == (405, "")
        for nonsense in (b"\r\n\r\n", b"x" * 20_000, b"\x00\x00\x00\x12\x00\x03"):
            reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
            writer.write(nonsense)
            writer.write_eof()
            try:
                assert b"200 OK" not in await reader.read()
            except ConnectionError:
                pass  # closed with bytes unread
            writer.close()
        assert await asyncio.to_thread(ask, page.port, "/") == (200, "")
        page.close()

    asyncio.run(run())


def test_its_address_is_checked() -> None:
    key = OWN_KEYS[METRICS_LISTENER_KEY]
    assert key.parse("") == ""
    for text, address in {":9404": ("", 9404), "localhost:1": ("localhost", 1), "[::1]:0": ("::1", 0)}.items():
        assert key.parse(text) == text
        assert split_address(text) == address
    for text in ("9404", "host", "host:", "host:x", "host:65536", "host:٣"):
        with pytest.raises(ConfigError, match="Expected host:port"):
            key.parse(text)
