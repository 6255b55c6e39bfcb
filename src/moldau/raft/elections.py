"""Elections: granting votes, asking for them (pre-vote first, KIP-996), winning and losing."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft.core import RaftCore
from moldau.raft.messages import REFUSED, EndEpochReply, EndEpochRequest, VoteReply, VoteRequest
from moldau.raft.roles import Candidate, Follower, Prospective, Resigned, Unattached
from moldau.raft.state import NO_NODE, ReplicaKey

BACKOFF_BASE_MS = 50
EARLY_ELECTION_STEP_MS = 20
EARLY_ELECTION_SPREAD_MS = 11
EARLY_ELECTION_PAUSE_MS = 100


class Elections(RaftCore):
    # Granting

    def _on_vote_request(self, request: VoteRequest, token: object, now_ms: int) -> None:
        if not self._is_meant(request.voter):
            self._reply(token, VoteReply(errors.INVALID_VOTER_KEY, self.leader_id, self.epoch, False))
            return
        if request.epoch < self.epoch:
            self._reply(token, VoteReply(errors.FENCED_LEADER_EPOCH, self.leader_id, self.epoch, False))
            return
        if request.epoch > self.epoch:
            self._become_unattached(request.epoch, now_ms)
        mine, theirs = self._log_end(), request.last
        up_to_date = (theirs.epoch, theirs.offset) >= (mine.epoch, mine.offset)
        granted = self.role.can_grant_vote(request.candidate, up_to_date, request.pre_vote)
        if granted and not request.pre_vote:
            # The timer starts anew: whoever got the vote has an election timeout to win.
            self._become_unattached(self.epoch, now_ms, request.candidate)
        self._reply(token, VoteReply(errors.NONE, self.leader_id, self.epoch, granted))

    def _is_meant(self, voter: ReplicaKey) -> bool:
        """A request names the voter it is for, with the directory: a replaced disk must not speak for the lost one."""
        return voter.id == NO_NODE or voter.is_same(self.local)

    # Asking

    def _drive_election(self, role: Prospective | Candidate, now_ms: int) -> None:
        pre_vote = isinstance(role, Prospective)
        if isinstance(role, Candidate) and role.backing_off:
            return
        for voter_id in self.voters.ids():
            if voter_id in role.granted or voter_id in role.rejected or not self._can_send(voter_id, now_ms):
                continue
            key = self.voters.key(voter_id)
            self._send(voter_id, VoteRequest(self.epoch, self.local, key, self._log_end(), pre_vote), now_ms)

    def _on_vote_reply(self, source: int, request: VoteRequest, reply: VoteReply, now_ms: int) -> None:
        role = self.role
        if reply.error or not isinstance(role, Prospective | Candidate) or request.epoch != role.epoch:
            return
        if request.pre_vote != isinstance(role, Prospective):
            return
        role.absent.discard(source)
        (role.granted if reply.granted else role.rejected).add(source)
        self._count_votes(now_ms)

    def _on_voter_silent(self, role: Prospective | Candidate, voter_id: int, reason: int, now_ms: int) -> None:
        if reason == REFUSED:
            role.absent.add(voter_id)
            self._count_votes(now_ms)

    def _count_votes(self, now_ms: int) -> None:
        role = self.role
        if not isinstance(role, Prospective | Candidate):
            return
        if len(role.granted) >= self.voters.majority():
            if isinstance(role, Prospective):
                self._become_candidate(now_ms)
                self._count_votes(now_ms)
            else:
                self._become_leader(role, now_ms)
        elif self._cannot_win(role):
            self._on_election_lost(now_ms)

    def _cannot_win(self, role: Prospective | Candidate) -> bool:
        """Too many said no. Those whose process is gone count as well once somebody has: who said no because it had not
        noticed yet that the leader died, or because it asks for itself, will say something else soon. While nobody has
        said anything they may be about to start."""
        spare = len(self.voters) - self.voters.majority()
        against = role.rejected
        if against and (isinstance(role, Candidate) or role.leader_id != NO_NODE):
            against = against | role.absent
        return len(against) > spare

    def _on_election_lost(self, now_ms: int) -> None:
        role = self.role
        if isinstance(role, Candidate):
            # A random pause keeps two candidates from splitting the votes again and again.
            if not role.backing_off:
                role.backing_off = True
                self._lost_elections += 1
                most_ms = BACKOFF_BASE_MS << min(self._lost_elections, 10)
                most_ms = max(1, min(most_ms, self.config.election_backoff_max_ms))
                role.election_deadline_ms = now_ms + 1 + self.rng.randrange(most_ms)
        elif role.leader_id not in (NO_NODE, self.local.id):
            self._become_follower(role.epoch, role.leader_id, now_ms)
        else:
            self._become_unattached(role.epoch, now_ms)

    def _become_leader(self, role: Candidate, now_ms: int) -> None:
        raise NotImplementedError

    # Timeouts

    def _tick_election(self, now_ms: int) -> None:
        role = self.role
        if isinstance(role, Unattached) and self.is_voter and now_ms >= role.election_deadline_ms:
            self._become_prospective(now_ms)
            self._count_votes(now_ms)
        elif isinstance(role, Prospective) and now_ms >= role.election_deadline_ms:
            self._on_election_lost(now_ms)
        elif self._is_to_try_again(now_ms):
            self._become_prospective(now_ms)
            self._count_votes(now_ms)
        elif isinstance(role, Resigned) and now_ms >= role.election_deadline_ms:
            self._become_unattached(role.epoch + 1, now_ms)

    def _elect_early(self, role: Follower, now_ms: int) -> None:
        """The leader's port is closed: nobody will answer there. Asks the others soon, one after the other so that
        they do not split the votes; those that still hear the leader refuse their pre-vote."""
        role.has_fetched = False
        place = sum(voter_id < self.local.id for voter_id in self.voters.ids() if voter_id != role.leader_id)
        delay_ms = place * EARLY_ELECTION_STEP_MS + self.rng.randrange(EARLY_ELECTION_SPREAD_MS)
        at_ms = max(now_ms + delay_ms, self._next_early_election_ms)
        if at_ms < role.fetch_deadline_ms:
            role.fetch_deadline_ms = at_ms
            pause_ms = EARLY_ELECTION_PAUSE_MS + self.rng.randrange(EARLY_ELECTION_PAUSE_MS)
            self._next_early_election_ms = at_ms + pause_ms

    def _is_to_try_again(self, now_ms: int) -> bool:
        role = self.role
        if isinstance(role, Candidate):
            return now_ms >= role.election_deadline_ms
        return isinstance(role, Follower) and self.is_voter and now_ms >= role.fetch_deadline_ms

    # Resignation of the leader

    def _on_end_epoch_request(self, request: EndEpochRequest, token: object, now_ms: int) -> None:
        if request.epoch < self.epoch:
            self._reply(token, EndEpochReply(errors.FENCED_LEADER_EPOCH, self.leader_id, self.epoch))
            return
        self._note_epoch(request.leader_id, request.epoch, now_ms)
        role = self.role
        if isinstance(role, Follower) and role.leader_id == request.leader_id:
            role.has_fetched = False
            position = [key.id for key in request.successors].index(self.local.id) if self._is_in(request) else -1
            if position == 0:
                self._become_prospective(now_ms)
                self._count_votes(now_ms)
            elif position > 0:
                role.fetch_deadline_ms = now_ms + min(self.config.election_backoff_max_ms, 50 << position)
        self._reply(token, EndEpochReply(errors.NONE, self.leader_id, self.epoch))

    def _is_in(self, request: EndEpochRequest) -> bool:
        return any(key.id == self.local.id for key in request.successors)

    def _drive_resignation(self, role: Resigned, now_ms: int) -> None:
        for voter_id in sorted(role.unacknowledged):
            if self._can_send(voter_id, now_ms):
                self._send(voter_id, EndEpochRequest(role.epoch, self.local.id, role.successors), now_ms)

    def _on_end_epoch_reply(self, source: int, reply: EndEpochReply) -> None:
        if isinstance(self.role, Resigned) and not reply.error:
            self.role.unacknowledged.discard(source)
