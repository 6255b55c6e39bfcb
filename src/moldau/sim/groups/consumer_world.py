"""A node with members of consumer groups (KIP-848): no partition has two owners and no committed offset goes back."""

from __future__ import annotations

from moldau.sim.groups.classic_members import SESSION_MS
from moldau.sim.groups.classic_world import ClassicGroupWorld
from moldau.sim.groups.consumer_members import SimConsumerGroup
from moldau.sim.node.world import NodeWorld


class ConsumerGroupWorld(ClassicGroupWorld):
    def _settings(self) -> dict[str, str]:
        rng = self.world.derived_rng("consumer groups")
        return {
            **super()._settings(),
            "group.consumer.min.session.timeout.ms": "500",
            "group.consumer.session.timeout.ms": str(SESSION_MS),
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "100",
            "group.consumer.assignment.interval.ms": str(rng.choice((0, 200, 1000))),
        }

    def _start_clients(self) -> None:
        NodeWorld._start_clients(self)
        rng = self.world.derived_rng("consumer groups")
        for number in range(rng.randint(1, 3)):
            group = SimConsumerGroup(self, f"modern{number}")
            self.groups.append(group)
            self.clients += [member.client for member in group.members]
