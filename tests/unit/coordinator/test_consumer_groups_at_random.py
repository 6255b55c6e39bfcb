"""Consumer groups under random joins, heartbeats, lost answers, leaves, pauses, topics that come and go, and failovers.

Checked after every step: no partition is with two members, neither in the coordinator nor among the consumers; what was
replayed is what is there. In the end, left alone, the group becomes stable and everything is assigned once.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.machine import GroupMachine
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from tests.unit.coordinator.consumer_world import GROUP, Consumer, ConsumerWorld

TOPICS = ["t", "u", "v", "w"]
STEPS = 200
SEEDS = int(os.environ.get("MOLDAU_GROUP_SEEDS", "8"))
RELOAD_EVERY = 20
ACTIONS = [
    *("join", "beat", "beat", "ack", "ack", "ack", "lose", "leave", "subscribe", "pause"),
    *("topic", "delete", "failover", "fail", "rejoin"),
]
ASSIGNORS = [None, "uniform", "range"]


class Walker:
    """Drives a few consumers at random."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.world = ConsumerWorld()
        self.world.topic("t", self.dice.randint(1, 6))
        self.consumers: list[Consumer] = []
        self.made = 0
        self.checks = 0

    def step(self) -> None:
        action = self.dice.choice(ACTIONS)
        getattr(self, action)()
        self.check()

    def check(self) -> None:
        world = self.world
        if isinstance(world.machine.state.groups.get(GROUP), ConsumerGroup):
            world.check_owners()
            self.forget_removed()
        held: dict[tuple[bytes, int], str] = {}
        for consumer in self.consumers:
            for topic_id, indexes in consumer.owned.items():
                for index in indexes:
                    other = held.setdefault((topic_id, index), consumer.member_id)
                    assert other == consumer.member_id, f"{other} and {consumer.member_id} both read {index}"
        self.checks += 1
        if self.checks % RELOAD_EVERY == 0:
            assert state_of(world.machine) == state_of(world.reloaded())

    def forget_removed(self) -> None:
        """A consumer whose session has ended knows that by itself: it reads no more."""
        for consumer in list(self.consumers):
            member = self.world.group.members.get(consumer.member_id)
            if member is None or member.member_epoch == -2:
                self.consumers.remove(consumer)

    def some(self) -> Consumer | None:
        return self.dice.choice(self.consumers) if self.consumers else None

    def say(self, consumer: Consumer, act: Any) -> None:
        """Sends something; a consumer that is fenced gives everything up."""
        try:
            act()
        except KafkaError as error:
            assert error.code in (errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID), error
            consumer.owned = {}
            if consumer in self.consumers:
                self.consumers.remove(consumer)

    # Actions

    def join(self) -> None:
        if len(self.consumers) >= 6:
            return
        self.made += 1
        instance = f"i{self.dice.randint(1, 3)}" if self.dice.random() < 0.3 else None
        consumer = self.world.consumer(f"m{self.made}", instance)
        subscription: dict[str, Any] = {"server_assignor": self.dice.choice(ASSIGNORS)}
        topics = self.dice.sample(TOPICS, self.dice.randint(1, 3))
        regex = self.dice.choice([None, None, "[tu]", ".", "v|w"])
        try:
            consumer.join(*topics, regex=regex, **subscription)
        except KafkaError as error:
            assert error.code == errors.UNRELEASED_INSTANCE_ID
            return
        self.consumers.append(consumer)

    def beat(self) -> None:
        consumer = self.some()
        if consumer is not None:
            self.say(consumer, consumer.beat)

    def ack(self) -> None:
        consumer = self.some()
        if consumer is not None:
            self.say(consumer, consumer.acknowledge)

    def lose(self) -> None:
        """The answer gets lost: the consumer goes on with what it knew."""
        consumer = self.some()
        if consumer is None:
            return
        epoch, owned = consumer.epoch, consumer.owned
        self.say(consumer, consumer.acknowledge)
        if consumer in self.consumers:
            consumer.epoch = epoch
            # It gives up what it shall give up when it is told, and not before.
            consumer.owned = owned
            consumer.missed_answer = True

    def subscribe(self) -> None:
        consumer = self.some()
        if consumer is not None:
            topics = self.dice.sample(TOPICS, self.dice.randint(0, 3))
            fields: dict[str, Any] = {"subscribed_topic_names": topics}
            if self.dice.random() < 0.3:
                fields["subscribed_topic_regex"] = self.dice.choice(["", "[uv]", "t.*"])
            self.say(consumer, lambda: consumer.beat(**fields))

    def leave(self) -> None:
        consumer = self.some()
        if consumer is not None and self.dice.random() < 0.5:
            epoch = -2 if consumer.instance_id is not None and self.dice.random() < 0.7 else -1
            self.say(consumer, lambda: consumer.leave(epoch))
            consumer.owned = {}
            if consumer in self.consumers:
                self.consumers.remove(consumer)

    def rejoin(self) -> None:
        """A consumer that was restarted without leaving."""
        consumer = self.some()
        if consumer is not None and consumer.instance_id is None:
            consumer.owned = {}
            self.say(consumer, lambda: consumer.join(*self.dice.sample(TOPICS, 2)))

    def pause(self) -> None:
        self.world.sleep(self.dice.choice([1, 500, 1000, 5000, 11_000, 46_000]))

    def topic(self) -> None:
        name = self.dice.choice(TOPICS)
        known = self.world.image.topic(name)
        size = 0 if known is None else len(known.partitions)
        if size < 8:
            topic_id = None if known is not None else self.dice.randbytes(16)
            self.world.topic(name, size + self.dice.randint(1, 3), topic_id)

    def delete(self) -> None:
        name = self.dice.choice(TOPICS[1:])
        if self.world.image.topic(name) is not None:
            self.world.delete(name)

    def failover(self) -> None:
        self.world.lead()

    def fail(self) -> None:
        self.world.log.failure = KafkaError(errors.NOT_ENOUGH_REPLICAS)
        for consumer in list(self.consumers):
            try:
                consumer.acknowledge()
            except KafkaError as error:
                if error.code != errors.NOT_ENOUGH_REPLICAS:
                    consumer.owned = {}
                    self.consumers.remove(consumer)
        self.world.log.failure = None

    # The end

    def calm_down(self) -> None:
        """Everybody sends heartbeats and nothing else happens."""
        for _ in range(60):
            self.world.sleep(1100)
            for consumer in list(self.consumers):
                self.say(consumer, consumer.acknowledge)
                self.check()

    def check_end(self) -> None:
        group, image = self.world.group, self.world.image
        assert group.state_name() == ("Stable" if group.members else "Empty")
        expected = set()
        for member in group.members.values():
            for name in group.topics_of_member(member):
                topic = image.topic(name)
                if topic is not None:
                    expected |= {(topic.topic_id, index) for index in topic.partitions}
        held = {(topic_id, index) for one in self.consumers for topic_id, some in one.owned.items() for index in some}
        assert held == expected


def state_of(machine: GroupMachine) -> Any:
    """Everything about the group that records say."""
    group = machine.state.groups.get(GROUP)
    if not isinstance(group, ConsumerGroup):
        return None
    members = {member_id: attributes_of(member) for member_id, member in group.members.items()}
    hidden = ("members", "metadata_expires_ms", "metadata_looked_at_epoch")
    return members, {name: value for name, value in attributes_of(group).items() if name not in hidden}


def attributes_of(item: object) -> dict[str, object]:
    """Compiled objects have neither slots nor a dictionary to look into."""
    found = {name: getattr(item, name) for name in dir(item) if not name.startswith("_")}
    return {name: value for name, value in found.items() if not callable(value)}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_partitions_have_one_owner_whatever_happens(seed: int) -> None:
    walker = Walker(seed)
    for _ in range(STEPS):
        walker.step()
    walker.calm_down()
    if isinstance(walker.world.machine.state.groups.get(GROUP), ConsumerGroup):
        walker.check_end()
