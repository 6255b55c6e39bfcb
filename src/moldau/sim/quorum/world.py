"""A quorum alone: raft and its log on simulated disks, a network that loses, repeats and reorders, machines that stop.

Disks are slow or stuck for a while, clocks differ, processes are stopped and go on (`odd_machines.py`).
Three to five voters, static or dynamic, and one or two replicas more that observe or are made voters. `model.py`
checks at every step what must never happen; at the end all is healed, and the quorum must agree and go on.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.config.broker_config import BrokerConfig
from moldau.protocol.uuids import ZERO_UUID
from moldau.raft import messages as m
from moldau.raft.core import RaftConfig
from moldau.raft.ready import Outbound
from moldau.raft.roles import Leader
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterSet
from moldau.raft.wire import reply_to_wire, request_from_wire
from moldau.raft.wire_client import reply_from_wire, request_to_wire
from moldau.records.clocks import NEVER_MS
from moldau.sim.kernel.disk import SimDisk, SimulatedCrash
from moldau.sim.kernel.machine_clock import MILLION
from moldau.sim.kernel.slow_disks import SlowDisks
from moldau.sim.kernel.world import Violation, World
from moldau.sim.quorum.model import QuorumModel
from moldau.sim.quorum.odd_machines import OddMachines
from moldau.sim.quorum.replica import DATA, Replica

CLUSTER = "cluster"
LISTENER = "CONTROLLER"
DEFAULT_MILLISECONDS = 8_000

_configs: dict[tuple[int, int], BrokerConfig] = {}


def broker_config(segment_bytes: int, retention_bytes: int) -> BrokerConfig:
    """Small segments and snapshots that go soon; made once, because all keys are checked."""
    if (segment_bytes, retention_bytes) not in _configs:
        values = {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"{LISTENER}://127.0.0.1:9093",
            "controller.listener.names": LISTENER,
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "log.dirs": DATA,
            "internal.metadata.log.segment.bytes": str(segment_bytes),
            "metadata.max.retention.bytes": str(retention_bytes),
        }
        _configs[(segment_bytes, retention_bytes)] = BrokerConfig(values, warn=False)
    return _configs[(segment_bytes, retention_bytes)]


class Token:
    """A request on its way: whose it is, and in which life it was sent."""

    def __init__(self, source: Replica, outbound: Outbound) -> None:
        self.source = source
        self.outbound = outbound
        self.life = source.lives


class RaftWorld:
    replica_class = Replica

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.rng = self.world.derived_rng("faults")
        self.model = QuorumModel()
        self.quiet = False
        self.proposals = 0
        self.cuts: set[tuple[int, int]] = set()
        rng = self.rng
        self.loss = rng.choice((0.0, 0.0, 0.02, 0.1))
        self.repeats = rng.choice((0.0, 0.05))
        self.slowest_ms = rng.choice((3, 30, 300))
        self.often_slow = rng.choice((0.1, 0.5))
        self.is_dynamic = rng.random() < 0.7
        count = rng.choice((3, 3, 3, 4, 5))
        spare = rng.choice((0, 1, 2))
        keys = [ReplicaKey(number, rng.randbytes(16)) for number in range(1, count + spare + 1)]
        self.ports = {key.id: 9093 for key in keys}
        voters = VoterSet([self._voter(key) for key in keys[:count]])
        # Where elections time out as fast as messages travel, candidates meet each other all the time.
        patience_ms = rng.choice((20, 60, 300))
        self.heal_ms = 2000 + 25 * patience_ms
        config = RaftConfig(
            election_timeout_ms=patience_ms,
            election_backoff_max_ms=patience_ms,
            fetch_timeout_ms=2 * patience_ms,
            request_timeout_ms=2 * patience_ms,
            fetch_max_wait_ms=patience_ms // 2,
            fetch_max_bytes=rng.choice((300, 5000)),
            snapshot_max_bytes=rng.choice((100, 5000)),
            auto_join=self.is_dynamic and rng.random() < 0.3,
        )
        self.replicas: dict[int, Replica] = {}
        for key in keys:
            known = voters if key.id <= count or not self.is_dynamic else VoterSet([])
            disk = broker_config(rng.choice((400, 2000, 1 << 20)), rng.choice((600, 100_000)))
            self.replicas[key.id] = self._new_replica(key, known, disk, config)
        self.slow_disks = SlowDisks(self.world, self._disks)
        self.odd_machines = OddMachines(self.world, self.replicas.values(), patience_ms, self._go_on)
        self.world.schedule(0, self._start_all)

    def _new_replica(self, key: ReplicaKey, known: VoterSet, disk: BrokerConfig, config: RaftConfig) -> Replica:
        version = 1 if self.is_dynamic else 0
        servers = [(self._host(number), 9093) for number in (1, 2, 3)]
        replica = self.replica_class(self, key, known, version, disk, config, servers)
        replica.endpoints = self._voter(key).endpoints
        rng = self.world.derived_rng(f"disk {key.id}")
        replica.disk.sync_delay_ms = rng.choice(((0, 10), (0, 10), (0, 100)))
        replica.is_broker = len(known) == 0 and rng.random() < 0.5
        return replica

    def _disks(self) -> dict[str, SimDisk]:
        return {str(replica.key.id): replica.disk for replica in self.replicas.values()}

    def leave_out_slowness(self) -> None:
        """No slow disks, one clock, nobody is stopped: as this world was before there were any."""
        self.slow_disks.leave_out()
        self.odd_machines.leave_out()

    @staticmethod
    def _host(number: int) -> str:
        return f"node{number}"

    def _voter(self, key: ReplicaKey) -> Voter:
        directory = key.directory_id if self.is_dynamic else ZERO_UUID
        endpoint = (LISTENER, self._host(key.id), self.ports[key.id])
        return Voter(ReplicaKey(key.id, directory), (endpoint,))

    # Running

    def run(self, milliseconds: int = DEFAULT_MILLISECONDS) -> None:
        self.world.run_for(milliseconds)
        self.heal()
        self.world.run_for(self.heal_ms)
        self.check_calm()

    def summary(self) -> str:
        lives = sum(replica.lives for replica in self.replicas.values())
        kind = "dynamic" if self.is_dynamic else "static"
        return (
            f"{kind}, {len(self.replicas)} replicas, {lives} lives, {len(self.model.leaders)} leaders, "
            f"{self.model.end_offset} offsets committed, {self.model.changes_of_voters} changes of the voters"
        )

    def _start_all(self) -> None:
        for replica in self.replicas.values():
            self._restart(replica)
        self.slow_disks.start()
        self.odd_machines.start()
        self._next_step()

    def _restart(self, replica: Replica) -> None:
        if replica.raft is None:
            self.world.note(f"{replica.key.id} starts")
            self.survive(replica, replica.start)

    def survive(self, replica: Replica, action: Callable[[], None]) -> None:
        """Runs something of a replica; its machine may stop in the middle of a change of its disk."""
        if replica.is_paused:
            replica.backlog.append(action)
            return
        replica.disk.watch.begin(is_serving=replica.raft is not None)
        try:
            try:
                action()
            finally:
                replica.disk.watch.end()
        except SimulatedCrash:
            self.crash(replica, power_loss=self.rng.random() < 0.7)
        if replica.raft is not None:
            self._wake(replica, replica.raft.next_deadline_ms(replica.now_ms))

    def _go_on(self, replica: Replica) -> None:
        backlog, replica.backlog = replica.backlog, []
        life = replica.lives
        for action in backlog:
            if replica.raft is not None and replica.lives == life:
                self.survive(replica, action)

    def _wake(self, replica: Replica, at_ms: int) -> None:
        """Ticks a replica when it asked for it and never otherwise: a deadline it forgets shows as a standstill."""
        if at_ms >= replica.wake_ms or at_ms == NEVER_MS:
            return
        replica.wake_ms = at_ms

        def tick() -> None:
            if replica.wake_ms == at_ms:
                replica.wake_ms = NEVER_MS
                self.survive(replica, replica.poll)

        delay_ms = at_ms - replica.now_ms
        if replica.clock.speed_ppm != MILLION:
            delay_ms = max(1, delay_ms)  # it may not be there yet by its own clock, and is asked again
        self.world.schedule(delay_ms, tick)

    def crash(self, replica: Replica, *, power_loss: bool) -> None:
        self.world.note(f"{replica.key.id} {'loses power' if power_loss else 'is killed'}")
        replica.stop()
        if power_loss:
            replica.disk.power_loss()
        else:
            replica.disk.process_crash()
        delay_ms = self.rng.choice((0, 20, 200, 1000))
        self.world.schedule(delay_ms, lambda: self._restart(replica))

    # The network

    def send(self, replica: Replica, outbound: Outbound) -> None:
        assert replica.raft is not None
        self.model.on_said(replica.key, outbound.request, None)
        token = Token(replica, outbound)
        address = replica.raft.address_of(outbound.destination)
        target = self._listening_at(address)
        if target is None or target.raft is None:
            machine_responds = target is None or self._is_open(replica.key.id, target.key.id)
            if machine_responds and self.rng.random() < 0.8:
                self._later(lambda: self._fail(token, m.REFUSED))
            return
        request = self._through_wire(outbound.request)
        self._carry(replica.key.id, target.key.id, lambda: self._deliver(token, target, request))

    def _listening_at(self, address: tuple[str, int] | None) -> Replica | None:
        """At the end old addresses work again: a voter that moved before it could tell anybody may not be found."""
        for replica in self.replicas.values():
            host, port = self._host(replica.key.id), self.ports[replica.key.id]
            if address is not None and address[0] == host and (self.quiet or address[1] == port):
                return replica
        return None

    def _through_wire(self, request: m.Request) -> m.Request:
        """Now and then as the protocol writes it, to see that nothing is lost in translation."""
        if self.rng.random() < 0.1 and not isinstance(request, m.ProbeRequest):
            return request_from_wire(request_to_wire(request, CLUSTER), CLUSTER)
        return request

    def _is_open(self, source: int, target: int) -> bool:
        return (source, target) not in self.cuts

    def _carry(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        if not self._is_open(source, target) or (not self.quiet and self.rng.random() < self.loss):
            return
        self._later(deliver)
        if not self.quiet and self.rng.random() < self.repeats:
            self._later(deliver)

    def _later(self, action: Callable[[], None]) -> None:
        is_slow = not self.quiet and self.rng.random() < self.often_slow
        delay_ms = self.rng.randint(0, self.slowest_ms) if is_slow else self.rng.randint(0, 3)
        self.world.schedule(delay_ms, action)

    def _deliver(self, token: Token, target: Replica, request: m.Request) -> None:
        if target.raft is None:
            self._later(lambda: self._fail(token, m.REFUSED))
            return

        def handle() -> None:
            assert target.raft is not None
            if isinstance(request, m.ProbeRequest):
                self.send_reply(target, token, m.ProbeReply(0, -1, -1, 0, 1))
            else:
                target.raft.on_request(request, token, target.now_ms)
                target.work()

        self.survive(target, handle)

    def send_reply(self, replica: Replica, token: object, reply: m.Reply) -> None:
        if token is None:
            return
        assert isinstance(token, Token)
        if not isinstance(reply, m.ProbeReply):
            self.model.on_said(replica.key, token.outbound.request, reply)
        if self.rng.random() < 0.1 and not isinstance(reply, m.ProbeReply | m.ChangeReply):
            translated = reply_from_wire(reply_to_wire(reply))
            assert translated is not None
            reply = translated
        self._carry(replica.key.id, token.source.key.id, lambda: self._hand_back(token, reply))

    def _hand_back(self, token: Token, reply: m.Reply) -> None:
        replica = token.source
        if replica.raft is None or replica.lives != token.life:
            return

        def handle() -> None:
            assert replica.raft is not None
            outbound = token.outbound
            replica.raft.on_reply(outbound.destination, outbound.request, reply, replica.now_ms)
            replica.work()

        self.survive(replica, handle)

    def _fail(self, token: Token, reason: int) -> None:
        replica = token.source
        if replica.raft is None or replica.lives != token.life:
            return

        def handle() -> None:
            assert replica.raft is not None
            replica.raft.on_failure(token.outbound.destination, token.outbound.request, replica.now_ms, reason)
            replica.work()

        self.survive(replica, handle)

    # What happens

    def _next_step(self) -> None:
        if not self.quiet:
            self._step()
            self.world.schedule(self.rng.randint(1, 40), self._next_step)

    def _step(self) -> None:
        draw = self.rng.random()
        replica = self.replicas[self.rng.choice(list(self.replicas))]
        if draw < 0.6:
            self._propose(replica)
        elif draw < 0.68:
            if replica.raft is not None:
                self.survive(replica, replica.write_snapshot)
        elif draw < 0.73:
            self._cut()
        elif draw < 0.78:
            self.cuts.clear()
        elif draw < 0.81:
            if replica.raft is not None:
                self.crash(replica, power_loss=self.rng.random() < 0.7)
        elif draw < 0.85:
            replica.disk.crash_after(self.rng.randint(1, 20))
        elif draw < 0.86:
            self.world.note("all lose power")
            for each in self.replicas.values():
                self.crash(each, power_loss=True)
        elif draw < 0.87:
            self._resign(replica)
        elif draw < 0.97 and self.is_dynamic:
            self._change_voters()
        elif draw < 0.98 and self.is_dynamic:
            self._move(replica)

    def leader(self) -> Replica | None:
        leading = [replica for replica in self.replicas.values() if replica.raft is not None and replica.raft.is_leader]
        return max(leading, key=lambda replica: replica.raft.epoch if replica.raft else 0, default=None)

    def _propose(self, replica: Replica) -> None:
        """To anybody that thinks it leads, or to the one that does."""
        target = replica if replica.raft is not None and replica.raft.is_leader else self.leader()
        if target is None:
            return

        def handle() -> None:
            raft = target.raft
            assert raft is not None
            if not raft.is_leader:
                return  # it was stopped when it was asked
            for _ in range(self.rng.randint(1, 3)):
                self.proposals += 1
                raft.propose([f"value {self.proposals}".encode() * self.rng.randint(1, 9)], target.now_ms)
            target.work()

        self.survive(target, handle)

    def _cut(self) -> None:
        """Takes one replica away from the others, splits them, or breaks one direction of one way."""
        ids = list(self.replicas)
        self.rng.shuffle(ids)
        kind = self.rng.randrange(3)
        if kind == 2:
            self.cuts.add((ids[0], ids[1]))
        else:
            size = 1 if kind == 0 else len(ids) // 2
            for one in ids[:size]:
                for other in ids[size:]:
                    self.cuts |= {(one, other), (other, one)}

    def _resign(self, replica: Replica) -> None:
        def handle() -> None:
            if replica.raft is not None:
                replica.raft.resign(replica.now_ms)
                replica.work()

        self.survive(replica, handle)

    def _change_voters(self) -> None:
        target = self.leader()
        if target is None or target.raft is None:
            return
        voters = target.raft.voters
        others = [replica for replica in self.replicas.values() if voters.get(replica.key.id) is None]
        request: m.Request
        if others and self.rng.random() < 0.6:
            replica = self.rng.choice(others)
            request = m.AddVoterRequest(-1, Voter(replica.key, replica.endpoints), self.rng.random() < 0.5)
        elif len(voters) > 2:
            request = m.RemoveVoterRequest(-1, self.rng.choice(voters.voters()).key)
        else:
            return

        def handle() -> None:
            assert target.raft is not None
            before = target.raft.voters
            self.world.note(f"{target.key.id} is asked: {request}")
            target.raft.on_request(request, None, target.now_ms)
            target.work()
            self.model.changes_of_voters += target.raft is not None and target.raft.voters != before

        self.survive(target, handle)

    def _move(self, replica: Replica) -> None:
        """It comes back at another port. Only one at a time: a majority that moved could not be found by anybody."""
        leader = self.leader()
        known = leader.raft.voters.voters() if leader is not None and leader.raft is not None else []
        if (
            replica is leader
            or replica.is_broker
            or not known
            or any(voter.endpoints[0][2] != self.ports[voter.key.id] for voter in known)
        ):
            return
        if replica.raft is not None:
            self.crash(replica, power_loss=True)
            self.ports[replica.key.id] += 1
            replica.endpoints = self._voter(replica.key).endpoints

    # The end

    def heal(self) -> None:
        self.world.note("all is healed")
        self.quiet = True
        self.cuts.clear()
        self.slow_disks.end()
        self.odd_machines.end()
        for replica in self.replicas.values():
            replica.disk.crash_after(0)
            replica.disk.sync_delay_ms = (0, 10)
            self._restart(replica)
        for part in (0.5, 0.7, 0.8):
            self.world.schedule(int(part * self.heal_ms), self._propose_at_the_end)

    def _propose_at_the_end(self) -> None:
        leader = self.leader()
        if leader is not None:
            self._propose(leader)

    def check_calm(self) -> None:
        """One leader, everybody at the same offset with the same state."""
        leader = self.leader()
        if leader is None or leader.raft is None or not isinstance(leader.raft.role, Leader):
            raise Violation("nobody leads although all is healed")
        end = leader.log.end_offset()
        if leader.high_watermark != end:
            raise Violation(f"{leader.key} commits up to {leader.high_watermark} of {end} although all is healed")
        for replica in self.replicas.values():
            raft = replica.raft
            if raft is None or (raft.epoch, raft.leader_id) != (leader.raft.epoch, leader.key.id):
                shown = "is down" if raft is None else f"is {raft.role.name} of epoch {raft.epoch}"
                raise Violation(f"{replica.key} {shown} although all is healed")
            if (replica.applied, replica.digest) != (leader.applied, leader.digest):
                raise Violation(f"{replica.key} is at {replica.applied}, the leader at {leader.applied}")
            if raft.voters != leader.raft.voters:
                raise Violation(f"{replica.key} has voters {raft.voters}, the leader {leader.raft.voters}")
