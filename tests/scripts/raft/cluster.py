"""Drives replicas of a quorum from a script and writes down what they do.

Commands, one per line. `voters 1 2 3` (static) or `dynamic-voters 1 2 3`, and `observers 4` or `brokers 4`, come
first. `start N`; `tick N MS` lets MS pass and ticks N, `late N MS` as well, and N was busy meanwhile; `quietly MS`
lets MS pass for all; `deliver [rounds]` hands over messages until there are none or for so many rounds; `propose N
TEXT`; `sync-manually N`: from now on only `sync N` syncs; `cut N` and `heal N`: its messages are lost, and not any
more; `crash N` loses what was not synced, and after `refuse N` its closed port tells so; `resign N`; `snapshot N`;
`vote CANDIDATE VOTER EPOCH`; `refused-fetch N M`, `closed-fetch N M`; `add-voter LEADER N`, `remove-voter LEADER N`,
`move N PORT`, `upgrade N`; `state` shows all, `voters-of N` its voters.
"""

from __future__ import annotations

from moldau.protocol.errors import KafkaError
from moldau.protocol.uuids import ZERO_UUID
from moldau.raft import messages as m
from moldau.raft.batches import control_records, metadata_values
from moldau.raft.core import RaftConfig
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.ready import Outbound
from moldau.raft.replica import Raft
from moldau.raft.snapshots import snapshot_bytes
from moldau.raft.state import QuorumState, ReplicaKey
from moldau.raft.voters import Endpoint, Voter, VoterHistory, VoterSet
from moldau.records.batch import read_header
from tests.unit.raft.memory_log import MemoryLog

NOBODY = -1000
CONTROL_NAMES = {2: "leader-change", 5: "kraft-version", 6: "voters"}


def directory_key(number: int) -> ReplicaKey:
    return ReplicaKey(number, bytes(15) + bytes([number]))


def endpoint(number: int) -> Endpoint:
    return "CONTROLLER", f"node{number}", 9090


