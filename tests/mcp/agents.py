"""Agents for tests: the SDK's own client over stdio or HTTP, in a loop of its own, and `moldau mcp` as a process."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.interop.nodes import HOST, MoldauNode
from tests.pace import patience

START_SECONDS_MAX = patience(30)
ANSWER_SECONDS_MAX = patience(40)
READY = re.compile(r"moldau mcp ready: (http://\S+)")


def environment() -> dict[str, str]:
    """Where an interpreted Moldau is found: the SDK hands on little of ours."""
    if "MOLDAU_COMMAND" in os.environ:
        return {}
    return {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


def stdio_server(bootstrap: str, *arguments: str) -> StdioServerParameters:
    command = [*MoldauNode.command(), "mcp", "--bootstrap-server", bootstrap, *arguments]
    return StdioServerParameters(command=command[0], args=command[1:], env=environment())


def http_transport(url: str, token: str) -> Any:
    return streamable_http_client(url, http_client=httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}))


class Agent:
    """A connected client; its calls block."""

    def __init__(self, server: Any, mode: str = "auto") -> None:
        self._server = server
        self._mode = mode
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._ended: asyncio.Event | None = None
        self._error: BaseException | None = None
        self.client: Client | None = None
        self._thread = threading.Thread(target=self._run, name="agent", daemon=True)
        self._thread.start()
        assert self._ready.wait(START_SECONDS_MAX), "the server does not answer"
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._live())

    async def _live(self) -> None:
        self._ended = asyncio.Event()
        try:
            async with Client(self._server, mode=self._mode) as client:  # type: ignore[arg-type]
                self.client = client
                self._ready.set()
                await self._ended.wait()
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ANSWER_SECONDS_MAX)

    def tools(self) -> dict[str, Any]:
        assert self.client is not None
        return {tool.name: tool for tool in self._wait(self.client.list_tools()).tools}

    def ask(self, name: str, /, **arguments: Any) -> Any:
        """What comes back, whatever it is."""
        assert self.client is not None
        return self._wait(self.client.call_tool(name, arguments))

    def answered_first(self, slow: list[tuple[str, dict[str, Any]]], quick: tuple[str, dict[str, Any]]) -> bool:
        """Whether a question that is asked after others is answered before any of them."""
        assert self.client is not None
        client = self.client

        async def compare() -> bool:
            waiting = [asyncio.ensure_future(client.call_tool(name, given)) for name, given in slow]
            await asyncio.sleep(0.2)
            await client.call_tool(*quick)
            first = not any(each.done() for each in waiting)
            for each in waiting:
                each.cancel()
            return first

        found: bool = self._wait(compare())
        return found

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a call that comes to something."""
        found = self.ask(name, **arguments)
        assert not found.is_error, found.content[0].text
        assert isinstance(found.structured_content, dict)
        return found.structured_content

    def failure(self, name: str, /, **arguments: Any) -> str:
        found = self.ask(name, **arguments)
        assert found.is_error, found.structured_content
        text: str = found.content[0].text
        return text

    def close(self) -> None:
        assert self._ended is not None
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(patience(10))
        assert not self._thread.is_alive(), "the server does not end"


class HttpProcess:
    """`moldau mcp --transport http` with its output in a file."""

    def __init__(self, folder: Path, bootstrap: str, *arguments: str) -> None:
        self.log_file = folder / "mcp.log"
        self.audit_file = folder / "audit.jsonl"
        command = [*MoldauNode.command(), "mcp", "--bootstrap-server", bootstrap, "--transport", "http"]
        command += ["--host", HOST, "--port", "0", "--audit-log", str(self.audit_file), *arguments]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **environment()}
            )
        self.url = self._wait_until_ready()

    def _wait_until_ready(self) -> str:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            found = READY.search(self.output())
            if found is not None:
                return found[1]
            assert self.process.poll() is None, f"it ended while starting:\n{self.output()}"
            assert time.monotonic() < deadline, f"it is not ready in time:\n{self.output()}"
            time.sleep(0.02)

    def output(self) -> str:
        return self.log_file.read_text(errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(patience(10))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it did not stop:\n{self.output()}") from None
