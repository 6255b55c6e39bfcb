"""A node with members of streams groups (KIP-1071): no task is active twice, none is forgotten, no offset goes back.

When the faults are over, members come and go a few more times, and after each change everything must be where it shall
be within a while.
"""

from __future__ import annotations

from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.streams.group import STABLE, StreamsGroup
from moldau.sim.groups.classic_members import SESSION_MS
from moldau.sim.groups.classic_world import ClassicGroupWorld
from moldau.sim.groups.streams_members import SimStreamsGroup
from moldau.sim.kernel.world import Violation
from moldau.sim.node.program import NodeProgram
from moldau.sim.node.world import NodeWorld

CONVERGENCE_MS_MAX = 30_000


class StreamsGroupWorld(ClassicGroupWorld):
    def __init__(self, seed: int) -> None:
        self.applications: list[SimStreamsGroup] = []
        self.convergences = 0
        self.standby_replicas = 0
        super().__init__(seed)

    def _settings(self) -> dict[str, str]:
        rng = self.world.derived_rng("streams groups")
        self.standby_replicas = rng.choice((0, 1, 2))
        return {
            **super()._settings(),
            "group.streams.min.session.timeout.ms": "500",
            "group.streams.session.timeout.ms": str(SESSION_MS),
            "group.streams.min.heartbeat.interval.ms": "100",
            "group.streams.heartbeat.interval.ms": "100",
            "group.streams.assignment.interval.ms": str(rng.choice((0, 200, 1000))),
            "group.streams.initial.rebalance.delay.ms": str(rng.choice((0, 300))),
            "group.streams.num.standby.replicas": str(self.standby_replicas),
        }

    def _start_clients(self) -> None:
        NodeWorld._start_clients(self)
        rng = self.world.derived_rng("streams groups")
        for number in range(rng.randint(1, 2)):
            group = SimStreamsGroup(self, f"streams{number}")
            self.applications.append(group)
            self.groups.append(group)
            self.clients += [member.client for member in group.members]

    def _run(self, duration_ms: int) -> None:
        super()._run(duration_ms)
        for client in self.clients:
            # A request may have been lost with the node; nothing else would tell who waits for its response.
            client.disconnect("everybody connects anew")
        self._await_convergence("the faults are over")
        for _ in range(self.rng.randint(1, 3)):
            self._await_convergence(self._change_members())

    def _change_members(self) -> str:
        """One thread ends, or all that had ended begin again."""
        group = self.rng.choice(self.applications)
        alive = [thread for thread in group.threads if not thread.is_gone]
        if len(alive) == 1 or (len(alive) < len(group.threads) and self.rng.random() < 0.5):
            for thread in group.threads:
                thread.begin_again()
            return f"all threads of {group.group_id} are back"
        thread = self.rng.choice(alive)
        thread.end(says_so=self.rng.random() < 0.5)
        return f"{thread.name} has ended"

    def _await_convergence(self, change: str) -> None:
        self.world.note(f"all tasks must find their place: {change}")
        if not self.world.run_until(lambda: not self._what_is_wrong(), CONVERGENCE_MS_MAX):
            raise Violation(f"a group converges after every change: {change}; {self._what_is_wrong()}")
        self.convergences += 1

    def _what_is_wrong(self) -> str:
        program = self.host.program
        if not isinstance(program, NodeProgram) or not self.host.running:
            return "the node is away"
        for group in self.applications:
            wrong = group.what_is_wrong(program.node.image, self.standby_replicas)
            if wrong:
                return f"{group.group_id}: {wrong}"
            groups = program.node.coordinators.groups
            shard = groups.runtime.shards.get(groups.partition_for(group.group_id))
            machine = None if shard is None else shard.machine
            known = machine.state.groups.get(group.group_id) if isinstance(machine, GroupMachine) else None
            if not isinstance(known, StreamsGroup) or known.state_name() != STABLE:
                return f"{group.group_id} is not stable"
        return ""

    def summary(self) -> str:
        return f"{super().summary()}, {self.convergences} times all tasks were in their places"
