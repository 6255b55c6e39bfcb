"""Dashboards that people have, on a cluster under load: a real Prometheus has a value for everything they ask for.

Three nodes are scraped with the configuration and the alert rules of deploy/prometheus, once for each spelling of
names. MOLDAU_TABLE_INTO names a page that gets the table of expressions and values.
"""

from __future__ import annotations

import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cluster.cluster_nodes import Cluster
from tests.interop import prometheus
from tests.interop.cluster_load import FORGOTTEN, ORDERS, PARTITIONS, QUICK_GROUPS, Load
from tests.interop.dashboards import SPELLINGS, Row, put_table, rows
from tests.interop.nodes import HOST, free_ports
from tests.interop.prometheus import Labels, Prometheus, promtool
from tests.pace import moment_ms, patience, wait_until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
CONFIGS = {"strimzi": "prometheus.yml", "confluent": "prometheus-confluent.yml"}
NODES = 3
ROUNDS_MIN, ROUNDS_MAX = 3, 12
# Series that begin with an event, or with TLS; a cluster that is well does without.
NOT_ALWAYS_THERE = {"moldau_loop_long_turn_seconds_total", "moldau_listener_certificate_expiry_timestamp_seconds"}

Answer = list[tuple[Labels, float]]


class Watched(NamedTuple):
    """A cluster after some load, and what Prometheus says of it."""

    spelling: str
    pages: list[str]
    prometheus: Prometheus
    load: Load
    answers: dict[Row, Answer]


@pytest.fixture(scope="module", params=SPELLINGS)
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    reason = prometheus.missing()
    if reason:
        pytest.skip(reason)
    spelling: str = request.param
    folder = tmp_path_factory.mktemp(spelling)
    with Cluster(folder, NODES, {**QUICK_GROUPS, "moldau.metrics.names": spelling}) as cluster:
        addresses = [f"{HOST}:{port}" for port in free_ports(NODES)]
        for node, address in zip(cluster.nodes.values(), addresses, strict=True):
            with node.properties.open("a") as properties:
                properties.write(f"moldau.metrics.listener={address}\n")
        cluster.start()
        with (
            Prometheus(folder / "prometheus", configuration(spelling, addresses, folder)) as watcher,
            Load(cluster.bootstrap, NODES) as load,
        ):
            pages = [f"http://{address}/metrics" for address in addresses]
            yield Watched(spelling, pages, watcher, load, ask_until_answered(watcher, load, rows(spelling)))


def configuration(spelling: str, addresses: list[str], folder: Path) -> str:
    """The one that is shipped, for these nodes and in a hurry."""
    alerts = folder / "alerts.yml"
    alerts.write_text((DEPLOY / "alerts.yml").read_text())
    text = (DEPLOY / CONFIGS[spelling]).read_text()
    for pattern, put in (
        (r"targets: \[.*\]", f"targets: [{', '.join(addresses)}]"),
        # A scrape that takes longer than the interval fails.
        (r"(scrape|evaluation)_interval: \w+", rf"\1_interval: {moment_ms(1000)}ms"),
        (r"- alerts.yml", f"- {alerts}"),
    ):
        text, changes = re.subn(pattern, put, text)
        assert changes
    return text


def ask_until_answered(watcher: Prometheus, load: Load, wanted: list[Row]) -> dict[Row, Answer]:
    answers: dict[Row, Answer] = {}
    for number in range(1, ROUNDS_MAX + 1):
        seen = watcher.scraped()
        load.round()
        wait_until(lambda seen=seen: watcher.scraped() > seen, 20, "nobody scrapes", 0.05)  # type: ignore[misc]
        if number < ROUNDS_MIN:
            continue
        for row in wanted:
            if row not in answers or not is_enough(row, answers[row]):
                answers[row] = watcher.query(row.expression)
        if all(is_enough(row, answers[row]) for row in wanted):
            break
    return answers


def is_enough(row: Row, answer: Answer) -> bool:
    if row.must_be_positive:
        return any(value > 0 for _, value in answer)
    return bool(answer) or row.may_be_missing


def test_every_expression_has_a_value(watched: Watched) -> None:
    lines = table(watched.answers)
    print("\n", *lines, sep="\n")
    page = os.environ.get("MOLDAU_TABLE_INTO")
    if page:
        put_table(Path(page), watched.spelling, lines)
    missing = [row for row, answer in watched.answers.items() if not is_enough(row, answer)]
    named = "".join(
        f"\n  {row.dashboard}: {row.expression}{' is never above 0' if watched.answers[row] else ''}" for row in missing
    )
    assert not missing, f"{len(missing)} of {len(watched.answers)} expressions have no value:{named}"


