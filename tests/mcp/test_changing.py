"""Each tool that changes something, once, over HTTP; what is written down of it; and who is not answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from moldau.client import Admin, TopicPartition
from tests.interop.nodes import MoldauNode
from tests.mcp.conftest import BILLING_AT, ORDERS, TOKEN

if TYPE_CHECKING:
    from tests.mcp.agents import Agent, HttpProcess

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def test_a_topic_from_its_creation_to_its_end(writer: Agent, process: HttpProcess) -> None:
    preview = writer.call("create_topic", topic="fresh", partitions=2, dry_run=True)
    assert preview["dry_run"] is True and "Nothing was changed" in preview["note"]
    assert "There is no topic fresh" in writer.failure("describe_topic", topic="fresh")
    created = writer.call("create_topic", topic="fresh", partitions=2, replicas=1, configs={"retention.ms": "1000000"})
    assert (created["name"], created["partitions"]) == ("fresh", 2)
    assert "already exists" in writer.failure("create_topic", topic="fresh")

    sent = writer.call("produce_message", topic="fresh", value='{"a": 1}', key="k", headers={"h": "v"}, partition=1)
    assert (sent["partition"], sent["offset"]) == (1, 0)
    writer.call("produce_message", topic="fresh", value="ff00", value_format="hex", partition=1)
    assert "is not json" in writer.failure("produce_message", topic="fresh", value="{", value_format="json")
    assert "There is no topic nothing" in writer.failure("produce_message", topic="nothing", value="x")
    records = writer.call("read_messages", topic="fresh", start="oldest")["records"]
    assert records[0]["untrusted_data"]["headers"] == [{"name": "h", "format": "text", "text": "v"}]
    assert records[1]["untrusted_data"]["value"]["format"] == "hex"

    assert writer.call("add_partitions", topic="fresh", partitions=4)["partitions"] == 4
    assert writer.call("describe_topic", topic="fresh")["partition_count"] == 4

    changes = {"retention.ms": "2000000", "cleanup.policy": "compact"}
    preview = writer.call("alter_topic_configs", topic="fresh", changes=changes, dry_run=True)
    row = preview["changes"][0]
    assert (row["name"], row["before"], row["after"]) == ("retention.ms", "1000000", "2000000")
    assert writer.call("alter_topic_configs", topic="fresh", changes={"retention.ms": None})["dry_run"] is False
    left = writer.call("describe_configs", kind="topic", name="fresh")["configs"]
    assert "retention.ms" not in {row["name"] for row in left}
    assert "INVALID_CONFIG" in writer.failure("alter_topic_configs", topic="fresh", changes={"retention.ms": "soon"})

    given = {"topic": "fresh", "up_to": "offset", "offset": 1, "partitions": [1]}
    preview = writer.call("delete_records", **given)
    assert preview["dry_run"] is True
    assert preview["partitions"] == [{"partition": 1, "start": 0, "end": 2, "before": 1}]
    assert "not the topic's" in writer.failure("delete_records", **given, dry_run=False)
    assert "not the topic's" in writer.failure("delete_records", **given, dry_run=False, confirm="fresh?")
    writer.call("delete_records", **given, dry_run=False, confirm="fresh")
    (left,) = writer.call("read_messages", topic="fresh", partitions=[1])["records"]
    assert left["offset"] == 1
    assert "not the topic's" in writer.failure("delete_topic", topic="fresh", confirm="yes")
    assert writer.call("delete_topic", topic="fresh", confirm="fresh") == {"deleted": "fresh"}
    assert "There is no topic fresh" in writer.failure("describe_topic", topic="fresh")

    rows = [json.loads(line) for line in process.audit_file.read_text().splitlines()]
    done = [row["action"] for row in rows if row["target"] in ("fresh", "topic fresh") and row["outcome"] == "done"]
    assert done[:3] == ["create topic", "produce", "produce"]
    assert done[3:] == ["add partitions", "alter configs", "delete records", "delete topic"]
    assert all(row["address"] == "127.0.0.1" and row["user"] == "agent" for row in rows)
    assert any("TOPIC_ALREADY_EXISTS" in row["outcome"] for row in rows)


def test_offsets_are_reset_after_a_preview(writer: Agent, process: HttpProcess, node: MoldauNode) -> None:
    with Admin(node.bootstrap) as admin:
        admin.alter_consumer_group_offsets("resetting", {TopicPartition("orders", 0): BILLING_AT})
        given = {"group": "resetting", "topics": {"orders": [0]}, "where": "shift", "shift_by": 1_000}
        preview = writer.call("reset_offsets", **given)
        assert preview["dry_run"] is True and "ends at 30" in preview["notes"][0]
        assert preview["offsets"] == [{"topic": "orders", "partition": 0, "before": BILLING_AT, "after": ORDERS // 3}]
        where = {TopicPartition("orders", 0): None}

        def committed() -> int:
            found = admin.list_consumer_group_offsets({"resetting": list(where)})["resetting"].get()
            offset = found[TopicPartition("orders", 0)].get()
            assert offset is not None
            return offset.offset

        assert committed() == BILLING_AT
        writer.call("reset_offsets", **given, dry_run=False)
        assert committed() == ORDERS // 3
        writer.call("reset_offsets", group="resetting", topics={"orders": None}, where="earliest", dry_run=False)
        assert committed() == 0
    rows = [json.loads(line) for line in process.audit_file.read_text().splitlines()]
    resets = [row for row in rows if row["action"] == "reset offsets"]
    assert len(resets) == 2 and resets[0]["details"] == {"orders-0": ORDERS // 3}
    assert "There is no group nobody" in writer.failure(
        "reset_offsets", group="nobody", topics={"orders": None}, where="earliest"
    )


def test_tools_that_change_something_say_so(writer: Agent) -> None:
    hints = {name: tool.annotations for name, tool in writer.tools().items()}
    assert len(hints) == 25
    writing = {name for name, hint in hints.items() if not hint.read_only_hint}
    assert writing == {
        "produce_message",
        "create_topic",
        "add_partitions",
        "alter_topic_configs",
        "reset_offsets",
        "delete_topic",
        "delete_records",
    }
    assert hints["delete_topic"].destructive_hint and not hints["create_topic"].destructive_hint


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer a-token-that-somebody-guessed"}, 401),
        ({"authorization": f"Bearer {TOKEN}", "host": "evil.example"}, 421),
        ({"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example"}, 403),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
    ],
)
def test_who_is_answered(process: HttpProcess, headers: dict[str, str], status: int) -> None:
    accept = {"accept": "application/json, text/event-stream"}
    assert httpx.post(process.url, json=LIST_TOOLS, headers={**accept, **headers}).status_code == status
