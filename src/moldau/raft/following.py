"""What a follower or observer does: fetches records or a snapshot, truncates where its log diverges."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import DecodeError
from moldau.raft import elections, membership
from moldau.raft.batches import control_records, parse_control
from moldau.raft.core import FIRST_BOOTSTRAP_ID, RaftCore, logger
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.messages import CLOSED, REFUSED, FetchReply, FetchRequest, FetchSnapshotReply, FetchSnapshotRequest
from moldau.raft.roles import Follower
from moldau.raft.state import NO_NODE
from moldau.raft.voters import VoterSet
from moldau.records.batch import CorruptBatch, split_batches


def drive_follower(core: RaftCore, role: Follower, now_ms: int) -> None:
    if role.leader_lost and not core.is_voter:
        _ask_who_leads(core, now_ms, role.leader_id)
    if not core.can_send(role.leader_id, now_ms) or membership.drive_change(core, role, now_ms):
        return
    if role.snapshot is not None:
        position, most = role.snapshot_position, core.config.snapshot_max_bytes
        if role.snapshot_complete:
            # Only to be heard of, and to hear of the leader, while the disk is busy with it.
            position, most = 0, 1
        request = FetchSnapshotRequest(role.epoch, core.local, role.snapshot, position, most)
        core.send(role.leader_id, request, now_ms)
    elif _may_fetch(core):
        core.send(role.leader_id, _fetch_request(core), now_ms)


def _may_fetch(core: RaftCore) -> bool:
    """The fetch offset of a voter tells the leader what is on its disk, so it waits for the sync. So does that of a
    controller which is no voter: it may have been made one, and the leader may count it before it knows. Nobody
    counts what a broker has. What is being truncated takes no records."""
    if not core.log.is_settled():
        return False
    return core.synced_offset == core.log.end_offset() or not (core.is_voter or core.endpoints)


def drive_unattached(core: RaftCore, now_ms: int) -> None:
    _ask_who_leads(core, now_ms, NO_NODE)


def _ask_who_leads(core: RaftCore, now_ms: int, besides: int) -> None:
    """Asks a voter or a bootstrap server for records, only to learn who leads; another one if it does not respond
    soon."""
    if now_ms < core.ask_again_ms or not _may_fetch(core):
        return
    ready = [node_id for node_id in _to_be_asked(core, besides) if core.can_send(node_id, now_ms)]
    if ready:
        core.ask_again_ms = now_ms + core.config.election_timeout_ms // 5
        core.send(ready[core.rng.randrange(len(ready))], _fetch_request(core), now_ms)


def _to_be_asked(core: RaftCore, besides: int) -> list[int]:
    """The other voters, and the bootstrap servers that are not among them."""
    voter_ids = [voter_id for voter_id in core.voters.ids() if voter_id not in (core.local.id, besides)]
    known = {core.address_of(node_id) for node_id in [*voter_ids, core.local.id]}
    servers = enumerate(core.bootstrap_servers)
    return voter_ids + [FIRST_BOOTSTRAP_ID - number for number, address in servers if address not in known]


def _fetch_request(core: RaftCore) -> FetchRequest:
    end = core.log_end()
    config = core.config
    return FetchRequest(
        core.epoch,
        core.local,
        end.offset,
        end.epoch,
        config.fetch_max_wait_ms,
        config.fetch_max_bytes,
        core.high_watermark,
    )


def on_fetch_reply(core: RaftCore, source: int, request: FetchRequest, reply: FetchReply, now_ms: int) -> None:
    role = core.role
    if not isinstance(role, Follower) or role.leader_id != source:
        # Asked who leads, and it did not know better.
        core.wait_before_retry(source, now_ms, core.config.election_timeout_ms // 10)
        core.ask_again_ms = 0
        return
    if reply.error:
        _on_leader_refused(core, role, reply.error, now_ms)
        return
    if request.offset != core.log.end_offset() or request.epoch != role.epoch:
        return
    role.fetch_deadline_ms = now_ms + core.config.fetch_timeout_ms
    role.has_fetched = True
    role.connection_broke = role.leader_lost = False
    if reply.diverging is not None:
        core.truncate_to(_point_of_divergence(core, reply.diverging))
    elif reply.snapshot is not None:
        if reply.snapshot.offset < core.high_watermark:
            shown = f"{reply.snapshot.offset} would remove committed records below {core.high_watermark}"
            raise AssertionError(f"a snapshot that ends at {shown}")
        role.snapshot, role.snapshot_position, role.snapshot_complete = reply.snapshot, 0, False
    else:
        if reply.records and not _append_fetched(core, role, reply.records):
            core.wait_before_retry(source, now_ms, core.config.retry_backoff_ms)
            return
        core.fetched_records += core.log.end_offset() - request.offset
        role.leader_high_watermark = reply.high_watermark
        follow_high_watermark(core)


def _on_leader_refused(core: RaftCore, role: Follower, error: int, now_ms: int) -> None:
    """A leader that says twice that it leads no more has resigned, or its process is a new one."""
    if error == errors.NOT_LEADER_OR_FOLLOWER:
        if role.connection_broke and core.is_voter:
            elections.elect_early(core, role, now_ms)
        role.connection_broke = True


def on_leader_silent(core: RaftCore, role: Follower, reason: int, now_ms: int) -> None:
    """The leader did not respond to a fetch. A broken connection is tried once more at once: if its process ended, the
    next attempt is refused, and then nobody needs to wait for a timeout."""
    if reason == CLOSED and not role.connection_broke:
        role.connection_broke = True
        del core.retry_at_ms[role.leader_id]
    elif not core.is_voter:
        role.leader_lost = True
    elif reason == REFUSED:
        elections.elect_early(core, role, now_ms)


def _point_of_divergence(core: RaftCore, leader_end: OffsetAndEpoch) -> int:
    """Where the own log last agreed with the leader's, as far as this response tells."""
    local_end = core.log.end_offset_for_epoch(leader_end.epoch)
    if local_end.epoch == leader_end.epoch:
        return min(local_end.offset, leader_end.offset)
    return local_end.offset


