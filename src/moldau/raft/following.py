"""What a follower or observer does: fetches records or a snapshot, truncates where its log diverges."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.raft.batches import control_records, parse_control
from moldau.raft.leading import Leading
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.messages import FetchReply, FetchRequest, FetchSnapshotReply, FetchSnapshotRequest
from moldau.raft.roles import Follower, Unattached
from moldau.records.batch import split_batches


class Following(Leading):
    def _drive_follower(self, role: Follower, now_ms: int) -> None:
        if not self._can_send(role.leader_id, now_ms):
            return
        if role.snapshot is not None:
            most = self.config.snapshot_max_bytes
            request = FetchSnapshotRequest(role.epoch, self.local, role.snapshot, role.snapshot_position, most)
            self._send(role.leader_id, request, now_ms)
        elif self.synced_offset == self.log.end_offset():
            # The fetch offset tells the leader what is on this disk, so it waits for the sync.
            self._send(role.leader_id, self._fetch_request(), now_ms)

    def _drive_unattached(self, now_ms: int) -> None:
        """Asks a voter for records only to learn who leads."""
        others = [voter_id for voter_id in self.voters.ids() if voter_id != self.local.id]
        if others and not self._in_flight:
            ready = [voter_id for voter_id in others if self._can_send(voter_id, now_ms)]
            if ready:
                self._send(ready[self.rng.randrange(len(ready))], self._fetch_request(), now_ms)

    def _fetch_request(self) -> FetchRequest:
        end = self._log_end()
        config = self.config
        return FetchRequest(
            self.epoch,
            self.local,
            end.offset,
            end.epoch,
            config.fetch_max_wait_ms,
            config.fetch_max_bytes,
            self.high_watermark,
        )

    def _on_fetch_reply(self, source: int, request: FetchRequest, reply: FetchReply, now_ms: int) -> None:
        role = self.role
        if isinstance(role, Unattached):
            self._retry_at_ms[source] = now_ms + self.config.election_timeout_ms // 10
            return
        if not isinstance(role, Follower) or role.leader_id != source:
            return
        if reply.error:
            self._retry_at_ms[source] = now_ms + self.config.retry_backoff_ms
            return
        if request.offset != self.log.end_offset() or request.epoch != role.epoch:
            return
        role.fetch_deadline_ms = now_ms + self.config.fetch_timeout_ms
        role.has_fetched = True
        if reply.diverging is not None:
            self._truncate_to(self._point_of_divergence(reply.diverging))
        elif reply.snapshot is not None:
            role.snapshot, role.snapshot_position = reply.snapshot, 0
        else:
            if reply.records:
                self._append_fetched(reply.records)
            role.leader_high_watermark = reply.high_watermark
            self._follow_high_watermark()

    def _point_of_divergence(self, leader_end: OffsetAndEpoch) -> int:
        """Where the own log last agreed with the leader's, as far as this answer tells."""
        local_end = self.log.end_offset_for_epoch(leader_end.epoch)
        if local_end.epoch == leader_end.epoch:
            return min(local_end.offset, leader_end.offset)
        return local_end.offset

    def _append_fetched(self, records: bytes) -> None:
        for offset, control_type, value in control_records(records):
            if offset >= self.log.end_offset():
                self._apply_control(offset, control_type, value)
        self.log.append_fetched(records)
        self._note_appended()

    def _apply_control(self, offset: int, control_type: int, value: bytes) -> None:
        """Voters and the kraft version count as soon as they are in the log."""
        version, voters = parse_control(control_type, value)
        if version is not None:
            self.voter_history.add_version(offset, version)
        if voters is not None:
            self.voter_history.add_voters(offset, voters)

    def _follow_high_watermark(self) -> None:
        """What the leader says is committed, as far as it is on this disk."""
        if isinstance(self.role, Follower) and self.role.leader_high_watermark >= 0:
            self._advance_high_watermark(min(self.role.leader_high_watermark, self.synced_offset))

    def _on_fetch_snapshot_reply(
        self, source: int, request: FetchSnapshotRequest, reply: FetchSnapshotReply, now_ms: int
    ) -> None:
        role = self.role
        if not isinstance(role, Follower) or role.leader_id != source or role.snapshot != request.snapshot:
            return
        if reply.error in (errors.SNAPSHOT_NOT_FOUND, errors.POSITION_OUT_OF_RANGE):
            role.snapshot = None
            return
        if reply.error or reply.position != role.snapshot_position:
            self._retry_at_ms[source] = now_ms + self.config.retry_backoff_ms
            return
        role.fetch_deadline_ms = now_ms + self.config.fetch_timeout_ms
        self.log.append_fetched_snapshot(request.snapshot, reply.position, reply.data)
        role.snapshot_position = reply.position + len(reply.data)
        if role.snapshot_position >= reply.size:
            self._finish_snapshot(role, request.snapshot)

    def _finish_snapshot(self, role: Follower, snapshot: OffsetAndEpoch) -> None:
        self.log.finish_fetched_snapshot(snapshot)
        role.snapshot = None
        self.sync_generation += 1
        self.synced_offset = self.log.end_offset()
        self._load_voters()
        self._ready.loaded_snapshot = snapshot
        self._advance_high_watermark(snapshot.offset)

    def _load_voters(self) -> None:
        """Reads voters and kraft version from the latest snapshot and from the log after it."""
        snapshot = self.log.latest_snapshot()
        if snapshot is not None:
            size = self.log.snapshot_size(snapshot)
            for _, control_type, value in control_records(self.log.read_snapshot(snapshot, 0, min(size, 1 << 16))):
                # A record of the first snapshot (0-0) has offset -1, so that the first leader writes it to the log.
                self._apply_control(snapshot.offset - 1, control_type, value)
        position, end = max(self.log.start_offset(), snapshot.offset if snapshot else 0), self.log.end_offset()
        while position < end:
            data = self.log.read(position, 1 << 20)
            records, position = self._scan_controls(data, position)
            for offset, control_type, value in records:
                self._apply_control(offset, control_type, value)

    def _scan_controls(self, data: bytes, position: int) -> tuple[list[tuple[int, int, bytes]], int]:
        batches = split_batches(data, 0, len(data))
        if not batches:
            raise AssertionError(f"the log has no batch at offset {position}")
        return [record for record in control_records(data) if record[0] >= position], int(batches[-1].next_offset)
