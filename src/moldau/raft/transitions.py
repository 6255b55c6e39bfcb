"""The roles a replica takes up: the only functions that set `RaftCore.role` once it has started.

Invariants: the epoch never goes back; one vote and one leader per epoch; a role whose stored part is new is handed to
the caller as `Ready.quorum_state` before anything is said. Becoming the leader is in `leading`, with what it appends.
"""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft import fetches, voter_changes
from moldau.raft.core import RaftCore, logger
from moldau.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    check_succession,
)
from moldau.raft.state import NO_NODE, NO_REPLICA, ReplicaKey


def set_role(core: RaftCore, role: Role) -> None:
    before = core.role
    check_succession(before, role)
    if role.epoch == before.epoch and before.leader_id not in (NO_NODE, role.leader_id, core.local.id):
        if role.leader_id != NO_NODE:
            raise AssertionError(f"epoch {role.epoch} would have leaders {before.leader_id} and {role.leader_id}")
    core.role = role
    if role.epoch > before.epoch:
        core.leader_address = None
        core.leader_endpoints = ()
    if role.leader_id != NO_NODE:
        core.lost_elections = 0
    state = role.to_quorum_state()
    if state != core.persisted:
        core.persisted = state
        core.ready.quorum_state = state
    leads, led = isinstance(role, Leader), isinstance(before, Leader)
    if (role.epoch, role.leader_id, leads) != (before.epoch, before.leader_id, led):
        core.ready.leader_changed = True
    core.in_flight.clear()
    core.retry_at_ms.clear()
    core.ask_again_ms = 0
    if led and not leads:
        fetches.reply_to_parked_with_error(core, errors.NOT_LEADER_OR_FOLLOWER)
        _end_change(core, before)
    logger.info("node %d: %s in epoch %d, leader %d", core.local.id, role.name, role.epoch, role.leader_id)


def _end_change(core: RaftCore, before: Role) -> None:
    """A leader that is none any more leaves a change of the voters to its successor."""
    if isinstance(before, Leader) and before.change is not None:
        voter_changes.finish_change(core, before, (errors.NOT_LEADER_OR_FOLLOWER, "The leader stepped down"))


def _voted_in(core: RaftCore, epoch: int) -> ReplicaKey:
    return core.role.voted if core.role.epoch == epoch else NO_REPLICA


def become_unattached(core: RaftCore, epoch: int, now_ms: int, voted: ReplicaKey = NO_REPLICA) -> None:
    deadline = core.random_election_deadline(now_ms)
    leader_id = core.role.leader_id if core.role.epoch == epoch and not core.is_leader else NO_NODE
    if leader_id == core.local.id:
        leader_id = NO_NODE
    voted = voted if voted != NO_REPLICA else _voted_in(core, epoch)
    set_role(core, Unattached(epoch, leader_id, voted, deadline))


def become_follower(core: RaftCore, epoch: int, leader_id: int, now_ms: int) -> None:
    deadline = now_ms + core.config.fetch_timeout_ms
    follower = Follower(epoch, leader_id, _voted_in(core, epoch), fetch_deadline_ms=deadline)
    follower.next_change_ms = deadline
    set_role(core, follower)


def become_prospective(core: RaftCore, now_ms: int) -> None:
    role = core.role
    if not core.log.is_settled():
        # A leader appends at once, and this log takes nothing yet: somebody else may lead, or this node later.
        become_unattached(core, role.epoch, now_ms)
        return
    leader_id = role.leader_id if role.leader_id != core.local.id else NO_NODE
    deadline = core.random_election_deadline(now_ms)
    set_role(core, Prospective(role.epoch, leader_id, role.voted, {core.local.id}, set(), deadline))


def become_candidate(core: RaftCore, now_ms: int) -> None:
    deadline = core.random_election_deadline(now_ms)
    set_role(core, Candidate(core.epoch + 1, NO_NODE, core.local, {core.local.id}, set(), deadline))


def become_resigned(core: RaftCore, now_ms: int) -> None:
    successors: list[ReplicaKey] = []
    if isinstance(core.role, Leader):
        progress = core.role.voters
        others = [voter_id for voter_id in progress if voter_id != core.local.id]
        others.sort(key=lambda voter_id: (-progress[voter_id].end_offset, voter_id))
        successors = [core.voters.key(voter_id) for voter_id in others if core.voters.get(voter_id) is not None]
    set_role(
        core,
        Resigned(
            core.epoch,
            core.local.id,
            unacknowledged={key.id for key in successors},
            successors=tuple(successors),
            election_deadline_ms=core.random_election_deadline(now_ms),
        ),
    )


def note_epoch(core: RaftCore, leader_id: int, epoch: int, now_ms: int) -> None:
    """Learns from any message: a higher epoch, or the leader of the own one."""
    known = leader_id not in (NO_NODE, core.local.id)
    if epoch > core.epoch:
        if known:
            become_follower(core, epoch, leader_id, now_ms)
        else:
            become_unattached(core, epoch, now_ms)
    elif epoch == core.epoch and known and core.role.leader_id == NO_NODE:
        become_follower(core, epoch, leader_id, now_ms)
