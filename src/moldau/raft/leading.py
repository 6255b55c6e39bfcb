"""What a leader does: opens its epoch, serves fetches, keeps in touch with the voters, steps down without a quorum."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft import commit, fetches, transitions
from moldau.raft.batches import control_batch, leader_change_record, metadata_batch, version_record, voters_record
from moldau.raft.core import ParkedFetch, RaftCore
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.messages import (
    BeginEpochReply,
    BeginEpochRequest,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
)
from moldau.raft.ready import SnapshotRead
from moldau.raft.roles import Candidate, Leader, Prospective, ReplicaProgress
from moldau.raft.state import ReplicaKey


def become_leader(core: RaftCore, role: Candidate, now_ms: int) -> None:
    start = core.log.end_offset()
    leader = Leader(role.epoch, core.local.id, epoch_start_offset=start, granting=sorted(role.granted))
    for voter_id in core.voters.ids():
        leader.voters[voter_id] = ReplicaProgress(begin_epoch_at_ms=now_ms)
    leader.check_quorum_deadline_ms = core.check_quorum_deadline(now_ms)
    transitions.set_role(core, leader)
    records = [leader_change_record(core.local.id, core.voters.ids(), leader.granting)]
    if core.voter_history.kraft_version() >= 1 and core.voter_history.latest_offset() < 0:
        # The voters came from the snapshot of the format step; in the log they reach every replica.
        records += [version_record(core.voter_history.kraft_version()), voters_record(core.voters)]
    core.append(control_batch(start, role.epoch, core.wall.at(now_ms), records))
    if len(records) > 1:
        core.voter_history.add_version(start + 1, core.voter_history.kraft_version())
        core.voter_history.add_voters(start + 2, core.voters)


def propose(core: RaftCore, values: list[bytes], now_ms: int) -> int:
    """Appends one batch of metadata records as the leader; returns the offset of the last one."""
    if not isinstance(core.role, Leader):
        raise errors.KafkaError(errors.NOT_CONTROLLER, "This replica is not the leader of the quorum.")
    core.append(metadata_batch(core.log.end_offset(), core.epoch, core.wall.at(now_ms), values))
    core.appended_records += len(values)
    fetches.serve_parked(core, now_ms)
    return core.log.end_offset() - 1


# Fetch


def leader_error(core: RaftCore, epoch: int) -> int:
    if epoch < core.epoch:
        return errors.FENCED_LEADER_EPOCH
    if epoch > core.epoch:
        return errors.UNKNOWN_LEADER_EPOCH
    return errors.NONE if core.is_leader else errors.NOT_LEADER_OR_FOLLOWER


def on_fetch_request(core: RaftCore, request: FetchRequest, token: object, now_ms: int) -> None:
    error = leader_error(core, request.epoch)
    if error:
        core.reply(token, FetchReply(error, core.leader_id, core.epoch))
        return
    _note_contact(core, request.replica, now_ms)
    reply = fetches.read_for(core, request)
    if reply.diverging is None and reply.snapshot is None:
        _note_fetch(core, request.replica, request.offset, now_ms)
        reply.high_watermark = core.high_watermark
    if not core.is_leader:
        # That fetch committed its own removal.
        core.reply(token, FetchReply(errors.NOT_LEADER_OR_FOLLOWER, core.leader_id, core.epoch))
    elif fetches.is_worth_waiting(core, request, reply) and request.max_wait_ms > 0:
        wait_ms = min(request.max_wait_ms, core.config.fetch_timeout_ms)
        core.parked.append(ParkedFetch(token, request, now_ms + wait_ms))
    else:
        core.reply(token, reply)


def _note_fetch(core: RaftCore, replica: ReplicaKey, offset: int, now_ms: int) -> None:
    role = core.role
    assert isinstance(role, Leader)
    if replica.id == core.local.id or replica.id < 0:
        return
    is_voter = core.voters.is_voter(replica)
    progress = role.voters.get(replica.id) if is_voter else role.observers.get(replica)
    if progress is None:
        progress = ReplicaProgress()
        if is_voter:
            role.voters[replica.id] = progress
        else:
            role.observers[replica] = progress
    if offset >= core.log.end_offset():
        progress.last_caught_up_ms = now_ms
    elif 0 <= progress.last_fetch_leader_end_offset <= offset:
        progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
    progress.last_fetch_ms = now_ms
    progress.last_fetch_leader_end_offset = core.log.end_offset()
    progress.end_offset = offset
    if is_voter:
        if _is_voter_before(core, offset, replica):
            progress.synced_offset = offset
        progress.acknowledged = True
        progress.begin_epoch_at_ms = now_ms + core.config.fetch_timeout_ms // 2
        commit.update_commit(core, now_ms)


def _is_voter_before(core: RaftCore, offset: int, replica: ReplicaKey) -> bool:
    """Whether a replica that has the log up to `offset` knows that it is a voter, and so has synced all of that.
    One that has not read yet that it was made a voter fetches on like any observer, without a sync."""
    return core.voter_history.voters_before(offset)[1].is_voter(replica)


def _note_contact(core: RaftCore, replica: ReplicaKey, now_ms: int) -> None:
    """Any fetch of a voter in this epoch shows that it takes this replica for the leader."""
    if isinstance(core.role, Leader) and replica.id != core.local.id and core.voters.is_voter(replica):
        _note_quorum_contact(core, core.role, replica.id, now_ms)


# Snapshots


def on_fetch_snapshot_request(core: RaftCore, request: FetchSnapshotRequest, token: object, now_ms: int) -> None:
    reply = FetchSnapshotReply(leader_error(core, request.epoch), core.leader_id, core.epoch, request.snapshot)
    if not reply.error:
        _note_contact(core, request.replica, now_ms)
        _find_snapshot(core, request, reply)
    if reply.error:
        core.reply(token, reply)
    else:
        reply.leader_address = core.address_of(reply.leader_id)
        most = min(request.max_bytes, core.config.snapshot_max_bytes)
        core.ready.snapshot_reads.append(SnapshotRead(token, reply, most))


def _find_snapshot(core: RaftCore, request: FetchSnapshotRequest, reply: FetchSnapshotReply) -> None:
    size = core.log.snapshot_size(OffsetAndEpoch(*request.snapshot))
    if size < 0:
        reply.error = errors.SNAPSHOT_NOT_FOUND
    elif not 0 <= request.position < size:
        reply.error = errors.POSITION_OUT_OF_RANGE
    else:
        reply.size, reply.position = size, request.position


# Contact with the voters


def drive_leader(core: RaftCore, role: Leader, now_ms: int) -> None:
    """Introduces the leader to voters that do not fetch from it, again and again until they do."""
    for voter_id, progress in role.voters.items():
        if voter_id == core.local.id or now_ms < progress.begin_epoch_at_ms:
            continue
        if core.voters.get(voter_id) is not None and core.can_send(voter_id, now_ms):
            request = BeginEpochRequest(role.epoch, core.local.id, core.voters.key(voter_id), core.endpoints)
            core.send(voter_id, request, now_ms)


def on_begin_epoch_request(core: RaftCore, request: BeginEpochRequest, token: object, now_ms: int) -> None:
    error = errors.NONE
    if not core.is_meant(request.voter):
        error = errors.INVALID_VOTER_KEY
    elif request.epoch < core.epoch:
        error = errors.FENCED_LEADER_EPOCH
    else:
        transitions.note_epoch(core, request.leader_id, request.epoch, now_ms)
        core.note_leader_endpoints(request.leader_id, request.epoch, request.endpoints)
        if isinstance(core.role, Prospective) and core.role.leader_id == request.leader_id:
            # The leader it gave up is there after all.
            transitions.become_follower(core, request.epoch, request.leader_id, now_ms)
    core.reply(token, BeginEpochReply(error, core.leader_id, core.epoch))


def on_begin_epoch_reply(core: RaftCore, source: int, reply: BeginEpochReply, now_ms: int) -> None:
    if isinstance(core.role, Leader) and source in core.role.voters and not reply.error:
        progress = core.role.voters[source]
        progress.acknowledged = True
        progress.begin_epoch_at_ms = now_ms + core.config.fetch_timeout_ms // 2


def _note_quorum_contact(core: RaftCore, role: Leader, voter_id: int, now_ms: int) -> None:
    role.fetched_voters.add(voter_id)
    needed = core.voters.majority() - (1 if core.is_voter else 0)
    if len(role.fetched_voters) >= needed:
        role.fetched_voters.clear()
        role.check_quorum_deadline_ms = core.check_quorum_deadline(now_ms)


def tick_leader(core: RaftCore, now_ms: int) -> None:
    if isinstance(core.role, Leader) and now_ms >= core.role.check_quorum_deadline_ms:
        # Somebody else may lead by now: a leader without a majority must not respond as if nothing happened.
        transitions.become_resigned(core, now_ms)


def resign(core: RaftCore, now_ms: int) -> bool:
    """A clean stop: lets a successor begin at once, True. The only voter has none and stays as it is."""
    if not core.is_leader or core.voters.is_only_voter(core.local):
        return False
    transitions.become_resigned(core, now_ms)
    return True
