"""The quorum as one replica sees it: messages, ticks and sync reports go in, a `Ready` comes out.

KRaft (KIP-595, 630, 853, 996): elections with pre-vote, replication by fetch with truncation where logs diverge, the
high watermark by majority, check quorum, snapshots. No I/O, no clock: every input carries `now_ms`.
This module is the door: it hands each input to the module it belongs to. All state is in one `core`; each module
imports only modules that come before it here: `core`, `fetches`, `voter_changes`, `transitions`, `commit`, `leading`,
`elections`, `membership`, `following`.
"""

from __future__ import annotations

from moldau.raft import commit, deadlines, elections, fetches, following, leading, membership, transitions
from moldau.raft.core import Address, RaftConfig, RaftCore
from moldau.raft.log import OffsetAndEpoch, RaftLog
from moldau.raft.messages import (
    TIMED_OUT,
    AddVoterRequest,
    BeginEpochReply,
    BeginEpochRequest,
    ChangeReply,
    EndEpochReply,
    EndEpochRequest,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    ProbeReply,
    ProbeRequest,
    RemoveVoterRequest,
    Reply,
    Request,
    UpdateVoterRequest,
    VoteReply,
    VoteRequest,
)
from moldau.raft.ready import Ready
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from moldau.raft.state import NO_NODE, QuorumState, ReplicaKey
from moldau.raft.voters import Endpoint, VoterHistory, VoterSet
from moldau.records.clocks import WallClock
from moldau.records.random_source import RandomSource


