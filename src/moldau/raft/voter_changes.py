"""How a leader changes the voters: whether it may now, the record it appends, who gets a reply when it is done.

A set counts from its append on, so what the leader knows of the replicas moves with it.
"""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft import fetches
from moldau.raft.batches import ControlRecord, control_batch, voters_record
from moldau.raft.core import RaftCore
from moldau.raft.messages import AddVoterReply, AddVoterRequest, ChangeReply, RemoveVoterReply
from moldau.raft.roles import Leader, ReplicaProgress
from moldau.raft.voters import Voter, VoterSet

SUPPORTED_KRAFT_VERSIONS = (0, 1)


def change_problem(core: RaftCore, role: Leader, doing: str) -> tuple[int, str] | None:
    """Why the voters cannot be changed now."""
    if role.change is not None:
        text = "Request timed out waiting for leader to handle previous voter change request"
        return errors.REQUEST_TIMED_OUT, text
    if core.high_watermark <= role.epoch_start_offset:
        text = "Request timed out waiting for leader to establish HWM and fence previous voter changes"
        return errors.REQUEST_TIMED_OUT, text
    version = core.voter_history.kraft_version()
    if version < 1:
        text = f"Cluster doesn't support {doing} voter because the kraft.version feature is {version}"
        return errors.UNSUPPORTED_VERSION, text
    offset = core.voter_history.latest_offset()
    if offset >= core.high_watermark:
        text = "Request timed out waiting for voters to commit the latest voter change at "
        return errors.REQUEST_TIMED_OUT, f"{text}{offset} with HWM {core.high_watermark}"
    return None


def append_voters(core: RaftCore, role: Leader, voters: VoterSet, now_ms: int) -> int:
    """Appends the new set, which counts from now on; returns the offset of its record."""
    return append_controls(core, role, [voters_record(voters)], voters, now_ms)


def append_controls(core: RaftCore, role: Leader, records: list[ControlRecord], voters: VoterSet, now_ms: int) -> int:
    """`records` ends with the voters record."""
    before = core.voters
    start = core.log.end_offset()
    core.append(control_batch(start, role.epoch, core.wall.at(now_ms), records))
    offset = start + len(records) - 1
    core.voter_history.add_voters(offset, voters)
    _take_over_progress(core, role, before, voters, now_ms)
    fetches.serve_parked(core, now_ms)
    return offset


def _take_over_progress(core: RaftCore, role: Leader, before: VoterSet, after: VoterSet, now_ms: int) -> None:
    """What is known of an observer stays known when it becomes a voter, and the other way round. What it has on
    its disk is not known of an observer."""
    progress: dict[int, ReplicaProgress] = {}
    for voter in after.voters():
        old = before.get(voter.key.id)
        if old is not None and old.key.is_same(voter.key):
            progress[voter.key.id] = role.voters[voter.key.id]
        else:
            progress[voter.key.id] = role.observers.pop(voter.key, ReplicaProgress())
    for voter in before.voters():
        if after.get(voter.key.id) is None and voter.key.id != core.local.id:
            role.observers[voter.key] = role.voters[voter.key.id]
            role.observers[voter.key].synced_offset = -1
    role.voters = progress
    role.fetched_voters &= set(progress)
    role.check_quorum_deadline_ms = core.check_quorum_deadline(now_ms)


def own_voter(core: RaftCore) -> Voter:
    return Voter(core.local, core.endpoints, *SUPPORTED_KRAFT_VERSIONS)


def finish_change(core: RaftCore, role: Leader, problem: tuple[int, str] | None) -> None:
    change, role.change = role.change, None
    if change is not None and not change.has_reply:
        kind = AddVoterReply if isinstance(change.request, AddVoterRequest) else RemoveVoterReply
        reply_to_change(core, kind, change.token, problem)


def reply_to_change(core: RaftCore, kind: type[ChangeReply], token: object, problem: tuple[int, str] | None) -> None:
    error, text = problem if problem is not None else (errors.NONE, "")
    core.reply(token, kind(error, core.leader_id, core.epoch, text or None))
