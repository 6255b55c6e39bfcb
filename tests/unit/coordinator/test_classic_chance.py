"""Classic groups under random joins, leaves, pauses, failed writes and restarts: what must hold after every step."""

from __future__ import annotations

import random

import pytest

from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.classic_member import ClassicMember
from moldau.coordinator.group.classic_rebalance import join_key, session_key, sync_key
from moldau.coordinator.group.classic_records import load_group
from moldau.protocol import errors
from tests.scripts.classic_groups.world import GroupWorld, Pending, read_group_record, subscription

SEEDS = 60
STEPS = 150
CLIENTS = ["a", "b", "c", "d", "i1", "i2", "i3"]


class Client:
    """A member as it sees itself; those whose name begins with an i are static."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.instance = name if name.startswith("i") else None
        self.forget()

    def forget(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.joining: Pending | None = None
        self.syncing: Pending | None = None
        self.members: list[str] = []
        self.is_synced = False


class Chance:
    """Drives a world and keeps every request that was parked."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = GroupWorld(seed, {"group.max.size": str(self.rng.choice([3, 100]))})
        self.clients = [Client(name) for name in CLIENTS]
        self.parked: list[Pending] = []
        self.is_written = True

    def step(self) -> None:
        client = self.rng.choice(self.clients)
        action = self.rng.choices(
            [self.behave, self.join, self.sync, self.leave, self.vanish, self.tick, self.restart, self.trouble],
            [40, 2, 2, 1, 0.5, 6, 0.2, 0.5],
        )[0]
        action(client)
        self.hear()
        self.check()

    def behave(self, client: Client) -> None:
        """Does what a client should do next."""
        if client.joining is not None or client.syncing is not None:
            return
        if client.generation < 0:
            self.join(client)
        elif not client.is_synced:
            self.sync(client)
        else:
            self.heartbeat(client)

    def join(self, client: Client) -> None:
        if client.joining is not None and self.rng.random() < 0.9:
            return
        topics = self.rng.choice([["t"], ["t"], ["t", "u"]])
        names = self.rng.choice([["range"], ["range", "sticky"], ["sticky", "range"]])
        client.joining = self.world.join(
            client.member_id,
            instance=client.instance,
            client=client.name,
            protocols=[(name, subscription(*topics)) for name in names],
            session_ms=self.rng.choice([6000, 20_000]),
            rebalance_ms=self.rng.choice([5000, 30_000]),
            version=self.rng.choice([9, 9, 9, 8] + ([] if client.instance else [3, 0])),
        )
        self.parked.append(client.joining)

    def sync(self, client: Client) -> None:
        if client.generation < 0 or (client.syncing is not None and self.rng.random() < 0.9):
            return
        assignments = {one: f"{one} in {client.generation}".encode() for one in client.members}
        client.syncing = self.world.sync(client.member_id, client.generation, assignments, instance=client.instance)
        self.parked.append(client.syncing)

    def heartbeat(self, client: Client) -> None:
        if client.member_id and not self.world.log.held:
            answer = self.world.heartbeat(client.member_id, client.generation, instance=client.instance)
            if answer.code in (errors.UNKNOWN_MEMBER_ID, errors.FENCED_INSTANCE_ID):
                client.forget()
            elif answer.code != errors.NONE:
                client.generation = -1

    def leave(self, client: Client) -> None:
        if client.member_id:
            self.note_written(self.world.leave((client.member_id, client.instance)))
            client.forget()

    def vanish(self, client: Client) -> None:
        """Its process is gone: nothing is said, and a new one knows nothing."""
        client.forget()

    def tick(self, client: Client) -> None:
        self.world.tick(self.rng.choice([10, 500, 3000, 3000, 7000]))

    def restart(self, client: Client) -> None:
        self.world.log.failing = None
        self.world.log.release(self.world.now_ms)
        self.world.stop()
        assert all(parked.done for parked in self.parked), "someone was left waiting at the end"
        self.world.start()
        self.is_written = True

    def trouble(self, client: Client) -> None:
        log = self.world.log
        if log.failing is not None or log.held:
            log.failing = None
            log.release(self.world.now_ms)
        elif self.rng.random() < 0.5:
            log.held = True
        else:
            log.failing = errors.NOT_ENOUGH_REPLICAS
            self.is_written = False

    def note_written(self, done: Pending) -> None:
        self.parked.append(done)

    def hear(self) -> None:
        """Clients take in what they were answered."""
        for client in self.clients:
            if client.joining is not None and client.joining.done:
                self.hear_join(client, client.joining)
            if client.syncing is not None and client.syncing.done:
                if client.syncing.code != 0:
                    client.generation = -1
                client.is_synced = True
                client.syncing = None
        self.parked = [parked for parked in self.parked if not parked.done]

    def hear_join(self, client: Client, joining: Pending) -> None:
        client.joining = None
        code = joining.code
        if code in (0, errors.MEMBER_ID_REQUIRED):
            client.member_id = joining.answer.member_id
        elif code != errors.REBALANCE_IN_PROGRESS:
            client.forget()
        if code == 0:
            client.generation = joining.answer.generation_id
            client.is_synced = False
            client.members = [row.member_id for row in joining.answer.members]

    # What must hold

    def check(self) -> None:
        group = self.world.machine.state.groups.get("g")
        if not isinstance(group, ClassicGroup):
            return
        self.check_members(group)
        self.check_timers(group)
        self.check_parked(group)
        log = self.world.log
        if group.state in ("Stable", "Empty") and self.is_written and not log.held and log.failing is None:
            self.check_replay(group)

    def check_members(self, group: ClassicGroup) -> None:
        members = list(group.members.values())
        assert group.awaiting_join_count == sum(member.awaiting_join is not None for member in members)
        counted: dict[str, int] = {}
        for member in members:
            for name, _ in member.protocols:
                counted[name] = counted.get(name, 0) + 1
        assert group._supported == counted
        static = {member.instance_id: member.member_id for member in members if member.instance_id is not None}
        assert group.static_members == static
        assert (group.leader in group.members) if members else group.leader is None
        assert not set(group.pending_members) & set(group.members)
        assert set(group.pending_sync_members) <= set(group.members)
        assert (group.state == "Empty") <= (not members)

    def check_timers(self, group: ClassicGroup) -> None:
        timers = self.world.machine.state.timers
        for one in [*group.members, *group.pending_members]:
            assert timers.is_scheduled(session_key("g", one)), f"{one} has no session"
        joins = timers.is_scheduled(join_key("g"))
        assert joins == (group.state == "PreparingRebalance")
        if group.state in ("CompletingRebalance", "Stable"):
            assert timers.is_scheduled(sync_key("g")) == bool(group.pending_sync_members)
        else:
            assert not timers.is_scheduled(sync_key("g"))
        sessions = sum(1 for key in timers._by_key if key.startswith("classic session"))
        assert sessions == len(group.members) + len(group.pending_members)

    def check_parked(self, group: ClassicGroup) -> None:
        """Everybody who waits is remembered by the group; leaves wait for the log alone."""
        remembered = {id(answer) for member in group.members.values() for answer in waiting_of(member)}
        joins_and_syncs = {
            id(pending)
            for client in self.clients
            for pending in (client.joining, client.syncing)
            if pending is not None
        }
        for pending in self.parked:
            if id(pending) in joins_and_syncs and not self.world.log.held:
                assert id(pending) in remembered, "a request is parked and forgotten"

    def check_replay(self, group: ClassicGroup) -> None:
        """What a failover would load is what is here."""
        key, value = self.world.log.records[-1]
        assert value is not None
        loaded = load_group(read_group_record(key, value)[0], value)
        assert loaded.describe() == group.describe()
        assert (loaded.generation, loaded.leader, loaded.static_members) == (
            group.generation,
            group.leader,
            group.static_members,
        )
        assert loaded.subscribed_topics == group.subscribed_topics or group.generation == 0
        for one, member in loaded.members.items():
            live = group.members[one]
            assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (
                live.session_timeout_ms,
                live.rebalance_timeout_ms,
            )


def waiting_of(member: ClassicMember) -> list[object]:
    return [answer for answer in (member.awaiting_join, member.awaiting_sync) if answer is not None]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_group_stays_whole_whatever_happens(seed: int) -> None:
    chance = Chance(seed)
    for _ in range(STEPS):
        chance.step()
    chance.world.log.failing = None
    chance.world.log.release(chance.world.now_ms)
    chance.world.tick(400_000)
    assert all(pending.done for pending in chance.parked), "everybody was answered in the end"
    group = chance.world.group()
    assert group.is_empty() and not group.pending_members
    assert len([key for key in chance.world.machine.state.timers._by_key if key.startswith("classic")]) == 0
