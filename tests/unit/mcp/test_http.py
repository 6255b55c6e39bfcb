"""Who is answered over HTTP: names, origins, the token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="install the extra mcp: the SDK is missing")

from starlette.testclient import TestClient

from moldau.mcp.http import make_app, security_of
from moldau.mcp.settings import HttpSettings, McpSettings
from tests.unit.mcp.test_tool_runner import NOWHERE, TOKEN

PORT = 9081
OWN = {"host": f"127.0.0.1:{PORT}"}
ACCEPT = {"accept": "application/json, text/event-stream"}
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(McpSettings(NOWHERE), HttpSettings(), PORT)) as made:
        yield made


def status(client: TestClient, **headers: str) -> int:
    return client.post("/mcp", json=LIST_TOOLS, headers={**OWN, **ACCEPT, **headers}).status_code


def test_it_answers_under_its_own_names(client: TestClient) -> None:
    for host in (f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}", "localhost"):
        assert status(client, host=host) == 200, host


def test_names_that_were_made_to_lead_here_are_not_answered(client: TestClient) -> None:
    for host in ("evil.example", f"evil.example:{PORT}", f"localhost.evil.example:{PORT}", "localhost:1", ""):
        assert status(client, host=host) == 421, host


def test_pages_from_elsewhere_are_not_answered(client: TestClient) -> None:
    assert status(client, origin=f"http://127.0.0.1:{PORT}") == 200
    for origin in ("http://evil.example", "null", "http://localhost:3000", f"http://localhost.evil.example:{PORT}"):
        assert status(client, origin=origin) == 403, origin


def test_what_is_no_json_is_not_answered(client: TestClient) -> None:
    refused = client.post("/mcp", content="{}", headers={**OWN, **ACCEPT, "content-type": "text/plain"})
    assert refused.status_code in (400, 415)


def test_a_token_is_wanted_before_anything_else_is_looked_at() -> None:
    with TestClient(make_app(McpSettings(NOWHERE), HttpSettings(token=TOKEN), PORT)) as client:
        for wrong in ("", "Bearer", f"Bearer {TOKEN}x", f"Bearer x{TOKEN}", f"Basic {TOKEN}", TOKEN, "Bearer ünïcödé"):
            refused = client.post("/mcp", json=LIST_TOOLS, headers={**OWN, **ACCEPT, "authorization": wrong.encode()})
            assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer", wrong
            assert TOKEN not in refused.text
        assert status(client) == 401
        assert status(client, host="evil.example") == 401
        assert status(client, authorization=f"Bearer {TOKEN}") == 200
        assert status(client, authorization=f"bearer {TOKEN}") == 200
        assert status(client, authorization=f"Bearer {TOKEN}", host="evil.example") == 421
        assert client.get("/anything", headers=OWN).status_code == 401


def test_names_of_a_proxy_are_added() -> None:
    found = security_of(HttpSettings("0.0.0.0", token=TOKEN, allowed_hosts=("tools.example",)), PORT)
    assert {"tools.example", f"tools.example:{PORT}", "tools.example:*"} <= set(found.allowed_hosts)
    assert "https://tools.example" in found.allowed_origins and found.enable_dns_rebinding_protection
    assert f"[::1]:{PORT}" in security_of(HttpSettings("::1"), PORT).allowed_hosts


def test_tools_say_what_they_do() -> None:
    for allow_writes in (False, True):
        settings = McpSettings(NOWHERE, allow_writes=allow_writes)
        with TestClient(make_app(settings, HttpSettings(), PORT)) as client:
            listed = client.post("/mcp", json=LIST_TOOLS, headers={**OWN, **ACCEPT}).json()["result"]["tools"]
        hints = {tool["name"]: tool["annotations"] for tool in listed}
        assert ("delete_topic" in hints) is allow_writes and "list_topics" in hints
        assert all(hint["readOnlyHint"] for hint in hints.values()) is not allow_writes
        assert hints["list_topics"]["readOnlyHint"] is True
        if allow_writes:
            assert hints["delete_topic"]["destructiveHint"] is True and hints["delete_topic"]["readOnlyHint"] is False
            assert hints["produce_message"]["destructiveHint"] is False
