"""Replicas of three nodes move between directories at random while records are written and nodes lose their power."""

from __future__ import annotations

import random

import pytest

from moldau.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.unit.node.cluster import Cluster, Member
from tests.unit.node.test_following import content, end, has, in_sync, produce, started

PARTITIONS = 3
STEPS = 40


class Run:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster: Cluster = started(**{"log.dirs": "/data,/data2"})
        self.acknowledged = [0] * PARTITIONS
        self.down: Member | None = None

    def step(self) -> None:
        choice = self.rng.random()
        member, index = self.rng.choice(self.cluster.up()), self.rng.randrange(PARTITIONS)
        if choice < 0.45:
            self.write(index)
        elif choice < 0.7:
            self.move(member, index)
        elif choice < 0.8 and self.down is None:
            self.take_down(member)
        elif choice < 0.95 and self.down is not None:
            self.down.start()
            self.down = None
        self.cluster.run(self.rng.choice([1, 5, 50, 300, 2000]))

    def write(self, index: int) -> None:
        count = self.rng.randrange(1, 30)
        offset = produce(self.cluster, count, index=index)
        if offset >= 0:
            self.acknowledged[index] = offset + count

    def move(self, member: Member, index: int) -> None:
        if has(member, "t", index):
            topic = AlterReplicaLogDirTopic(name="t", partitions=[index])
            path = self.rng.choice(["/data", "/data2"])
            member.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])]), 2)

    def take_down(self, member: Member) -> None:
        self.down = member
        for wire in member.outbox.opened:
            wire.close()
        member.kill()
        if self.rng.random() < 0.5:
            member.disk.power_loss(self.rng)

    def come_to_rest(self) -> None:
        cluster = self.cluster
        if self.down is not None:
            self.down.start()
        cluster.run_until(lambda: all(member.node.is_ready for member in cluster.up()), 120_000)
        cluster.run(3000)
        cluster.run_until(lambda: all(in_sync(cluster, 3, "t", index) for index in range(PARTITIONS)), 120_000)
        cluster.run_until(lambda: not any(len(member.node.directory_moves) for member in cluster.up()), 60_000)
        cluster.run(3000)

    def folders(self, member: Member) -> list[str]:
        names = [f"{path}/{name}" for path in ("/data", "/data2") for name in member.disk.list(path)]
        return sorted(name.rpartition("/")[2] for name in names if "/t-" in name and not name.endswith("-delete"))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_moves_and_dies_all_replicas_are_equal_and_nothing_acknowledged_is_lost(seed: int) -> None:
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.come_to_rest()
    for index in range(PARTITIONS):
        assert len({content(member, "t", index) for member in run.cluster.up()}) == 1
        assert end(run.cluster[1], "t", index) >= run.acknowledged[index]
    for member in run.cluster.up():
        assert not member.node.replicas.misplaced and not member.fatal
        assert run.folders(member) == ["t-0", "t-1", "t-2"]
