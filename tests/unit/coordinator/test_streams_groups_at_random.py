"""Streams groups under random joins, heartbeats, lost answers, leaves, pauses, topics that grow, and failovers.

Checked after every step: no task is active in two members or twice in a process, neither in the coordinator nor among
the members; what was replayed is what is there. In the end, left alone, the group becomes stable and no task is
forgotten.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.tasks import Task
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from tests.unit.coordinator.consumer_world import GROUP
from tests.unit.coordinator.streams_world import StreamsThread, StreamsWorld

STEPS = 200
SEEDS = int(os.environ.get("MOLDAU_GROUP_SEEDS", "8"))
RELOAD_EVERY = 20
TOPOLOGY = "0:in>rep;1:*rep/3+store;2:other"
ACTIONS = [
    *("join", "beat", "beat", "ack", "ack", "ack", "lose", "leave", "pause", "grow", "create"),
    *("failover", "fail", "rejoin", "standby", "move"),
]


class Walker:
    """Drives a few members at random."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.world = StreamsWorld(
            group_streams_initial_rebalance_delay_ms=self.dice.choice(("0", "3000")),
            group_streams_assignment_interval_ms=self.dice.choice(("0", "1000")),
        )
        self.world.topic("in", self.dice.randint(1, 4))
        self.threads: list[StreamsThread] = []
        self.made = 0
        self.checks = 0
        self.moves = 0

    def step(self) -> None:
        getattr(self, self.dice.choice(ACTIONS))()
        self.check()

    def check(self) -> None:
        world = self.world
        if isinstance(world.machine.state.groups.get(GROUP), StreamsGroup):
            world.check_tasks()
            self.forget_removed()
        held: dict[Task, str] = {}
        copies: dict[tuple[str, Task], str] = {}
        for thread in self.threads:
            for task in thread.has():
                other = held.setdefault(task, thread.member_id)
                assert other == thread.member_id, f"{other} and {thread.member_id} both work on {task}"
            for task in thread.has() | thread.has("standby"):
                other = copies.setdefault((thread.process_id, task), thread.member_id)
                assert other == thread.member_id, f"{other} and {thread.member_id} share {task} in a process"
        self.checks += 1
        if self.checks % RELOAD_EVERY == 0:
            assert state_of(world.machine) == state_of(world.reloaded())

    def forget_removed(self) -> None:
        """A member whose session has ended knows that by itself: it works no more."""
        known = self.world.streams.members
        self.threads = [thread for thread in self.threads if thread.member_id in known]

    def some(self) -> StreamsThread | None:
        return self.dice.choice(self.threads) if self.threads else None

    def say(self, thread: StreamsThread, act: Any) -> bool:
        """Sends something; a member that is fenced gives everything up."""
        try:
            act()
        except KafkaError as error:
            assert error.code in (errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID), error
            self.threads = [one for one in self.threads if one is not thread]
            return False
        return True

    # Actions

    def join(self) -> None:
        if len(self.threads) >= 6:
            return
        self.made += 1
        thread = self.world.thread(f"m{self.made}", f"p{self.dice.randint(1, 3)}")
        endpoint = {"endpoint": f"host{self.made}:80"} if self.dice.random() < 0.3 else {}
        thread.join(TOPOLOGY, **endpoint)
        self.threads.append(thread)

    def beat(self) -> None:
        thread = self.some()
        if thread is not None:
            self.say(thread, thread.beat)

    def ack(self) -> None:
        thread = self.some()
        if thread is not None:
            self.say(thread, thread.acknowledge)

    def lose(self) -> None:
        """The answer gets lost: the member goes on with what it knew."""
        thread = self.some()
        if thread is None:
            return
        epoch, tasks = thread.epoch, {role: dict(found) for role, found in thread.tasks.items()}
        if self.say(thread, thread.acknowledge):
            thread.epoch, thread.tasks = epoch, tasks
            thread.must_tell_everything = True

    def leave(self) -> None:
        thread = self.some()
        if thread is not None and self.dice.random() < 0.5:
            self.say(thread, thread.leave)
            self.threads = [one for one in self.threads if one is not thread]

    def rejoin(self) -> None:
        """It starts anew under its old id, with nothing."""
        thread = self.some()
        if thread is not None:
            thread.join(TOPOLOGY)

    def move(self) -> None:
        """A member says that it is in another process now: it starts anew, for it has none of the old state."""
        thread = self.some()
        if thread is not None and self.dice.random() < 0.2:
            self.say(thread, thread.leave)
            self.threads = [one for one in self.threads if one is not thread]
            self.join()
            self.moves += 1

    def pause(self) -> None:
        self.world.sleep(self.dice.choice((100, 1000, 5000, 20_000)))

    def grow(self) -> None:
        name = self.dice.choice(("in", "other"))
        topic = self.world.image.topic(name)
        count = 0 if topic is None else len(topic.partitions)
        if count < 5 and self.dice.random() < 0.5:
            self.world.topic(name, count + 1)

    def create(self) -> None:
        self.world.missing = {
            name: topic for name, topic in self.world.missing.items() if self.world.image.topic(name) is None
        }
        self.world.create_missing()

    def standby(self) -> None:
        self.world.configure("streams.num.standby.replicas", str(self.dice.randint(0, 2)))

    def failover(self) -> None:
        self.world.lead()

    def fail(self) -> None:
        """A heartbeat whose records cannot be written."""
        thread = self.some()
        if thread is None:
            return
        self.world.log.failure = KafkaError(errors.NOT_ENOUGH_REPLICAS)
        try:
            thread.acknowledge()
        except KafkaError as error:
            if error.code != errors.NOT_ENOUGH_REPLICAS:
                self.threads = [one for one in self.threads if one is not thread]
        finally:
            self.world.log.failure = None

    # The end

    def settle(self) -> None:
        """Left alone with all topics there, every task finds one place."""
        world = self.world
        for name in ("in", "other"):
            if world.image.topic(name) is None:
                world.topic(name, 2)
        if not self.threads:
            self.join()
        for _ in range(40):
            world.sleep(1000)
            for thread in list(self.threads):
                self.say(thread, thread.acknowledge)
                self.create()
            self.check()
            if not self.threads:
                self.join()
        assert world.streams.state_name() == "Stable"
        counts = {"0": len(world.image.topics_by_name["in"].partitions), "1": 3}
        counts["2"] = len(world.image.topics_by_name["other"].partitions)
        expected = sorted((name, index) for name, count in counts.items() for index in range(count))
        assert sorted(task for thread in self.threads for task in thread.has()) == expected


def state_of(machine: GroupMachine) -> dict[str, Any]:
    """Everything of the groups that records say, for comparing."""
    found: dict[str, Any] = {}
    for group_id, group in machine.state.groups.items():
        assert isinstance(group, StreamsGroup)
        members = {
            member_id: {name: getattr(member, name) for name in type(member).__slots__}
            for member_id, member in group.members.items()
        }
        found[group_id] = (
            (group.group_epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs),
            (group.assignment_epoch, group.assignment_timestamp_ms, group.targets, members),
            (group.active_owners, group.standby_owners, group.warmup_owners),
            None if group.topology is None else group.topology.value,
        )
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_task_is_active_twice_and_none_is_forgotten(seed: int) -> None:
    walker = Walker(seed)
    for _ in range(STEPS):
        walker.step()
    walker.settle()
