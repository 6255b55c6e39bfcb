"""`moldau client list`, against pages that are laid down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli.client import duration_text
from moldau.cli.root import root
from moldau.facts import clients


def row(address: str, client_id: str | None = "app", **more: Any) -> dict[str, Any]:
    return {
        "listener": "PLAINTEXT",
        "address": address,
        "principal": "User:alice",
        "client_id": client_id,
        "software_name": "apache-kafka-java",
        "software_version": "4.3.1",
        "connected_ms": 65_000,
        "idle_ms": 10,
        "tls": False,
        "requests": 1000,
        "responses": 1000,
        "bytes_in": 2_000_000,
        "bytes_out": 100,
        "throttled_ms": 0,
        "throttled_total": 0,
        "telemetry": [{"instance_id": "AbC", "pushes": 1, "series": 2}],
        **more,
    }


PAGES = {
    1: [row("10.0.0.1:5000"), row("10.0.0.1:5001", telemetry=[]), row("10.0.0.2:1", "slow", throttled_ms=1500)],
    2: [row("10.0.0.1:5002", listener="SSL", throttled_total=3), row("10.0.0.3:9", None, software_version="unknown")],
}


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch_page(host: str, port: int, path: str) -> str | None:
        assert path == "/clients"
        if port not in PAGES:
            return None if port == 9 else "nonsense"
        return json.dumps({"node": port, "telemetry": True, "left_out": port - 1, "connections": PAGES[port]})

    monkeypatch.setattr(clients, "fetch_page", fetch_page)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["client", "list", *arguments], prog_name="moldau")


def asked(*ports: int) -> list[str]:
    return [word for port in ports for word in ("--metrics-address", f"h:{port}")]


def test_connections_of_one_client_are_one_row(pages: None) -> None:
    result = run(*asked(1, 2), "--telemetry")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[0] for line in lines] == ["CLIENT", "slow", "app", "-"], "throttled first, then by traffic"
    assert "for 1,500 ms" in result.stdout
    app = result.stdout.splitlines()[2]
    for text in ("apache-kafka-java 4.3.1", "User:alice", "10.0.0.1", "1 min 5 s", "3,000", "6.0 MB", "3 times", "AbC"):
        assert text in app
    assert "1 connection more are left out" in result.stderr


def test_every_connection_can_be_seen(pages: None) -> None:
    lines = run(*asked(1, 2), "--connections").stdout.splitlines()
    assert len(lines) == 6 and "10.0.0.1:5002" in lines[4] and "SSL" in lines[4]


def test_programs_get_json(pages: None) -> None:
    found = json.loads(run(*asked(1, 2), "--format", "json").stdout)
    app = next(each for each in found if each["client_id"] == "app")
    assert (app["brokers"], app["connections"], app["instance_ids"]) == ([1, 2], 3, ["AbC"])
    assert app["listeners"] == ["PLAINTEXT", "SSL"]
    each = json.loads(run(*asked(1), "--connections", "--format", "json").stdout)
    assert next((one["broker"], one["address"]) for one in each) == (1, "10.0.0.1:5000")


def test_brokers_that_tell_nothing_are_named(pages: None) -> None:
    result = run(*asked(1, 9, 8))
    assert result.exit_code == 0 and "Not known of h:9, h:8" in result.stderr
    result = run(*asked(9))
    assert result.exit_code == 1 and "moldau.metrics.listener" in result.stderr
    result = run("--metrics-address", "nonsense")
    assert result.exit_code == 2 and "HOST:PORT" in result.stderr


def test_durations_have_two_units() -> None:
    texts = [duration_text(seconds * 1000) for seconds in (0, 59, 60, 3661, 90_000)]
    assert texts == ["0 s", "59 s", "1 min", "1 h 1 min", "1 d 1 h"]
