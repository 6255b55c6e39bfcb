"""Fixtures of the interop tests: a running Moldau, a running Apache Kafka, and Kafka's tools.

MOLDAU_COMMAND names the `moldau` command to test (default: the sources). MOLDAU_INTEROP_SELF=1 puts a second Apache
Kafka in Moldau's place, which shows whether a failing test or Moldau is wrong. Under CI=true a skipped test fails.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from tests.interop import kafka_oracle
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import MoldauNode, Node
from tests.interop.peers import Peer
from tests.interop.secured import SecuredKafka
from tests.interop.secured import missing as secured_missing

AnyNode = TypeVar("AnyNode", bound=Node)

AGAINST_KAFKA = os.environ.get("MOLDAU_INTEROP_SELF") == "1"
_numbers = itertools.count(1)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Where everything can be installed, a skip hides something."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped under CI=true: {reason}"


# What `make interop` runs and the run for every change does not: many starts of Kafka's tools for what changes rarely,
# and questions that are about Apache Kafka itself.
THOROUGH = re.compile(
    r"true_of_apache_kafka|older_transaction_versions|test_dump_log_same|test_same_group_tools|test_kafka_tools_same"
    r"|test_same_share_tools.*(kafka|moldau)\]"
    r"|test_cli_golden.*ours_against_kafka|test_round_trip.*kill -9|test_cluster_tools.*\[kafka"
    r"|test_client_transactions.*\[kafka|test_client_transactions.*tool_shows|test_cli_golden.*real_tools"
    r"|test_compaction.*own_tester|test_streams|test_transactional_copies"
    r"|test_same_connection_limits.*comes_too_often|test_same_quotas.*librdkafka"
    r"|test_every_client.*(franz-go|java.*three nodes)"
    r"|test_same_telemetry|test_telemetry.*java"
    r"|test_kafka_exporter.*what_kafka_exporter_says|test_dashboards|test_alert_rules"
    # Our own client and commands with Apache Kafka as the broker: one test of each kind stays.
    r"|test_client_groups(?!.*every_record_is_read_once).*\[kafka|test_client_share(?!.*accepted_once).*\[kafka"
    r"|test_cli_commands(?!.*ways_to_produce).*\[oracle|test_share_consumers.*KafkaNode"
    r"|test_same_classic_groups.*(chance.*\[[23]\]|every_version\[[1-46-8]\])"
)


# Files with few tests that take long begin first: a worker that took one of them last would keep the others waiting.
LONG = (
    "round_trip",
    "group_recovery",
    "client_groups",
    "mixed_cluster",
    "same_rights",
    "share_consumers",
    "same_quotas",
    "tls",
)


def order_of_files(items: list[pytest.Item]) -> dict[Path, tuple[int, int]]:
    """The long ones, then those with the most tests."""
    counts = Counter(item.path for item in items)
    ranks = {f"test_{name}.py": rank for rank, name in enumerate(LONG)}
    return {path: (ranks.get(path.name, len(ranks)), -count) for path, count in counts.items()}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "interop" in item.path.parts:
            item.add_marker(pytest.mark.interop)
    if os.environ.get("MOLDAU_INTEROP") == "brief":
        left_out = [item for item in items if THOROUGH.search(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    order = order_of_files(items)
    items.sort(key=lambda item: order[item.path])


def new_node(folder: Path, overrides: dict[str, str] | None = None) -> Node:
    """A formatted node under test that is not yet started."""
    if AGAINST_KAFKA:
        require_kafka()
    node = KafkaNode(folder, overrides) if AGAINST_KAFKA else MoldauNode(folder, overrides)
    node.format()
    return node


def stop_cleanly(node: Node) -> None:
    if node.process is None:
        return
    code = node.stop()
    assert code == 0 or isinstance(node, KafkaNode), f"{node.name} ended with {code}:\n{node.output()[-3000:]}"


def running(node: AnyNode) -> Iterator[AnyNode]:
    """For fixtures: a node that is started, and stopped behind the last test."""
    node.format()
    node.start()
    yield node
    stop_cleanly(node)


def require_kafka() -> None:
    reason = kafka_oracle.missing()
    if reason:
        pytest.skip(reason)


class NodeFactory(Protocol):
    def __call__(self, overrides: dict[str, str] | None = None) -> Node: ...


@pytest.fixture(scope="session")
def moldau_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One Moldau for all tests that create topics of their own and leave the rest alone."""
    node = new_node(tmp_path_factory.mktemp("moldau"))
    node.start()
    yield node
    stop_cleanly(node)


@pytest.fixture
def start_moldau(tmp_path: Path) -> Iterator[NodeFactory]:
    """Starts nodes for one test alone, with settings of their own."""
    started: list[Node] = []

    def start(overrides: dict[str, str] | None = None) -> Node:
        node = new_node(tmp_path / f"moldau-{len(started) + 1}", overrides)
        started.append(node)
        node.start()
        return node

    yield start
    for node in started:
        stop_cleanly(node)


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A real Apache Kafka with the same settings."""
    require_kafka()
    yield from running(KafkaNode(tmp_path_factory.mktemp("kafka")))


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """A real Apache Kafka with a listener for each kind of TLS and SASL."""
    reason = secured_missing()
    if reason:
        pytest.skip(reason)
    yield from running(SecuredKafka(tmp_path_factory.mktemp("secured")))


@pytest.fixture(scope="session")
def kafka_tools() -> None:
    """The tools of the Apache Kafka distribution are runnable here."""
    require_kafka()


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"interop-{next(_numbers)}"


class Same(Protocol):
    def __call__(self, scenario: Callable[[Peer], Any]) -> Any: ...


@pytest.fixture
def same(oracle: KafkaNode, moldau_server: Node) -> Same:
    """Runs a scenario against Apache Kafka and against Moldau, demands the same observation, and returns it."""

    def run(scenario: Callable[[Peer], Any]) -> Any:
        observed = []
        for node in (oracle, moldau_server):
            peer = Peer(node)
            try:
                observed.append(scenario(peer))
            finally:
                peer.close()
        kafka, moldau = observed
        assert moldau == kafka, f"Moldau (left) differs from Apache Kafka (right){explain(moldau, kafka)}"
        return kafka

    return run


def explain(left: Any, right: Any, path: str = "") -> str:
    """Where two observations differ, one line for each place."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = list(dict.fromkeys([*left, *right]))
        missing = "<missing>"
        return "".join(explain(left.get(key, missing), right.get(key, missing), f"{path}.{key}") for key in keys)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
        return "".join(explain(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True)))
    return "" if left == right else f"\n  {path or 'answer'}: {left!r} instead of {right!r}"
