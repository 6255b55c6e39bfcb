"""What we describe is what Apache Kafka describes, key by key: compared with answers captured from a real broker."""

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.config.describe import (
    DescribedConfig,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from moldau.config.dynamic import DynamicBrokerConfig

DATA = Path(__file__).parents[2] / "data"


def load(case: str) -> tuple[dict[str, Any], DynamicBrokerConfig]:
    captured = json.loads((DATA / f"describe-configs-{case}.json").read_text())
    broker = DynamicBrokerConfig(BrokerConfig(captured["static"], warn=False))
    broker.update_default(captured["dynamic"]["default"])
    broker.update_broker(captured["dynamic"]["broker"])
    return captured, broker


def lines(described: list[DescribedConfig]) -> dict[str, dict[str, Any]]:
    return {
        config.name: {
            "name": config.name,
            "value": config.value,
            "read_only": config.read_only,
            "source": config.source,
            "sensitive": config.sensitive,
            "synonyms": [[synonym.name, synonym.value, synonym.source] for synonym in config.synonyms],
            "type": config.type,
            "documented": config.documentation is not None,
        }
        for config in described
    }


@pytest.mark.parametrize("case", ["plain", "changed"])
def test_every_described_line_equals_the_real_brokers_line(case: str) -> None:
    """Names, values, sources, flags, synonyms and types agree for topic, broker, default, group and client metrics."""
    captured, broker = load(case)
    dynamic = captured["dynamic"]
    ours = [
        lines(describe_topic(dynamic["topic"], broker)),
        lines(describe_broker(broker)),
        lines(describe_broker_default(broker)),
        lines(describe_group(dynamic["group"], broker)),
        lines(describe_client_metrics(dynamic["client_metrics"])),
    ]
    for mine, real in zip(ours, captured["results"], strict=True):
        theirs = {config["name"]: config for config in real["configs"]}
        assert mine.keys() == theirs.keys()
        for name, line in theirs.items():
            assert mine[name] == line


def test_a_password_is_never_given_out() -> None:
    """Neither the value nor a synonym of a password key carries its text."""
    _, broker = load("changed")
    line = lines(describe_broker(broker))["ssl.keystore.password"]
    assert line["sensitive"]
    assert line["value"] is None
    assert line["synonyms"] == [["ssl.keystore.password", None, 4]]


def test_a_stored_value_that_no_longer_parses_does_not_break_the_description() -> None:
    """A topic whose stored override is garbage is described with the broker's value."""
    _, broker = load("plain")
    line = lines(describe_topic({"retention.ms": "soon", "from.the.future": "1"}, broker))
    assert line["retention.ms"]["value"] == "604800000"
    assert line["from.the.future"]["sensitive"]