class Raft:
    def __init__(
        self,
        config: RaftConfig,
        local: ReplicaKey,
        log: RaftLog,
        voters: VoterHistory,
        rng: RandomSource,
        endpoints: tuple[Endpoint, ...] = (),
        bootstrap_servers: list[Address] | None = None,
        *,
        wall: WallClock | None = None,
        listener_name: str = "",
    ) -> None:
        """As of `RaftCore`."""
        core = RaftCore(
            config, local, log, voters, rng, endpoints, bootstrap_servers, wall=wall, listener_name=listener_name
        )
        self._core = core
        self.local = local
        self.log = log
        self.voter_history = voters
        self.wall = core.wall

    # What others see of it

    @property
    def role(self) -> Role:
        return self._core.role

    @property
    def epoch(self) -> int:
        return self._core.role.epoch

    @property
    def leader_id(self) -> int:
        return self._core.role.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self._core.role, Leader)

    @property
    def voters(self) -> VoterSet:
        return self.voter_history.latest()

    @property
    def high_watermark(self) -> int:
        return self._core.high_watermark

    @property
    def fetched_records(self) -> int:
        return self._core.fetched_records

    @property
    def appended_records(self) -> int:
        return self._core.appended_records

    @property
    def synced_offset(self) -> int:
        return self._core.synced_offset

    @property
    def sync_generation(self) -> int:
        return self._core.sync_generation

    def address_of(self, node_id: int) -> Address | None:
        """Where to send a request: what was told of the leader, the voters' endpoints, bootstrap servers."""
        return self._core.address_of(node_id)

    def address_for(self, node_id: int, listener_name: str) -> Address | None:
        """Where somebody who came by that listener reaches a node; None when it has no listener of that name."""
        return self._core.address_for(node_id, listener_name)

    def take_ready(self) -> Ready:
        """What is to be done now; see `Ready` for the order."""
        core = self._core
        ready, core.ready = core.ready, Ready()
        return ready

    # What happens to it

    def start(self, stored: QuorumState | None, now_ms: int) -> None:
        """Takes up the role that the stored state allows; the only voter leads when this returns."""
        core = self._core
        following.load_voters(core)
        snapshot = core.log.latest_snapshot()
        core.high_watermark = snapshot.offset if snapshot is not None else 0
        # What is in the log may be in the page cache only, from a process that died: it counts after a sync.
        core.synced_offset = core.log.start_offset()
        if core.log.end_offset() > core.synced_offset:
            core.note_appended()
        state = stored if stored is not None else QuorumState(0)
        core.persisted = stored
        if state.epoch < core.log.last_epoch():
            state = QuorumState(core.log.last_epoch())
        core.role = Unattached(state.epoch, NO_NODE, state.voted, core.random_election_deadline(now_ms))
        if core.voters.is_only_voter(core.local):
            transitions.become_prospective(core, now_ms)
            elections.count_votes(core, now_ms)
        elif state.leader_id == core.local.id:
            # It may have promised things as a leader: it will not lead that epoch again, nor vote in it.
            transitions.become_resigned(core, now_ms)
        elif state.leader_id != NO_NODE:
            transitions.become_follower(core, state.epoch, state.leader_id, now_ms)
        elif state.voted.is_same(core.local) and core.is_voter and core.log.last_epoch() < state.epoch:
            # With a record of that epoch in its log it has won already, and died before it could say so: it does not
            # stand for the same epoch again.
            deadline = core.random_election_deadline(now_ms)
            transitions.set_role(core, Candidate(state.epoch, NO_NODE, core.local, {core.local.id}, set(), deadline))
        self._drive(now_ms)

    def tick(self, now_ms: int) -> None:
        """Lets time pass: timeouts, retries, parked fetches."""
        core = self._core
        for destination, (request, deadline_ms) in list(core.in_flight.items()):
            if now_ms >= deadline_ms:
                self._forget(destination, request, now_ms, TIMED_OUT)
        fetches.tick_parked(core, now_ms)
        membership.tick_change(core, now_ms)
        leading.tick_leader(core, now_ms)
        elections.tick_election(core, now_ms)
        self._drive(now_ms)

    def extend_deadlines(self, late_ms: int, now_ms: int) -> None:
        """`tick` comes that late; see `deadlines`."""
        deadlines.extend_deadlines(self._core, late_ms, now_ms)

    def next_deadline_ms(self, now_ms: int) -> int:
        """When `tick` has something to do at the latest."""
        return deadlines.next_deadline_ms(self._core, now_ms)

    def on_request(self, request: Request, token: object, now_ms: int) -> None:
        """A request from another replica; its response appears in `Ready.replies` with the same token, maybe later."""
        core = self._core
        if isinstance(request, FetchRequest):
            leading.on_fetch_request(core, request, token, now_ms)
        elif isinstance(request, VoteRequest):
            elections.on_vote_request(core, request, token, now_ms)
        elif isinstance(request, BeginEpochRequest):
            leading.on_begin_epoch_request(core, request, token, now_ms)
        elif isinstance(request, EndEpochRequest):
            elections.on_end_epoch_request(core, request, token, now_ms)
        elif isinstance(request, FetchSnapshotRequest):
            leading.on_fetch_snapshot_request(core, request, token, now_ms)
        elif isinstance(request, AddVoterRequest):
            membership.on_add_voter_request(core, request, token, now_ms)
        elif isinstance(request, RemoveVoterRequest):
            membership.on_remove_voter_request(core, request, token, now_ms)
        elif isinstance(request, UpdateVoterRequest):
            membership.on_update_voter_request(core, request, token, now_ms)
        else:
            raise AssertionError(f"unknown request {request!r}")
        self._drive(now_ms)

    def on_reply(self, source: int, request: Request, reply: Reply, now_ms: int) -> None:
        """The response to a request of `Ready.requests`."""
        core = self._core
        is_awaited = core.in_flight.get(source, (None, 0))[0] is request
        if is_awaited:
            del core.in_flight[source]
            if isinstance(reply, ProbeReply):
                membership.on_probe_reply(core, reply, now_ms)
            elif isinstance(reply, ChangeReply):
                membership.on_change_reply(core, source, reply)
            elif reply.epoch < core.epoch:
                # It will learn the epoch from somebody; to ask it again and again does not help.
                core.wait_before_retry(source, now_ms, core.config.election_timeout_ms // 10)
                core.ask_again_ms = 0
            elif reply.error:
                core.wait_before_retry(source, now_ms, core.config.retry_backoff_ms)
        if reply.epoch >= core.epoch:
            role = core.role
            transitions.note_epoch(core, reply.leader_id, reply.epoch, now_ms)
            core.note_leader_address(reply.leader_id, reply.epoch, reply.leader_address)
            # A response to what another role asked, or that comes too late, tells about the epoch and nothing else.
            if is_awaited and core.role is role:
                self._take_reply(source, request, reply, now_ms)
        self._drive(now_ms)

    def _take_reply(self, source: int, request: Request, reply: Reply, now_ms: int) -> None:
        core = self._core
        if isinstance(request, VoteRequest) and isinstance(reply, VoteReply):
            elections.on_vote_reply(core, source, request, reply, now_ms)
        elif isinstance(request, BeginEpochRequest) and isinstance(reply, BeginEpochReply):
            leading.on_begin_epoch_reply(core, source, reply, now_ms)
        elif isinstance(request, EndEpochRequest) and isinstance(reply, EndEpochReply):
            elections.on_end_epoch_reply(core, source, reply)
        elif isinstance(request, FetchRequest) and isinstance(reply, FetchReply):
            following.on_fetch_reply(core, source, request, reply, now_ms)
        elif isinstance(request, FetchSnapshotRequest) and isinstance(reply, FetchSnapshotReply):
            following.on_fetch_snapshot_reply(core, source, request, reply, now_ms)

    def on_failure(self, destination: int, request: Request, now_ms: int, reason: int = TIMED_OUT) -> None:
        """A request of `Ready.requests` got no response: connection refused, closed, or timed out."""
        self._forget(destination, request, now_ms, reason)
        self._drive(now_ms)

    def _forget(self, destination: int, request: Request, now_ms: int, reason: int) -> None:
        core = self._core
        if core.in_flight.get(destination, (None, 0))[0] is not request:
            return
        del core.in_flight[destination]
        core.wait_before_retry(destination, now_ms, core.config.retry_backoff_ms)
        role = core.role
        if isinstance(request, ProbeRequest):
            membership.on_probe_failure(core)
        elif isinstance(role, Prospective | Candidate):
            elections.on_voter_silent(core, role, destination, reason, now_ms)
        elif isinstance(role, Follower) and destination == role.leader_id:
            following.on_leader_silent(core, role, reason, now_ms)
        else:
            core.ask_again_ms = 0

    def on_synced(self, end_offset: int, generation: int, now_ms: int) -> None:
        """The log is on disk up to `end_offset`; `generation` is what `sync_generation` was when the sync began."""
        core = self._core
        if generation != core.sync_generation or end_offset <= core.synced_offset:
            return
        core.synced_offset = end_offset
        commit.update_commit(core, now_ms)
        following.follow_high_watermark(core)
        self._drive(now_ms)

    def on_snapshot_checked(self, snapshot: OffsetAndEpoch, problem: ValueError | None, now_ms: int) -> None:
        """What was fetched is whole and on the medium, or it is not what the leader has."""
        if following.on_snapshot_checked(self._core, snapshot, problem, now_ms):
            self._drive(now_ms)

    def propose(self, values: list[bytes], now_ms: int) -> int:
        """Appends one batch of metadata records as the leader; returns the offset of the last one."""
        return leading.propose(self._core, values, now_ms)

    def upgrade_kraft_version(self, level: int, validate_only: bool, now_ms: int) -> None:
        """Writes kraft.version and the voters to the log; raises KafkaError when not every voter is ready for it."""
        membership.upgrade_kraft_version(self._core, level, validate_only, now_ms)

    def resign(self, now_ms: int) -> None:
        """A clean stop: lets a successor begin at once. The only voter has none and stays as it is."""
        if leading.resign(self._core, now_ms):
            self._drive(now_ms)

    def _drive(self, now_ms: int) -> None:
        """Sends what the role wants to send now; one request per destination at a time."""
        core = self._core
        role = core.role
        if isinstance(role, Leader):
            leading.drive_leader(core, role, now_ms)
        elif isinstance(role, Follower):
            following.drive_follower(core, role, now_ms)
        elif isinstance(role, Prospective | Candidate):
            elections.drive_election(core, role, now_ms)
        elif isinstance(role, Resigned):
            elections.drive_resignation(core, role, now_ms)
        elif isinstance(role, Unattached):
            following.drive_unattached(core, now_ms)
