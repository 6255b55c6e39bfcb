"""Who is answered: names, origins, secrets; and what every answer says about itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from moldau.actions.audit import Audit
from moldau.console.access import Access
from moldau.console.app import make_app
from moldau.console.settings import ConsoleSettings
from moldau.console.shell import STATIC, render_shell, version_of_files

# Nobody listens there.
NOWHERE = "127.0.0.1:1"


def settings(**more: object) -> ConsoleSettings:
    given = {"bootstrap.servers": NOWHERE}
    return ConsoleSettings(
        NOWHERE,
        {"admin": given, "consumer": given, "producer": given},
        **{"login": False, **more},  # type: ignore[arg-type]
    )


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(settings()), base_url="http://localhost:9080") as made:
        yield made


def test_every_answer_forbids_what_is_not_ours(client: TestClient) -> None:
    for path in ("/", "/topics/x", "/api/session", f"/static/{version_of_files()}/app.js", "/api/nothing"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_files_may_be_kept_and_answers_not(client: TestClient) -> None:
    assert "immutable" in client.get(f"/static/{version_of_files()}/app.js").headers["cache-control"]
    assert client.get("/static/old/app.js").headers["cache-control"] == "no-store"
    assert client.get("/").headers["cache-control"] == "no-store"
    for wrong in ("../app.py", "..%2fapp.py", "nothing.js", "pages"):
        assert client.get(f"/static/{version_of_files()}/{wrong}").status_code in (404, 200)
        assert "def make_app" not in client.get(f"/static/{version_of_files()}/{wrong}").text


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost:9080", True),
        ("127.0.0.1:9080", True),
        ("[::1]:9080", True),
        ("10.0.0.7", True),
        ("console.example:9080", True),
        ("evil.example", False),
        ("localhost.evil.example:9080", False),
        ("", False),
    ],
)
def test_names_that_are_not_ours_are_not_answered(host: str, ours: bool) -> None:
    async def nothing(scope: object, receive: object, send: object) -> None: ...

    assert Access(nothing, ["console.example"]).is_ours(host) is ours


def test_a_change_needs_the_secret_of_the_page(client: TestClient) -> None:
    assert client.post("/api/topics/create", json={}).status_code == 401
    csrf = client.get("/api/session").json()["csrf"]
    assert client.post("/api/topics/create", json={}).status_code == 403
    assert client.post("/api/topics/create", json={}, headers={"x-csrf-token": "x" + csrf}).status_code == 403
    refused = client.post("/api/topics/create", json={}, headers={"x-csrf-token": csrf})
    assert refused.status_code == 400 and "name is missing" in refused.json()["message"]


def test_a_change_from_elsewhere_is_refused_before_anything_is_read(client: TestClient) -> None:
    csrf = client.get("/api/session").json()["csrf"]
    for more in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/api/topics/create", json={}, headers={"x-csrf-token": csrf, **more}).status_code == 403


def test_cookies_stay_with_the_browser(client: TestClient) -> None:
    cookie = client.get("/api/session").headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie


def test_a_broker_that_is_away_is_said_in_words(client: TestClient) -> None:
    client.get("/api/session")
    found = client.get("/api/overview")
    assert found.status_code == 503
    assert found.json()["away"] is True and found.json()["message"].endswith(".")


def test_a_console_that_others_reach_is_read_only() -> None:
    assert settings(host="127.0.0.1").may_change and settings(host="::1").may_change
    assert not settings(host="0.0.0.0").may_change
    assert settings(host="0.0.0.0", allow_changes=True).may_change
    with TestClient(make_app(settings(allow_changes=False)), base_url="http://localhost:9080") as client:
        csrf = client.get("/api/session").json()["csrf"]
        refused = client.post("/api/topics/create", json={"name": "x"}, headers={"x-csrf-token": csrf})
        assert (refused.status_code, refused.json()["error"]) == (403, "READ_ONLY")


def test_bodies_that_make_no_sense(client: TestClient) -> None:
    headers = {"x-csrf-token": client.get("/api/session").json()["csrf"]}
    for body in (b"[]", b"{", b"3"):
        assert client.post("/api/messages/browse", content=body, headers=headers).status_code == 400


def test_without_a_login_nothing_is_shown() -> None:
    with TestClient(make_app(settings(login=True)), base_url="http://localhost:9080") as client:
        session = client.get("/api/session").json()
        assert session["login_wanted"] is True
        for path in ("/api/topics", "/api/overview", "/api/groups"):
            assert client.get(path).status_code == 401
        headers = {"x-csrf-token": session["csrf"]}
        assert client.post("/api/session/login", json={"user": "a"}, headers=headers).status_code == 401
        assert client.post("/api/session/login", json={"user": "a", "password": "b"}).status_code == 403


def test_no_file_reaches_outside_or_runs_what_it_is_given() -> None:
    """No address of another host, no markup from text, no code from text."""
    for path in sorted(STATIC.rglob("*")):
        if path.suffix not in (".js", ".css"):
            continue
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        for forbidden in ("http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "@import"):
            assert forbidden not in text, f"{path.name}: {forbidden}"
    assert "<style" not in render_shell() and "javascript:" not in render_shell()


def test_a_line_of_the_audit_log_cannot_be_forged(tmp_path: Path) -> None:
    audit = Audit(str(tmp_path / "audit.jsonl"))
    audit.note("anna\n{}", "127.0.0.1", "delete topic", "a\r\nb", {"x": "\x1b"}, None)
    audit.close()
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 1
    row = json.loads(lines[0])
    assert (row["user"], row["target"], row["outcome"]) == ("anna\n{}", "a\r\nb", "done")
