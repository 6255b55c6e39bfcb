"""Three voters under random delays, losses, crashes and slow disks: what is committed stays, one leader per epoch."""

from __future__ import annotations

import random

import pytest

from moldau.protocol.uuids import ZERO_UUID
from moldau.raft import messages as m
from moldau.raft.core import RaftConfig
from moldau.raft.ready import Outbound
from moldau.raft.replica import Raft
from moldau.raft.state import QuorumState, ReplicaKey
from moldau.raft.voters import Voter, VoterHistory, VoterSet
from tests.unit.raft.memory_log import MemoryLog

VOTERS = VoterSet([Voter(ReplicaKey(number, ZERO_UUID)) for number in (1, 2, 3)])


class Machine:
    """One replica with its disk; `raft` is None while it is down."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.log = MemoryLog()
        self.stored: QuorumState | None = None
        self.raft: Raft | None = None


class Chaos:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.machines = {number: Machine(number) for number in (1, 2, 3)}
        self.messages: list[tuple[int, Outbound, m.Reply | None]] = []
        self.tokens: dict[int, tuple[int, Outbound]] = {}
        self.leaders: dict[int, int] = {}
        self.committed: dict[int, bytes] = {}
        self.commits = 0
        self.token = 0

    def run(self, steps: int) -> None:
        for machine in self.machines.values():
            self.start(machine)
        for step in range(steps):
            self.now_ms += self.rng.choice((1, 1, 5, 20, 100))
            self.step(self.rng.choice(list(self.machines.values())), step)
            self.deliver()
            self.check()

    def start(self, machine: Machine) -> None:
        key = ReplicaKey(machine.number, ZERO_UUID)
        machine.raft = Raft(RaftConfig(), key, machine.log, VoterHistory(VOTERS, 0), self.rng)
        machine.raft.start(machine.stored, self.now_ms)
        self.work(machine)

    def step(self, machine: Machine, step: int) -> None:
        raft = machine.raft
        if raft is None:
            self.start(machine)
            return
        dice = self.rng.random()
        if dice < 0.02:
            machine.log.crash()
            machine.raft = None
            self.tokens = {t: e for t, e in self.tokens.items() if e[1].destination != machine.number}
            return
        if dice < 0.3:
            machine.log.sync()
            raft.on_synced(machine.log.end_offset(), raft.sync_generation, self.now_ms)
        elif dice < 0.5 and raft.is_leader:
            raft.propose([f"{machine.number}-{step}".encode()], self.now_ms)
        elif dice < 0.505:
            raft.resign(self.now_ms)
        raft.tick(self.now_ms)
        self.work(machine)

    def work(self, machine: Machine) -> None:
        raft = machine.raft
        assert raft is not None
        ready = raft.take_ready()
        while not ready.is_empty():
            if ready.quorum_state is not None:
                machine.stored = ready.quorum_state
            self.messages += [(machine.number, outbound, None) for outbound in ready.requests]
            for token, reply in ready.replies:
                assert isinstance(token, int)
                if token in self.tokens:
                    source, outbound = self.tokens.pop(token)
                    self.messages.append((source, outbound, reply))
            ready = raft.take_ready()

    def deliver(self) -> None:
        """Some messages arrive, in any order; some are lost; the rest waits."""
        self.rng.shuffle(self.messages)
        waiting, self.messages = self.messages, []
        for source, outbound, reply in waiting:
            dice = self.rng.random()
            if dice < 0.4:
                self.messages.append((source, outbound, reply))
            elif dice > 0.45:
                self.hand_over(source, outbound, reply)

    def hand_over(self, source: int, outbound: Outbound, reply: m.Reply | None) -> None:
        machine = self.machines[outbound.destination if reply is None else source]
        if machine.raft is None:
            return
        if reply is None:
            self.token += 1
            self.tokens[self.token] = (source, outbound)
            machine.raft.on_request(outbound.request, self.token, self.now_ms)
        else:
            machine.raft.on_reply(outbound.destination, outbound.request, reply, self.now_ms)
        self.work(machine)

    def check(self) -> None:
        for machine in self.machines.values():
            raft = machine.raft
            if raft is None:
                continue
            if raft.is_leader:
                assert self.leaders.setdefault(raft.epoch, machine.number) == machine.number, "two leaders in an epoch"
            for batch, header in zip(machine.log.batches, machine.log.headers(), strict=True):
                if int(header.next_offset) <= raft.high_watermark:
                    known = self.committed.setdefault(int(header.base_offset), batch)
                    assert known == batch, "a committed record changed"
        self.commits = max([self.commits, *(m.raft.high_watermark for m in self.machines.values() if m.raft)])


@pytest.mark.parametrize("seed", range(8))
def test_committed_records_stay_and_an_epoch_has_one_leader(seed: int) -> None:
    chaos = Chaos(seed)
    chaos.run(500)
    # Afterwards the world calms down: a leader appears and commits, and nothing committed before is missing in its log.
    for machine in chaos.machines.values():
        if machine.raft is None:
            chaos.start(machine)
    for _ in range(400):
        chaos.now_ms += 20
        for machine in chaos.machines.values():
            raft = machine.raft
            assert raft is not None
            machine.log.sync()
            raft.on_synced(machine.log.end_offset(), raft.sync_generation, chaos.now_ms)
            raft.tick(chaos.now_ms)
            chaos.work(machine)
        waiting, chaos.messages = chaos.messages, []
        for source, outbound, reply in waiting:
            chaos.hand_over(source, outbound, reply)
    chaos.check()
    leaders = [machine for machine in chaos.machines.values() if machine.raft is not None and machine.raft.is_leader]
    assert len(leaders) == 1
    offsets = {int(header.base_offset) for header in leaders[0].log.headers()}
    assert set(chaos.committed) <= offsets
