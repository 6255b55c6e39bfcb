"""The files in deploy/prometheus as Prometheus' own tool sees them: their syntax, and when each alert fires."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop import prometheus
from tests.interop.prometheus import promtool

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
ALERTS = FOLDER / "alerts.yml"
TESTS = FOLDER / "alerts_test.yml"


@pytest.fixture(scope="module", autouse=True)
def with_promtool() -> None:
    reason = prometheus.missing()
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize("name", ["prometheus.yml", "prometheus-confluent.yml"])
def test_the_configuration_is_valid(name: str) -> None:
    done = promtool("check", "config", str(FOLDER / name))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_valid() -> None:
    done = promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alert_names())} rules found" in done.stdout, done.stdout


def test_each_alert_fires_when_it_should_and_not_before() -> None:
    done = promtool("test", "rules", str(TESTS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test_and_says_what_to_do() -> None:
    tests = TESTS.read_text()
    blocks = ALERTS.read_text().split("- alert: ")[1:]
    assert len(blocks) == len(alert_names())
    for block in blocks:
        name = block.split()[0]
        assert name in tests, f"{name} has no test"
        for part in ("severity:", "summary:", "description:"):
            assert part in block, f"{name} has no {part}"


def alert_names() -> list[str]:
    return re.findall(r"- alert: (\w+)", ALERTS.read_text())
