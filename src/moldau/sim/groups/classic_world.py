"""A node with members of classic groups: no partition has two owners and no committed offset goes back, ever."""

from __future__ import annotations

from moldau.sim.groups.classic_members import SimClassicGroup
from moldau.sim.node.audit import Auditor
from moldau.sim.node.world import NodeWorld


class ClassicGroupWorld(NodeWorld):
    def __init__(self, seed: int) -> None:
        self.groups: list[SimClassicGroup] = []
        self.assignments = 0
        self.committed_offsets = 0
        self.checked_offsets = 0
        super().__init__(seed)

    def _settings(self) -> dict[str, str]:
        rng = self.world.derived_rng("classic groups")
        return {
            **super()._settings(),
            "offsets.topic.num.partitions": str(rng.choice((1, 3))),
            "offsets.commit.timeout.ms": "500",
            "group.min.session.timeout.ms": "500",
            "group.initial.rebalance.delay.ms": str(rng.choice((0, 200))),
        }

    def _start_clients(self) -> None:
        super()._start_clients()
        rng = self.world.derived_rng("classic groups")
        for number in range(rng.randint(1, 3)):
            group = SimClassicGroup(self, f"classic{number}")
            self.groups.append(group)
            self.clients += [member.client for member in group.members]

    def _audit_more(self, auditor: Auditor, *, power_lost: bool) -> None:
        for group in self.groups:
            group.audit(auditor, power_lost=power_lost)

    def summary(self) -> str:
        return (
            f"{super().summary()}, {self.assignments} assignments, {self.committed_offsets} offsets committed,"
            f" {self.checked_offsets} times looked at"
        )
