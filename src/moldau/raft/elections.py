"""Elections: granting votes, asking for them (pre-vote first, KIP-996), winning and losing."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft import leading, transitions
from moldau.raft.core import RaftCore
from moldau.raft.messages import REFUSED, EndEpochReply, EndEpochRequest, VoteReply, VoteRequest
from moldau.raft.roles import Candidate, Follower, Prospective, Resigned, Unattached
from moldau.raft.state import NO_NODE

BACKOFF_BASE_MS = 50
EARLY_ELECTION_STEP_MS = 20
EARLY_ELECTION_SPREAD_MS = 11
EARLY_ELECTION_PAUSE_MS = 100


# Granting


def on_vote_request(core: RaftCore, request: VoteRequest, token: object, now_ms: int) -> None:
    if not core.is_meant(request.voter):
        core.reply(token, VoteReply(errors.INVALID_VOTER_KEY, core.leader_id, core.epoch, False))
        return
    if request.epoch < core.epoch:
        core.reply(token, VoteReply(errors.FENCED_LEADER_EPOCH, core.leader_id, core.epoch, False))
        return
    if request.epoch > core.epoch:
        transitions.become_unattached(core, request.epoch, now_ms)
    mine, theirs = core.log_end(), request.last
    up_to_date = (theirs.epoch, theirs.offset) >= (mine.epoch, mine.offset)
    granted = core.role.can_grant_vote(request.candidate, up_to_date, request.pre_vote)
    if granted and not request.pre_vote:
        # The timer starts anew: whoever got the vote has an election timeout to win.
        transitions.become_unattached(core, core.epoch, now_ms, request.candidate)
    core.reply(token, VoteReply(errors.NONE, core.leader_id, core.epoch, granted))


# Asking


def drive_election(core: RaftCore, role: Prospective | Candidate, now_ms: int) -> None:
    pre_vote = isinstance(role, Prospective)
    if isinstance(role, Candidate) and role.backing_off:
        return
    for voter_id in core.voters.ids():
        if voter_id in role.granted or voter_id in role.rejected or not core.can_send(voter_id, now_ms):
            continue
        key = core.voters.key(voter_id)
        core.send(voter_id, VoteRequest(core.epoch, core.local, key, core.log_end(), pre_vote), now_ms)


def on_vote_reply(core: RaftCore, source: int, request: VoteRequest, reply: VoteReply, now_ms: int) -> None:
    role = core.role
    if reply.error or not isinstance(role, Prospective | Candidate) or request.epoch != role.epoch:
        return
    if request.pre_vote != isinstance(role, Prospective):
        return
    role.absent.discard(source)
    (role.granted if reply.granted else role.rejected).add(source)
    count_votes(core, now_ms)


def on_voter_silent(core: RaftCore, role: Prospective | Candidate, voter_id: int, reason: int, now_ms: int) -> None:
    if reason == REFUSED:
        role.absent.add(voter_id)
        count_votes(core, now_ms)


def count_votes(core: RaftCore, now_ms: int) -> None:
    role = core.role
    if not isinstance(role, Prospective | Candidate):
        return
    if len(role.granted) >= core.voters.majority():
        if isinstance(role, Prospective):
            transitions.become_candidate(core, now_ms)
            count_votes(core, now_ms)
        else:
            leading.become_leader(core, role, now_ms)
    elif _cannot_win(core, role):
        _on_election_lost(core, now_ms)


def _cannot_win(core: RaftCore, role: Prospective | Candidate) -> bool:
    """Too many said no. Those whose process is gone count as well once somebody has: who said no because it had not
    noticed yet that the leader died, or because it asks for itself, will say something else soon. While nobody has
    said anything they may be about to start."""
    spare = len(core.voters) - core.voters.majority()
    against = role.rejected
    if against and (isinstance(role, Candidate) or role.leader_id != NO_NODE):
        against = against | role.absent
    return len(against) > spare


def _on_election_lost(core: RaftCore, now_ms: int) -> None:
    role = core.role
    if isinstance(role, Candidate):
        # A random pause keeps two candidates from splitting the votes again and again.
        if not role.backing_off:
            role.backing_off = True
            core.lost_elections += 1
            most_ms = BACKOFF_BASE_MS << min(core.lost_elections, 10)
            most_ms = max(1, min(most_ms, core.config.election_backoff_max_ms))
            role.election_deadline_ms = now_ms + 1 + core.rng.randrange(most_ms)
    elif role.leader_id not in (NO_NODE, core.local.id):
        transitions.become_follower(core, role.epoch, role.leader_id, now_ms)
    else:
        transitions.become_unattached(core, role.epoch, now_ms)


# Timeouts


def tick_election(core: RaftCore, now_ms: int) -> None:
    role = core.role
    if isinstance(role, Unattached) and core.is_voter and now_ms >= role.election_deadline_ms:
        transitions.become_prospective(core, now_ms)
        count_votes(core, now_ms)
    elif isinstance(role, Prospective) and now_ms >= role.election_deadline_ms:
        _on_election_lost(core, now_ms)
    elif _is_to_try_again(core, now_ms):
        transitions.become_prospective(core, now_ms)
        count_votes(core, now_ms)
    elif isinstance(role, Resigned) and now_ms >= role.election_deadline_ms:
        transitions.become_unattached(core, role.epoch + 1, now_ms)


def elect_early(core: RaftCore, role: Follower, now_ms: int) -> None:
    """The leader's port is closed: nobody will respond there. Asks the others soon, one after the other so that
    they do not split the votes; those that still hear the leader refuse their pre-vote."""
    role.has_fetched = False
    place = sum(voter_id < core.local.id for voter_id in core.voters.ids() if voter_id != role.leader_id)
    delay_ms = place * EARLY_ELECTION_STEP_MS + core.rng.randrange(EARLY_ELECTION_SPREAD_MS)
    at_ms = max(now_ms + delay_ms, core.next_early_election_ms)
    if at_ms < role.fetch_deadline_ms:
        role.fetch_deadline_ms = at_ms
        pause_ms = EARLY_ELECTION_PAUSE_MS + core.rng.randrange(EARLY_ELECTION_PAUSE_MS)
        core.next_early_election_ms = at_ms + pause_ms


def _is_to_try_again(core: RaftCore, now_ms: int) -> bool:
    role = core.role
    if isinstance(role, Candidate):
        return now_ms >= role.election_deadline_ms
    return isinstance(role, Follower) and core.is_voter and now_ms >= role.fetch_deadline_ms


# Resignation of the leader


def on_end_epoch_request(core: RaftCore, request: EndEpochRequest, token: object, now_ms: int) -> None:
    if request.epoch < core.epoch:
        core.reply(token, EndEpochReply(errors.FENCED_LEADER_EPOCH, core.leader_id, core.epoch))
        return
    transitions.note_epoch(core, request.leader_id, request.epoch, now_ms)
    role = core.role
    if isinstance(role, Follower) and role.leader_id == request.leader_id:
        role.has_fetched = False
        position = [key.id for key in request.successors].index(core.local.id) if _is_in(core, request) else -1
        if position == 0:
            transitions.become_prospective(core, now_ms)
            count_votes(core, now_ms)
        elif position > 0:
            role.fetch_deadline_ms = now_ms + min(core.config.election_backoff_max_ms, 50 << position)
    core.reply(token, EndEpochReply(errors.NONE, core.leader_id, core.epoch))


def _is_in(core: RaftCore, request: EndEpochRequest) -> bool:
    return any(key.id == core.local.id for key in request.successors)


def drive_resignation(core: RaftCore, role: Resigned, now_ms: int) -> None:
    for voter_id in sorted(role.unacknowledged):
        if core.can_send(voter_id, now_ms):
            core.send(voter_id, EndEpochRequest(role.epoch, core.local.id, role.successors), now_ms)


def on_end_epoch_reply(core: RaftCore, source: int, reply: EndEpochReply) -> None:
    if isinstance(core.role, Resigned) and not reply.error:
        core.role.unacknowledged.discard(source)
