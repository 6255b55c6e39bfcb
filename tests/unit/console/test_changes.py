"""What changes are refused before a broker is asked, and what a preview says of each partition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from moldau.actions.topic_changes import first_kept
from moldau.client.results import TopicPartition
from moldau.console.app import make_app
from moldau.console.shell import STATIC
from tests.unit.console.test_access import settings

EACH = TopicPartition("orders", 3)


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(settings()), base_url="http://localhost:9080") as made:
        made.headers["x-csrf-token"] = made.get("/api/session").json()["csrf"]
        yield made


@pytest.mark.parametrize(
    ("start", "end", "at", "expected"),
    [
        (5, 20, 12, (12, "")),
        (5, 20, 5, (5, "")),
        (5, 20, 2, (5, "")),
        (5, 20, 20, (20, "")),
        (5, 20, 21, (20, "orders-3 ends at 20: all of it goes.")),
        (5, 20, -1, (20, "orders-3 has no record that young: all of it goes.")),
        (0, 0, 0, (0, "")),
        (7, 7, -1, (7, "")),
    ],
)
def test_a_partition_keeps_what_is_at_the_place_and_behind_it(
    start: int, end: int, at: int, expected: tuple[int, str]
) -> None:
    assert first_kept(EACH, start, end, at) == expected


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("topics/delete-records", {"name": "t", "confirmed": "T", "before": {"0": 1}}, "not the topic's"),
        ("topics/delete-records", {"name": "t", "confirmed": "t"}, "nothing to delete"),
        ("topics/delete-records", {"name": "t", "confirmed": "t", "before": {}}, "nothing to delete"),
        ("topics/delete-records", {"name": "t", "confirmed": "t", "before": {"0": -1}}, "partitions and offsets"),
        ("topics/delete-records", {"name": "t", "confirmed": "t", "before": {"0": True}}, "partitions and offsets"),
        ("topics/delete-records", {"name": "t", "confirmed": "t", "before": {"-1": 5}}, "partitions and offsets"),
        ("topics/delete-records/preview", {"name": "t", "up_to": "here"}, "There is no place 'here'"),
        ("transactions/abort", {"topic": "t", "partition": 1, "open_since_offset": 7, "confirmed": "t"}, "partition's"),
        ("transactions/terminate", {"id": "a", "confirmed": ""}, "not the transactional id's"),
        ("messages/partition-of-key", {"topic": "t", "key": {"format": "hex", "text": "abc"}}, "The key is not hex"),
        ("quotas/alter", {"entity": {"user": "a"}, "quotas": {}}, "nothing to change"),
        ("quotas/alter", {"entity": {"host": "a"}, "quotas": {"x": 1}}, "one or more of"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    client: TestClient, path: str, body: dict[str, object], words: str
) -> None:
    response = client.post(f"/api/{path}", json=body)
    assert response.status_code == 400, response.text
    assert words in response.json()["message"]


def test_every_api_is_asked_for_by_a_page() -> None:
    """One that is not would be kept for nobody."""
    pages = "".join(path.read_text() for path in STATIC.rglob("*.js"))
    paths = [route.path for route in make_app(settings()).routes if isinstance(route, Route)]
    missing = [path for path in paths if path.startswith("/api/") and "{" not in path and path not in pages]
    assert len(paths) > 40 and missing == []
