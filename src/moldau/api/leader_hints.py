"""KIP-951: tells a client that asked the wrong broker who leads the partition, and where that broker listens."""

from __future__ import annotations

from moldau.api.call import Call

# Broker id, host, port and rack, in the order of the protocol's NodeEndpoint.
Endpoint = tuple[int, str, int, str | None]


class LeaderHint:
    """Who leads a partition as the metadata has it, -1 when nobody does; the endpoint unless the response names it."""

    def __init__(self, leader_id: int, leader_epoch: int, endpoint: Endpoint | None) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.endpoint = endpoint


def find_leader(call: Call, topic: str, index: int, named: list[int]) -> LeaderHint:
    leader_id, leader_epoch = call.node.leader_of(topic, index)
    endpoint = None
    if leader_id >= 0 and leader_id not in named:
        endpoint = call.node.endpoint_of(leader_id, call.context.listener)
    return LeaderHint(leader_id, leader_epoch, endpoint)