class NoDice:
    """Election timeouts without chance: each replica adds ten times its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def randrange(self, stop: int, /) -> int:
        return min(stop - 1, self.number * 10)

    def randbytes(self, n: int, /) -> bytes:
        return bytes(n)


class Replica:
    def __init__(self, number: int, voters: VoterSet, directory_id: bytes = ZERO_UUID) -> None:
        self.key = ReplicaKey(number, directory_id)
        self.voters = voters
        self.port = 9090
        self.auto_join = False
        self.is_broker = False
        self.log = MemoryLog()
        self.stored: QuorumState | None = None
        self.manual_sync = False
        self.raft: Raft | None = None

    def start(self, now_ms: int) -> Raft:
        dice = NoDice(self.key.id)
        config = RaftConfig(auto_join=self.auto_join)
        voters = VoterHistory(self.voters, 0)
        self.raft = Raft(config, self.key, self.log, voters, dice, self.endpoints(), [("node1", 9090)])
        self.raft.start(self.stored, now_ms)
        return self.raft

    def endpoints(self) -> tuple[Endpoint, ...]:
        return () if self.is_broker else self.reached_at()

    def reached_at(self) -> tuple[Endpoint, ...]:
        return (("CONTROLLER", f"node{self.key.id}", self.port),)


class Cluster:
    def __init__(self) -> None:
        self.now_ms = 0
        self.replicas: dict[int, Replica] = {}
        self.inbox: list[tuple[int, Outbound]] = []
        self.answers: list[tuple[int, Outbound, m.Reply]] = []
        self.waiting: dict[int, tuple[int, Outbound]] = {}
        self.tokens = 0
        self.cut: set[int] = set()
        self.refused: set[int] = set()
        self.broken: list[tuple[int, Outbound]] = []
        self.is_dynamic = False
        self.trace: list[str] = []

    def run(self, line: str) -> list[str]:
        self.trace = []
        command, *arguments = line.split()
        getattr(self, "do_" + command.replace("-", "_"))(*arguments)
        return self.trace

    # Commands

    def do_voters(self, *numbers: str) -> None:
        voters = VoterSet([Voter(ReplicaKey(int(n), ZERO_UUID), (endpoint(int(n)),)) for n in numbers])
        self.replicas = {int(n): Replica(int(n), voters) for n in numbers}
        self.voter_set = voters

    def do_dynamic_voters(self, *numbers: str) -> None:
        """Formatted with the voters in the first snapshot, as `storage format --initial-controllers` leaves them."""
        self.voter_set = VoterSet([Voter(directory_key(int(n)), (endpoint(int(n)),)) for n in numbers])
        first = snapshot_bytes([], 0, 0, 1, self.voter_set, 0)
        for n in numbers:
            replica = Replica(int(n), VoterSet([]), directory_key(int(n)).directory_id)
            replica.log.snapshots[OffsetAndEpoch(0, 0)] = first
            self.replicas[int(n)] = replica
        self.voter_set = VoterSet([])
        self.is_dynamic = True

    def do_observers(self, *numbers: str) -> None:
        for n in numbers:
            directory_id = directory_key(int(n)).directory_id if self.is_dynamic else ZERO_UUID
            self.replicas[int(n)] = Replica(int(n), self.voter_set, directory_id)

    def do_brokers(self, *numbers: str) -> None:
        """Observers that listen for no controller."""
        self.do_observers(*numbers)
        for n in numbers:
            self.replicas[int(n)].is_broker = True

    def do_directories(self, *numbers: str) -> None:
        """Replicas of a static quorum whose storage was formatted with directory ids."""
        for n in numbers:
            self.replicas[int(n)].key = directory_key(int(n))

    def do_auto_join(self, *numbers: str) -> None:
        for n in numbers:
            self.replicas[int(n)].auto_join = True

    def do_refuse(self, *numbers: str) -> None:
        self.refused |= {int(n) for n in numbers}

    def do_refused_fetch(self, source: str, destination: str) -> None:
        """The fetch that waits there ends with a refused connection."""
        self.break_fetch(int(source), int(destination), m.REFUSED)

    def do_closed_fetch(self, source: str, destination: str) -> None:
        """The fetch that waits there, or waited at a process that is gone, ends with a closed connection."""
        self.break_fetch(int(source), int(destination), m.CLOSED)

    def break_fetch(self, source: int, destination: int, reason: int) -> None:
        for token, (number, outbound) in list(self.waiting.items()) + list(enumerate(self.broken, -9999)):
            if (number, outbound.destination) == (source, destination):
                self.waiting.pop(token, None)
                self.raft(number).on_failure(outbound.destination, outbound.request, self.now_ms, reason)
                self.work(number)

    def do_add_voter(self, leader: str, number: str) -> None:
        replica = self.replicas[int(number)]
        self.ask(int(leader), m.AddVoterRequest(-1, Voter(replica.key, replica.reached_at())))

    def do_remove_voter(self, leader: str, number: str) -> None:
        self.ask(int(leader), m.RemoveVoterRequest(-1, self.replicas[int(number)].key))

    def do_move(self, number: str, port: str) -> None:
        self.replicas[int(number)].port = int(port)

    def do_upgrade(self, number: str) -> None:
        try:
            self.raft(int(number)).upgrade_kraft_version(1, False, self.now_ms)
        except KafkaError as error:
            self.say(int(number), f"error {error.code}: {error.message}")
        self.work(int(number))

    def do_voters_of(self, number: str) -> None:
        history = self.raft(int(number)).voter_history
        shown = [
            f"{voter.key.id}@{voter.endpoints[0][1]}:{voter.endpoints[0][2]}" for voter in history.latest().voters()
        ]
        self.say(int(number), f"kraft.version {history.kraft_version()}, voters {' '.join(shown)}")

    def ask(self, leader: int, request: m.Request) -> None:
        """A request of somebody who is no replica."""
        self.tokens += 1
        self.raft(leader).on_request(request, -self.tokens, self.now_ms)
        self.work(leader)

    def do_start(self, *numbers: str) -> None:
        for n in numbers:
            self.replicas[int(n)].start(self.now_ms)
            self.work(int(n))

    def do_tick(self, number: str, milliseconds: str) -> None:
        self.now_ms += int(milliseconds)
        self.raft(int(number)).tick(self.now_ms)
        self.work(int(number))

    def do_late(self, number: str, milliseconds: str) -> None:
        """It was busy for so long, and its timer comes only now."""
        self.now_ms += int(milliseconds)
        self.raft(int(number)).extend_deadlines(int(milliseconds), self.now_ms)
        self.raft(int(number)).tick(self.now_ms)
        self.work(int(number))

    def do_quietly(self, milliseconds: str) -> None:
        """Lets time pass for all; what they say to each other meanwhile is left out."""
        for _ in range(0, int(milliseconds), 50):
            self.now_ms += 50
            for number, replica in self.replicas.items():
                if replica.raft is not None:
                    replica.raft.tick(self.now_ms)
                    self.work(number)
            self.do_deliver()
        self.trace.clear()

    def do_deliver(self, rounds: str = "100") -> None:
        for _ in range(int(rounds)):
            inbox, self.inbox = self.inbox, []
            answers, self.answers = self.answers, []
            if not inbox and not answers:
                break
            for source, outbound in inbox:
                self.hand_over(source, outbound)
            for source, outbound, reply in answers:
                self.hand_back(source, outbound, reply)

    def do_propose(self, number: str, text: str) -> None:
        self.raft(int(number)).propose([text.encode()], self.now_ms)
        self.work(int(number))

    def do_sync_manually(self, number: str) -> None:
        self.replicas[int(number)].manual_sync = True

    def do_sync(self, number: str) -> None:
        self.sync(int(number))
        self.work(int(number))

    def do_cut(self, *numbers: str) -> None:
        self.cut |= {int(n) for n in numbers}

    def do_heal(self, *numbers: str) -> None:
        self.cut -= {int(n) for n in numbers}

    def do_crash(self, number: str) -> None:
        replica = self.replicas[int(number)]
        replica.log.crash()
        replica.raft = None
        self.inbox = [entry for entry in self.inbox if entry[0] != int(number)]
        broken = [w for w in self.waiting.values() if w[1].destination == int(number)]
        self.waiting = {t: w for t, w in self.waiting.items() if w[1].destination != int(number)}
        self.broken += broken
        self.say(int(number), f"crashed, its log ends at {replica.log.end_offset()}")
        if int(number) in self.refused:
            # Its sockets are closed, so whoever waits for an answer notices.
            for source, outbound in broken:
                self.raft(source).on_failure(outbound.destination, outbound.request, self.now_ms, m.CLOSED)
                self.work(source)

    def do_resign(self, number: str) -> None:
        self.raft(int(number)).resign(self.now_ms)
        self.work(int(number))

    def do_vote(self, candidate: str, voter: str, epoch: str) -> None:
        """A vote request out of nowhere."""
        key = ReplicaKey(int(candidate), ZERO_UUID)
        request = m.VoteRequest(int(epoch), key, ReplicaKey(int(voter), ZERO_UUID), OffsetAndEpoch(9, 9), False)
        self.hand_over(int(candidate), Outbound(int(voter), request))
        self.answers.clear()

    def do_snapshot(self, number: str) -> None:
        log = self.replicas[int(number)].log
        offset = self.raft(int(number)).high_watermark
        epoch = log.last_epoch()
        snapshot = log.take_snapshot(offset, snapshot_bytes([b"state"], epoch, 0, 0, None, self.now_ms))
        self.say(int(number), f"snapshot {snapshot.offset}-{snapshot.epoch}, log from {log.start_offset()}")

    def do_state(self) -> None:
        for number, replica in self.replicas.items():
            raft = replica.raft
            if raft is None:
                self.say(number, "down")
                continue
            shown = " ".join(self.show_batch(batch) for batch in replica.log.batches)
            position = f"high watermark {raft.high_watermark}, log {replica.log.start}..{replica.log.end_offset()}"
            self.say(number, f"{raft.role.name} epoch {raft.epoch} leader {raft.leader_id}, {position}: {shown}")

    # Inside

    def raft(self, number: int) -> Raft:
        raft = self.replicas[number].raft
        assert raft is not None, f"{number} is down"
        return raft

    def say(self, number: int, text: str) -> None:
        self.trace.append(f"{number}: {text}")

    def sync(self, number: int) -> None:
        replica = self.replicas[number]
        replica.log.sync()
        raft = self.raft(number)
        raft.on_synced(replica.log.end_offset(), raft.sync_generation, self.now_ms)

    def work(self, number: int) -> None:
        """Works off what one replica wants done, as the node does."""
        replica, raft = self.replicas[number], self.raft(number)
        ready = raft.take_ready()
        while not ready.is_empty():
            if ready.quorum_state is not None:
                replica.stored = ready.quorum_state
                state = ready.quorum_state
                self.say(number, f"stores epoch {state.epoch} leader {state.leader_id} voted {state.voted.id}")
            if ready.sync_to >= 0 and not replica.manual_sync:
                self.sync(number)
            for outbound in ready.requests:
                self.say(number, f"-> {outbound.destination} {show_request(outbound.request)}")
                self.inbox.append((number, outbound))
            for token, reply in ready.replies:
                self.answer(number, token, reply)
            for read in ready.snapshot_reads:
                read.reply.data = replica.log.read_snapshot(read.reply.snapshot, read.reply.position, read.max_bytes)
                self.answer(number, read.token, read.reply)
            if ready.fetched_snapshot is not None:
                raft.on_snapshot_checked(ready.fetched_snapshot, None, self.now_ms)
            if ready.leader_changed:
                self.say(number, f"is {raft.role.name} of epoch {raft.epoch}, leader {raft.leader_id}")
            if ready.loaded_snapshot is not None:
                self.say(number, f"loads snapshot {ready.loaded_snapshot.offset}-{ready.loaded_snapshot.epoch}")
            if ready.high_watermark >= 0:
                self.say(number, f"high watermark {ready.high_watermark}")
            ready = raft.take_ready()

    def answer(self, number: int, token: object, reply: m.Reply) -> None:
        assert isinstance(token, int)
        if token < 0:
            self.say(number, f"answers {show_reply(reply)}")
        elif token in self.waiting:
            source, outbound = self.waiting.pop(token)
            self.say(number, f"=> {source} {show_reply(reply)}")
            self.answers.append((source, outbound, reply))

    def hand_over(self, source: int, outbound: Outbound) -> None:
        destination = self.destination_of(source, outbound)
        if self.is_lost(source, destination):
            if self.replicas[source].raft is not None:
                reason = m.REFUSED if destination in self.refused else m.TIMED_OUT
                self.raft(source).on_failure(outbound.destination, outbound.request, self.now_ms, reason)
                self.work(source)
            return
        if isinstance(outbound.request, m.ProbeRequest):
            self.answers.append((source, outbound, m.ProbeReply(0, -1, -1, 0, 1)))
            return
        self.tokens += 1
        self.waiting[self.tokens] = (source, outbound)
        self.raft(destination).on_request(outbound.request, self.tokens, self.now_ms)
        self.work(destination)

    def destination_of(self, source: int, outbound: Outbound) -> int:
        """Whoever listens at the address; a number nobody has when nobody does."""
        raft = self.replicas[source].raft
        address = raft.address_of(outbound.destination) if raft is not None else None
        for number, replica in self.replicas.items():
            if address == (f"node{number}", replica.port):
                return number
        return NOBODY

    def hand_back(self, source: int, outbound: Outbound, reply: m.Reply) -> None:
        if self.is_lost(source, self.destination_of(source, outbound)):
            return
        self.raft(source).on_reply(outbound.destination, outbound.request, reply, self.now_ms)
        self.work(source)

    def is_lost(self, source: int, destination: int) -> bool:
        down = any(n == NOBODY or self.replicas[n].raft is None for n in (source, destination))
        return down or bool({source, destination} & self.cut)

    @staticmethod
    def show_batch(batch: bytes) -> str:
        header = read_header(batch, 0, len(batch))
        controls = control_records(batch)
        names = [CONTROL_NAMES[control_type] for _, control_type, _ in controls]
        what = ",".join(names or [value.decode() for value in metadata_values(batch, header)])
        return f"[{int(header.base_offset)} e{int(header.partition_leader_epoch)} {what}]"


def show_request(request: m.Request) -> str:
    if isinstance(request, m.VoteRequest):
        kind = "pre-vote" if request.pre_vote else "vote"
        return f"{kind} epoch {request.epoch}, log ends at {request.last.offset} epoch {request.last.epoch}"
    if isinstance(request, m.FetchRequest):
        return f"fetch epoch {request.epoch} from {request.offset} after epoch {request.last_fetched_epoch}"
    if isinstance(request, m.BeginEpochRequest):
        return f"begin-epoch {request.epoch}"
    if isinstance(request, m.EndEpochRequest):
        return f"end-epoch {request.epoch}, successors {[key.id for key in request.successors]}"
    if isinstance(request, m.ProbeRequest):
        return "probe"
    if isinstance(request, m.AddVoterRequest | m.UpdateVoterRequest):
        what = "add-voter" if isinstance(request, m.AddVoterRequest) else "update-voter"
        _, host, port = request.voter.endpoints[0]
        return f"{what} {request.voter.key.id}@{host}:{port}"
    if isinstance(request, m.RemoveVoterRequest):
        return f"remove-voter {request.voter.id}"
    assert isinstance(request, m.FetchSnapshotRequest)
    return f"fetch-snapshot {request.snapshot.offset}-{request.snapshot.epoch} from byte {request.position}"


def show_reply(reply: m.Reply) -> str:
    error = f"error {reply.error}, " if reply.error else ""
    known = f"leader {reply.leader_id} epoch {reply.epoch}"
    if isinstance(reply, m.ChangeReply):
        return f"error {reply.error}: {reply.message}" if reply.error else "done"
    if isinstance(reply, m.VoteReply):
        return f"{error}{'granted' if reply.granted else 'refused'}, {known}"
    if isinstance(reply, m.FetchReply) and not reply.error:
        if reply.diverging is not None:
            return f"diverges: epoch {reply.diverging.epoch} ends at {reply.diverging.offset}"
        if reply.snapshot is not None:
            return f"start from snapshot {reply.snapshot.offset}-{reply.snapshot.epoch}"
        return f"{len(reply.records)} bytes, high watermark {reply.high_watermark}"
    if isinstance(reply, m.FetchSnapshotReply) and not reply.error:
        return f"{len(reply.data)} of {reply.size} bytes"
    return f"{error}{known}"
