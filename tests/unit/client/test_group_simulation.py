"""Groups of consumers under faults, from seeds: no partition with two owners, no offset going back, nothing unread."""

from __future__ import annotations

import os
import random

import pytest

from tests.unit.client.group_world import GroupWorld, SimulatedMember

MODES: dict[str, dict[str, object]] = {
    "eager": {"partition.assignment.strategy": "range"},
    "sticky": {"partition.assignment.strategy": "sticky"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
STEPS = 120
# MOLDAU_SEEDS=100 runs more of them.
SEEDS = range(int(os.environ.get("MOLDAU_SEEDS", "2")))
CLASSIC = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500}


def new_member(world: GroupWorld, mode: str) -> SimulatedMember:
    classic = CLASSIC if mode != "consumer" else {}
    return SimulatedMember(world, **MODES[mode], **classic, **{"max.poll.interval.ms": 5_000})


def settle(world: GroupWorld, mode: str) -> None:
    """Without faults, everybody gets a fair share within a time that the timeouts allow."""
    world.faults = 0.0
    deadline_ms = world.clock_ms + 60_000
    everything = set(range(len(world.cluster.counts)))
    while world.clock_ms < deadline_ms:
        for member in world.members:
            member.poll(50)
        owned = [member.owned for member in world.members]
        fair = max(map(len, owned)) - min(map(len, owned)) <= 1
        # In the middle of a rebalance nothing can be committed, so a member that closed there would leave a rest.
        quiet = all(
            member.consumer._group is not None and member.consumer._group.can_commit() for member in world.members
        )
        if fair and quiet and set().union(*owned) == everything and sum(map(len, owned)) == len(everything):
            return
    raise AssertionError(f"not settled: {[sorted(member.owned) for member in world.members]}")


def at_the_end(world: GroupWorld) -> bool:
    positions = {
        item.partition: member.consumer.position(item)
        for member in world.members
        for item in member.consumer.assignment()
    }
    return positions == dict(enumerate(world.cluster.counts))


def scenario(seed: int, mode: str) -> GroupWorld:
    random.seed(seed)  # the pauses before a client tries again are drawn from there
    world = GroupWorld(seed, partitions=5)
    chance = world.chance
    read: set[tuple[int, int]] = set()
    for _ in range(2):
        new_member(world, mode)
    for step in range(STEPS):
        world.faults = 0.02 if step < STEPS - 30 else 0.0
        event = chance.random()
        if event < 0.02 and len(world.members) < 4:
            new_member(world, mode)
        elif event < 0.035 and len(world.members) > 1:
            member = chance.choice(world.members)
            member.close()
            read |= member.read
        elif event < 0.045:
            world.cluster.coordinator = 3 - world.cluster.coordinator
        elif event < 0.055:
            # The user works for a while, sometimes too long; heartbeats go on.
            sleeper = chance.choice(world.members)
            until_ms = world.clock_ms + chance.choice([1_000, 7_000])
            while world.clock_ms < until_ms:
                sleeper.beat()
                for member in world.members:
                    if member is not sleeper:
                        member.poll(50)
        elif event < 0.3:
            world.cluster.counts[chance.randrange(5)] += chance.randrange(1, 8)
        for member in list(world.members):
            member.poll(chance.choice([0, 10, 50]))
    settle(world, mode)
    deadline_ms = world.clock_ms + 30_000
    expected = {(number, offset) for number, count in enumerate(world.cluster.counts) for offset in range(count)}
    while world.clock_ms < deadline_ms and not at_the_end(world):
        for member in world.members:
            member.poll(50)
    assert expected <= read.union(*(member.read for member in world.members))
    for member in list(world.members):
        member.close()
    assert world.cluster.committed == dict(enumerate(world.cluster.counts))
    return world


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("seed", SEEDS)
def test_groups_keep_their_promises_under_faults(seed: int, mode: str) -> None:
    scenario(seed, mode)


def test_the_same_seed_gives_the_same_world() -> None:
    first, second = scenario(77, "cooperative"), scenario(77, "cooperative")
    assert (first.clock_ms, first.cluster.counts) == (second.clock_ms, second.cluster.counts)
