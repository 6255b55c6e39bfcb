"""Every metric that Java's clients have is one of ours by name, group and tags, or the page says why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.client.metrics.catalogue import known_metrics

ROOT = Path(__file__).parents[3]
JAVA_NAMES = ROOT / "tests" / "data" / "kafka-facts" / "client-metrics.txt"
PAGE = ROOT / "docs" / "client-metrics.md"

# By what the list calls them.
KINDS = {
    "producer": "producer",
    "consumer-classic": "consumer",
    "consumer-consumer": "consumer",
    "share-consumer": "share consumer",
    "admin": "admin",
}


def java_names(client: str) -> set[tuple[str, str, tuple[str, ...]]]:
    found = set()
    for line in JAVA_NAMES.read_text().splitlines():
        name, group, metric, tags = line.split(" ")
        if name == client:
            found.add((group, metric, tuple(sorted(tag for tag in tags.split(",") if tag != "client-id"))))
    assert found
    return found


def our_names(kind: str) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(row.group, row.name, tuple(sorted(row.tags))) for row in known_metrics(kind)}


def explained() -> set[str]:
    """The metrics of the table of those that are not there."""
    section = PAGE.read_text().split("## What differs from Java's client")[1].split("Some are measured")[0]
    return {
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w-]+)`", line.split("|")[1])
    }


@pytest.mark.parametrize("client", KINDS)
def test_every_metric_of_java_is_there_or_explained(client: str) -> None:
    missing = java_names(client) - our_names(KINDS[client])
    assert {(group, name) for group, name, _ in missing if name not in explained()} == set()


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
def test_no_metric_is_ours_alone(kind: str) -> None:
    java = set().union(*(java_names(client) for client, ours in KINDS.items() if ours == kind))
    assert our_names(kind) - java == set()


def test_only_what_is_missing_is_explained() -> None:
    ours = {name for kind in set(KINDS.values()) for _, name, _ in our_names(kind)}
    assert explained() - ours == explained()
