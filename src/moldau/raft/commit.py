"""Advances the high watermark of a leader, and does what waited for it: parked fetches, changes of the voters."""

from __future__ import annotations

from moldau.raft import fetches, transitions, voter_changes
from moldau.raft.core import RaftCore
from moldau.raft.roles import Leader


def update_commit(core: RaftCore, now_ms: int) -> None:
    """The high watermark is what a majority has on disk, once a record of this epoch is among it."""
    role = core.role
    if not isinstance(role, Leader):
        return
    if core.local.id in role.voters:
        own = role.voters[core.local.id]
        own.end_offset = own.synced_offset = core.synced_offset
    voters = core.voters
    ends = sorted((role.voters[voter_id].synced_offset for voter_id in voters.ids()), reverse=True)
    committed = ends[voters.majority() - 1]
    if committed > role.epoch_start_offset and committed > core.high_watermark:
        core.advance_high_watermark(committed)
        fetches.serve_parked(core, now_ms)
        _on_committed(core, now_ms)


def _on_committed(core: RaftCore, now_ms: int) -> None:
    """The high watermark of the leader moved."""
    role = core.role
    if not isinstance(role, Leader):
        return
    if role.change is not None and 0 <= role.change.offset < core.high_watermark:
        voter_changes.finish_change(core, role, None)
    if not core.is_voter and core.voter_history.latest_offset() < core.high_watermark:
        # It removed itself, or was removed by a record its predecessor left behind.
        transitions.become_resigned(core, now_ms)
    elif len(core.voters) > 1 and _is_to_update_itself(core, role):
        voter_changes.append_voters(core, role, core.voters.with_voter(voter_changes.own_voter(core)), now_ms)


def _is_to_update_itself(core: RaftCore, role: Leader) -> bool:
    """A leader that listens elsewhere than its voters record says: the others would not find it after its time."""
    known = core.voters.get(core.local.id)
    is_bound = bool(core.endpoints) and all(port > 0 for _, _, port in core.endpoints)
    return (
        is_bound
        and known is not None
        and known != voter_changes.own_voter(core)
        and not voter_changes.change_problem(core, role, "")
    )