def table(answers: dict[Row, Answer]) -> list[str]:
    """In Markdown: each expression with the number of its series and the largest value."""
    lines = ["| dashboard | expression | series | largest value |", "|---|---|---|---|"]
    for row, answer in answers.items():
        largest = f"{max(value for _, value in answer):.6g}" if answer else "none yet"
        lines.append(f"| {row.dashboard} | `{row.expression}` | {len(answer)} | {largest} |")
    return lines


def test_counters_are_counters(watched: Watched) -> None:
    types: Any = watched.prometheus.ask("metadata")
    for row, answer in watched.answers.items():
        if row.use == "rate" and answer:
            assert {one["type"] for one in types[row.metric]} == {"counter"}, row.metric


def test_what_nodes_say_adds_up(watched: Watched) -> None:
    """Sums over all nodes are those of the cluster: nothing is said by two of them."""
    job = '{job="kafka-broker"}' if watched.spelling == "confluent" else ""
    orders = f'{{topic="{ORDERS}"}}'
    expected = {
        f"count(kafka_server_replicamanager_leadercount{job})": NODES,
        f"sum(kafka_controller_kafkacontroller_activecontrollercount{job})": 1,
        f"sum(kafka_topic_partitions{orders})": PARTITIONS,
        f"sum(kafka_topic_partition_replicas{orders})": PARTITIONS * NODES,
        f"sum(kafka_topic_partition_in_sync_replica{orders})": PARTITIONS * NODES,
        "max(count by (topic, partition) (kafka_topic_partition_current_offset))": 1,
        "max(count by (consumergroup, topic, partition) (kafka_consumergroup_lag))": 1,
    }
    seen: dict[str, float | None] = {}

    def is_so() -> bool:
        seen.update({expression: watched.prometheus.number(expression) for expression in expected})
        return seen == expected

    wait_until(is_so, 5, lambda: {one: (seen[one], expected[one]) for one in seen if seen[one] != expected[one]}, 0.2)


def test_lag_is_joined_with_the_latest_offsets(watched: Watched) -> None:
    """As the lag exporter's dashboard does it: each partition may be there once for each cluster."""
    group = f'{{group="{FORGOTTEN}"}}'
    latest = (
        f"sum((kafka_consumergroup_group_offset{group} * 0)"
        " + on(cluster_name, topic, partition) group_left() kafka_partition_latest_offset)"
    )
    committed = f"sum(kafka_consumergroup_group_offset{group})"
    lag = f"sum(kafka_consumergroup_group_lag{group})"
    ask = watched.prometheus.number
    assert ask(committed) == 5 * PARTITIONS
    # The leader of a partition and the coordinator of the group are not scraped at the same moment.
    wait_until(
        lambda: ask(f"{latest} - {committed} - {lag}") == 0,
        5,
        lambda: f"{ask(latest)} is not {ask(committed)} + {ask(lag)}",
        0.2,
    )


def test_one_instance_has_the_whole_cluster_for_grafana_7589(watched: Watched) -> None:
    if watched.spelling == "confluent":
        return  # its configuration is for dashboards that ask all instances
    found = watched.prometheus.query(f'sum by (instance) (kafka_topic_partitions{{topic="{ORDERS}"}})')
    assert found == [({"instance": "moldau"}, PARTITIONS)]


def test_pages_are_read_without_complaint(watched: Watched) -> None:
    def complaints() -> set[str]:
        targets: Any = watched.prometheus.ask("targets", state="active")
        return {target["lastError"] for target in targets["activeTargets"]} - {""}

    wait_until(lambda: not complaints(), 5, complaints, 0.2)
    for page in watched.pages:
        with urllib.request.urlopen(page, timeout=patience(5)) as answer:
            done = promtool("check", "metrics", text=answer.read().decode())
        # 3 is a matter of taste: what Kafka's exporters call a metric is not always what Prometheus would.
        assert done.returncode in (0, 3), done.stderr


def test_rules_know_their_metrics_and_a_cluster_that_is_well_has_no_alerts(watched: Watched) -> None:
    ask = watched.prometheus.ask
    wait_until(lambda: {rule["health"] for rule in alert_rules(ask("rules", type="alert"))} == {"ok"}, 5, "not asked")
    rules = alert_rules(ask("rules", type="alert"))
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []
    metrics = set(re.findall(r"\b(?:kafka|moldau)_\w+", " ".join(rule["query"] for rule in rules)))
    assert metrics

    def unknown() -> list[str]:
        counts = {name: f'count({{__name__=~"{name}(_total|persec)?"}})' for name in metrics - NOT_ALWAYS_THERE}
        return [name for name, expression in counts.items() if not watched.prometheus.query(expression)]

    wait_until(lambda: not unknown(), 5, lambda: f"no node has {unknown()}", 0.2)


def alert_rules(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [rule for group in answer["groups"] for rule in group["rules"]]
