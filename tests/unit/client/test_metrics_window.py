"""Rates, averages and maxima over Kafka's windows, on a clock of the test's own."""

from __future__ import annotations

from math import isnan

from moldau.client.metrics.names import MetricName, Metrics
from moldau.client.metrics.table import Table
from moldau.client.metrics.window import Summary, Tally, Window, summarize


def at(window: Window, tally: Tally, now_ms: int) -> Summary:
    window.tick(now_ms)
    return summarize([tally])


def record(window: Window, tally: Tally, value: int, now_ms: int) -> None:
    window.tick(now_ms)
    tally.record(value)


def test_what_never_happened_has_no_average() -> None:
    window = Window(0)
    found = at(window, Tally(window), 1_000)
    assert (found.count, found.total_count) == (0, 0)
    assert isnan(found.average) and isnan(found.largest) and isnan(found.smallest)


def test_averages_are_those_of_this_sample_and_the_one_before() -> None:
    window = Window(1_000)
    tally = Tally(window)
    record(window, tally, 0, 2_000)
    record(window, tally, 100, 3_000)
    assert (at(window, tally, 3_000).average, at(window, tally, 3_000).largest) == (50.0, 100.0)
    record(window, tally, 20, 31_000)
    found = at(window, tally, 60_999)
    assert (found.average, found.largest, found.smallest) == (40.0, 100.0, 0.0), "the sample before counts"
    found = at(window, tally, 61_000)
    assert (found.average, found.largest, found.smallest) == (20.0, 20.0, 20.0), "and is forgotten after it"
    assert isnan(at(window, tally, 91_000).average)
    assert at(window, tally, 91_000).total_amount == 120, "a total is never forgotten"


def test_a_long_silence_forgets_everything_at_once() -> None:
    window = Window(0)
    tally = Tally(window)
    record(window, tally, 7, 10_000)
    record(window, tally, 5, 500_000)
    found = at(window, tally, 500_001)
    assert (found.count, found.amount, found.largest, found.total_amount) == (1, 5, 5.0, 12)


def test_who_reads_changes_nothing() -> None:
    """Another thread may read while one counts."""
    window = Window(0)
    tally = Tally(window)
    record(window, tally, 7, 10_000)
    at(window, tally, 40_000)
    at(window, tally, 200_000)
    tally.record(3)
    assert (at(window, tally, 200_001).amount, tally.amount) == (3, 10)


def test_rates_are_over_a_whole_sample_and_what_has_passed_of_this_one() -> None:
    """As in Kafka, where a client that is one second old counts as one that did nothing in the sample before."""
    window = Window(5_000)
    assert window.seconds(6_000) == 31.0
    assert window.seconds(34_999) == 59.999
    assert window.seconds(35_000) == 30.0


def test_more_and_shorter_samples_may_be_asked_for() -> None:
    window = Window(0, samples=3, sample_ms=1_000)
    tally = Tally(window)
    for second in range(6):
        record(window, tally, 10 + second, second * 1_000)
    found = at(window, tally, 5_500)
    assert (found.count, found.smallest, found.largest) == (3, 13.0, 15.0)
    assert window.seconds(5_500) == 2.5


def test_one_sample_is_the_sample_of_the_moment() -> None:
    window = Window(0, samples=1, sample_ms=1_000)
    tally = Tally(window)
    record(window, tally, 1, 500)
    assert at(window, tally, 999).count == 1 and at(window, tally, 1_000).count == 0
    assert window.seconds(1_000) > 0


def test_metrics_are_found_by_name_group_and_tags() -> None:
    window = Window(0)
    table = Table(window, "c", 1_000)
    table.rows("consumer-metrics").put("request-total", 3.0)
    table.rows("consumer-node-metrics", node_id="node-1").put("request-total", 2.0)
    table.rows("consumer-fetch-manager-metrics", topic="a-b", partition=0).put("records-lag", 7.0)
    table.rows("app-info").put("version", "1")
    metrics = table.finish()
    assert metrics["request-total"] == 3.0 and metrics["version"] == "1" and metrics["count"] == 5.0
    assert "request-total" in metrics and "records-lag" not in metrics
    assert metrics.value("records-lag", topic="a-b", partition=0) == 7.0
    assert metrics.value("request-total", node_id="node-1") == 2.0
    assert metrics.value("request-total", client_id="c") == 3.0
    assert len(metrics.find("request-total")) == 2 and len(metrics.find(group="app-info")) == 1
    key = MetricName(
        "records-lag", "consumer-fetch-manager-metrics", (("client-id", "c"), ("topic", "a-b"), ("partition", "0"))
    )
    assert metrics[key] == 7.0 and key in metrics and hash(key)
    assert str(key) == "consumer-fetch-manager-metrics:records-lag:{client-id=c, topic=a-b, partition=0}"


def test_a_metric_that_is_not_there_is_a_key_error() -> None:
    metrics = Metrics({MetricName("a", "g", (("client-id", "c"),)): 1.0})
    for ask in (lambda: metrics["b"], lambda: metrics.value("a", topic="t")):
        try:
            ask()
        except KeyError:
            continue
        raise AssertionError("it was found")
