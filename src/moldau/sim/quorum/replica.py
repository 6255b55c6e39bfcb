"""One replica of a quorum alone on a simulated disk: raft and the metadata log, without a node around them.

It does what `node/metadata_node.py` does with a `Ready`, in the same order, and applies committed batches to a state
that is a checksum of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from moldau.config.broker_config import BrokerConfig
from moldau.node.metadata_log import MetadataLog, open_metadata_log, snapshot_name
from moldau.protocol import errors
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import ZERO_UUID
from moldau.raft.core import RaftConfig
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.messages import Reply
from moldau.raft.ready import Outbound, Ready, SnapshotRead
from moldau.raft.replica import Raft
from moldau.raft.snapshots import snapshot_bytes, snapshot_values
from moldau.raft.state import QuorumState, ReplicaKey
from moldau.raft.voters import Endpoint, VoterHistory, VoterSet
from moldau.records.batch import split_batches
from moldau.records.clocks import NEVER_MS
from moldau.sim.kernel.disk import SimDisk
from moldau.sim.kernel.machine_clock import MachineClock
from moldau.sim.kernel.world import START_MS, Violation, World
from moldau.sim.quorum.model import QuorumModel, digest_after
from moldau.storage.disk import Done
from moldau.storage.log import Log

DATA = "data"
DIRECTORY = f"{DATA}/{METADATA_TOPIC}-0"
READ_BYTES = 1 << 20


class Surroundings(Protocol):
    """What a replica needs of its world."""

    world: World
    model: QuorumModel

    def send(self, replica: Replica, outbound: Outbound) -> None: ...

    def send_reply(self, replica: Replica, token: object, reply: Reply) -> None: ...

    def survive(self, replica: Replica, action: Callable[[], None]) -> None: ...


class Replica:
    def __init__(
        self,
        surroundings: Surroundings,
        key: ReplicaKey,
        voters: VoterSet,
        kraft_version: int,
        broker_config: BrokerConfig,
        raft_config: RaftConfig,
        bootstrap_servers: list[tuple[str, int]],
    ) -> None:
        self.surroundings = surroundings
        self.world = surroundings.world
        self.key = key
        self.voters = voters
        self.kraft_version = kraft_version
        self.broker_config = broker_config
        self.raft_config = raft_config
        self.bootstrap_servers = bootstrap_servers
        self.endpoints: tuple[Endpoint, ...] = ()
        self.is_broker = False
        """It observes without ever thinking of being a voter, and yet somebody may make it one."""
        self.rng = self.world.derived_rng(f"replica {key.id}")
        self.disk = SimDisk(self.rng.getrandbits(32), self._schedule)
        self.clock = MachineClock(self.world)
        self.is_paused = False
        self.backlog: list[Callable[[], None]] = []
        """What came to it while it was stopped."""
        self.raft: Raft | None = None
        self.lives = 0
        self.wake_ms = NEVER_MS
        self.digest = 0
        self.applied = 0
        self.high_watermark = 0
        self.is_writing_snapshot = False
        self._format()

    def _schedule(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.world.schedule(delay_ms, lambda: self.surroundings.survive(self, action))

    def _format(self) -> None:
        """What the format step leaves: with kraft.version 1 a first snapshot that names the voters."""
        self.disk.make_directory(DATA)
        self.disk.sync_directory("")
        self.disk.make_directory(DIRECTORY)
        self.disk.sync_directory(DATA)
        if self.kraft_version >= 1 and len(self.voters) > 0:
            path = f"{DIRECTORY}/{snapshot_name(OffsetAndEpoch(0, 0))}"
            self.disk.write_file(path, snapshot_bytes([], 0, 0, 1, self.voters, 0))

    @property
    def now_ms(self) -> int:
        """What this machine takes for now: its clock began at another time and runs at another speed than others."""
        return START_MS + self.clock.skew_ms + self.clock.monotonic_ms()

    # Life

    def start(self) -> None:
        self.lives += 1
        self.wake_ms = NEVER_MS
        self.is_writing_snapshot = False
        self._syncing = False
        self._is_storing = False
        now_ms = self.now_ms
        self.log: MetadataLog = open_metadata_log(self.disk, self.broker_config, self.rng, now_ms)
        initial = self.voters if self.kraft_version == 0 else VoterSet([])
        local = self.key if self.kraft_version >= 1 else ReplicaKey(self.key.id, ZERO_UUID)
        raft = Raft(
            self.raft_config,
            local,
            self.log,
            VoterHistory(initial, 0),
            self.rng,
            () if self.is_broker else self.endpoints,
            self.bootstrap_servers,
        )
        self.high_watermark = self.applied = self.digest = 0
        self._load_snapshot()
        raft.start(self.read_quorum_state(), now_ms)
        self.raft = raft
        self.log.log.on_released = self._on_log_settled
        self.high_watermark = raft.high_watermark
        self.surroundings.model.on_started(self.key, raft.epoch)
        self.work()

    def stop(self) -> None:
        self.raft = None
        self.is_paused = False
        self.backlog.clear()

    def read_quorum_state(self) -> QuorumState | None:
        return self.log.read_quorum_state()

    def write_quorum_state(self, state: QuorumState, done: Done) -> None:
        assert self.raft is not None
        version = 1 if self.raft.voter_history.kraft_version() >= 1 else 0
        self.log.write_quorum_state(state, version, self.raft.voters.ids(), done)

    # Driving

    def poll(self) -> None:
        if self.raft is not None:
            self.raft.tick(self.now_ms)
            self.work()

    def _on_log_settled(self, settled: Log) -> None:
        if settled is self.log.log:
            self.poll()

    def work(self) -> None:
        """Nothing is taken while the quorum state is on its way to the disk, as the node does it."""
        raft = self.raft
        while raft is not None and self.raft is raft and not self._is_storing:
            ready = raft.take_ready()
            if ready.quorum_state is not None:
                self._store(raft, ready, ready.quorum_state)
            elif ready.is_empty():
                return
            else:
                self._work_off(raft, ready)

    def _store(self, raft: Raft, ready: Ready, state: QuorumState) -> None:
        life = self.lives
        self._is_storing = True

        def on_stored(error: OSError | None) -> None:
            if life == self.lives and self.raft is raft and error is None:
                self._is_storing = False
                self._work_off(raft, ready)
                self.work()

        self.write_quorum_state(state, on_stored)

    def _work_off(self, raft: Raft, ready: Ready) -> None:
        if ready.sync_to >= 0:
            self.sync()
        for outbound in ready.requests:
            self.surroundings.send(self, outbound)
        for token, reply in ready.replies:
            self.surroundings.send_reply(self, token, reply)
        for read in ready.snapshot_reads:
            self._read_snapshot_for(read)
        if ready.fetched_snapshot is not None:
            self._check_snapshot(raft, ready.fetched_snapshot)
        if ready.leader_changed:
            self._on_leader_changed(raft)
        if ready.loaded_snapshot is not None:
            self._load_snapshot()
        if ready.high_watermark >= 0:
            self._on_high_watermark(raft, ready.high_watermark)

    def sync(self) -> None:
        """One sync at a time, as the node does it."""
        raft = self.raft
        if raft is None or self._syncing or raft.synced_offset >= self.log.end_offset():
            return
        self._syncing = True
        end, generation, life = self.log.end_offset(), raft.sync_generation, self.lives

        def on_synced(error: OSError | None) -> None:
            if life == self.lives and self.raft is raft and error is None:
                self._syncing = False
                raft.on_synced(end, generation, self.now_ms)
                self.sync()
                self.work()

        self.log.sync_later(on_synced)

    def _read_snapshot_for(self, read: SnapshotRead) -> None:
        life = self.lives

        def on_read(data: bytes | OSError) -> None:
            if life == self.lives and self.raft is not None:
                if isinstance(data, bytes):
                    read.reply.data = data
                else:
                    read.reply.error = errors.SNAPSHOT_NOT_FOUND
                self.surroundings.send_reply(self, read.token, read.reply)

        self.log.read_snapshot_later(read.reply.snapshot, read.reply.position, read.max_bytes, on_read)

    def _check_snapshot(self, raft: Raft, snapshot: OffsetAndEpoch) -> None:
        life = self.lives

        def on_checked(error: OSError | ValueError | None) -> None:
            if life == self.lives and self.raft is raft:
                assert not isinstance(error, OSError)
                raft.on_snapshot_checked(snapshot, error, self.now_ms)
                self.work()

        self.log.check_fetched_snapshot(snapshot, on_checked)

    # What is checked

    def _on_leader_changed(self, raft: Raft) -> None:
        self.world.note(f"{self.key.id} is {raft.role.name} of epoch {raft.epoch}, leader {raft.leader_id}")
        if raft.is_leader:
            self.surroundings.model.on_leader(self.key, raft.epoch)
            self.surroundings.model.check_has_committed(self.key, self.log.start_offset(), self.batches())

    def _on_high_watermark(self, raft: Raft, high_watermark: int) -> None:
        if high_watermark < self.high_watermark:
            raise Violation(
                f"the high watermark of {self.key} went back from {self.high_watermark} to {high_watermark}"
            )
        self.high_watermark = high_watermark
        for base, end, data in self._read(self.applied, high_watermark):
            header = split_batches(data, 0, len(data))[0]
            self.surroundings.model.on_committed(self.key, header, data)
            self.digest = digest_after(self.digest, base, data)
            self.applied = end
        self.surroundings.model.check_state(self.key, self.applied, self.digest)

    def _read(self, start: int, end: int) -> list[tuple[int, int, bytes]]:
        """(base offset, next offset, bytes) of the batches from `start` on that end at or before `end`."""
        found: list[tuple[int, int, bytes]] = []
        while start < end:
            data = self.log.read(start, READ_BYTES)
            headers = [header for header in split_batches(data, 0, len(data)) if int(header.base_offset) >= start]
            if not headers or int(headers[0].next_offset) > end:
                return found
            for header in headers:
                if int(header.next_offset) > end:
                    return found
                batch = data[int(header.position) : int(header.end)]
                found.append((int(header.base_offset), int(header.next_offset), batch))
                start = int(header.next_offset)
        return found

    def batches(self) -> list[tuple[int, int, bytes]]:
        """(base offset, epoch, bytes) of the whole log."""
        start, end = self.log.start_offset(), self.log.end_offset()
        read = self._read(start, end)
        return [(base, int.from_bytes(data[12:16], "big"), data) for base, _, data in read]

    # Snapshots

    def _load_snapshot(self) -> None:
        latest = self.log.latest_snapshot()
        if latest is None or latest.offset <= self.applied:
            return
        size = self.log.snapshot_size(latest)
        values = snapshot_values(self.log.read_snapshot(latest, 0, size), snapshot_name(latest))
        self.applied, self.digest = latest.offset, int(values[0])
        self.world.note(f"{self.key.id} loads snapshot {latest.offset}-{latest.epoch}")
        self.surroundings.model.check_state(self.key, self.applied, self.digest)

    def write_snapshot(self) -> None:
        """Of the state as it is, then old ones and the log before them are cleaned away."""
        raft, latest = self.raft, self.log.latest_snapshot()
        if raft is None or self.is_writing_snapshot or self.applied <= (latest.offset if latest is not None else 0):
            return
        epoch = self.surroundings.model.committed[self._last_base()][0]
        snapshot = OffsetAndEpoch(self.applied, epoch)
        version, voters = raft.voter_history.voters_before(self.applied)
        values = [str(self.digest).encode(), bytes(self.rng.randrange(600))]
        data = snapshot_bytes(values, epoch, self.now_ms, version, voters, self.now_ms)
        self.is_writing_snapshot = True
        life = self.lives

        def on_written(error: OSError | None) -> None:
            if life == self.lives and self.raft is not None:
                self.is_writing_snapshot = False
                self.log.clean(self.now_ms)

        self.world.note(f"{self.key.id} writes snapshot {snapshot.offset}-{snapshot.epoch}")
        self.log.write_snapshot(snapshot, data, on_written)

    def _last_base(self) -> int:
        return max(base for base in self.surroundings.model.committed if base < self.applied)
