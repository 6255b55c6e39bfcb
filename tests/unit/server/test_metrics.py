"""What a node counts is on a page that Prometheus can read."""

from __future__ import annotations

import asyncio
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import count

import pytest

from moldau.config.definitions import ConfigError
from moldau.config.own_keys import (
    METRICS_GROUPS_KEY,
    METRICS_LISTENER_KEY,
    METRICS_TOPICS_KEY,
    OWN_KEYS,
    split_address,
)
from moldau.net.turns import Turns
from moldau.node.share import counts
from moldau.protocol import errors
from moldau.records.builder import BatchBuilder
from moldau.server.metrics import quotas as quota_metrics
from moldau.server.metrics import shares
from moldau.server.metrics.collect import Sources, collect
from moldau.server.metrics.metric import GAUGE, Metric, to_text
from moldau.server.metrics.page import MetricsPage
from tests.pace import patience
from tests.unit.node.world import NodeWorld, produce_request
from tests.unit.share.node_world import ShareNode

LINE = re.compile(
    r'[a-z_:][a-z0-9_:]*(\{[a-zA-Z_]+="([^"\\\n]|\\["\\n])*"(,[a-zA-Z_]+="[^"]*")*\})? (-?\d+(\.\d+)?|NaN)'
)


def test_a_node_tells_what_its_logs_count() -> None:
    world = NodeWorld(log_cleaner_backoff_ms="100").start()
    settings = {"cleanup_policy": "compact", "internal_segment_bytes": "400", "min_cleanable_dirty_ratio": "0.01"}
    assert world.create("t", **settings) == errors.NONE
    for _ in range(30):
        builder = BatchBuilder()
        builder.append(world.now_ms, b"key", b"value")
        world.ask(produce_request("t", 0, builder.build()), 9)
    world.run(120_000)
    text = to_text(collect(Sources(world.node), world.node.cleaner.metrics.last_look_ms + 40, 0.0))
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert all(LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#"))
    assert values["kafka_log_logcleanermanager_time_since_last_run_ms"] == "40"
    assert int(values["moldau_log_cleaner_runs_total"]) >= 1
    assert 0 < int(values["kafka_log_logcleaner_cleaner_recopy_percent"]) < 50
    directory = world.node.logs.directories[0].path
    assert values[f'kafka_log_logcleanermanager_uncleanable_partitions_count{{logDirectory="{directory}"}}'] == "0"
    for name in ("max_clean_time_secs", "max_compaction_delay_secs", "max_buffer_utilization_percent"):
        assert f"kafka_log_logcleaner_{name}" in values


def test_a_node_tells_what_its_share_groups_do() -> None:
    node = ShareNode(2)
    member = node.join()
    node.fill(10)
    member.fetch(node.place, (node.topic_id, 1))
    member.acknowledge({node.place: [(0, 3, [1]), (4, 5, [2, 3])]})
    member.fetch(epoch=9)
    text = to_text(collect(Sources(node.world.node), node.world.now_ms, 0.0))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in lines)
    values = dict(line.rsplit(" ", 1) for line in lines)
    labels = '{group="g",topic="s",partition="0"}'
    assert values[f"kafka_server_sharepartitionmetrics_inflightmessagecount{labels}"] == "6"
    assert values[f"moldau_share_partition_lag{labels}"] == "5"
    assert values[f"moldau_share_partition_acquired_records{labels}"] == "4"
    for kind, total in (("Accept", 4), ("Release", 1), ("Reject", 1), ("Renew", 0)):
        name = f'kafka_server_sharegroupmetrics_recordacknowledgements_total{{ackType="{kind}"}}'
        assert values[name] == str(total)
    assert values["kafka_server_sharesessioncache_sharesessionscount"] == "1"
    assert values["kafka_server_sharesessioncache_sharepartitionscount"] == "2"
    assert values["kafka_server_brokertopicmetrics_failedsharefetchrequests_total"] == "1"
    assert values['kafka_server_group_coordinator_metrics_share_group_count{state="Stable"}'] == "1"
    assert int(values["kafka_server_share_coordinator_metrics_write_total"]) == 1
    assert values[f"kafka_server_sharepartitionmetrics_inflightbatchmessagecount_mean{labels}"] == "6.0"
    times = "kafka_server_sharegroupmetrics"
    assert (
        values[f"{times}_partitionloadtimems_count"] == "2" and float(values[f"{times}_partitionloadtimems_max"]) >= 0
    )
    assert values[f'{times}_topicpartitionsacquiretimems_count{{group="g"}}'] == "1"
    assert values[f'{times}_requesttopicpartitionsfetchratio_mean{{group="g"}}'] == "50.0"
    assert int(values["kafka_server_group_coordinator_metrics_share_group_rebalance_count"]) >= 1
    assert values["kafka_server_sharesessioncache_sharesessionevictions_total"] == "0"
    node.world.run(31_000)
    text = to_text(collect(Sources(node.world.node), node.world.now_ms, 0.0))
    assert f"kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total{labels} 4" in text


def test_times_are_kept_for_so_many_groups_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "GROUPS_MAX", 1)
    kept = counts.ShareCounts()
    for group_id in ("a", "b", "a"):
        kept.on_fetched(group_id, 30, 4, 1)
    assert list(kept.groups) == ["a"] and kept.groups["a"].acquire_ms.count == 2
    assert (kept.groups["a"].acquire_ms.mean, kept.groups["a"].fetch_percent.max) == (30, 25)


