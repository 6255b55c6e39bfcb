"""Calls without a broker: what is refused before anybody is asked, what is said when nobody answers, who is let in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from moldau.client.errors import ConfigError
from moldau.mcp.bounds import limits_of
from moldau.mcp.settings import HttpSettings, McpSettings, NotSafe
from moldau.mcp.tool import Asked, Tool
from moldau.mcp.tool_runner import CALLS_MAX, TOOLS, ToolFailed, ToolRunner

# Nobody listens there.
NOWHERE = {kind: {"bootstrap.servers": "127.0.0.1:1"} for kind in ("admin", "consumer", "producer")}
TOKEN = "0123456789abcdef-secret"


def failure(settings: McpSettings, name: str, more_tools: tuple[Tool, ...] = (), /, **arguments: Any) -> str:
    async def run() -> str:
        tool_runner = ToolRunner(settings)
        tool_runner.tools |= {tool.name: tool for tool in more_tools}
        try:
            with pytest.raises(ToolFailed) as failed:
                await tool_runner.call(name, arguments)
            return str(failed.value)
        finally:
            await tool_runner.close()

    return asyncio.run(run())


@pytest.mark.parametrize("name", [tool.name for tool in TOOLS if tool.writes])
def test_a_change_is_refused_where_none_is_allowed(name: str) -> None:
    assert failure(McpSettings(NOWHERE), name).startswith("READ_ONLY: This server is read-only")


def test_a_tool_that_there_is_not() -> None:
    assert (
        failure(McpSettings(NOWHERE), "list_topic")
        == "NOT_FOUND: There is no tool 'list_topic'. Did you mean list_topics?"
    )


def test_a_wrong_argument_is_told_before_anybody_is_asked() -> None:
    assert "The argument topic is missing" in failure(McpSettings(NOWHERE), "describe_topic")
    assert "With start=time the argument time is needed" in failure(
        McpSettings(NOWHERE), "read_messages", topic="t", start="time"
    )
    assert "The argument offset belongs to start=offset" in failure(
        McpSettings(NOWHERE), "read_messages", topic="t", offset=3
    )
    assert "With up_to=time the argument time is needed" in failure(
        McpSettings(NOWHERE, allow_writes=True), "delete_records", topic="t", up_to="time"
    )
    assert "With where=shift the argument shift_by is needed" in failure(
        McpSettings(NOWHERE, allow_writes=True), "reset_offsets", group="g", topics={"t": None}, where="shift"
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("describe_topic", {"topic": "secret"}),
        ("read_messages", {"topic": "secret"}),
        ("read_message", {"topic": "secret", "partition": 0, "offset": 0}),
        ("search_messages", {"topic": "secret", "text": "x"}),
        ("groups_of_topic", {"topic": "secret"}),
        ("find_hanging_transactions", {"topic": "secret"}),
        ("describe_configs", {"kind": "topic", "name": "secret"}),
        ("produce_message", {"topic": "secret", "value": "x"}),
        ("add_partitions", {"topic": "secret", "partitions": 9}),
        ("alter_topic_configs", {"topic": "secret", "changes": {"retention.ms": "1"}}),
        ("delete_topic", {"topic": "secret", "confirm": "secret"}),
        ("delete_records", {"topic": "secret", "up_to": "end"}),
    ],
)
def test_a_topic_that_is_not_allowed_looks_unknown_and_nobody_is_asked(name: str, arguments: dict[str, Any]) -> None:
    settings = McpSettings(NOWHERE, allow_writes=True, topics=("orders*",))
    assert failure(settings, name, **arguments) == (
        "UNKNOWN_TOPIC_OR_PARTITION: There is no topic secret, or you may not see it."
    )


def test_acls_are_not_listed_where_topics_are_hidden() -> None:
    assert failure(McpSettings(NOWHERE, topics=("orders*",)), "list_acls").startswith("NOT_SHOWN: ACLs name topics")


def test_a_broker_that_is_away_is_said_in_words() -> None:
    said = failure(McpSettings(NOWHERE), "cluster_overview")
    assert "127.0.0.1:1" in said and said.endswith(".")


def test_a_call_that_takes_too_long_ends() -> None:
    async def sleep(asked: Asked) -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    slow = Tool("slow", "Slow", "Sleeps.", sleep)
    assert failure(McpSettings(NOWHERE, call_s=0.05), "slow", (slow,)).startswith("TIMEOUT: there was no result within")


def test_so_many_calls_at_once_and_no_more() -> None:
    async def run() -> None:
        going_on = asyncio.Event()

        async def wait(asked: Asked) -> dict[str, Any]:
            await going_on.wait()
            return {}

        tool_runner = ToolRunner(McpSettings(NOWHERE))
        tool_runner.tools["wait"] = Tool("wait", "Wait", "Waits.", wait)
        waiting = [asyncio.ensure_future(tool_runner.call("wait", {})) for _ in range(CALLS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(ToolFailed, match="BUSY: 32 calls are under way already"):
            await tool_runner.call("wait", {})
        going_on.set()
        assert await asyncio.gather(*waiting) == [{}] * CALLS_MAX
        assert await tool_runner.call("wait", {}) == {}
        await tool_runner.close()

    asyncio.run(run())


def test_a_bug_and_a_wrong_setting_stay_in_the_log() -> None:
    async def break_down(asked: Asked) -> dict[str, Any]:
        raise RuntimeError(TOKEN)

    async def misconfigured(asked: Asked) -> dict[str, Any]:
        raise ConfigError(f"sasl.password: {TOKEN}")

    for handler in (break_down, misconfigured):
        said = failure(McpSettings(NOWHERE), "odd", (Tool("odd", "Odd", "Fails.", handler),))
        assert TOKEN not in said and "its log says" in said


def test_an_answer_that_cannot_be_cut_is_not_sent() -> None:
    async def answer(asked: Asked) -> dict[str, Any]:
        return {"text": "x" * 5_000}

    large = Tool("large", "Large", "Is large.", answer)
    settings = McpSettings(NOWHERE, limits=limits_of(10, 4_096))
    assert failure(settings, "large", (large,)).startswith("TOO_LARGE: the result has 5,011 bytes")


def test_a_change_that_failed_is_in_the_audit_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    settings = McpSettings(NOWHERE, allow_writes=True, topics=("orders*",), audit_file=str(path))
    failure(settings, "delete_topic", topic="secret", confirm="secret")
    failure(settings, "delete_topic", topic="orders", confirm="order")
    failure(settings, "create_topic", topic="other")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["action"], row["target"]) for row in rows] == [
        ("delete topic", "secret"),
        ("delete topic", "orders"),
        ("create topic", "other"),
    ]
    assert "There is no topic" in rows[0]["outcome"] and "not the topic's" in rows[1]["outcome"]


def test_strangers_need_a_token() -> None:
    HttpSettings().check()
    HttpSettings("::1", token=TOKEN).check()
    HttpSettings("0.0.0.0", token=TOKEN).check()
    for host in ("0.0.0.0", "::", "192.0.2.7", "example.org"):
        with pytest.raises(NotSafe, match="--token-file"):
            HttpSettings(host).check()
    for token in ("", "short", "with a space in the middle", "ünïcödé-ünïcödé-ünïcödé"):
        with pytest.raises(NotSafe):
            HttpSettings(token=token).check()
