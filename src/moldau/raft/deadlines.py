"""When time alone gives a replica something to do, and how it is lenient when its own clock stood still."""

from __future__ import annotations

from moldau.raft.core import RaftCore
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from moldau.records.clocks import NEVER_MS


def extend_deadlines(core: RaftCore, late_ms: int, now_ms: int) -> None:
    """`tick` comes late: this node was busy or stopped, and what the others said meanwhile is not read yet. They
    get a moment before their silence counts."""
    role = core.role
    until_ms = now_ms + min(late_ms, core.config.fetch_timeout_ms // 2)
    if isinstance(role, Follower):
        role.fetch_deadline_ms = max(role.fetch_deadline_ms, until_ms)
    elif isinstance(role, Leader):
        role.check_quorum_deadline_ms = max(role.check_quorum_deadline_ms, until_ms)


def next_deadline_ms(core: RaftCore, now_ms: int) -> int:
    """When `tick` has something to do at the latest."""
    deadlines = [deadline_ms for _, deadline_ms in core.in_flight.values()]
    deadlines += [fetch.deadline_ms for fetch in core.parked]
    deadlines += [retry_ms for retry_ms in core.retry_at_ms.values() if retry_ms > now_ms]
    if core.ask_again_ms > now_ms:
        deadlines.append(core.ask_again_ms)
    role = core.role
    if isinstance(role, Leader):
        deadlines.append(role.check_quorum_deadline_ms)
        if role.change is not None:
            deadlines.append(role.change.deadline_ms)
        for voter_id, progress in role.voters.items():
            if voter_id != core.local.id and voter_id not in core.in_flight:
                deadlines.append(max(progress.begin_epoch_at_ms, core.retry_at_ms.get(voter_id, 0)))
    elif isinstance(role, Follower):
        if core.is_voter:
            deadlines.append(role.fetch_deadline_ms)
    elif isinstance(role, Unattached):
        if core.is_voter:
            deadlines.append(role.election_deadline_ms)
    elif isinstance(role, Prospective | Candidate | Resigned):
        deadlines.append(role.election_deadline_ms)
    return min(deadlines, default=NEVER_MS)
