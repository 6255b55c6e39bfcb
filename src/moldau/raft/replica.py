"""The quorum as one replica sees it: messages, ticks and sync reports go in, a `Ready` comes out.

KRaft (KIP-595, 630, 853, 996): elections with pre-vote, replication by fetch with truncation where logs diverge, the
 high watermark by majority, check quorum, snapshots. No I/O, no clock: every input carries `now_ms`.
The parts: `core` (state, roles), `elections`, `leading`, `following`; this module is the door.
"""

from __future__ import annotations

from moldau.raft.following import Following
from moldau.raft.messages import (
    CLOSED,
    REFUSED,
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
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from moldau.raft.state import NO_NODE, QuorumState
from moldau.records.clocks import NEVER_MS


class Raft(Following):
    def start(self, stored: QuorumState | None, now_ms: int) -> None:
        """Takes up the role that the stored state allows; the only voter leads when this returns."""
        self._load_voters()
        snapshot = self.log.latest_snapshot()
        self.high_watermark = snapshot.offset if snapshot is not None else 0
        # What is in the log may be in the page cache only, from a process that died: it counts after a sync.
        self.synced_offset = self.log.start_offset()
        if self.log.end_offset() > self.synced_offset:
            self._note_appended()
        state = stored if stored is not None else QuorumState(0)
        self._persisted = stored
        if state.epoch < self.log.last_epoch():
            state = QuorumState(self.log.last_epoch())
        self.role = Unattached(state.epoch, NO_NODE, state.voted, self._random_election_deadline(now_ms))
        if self.voters.is_only_voter(self.local):
            self._become_prospective(now_ms)
            self._count_votes(now_ms)
        elif state.leader_id == self.local.id:
            # It may have promised things as a leader: it will not lead that epoch again, nor vote in it.
            self._become_resigned(now_ms)
        elif state.leader_id != NO_NODE:
            self._become_follower(state.epoch, state.leader_id, now_ms)
        elif state.voted.is_same(self.local) and self.is_voter and self.log.last_epoch() < state.epoch:
            # With a record of that epoch in its log it has won already, and died before it could say so: it does not
            # stand for the same epoch again.
            deadline = self._random_election_deadline(now_ms)
            self._set_role(Candidate(state.epoch, NO_NODE, self.local, {self.local.id}, set(), deadline))
        self._drive(now_ms)

    def tick(self, now_ms: int) -> None:
        """Lets time pass: timeouts, retries, parked fetches."""
        for destination, (request, deadline_ms) in list(self._in_flight.items()):
            if now_ms >= deadline_ms:
                self._forget(destination, request, now_ms, TIMED_OUT)
        self._tick_parked(now_ms)
        self._tick_change(now_ms)
        self._tick_leader(now_ms)
        self._tick_election(now_ms)
        self._drive(now_ms)

    def extend_deadlines(self, late_ms: int, now_ms: int) -> None:
        """`tick` comes late: this node was busy or stopped, and what the others said meanwhile is not read yet. They
        get a moment before their silence counts."""
        role = self.role
        until_ms = now_ms + min(late_ms, self.config.fetch_timeout_ms // 2)
        if isinstance(role, Follower):
            role.fetch_deadline_ms = max(role.fetch_deadline_ms, until_ms)
        elif isinstance(role, Leader):
            role.check_quorum_deadline_ms = max(role.check_quorum_deadline_ms, until_ms)

    def next_deadline_ms(self, now_ms: int) -> int:
        """When `tick` has something to do at the latest."""
        deadlines = [deadline_ms for _, deadline_ms in self._in_flight.values()]
        deadlines += [fetch.deadline_ms for fetch in self._parked]
        deadlines += [retry_ms for retry_ms in self._retry_at_ms.values() if retry_ms > now_ms]
        if self._ask_again_ms > now_ms:
            deadlines.append(self._ask_again_ms)
        role = self.role
        if isinstance(role, Leader):
            deadlines.append(role.check_quorum_deadline_ms)
            if role.change is not None:
                deadlines.append(role.change.deadline_ms)
            for voter_id, progress in role.voters.items():
                if voter_id != self.local.id and voter_id not in self._in_flight:
                    deadlines.append(max(progress.begin_epoch_at_ms, self._retry_at_ms.get(voter_id, 0)))
        elif isinstance(role, Follower):
            if self.is_voter:
                deadlines.append(role.fetch_deadline_ms)
        elif isinstance(role, Unattached):
            if self.is_voter:
                deadlines.append(role.election_deadline_ms)
        elif isinstance(role, Prospective | Candidate | Resigned):
            deadlines.append(role.election_deadline_ms)
        return min(deadlines, default=NEVER_MS)

    def on_request(self, request: Request, token: object, now_ms: int) -> None:
        """A request from another replica; its answer appears in `Ready.replies` with the same token, maybe later."""
        if isinstance(request, VoteRequest):
            self._on_vote_request(request, token, now_ms)
        elif isinstance(request, BeginEpochRequest):
            self._on_begin_epoch_request(request, token, now_ms)
        elif isinstance(request, EndEpochRequest):
            self._on_end_epoch_request(request, token, now_ms)
        elif isinstance(request, FetchRequest):
            self._on_fetch_request(request, token, now_ms)
        elif isinstance(request, FetchSnapshotRequest):
            self._on_fetch_snapshot_request(request, token, now_ms)
        elif isinstance(request, AddVoterRequest):
            self._on_add_voter_request(request, token, now_ms)
        elif isinstance(request, RemoveVoterRequest):
            self._on_remove_voter_request(request, token, now_ms)
        elif isinstance(request, UpdateVoterRequest):
            self._on_update_voter_request(request, token, now_ms)
        else:
            raise AssertionError(f"unknown request {request!r}")
        self._drive(now_ms)

    def on_reply(self, source: int, request: Request, reply: Reply, now_ms: int) -> None:
        """The answer to a request of `Ready.requests`."""
        is_awaited = self._in_flight.get(source, (None, 0))[0] is request
        if is_awaited:
            del self._in_flight[source]
            if isinstance(reply, ProbeReply):
                self._on_probe_reply(reply, now_ms)
            elif isinstance(reply, ChangeReply):
                self._on_change_reply(source, reply)
            elif reply.epoch < self.epoch:
                # It will learn the epoch from somebody; to ask it again and again does not help.
                self._wait_before_retry(source, now_ms, self.config.election_timeout_ms // 10)
                self._ask_again_ms = 0
            elif reply.error:
                self._wait_before_retry(source, now_ms, self.config.retry_backoff_ms)
        if reply.epoch >= self.epoch:
            role = self.role
            self._note_epoch(reply.leader_id, reply.epoch, now_ms)
            self._note_leader_address(reply.leader_id, reply.epoch, reply.leader_address)
            # An answer to what another role asked, or that comes too late, tells about the epoch and nothing else.
            if is_awaited and self.role is role:
                self._take_reply(source, request, reply, now_ms)
        self._drive(now_ms)

    def _take_reply(self, source: int, request: Request, reply: Reply, now_ms: int) -> None:
        if isinstance(request, VoteRequest) and isinstance(reply, VoteReply):
            self._on_vote_reply(source, request, reply, now_ms)
        elif isinstance(request, BeginEpochRequest) and isinstance(reply, BeginEpochReply):
            self._on_begin_epoch_reply(source, reply, now_ms)
        elif isinstance(request, EndEpochRequest) and isinstance(reply, EndEpochReply):
            self._on_end_epoch_reply(source, reply)
        elif isinstance(request, FetchRequest) and isinstance(reply, FetchReply):
            self._on_fetch_reply(source, request, reply, now_ms)
        elif isinstance(request, FetchSnapshotRequest) and isinstance(reply, FetchSnapshotReply):
            self._on_fetch_snapshot_reply(source, request, reply, now_ms)

    def on_failure(self, destination: int, request: Request, now_ms: int, reason: int = TIMED_OUT) -> None:
        """A request of `Ready.requests` got no answer: connection refused, closed, or timed out."""
        self._forget(destination, request, now_ms, reason)
        self._drive(now_ms)

    def _forget(self, destination: int, request: Request, now_ms: int, reason: int) -> None:
        if self._in_flight.get(destination, (None, 0))[0] is not request:
            return
        del self._in_flight[destination]
        self._wait_before_retry(destination, now_ms, self.config.retry_backoff_ms)
        role = self.role
        if isinstance(request, ProbeRequest):
            self._on_probe_failure()
        elif isinstance(role, Prospective | Candidate):
            self._on_voter_silent(role, destination, reason, now_ms)
        elif isinstance(role, Follower) and destination == role.leader_id:
            self._on_leader_silent(role, reason, now_ms)
        else:
            self._ask_again_ms = 0

    def _on_leader_silent(self, role: Follower, reason: int, now_ms: int) -> None:
        """The leader did not answer a fetch. A broken connection is tried once more at once: if its process ended, the
        next attempt is refused, and then nobody needs to wait for a timeout."""
        if reason == CLOSED and not role.connection_broke:
            role.connection_broke = True
            del self._retry_at_ms[role.leader_id]
        elif not self.is_voter:
            role.leader_lost = True
        elif reason == REFUSED:
            self._elect_early(role, now_ms)

    def on_synced(self, end_offset: int, generation: int, now_ms: int) -> None:
        """The log is on disk up to `end_offset`; `generation` is what `sync_generation` was when the sync began."""
        if generation != self.sync_generation or end_offset <= self.synced_offset:
            return
        self.synced_offset = end_offset
        self._update_commit(now_ms)
        self._follow_high_watermark()
        self._drive(now_ms)

    def _drive(self, now_ms: int) -> None:
        """Sends what the role wants to send now; one request per destination at a time."""
        role = self.role
        if isinstance(role, Prospective | Candidate):
            self._drive_election(role, now_ms)
        elif isinstance(role, Leader):
            self._drive_leader(role, now_ms)
        elif isinstance(role, Follower):
            self._drive_follower(role, now_ms)
        elif isinstance(role, Resigned):
            self._drive_resignation(role, now_ms)
        elif isinstance(role, Unattached):
            self._drive_unattached(now_ms)
