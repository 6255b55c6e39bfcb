"""KIP-951: tells a client that asked the wrong broker who leads the partition, and where that broker listens."""

from __future__ import annotations

from moldau.node.node import Node

Endpoint = tuple[int, str, int, str | None]


def leader_hint(node: Node, topic: str, index: int) -> tuple[int, int]:
    """Leader id and epoch as the metadata has them; -1, -1 when unknown."""
    return node.leader_of(topic, index)


def node_endpoint(node: Node, listener: str, broker_id: int, known: list[int]) -> Endpoint | None:
    """Where to find the broker, unless the response names it already."""
    if broker_id < 0 or broker_id in known:
        return None
    return node.endpoint_of(broker_id, listener)
