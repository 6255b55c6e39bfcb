"""A node whose clients also commit offsets: through every fault of the node's world no committed offset goes back."""

from __future__ import annotations

from moldau.sim.groups.committer import SimCommitter
from moldau.sim.node.audit import Auditor
from moldau.sim.node.world import NodeWorld


class GroupWorld(NodeWorld):
    def __init__(self, seed: int) -> None:
        self.committers: list[SimCommitter] = []
        self.committed_offsets = 0
        self.checked_offsets = 0
        self.synced = False
        self._damaged = False
        super().__init__(seed)

    def _settings(self) -> dict[str, str]:
        rng = self.world.derived_rng("groups")
        # Then every commit is synced before it is acknowledged, and not even a power loss takes it back.
        self.synced = rng.random() < 0.5
        return {
            **super()._settings(),
            **({"log.flush.interval.messages": "1"} if self.synced else {}),
            "offsets.topic.num.partitions": str(rng.choice((1, 3))),
            "offsets.load.buffer.size": str(rng.choice((300, 5242880))),
            "offsets.commit.timeout.ms": "500",
        }

    def _start_clients(self) -> None:
        super()._start_clients()
        rng = self.world.derived_rng("groups")
        for number in range(rng.randint(2, 5)):
            self.committers.append(SimCommitter(self, f"committer{number}"))
            self.clients.append(self.committers[-1].client)

    def _audit_more(self, auditor: Auditor, *, power_lost: bool) -> None:
        for committer in self.committers:
            committer.audit(auditor, power_lost=power_lost and (not self.synced or self._damaged))
        self._damaged = False

    def _on_internal_log_damaged(self) -> None:
        self._damaged = True

    def summary(self) -> str:
        return (
            f"{super().summary()}, {self.committed_offsets} offsets committed, {self.checked_offsets} times looked at"
        )
