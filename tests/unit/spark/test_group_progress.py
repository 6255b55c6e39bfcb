"""What a group is told: only what changed, and a failure never stops the query."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from moldau.client.errors import NetworkError, error_for
from moldau.client.results import OffsetAndMetadata, Outcome, TopicPartition
from moldau.protocol.errors import UNKNOWN_MEMBER_ID
from moldau.spark import group_progress
from moldau.spark.group_progress import GroupProgress
from moldau.spark.options import read_options

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
OPTIONS = read_options(
    {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a", "commitGroup": "g", "kafka.fetch.min.bytes": "5"}
)


class Coordinator:
    """Stands in for the admin client."""

    def __init__(self) -> None:
        self.commits: list[dict[TopicPartition, int]] = []
        self.problem: Exception | None = None
        self.refused: set[TopicPartition] = set()

    def __call__(self, config: dict[str, str]) -> Coordinator:
        assert config == {"bootstrap.servers": "localhost:9092"}
        return self

    def alter_consumer_group_offsets(
        self, group: str, offsets: dict[TopicPartition, OffsetAndMetadata], timeout_ms: int
    ) -> dict[TopicPartition, Outcome[None]]:
        assert group == "g"
        if self.problem is not None:
            raise self.problem
        self.commits.append({item: row.offset for item, row in offsets.items()})
        error = error_for(UNKNOWN_MEMBER_ID, "Group g has members.")
        return {item: Outcome(error=error if item in self.refused else None) for item in offsets}

    def close(self) -> None: ...


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    made = Coordinator()
    monkeypatch.setattr(group_progress, "Admin", made)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    fake: Any = type("Time", (), {"monotonic": staticmethod(lambda: now[0])})
    monkeypatch.setattr(group_progress, "time", fake)
    return now


def test_only_what_changed_is_committed(coordinator: Coordinator) -> None:
    progress = GroupProgress(OPTIONS)
    progress.commit({A0: 1, A1: 5})
    progress.commit({A0: 1, A1: 5})
    progress.commit({A0: 2, A1: 5})
    assert coordinator.commits == [{A0: 1, A1: 5}, {A0: 2}]


def test_a_coordinator_that_is_away_is_a_warning_and_not_asked_again_at_once(
    coordinator: Coordinator, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    progress = GroupProgress(OPTIONS)
    coordinator.problem = NetworkError("The coordinator is away.")
    with caplog.at_level(logging.WARNING, "moldau.spark"):
        progress.commit({A0: 1})
        progress.commit({A0: 2})
    assert caplog.text.count("The coordinator is away. The query continues") == 1
    coordinator.problem = None
    clock[0] += 31
    progress.commit({A0: 2})
    assert coordinator.commits == [{A0: 2}]


def test_a_group_with_members_is_a_warning(coordinator: Coordinator, clock: list[float], caplog: Any) -> None:
    coordinator.refused = {A1}
    progress = GroupProgress(OPTIONS)
    with caplog.at_level(logging.WARNING, "moldau.spark"):
        progress.commit({A0: 1, A1: 1})
    assert "Group g has members." in caplog.text
    coordinator.refused = set()
    clock[0] += 31
    progress.commit({A0: 1, A1: 1})
    assert coordinator.commits[-1] == {A1: 1}
