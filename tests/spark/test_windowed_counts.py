"""The example examples/windowed_counts.py: two streams, a join, windows and a watermark, exactly once into a topic."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")

from examples import windowed_counts
from moldau.client import Producer
from tests.interop.nodes import Node
from tests.spark import topics
from tests.spark.streams import run_to_end

PAGES = ("/home", "/cart", "/help")


def event_time(second: int) -> str:
    return f"2026-01-01T12:{second // 60:02}:{second % 60:02}Z"


def minute_of(second: int) -> str:
    """As Spark writes a timestamp, in UTC, which the session of the tests is in."""
    return f"2026-01-01 12:{second // 60:02}:00"


def send(node: Node, topic: str, events: list[dict[str, Any]]) -> None:
    with Producer(node.bootstrap) as producer:
        for event in events:
            producer.send(topic, json.dumps(event))


def test_counts_arrive_once_over_restarts(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    """Late clicks do not count, closed windows are written once, and a restart goes on where the last run ended."""
    views, clicks, counts = (f"{topic}-{name}" for name in ("views", "clicks", "counts"))
    for name in (views, clicks, counts):
        topics.create(moldau_node, name, 2)
    places = (moldau_node.bootstrap, views, clicks, counts, str(tmp_path / "checkpoint"))
    expected: Counter[tuple[str, str]] = Counter()
    for run in range(2):
        seconds = range(run * 240, run * 240 + 120)
        send(
            moldau_node,
            views,
            [
                {"view": at, "page": PAGES[at % 3], "time": event_time(at)}
                for at in sorted(seconds, key=lambda at: at ^ 5)
            ],
        )
        clicked = [{"view": at, "time": event_time(at + 7)} for at in seconds if at % 2 == 0]
        too_late = [{"view": at, "time": event_time(at + 70)} for at in seconds if at % 2 == 1]
        send(moldau_node, clicks, clicked + too_late)
        expected.update((PAGES[at % 3], minute_of(at)) for at in seconds if at % 2 == 0)
        # Time goes on in both streams, which closes the windows before it.
        for number, name in enumerate((views, clicks), 1):
            send(moldau_node, name, [{"view": -number, "page": "-", "time": event_time(run * 240 + 239)}])
        for _ in range(2):
            run_to_end(lambda: windowed_counts.start(spark, *places, once=True))
    found = [json.loads(value) for value in topics.committed_values(moldau_node, counts)]
    assert len(found) == len({(row["page"], row["minute"]) for row in found}), "a window is there twice"
    assert {(row["page"], row["minute"]): row["count"] for row in found} == expected