def _append_fetched(core: RaftCore, role: Follower, records: bytes) -> bool:
    """Appends what the leader sent; False when it is damaged, for damage must not spread."""
    before = core.log.end_offset()
    try:
        batches = split_batches(records, 0, len(records))
        if any(int(batch.partition_leader_epoch) > role.epoch for batch in batches):
            raise CorruptBatch(f"a batch of an epoch after {role.epoch}")
        controls = [(offset, parse_control(kind, value)) for offset, kind, value in control_records(records)]
        core.log.append_fetched(records)
    except (CorruptBatch, DecodeError, KafkaError) as error:
        if isinstance(error, KafkaError) and error.code == errors.KAFKA_STORAGE_ERROR:
            raise
        logger.error("records fetched from leader %d at offset %d are damaged: %s", role.leader_id, before, error)
        return False
    for offset, (version, voters) in controls:
        if before <= offset < core.log.end_offset():
            _apply_control(core, offset, version, voters)
    core.note_appended()
    return True


def _apply_control(core: RaftCore, offset: int, version: int | None, voters: VoterSet | None) -> None:
    """Voters and the kraft version count as soon as they are in the log."""
    if version is not None:
        core.voter_history.add_version(offset, version)
    if voters is not None:
        core.voter_history.add_voters(offset, voters)


def follow_high_watermark(core: RaftCore) -> None:
    """What the leader says is committed, as far as it is in this log. A majority has it on disk: it counts here
    before this disk has it, too."""
    if isinstance(core.role, Follower) and core.role.leader_high_watermark >= 0:
        core.advance_high_watermark(min(core.role.leader_high_watermark, core.log.end_offset()))


