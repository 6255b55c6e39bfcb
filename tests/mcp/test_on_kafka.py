"""Every tool against a real Apache Kafka."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.mcp.settings import McpSettings
from moldau.mcp.tool_runner import TOOLS, ToolFailed, ToolRunner
from tests.interop.kafka_oracle import KafkaNode, missing
from tests.mcp.conftest import BILLING_AT, ORDERS, fill

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.skipif(os.environ.get("MOLDAU_INTEROP") == "brief", reason="left out of `make test`: run `make mcp`"),
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    node = KafkaNode(folder / "broker")
    node.format()
    node.start()
    fill(node.bootstrap)
    yield node
    node.stop()


LOOKS: list[tuple[str, dict[str, Any]]] = [
    ("cluster_overview", {}),
    ("describe_broker", {"broker": 1}),
    ("describe_quorum", {}),
    ("describe_configs", {"kind": "broker", "name": "1", "all": True}),
    ("list_transactions", {}),
    ("find_hanging_transactions", {"topic": "orders"}),
    ("list_quotas", {}),
    ("list_users", {}),
    ("list_topics", {"details": True}),
    ("describe_topic", {"topic": "orders"}),
    ("groups_of_topic", {"topic": "orders"}),
    ("list_groups", {"lag": True}),
    ("describe_group", {"group": "billing"}),
    ("read_messages", {"topic": "orders", "limit": 10}),
    ("read_message", {"topic": "orders", "partition": 0, "offset": 3}),
    ("search_messages", {"topic": "orders", "field": "customer.id=3"}),
]
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("create_topic", {"topic": "fresh", "partitions": 1}),
    ("produce_message", {"topic": "fresh", "value": "x"}),
    ("add_partitions", {"topic": "fresh", "partitions": 2}),
    ("alter_topic_configs", {"topic": "fresh", "changes": {"retention.ms": "1000000"}}),
    ("reset_offsets", {"group": "billing", "topics": {"orders": None}, "where": "latest", "dry_run": False}),
    ("delete_records", {"topic": "fresh", "up_to": "end", "dry_run": False, "confirm": "fresh"}),
    ("delete_topic", {"topic": "fresh", "confirm": "fresh"}),
]


def test_every_tool_answers(kafka: KafkaNode) -> None:
    clients = {kind: {"bootstrap.servers": kafka.bootstrap} for kind in ("admin", "consumer", "producer")}

    async def run() -> dict[str, dict[str, Any]]:
        tool_runner = ToolRunner(McpSettings(clients, allow_writes=True))
        try:
            found = {name: await tool_runner.call(name, given) for name, given in (*LOOKS, *CHANGES)}
            for name, given in (("list_acls", {}), ("describe_transaction", {"transactional_id": "nobody"})):
                with pytest.raises(ToolFailed, match=r"^[A-Z_]+: .*\.$"):
                    await tool_runner.call(name, given)
            return found
        finally:
            await tool_runner.close()

    found = asyncio.run(run())
    assert {*found, "list_acls", "describe_transaction"} == {tool.name for tool in TOOLS}
    assert found["cluster_overview"]["healthy"] is True
    assert [row["end"] for row in found["describe_topic"]["partitions"]] == [ORDERS // 3] * 3
    assert found["describe_group"]["lag_records"] == ORDERS - 3 * BILLING_AT + 1
    assert found["describe_group"]["lag_seconds"] > 0
    assert len(found["read_messages"]["records"]) == 10 and found["search_messages"]["complete"] is True
    assert found["list_users"]["rows"] == [{"user": "anna", "mechanisms": ["SCRAM-SHA-256"]}]
    assert found["produce_message"]["offset"] == 0 and found["delete_records"]["partitions"][0]["before"] == 1