def test_the_page_has_so_many_share_partitions_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "SHARE_PARTITIONS_MAX", 1)
    node = ShareNode(2)
    node.join().fetch((node.topic_id, 0), (node.topic_id, 1), max_wait_ms=0)
    text = to_text(collect(Sources(node.world.node), node.world.now_ms, 0.0))
    assert text.count("kafka_server_sharepartitionmetrics_inflightmessagecount{") == 1
    assert "moldau_share_partitions 2" in text


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
        with urllib.request.urlopen(request, timeout=patience(10)) as answer:
            if path.startswith("/metrics"):
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_page() -> None:
    async def run() -> None:
        values = count(1)
        reasons = iter(["broker 1 is fenced", ""])
        page = MetricsPage(lambda: iter([Metric("m", GAUGE, "", next(values)), None]), lambda: next(reasons), Turns())
        await page.start("127.0.0.1", 0)
        assert (await asyncio.to_thread(ask, page.port, "/metrics"))[1].endswith("\nm 1\n")
        assert (await asyncio.to_thread(ask, page.port, "/metrics?x=1"))[1].endswith("\nm 2\n")
        assert await asyncio.to_thread(ask, page.port, "/metrics", "HEAD") == (200, "")
        assert (await asyncio.to_thread(ask, page.port, "/other"))[0] == 404
        assert (await asyncio.to_thread(ask, page.port, "/metrics", "POST"))[0] == 405
        assert await asyncio.to_thread(ask, page.port, "/healthz") == (200, "ok\n")
        assert await asyncio.to_thread(ask, page.port, "/readyz") == (503, "broker 1 is fenced\n")
        assert await asyncio.to_thread(ask, page.port, "/readyz") == (200, "ready\n")
        for nonsense in (b"\r\n\r\n", b"x" * 20_000, b"\x00\x00\x00\x12\x00\x03"):
            reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
            writer.write(nonsense)
            writer.write_eof()
            try:
                assert b"200 OK" not in await reader.read()
            except ConnectionError:
                pass  # closed with bytes unread
            writer.close()
        assert (await asyncio.to_thread(ask, page.port, "/"))[0] == 200
        page.close()

    asyncio.run(run())


def test_a_long_scrape_lets_others_have_their_turn_and_is_shared() -> None:
    async def run() -> None:
        turns, scrapes = Turns(), []

        def collect_slowly() -> Iterator[Metric | None]:
            scrapes.append(1)
            for number in range(20):
                time.sleep(0.003)
                yield Metric(f"m{number}", GAUGE, "", number)

        page = MetricsPage(collect_slowly, lambda: "", turns)
        await page.start("127.0.0.1", 0)
        before = turns.turns_total
        texts = await asyncio.gather(*(asyncio.to_thread(ask, page.port, "/metrics") for _ in range(3)))
        assert all("\nm19 19\n" in text for _, text in texts)
        assert turns.turns_total - before >= 20 * len(scrapes)
        assert len(scrapes) < 3
        page.close()

    asyncio.run(run())


def test_its_address_is_checked() -> None:
    key = OWN_KEYS[METRICS_LISTENER_KEY]
    assert key.parse("") == ""
    for text, address in {":9404": ("", 9404), "localhost:1": ("localhost", 1), "[::1]:0": ("::1", 0)}.items():
        assert key.parse(text) == text
        assert split_address(text) == address
    for name in (METRICS_TOPICS_KEY, METRICS_GROUPS_KEY):
        with pytest.raises(ConfigError, match="Expected a regular expression"):
            OWN_KEYS[name].parse("(")
    for text in ("9404", "host", "host:", "host:x", "host:65536", "host:٣"):
        with pytest.raises(ConfigError, match="Expected host:port"):
            key.parse(text)


def test_quotas_are_told_by_who_uses_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_metrics, "ROWS_MAX", 2)
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    quotas = world.node.quotas
    quotas.apply({(("user", None),): {"producer_byte_rate": 1000.0, "request_percentage": 1.0}})
    for user, size in (("a b*~ü", 20_000), ("bob", 50), ("carol", 200)):
        world.context.principal = f"User:{user}"
        world.context.unbilled_ns = size * 1000
        builder = BatchBuilder()
        builder.append(world.now_ms, None, bytes(size))
        world.ask(produce_request("t", 0, builder.build()), 9)
    text = to_text(collect(Sources(world.node), world.now_ms, 0.0))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    values = dict(line.rsplit(" ", 1) for line in lines)
    rates = [name for name in values if name.startswith("kafka_server_produce_byte_rate")]
    name = 'user="a%20b%2A%7E%C3%BC",client_id=""'
    assert rates == [
        f"kafka_server_produce_byte_rate{{{name}}}",
        'kafka_server_produce_byte_rate{user="carol",client_id=""}',
    ]
    assert 2000 < float(values[rates[0]]) < 2100
    assert float(values[f"moldau_quota_produce_limit{{{name}}}"]) == 1000
    assert 10_000 < float(values[f"kafka_server_produce_throttle_time{{{name}}}"]) < 11_000
    assert values["kafka_server_produce_queue_size"] == "1"
    assert values["moldau_quota_produce_budgets"] == "3"
    assert float(values[f"kafka_server_request_request_time{{{name}}}"]) > 0