def on_fetch_snapshot_reply(
    core: RaftCore, source: int, request: FetchSnapshotRequest, reply: FetchSnapshotReply, now_ms: int
) -> None:
    role = core.role
    if not isinstance(role, Follower) or role.leader_id != source or role.snapshot != request.snapshot:
        return
    if role.snapshot_complete:
        if reply.error in (errors.NONE, errors.SNAPSHOT_NOT_FOUND):
            role.connection_broke = role.leader_lost = False
            role.fetch_deadline_ms = now_ms + core.config.fetch_timeout_ms
        core.wait_before_retry(source, now_ms, core.config.fetch_timeout_ms // 4)
        return
    if reply.error in (errors.SNAPSHOT_NOT_FOUND, errors.POSITION_OUT_OF_RANGE):
        role.snapshot = None
        return
    if reply.error or reply.position != role.snapshot_position or not reply.data:
        core.wait_before_retry(source, now_ms, core.config.retry_backoff_ms)
        return
    role.connection_broke = role.leader_lost = False
    role.fetch_deadline_ms = now_ms + core.config.fetch_timeout_ms
    core.log.append_fetched_snapshot(request.snapshot, reply.position, reply.data)
    role.snapshot_position = reply.position + len(reply.data)
    if role.snapshot_position >= reply.size:
        role.snapshot_complete = True
        core.wait_before_retry(source, now_ms, core.config.fetch_timeout_ms // 4)
        core.ready.fetched_snapshot = request.snapshot


def on_snapshot_checked(core: RaftCore, snapshot: OffsetAndEpoch, problem: ValueError | None, now_ms: int) -> bool:
    """What was fetched is whole and on the medium, or it is not what the leader has. By now another leader may want
    something else of this replica; then it is as if nothing had been fetched, and False."""
    role = core.role
    if not isinstance(role, Follower) or role.snapshot != snapshot or not role.snapshot_complete:
        core.log.drop_fetched_snapshot(snapshot)
        return False
    role.snapshot, role.snapshot_complete = None, False
    core.retry_at_ms.pop(role.leader_id, None)
    role.fetch_deadline_ms = max(role.fetch_deadline_ms, now_ms + core.config.fetch_timeout_ms)
    if problem is not None:
        text = "snapshot fetched from leader %d is damaged, fetching it again: %s"
        logger.error(text, role.leader_id, problem)
        core.wait_before_retry(role.leader_id, now_ms, core.config.retry_backoff_ms)
    else:
        _install_snapshot(core, snapshot)
    return True


def _install_snapshot(core: RaftCore, snapshot: OffsetAndEpoch) -> None:
    core.log.install_fetched_snapshot(snapshot)
    core.sync_generation += 1
    # Its name, and that the log before it is gone, are on the medium after the next sync.
    core.synced_offset = min(core.synced_offset, snapshot.offset - 1)
    core.note_appended()
    load_voters(core)
    core.ready.loaded_snapshot = snapshot
    core.advance_high_watermark(snapshot.offset)


def load_voters(core: RaftCore) -> None:
    """Reads voters and kraft version from the latest snapshot and from the log after it."""
    core.voter_history.reset()
    snapshot = core.log.latest_snapshot()
    if snapshot is not None:
        size = core.log.snapshot_size(snapshot)
        for _, control_type, value in control_records(core.log.read_snapshot(snapshot, 0, min(size, 1 << 16))):
            # A record of the first snapshot (0-0) has offset -1, so that the first leader writes it to the log.
            _apply_control(core, snapshot.offset - 1, *parse_control(control_type, value))
    position, end = max(core.log.start_offset(), snapshot.offset if snapshot else 0), core.log.end_offset()
    while position < end:
        data = core.log.read(position, 1 << 20)
        records, position = _scan_controls(data, position)
        for offset, control_type, value in records:
            _apply_control(core, offset, *parse_control(control_type, value))


def _scan_controls(data: bytes, position: int) -> tuple[list[tuple[int, int, bytes]], int]:
    batches = split_batches(data, 0, len(data))
    if not batches:
        raise AssertionError(f"the log has no batch at offset {position}")
    return [record for record in control_records(data) if record[0] >= position], int(batches[-1].next_offset)
