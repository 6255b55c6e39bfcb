"""A node on simulated disk and clock that serves share groups, and connections of members to it."""

from __future__ import annotations

from typing import Any

from moldau.node.context import ClientContext
from moldau.node.share.partition import SharePartition
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.primitives import Message
from tests.unit.api.transaction_client import transactional_world
from tests.unit.node.world import Asked, NodeWorld, batch, produce_request
from tests.unit.share.member import Member, Place

GROUP = "g"
GROUP_RESOURCE = 32
BROKER_RESOURCE = 4
SET, DELETE = 0, 1


class Connection:
    """Of one client; what it waits for, it waits for in the world's time."""

    def __init__(self, world: NodeWorld) -> None:
        self.world = world
        self.context = ClientContext("PLAINTEXT", "127.0.0.1:5001")

    def send(self, request: Message, version: int) -> Asked:
        usual, self.world.context = self.world.context, self.context
        try:
            return self.world.send(request, version)
        finally:
            self.world.context = usual

    def ask(self, request: Message, version: int) -> Any:
        asked = self.send(request, version)
        for _ in range(3000):
            if asked.reply.done:
                return asked.response
            self.world.run(20)
        raise AssertionError("no answer within a minute")

    def close(self) -> None:
        self.context.closed(self.world.now_ms)


class ShareNode:
    """A node with the topic `t`; groups begin at the beginning unless they say otherwise."""

    def __init__(self, partitions: int = 1, **settings: str) -> None:
        self.world = transactional_world(
            share_coordinator_state_topic_replication_factor="1",
            share_coordinator_state_topic_min_isr="1",
            share_coordinator_state_topic_num_partitions="3",
            **settings,
        )
        self.world.create("s", partitions)
        self.topic_id = self.world.describe("s").topic_id
        key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"
        self.world.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
        self.world.run(500)

    @property
    def place(self) -> Place:
        return (self.topic_id, 0)

    def configure(self, group: str = GROUP, **values: str | None) -> None:
        entries = [
            AlterableConfig(name.replace("_", "."), DELETE if value is None else SET, value)
            for name, value in values.items()
        ]
        self._alter(AlterConfigsResource(GROUP_RESOURCE, group, entries))

    def configure_broker(self, **values: str) -> None:
        entries = [AlterableConfig(name.replace("_", "."), SET, value) for name, value in values.items()]
        self._alter(AlterConfigsResource(BROKER_RESOURCE, "", entries))

    def _alter(self, resource: AlterConfigsResource) -> None:
        answer = self.world.ask(IncrementalAlterConfigsRequest([resource]), 1)
        assert [row.error_code for row in answer.responses] == [0], answer
        self.world.run(100)

    def join(
        self, member_id: str = "m1", group: str = GROUP, topic: str = "s", reset: str | None = "earliest"
    ) -> Member:
        """A member that has its partitions, on a connection of its own."""
        if reset is not None:
            self.configure(group, share_auto_offset_reset=reset)
        member = self.member(member_id, group)
        for _ in range(20):
            answer = member.beat(topic) if member.epoch == 0 else member.beat()
            if answer.error_code == 0 and answer.assignment is not None and answer.assignment.topic_partitions:
                return member
            self.world.run(1100)
        raise AssertionError(f"{member_id} has no partitions: {answer}")

    def member(self, member_id: str, group: str = GROUP) -> Member:
        """Without a heartbeat: leaders do not ask for one."""
        return Member(Connection(self.world).ask, group, member_id)

    def fill(self, *sizes: int, partition: int = 0, value: bytes = b"value") -> None:
        """One log batch of each size."""
        for size in sizes:
            request = produce_request("s", partition, batch(self.world.now_ms, size, value))
            answer = self.world.ask(request, 9).responses[0].partition_responses[0]
            assert answer.error_code == 0
        self.world.run(40)

    def shared(self, partition: int = 0, group: str = GROUP) -> SharePartition:
        return self.world.node.shares.found[(group, self.topic_id, partition)]

    def restart(self) -> None:
        self.world.stop()
        self.world.start()


def connection_of(member: Member) -> Connection:
    found = member.ask.__self__  # type: ignore[attr-defined]
    assert isinstance(found, Connection)
    return found
