"""A broker that is away, a read-only console, and a console that ends with its node."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.console.processes import ConsoleProcess
from tests.interop.nodes import HOST, MoldauNode, free_ports
from tests.pace import wait_until


def test_a_page_says_that_the_broker_is_away_and_recovers(page: Any, folder: Path) -> None:
    node = MoldauNode(folder / "broker")
    node.format()
    console = ConsoleProcess(folder / "console", node.bootstrap)
    try:
        page.goto(console.url)
        page.get_by_text("No response").first.wait_for()
        node.start()
        page.get_by_text("Everything is as it should be").wait_for()
        node.kill()
        page.get_by_text("No response").first.wait_for()
        node.start()
        page.get_by_text("No response").first.wait_for(state="detached")
    finally:
        console.stop()
        node.kill()


def test_a_read_only_console_changes_nothing(page: Any, node: MoldauNode, folder: Path) -> None:
    console = ConsoleProcess(folder, node.bootstrap, "--read-only")
    try:
        page.goto(f"{console.url}/topics")
        page.get_by_text("read-only").wait_for()
        assert page.get_by_role("button", name="Create topic").count() == 0
        answer = page.evaluate(
            """async () => {
                const session = await (await fetch("/api/session")).json();
                const headers = { "content-type": "application/json", "x-csrf-token": session.csrf };
                const body = JSON.stringify({ name: "forbidden" });
                const response = await fetch("/api/topics/create", { method: "POST", headers, body });
                return [response.status, (await response.json()).error];
            }"""
        )
        assert answer == [403, "READ_ONLY"]
    finally:
        console.stop()


def test_the_console_beside_a_node_begins_and_ends_with_it(folder: Path) -> None:
    port, console_port = free_ports(2)
    log = folder / "server.log"
    command = [
        *MoldauNode.command(),
        "server",
        "--port",
        str(port),
        "--data-dir",
        str(folder / "data"),
        f"--console={HOST}:{console_port}",
    ]
    environment = dict(os.environ)
    if "MOLDAU_COMMAND" not in environment:
        import sys

        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    address = f"http://{HOST}:{console_port}/healthz"
    for kill in (False, True):
        with log.open("wb") as output:
            server = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            wait_until(lambda: answers(address), 30, lambda: log.read_text(errors="replace"), pause_s=0.1)
        finally:
            server.kill() if kill else server.terminate()
            server.wait()
        wait_until(lambda: not answers(address), 20, "the console outlived its node", pause_s=0.1)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def test_strangers_are_not_answered(console: ConsoleProcess) -> None:
    """Another name in the Host header, another origin, a change without the page's secret."""
    assert status(console.url, {"Host": "evil.example"}) == 403
    assert status(f"{console.url}/api/topics/create", {"Origin": "http://evil.example"}, b"{}") == 403
    assert status(f"{console.url}/api/topics/create", {"Sec-Fetch-Site": "cross-site"}, b"{}") == 403
    assert status(f"{console.url}/api/topics/create", {}, b"{}") in (401, 403)
    assert status(f"{console.url}/static/x/../../app.py", {}) == 404
    with urllib.request.urlopen(console.url) as response:
        policy = response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        text = response.read().decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|style=", text)
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)


def status(address: str, headers: dict[str, str], data: bytes | None = None) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
