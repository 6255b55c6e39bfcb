"""What a leader does: opens its epoch, serves fetches, moves the high watermark, steps down without a quorum."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft.batches import control_batch, leader_change_record, metadata_batch, version_record, voters_record
from moldau.raft.core import ParkedFetch, address_on
from moldau.raft.elections import Elections
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
from moldau.records.clocks import NEVER_MS


class Leading(Elections):
    def _become_leader(self, role: Candidate, now_ms: int) -> None:
        start = self.log.end_offset()
        leader = Leader(role.epoch, self.local.id, epoch_start_offset=start, granting=sorted(role.granted))
        for voter_id in self.voters.ids():
            leader.voters[voter_id] = ReplicaProgress(begin_epoch_at_ms=now_ms)
        leader.check_quorum_deadline_ms = self._check_quorum_deadline(now_ms)
        self._set_role(leader)
        records = [leader_change_record(self.local.id, self.voters.ids(), leader.granting)]
        if self.voter_history.kraft_version() >= 1 and self.voter_history.latest_offset() < 0:
            # The voters came from the snapshot of the format step; in the log they reach every replica.
            records += [version_record(self.voter_history.kraft_version()), voters_record(self.voters)]
        self._append(control_batch(start, role.epoch, self.wall.at(now_ms), records))
        if len(records) > 1:
            self.voter_history.add_version(start + 1, self.voter_history.kraft_version())
            self.voter_history.add_voters(start + 2, self.voters)

    def propose(self, values: list[bytes], now_ms: int) -> int:
        """Appends one batch of metadata records as the leader; returns the offset of the last one."""
        if not isinstance(self.role, Leader):
            raise errors.KafkaError(errors.NOT_CONTROLLER, "This replica is not the leader of the quorum.")
        self._append(metadata_batch(self.log.end_offset(), self.epoch, self.wall.at(now_ms), values))
        self._serve_parked(now_ms)
        return self.log.end_offset() - 1

    def _append(self, batch: bytes) -> None:
        self.log.append(batch)
        self._note_appended()

    # Commit

    def _update_commit(self, now_ms: int) -> None:
        """The high watermark is what a majority has on disk, once a record of this epoch is among it."""
        role = self.role
        if not isinstance(role, Leader):
            return
        if self.local.id in role.voters:
            own = role.voters[self.local.id]
            own.end_offset = own.synced_offset = self.synced_offset
        ends = sorted((role.voters[voter_id].synced_offset for voter_id in self.voters.ids()), reverse=True)
        committed = ends[self.voters.majority() - 1]
        if committed > role.epoch_start_offset and committed > self.high_watermark:
            self._advance_high_watermark(committed)
            self._serve_parked(now_ms)
            self._on_committed(now_ms)

    def _on_committed(self, now_ms: int) -> None:
        raise NotImplementedError

    # Fetch

    def _leader_error(self, epoch: int) -> int:
        if epoch < self.epoch:
            return errors.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return errors.UNKNOWN_LEADER_EPOCH
        return errors.NONE if self.is_leader else errors.NOT_LEADER_OR_FOLLOWER

    def _on_fetch_request(self, request: FetchRequest, token: object, now_ms: int) -> None:
        error = self._leader_error(request.epoch)
        if error:
            self._reply(token, FetchReply(error, self.leader_id, self.epoch))
            return
        self._note_contact(request.replica, now_ms)
        reply = self._read_for(request)
        if reply.diverging is None and reply.snapshot is None:
            self._note_fetch(request.replica, request.offset, now_ms)
            reply.high_watermark = self.high_watermark
        if not self.is_leader:
            # That fetch committed its own removal.
            self._reply(token, FetchReply(errors.NOT_LEADER_OR_FOLLOWER, self.leader_id, self.epoch))
        elif self._is_worth_waiting(request, reply) and request.max_wait_ms > 0:
            wait_ms = min(request.max_wait_ms, self.config.fetch_timeout_ms)
            self._parked.append(ParkedFetch(token, request, now_ms + wait_ms))
        else:
            self._reply(token, reply)

    def _read_for(self, request: FetchRequest) -> FetchReply:
        reply = FetchReply(errors.NONE, self.leader_id, self.epoch, self.high_watermark, self.log.start_offset())
        agrees = self._is_prefix(request.offset, request.last_fetched_epoch, reply)
        if agrees and request.offset < self.log.end_offset():
            reply.records = self.log.read(request.offset, min(request.max_bytes, self.config.fetch_max_bytes))
        return reply

    def _is_worth_waiting(self, request: FetchRequest, reply: FetchReply) -> bool:
        """Nothing to say: no records, no truncation, and the fetcher knows the high watermark already."""
        has_news = bool(reply.records) or reply.diverging is not None or reply.snapshot is not None
        return not has_news and request.high_watermark >= self.high_watermark

    def _is_prefix(self, offset: int, epoch: int, reply: FetchReply) -> bool:
        """Whether the fetcher's log is a prefix of this one; otherwise the reply says how it becomes one."""
        start, snapshot = self.log.start_offset(), self.log.earliest_snapshot()
        if start == 0 and offset == 0 and epoch == 0:
            return True
        if snapshot is not None and (
            offset < start or (offset == start == snapshot.offset and epoch != snapshot.epoch) or epoch < snapshot.epoch
        ):
            reply.snapshot = self.log.latest_snapshot()
            return False
        end = self.log.end_offset_for_epoch(epoch)
        if end.epoch != epoch or end.offset < offset:
            reply.diverging = end
            return False
        return True

    def _note_fetch(self, replica: ReplicaKey, offset: int, now_ms: int) -> None:
        role = self.role
        assert isinstance(role, Leader)
        if replica.id == self.local.id or replica.id < 0:
            return
        is_voter = self.voters.is_voter(replica)
        progress = role.voters.get(replica.id) if is_voter else role.observers.get(replica)
        if progress is None:
            progress = ReplicaProgress()
            if is_voter:
                role.voters[replica.id] = progress
            else:
                role.observers[replica] = progress
        if offset >= self.log.end_offset():
            progress.last_caught_up_ms = now_ms
        elif 0 <= progress.last_fetch_leader_end_offset <= offset:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
        progress.last_fetch_ms = now_ms
        progress.last_fetch_leader_end_offset = self.log.end_offset()
        progress.end_offset = offset
        if is_voter:
            if self._is_voter_before(offset, replica):
                progress.synced_offset = offset
            progress.acknowledged = True
            progress.begin_epoch_at_ms = now_ms + self.config.fetch_timeout_ms // 2
            self._update_commit(now_ms)

    def _is_voter_before(self, offset: int, replica: ReplicaKey) -> bool:
        """Whether a replica that has the log up to `offset` knows that it is a voter, and so has synced all of that.
        One that has not read yet that it was made a voter fetches on like any observer, without a sync."""
        return self.voter_history.voters_before(offset)[1].is_voter(replica)

    def _note_contact(self, replica: ReplicaKey, now_ms: int) -> None:
        """Any fetch of a voter in this epoch shows that it takes this replica for the leader."""
        if isinstance(self.role, Leader) and replica.id != self.local.id and self.voters.is_voter(replica):
            self._note_quorum_contact(self.role, replica.id, now_ms)

    def _serve_parked(self, now_ms: int) -> None:
        parked, self._parked = self._parked, []
        for fetch in parked:
            reply = self._read_for(fetch.request)
            if self._is_worth_waiting(fetch.request, reply) and now_ms < fetch.deadline_ms:
                self._parked.append(fetch)
            else:
                self._reply(fetch.token, reply)

    def _tick_parked(self, now_ms: int) -> None:
        if any(now_ms >= fetch.deadline_ms for fetch in self._parked):
            due = [fetch for fetch in self._parked if now_ms >= fetch.deadline_ms]
            self._parked = [fetch for fetch in self._parked if now_ms < fetch.deadline_ms]
            for fetch in due:
                reply = FetchReply(errors.NONE, self.leader_id, self.epoch, self.high_watermark)
                reply.log_start_offset = self.log.start_offset()
                self._reply(fetch.token, reply)

    # Snapshots

    def _on_fetch_snapshot_request(self, request: FetchSnapshotRequest, token: object, now_ms: int) -> None:
        reply = FetchSnapshotReply(self._leader_error(request.epoch), self.leader_id, self.epoch, request.snapshot)
        if not reply.error:
            self._note_contact(request.replica, now_ms)
            self._find_snapshot(request, reply)
        if reply.error:
            self._reply(token, reply)
        else:
            reply.leader_address = self.address_of(reply.leader_id)
            most = min(request.max_bytes, self.config.snapshot_max_bytes)
            self._ready.snapshot_reads.append(SnapshotRead(token, reply, most))

    def _find_snapshot(self, request: FetchSnapshotRequest, reply: FetchSnapshotReply) -> None:
        size = self.log.snapshot_size(OffsetAndEpoch(*request.snapshot))
        if size < 0:
            reply.error = errors.SNAPSHOT_NOT_FOUND
        elif not 0 <= request.position < size:
            reply.error = errors.POSITION_OUT_OF_RANGE
        else:
            reply.size, reply.position = size, request.position

    # Contact with the voters

    def _drive_leader(self, role: Leader, now_ms: int) -> None:
        """Introduces the leader to voters that do not fetch from it, again and again until they do."""
        for voter_id, progress in role.voters.items():
            if voter_id == self.local.id or now_ms < progress.begin_epoch_at_ms:
                continue
            if self.voters.get(voter_id) is not None and self._can_send(voter_id, now_ms):
                request = BeginEpochRequest(role.epoch, self.local.id, self.voters.key(voter_id), self.endpoints)
                self._send(voter_id, request, now_ms)

    def _on_begin_epoch_request(self, request: BeginEpochRequest, token: object, now_ms: int) -> None:
        error = errors.NONE
        if not self._is_meant(request.voter):
            error = errors.INVALID_VOTER_KEY
        elif request.epoch < self.epoch:
            error = errors.FENCED_LEADER_EPOCH
        else:
            self._note_epoch(request.leader_id, request.epoch, now_ms)
            address = address_on(request.endpoints, self.listener_name)
            self._note_leader_address(request.leader_id, request.epoch, address)
            if isinstance(self.role, Prospective) and self.role.leader_id == request.leader_id:
                # The leader it gave up is there after all.
                self._become_follower(request.epoch, request.leader_id, now_ms)
        self._reply(token, BeginEpochReply(error, self.leader_id, self.epoch))

    def _on_begin_epoch_reply(self, source: int, reply: BeginEpochReply, now_ms: int) -> None:
        if isinstance(self.role, Leader) and source in self.role.voters and not reply.error:
            progress = self.role.voters[source]
            progress.acknowledged = True
            progress.begin_epoch_at_ms = now_ms + self.config.fetch_timeout_ms // 2

    def _check_quorum_deadline(self, now_ms: int) -> int:
        if self.voters.is_only_voter(self.local):
            return NEVER_MS
        return now_ms + self.config.fetch_timeout_ms * 3 // 2

    def _note_quorum_contact(self, role: Leader, voter_id: int, now_ms: int) -> None:
        role.fetched_voters.add(voter_id)
        needed = self.voters.majority() - (1 if self.is_voter else 0)
        if len(role.fetched_voters) >= needed:
            role.fetched_voters.clear()
            role.check_quorum_deadline_ms = self._check_quorum_deadline(now_ms)

    def _tick_leader(self, now_ms: int) -> None:
        if isinstance(self.role, Leader) and now_ms >= self.role.check_quorum_deadline_ms:
            # Somebody else may lead by now: a leader without a majority must not answer as if nothing happened.
            self._become_resigned(now_ms)

    def resign(self, now_ms: int) -> None:
        """A clean stop: lets a successor begin at once. The only voter has none and stays as it is."""
        if self.is_leader and not self.voters.is_only_voter(self.local):
            self._become_resigned(now_ms)
            self._drive(now_ms)

    def _drive(self, now_ms: int) -> None:
        raise NotImplementedError
